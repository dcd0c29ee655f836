"""Checkpoints of any kind as canonical parameters on the present mesh. `open_checkpoint` is the way in."""

from brb_jax.checkpoints.checkpoint import Checkpoint, CheckpointError, Params
from brb_jax.checkpoints.opening import open_checkpoint, open_framework

__all__ = ["Checkpoint", "CheckpointError", "Params", "open_checkpoint", "open_framework"]
