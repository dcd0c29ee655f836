"""What reading the checkpoints of another JAX framework takes: how its trees are told, and a table of their tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping

from brb_jax.models.families.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Framework:
    """One layout of parameters in another framework's checkpoints.

    Attributes:
        name: As a run's record has it.
        recognises: Whether a tree with these paths has this layout.
        table_name: What `table` calls the array at a path, or None if no decoder has a part in it: optimizer states,
            steps.
        table: The tensors of a decoder of a config in a checkpoint of these arrays, by name with their shapes; those of
            the framework's `settings` that the user gives are keyword arguments. Raises CheckpointError if the
            framework's layout of this family is not known.
        settings: What may have to be told because it leaves no trace in a tree, by name, and the values each may have.
    """

    name: str
    recognises: Callable[[Collection[str]], bool]
    table_name: Callable[[str], str | None]
    table: Callable[..., tuple[Tensor, ...]]
    settings: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
