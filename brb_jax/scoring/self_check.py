"""Whether a user's own model keeps its word, found out before anything is scored with it.

First without running it: shapes and dtypes of what it returns, and whether it draws random numbers. Then with the very
function, at the very shape, that the run will use: one thing at a time is changed that a slot must see, or must not
see, and the log-probabilities are compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Bool, Float

from brb_jax.models.own_model import OwnModel, OwnModelError, Signature, describe
from brb_jax.scoring.loglikelihood import LogLikelihood
from brb_jax.tokens.packing import Bucket
from brb_jax.tokens.rows import Batch

# What must not move a log-probability moves it by less than this share of what must: a masked key has a weight of
# exactly zero, so that even a bfloat16 model computes the very same numbers.
_UNMOVED = 1e-3

# At another place of the row the same sums are made in another order; bfloat16 rounds them at the third digit.
_ROUNDING = 5e-2

_RANDOM = ("random_bits", "threefry2x32", "random_gamma", "rng_uniform", "rng_bit_generator")


@dataclasses.dataclass(frozen=True, eq=False)
class _Trial:
    """A batch that shows what a slot sees. All rows have the same parts; the tokens differ.

    Attributes:
        batch: The first `num_probes` of its scored slots are the last ones of each row's part `own`, each scored as a
            run scores it: by the log-probability of the token in the slot after it.
        num_probes: The other scored slots only mark where the padding begins.
        parts: The slots of each part of a row; see `_parts`.
    """

    batch: Batch
    num_probes: int
    parts: dict[str, slice]

    def mask(self, *names: str) -> Bool[np.ndarray, "B T"]:
        """The slots of these parts, in all rows."""
        mask_BT = np.zeros(self.batch.tokens_BT.shape, bool)
        for name in names:
            mask_BT[:, self.parts[name]] = True
        return mask_BT


def check_returns(name: str, own: OwnModel, parameters: Any, bucket: Bucket, mesh: Mesh) -> None:
    """Traces the model, which costs neither memory nor time on a device.

    Args:
        name: The model's, for the messages.
        own: The model.
        parameters: Arrays, or their shapes.
        bucket: Gives the shape of a batch.
        mesh: Devices.

    Raises:
        OwnModelError: It fails, returns something of another shape or dtype than it should, or draws random numbers.
    """
    called = f"--model={name}: {own.signature}()"
    arrays = [jax.ShapeDtypeStruct((bucket.B, bucket.T), jnp.int32)] * (1 if own.signature == "plain" else 3)
    with jax.set_mesh(mesh):
        hidden, drawn = _trace(called, lambda p, *a: own.bind(p).hidden_states(*a), parameters, *arrays)
        what = "logits" if own.unembed is None else "hidden states"
        width = own.vocab_size if own.unembed is None else "width"
        _check_array(called, what, hidden, (bucket.B, bucket.T, width))
        if own.unembed is None:
            logits = hidden
        else:
            called = f"--model={name}: unembed()"
            gathered = jax.ShapeDtypeStruct((bucket.B, bucket.S, hidden.shape[-1]), hidden.dtype)
            logits, also_drawn = _trace(called, lambda p, h: own.bind(p).logits(h), parameters, gathered)
            _check_array(called, "logits", logits, (bucket.B, bucket.S, own.vocab_size))
            drawn = drawn or also_drawn
    if logits.dtype != jnp.float32:
        raise OwnModelError(
            f"{called} returned {logits.dtype} logits; they must be float32, and so must the product that makes them "
            "(preferred_element_type=jnp.float32): near 20, bfloat16 has steps of 0.125"
        )
    if drawn:
        raise OwnModelError(
            f"{called} draws random numbers: switch dropout and noise off (deterministic=True, model.eval(), "
            "enable_dropout=False), and keep fixed random features among the parameters"
        )


def check_dependence(
    name: str, log_likelihood: LogLikelihood, bucket: Bucket, ids: Sequence[int] | np.ndarray, max_length: int
) -> None:
    """Runs the model on random tokens of a batch, and again with some of them changed.

    Every process of a run must call this; each learns the same.

    Args:
        name: The model's, for the messages.
        log_likelihood: The scoring function of the run.
        bucket: The shape of the batch.
        ids: Tokens to draw from, two at least.
        max_length: The model's limit.

    Raises:
        OwnModelError: A log-probability is NaN, does not depend on what it should, or depends on what it should not.
    """
    signature = log_likelihood.signature
    called = f"--model={name}: {signature}()"
    rng = np.random.default_rng(0)
    pool = np.asarray(ids, np.int32)
    trial = _trial(bucket, signature, pool, max_length, rng)

    def scores(batch: Batch) -> Float[np.ndarray, "B S"]:
        return np.asarray(log_likelihood(batch).logprob_BS)[:, : trial.num_probes]

    def moved(mask_BT: Bool[np.ndarray, "B T"]) -> Float[np.ndarray, "B S"]:
        """How far other tokens under the mask move each probe, in nats."""
        tokens_BT = np.where(mask_BT, _others(trial.batch.tokens_BT, pool, rng), trial.batch.tokens_BT)
        return np.abs(scores(dataclasses.replace(trial.batch, tokens_BT=tokens_BT)) - before_BS)

    def check(moved_BS: Float[np.ndarray, "B S"], what: str, cause: str, share: float = _UNMOVED) -> None:
        far = float(moved_BS.max(initial=0))
        if not far <= share * scale:
            raise OwnModelError(
                f"{called}: {what} moves log-probabilities by up to {far:.2g} nat (other tokens before a slot: "
                f"{scale:.2g} nat). {cause}"
            )

    before_BS = scores(trial.batch)
    if not np.isfinite(before_BS).all():
        row, probe = np.argwhere(~np.isfinite(before_BS))[0]
        raise OwnModelError(
            f"{called}: a log-probability is {before_BS[row, probe]}: the logits of slot "
            f"{trial.batch.slots_BS[row, probe]} in row {row} hold NaN or infinity"
        )
    scale = float(moved(trial.mask("context", "own")).max())
    if not scale > 0:
        raise OwnModelError(f"{called}: other tokens up to a slot do not move what it returns: it ignores its tokens")
    check(
        np.abs(scores(trial.batch) - before_BS),
        "running the same batch again",
        "It is not deterministic: is dropout on, or does it keep a state?",
    )
    next_token = (
        "changing the token right after a slot",
        "Slot t must return what predicts that token, from the tokens up to t: are the outputs shifted to the left, or "
        "is the mask not causal?",
    )
    later_tokens = "changing later tokens of a text", "The mask is not causal."
    last_BT = np.zeros_like(trial.mask())
    last_BT[:, trial.parts["own"].stop - 1] = True
    last_moved_BS = moved(last_BT)
    check(last_moved_BS[:, -2:-1], *next_token)
    check(last_moved_BS[:, :-2], *later_tokens)
    if not last_moved_BS[:, -1].max() > _UNMOVED * scale:
        raise OwnModelError(
            f"{called}: another token in a slot does not move what that slot returns. Slot t must return what predicts "
            "the token after it, t + 1: are the inputs shifted to the right?"
        )
    unseen_BT = trial.mask(*(part for part in trial.parts if part not in ("context", "own")))
    if not moved(unseen_BT).max() <= _UNMOVED * scale:
        next_BT = np.zeros_like(unseen_BT)
        next_BT[:, trial.parts["own"].stop] = True
        check(moved(next_BT)[:, -1:], *next_token)
        check(moved(trial.mask("later")), *later_tokens)
        for mask_BT, what, cause in _suspects(trial, signature):
            check(moved(mask_BT), what, cause)
        check(moved(unseen_BT), "changing all that a slot must not see", "It sees some of it.")
    if bucket.B > 1:
        others_BT = np.ones_like(unseen_BT)
        others_BT[0] = False
        check(
            moved(others_BT)[:1],
            "changing the tokens of other rows",
            "Rows of a batch must have nothing in common (do experts of limited capacity drop tokens?).",
        )
    if signature != "plain" or bucket.B > 1:
        check(
            np.abs(scores(_elsewhere(trial)) - np.roll(before_BS, 1, axis=0)),
            "moving a text to the start of another row",
            "All rows must be treated alike."
            if signature == "plain"
            else "Its place must not matter: positions are those in `positions`, not the slots' numbers.",
            _ROUNDING,
        )


def _parts(signature: Signature, T: int, max_length: int) -> dict[str, slice]:
    """The parts of a row, in order. What is probed is `own`; it sees itself and `context`, and nothing else."""
    names = {
        "tree": ("before", "context", "sibling", "own", "later", "behind"),
        "packed": ("before", "context", "own", "later", "behind"),
        "plain": ("context", "own", "later"),
    }[signature]
    size = max(1, min(T // 8, max_length // 3))
    parts = {name: slice(i * size, (i + 1) * size) for i, name in enumerate(names)}
    return parts | {"padding": slice(len(names) * size, T)}


def _trial(bucket: Bucket, signature: Signature, pool: np.ndarray, max_length: int, rng: np.random.Generator) -> _Trial:
    parts = _parts(signature, bucket.T, max_length)
    size, end_of_own, padding = (
        parts["context"].stop - parts["context"].start,
        parts["own"].stop,
        parts["padding"].start,
    )
    positions_T, subtree_end_T = np.zeros(bucket.T, np.int32), np.arange(1, bucket.T + 1, dtype=np.int32)
    for name, depth, last in (
        ("before", 0, "before"),
        ("context", 0, "later"),
        ("sibling", size, "sibling"),
        ("own", size, "later"),
        ("later", 2 * size, "later"),
        ("behind", 0, "behind"),
    ):
        if name in parts:
            positions_T[parts[name]] = depth + np.arange(size)
            subtree_end_T[parts[name]] = parts[last].stop
    tokens_BT = rng.choice(pool, (bucket.B, bucket.T))
    tokens_BT[:, padding:] = 0
    num_probes = min(size, bucket.S - 1)
    slots_S = np.full(bucket.S, padding - 1, np.int32)
    slots_S[:num_probes] = np.arange(end_of_own - num_probes, end_of_own)
    next_BS = np.tile(np.minimum(slots_S + 1, bucket.T - 1), (bucket.B, 1))
    batch = Batch(
        index=0,
        tokens_BT=tokens_BT,
        positions_BT=np.tile(positions_T, (bucket.B, 1)),
        subtree_end_BT=np.tile(subtree_end_T, (bucket.B, 1)),
        slots_BS=np.tile(slots_S, (bucket.B, 1)),
        # What a slot sees of the token after it shows most in that token's own score, and in others' by chance only.
        targets_BS=np.take_along_axis(tokens_BT, next_BS, axis=1),
        requests_BS=np.zeros((bucket.B, bucket.S), np.int32),
    )
    return _Trial(batch, num_probes, parts)


def _others(tokens_BT: np.ndarray, pool: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For every slot a random token of the pool that is not the one there."""
    drawn_BT = rng.integers(0, len(pool), tokens_BT.shape)
    return np.where(pool[drawn_BT] == tokens_BT, pool[drawn_BT - 1], pool[drawn_BT])


def _suspects(trial: _Trial, signature: Signature) -> Iterator[tuple[np.ndarray, str, str]]:
    """What else a probe must not see, one by one: where, what is done to it, and what is amiss if that is noticed."""
    if signature == "tree":
        yield (
            trial.mask("sibling"),
            "changing another branch of the tree",
            "It must not be seen: slot i sees slot j only if i < subtree_end[j].",
        )
    if signature != "plain":
        for part, where in (("before", "before"), ("behind", "behind")):
            yield (
                trial.mask(part),
                f"changing another text {where} it in the row",
                "It must not be seen: "
                + (
                    "slot i sees slot j only if i < subtree_end[j]."
                    if signature == "tree"
                    else "a slot sees only those with its segment id."
                ),
            )
    yield trial.mask("padding"), "changing padding", "Padding must not be seen."


def _elsewhere(trial: _Trial) -> Batch:
    """The probed text of every row at the start of the next row, with nothing else there."""
    batch, parts = trial.batch, trial.parts
    old = np.concatenate([np.arange(parts[name].start, parts[name].stop) for name in ("context", "own", "later")])
    length, T = len(old), batch.tokens_BT.shape[1]
    tokens_BT, positions_BT = np.zeros_like(batch.tokens_BT), np.zeros_like(batch.positions_BT)
    subtree_end_BT = np.tile(np.arange(1, T + 1, dtype=np.int32), (len(tokens_BT), 1))
    tokens_BT[:, :length], positions_BT[:, :length] = np.roll(batch.tokens_BT, 1, axis=0)[:, old], np.arange(length)
    subtree_end_BT[:, :length] = length
    slots_BS = np.full_like(batch.slots_BS, length - 1)
    end_of_own = 2 * length // 3
    slots_BS[:, : trial.num_probes] = np.arange(end_of_own - trial.num_probes, end_of_own)
    return dataclasses.replace(
        batch,
        tokens_BT=tokens_BT,
        positions_BT=positions_BT,
        subtree_end_BT=subtree_end_BT,
        slots_BS=slots_BS,
        targets_BS=np.roll(batch.targets_BS, 1, axis=0),
    )


def _trace(called: str, function: Callable[..., Any], *arguments: Any) -> tuple[Any, bool]:
    """What the function returns, as shapes, and whether it draws random numbers."""
    try:
        jaxpr, returned = jax.make_jaxpr(function, return_shape=True)(*arguments)
    except Exception as error:
        raise OwnModelError(f"{called} failed: {describe(error)}") from error
    return returned, any(name in _RANDOM for name in _primitives(jaxpr.jaxpr))


def _primitives(jaxpr: Any) -> Iterator[str]:
    """The name of every operation of a program, those inside its loops and calls included."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for parameter in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda value: hasattr(value, "eqns")):
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                yield from _primitives(inner)


def _check_array(called: str, what: str, returned: Any, wanted: tuple[int | str, ...]) -> None:
    if not isinstance(returned, jax.ShapeDtypeStruct):
        raise OwnModelError(f"{called} returned a {type(returned).__name__}; it must return one array, the {what}")
    shape = tuple(returned.shape)
    fits = len(shape) == len(wanted) and all(
        isinstance(size, str) or size == found for size, found in zip(wanted, shape, strict=True)
    )
    if not fits:
        hint = (
            "; hidden states need an `unembed`"
            if what == "logits" and len(shape) == 3 and shape[:2] == wanted[:2] and "unembed" not in called
            else ""
        )
        raise OwnModelError(
            f"{called} returned an array of shape {shape}; {what} must be ({', '.join(map(str, wanted))}){hint}"
        )
    if not jnp.issubdtype(returned.dtype, jnp.floating):
        raise OwnModelError(f"{called} returned {returned.dtype}; {what} must be of a floating-point dtype")
