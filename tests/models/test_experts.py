"""Mixtures of experts against a loop over tokens in float64, and that a token's neighbours change nothing."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from tiny_decoders import CONFIG, logprobs, random_requests, scorer

from brb_jax.models.config import ClampedGate, Experts, LayerKind, from_json, to_json
from brb_jax.models.experts import ExpertsMLP, block_size, choose
from brb_jax.scoring.mesh import make_mesh
from brb_jax.scoring.parameters import abstract_decoder

RULES = {
    "softmax": Experts(num_experts=6, per_token=2, d_expert=20),
    "normalized": Experts(num_experts=4, per_token=3, d_expert=20, normalize=True, scale=2.5),
    "grouped": Experts(
        num_experts=8, per_token=3, d_expert=12, num_groups=4, groups_per_token=2, scale=16.0, d_shared=8
    ),
    "sigmoid": Experts(
        num_experts=8,
        per_token=2,
        d_expert=12,
        score="sigmoid",
        normalize=True,
        num_groups=2,
        groups_per_token=1,
        best_per_group=2,
        choice_bias=True,
        d_shared=24,
    ),
    "clamped": Experts(
        num_experts=4,
        per_token=2,
        d_expert=16,
        score="softmax_of_chosen",
        router_bias=True,
        bias=True,
        clamped=ClampedGate(limit=0.7, sharpness=1.7),
    ),
}


def config_of(experts: Experts):
    kinds = (LayerKind(None, 1e4, experts=True),)
    return dataclasses.replace(CONFIG, num_layers=2, layer_kinds=kinds, layer_pattern=(0, 0), experts=experts)


def chosen_by_hand(logits: np.ndarray, bias: np.ndarray, e: Experts) -> dict[int, float]:
    """One token's experts and weights, as the papers state the rules; no sorting, no arrays over tokens."""
    if e.score == "softmax":
        scores = np.exp(logits) / np.exp(logits).sum()
    elif e.score == "sigmoid":
        scores = 1 / (1 + np.exp(-logits))
    else:
        scores = logits
    ranks = {i: scores[i] + bias[i] for i in range(e.num_experts)}
    size = e.num_experts // e.num_groups
    groups = [sorted((ranks[i] for i in range(g * size, (g + 1) * size)), reverse=True) for g in range(e.num_groups)]
    best = sorted(range(e.num_groups), key=lambda g: sum(groups[g][: e.best_per_group]), reverse=True)
    allowed = [i for i in ranks if i // size in best[: e.groups_per_token]]
    chosen = sorted(allowed, key=ranks.__getitem__, reverse=True)[: e.per_token]
    weights = {i: scores[i] for i in chosen}
    if e.score == "softmax_of_chosen":
        weights = {i: np.exp(w) / sum(np.exp(v) for v in weights.values()) for i, w in weights.items()}
    if e.normalize:
        weights = {i: w / sum(weights.values()) for i, w in weights.items()}
    return {i: w * e.scale for i, w in weights.items()}


def mlp_by_hand(x: np.ndarray, v: dict, e: Experts) -> np.ndarray:
    """The module's output for one token, expert by expert, in float64."""

    def silu(y):
        return y / (1 + np.exp(-y))

    zero = np.zeros(e.num_experts)
    logits = x @ v["router"]["kernel"] + v["router"].get("bias", zero)
    out = np.zeros_like(x)
    for i, weight in chosen_by_hand(logits, v["router"].get("choice_bias", zero), e).items():
        gate, up = (x @ v[name]["kernel"][i] + (v[name]["bias"][i] if e.bias else 0) for name in ("gate", "up"))
        if e.clamped:
            gate, up = np.minimum(gate, e.clamped.limit), np.clip(up, -e.clamped.limit, e.clamped.limit)
            hidden = gate / (1 + np.exp(-e.clamped.sharpness * gate)) * (up + 1)
        else:
            hidden = silu(gate) * up
        out += weight * (hidden @ v["down"]["kernel"][i] + (v["down"]["bias"][i] if e.bias else 0))
    if e.d_shared:
        shared = {name: kernel["kernel"] for name, kernel in v["shared"].items()}
        out += (silu(x @ shared["gate"]) * (x @ shared["up"])) @ shared["down"]
    return out


def values_of(config):
    """Random parameters of a decoder; the initialisers compile for half a minute."""
    rng = np.random.default_rng(0)
    _, state = abstract_decoder(config, jnp.float32)
    return jax.tree.map(lambda leaf: rng.normal(0, 0.2, leaf.shape).astype(np.float32), nnx.to_pure_dict(state))


def module_and_values(experts: Experts):
    module = ExpertsMLP(config_of(experts), dtype=jnp.dtype(jnp.float32), rngs=nnx.Rngs(0))
    values = nnx.to_pure_dict(nnx.state(module))
    return module, jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), values)


@pytest.mark.parametrize("rule", RULES)
def test_each_token_by_itself(rule):
    """Tokens that all pick one expert are among them: no expert is ever full."""
    experts = RULES[rule]
    module, values = module_and_values(experts)
    x = np.random.default_rng(0).normal(size=(2, 70, CONFIG.d_model))
    x[1] = x[1, 0]
    out = jax.jit(lambda x: module(x))(jnp.asarray(x, jnp.float32))
    expected = np.stack([[mlp_by_hand(token, values, experts) for token in row] for row in x])
    np.testing.assert_allclose(out, expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("rule", ["grouped", "clamped"])
@pytest.mark.parametrize(
    "mesh", [{"expert": 4, "tensor": 2}, {"data": 2, "fsdp": 2, "expert": 2}, {"fsdp": 4, "tensor": 2}, {"expert": 8}]
)
def test_on_a_mesh(rule, mesh):
    """Experts over `expert` (or whole, where 8 devices do not divide 4 experts), their width over `tensor`."""
    module, values = module_and_values(RULES[rule])
    x = np.random.default_rng(1).normal(size=(8, 9, CONFIG.d_model))
    with jax.set_mesh(make_mesh(mesh)):
        out = jax.jit(lambda x: module(x))(jnp.asarray(x, jnp.float32))
    expected = np.stack([[mlp_by_hand(token, values, RULES[rule]) for token in row] for row in x])
    np.testing.assert_allclose(out, expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("rule", RULES)
def test_other_tokens_change_nothing(rule):
    """Not a bit of a token's output, wherever it stands among the tokens of its experts."""
    module, _ = module_and_values(RULES[rule])
    apply = jax.jit(lambda x: module(x))
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2, 64, CONFIG.d_model)).astype(np.float32)
    kept = rng.random((2, 64)) < 0.3
    out = np.asarray(apply(x))[kept]
    for others in (rng.normal(size=x.shape) * 5, np.zeros(x.shape), np.broadcast_to(x[0, 0], x.shape)):
        again = apply(np.where(kept[..., None], x, others).astype(np.float32))
        np.testing.assert_array_equal(np.asarray(again)[kept], out)


def test_the_bias_of_the_choice_is_not_in_the_weights():
    """Scores 0.9, 0.5, 0.1 and biases 0, 0, 1: the third is chosen first, and weighs 0.1 of 1.0."""
    experts = Experts(num_experts=3, per_token=2, d_expert=1, score="sigmoid", normalize=True, choice_bias=True)
    logits = np.log([0.9 / 0.1, 0.5 / 0.5, 0.1 / 0.9])
    chosen, weights = choose(jnp.asarray(logits, jnp.float32)[None, None], jnp.asarray([0.0, 0.0, 1.0]), experts)
    assert chosen[0, 0].tolist() == [2, 0]
    np.testing.assert_allclose(weights[0, 0], [0.1, 0.9], rtol=1e-6)


def test_groups_by_hand():
    """The best expert, number 0, is in a group that two good ones beat together, but not alone."""
    logits = jnp.log(jnp.asarray([[[0.4, 0.01, 0.3, 0.29]]]))
    experts = Experts(num_experts=4, per_token=2, d_expert=1, num_groups=2, groups_per_token=1, best_per_group=2)
    assert choose(logits, None, experts)[0][0, 0].tolist() == [2, 3]
    by_best = dataclasses.replace(experts, best_per_group=1)
    assert choose(logits, None, by_best)[0][0, 0].tolist() == [0, 1]


def test_block_size():
    assert [block_size(mean) for mean in (0, 15, 32, 100, 128, 5_000)] == [8, 8, 16, 32, 64, 256]


def test_impossible_rules_are_refused():
    for changes, message in [
        ({"num_groups": 3}, "8 experts cannot be put into 3 groups"),
        ({"per_token": 5}, "5 experts a token, chosen from 4"),
        ({"per_token": 0}, "per_token is 0, not a whole number of at least 1"),
        ({"d_expert": 2.0}, "d_expert is 2.0, not a whole number of at least 1"),
        ({"groups_per_token": 5}, "5 groups a token"),
        ({"best_per_group": 3}, "ranked by 3 experts each"),
    ]:
        with pytest.raises(ValueError, match=message):
            dataclasses.replace(RULES["grouped"], **changes)
    with pytest.raises(ValueError, match="contradicts the layer kinds"):
        dataclasses.replace(CONFIG, experts=RULES["grouped"])


def test_layers_are_stacked_where_they_are_alike():
    """One stack keeps its name; experts behind the first layer, or in every other one, make more."""
    kinds = (LayerKind(None, 1e4), LayerKind(9, 1e4), LayerKind(None, 1e4, experts=True))

    def stacks(*pattern):
        experts = RULES["sigmoid"] if 2 in pattern else None
        used = kinds if 2 in pattern else kinds[:2]
        config = dataclasses.replace(
            CONFIG, num_layers=len(pattern), layer_kinds=used, layer_pattern=pattern, experts=experts
        )
        assert from_json(to_json(config)) == config
        _, state = abstract_decoder(config, jnp.float32)
        tree = nnx.to_pure_dict(state)
        assert {stack.name for stack in config.stacks} == {name for name in tree if name.startswith("layers")}
        for stack in config.stacks:
            assert tree[stack.name]["attention"]["query"]["kernel"].shape[0] == len(stack.layers)
            assert ("router" in tree[stack.name]["mlp"]) == stack.experts
        return [(stack.name, stack.layers) for stack in config.stacks]

    assert stacks(0, 1, 0) == [("layers", range(3))]
    assert stacks(2, 2) == [("layers", range(2))]
    assert stacks(0, 1, 2, 2) == [("layers_0_to_1", range(2)), ("layers_2_to_3", range(2, 4))]
    assert stacks(0, 2, 0) == [(f"layers_{i}_to_{i}", range(i, i + 1)) for i in range(3)]


def test_sharing_and_packing_change_no_score():
    """A whole decoder with experts behind a dense layer, a pass a tree and a pass a request."""
    kinds = (LayerKind(None, 1e4), LayerKind(9, 1e3, experts=True))
    config = dataclasses.replace(CONFIG, layer_kinds=kinds, layer_pattern=(0, 1, 1), experts=RULES["sigmoid"])
    log_likelihood = scorer(values_of(config), config, mesh={"data": 2, "expert": 2, "tensor": 2})
    requests = random_requests(np.random.default_rng(3), contexts=4, length=(1, 60))
    tree = logprobs(log_likelihood, requests, buckets=[128], batch_tokens=128)
    apart = logprobs(log_likelihood, requests, buckets=[128], batch_tokens=128, sharing="none")
    np.testing.assert_allclose(apart, tree, atol=1e-5)
