"""Every way to get a model of one's own wrong is found before the run, and named."""

from __future__ import annotations

import dataclasses
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy_models
from toy_models import D, V, toy

from brb_jax.models.own_model import OwnModelError
from brb_jax.scoring.loglikelihood import LogLikelihood
from brb_jax.scoring.mesh import make_mesh
from brb_jax.scoring.self_check import check_dependence, check_returns
from brb_jax.tokens.packing import Bucket

MESH = {"data": 2, "tensor": 4}
BUCKET = Bucket(T=128, B=2, S=8, rows=1)


def check(own, bucket=BUCKET):
    mesh = make_mesh(MESH)
    check_returns("team.model:build", own, own.parameters, bucket, mesh)
    log_likelihood = LogLikelihood(own.bind, own.parameters, own.vocab_size, mesh, own.signature)
    check_dependence("team.model:build", log_likelihood, bucket, np.arange(3, 30), own.max_length)
    return log_likelihood


def cast(dtype):
    return {name: jnp.asarray(value, dtype) for name, value in toy_models.parameters().items()}


def unembed_float32(p, hidden):
    return jnp.matmul(hidden, p["embedding"].T, preferred_element_type=jnp.float32)


def assert_refused(own, *says):
    with pytest.raises(OwnModelError) as refused:
        check(own)
    message = str(refused.value)
    assert message.startswith("--model=team.model:build: ") and "\n" not in message
    for text in says:
        assert text in message, message
    return message


@pytest.mark.parametrize("signature", ["tree", "packed", "plain"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_sound_models_pass(signature, dtype):
    """Of either precision, and at no more compilations than the run needs anyway."""
    assert check(toy(signature, parameters=cast(dtype), unembed=unembed_float32)).num_traces == 1


@pytest.mark.parametrize("bucket", [Bucket(T=8, B=2, S=8, rows=1), Bucket(T=300, B=4, S=40, rows=1)], ids=str)
@pytest.mark.parametrize("signature", ["tree", "packed", "plain"])
def test_sound_models_pass_whatever_the_row(signature, bucket):
    check(toy(signature, max_length=7), bucket)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("signature", ["tree", "packed", "plain"])
def test_large_logits_pass(signature, dtype):
    """What is rounded grows with them, and so does what a slot's past moves."""
    check(toy(signature, parameters=cast(dtype), unembed=lambda p, hidden: 1000 * unembed_float32(p, hidden)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_experts_with_room_for_all_pass(dtype):
    """Where a token lies in an expert's buffer depends on all tokens before it, in other rows too; the sums do not."""
    num_experts, chosen = 8, 4
    parameters = cast(dtype) | {
        "router": jnp.asarray(toy_models.parameters(1)["query"][:, :num_experts], dtype),
        "experts": jnp.asarray(np.random.default_rng(2).standard_normal((num_experts, D, D)) / np.sqrt(D), dtype),
    }

    def plain(p, tokens):
        x_BTD = toy_models.plain(p, tokens)
        x_ND = x_BTD.reshape(-1, D)
        weights_Nk, experts_Nk = jax.lax.top_k(jax.nn.softmax(x_ND @ p["router"]), chosen)
        goes_NE = jax.nn.one_hot(experts_Nk, num_experts, dtype=jnp.int32).sum(1)
        place_NE = jnp.where(goes_NE == 1, goes_NE.cumsum(0) - 1, -1)
        dispatch_NEC = jax.nn.one_hot(place_NE, len(x_ND), dtype=dtype)
        weights_NE = (jax.nn.one_hot(experts_Nk, num_experts, dtype=dtype) * weights_Nk[..., None]).sum(1)
        out_ECD = jnp.einsum("nec,nd,edf->ecf", dispatch_NEC, x_ND, p["experts"])
        y_ND = jnp.einsum("nec,ne,ecd->nd", dispatch_NEC, weights_NE, out_ECD)
        return x_BTD + y_ND.reshape(x_BTD.shape)

    check(toy("plain", plain=plain, parameters=parameters, unembed=unembed_float32))


def test_logits_of_all_slots_will_do():
    def plain(p, tokens):
        return toy_models.unembed(p, toy_models.plain(p, tokens))

    check(toy("plain", plain=plain, unembed=None))


EVERYWHERE = {
    "shifts inputs right": ("another token in a slot does not move what that slot returns", "shifted to the right"),
    "shifts outputs left": ("changing the token right after a slot moves", "shifted to the left"),
    "not causal": ("moves", "not causal"),
    "sees padding": ("changing padding moves",),
    "mixes rows": ("changing the tokens of other rows moves", "nothing in common"),
    "NaN": ("a log-probability is nan", "row 0"),
    "constant": ("it ignores its tokens",),
    "dropout": ("draws random numbers: switch dropout and noise off",),
}
FLAWS = [
    (signature, flaw, says) for signature, (flaw, says) in itertools.product(("tree", "plain"), EVERYWHERE.items())
]
FLAWS += [
    ("tree", "ignores subtree_end", ("changing another branch of the tree moves", "i < subtree_end[j]")),
    ("tree", "ignores positions", ("moving a text to the start of another row moves", "positions are those in")),
    ("packed", "ignores positions", ("moving a text to the start of another row moves", "positions are those in")),
    ("packed", "ignores segment ids", ("changing another text before it in the row moves", "its segment id")),
    ("packed", "not causal", ("moves", "not causal")),
]


@pytest.mark.parametrize(
    ("signature", "flaw", "says"), FLAWS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_flaws_are_named(signature, flaw, says):
    message = assert_refused(toy(signature, flaw), f"{signature}()" if flaw != "dropout" else "", *says)
    if " moves log" in message:
        far, scale = (float(number) for number in re.findall(r"([\d.e+-]+) nat", message))
        assert 0.001 < far < 100 and 0.01 < scale < 100


def test_a_model_that_changes_from_call_to_call():
    calls = itertools.count()

    def plain(p, tokens):
        noise = jax.pure_callback(lambda: np.float32(next(calls)), jax.ShapeDtypeStruct((), np.float32))
        return toy_models.plain(p, tokens) * (1 + 0.01 * noise)

    assert_refused(toy("plain", plain=plain), "running the same batch again moves", "not deterministic")


def test_later_tokens_seen_by_a_window_that_looks_ahead():
    """Two slots ahead, but not one."""

    def plain(p, tokens):
        ahead = jnp.pad(tokens, ((0, 0), (0, 2)))[:, 2:]
        return toy_models.plain(p, tokens) + p["embedding"][ahead]

    assert_refused(toy("plain", plain=plain), "changing later tokens of a text moves", "not causal")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("signature", ["tree", "packed", "plain"])
@pytest.mark.parametrize("bucket", [BUCKET, Bucket(T=128, B=2, S=2, rows=1), Bucket(T=256, B=4, S=30, rows=1)], ids=str)
def test_a_small_leak_of_the_next_token(signature, dtype, bucket):
    """0.02 of its embedding: it moves that token's own score by about 0.02 nat, and others by less, as luck has it."""
    own = toy(signature, parameters=cast(dtype), unembed=unembed_float32)
    sound = getattr(own, signature)

    def leaks(p, tokens, *places):
        return sound(p, tokens, *places) + 0.02 * p["embedding"][jnp.roll(tokens, -1, axis=1)].astype(dtype)

    message = assert_refused(dataclasses.replace(own, **{signature: leaks}), "moves log-probabilities by up to 0.0")
    assert "changing the token right after a slot" in message


def hidden(shape, dtype=jnp.float32):
    return lambda p, tokens: jnp.zeros(shape, dtype)


RETURNS = {
    "a pair": (
        {"plain": lambda p, tokens: (toy_models.plain(p, tokens), None)},
        "plain() returned a tuple; it must return one array, the hidden states",
    ),
    "a row short": ({"plain": hidden((2, 127, D))}, "of shape (2, 127, 16); hidden states must be (2, 128, width)"),
    "no width": ({"plain": hidden((2, 128))}, "of shape (2, 128); hidden states must be (2, 128, width)"),
    "integers": (
        {"plain": hidden((2, 128, D), jnp.int32)},
        "returned int32; hidden states must be of a floating-point",
    ),
    "hidden states as logits": ({"unembed": None}, "logits must be (2, 128, 40); hidden states need an `unembed`"),
    "another vocabulary": ({"vocab_size": V + 1}, "unembed() returned an array of shape (2, 8, 40); logits must be"),
    "bfloat16 logits": (
        {"unembed": lambda p, h: toy_models.unembed(p, h).astype(jnp.bfloat16)},
        "unembed() returned bfloat16 logits; they must be float32",
    ),
    "arguments": ({"plain": lambda p, tokens, positions: tokens}, "plain() failed: TypeError"),
    "an error": ({"plain": lambda p, tokens: p["layers"]}, "plain() failed: KeyError: 'layers' (" + __file__),
}


@pytest.mark.parametrize("what", RETURNS)
def test_what_is_returned(what):
    changes, says = RETURNS[what]
    assert_refused(toy("plain", **changes), says)
