#!/usr/bin/env bash
# Makes an environment, then runs lint, the type checker and the whole test suite in it.
#
#   bash launch/test.sh                        everything
#   PYTHON=python3.13 bash launch/test.sh      the same under another Python (and the JAX that pip resolves for it)
#   bash launch/test.sh --without-reference    only what needs neither torch nor a downloaded model
#   bash launch/test.sh tests/tokens -k bos    what follows goes to pytest (-n 0 -s shows what tests print)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/launch/environment.sh"
cd "$root"

extras=test
selection=()
if [ "${1:-}" = --without-reference ]; then
  shift
  extras=test-core
  selection=(-m "not reference and not real_model" --ignore=tests/reference)
fi
environment=.venv-test-$("${PYTHON:-python3}" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-$extras
make_environment "$environment" "$extras"
python=$environment/bin/python

"$python" -m ruff check .
"$python" -m ruff format --check .
"$python" -m mypy
"$python" -m pytest --numprocesses=2 --dist=loadfile --no-loadscope-reorder "${selection[@]}" "$@"
