#!/usr/bin/env bash
# From nothing to a report: installs brb_jax, fetches a small pretrained model, generates a small benchmark, evaluates.
#
#   bash launch/quickstart.sh                       SmolLM2-135M (Apache-2.0)
#   MODEL=gemma-3-270m bash launch/quickstart.sh    the base Gemma 3 270M (Gemma Terms of Use)
#   PYTHON=python3.12 bash launch/quickstart.sh     with another Python
#
# Everything is kept in quickstart/ and reused by the next run; flags given here are passed to brb_jax.main.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/launch/environment.sh"
cd "$root"

model=${MODEL:-smollm2-135m}
environment=quickstart/environment
mkdir -p quickstart
make_environment "$environment" demo
python=$environment/bin/python
export TOKENIZERS_PARALLELISM=true HF_HUB_OFFLINE=1

if [ ! -d "quickstart/$model" ]; then
  "$python" -m brb_jax.checkpoints.demo --model="$model" --out="quickstart/$model.gguf"
  "$python" -m brb_jax.convert --source="quickstart/$model.gguf" --out="quickstart/$model"
fi
if [ ! -e quickstart/data/complete ]; then
  "$python" -m brb_jax.generate --out=quickstart/data --domains=words,digits --cases=6 --overwrite
  touch quickstart/data/complete
fi
"$python" -m brb_jax.main --flagfile=configs/quickstart.flags --model="quickstart/$model" --out="quickstart/runs/$model" "$@"
