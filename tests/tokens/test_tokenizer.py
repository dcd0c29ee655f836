"""What a tokenizer adds, drops and reports, for one of each family."""

from __future__ import annotations

import json

import numpy as np
import pytest
import transformers
from tiny_tokenizers import gpt2_like

from brb_jax.tokens.tokenizer import TokenizerError, load_tokenizer

BYTE_LEVEL = ("gpt2_like", "roberta_like", "bos_and_eos", "truncating", "without_specials")
SENTENCEPIECE = ("llama2_like", "gemma_like")
TEXTS = ("hello wor", "hello world is big", " a  b", "Answer: B\n\n", "北京 é😀 x", "e\u0301 \t\n x")


@pytest.mark.parametrize("family", BYTE_LEVEL + SENTENCEPIECE)
@pytest.mark.parametrize("text", TEXTS)
def test_ids_are_those_of_transformers_without_special_tokens(load, tokenizer_path, family, text):
    reference = transformers.AutoTokenizer.from_pretrained(tokenizer_path(family))
    tokenizer = load(family)
    encoding = tokenizer.encode(text)
    assert encoding.ids.dtype == np.int32
    assert encoding.ids.tolist() == reference(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(encoding.ids) == text


@pytest.mark.parametrize("family", BYTE_LEVEL)
@pytest.mark.parametrize("text", TEXTS)
def test_offsets_cover_the_characters_whose_bytes_a_token_spells(load, family, text):
    """A byte-level token's characters stand for bytes one by one, so the bytes can be counted."""
    tokenizer = load(family)
    encoding = tokenizer.encode(text)
    character_of_byte = [i for i, character in enumerate(text) for _ in character.encode()]
    end = 0
    expected = []
    for token_id in encoding.ids:
        start, end = end, end + len(tokenizer.backend.id_to_token(int(token_id)))
        expected.append([character_of_byte[start], character_of_byte[end - 1] + 1])
    assert encoding.offsets.tolist() == expected


@pytest.mark.parametrize("family", BYTE_LEVEL + SENTENCEPIECE)
def test_first_token_in_is_the_first_whose_offsets_overlap(load, family):
    for text in TEXTS:
        encoding = load(family).encode(text)
        for start in range(len(text)):
            for stop in range(start + 1, len(text) + 1):
                overlaps = (encoding.offsets[:, 0] < stop) & (encoding.offsets[:, 1] > start)
                assert encoding.first_token_in(start, stop) == int(overlaps.argmax())
        assert encoding.first_token_in(len(text), len(text)) == len(encoding.ids)


@pytest.mark.parametrize(
    ("family", "bos", "prefix", "conditioning", "removed"),
    [
        ("gpt2_like", "auto", [], ["<|endoftext|>"], []),
        ("roberta_like", "auto", ["<s>"], ["<s>"], ["</s>"]),
        ("bos_and_eos", "auto", ["<s>"], ["<s>"], ["</s>"]),
        ("bos_and_eos", "always", ["<s>"], ["<s>"], ["</s>"]),
        ("bos_and_eos", "never", [], ["<s>"], ["</s>"]),
        ("glm_like", "auto", ["[gMASK]", "<sop>"], ["[gMASK]", "<sop>"], []),
        ("llama2_like", "auto", ["<s>"], ["<s>"], []),
        ("gemma_like", "never", [], ["<s>"], []),
        ("without_specials", "auto", [], [], []),
    ],
)
def test_what_surrounds_a_text(load, family, bos, prefix, conditioning, removed):
    tokenizer = load(family, bos)
    description = tokenizer.describe()
    assert description["prefix"] == prefix
    assert [tokenizer.backend.token_to_id(token) for token in prefix] == list(tokenizer.prefix_ids)
    assert description["conditioning_of_empty_prompts"] == conditioning
    assert description["removed_from_the_end"] == removed
    json.dumps(description, allow_nan=False)


def test_bos_always_adds_what_the_tokenizer_has_but_does_not_add(tmp_path):
    tokenizer = load_tokenizer(gpt2_like(tmp_path, bos_token="<|endoftext|>"), "always")
    assert tokenizer.prefix_ids == (tokenizer.bos_id,) == (tokenizer.eos_id,)
    assert load_tokenizer(tmp_path).prefix_ids == ()


def test_bos_always_without_bos_is_refused(load):
    with pytest.raises(ValueError, match="--bos=always, but the tokenizer has no BOS"):
        load("without_specials", "always")


def test_stored_truncation_and_padding_are_off(load):
    tokenizer = load("truncating")
    assert len(tokenizer.encode("hello world " * 100).ids) >= 200
    assert len(tokenizer.encode("hello").ids) == 1
    assert [len(e.ids) for e in tokenizer.encode_batch(["hello", "hello world is big"])] == [1, 4]


def test_sizes_tell_the_vocabulary_from_added_tokens(load):
    gemma = load("gemma_like")
    assert gemma.size == gemma.backend.token_to_id("<image>") + 1 == gemma.base_size + 1


def test_special_tokens_in_a_text_are_parsed_by_default(load, tmp_path):
    text = "a<|endoftext|>b"
    tokenizer = load("gpt2_like")
    ids = tokenizer.encode(text).ids
    assert tokenizer.eos_id in ids and tokenizer.spells_special(ids)
    assert not tokenizer.spells_special(tokenizer.encode("a <|endofte").ids)
    split = load_tokenizer(gpt2_like(tmp_path, split_special_tokens=True))
    assert split.eos_id not in split.encode(text).ids
    assert split.fingerprint != tokenizer.fingerprint


def test_fingerprint_is_of_the_ids_fed(load, tmp_path):
    assert load("gpt2_like").fingerprint == load_tokenizer(gpt2_like(tmp_path / "copy")).fingerprint
    assert load("bos_and_eos").fingerprint == load("bos_and_eos", "always").fingerprint
    assert load("bos_and_eos").fingerprint != load("bos_and_eos", "never").fingerprint
    assert load("gpt2_like").fingerprint != load("gemma_like").fingerprint


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("tokenizer.json", "{}"),
        ("tokenizer.json", "[" * 100_000),
        ("tokenizer_config.json", '{"bos_token": ' + "[" * 100_000 + "]" * 100_000 + "}"),
        ("config.json", json.dumps({"model_type": "llama", "hidden_size": "wide"})),
    ],
)
def test_damaged_files_are_told_in_one_line(file, content, tmp_path):
    gpt2_like(tmp_path)
    if file == "config.json":  # Read where nothing else names a tokenizer's class.
        (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / file).write_text(content)
    with pytest.raises(TokenizerError, match=rf"^{tmp_path}: no tokenizer.json that can be read") as raised:
        load_tokenizer(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_slow_tokenizer_is_refused(tmp_path):
    vocab = {"<unk>": 0, "a": 1, "b": 2}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CTRLTokenizer"}))
    with pytest.raises(ValueError, match="CTRLTokenizer is a slow tokenizer"):
        load_tokenizer(tmp_path)
