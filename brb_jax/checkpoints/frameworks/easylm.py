"""Checkpoints of EasyLM, young-geng/EasyLM: its Llama, as parameters or with the whole state of training.

The heads' rotary pairs lie next to each other, as in Meta's own files. There is always an output matrix.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from brb_jax.checkpoints.checkpoint import CheckpointError
from brb_jax.checkpoints.frameworks.framework import Framework
from brb_jax.models.config import DecoderConfig
from brb_jax.models.families.tensors import Tensor

_LAYER = "transformer/h/{layer}"
_ATTENTION = f"{_LAYER}/attention"
_MLP = f"{_LAYER}/feed_forward"

_LLAMA = (
    Tensor("transformer/wte/embedding", "embedder/table", "V D -> V D"),
    Tensor("transformer/ln_f/kernel", "final_norm/scale", "D -> D"),
    Tensor("lm_head/kernel", "unembedding/kernel", "D V -> D V"),
    Tensor(f"{_ATTENTION}/wq/kernel", "layers/attention/query/kernel", "D (N h 2) -> D N (2 h)"),
    Tensor(f"{_ATTENTION}/wk/kernel", "layers/attention/key/kernel", "D (K h 2) -> D K (2 h)"),
    Tensor(f"{_ATTENTION}/wv/kernel", "layers/attention/value/kernel", "D (K H) -> D K H"),
    Tensor(f"{_ATTENTION}/wo/kernel", "layers/attention/out/kernel", "(N H) D -> N H D"),
    Tensor(f"{_MLP}/w1/kernel", "layers/mlp/gate/kernel", "D F -> D F"),
    Tensor(f"{_MLP}/w3/kernel", "layers/mlp/up/kernel", "D F -> D F"),
    Tensor(f"{_MLP}/w2/kernel", "layers/mlp/down/kernel", "F D -> F D"),
    Tensor(f"{_LAYER}/attention_norm/kernel", "layers/attention_norm/scale", "D -> D"),
    Tensor(f"{_LAYER}/ffn_norm/kernel", "layers/mlp_norm/scale", "D -> D"),
)


def _table(config: DecoderConfig, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Tensor, ...]:
    if config.family != "llama":
        raise CheckpointError(f"an EasyLM checkpoint of a Llama, but the config is of a {config.family} model")
    if config.tie_embeddings:
        raise CheckpointError(
            "an EasyLM checkpoint always has an output matrix of its own, but the config ties it to the embedding "
            "table; set tie_word_embeddings to false in a copy of config.json"
        )
    return _LLAMA


def _recognises(paths: Collection[str]) -> bool:
    return any(_table_name(path) == "transformer/h/0/attention/wq/kernel" for path in paths)


def _table_name(path: str) -> str | None:
    """Without the `params/params/` of a train state; None for the rest of that."""
    return None if re.match(r"opt_state/|step$", path) else re.sub(r"^(params/)+", "", path)


EASYLM = Framework("EasyLM", _recognises, _table_name, _table)
