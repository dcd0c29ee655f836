"""Two real models, read by us and by transformers (which needs torch for it)."""

import random
import re

import numpy as np
import pytest
import tiny_models
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, GemmaTokenizer, PreTrainedTokenizerFast

from brb_jax.checkpoints import open_checkpoint
from brb_jax.checkpoints.streaming import flatten

pytestmark = [pytest.mark.real_model, pytest.mark.reference]

TEXTS = [
    "",
    " ",
    "hello world",
    " leading and trailing ",
    "  two  spaces   three\t\ttabs\n\n\nlines\r\n",
    "x = 12345 + 6.7e-8, 1 2 3 10 100 1000",
    "a  1\n 200\n\t300",
    "naïve café — “quotes” … e\u0301 \u200b",
    "日本語のテキスト 北京, Привет мир, مرحبا بالعالم",
    "emoji 👩‍👩‍👧‍👦 🇩🇪",
    "def f(x):\n    return x**2  # comment\n",
    "don't we'll I'M",
    "<|endoftext|> inside <bos> <start_of_turn>user\nhi<end_of_turn> <table><tr>",
    "▁literal▁▁mark \x00\x01",
    "a" * 40,
]


def random_texts(count):
    pool = random.Random(0)
    letters = [chr(code) for code in [*range(32, 127), 9, 10, 32, 32, 0xE9, 0x4E2D, 0x1F600, 0x3B1]]
    return ["".join(pool.choices(letters, k=pool.randint(1, 60))) for _ in range(count)]


def ids_of(tokenizer, texts):
    return tokenizer(texts).input_ids


def test_smollm2_parameters(demo_models):
    reference = AutoModelForCausalLM.from_pretrained(
        demo_models, gguf_file="smollm2-135m.gguf", dtype="float32"
    ).state_dict()
    checkpoint = open_checkpoint(demo_models / "smollm2-135m.gguf")
    params = flatten(checkpoint.load(tiny_models.abstract_params(checkpoint.config)))
    for layer in (0, 17, 29):
        part = f"model.layers.{layer}"
        query, key = (reference[f"{part}.self_attn.{name}_proj.weight"].numpy() for name in "qk")
        np.testing.assert_array_equal(
            params["layers/attention/query/kernel"][layer], query.reshape(9, 64, 576).transpose(2, 0, 1)
        )
        np.testing.assert_array_equal(
            params["layers/attention/key/kernel"][layer], key.reshape(3, 64, 576).transpose(2, 0, 1)
        )
        out, down = (reference[f"{part}.{name}.weight"].numpy() for name in ("self_attn.o_proj", "mlp.down_proj"))
        np.testing.assert_array_equal(params["layers/attention/out/kernel"][layer], out.T.reshape(9, 64, 576))
        np.testing.assert_array_equal(params["layers/mlp/down/kernel"][layer], down.T)
    np.testing.assert_array_equal(params["embedder/table"], reference["model.embed_tokens.weight"].numpy())


def test_gemma_parameters(demo_models):
    reference = AutoModelForCausalLM.from_pretrained(
        demo_models, gguf_file="gemma-3-270m.gguf", dtype="float32"
    ).state_dict()
    checkpoint = open_checkpoint(demo_models / "gemma-3-270m.gguf")
    params = flatten(checkpoint.load(tiny_models.abstract_params(checkpoint.config)))
    for layer in (0, 5, 17):
        part = f"model.layers.{layer}"
        query = reference[f"{part}.self_attn.q_proj.weight"].numpy()
        np.testing.assert_array_equal(
            params["layers/attention/query/kernel"][layer], query.reshape(4, 256, 640).transpose(2, 0, 1)
        )
        for path, name in (
            ("attention_norm", "input_layernorm"),
            ("post_attention_norm", "post_attention_layernorm"),
            ("mlp_norm", "pre_feedforward_layernorm"),
            ("post_mlp_norm", "post_feedforward_layernorm"),
            ("attention/query_norm", "self_attn.q_norm"),
            ("attention/key_norm", "self_attn.k_norm"),
        ):
            scale = reference[f"{part}.{name}.weight"].numpy()
            np.testing.assert_array_equal(params[f"layers/{path}/scale"][layer], scale)
        gate = reference[f"{part}.mlp.gate_proj.weight"].numpy()
        np.testing.assert_array_equal(params["layers/mlp/gate/kernel"][layer], gate.T)
    np.testing.assert_array_equal(params["final_norm/scale"], reference["model.norm.weight"].numpy())


def test_gemma_tokenizer(demo_models):
    reference = GemmaTokenizer.from_pretrained(demo_models, gguf_file="gemma-3-270m.gguf")
    ours = AutoTokenizer.from_pretrained(open_checkpoint(demo_models / "gemma-3-270m.gguf").tokenizer_path)
    texts = TEXTS + random_texts(500)
    assert ids_of(ours, texts) == ids_of(reference, texts)
    assert ours("hi").input_ids[0] == ours.bos_token_id == 2


def test_smollm2_tokenizer(demo_models):
    """transformers 5.24 has no entry for the pre-tokenizer `smollm` and splits as GPT-2 does.

    The two differ only where white space comes before a digit, so those texts are compared with transformers'
    vocabulary and merges behind the pre-tokenizer of SmolLM2's own tokenizer.json.
    """
    reference = PreTrainedTokenizerFast.from_pretrained(demo_models, gguf_file="smollm2-135m.gguf")
    ours = AutoTokenizer.from_pretrained(open_checkpoint(demo_models / "smollm2-135m.gguf").tokenizer_path)
    texts = TEXTS + random_texts(500)
    plain = [text for text in texts if not re.search(r"\s\s\d|\n\s*\d|\t\d", text)]
    assert len(plain) > 400
    assert ids_of(ours, plain) == ids_of(reference, plain)
    reference.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    assert ids_of(ours, texts) == ids_of(reference, texts)
    assert ours.decode(ours("hello  12").input_ids) == "hello  12"
