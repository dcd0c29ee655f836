"""Runs of `python -m brb_jax.main` as a user starts them: in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAIN = (sys.executable, "-m", "brb_jax.main")


def environment(devices: int = 1) -> dict[str, str]:
    """Virtual CPU devices; programs of any size are taken from the compilation cache."""
    return {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "PYTHON": sys.executable,
    }


def start(command: Sequence[str], **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        env={**environment(), **variables},
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run(command: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env={**environment(), **variables}, cwd=ROOT, text=True, capture_output=True, timeout=120, check=False
    )
