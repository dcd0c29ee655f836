#!/usr/bin/env bash
# Runs one evaluation as several processes on this machine: what a pod does, in small.
#
#   PROCESSES=2 DEVICES=4 bash launch/local_processes.sh --flagfile=configs/quickstart.flags
#
# PROCESSES  how many processes (default 2)
# DEVICES    virtual CPU devices of each (default 1)
# PORT       where process 0 listens on the loopback interface (default: a free one)
# PYTHON     the interpreter of an environment that has brb_jax (default python3)
set -euo pipefail
processes=${PROCESSES:-2}
devices=${DEVICES:-1}
for given in "PROCESSES=$processes" "DEVICES=$devices"; do
  [[ $given =~ =[1-9][0-9]*$ ]] || {
    echo "local_processes.sh: $given is not a whole number of at least 1" >&2
    exit 1
  }
done
python=${PYTHON:-python3}
port=${PORT:-$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')}
export JAX_PLATFORMS=cpu
export XLA_FLAGS="${XLA_FLAGS:-} --xla_force_host_platform_device_count=$devices"

pids=()
# If one process fails the others would wait for it: end them all.
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT
for ((id = 0; id < processes; id++)); do
  "$python" -m brb_jax.main "$@" --distributed \
    --coordinator_address="127.0.0.1:$port" --num_processes="$processes" --process_id="$id" &
  pids+=($!)
done
for ((left = processes; left > 0; left--)); do
  wait -n
done
