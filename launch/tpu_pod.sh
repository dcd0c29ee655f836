#!/usr/bin/env bash
# Evaluates on a Cloud TPU VM slice: copies this checkout to every worker, installs it there, and runs the same command
# on all of them at once. JAX finds the other workers by itself; worker 0 writes the run directory.
#
#   TPU=my-slice ZONE=europe-west4-b bash launch/tpu_pod.sh --flagfile=configs/tpu_pod.flags [--more=flags]
#
# TPU      the slice's name             ZONE     its zone
# PROJECT  its project (default: that of gcloud's configuration)
# PYTHON   the workers' interpreter, 3.11 or newer (default python3; images of Ubuntu 22.04 have 3.10 and need another)
# --model, --data and --out must be readable from every worker: gs:// paths, or a disk they all mount. The checkout on the
# workers is replaced at every launch, and with it whatever a relative --out had put there.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
: "${TPU:?set TPU to the name of the slice}" "${ZONE:?set ZONE to the zone of the slice}"
where=(--zone="$ZONE" ${PROJECT:+--project="$PROJECT"} --worker=all)

archive=$(mktemp --suffix=.tar.gz)
trap 'rm -f "$archive"' EXIT
git -C "$root" archive --format=tar.gz --prefix=brb_jax/ HEAD >"$archive"
gcloud compute tpus tpu-vm scp "$archive" "$TPU:brb_jax.tar.gz" "${where[@]}"

command="set -e; rm -rf brb_jax; tar xzf brb_jax.tar.gz; cd brb_jax
[ -d ~/brb_jax_environment ] || ${PYTHON:-python3} -m venv ~/brb_jax_environment
~/brb_jax_environment/bin/pip install --quiet --editable '.[tpu]'
exec ~/brb_jax_environment/bin/python -m brb_jax.main --distributed$(printf ' %q' "$@")"
gcloud compute tpus tpu-vm ssh "$TPU" "${where[@]}" --command="$command"
