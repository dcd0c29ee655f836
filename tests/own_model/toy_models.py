"""A toy model with learned positions and one layer of attention, and ways to get it wrong, one at a time."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from brb_jax.models.own_model import OwnModel

V, D, LONGEST = 40, 16, 512


def parameters(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {"embedding": (V, D), "position": (LONGEST, D), "query": (D, D), "key": (D, D), "value": (D, D)}
    return {name: (rng.standard_normal(shape) / np.sqrt(D)).astype(np.float32) for name, shape in shapes.items()}


def hidden_states(p, tokens, positions, sees, flaw: str = ""):
    """`sees[..., i, j]`: whether slot i sees slot j."""
    slots = jnp.arange(tokens.shape[1])
    if flaw == "ignores positions":
        positions = jnp.broadcast_to(slots, tokens.shape)
    if flaw == "shifts inputs right":
        tokens = jnp.pad(tokens, ((0, 0), (1, 0)))[:, :-1]
    if flaw == "shifts outputs left":
        tokens = jnp.pad(tokens, ((0, 0), (0, 1)))[:, 1:]
    if flaw == "not causal":
        sees = sees | (slots > slots[:, None])
    if flaw == "sees padding":
        # As a mask of prefix models would: the row's end, where the padding is, is seen by all.
        sees = sees | (slots >= tokens.shape[1] - 8)
    x = 3 * p["embedding"][tokens] + p["position"][positions]
    if flaw == "mixes rows":
        x = x - 0.3 * x.mean(0)
    scores = jnp.einsum("bid,bjd->bij", x @ p["query"], x @ p["key"])
    weights = jax.nn.softmax(jnp.where(sees, scores, -1e30))
    x = x + weights @ (x @ p["value"])
    if flaw == "dropout":
        x = x * jax.random.bernoulli(jax.random.key(0), 0.9, x.shape) / 0.9
    if flaw == "NaN":
        x = x.at[:, 5:60].set(jnp.nan)
    if flaw == "constant":
        x = 0 * x
    return x


def unembed(p, hidden):
    return hidden @ p["embedding"].T


def causal(slots):
    return slots <= slots[:, None]


def tree(p, tokens, positions, subtree_end, flaw: str = ""):
    slots = jnp.arange(tokens.shape[1])
    ends = jnp.where(flaw == "ignores subtree_end", tokens.shape[1], subtree_end)
    return hidden_states(p, tokens, positions, causal(slots) & (slots[:, None] < ends[:, None]), flaw)


def packed(p, tokens, positions, segment_ids, flaw: str = ""):
    sees = causal(jnp.arange(tokens.shape[1])) & (
        (segment_ids[:, :, None] == segment_ids[:, None]) | (flaw == "ignores segment ids")
    )
    return hidden_states(p, tokens, positions, sees, flaw)


def plain(p, tokens, flaw: str = ""):
    slots = jnp.arange(tokens.shape[1])
    return hidden_states(p, tokens, jnp.broadcast_to(slots, tokens.shape), causal(slots)[None], flaw)


FUNCTIONS = {"tree": tree, "packed": packed, "plain": plain}


def toy(signature: str, flaw: str = "", **changes) -> OwnModel:
    """A model of that signature with that flaw."""
    settings = {
        "tokenizer": "unused",
        "vocab_size": V,
        "max_length": LONGEST,
        "parameters": parameters(),
        signature: functools.partial(FUNCTIONS[signature], flaw=flaw),
        "unembed": unembed,
    }
    return OwnModel(**settings | changes)
