"""Checkpoints of other JAX frameworks: one small file for each layout of parameters."""

from __future__ import annotations

from collections.abc import Mapping

from brb_jax.checkpoints.checkpoint import CheckpointError
from brb_jax.checkpoints.frameworks.easylm import EASYLM
from brb_jax.checkpoints.frameworks.framework import Framework
from brb_jax.checkpoints.frameworks.gemma import GEMMA_LAYOUTS
from brb_jax.checkpoints.frameworks.maxtext import MAXTEXT
from brb_jax.checkpoints.frameworks.tunix import TUNIX

FRAMEWORKS: tuple[Framework, ...] = (MAXTEXT, TUNIX, *GEMMA_LAYOUTS, EASYLM)

_MOST_LISTED = 40


def framework_of(shapes: Mapping[str, tuple[int, ...]]) -> Framework:
    """The framework that writes trees like this one.

    Args:
        shapes: Of all arrays, by path, levels joined by slashes.

    Raises:
        CheckpointError: None of those known does; the tree is in the message.
    """
    for framework in FRAMEWORKS:
        if framework.recognises(shapes):
            return framework
    known = ", ".join(dict.fromkeys(framework.name for framework in FRAMEWORKS))
    parameters_first = sorted(shapes.items(), key=lambda leaf: leaf[0].startswith(("opt", "step")))
    listed = "".join(f"\n  {path} {shape}" for path, shape in parameters_first[:_MOST_LISTED])
    more = f"\n  and {len(shapes) - _MOST_LISTED} more" if len(shapes) > _MOST_LISTED else ""
    raise CheckpointError(f"its tree is of no framework that is known ({known}):{listed}{more}")
