"""Model families: what a Hugging Face config and its tensors mean. One file a family, listed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.families.family import Family
from brb_jax.models.families.gemma3 import GEMMA3
from brb_jax.models.families.llama import LLAMA

FAMILIES = (LLAMA, GEMMA3)


def family_of(hf: Mapping[str, Any]) -> Family:
    """The family of a Hugging Face config: by its architecture, or by `model_type` where it names none.

    Raises:
        ValueError: No family reads it. The message names those that are supported.
    """
    architectures = hf.get("architectures") or ()
    for family in FAMILIES:
        if any(name in family.architectures for name in architectures):
            return family
        if not architectures and hf.get("model_type") in family.model_types:
            return family
    found = ", ".join(architectures) or f"model_type {hf.get('model_type')!r}"
    supported = ", ".join(name for family in FAMILIES for name in family.architectures)
    raise ValueError(f"architecture {found} is not supported, only {supported}")


def family_named(name: str) -> Family:
    """The family a `DecoderConfig` names.

    Raises:
        ValueError: There is none of that name.
    """
    for family in FAMILIES:
        if family.name == name:
            return family
    raise ValueError(f"family {name!r} is not supported, only {', '.join(family.name for family in FAMILIES)}")
