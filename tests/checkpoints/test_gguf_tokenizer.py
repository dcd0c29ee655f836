"""Tokenizers built from GGUF metadata. `test_real_models` compares whole real ones with transformers' own."""

import pytest
from transformers import AutoTokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode

from brb_jax.checkpoints import CheckpointError
from brb_jax.checkpoints.gguf_tokenizer import write_tokenizer

BYTES = list(bytes_to_unicode().values())
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4


def byte_level(pre, **changes):
    """Bytes, three merges, two control tokens."""
    merges = ["Ġ Ġ", "1 2", "h i"]
    tokens = ["<|end|>", "<|begin|>", *BYTES, *(merge.replace(" ", "") for merge in merges)]
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [CONTROL] * 2 + [NORMAL] * (len(tokens) - 2),
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 0,
        **{f"tokenizer.ggml.{key}": value for key, value in changes.items()},
    }


def gemma(**changes):
    """Gemma's spelling: runs of spaces as spaces, bytes as `<0x..>`, and no merges."""
    letters = ["▁", "a", "b", "c"]
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{i:02X}>" for i in range(256)), "\n\n", "  ", "ab", "▁a"]
    types = [CONTROL] * 4 + [6] * 256 + [USER_DEFINED] * 2 + [NORMAL] * (2 + len(letters))
    return {
        "general.architecture": "gemma3",
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [*tokens, *letters],
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.unknown_token_id": 3,
        "tokenizer.ggml.bos_token_id": 2,
        "tokenizer.ggml.eos_token_id": 1,
        **{f"tokenizer.ggml.{key}": value for key, value in changes.items()},
    }


def tokens(metadata, text, folder):
    write_tokenizer(metadata, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids)


@pytest.mark.parametrize(
    ("pre", "expected"),
    [
        ("smollm", ["hi", "ĠĠ", "1", "2"]),  # Digits are cut off one by one, before white space is looked at.
        ("gpt-2", ["hi", "Ġ", "Ġ", "12"]),
        ("llama-bpe", ["<|begin|>", "hi", "Ġ", "Ġ", "12"]),  # Llama 3 puts a BOS where the file does not say.
    ],
)
def test_how_text_is_split_first(pre, expected, tmp_path):
    assert tokens(byte_level(pre), "hi  12", tmp_path) == expected


@pytest.mark.parametrize("add_bos", [True, False])
def test_bos_as_the_file_says(add_bos, tmp_path):
    for metadata in (byte_level("smollm", add_bos_token=add_bos), gemma(add_bos_token=add_bos)):
        first = metadata["tokenizer.ggml.tokens"][metadata["tokenizer.ggml.bos_token_id"]]
        assert tokens(metadata, "a", tmp_path) == ([first, "a"] if add_bos else ["a"])


def test_gemma_puts_a_bos_where_the_file_does_not_say(tmp_path):
    assert tokens(gemma(), "ab", tmp_path) == ["<bos>", "ab"]


def test_control_tokens_are_whole(tmp_path):
    assert tokens(byte_level("smollm"), "hi<|end|>hi", tmp_path) == ["hi", "<|end|>", "hi"]


def test_gemma_merges_follow_the_vocabulary(tmp_path):
    """`ab` comes before `▁a` in the vocabulary, so it is joined first; two spaces are one token."""
    assert tokens(gemma(add_bos_token=False), " ab  c", tmp_path) == ["▁", "ab", "▁▁", "c"]


def test_gemma_bytes_and_newlines(tmp_path):
    assert tokens(gemma(add_bos_token=False), "é\n\na", tmp_path) == ["<0xC3>", "<0xA9>", "\n\n", "a"]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (byte_level("tekken"), "pre-tokenizer 'tekken' is not supported"),
        (byte_level(None), "pre-tokenizer None is not supported"),
        ({**gemma(), "general.architecture": "llama"}, "tokenizer of model 'llama' in a 'llama' file is not supported"),
        ({**gemma(), "tokenizer.ggml.model": "t5"}, "tokenizer of model 't5' in a 'gemma3' file is not supported"),
    ],
)
def test_tokenizers_that_are_refused(metadata, message, tmp_path):
    with pytest.raises(CheckpointError, match=message):
        write_tokenizer(metadata, tmp_path)
