"""The logits that the decoder of a checkpoint gives."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from brb_jax.scoring.mesh import make_mesh
from brb_jax.scoring.parameters import abstract_decoder, abstract_parameters, with_values

SLOTS = 128


def logits(checkpoint, tokens):
    """One causal row: every slot's subtree reaches to the end; padding sees itself."""
    graph, state = abstract_decoder(checkpoint.config, jnp.dtype("float32"))
    mesh = make_mesh({})
    decoder = nnx.merge(graph, with_values(state, checkpoint.load(abstract_parameters(state, mesh))))
    slots = np.arange(SLOTS, dtype=np.int32)
    real = slots < len(tokens)
    tokens_BT = np.pad(tokens, (0, SLOTS - len(tokens))).astype(np.int32)[None]
    positions_BT = np.where(real, slots, 0)[None]
    subtree_end_BT = np.where(real, len(tokens), slots + 1).astype(np.int32)[None]
    with jax.set_mesh(mesh):
        hidden_BTD = decoder.hidden_states(jnp.array(tokens_BT), jnp.array(positions_BT), jnp.array(subtree_end_BT))
        return np.asarray(decoder.logits(hidden_BTD))[0, : len(tokens)]
