"""Which ids a case feeds and which of them are scored."""

from __future__ import annotations

import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from brb_jax.data.case import Case, Option
from brb_jax.tokens.encode import EncodingError, encode_cases
from brb_jax.tokens.request import TokenizedCase
from brb_jax.tokens.tokenizer import Tokenizer

FAMILIES = ("gpt2_like", "roberta_like", "bos_and_eos", "truncating", "llama2_like", "gemma_like")


def make_case(prompt: str, *options: str) -> Case:
    made = tuple(Option("ABCD"[i], text, "correct" if i == 0 else f"wrong{i}") for i, text in enumerate(options))
    return Case("words_MemoryRet_M1/7", "words", "MemoryRet", None, None, 1, "", prompt, made, "A")


def encode(tokenizer: Tokenizer, prompt: str, *options: str, **settings) -> TokenizedCase:
    arguments = {"option_delimiter": "", "max_length": 1000, "vocab_size": tokenizer.size, **settings}
    (tokenized,) = encode_cases([make_case(prompt, *options)], tokenizer, **arguments)
    return tokenized


def pieces(tokenizer: Tokenizer, tokenized: TokenizedCase, option: int = 0) -> tuple[list[str], list[str]]:
    """The tokens fed before the scored ones, and the scored ones."""
    request = tokenized.requests[option]
    tokens = [tokenizer.backend.id_to_token(int(i)) for i in request.ids]
    return tokens[: request.scored_from], tokens[request.scored_from :]


def test_an_option_that_merges_into_the_prompt_is_scored_by_the_covering_token(load):
    tokenizer = load("gpt2_like")
    assert pieces(tokenizer, encode(tokenizer, "hello wor", "ld")) == (["hello"], ["Ġworld"])
    assert pieces(tokenizer, encode(tokenizer, "hello wor", "ld is big")) == (
        ["hello"],
        ["Ġworld", "Ġis", "Ġbig"],
    )
    assert encode(tokenizer, "hello wor", "ld").boundary_differs


@pytest.mark.parametrize("family", FAMILIES)
def test_the_delimiter_s_token_is_scored(load, family):
    """Also where the family's own offsets leave the space out."""
    tokenizer = load(family)
    before, scored = pieces(tokenizer, encode(tokenizer, "Answer: A a", "b", option_delimiter=" "))
    joint = tokenizer.encode("Answer: A a b").ids
    assert "".join(scored).replace("Ġ", "▁") == "▁b"
    assert len(before) + len(scored) == len(joint) + len(tokenizer.prefix_ids)


def test_white_space_on_either_side_of_the_join(load):
    tokenizer = load("gpt2_like")
    ending, beginning = encode(tokenizer, "Answer: ", "B"), encode(tokenizer, "Answer:", " B")
    np.testing.assert_array_equal(ending.requests[0].ids, beginning.requests[0].ids)
    assert pieces(tokenizer, ending)[1] == pieces(tokenizer, beginning)[1] == ["ĠB"]
    assert ending.note is None and beginning.note is None
    assert encode(tokenizer, "Answer: ", " B").note == "white space on both sides of the join"


def test_no_lone_dummy_prefix_in_the_middle(load):
    tokenizer = load("llama2_like")
    before, scored = pieces(tokenizer, encode(tokenizer, "hello", "world", option_delimiter=" "))
    assert (before, scored) == (["<s>", "▁hello"], ["▁world"])


@pytest.mark.parametrize(
    ("family", "bos", "before"),
    [
        ("bos_and_eos", "auto", ["<s>"]),
        ("bos_and_eos", "never", ["<s>"]),
        ("llama2_like", "auto", ["<s>"]),
        ("gpt2_like", "auto", ["<|endoftext|>"]),
        ("glm_like", "auto", ["[gMASK]", "<sop>"]),
    ],
)
@pytest.mark.parametrize("boundary", ["cover", "lm_eval"])
def test_an_empty_prompt_is_conditioned_on_bos_or_eos(load, family, bos, before, boundary):
    tokenizer = load(family, bos)
    tokenized = encode(tokenizer, "", "world", boundary=boundary)
    assert pieces(tokenizer, tokenized)[0] == before
    assert tokenizer.decode(tokenized.requests[0].ids[len(before) :]) == "world"


def test_an_empty_prompt_with_nothing_to_condition_on_is_refused(load):
    with pytest.raises(EncodingError, match="words_MemoryRet_M1/7: nothing precedes"):
        encode(load("without_specials"), "", "world")


def test_a_prompt_swallowed_by_the_option_is_conditioned_too(load):
    tokenizer = load("gpt2_like")
    assert pieces(tokenizer, encode(tokenizer, "hel", "lo")) == (["<|endoftext|>"], ["hello"])


@pytest.mark.parametrize("boundary", ["cover", "lm_eval"])
@pytest.mark.parametrize("family", ["bos_and_eos", "llama2_like", "gemma_like", "roberta_like"])
@pytest.mark.parametrize("prompt", ["hello", "<s>hello"])
def test_exactly_one_bos(load, family, prompt, boundary):
    tokenizer = load(family)
    ids = encode(tokenizer, prompt, " world", boundary=boundary).requests[0].ids
    assert ids[0] == tokenizer.bos_id
    assert (ids == tokenizer.bos_id).sum() == 1


def test_bos_in_the_text_of_an_empty_prompt_is_not_scored(load):
    tokenizer = load("bos_and_eos")
    assert pieces(tokenizer, encode(tokenizer, "", "<s>world"))[0] == ["<s>"]
    with pytest.raises(EncodingError, match="option A '<s>'"):
        encode(tokenizer, "", "<s>")


@pytest.mark.parametrize("family", ["bos_and_eos", "roberta_like"])
def test_eos_is_never_appended(load, family):
    tokenizer = load(family)
    tokenized = encode(tokenizer, "Answer:", " A", " B")
    assert [pieces(tokenizer, tokenized, i)[1] for i in (0, 1)] == [["ĠA"], ["ĠB"]]
    assert all(tokenizer.eos_id not in request.ids for request in tokenized.requests)


def test_special_tokens_in_a_text_are_reported(load):
    tokenizer = load("gpt2_like")
    assert encode(tokenizer, "a<|endoftext|>b", " c").special_text
    assert encode(tokenizer, "a", "<|endoftext|>").special_text
    assert not encode(tokenizer, "a", " c").special_text
    # What is put in front is not the text's.
    assert not encode(load("bos_and_eos"), "a", " c").special_text


def test_options_that_begin_alike(load):
    tokenizer = load("gpt2_like")
    tokenized = encode(tokenizer, "the world is", " new", " new york", " newer")
    assert [pieces(tokenizer, tokenized, i)[1] for i in range(3)] == [["Ġnew"], ["Ġnew", "Ġyork"], ["Ġnewer"]]
    assert [r.option_index for r in tokenized.requests] == [0, 1, 2]


def test_ids_outside_the_embedding_table_are_refused(load):
    gemma = load("gemma_like")
    assert encode(gemma, "hello", " world", vocab_size=gemma.base_size).status == "ok"
    with pytest.raises(EncodingError, match=r"M1/7: token '<image>' has id 350, .* has 350 rows"):
        encode(gemma, "hello <image>", " world", vocab_size=gemma.base_size)
    with pytest.raises(EncodingError, match="do not belong together"):
        encode(gemma, "hello", " world", vocab_size=gemma.base_size - 1)


@pytest.mark.parametrize("limit_is", [-1, 0, 1])
@pytest.mark.parametrize("overlong", ["skip", "truncate_left"])
def test_one_more_id_than_the_limit_fits(load, limit_is, overlong):
    tokenizer = load("lone_characters")
    tokenized = encode(tokenizer, "abcabc", "d", "de", max_length=7 + limit_is, overlong=overlong)
    if limit_is >= 0:
        assert (tokenized.status, tokenized.note, len(tokenized.requests)) == ("ok", None, 2)
        assert tokenized.truncated == 0
    elif overlong == "skip":
        assert (tokenized.status, tokenized.note, tokenized.requests) == (
            "overlong",
            "needs 7 tokens, limit 6",
            (),
        )
    else:
        assert (tokenized.status, tokenized.note, tokenized.truncated) == ("ok", "truncated 1 tokens", 1)
        # Both options lose what the longest needs.
        assert [pieces(tokenizer, tokenized, i) for i in (0, 1)] == [
            (list("bcabc"), ["d"]),
            (list("bcabc"), ["d", "e"]),
        ]
    assert tokenized.context_tokens == 6


def test_truncation_never_cuts_what_is_scored(load):
    tokenizer = load("lone_characters")
    tokenized = encode(tokenizer, "abc", "de", max_length=3, overlong="truncate_left")
    assert pieces(tokenizer, tokenized) == (["b", "c"], ["d", "e"])
    tokenized = encode(tokenizer, "abc", "de", max_length=2, overlong="truncate_left")
    assert pieces(tokenizer, tokenized) == (["c"], ["d", "e"])
    assert encode(tokenizer, "abc", "de", max_length=1, overlong="truncate_left").status == "overlong"


def test_truncation_keeps_bos(load):
    tokenizer = load("bos_and_eos")
    tokenized = encode(tokenizer, "hello world is", " big", max_length=2, overlong="truncate_left")
    assert pieces(tokenizer, tokenized) == (["<s>", "Ġis"], ["Ġbig"])
    assert tokenized.note == "truncated 2 tokens"
    assert tokenized.context_tokens == 4
    tokenized = encode(tokenizer, "hello world is", " big", max_length=1, overlong="truncate_left")
    assert pieces(tokenizer, tokenized) == (["<s>"], ["Ġbig"])
    assert encode(tokenizer, "hello", " big big", max_length=1, overlong="truncate_left").status == "overlong"


def test_truncation_keeps_a_prefix_of_two_tokens(load):
    tokenizer = load("glm_like")
    tokenized = encode(tokenizer, "hello world is", " big", max_length=3, overlong="truncate_left")
    assert pieces(tokenizer, tokenized) == (["[gMASK]", "<sop>", "Ġis"], ["Ġbig"])
    assert encode(tokenizer, "hello", " big", max_length=1, overlong="truncate_left").status == "overlong"


def test_a_context_of_forty_tokens_and_a_limit_of_sixteen(load):
    tokenized = encode(load("lone_characters"), "abcdefgh" * 5, " a", max_length=16)
    assert (tokenized.status, tokenized.note) == ("overlong", "needs 41 tokens, limit 16")
    assert tokenized.context_tokens == 40


def test_a_tokenizer_that_drops_characters_is_refused(load):
    """Without `unk` and bytes, BPE leaves unknown characters out and shifts the offsets of all that follow."""
    for prompt, option in (("axbc", "d"), ("abc", "xyz")):
        with pytest.raises(EncodingError, match=r"M1/7: the tokenizer .* drops characters"):
            encode(load("lone_characters"), prompt, option)


def test_lm_eval_refuses_what_it_would_lose(load):
    with pytest.raises(EncodingError, match=r"'lm_eval' boundary leaves no token.*--boundary=cover"):
        encode(load("gpt2_like"), "hello wor", "ld", boundary="lm_eval")


def test_cases_keep_their_order_over_several_batches(load, monkeypatch):
    monkeypatch.setattr("brb_jax.tokens.encode._BATCH_CHARACTERS", 50)
    tokenizer = load("gpt2_like")
    cases = [make_case(f"zorp {i} " * (i % 5 + 1), "jade", "lark") for i in range(20)]
    tokenized = encode_cases(cases, tokenizer, option_delimiter=" ", max_length=1000, vocab_size=1000)
    assert [t.case_index for t in tokenized] == list(range(20))
    for case, result in zip(cases, tokenized, strict=True):
        for option, request in zip(case.options, result.requests, strict=True):
            assert tokenizer.decode(request.ids) == case.query + option.text
            assert request.case_index == result.case_index


text = st.text(alphabet="helo wrd\nA:é北\t", max_size=14)


@pytest.mark.parametrize("family", ["gpt2_like", "roberta_like", "bos_and_eos", "truncating"])
@settings(max_examples=80, deadline=None)
@given(prompt=text, option=text.filter(bool))
def test_cover_against_counted_bytes(load, family, prompt, option):
    """Byte-level tokens spell bytes one by one; one with a byte beyond the prompt's is scored."""
    tokenizer = load(family)
    tokenized = encode(tokenizer, prompt, option)
    (request,) = tokenized.requests
    added = request.ids[:1].tolist() if tokenizer.prefix_ids or not request.ids[0] else []
    own = request.ids[len(added) :]
    assert tokenizer.decode(own) == prompt + option
    ends = np.cumsum([len(tokenizer.backend.id_to_token(int(i))) for i in own])
    assert request.scored_from == len(added) + int((ends > len(prompt.encode())).argmax())


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=80, deadline=None)
@given(prompt=text.filter(str.strip), option=text.filter(bool))
def test_lm_eval_boundary_against_its_definition(load, tokenizer_path, family, prompt, option):
    tokenizer = load(family)
    reference = transformers.AutoTokenizer.from_pretrained(tokenizer_path(family))
    context = prompt.rstrip()

    def tok_encode(string: str) -> list[int]:
        return [
            *tokenizer.prefix_ids,
            *reference(string, add_special_tokens=False, truncation=False)["input_ids"],
        ]

    context_ids = tok_encode(context)
    continuation_ids = tok_encode(prompt + option)[len(context_ids) :]
    if not continuation_ids:
        with pytest.raises(EncodingError):
            encode(tokenizer, prompt, option, boundary="lm_eval")
        return
    (request,) = encode(tokenizer, prompt, option, boundary="lm_eval").requests
    assert request.ids.tolist() == context_ids + continuation_ids
    assert request.scored_from == len(context_ids)
    cover = encode(tokenizer, prompt, option)
    same = cover.requests[0].ids.tolist() == request.ids.tolist()
    assert cover.boundary_differs != (same and cover.requests[0].scored_from == request.scored_from)
