"""Model families: what a Hugging Face config and its tensors mean. One file a family, listed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.families.deepseek import DEEPSEEK_V2, DEEPSEEK_V3
from brb_jax.models.families.family import Family
from brb_jax.models.families.gemma import GEMMA
from brb_jax.models.families.gemma2 import GEMMA2
from brb_jax.models.families.gemma3 import GEMMA3
from brb_jax.models.families.gpt2 import GPT2
from brb_jax.models.families.gpt_neox import GPT_NEOX
from brb_jax.models.families.gpt_oss import GPT_OSS
from brb_jax.models.families.granite import GRANITE
from brb_jax.models.families.llama import LLAMA
from brb_jax.models.families.mistral import MISTRAL
from brb_jax.models.families.mixtral import MIXTRAL
from brb_jax.models.families.olmo2 import OLMO2
from brb_jax.models.families.olmo3 import OLMO3
from brb_jax.models.families.phi3 import PHI3
from brb_jax.models.families.qwen2 import QWEN2
from brb_jax.models.families.qwen3 import QWEN3
from brb_jax.models.families.qwen3_moe import QWEN3_MOE
from brb_jax.models.families.smollm3 import SMOLLM3

FAMILIES = (
    LLAMA,
    GEMMA3,
    QWEN2,
    QWEN3,
    MISTRAL,
    GEMMA2,
    GEMMA,
    OLMO2,
    OLMO3,
    SMOLLM3,
    PHI3,
    GRANITE,
    GPT2,
    GPT_NEOX,
    MIXTRAL,
    QWEN3_MOE,
    DEEPSEEK_V2,
    DEEPSEEK_V3,
    GPT_OSS,
)


def family_of(hf: Mapping[str, Any]) -> Family:
    """The family of a Hugging Face config: by its architecture, or by `model_type` where it names none.

    Raises:
        ValueError: No family reads it. The message names those that are supported.
    """
    architectures = hf.get("architectures") or ()
    if not isinstance(architectures, list | tuple) or not all(isinstance(name, str) for name in architectures):
        raise ValueError(f"config.json: architectures is {architectures!r}, not a list of names")
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
