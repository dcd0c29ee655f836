"""The jitted function of a run: a batch of rows in, the log-probability of every scored token out.

Hidden states are gathered at the scored positions *before* the unembedding, so no array over slots × vocabulary exists.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float, Int

from brb_jax.models.own_model import Signature
from brb_jax.models.partitioning import constrain, partition_spec
from brb_jax.scoring.mesh import row_multiple
from brb_jax.tokens.rows import Batch

# Logits held at once on one device, in elements: 2²⁵ float32 are 128 MiB.
LOGITS_BUDGET = 2**25


@runtime_checkable
class LanguageModel(Protocol):
    """What scoring asks of a model with its parameters in place; `models.decoder.Decoder` is one, of signature `tree`.

    `hidden_states` takes the arrays that `inputs` gives for the model's signature, and returns `[B, T, D]`.
    """

    def hidden_states(self, *inputs_BT: Int[Array, "B T"]) -> Float[Array, "B T D"]: ...

    def logits(self, hidden_BSD: Float[Array, "B S D"]) -> Float[Array, "B S V"]: ...


def inputs(batch: Batch, signature: Signature) -> tuple[np.ndarray, ...]:
    """The arrays over slots that a model of this signature is fed; see `models.own_model.OwnModel`."""
    if signature == "tree":
        return batch.tokens_BT, batch.positions_BT, batch.subtree_end_BT
    if signature == "packed":
        return batch.tokens_BT, batch.positions_BT, batch.segment_ids
    return (batch.tokens_BT,)


class TokenScores(NamedTuple):
    """Of each scored token: its log-probability in nats, and whether it is the argmax. Undefined where a batch pads."""

    logprob_BS: Float[Array, "B S"]
    greedy_BS: Bool[Array, "B S"]


def token_scores(
    model: LanguageModel, hidden_BSD: Float[Array, "B S D"], targets_BS: Int[Array, "B S"], chunk: int
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

    def __init__(
        self,
        bind: Callable[[Any], LanguageModel],
        parameters: Any,
        vocab_size: int,
        mesh: Mesh,
        signature: Signature = "tree",
    ):
        """
        Args:
            bind: Makes the model of its parameters, as `nnx.merge` does of a graph.
            parameters: Its arrays, placed on the mesh.
            vocab_size: Width of its logits.
            mesh: Devices; rows go over `data`, `fsdp` and `expert`.
            signature: Which arrays the model is fed.
        """
        self.num_traces = 0
        self.mesh = mesh
        self.parameters = parameters
        self.signature = signature
        replicated = NamedSharding(mesh, PartitionSpec())

        @functools.partial(jax.jit, out_shardings=replicated)
        def score(parameters, *arrays) -> TokenScores:
            self.num_traces += 1
            *inputs_BT, slots_BS, targets_BS = arrays
            model = bind(parameters)
            hidden_BTD = model.hidden_states(*inputs_BT)
            hidden_BSD = jnp.take_along_axis(hidden_BTD, slots_BS[..., None], axis=1)
            hidden_BSD = constrain(hidden_BSD, "batch", None, None)
            rows = -(-slots_BS.shape[0] // row_multiple(mesh))
            columns = -(-vocab_size // mesh.shape["tensor"])
            chunk = min(slots_BS.shape[1], max(1, LOGITS_BUDGET // (rows * columns)))
            return token_scores(model, hidden_BSD, targets_BS, chunk)

        self.score = score

    def __call__(self, batch: Batch) -> TokenScores:
        """Dispatches one batch and returns at once; reading the result waits for it."""
        arrays = (*inputs(batch, self.signature), batch.slots_BS, batch.targets_BS)
        with jax.set_mesh(self.mesh):
            return self.score(self.parameters, *(self._place(array) for array in arrays))

    def _place(self, array):
        """A host array, the same on every process, split by rows over the mesh."""
        sharding = NamedSharding(self.mesh, partition_spec(array.shape, ("batch", None), dict(self.mesh.shape)))
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])
