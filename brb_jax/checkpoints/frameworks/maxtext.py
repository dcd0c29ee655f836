"""MaxText: one kernel a layer, or layers scanned together, a kernel's second axis then counting them.

Read from MaxText 0.2.5. Its forward pass says what the values mean: kernels of queries hold the attention scale in some
families, embeddings that of their own in others, and norms multiply by what is stored.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping

from brb_jax.checkpoints.checkpoint import CheckpointError
from brb_jax.checkpoints.frameworks.framework import Framework
from brb_jax.models.config import DecoderConfig, Stack
from brb_jax.models.families.tensors import Tensor

# Where the decoder lies: in a train state or its parameters alone, in what fine-tuning and reinforcement learning save.
_ROOT = re.compile(r"(?:params/params/|model/base/|base/|params/)?(?=(?:token_embedder|decoder)/)")
# Where NNX and Linen keep DeepSeek V3's biases of the experts' choice, which are no parameters to them.
_BIASES = re.compile(r"(?:nnx_aux/model/|params/MoEBiasVar/)(?=decoder/.*/gate/bias$)")
_NO_PART = re.compile(
    r"(?:opt_state|optimizer|nnx_aux|batch_stats)/|step$"  # of the train state
    r"|(?:params/params/|base/)?(?:vision_encoder|mtp_block)/"  # images; the token after the next
)

_GEMMAS = ("gemma", "gemma2", "gemma3")
_LATENT = ("deepseek_v2", "deepseek_v3")
# Families whose kernels of queries hold the attention scale: nothing multiplies their queries.
_SCALE_IN_QUERY = ("llama", "mistral", "mixtral", "gemma", "gemma2")
_OTHERS = ("qwen2", "qwen3", "qwen3_moe", "gemma3", "olmo3", "gpt_oss", *_LATENT)
# Families that MaxText has with YaRN. Elsewhere it is not known how their configs set `rope_interleave`.
_YARN = ("olmo3", "gpt_oss", *_LATENT)
# Of each family that scans blocks of several layers, how many.
_BLOCKS = {"gemma3": 6, "gpt_oss": 2, "olmo3": 4}

_MLP = (
    Tensor("mlp/wi_0/kernel", "mlp/gate/kernel", "D F -> D F"),
    Tensor("mlp/wi_1/kernel", "mlp/up/kernel", "D F -> D F"),
    Tensor("mlp/wo/kernel", "mlp/down/kernel", "F D -> F D"),
)


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where some layers lie.

    Attributes:
        prefix: Of the names of their tensors.
        stack: The stack that their canonical parameters are in.
        layers: Which they are.
        scanned: Whether a tensor holds all of them.
        suffix: Of the names of a layer's parts, where two layers share a prefix.
    """

    prefix: str
    stack: str
    layers: range
    scanned: bool
    suffix: str = ""

    def tensor(self, tensor: Tensor) -> Tensor:
        """One of a layer's tensors as one of these layers'."""
        part, _, rest = tensor.name.partition("/")
        return dataclasses.replace(
            tensor,
            name=f"{self.prefix}/{part}{self.suffix}/{rest}",
            path=f"{self.stack}/{tensor.path}",
            layers=self.layers,
            layout=_scanned(tensor.layout) if self.scanned else tensor.layout,
        )


def recognises(paths: Collection[str]) -> bool:
    """Whether the tree has MaxText's embeddings and the last norm of its decoder."""
    names = {table_name(path) for path in paths}
    return {"token_embedder/embedding", "decoder/decoder_norm/scale"} <= names


def table_name(path: str) -> str | None:
    """The path below the parameters, without the `value` that NNX adds."""
    if root := _ROOT.match(path) or _BIASES.match(path):
        return path[root.end() :].removesuffix("/value")
    return None if _NO_PART.match(path) else path


def table(
    config: DecoderConfig,
    shapes: Mapping[str, tuple[int, ...]],
    rope_type: str | None = None,
    normalize_embedding_logits: str | None = None,
) -> tuple[Tensor, ...]:
    """The tensors of a decoder in MaxText's layout.

    Args:
        config: The decoder's.
        shapes: Of the tensors there are; they tell whether layers are scanned.
        rope_type, normalize_embedding_logits: What MaxText's own config says under these names.

    Raises:
        CheckpointError: The family's layout is not known, or needs one of the two settings to be known.
    """
    if config.family not in _SCALE_IN_QUERY + _OTHERS:
        raise CheckpointError(f"MaxText's layout of a {config.family} decoder is not known here")
    interleaved = _interleaved(config, rope_type)
    every = (*_norms(config), *(_latent(config) if config.latent else _attention(config, interleaved)))
    layers = [
        place.tensor(tensor)
        for stack in config.stacks
        for place in _places(config, stack, shapes)
        for tensor in (*every, *(_experts(config) if stack.experts else _MLP))
    ]
    return (*_ends(config, normalize_embedding_logits), *layers)


def _interleaved(config: DecoderConfig, rope_type: str | None) -> bool:
    """Whether rotary pairs lie next to each other, as in MaxText's `llama3.1`, or half a head apart.

    In a latent decoder they do so under YaRN. Its tensors are not reordered: its config has to say the same.
    """
    scalings = {kind.rotary_scaling.kind for kind in config.layer_kinds if kind.rotary_scaling is not None}
    known = ("default", "yarn") if config.family in _YARN else ("default", "llama3.1")
    told = rope_type or ("yarn" if "yarn" in scalings else "default")
    if told not in known:
        raise CheckpointError(f"MaxText's layout of a {config.family} decoder with rope_type={told} is not known here")
    if rope_type is None and config.family == "llama":
        raise CheckpointError(
            "nothing in it tells in which order MaxText rotated the channels of a Llama's queries and keys; add "
            "--maxtext_settings=rope_type=llama3.1 if MaxText's config had that, or a model_name that begins with "
            "llama3.1, or if its converter made this from Llama 3.3; or else --maxtext_settings=rope_type=default"
        )
    if config.latent is None:
        return told == "llama3.1"
    if rope_type is None and told != "yarn":
        raise CheckpointError(
            "config.json has no YaRN, as MaxText's configs of DeepSeek do, and nothing in the tree tells the order of "
            "rotated channels; add --maxtext_settings=rope_type=yarn, or rope_type=default, as in MaxText's config"
        )
    if (told == "yarn") != config.latent.interleaved:
        raise CheckpointError(
            f"with rope_type={told} MaxText's rotary pairs {'lie' if told == 'yarn' else 'do not lie'} next to each "
            f"other, but in a {config.family} decoder of this config.json they "
            f"{'do' if config.latent.interleaved else 'do not'}"
        )
    return config.latent.interleaved


def _ends(config: DecoderConfig, normalize_embedding_logits: str | None) -> tuple[Tensor, ...]:
    """All that is in no layer. What multiplies logits besides goes into the last norm."""
    logit_scale = 1.0
    if config.tie_embeddings:
        if normalize_embedding_logits is None and config.family not in _GEMMAS:
            raise CheckpointError(
                "nothing in it tells whether MaxText divided the logits of tied embeddings by the root of the model's "
                "width; add --maxtext_settings=normalize_embedding_logits=true if its config had that, which is its "
                "default, or --maxtext_settings=normalize_embedding_logits=false, as in its configs of Qwen"
            )
        # Embeddings are stored times their scale, so logits are too large by it, unless this takes it back.
        logit_scale = config.embedding_scale
        if normalize_embedding_logits != "false":
            logit_scale *= config.d_model**-0.5
    norm = _norm("decoder_norm/scale", "final_norm/scale", config)
    ends = [
        Tensor("token_embedder/embedding", "embedder/table", "V D -> V D", times=1 / config.embedding_scale),
        dataclasses.replace(norm, name=f"decoder/{norm.name}", times=logit_scale),
    ]
    if not config.tie_embeddings:
        ends.append(Tensor("decoder/logits_dense/kernel", "unembedding/kernel", "D V -> D V"))
    return tuple(ends)


def _norm(name: str, path: str, config: DecoderConfig, layout: str = "D -> D") -> Tensor:
    return Tensor(name, path, layout, plus=-config.norm_offset)


def _norms(config: DecoderConfig) -> tuple[Tensor, ...]:
    """Those around a layer's parts."""
    before = {"pre_self_attention_layer_norm": "attention_norm", "post_self_attention_layer_norm": "mlp_norm"}
    if config.family == "olmo3":
        before = {"post_self_attention_layer_norm": "post_attention_norm", "post_mlp_layer_norm": "post_mlp_norm"}
    if config.family in _GEMMAS:
        before = {"pre_self_attention_norm": "attention_norm", "pre_ffw_norm": "mlp_norm"}
        if config.post_norms:
            before |= {"post_self_attention_norm": "post_attention_norm", "post_ffw_norm": "post_mlp_norm"}
    return tuple(_norm(f"{name}/scale", f"{path}/scale", config) for name, path in before.items())


def _attention(config: DecoderConfig, interleaved: bool) -> tuple[Tensor, ...]:
    """Those of attention; queries and keys in the order MaxText rotates them in."""
    stored, canonical = ("(h 2)", "(2 h)") if interleaved else ("H", "H")
    name = {"gpt_oss": "GptOssAttention", "olmo3": "attention"}.get(config.family, "self_attention")
    scale = 1 / config.attention_scale if config.family in _SCALE_IN_QUERY else 1.0
    tensors = [
        Tensor(f"{name}/query/kernel", "attention/query/kernel", f"D N {stored} -> D N {canonical}", times=scale),
        Tensor(f"{name}/key/kernel", "attention/key/kernel", f"D K {stored} -> D K {canonical}"),
        Tensor(f"{name}/value/kernel", "attention/value/kernel", "D K H -> D K H"),
        Tensor(f"{name}/out/kernel", "attention/out/kernel", "N H D -> N H D"),
    ]
    if config.attention_bias:
        tensors += [
            Tensor(f"{name}/query/bias", "attention/query/bias", f"N {stored} -> N {canonical}", times=scale),
            Tensor(f"{name}/key/bias", "attention/key/bias", f"K {stored} -> K {canonical}"),
            Tensor(f"{name}/value/bias", "attention/value/bias", "K H -> K H"),
        ]
    if config.attention_bias is True:
        tensors.append(Tensor(f"{name}/out/bias", "attention/out/bias", "D -> D"))
    if config.qk_norm:
        heads = ("(N H) -> N H", "(K H) -> K H") if config.qk_norm == "joint" else (f"{stored} -> {canonical}",) * 2
        tensors += [
            _norm(f"{name}/query_norm/scale", "attention/query_norm/scale", config, heads[0]),
            _norm(f"{name}/key_norm/scale", "attention/key_norm/scale", config, heads[1]),
        ]
    if config.attention_sinks:
        tensors.append(Tensor(f"{name}/sinks", "attention/sinks", "N -> N"))
    return tuple(tensors)


def _latent(config: DecoderConfig) -> tuple[Tensor, ...]:
    """Those of latent attention. Its rotated channels lie as in Hugging Face's tensors."""
    assert config.latent is not None
    tensors = [
        Tensor("self_attention/wkv_a/kernel", "attention/key_value_down/kernel", "D Z -> D Z"),
        Tensor("self_attention/kv_norm/scale", "attention/key_value_norm/scale", "R -> R"),
        Tensor("self_attention/wkv_b/kernel", "attention/key_value_up/kernel", "R N M -> R N M"),
        Tensor("self_attention/out/kernel", "attention/out/kernel", "N W D -> N W D"),
    ]
    if config.latent.query_rank is None:
        tensors.append(Tensor("self_attention/query/kernel", "attention/query/kernel", "D N H -> D N H"))
    else:
        tensors += [
            Tensor("self_attention/wq_a/kernel", "attention/query_down/kernel", "D Q -> D Q"),
            Tensor("self_attention/q_norm/scale", "attention/query_norm/scale", "Q -> Q"),
            Tensor("self_attention/wq_b/kernel", "attention/query_up/kernel", "Q N H -> Q N H"),
        ]
    return tuple(tensors)


def _experts(config: DecoderConfig) -> tuple[Tensor, ...]:
    """Those of the experts that take the MLP's place."""
    assert config.experts is not None
    name = {"mixtral": "MoeBlock_0", "qwen3_moe": "moe_block", "gpt_oss": "GptOssMlp"}.get(
        config.family, "DeepSeekMoeBlock_0/MoeBlock_0"
    )
    tensors = [
        Tensor(f"{name}/gate/kernel", "mlp/router/kernel", "D E -> D E"),
        Tensor(f"{name}/wi_0", "mlp/gate/kernel", "E D X -> E D X"),
        Tensor(f"{name}/wi_1", "mlp/up/kernel", "E D X -> E D X"),
        Tensor(f"{name}/wo", "mlp/down/kernel", "E X D -> E X D"),
    ]
    if config.experts.router_bias:
        tensors.append(Tensor(f"{name}/gate/bias", "mlp/router/bias", "E -> E"))
    if config.experts.choice_bias:
        tensors.append(Tensor(f"{name}/gate/bias", "mlp/router/choice_bias", "E -> E", float32=True))
    if config.experts.bias:
        tensors += [
            Tensor(f"{name}/wi_0_bias", "mlp/gate/bias", "E X -> E X"),
            Tensor(f"{name}/wi_1_bias", "mlp/up/bias", "E X -> E X"),
            Tensor(f"{name}/wo_bias", "mlp/down/bias", "E D -> E D"),
        ]
    if config.experts.d_shared:
        tensors += [
            Tensor("DeepSeekMoeBlock_0/shared_experts/wi_0/kernel", "mlp/shared/gate/kernel", "D Y -> D Y"),
            Tensor("DeepSeekMoeBlock_0/shared_experts/wi_1/kernel", "mlp/shared/up/kernel", "D Y -> D Y"),
            Tensor("DeepSeekMoeBlock_0/shared_experts/wo/kernel", "mlp/shared/down/kernel", "Y D -> Y D"),
        ]
    return tuple(tensors)


def _places(config: DecoderConfig, stack: Stack, shapes: Collection[str]) -> list[_Place]:
    """Where the layers of a stack lie."""
    prefix = "decoder/layers"
    if config.family in _LATENT:
        prefix = "decoder/moe_layers" if stack.experts else "decoder/dense_layers"
    scanned = any(name.startswith((f"{prefix}/", f"{prefix}_remainder/")) for name in shapes)
    first, last = stack.layers.start, stack.layers.stop
    if config.family == "gemma2":  # Two layers, with a window and without, are one of MaxText's.
        suffixes = ("_local", "_global")
        if scanned:
            return [_Place(prefix, stack.name, range(i, last, 2), True, suffixes[i]) for i in range(2)]
        return [_Place(f"{prefix}_{i // 2}", stack.name, range(i, i + 1), False, suffixes[i % 2]) for i in stack.layers]
    if not scanned:
        return [_Place(f"{prefix}_{i - first}", stack.name, range(i, i + 1), False) for i in stack.layers]
    size = _BLOCKS.get(config.family)
    if size is None:
        return [_Place(prefix, stack.name, stack.layers, True)]
    whole = last - last % size
    blocks = [_Place(f"{prefix}/layers_{i}", stack.name, range(i, whole, size), True) for i in range(size) if whole]
    rest = [
        _Place(f"{prefix}_remainder/layers_{i - whole}", stack.name, range(i, i + 1), False) for i in range(whole, last)
    ]
    return blocks + rest


def _scanned(layout: str) -> str:
    """A layer's layout with the axis that counts scanned layers, the second of what is stored."""
    before, after = layout.split(" -> ")
    first = re.match(r"\([^)]*\)|\S+", before)
    assert first is not None
    return f"{first[0]} L{before[first.end() :]} -> L {after}"


MAXTEXT = Framework(
    name="MaxText",
    recognises=recognises,
    table_name=table_name,
    table=table,
    settings={"rope_type": ("default", "llama3.1", "yarn"), "normalize_embedding_logits": ("true", "false")},
)
