"""Mixtures of experts: an MLP of many parts, of which each token goes through the few that its router picks.

Shazeer et al., "Outrageously Large Neural Networks" (2017). Dropless and exact: an expert takes every token that picks
it, so what a token's neighbours are, padding included, plays no part in its output.

Tokens are sorted by expert and cut into blocks of one expert each; a loop over the blocks there are does three plain
products a block. `jax.lax.ragged_dot` is the shorter way to write it, but where XLA has no instruction for it, as on
CPUs, every row meets every expert's kernel: 8 and 65 times the work, measured for 8 and 64 experts, and as many times
the memory. The loop took 1.2 to 2.3 times as long as a dense MLP of the same number of products there, and a fifth of
the time of `ragged_dot` with 8 experts. Each output is summed in the order of expert numbers, whatever else is in the
batch.

On a mesh, experts are split over `expert`, and so are rows: each device collects the rows of its `expert` group,
computes what its own experts add to them, and the sums are scattered back.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float, Int

from brb_jax.models.config import DecoderConfig, Experts
from brb_jax.models.layers import ACTIVATIONS, MLP, parameter
from brb_jax.models.partitioning import partition_spec
from brb_jax.models.products import operand, precision

# Rows of a block. Small blocks make slow products, large ones stay half empty at the end of each expert's tokens: half
# of what an expert gets on average balances the two on CPUs.
MIN_BLOCK, MAX_BLOCK = 8, 256


def choose(
    logits_BTE: Float[Array, "B T E"], choice_bias_E: Float[Array, " E"] | None, experts: Experts
) -> tuple[Int[Array, "B T C"], Float[Array, "B T C"]]:
    """The experts of each token and their weights, from the router's float32 logits.

    Args:
        logits_BTE: One a token and expert.
        choice_bias_E: Added to scores where experts are ranked, not where they are weighted; None for none.
        experts: The rule.
    """
    if experts.score == "softmax":
        scores_BTE = jax.nn.softmax(logits_BTE, axis=-1)
    elif experts.score == "sigmoid":
        scores_BTE = jax.nn.sigmoid(logits_BTE)
    else:
        scores_BTE = logits_BTE
    ranked_BTE = scores_BTE if choice_bias_E is None else scores_BTE + choice_bias_E
    if experts.num_groups > 1:
        by_group = ranked_BTE.reshape(*ranked_BTE.shape[:-1], experts.num_groups, -1)
        group_scores = jax.lax.top_k(by_group, experts.best_per_group)[0].sum(-1)
        _, groups = jax.lax.top_k(group_scores, experts.groups_per_token)
        picked = (groups[..., None] == jnp.arange(experts.num_groups)).any(-2)
        ranked_BTE = jnp.where(picked[..., None], by_group, -jnp.inf).reshape(ranked_BTE.shape)
    _, chosen_BTC = jax.lax.top_k(ranked_BTE, experts.per_token)
    weights_BTC = jnp.take_along_axis(scores_BTE, chosen_BTC, axis=-1)
    if experts.score == "softmax_of_chosen":
        weights_BTC = jax.nn.softmax(weights_BTC, axis=-1)
    if experts.normalize:
        weights_BTC /= weights_BTC.sum(-1, keepdims=True)
    return chosen_BTC, weights_BTC * experts.scale


class Router(nnx.Module):
    """Scores every expert for every token, in float32 whatever else is: a rounded score sends a token elsewhere."""

    def __init__(self, config: DecoderConfig, experts: Experts, *, dtype: jnp.dtype, rngs: nnx.Rngs):
        self.experts = experts
        init = jax.nn.initializers.normal(config.d_model**-0.5)
        self.kernel = parameter(init(rngs.params(), (config.d_model, experts.num_experts), dtype), ("embed", None))
        if experts.router_bias:
            self.bias = parameter(init(rngs.params(), (experts.num_experts,), dtype), (None,))
        if experts.choice_bias:
            self.choice_bias = parameter(init(rngs.params(), (experts.num_experts,), jnp.float32), (None,))

    def __call__(self, x_BTD: Float[Array, "B T D"]) -> tuple[Int[Array, "B T C"], Float[Array, "B T C"]]:
        kernel_DE = self.kernel[...].astype(jnp.float32)
        logits_BTE = jnp.matmul(x_BTD, kernel_DE, precision=jax.lax.Precision.HIGHEST)
        if self.experts.router_bias:
            logits_BTE += self.bias[...].astype(jnp.float32)
        return choose(logits_BTE, self.choice_bias[...] if self.experts.choice_bias else None, self.experts)


class ExpertLinear(nnx.Module):
    """A kernel an expert, `[E, inputs, outputs]`, and biases `[E, outputs]` where the config has them."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        logical_axes: tuple[str, str, str],
        *,
        bias: bool,
        dtype: jnp.dtype,
        rngs: nnx.Rngs,
    ):
        init = jax.nn.initializers.normal(shape[1] ** -0.5)
        self.kernel = parameter(init(rngs.params(), shape, dtype), logical_axes)
        if bias:
            axes = (logical_axes[0], logical_axes[2])
            self.bias = parameter(init(rngs.params(), (shape[0], shape[2]), dtype), axes)


class ExpertsMLP(nnx.Module):
    """Σ weight · expert(x) over the experts a token goes to, plus the output of a shared MLP, if there is one."""

    def __init__(self, config: DecoderConfig, *, dtype: jnp.dtype, rngs: nnx.Rngs):
        experts = config.experts
        assert experts is not None
        self.experts, self.activation = experts, config.activation
        self.router = Router(config, experts, dtype=dtype, rngs=rngs)
        E, D, X = experts.num_experts, config.d_model, experts.d_expert

        def linear(shape: tuple[int, int, int], axes: tuple[str, str, str]) -> ExpertLinear:
            return ExpertLinear(shape, axes, bias=experts.bias, dtype=dtype, rngs=rngs)

        self.gate = linear((E, D, X), ("experts", "embed", "mlp"))
        self.up = linear((E, D, X), ("experts", "embed", "mlp"))
        self.down = linear((E, X, D), ("experts", "mlp", "embed"))
        if experts.d_shared:
            self.shared = MLP(config, experts.d_shared, dtype=dtype, rngs=rngs)

    def __call__(self, x_BTD: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
        chosen_BTC, weights_BTC = self.router(x_BTD)
        parameters = {name: getattr(self, name).kernel[...] for name in ("gate", "up", "down")}
        if self.experts.bias:
            parameters |= {f"{name}_bias": getattr(self, name).bias[...] for name in ("gate", "up", "down")}
        if hasattr(self.gate, "kernel_scale"):  # of int8 kernels
            parameters |= {f"{name}_scale": getattr(self, name).kernel_scale[...] for name in ("gate", "up", "down")}
        x = x_BTD.astype(operand(parameters["gate"]).dtype)
        out_BTD = self._on_mesh(x, chosen_BTC, weights_BTC, parameters)
        return out_BTD + self.shared(x_BTD) if self.experts.d_shared else out_BTD

    def _on_mesh(
        self,
        x_BTD: Float[Array, "B T D"],
        chosen_BTC: Int[Array, "B T C"],
        weights_BTC: Float[Array, "B T C"],
        parameters: dict[str, Array],
    ) -> Float[Array, "B T D"]:
        """`_on_device`, on each device of the surrounding mesh for its rows and its part of the experts."""
        mesh = jax.sharding.get_abstract_mesh()
        if mesh.empty:
            return self._on_device(x_BTD, chosen_BTC, weights_BTC, parameters, 0)
        sizes = dict(mesh.shape)
        rows = partition_spec(x_BTD.shape, ("batch", None, None), sizes)
        across, _, within = partition_spec(parameters["gate"].shape, ("experts", None, "mlp"), sizes)
        # Rows split over the very axes that split experts are collected first.
        collected = across is not None and set(_axes(across)) <= set(_axes(rows[0]))

        def on_device(x_BTD, chosen_BTC, weights_BTC, parameters):
            first = 0
            if across is not None:
                first = jax.lax.axis_index(across) * parameters["gate"].shape[0]
            if collected:
                x_BTD, chosen_BTC, weights_BTC = (
                    jax.lax.all_gather(array, across, axis=0, tiled=True) for array in (x_BTD, chosen_BTC, weights_BTC)
                )
            if within is not None and self.experts.bias:  # the sum below would add it once a device
                here = jax.lax.axis_index(within) == 0
                parameters = parameters | {"down_bias": jnp.where(here, parameters["down_bias"], 0)}
            out_BTD = self._on_device(x_BTD, chosen_BTC, weights_BTC, parameters, first)
            if within is not None:
                out_BTD = jax.lax.psum(out_BTD, within)
            if collected:
                return jax.lax.psum_scatter(out_BTD, across, scatter_dimension=0, tiled=True)
            return out_BTD if across is None else jax.lax.psum(out_BTD, across)

        kernels = PartitionSpec(across, None, within)
        places = {"gate": kernels, "up": kernels, "down": PartitionSpec(across, within, None)}
        if self.experts.bias:
            places |= {name: PartitionSpec(across, within) for name in ("gate_bias", "up_bias")}
            places["down_bias"] = PartitionSpec(across, None)
        if "gate_scale" in parameters:
            places |= {name: kernels for name in ("gate_scale", "up_scale")}
            places["down_scale"] = PartitionSpec(across, None, None)
        return jax.shard_map(
            on_device, mesh=mesh, in_specs=(rows, rows, rows, places), out_specs=rows, check_vma=False
        )(x_BTD, chosen_BTC, weights_BTC, parameters)

    def _on_device(
        self,
        x_BTD: Float[Array, "B T D"],
        chosen_BTC: Int[Array, "B T C"],
        weights_BTC: Float[Array, "B T C"],
        parameters: dict[str, Array],
        first: Int[Array, ""] | int,
    ) -> Float[Array, "B T D"]:
        """What the experts from number `first` on, those `parameters` hold, add to every token; float32."""
        x_MD = x_BTD.reshape(-1, x_BTD.shape[-1])
        M, C = len(x_MD), self.experts.per_token
        E = parameters["gate"].shape[0]
        b = block_size(M * C // self.experts.num_experts)
        own_A = chosen_BTC.reshape(-1) - first
        own_A = jnp.where((own_A >= 0) & (own_A < E), own_A, E)  # those of other devices come last, and are not met
        order_A = jnp.argsort(own_A, stable=True)
        starts = jnp.searchsorted(own_A[order_A], jnp.arange(E + 1))
        sizes_E = starts[1:] - starts[:-1]
        blocks_E = -(-sizes_E // b)
        ends_E = jnp.cumsum(blocks_E)
        weights_A = weights_BTC.reshape(-1)

        def add_block(block: Int[Array, ""], out_MD: Float[Array, "M D"]) -> Float[Array, "M D"]:
            expert = (ends_E <= block).sum()
            rank = (block - (ends_E[expert] - blocks_E[expert])) * b + jnp.arange(b)
            assignment = jnp.where(rank < sizes_E[expert], order_A[starts[expert] + rank], M * C)
            token = assignment // C  # M, which is none, where the block is not full
            rows = x_MD.at[token].get(mode="fill", fill_value=0)
            own = {
                name: jax.lax.dynamic_index_in_dim(array, expert, keepdims=False) for name, array in parameters.items()
            }
            weights = weights_A.at[assignment].get(mode="fill", fill_value=0)
            return out_MD.at[token].add(self._expert(rows, own) * weights[:, None], mode="drop")

        out_MD = jax.lax.fori_loop(0, ends_E[-1], add_block, jnp.zeros(x_MD.shape, jnp.float32))
        return out_MD.reshape(x_BTD.shape)

    def _expert(self, x: Float[Array, "b D"], own: dict[str, Array]) -> Float[Array, "b D"]:
        """One expert's MLP; float32."""

        def linear(name: str, x: Float[Array, "b i"]) -> Float[Array, "b o"]:
            kernel = operand(own[name])
            y = jnp.matmul(
                x.astype(kernel.dtype), kernel, precision=precision(kernel.dtype), preferred_element_type=jnp.float32
            )
            if f"{name}_scale" in own:
                y *= own[f"{name}_scale"]
            return y + own[f"{name}_bias"].astype(jnp.float32) if self.experts.bias else y

        gate, up = linear("gate", x), linear("up", x)
        clamped = self.experts.clamped
        if clamped is None:
            return linear("down", ACTIVATIONS[self.activation](gate) * up)
        gate, up = jnp.minimum(gate, clamped.limit), jnp.clip(up, -clamped.limit, clamped.limit)
        return linear("down", gate * jax.nn.sigmoid(clamped.sharpness * gate) * (up + 1))


def block_size(mean: int) -> int:
    """Rows of a block, where an expert gets `mean` tokens on average: the power of two at or below half of that."""
    half = max(mean // 2, 1)
    return min(max(1 << (half.bit_length() - 1), MIN_BLOCK), MAX_BLOCK)


def _axes(entry: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if entry is None else (entry,) if isinstance(entry, str) else entry
