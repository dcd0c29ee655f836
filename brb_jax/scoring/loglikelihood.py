"""The jitted function of a run: a batch of rows in, the log-probability of every scored token out.

Hidden states are gathered at the scored positions *before* the unembedding, so no array over slots × vocabulary exists.
"""

from __future__ import annotations

import functools
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float, Int

from brb_jax.models.partitioning import constrain, partition_spec
from brb_jax.tokens.rows import Batch

# Logits held at once on one device, in elements: 2²⁵ float32 are 128 MiB.
LOGITS_BUDGET = 2**25


@runtime_checkable
class TreeModel(Protocol):
    """What scoring asks of a model; `models.decoder.Decoder` is one."""

    def hidden_states(
        self, tokens_BT: Int[Array, "B T"], positions_BT: Int[Array, "B T"], subtree_end_BT: Int[Array, "B T"]
    ) -> Float[Array, "B T D"]: ...

    def logits(self, hidden_BSD: Float[Array, "B S D"]) -> Float[Array, "B S V"]: ...


class TokenScores(NamedTuple):
    """Of each scored token: its log-probability in nats, and whether it is the argmax. Undefined where a batch pads."""

    logprob_BS: Float[Array, "B S"]
    greedy_BS: Bool[Array, "B S"]


def token_scores(
    model: TreeModel, hidden_BSD: Float[Array, "B S D"], targets_BS: Int[Array, "B S"], chunk: int
) -> TokenScores:
    """log softmax(logits)[target], `chunk` positions of each row at a time; logits and sums are float32.

    The target's logit is picked by comparing with an iota rather than by a gather, and the log-sum-exp is a maximum and
    a sum: both split over a sharded vocabulary without collecting it.
    """
    B, S, D = hidden_BSD.shape
    chunks = -(-S // chunk)
    padding = chunks * chunk - S
    hidden_cBCD = jnp.pad(hidden_BSD, ((0, 0), (0, padding), (0, 0))).reshape(B, chunks, chunk, D).swapaxes(0, 1)
    targets_cBC = jnp.pad(targets_BS, ((0, 0), (0, padding))).reshape(B, chunks, chunk).swapaxes(0, 1)

    def score_chunk(args):
        hidden_BCD, targets_BC = args
        logits_BCV = model.logits(hidden_BCD)
        vocabulary = jax.lax.broadcasted_iota(jnp.int32, logits_BCV.shape, 2)
        target_BC = jnp.where(vocabulary == targets_BC[..., None], logits_BCV, 0.0).sum(-1)
        total_BC = jax.nn.logsumexp(logits_BCV, axis=-1)
        return TokenScores(target_BC - total_BC, jnp.argmax(logits_BCV, axis=-1) == targets_BC)

    scores = jax.lax.map(score_chunk, (hidden_cBCD, targets_cBC))
    return jax.tree.map(lambda leaf_cBC: leaf_cBC.swapaxes(0, 1).reshape(B, chunks * chunk)[:, :S], scores)


class LogLikelihood:
    """Scores batches on a mesh. One instance a run: it holds the jit cache, one entry a bucket.

    Attributes:
        mesh: The devices.
        parameters: The arrays the function is called with.
        num_traces: How often the function was traced, that is, compiled (or read from the persistent cache).
    """

    def __init__(self, graph: nnx.GraphDef, parameters: nnx.State, vocab_size: int, mesh: Mesh):
        """
        Args:
            graph: Static part of the model (`nnx.split`).
            parameters: Its arrays, placed on the mesh.
            vocab_size: Width of its logits.
            mesh: Devices; rows go over `data` and `fsdp`.
        """
        self.num_traces = 0
        self.mesh = mesh
        self.parameters = parameters
        replicated = NamedSharding(mesh, PartitionSpec())

        @functools.partial(jax.jit, out_shardings=replicated)
        def score(parameters, tokens_BT, positions_BT, subtree_end_BT, slots_BS, targets_BS) -> TokenScores:
            self.num_traces += 1
            model = nnx.merge(graph, parameters)
            hidden_BTD = model.hidden_states(tokens_BT, positions_BT, subtree_end_BT)
            hidden_BSD = jnp.take_along_axis(hidden_BTD, slots_BS[..., None], axis=1)
            hidden_BSD = constrain(hidden_BSD, "batch", None, None)
            rows = -(-tokens_BT.shape[0] // (mesh.shape["data"] * mesh.shape["fsdp"]))
            columns = -(-vocab_size // mesh.shape["tensor"])
            chunk = min(slots_BS.shape[1], max(1, LOGITS_BUDGET // (rows * columns)))
            return token_scores(model, hidden_BSD, targets_BS, chunk)

        self.score = score

    def __call__(self, batch: Batch) -> TokenScores:
        """Dispatches one batch and returns at once; reading the result waits for it."""
        arrays = (batch.tokens_BT, batch.positions_BT, batch.subtree_end_BT, batch.slots_BS, batch.targets_BS)
        with jax.set_mesh(self.mesh):
            return self.score(self.parameters, *(self._place(array) for array in arrays))

    def _place(self, array):
        """A host array, the same on every process, split by rows over the mesh."""
        sharding = NamedSharding(self.mesh, partition_spec(array.shape, ("batch", None), dict(self.mesh.shape)))
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])
