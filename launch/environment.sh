# Sourced by the launchers: one function that makes, or reuses, a virtual environment.

# make_environment DIR EXTRAS: installs this checkout with the given extras into the virtual environment DIR, with
# $PYTHON (default python3). An environment made for the same pyproject.toml and interpreter is reused as it is.
make_environment() {
  local dir=$1 extras=$2 python=${PYTHON:-python3} stamp
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "brb_jax needs Python 3.11 or newer; '$python' is $("$python" --version 2>&1). Set PYTHON=python3.11, say." >&2
    return 1
  }
  stamp="$("$python" -c 'import sys; print(sys.version, sys.prefix)') [$extras] $(cksum <"$root/pyproject.toml")"
  if [ -f "$dir/made_for" ] && [ "$(cat "$dir/made_for")" = "$stamp" ]; then
    return 0
  fi
  echo "installing brb_jax[$extras] into $dir"
  rm -rf "$dir"
  "$python" -m venv "$dir"
  "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$root[$extras]"
  echo "$stamp" >"$dir/made_for"
}
