"""A case as it is read: from the ids fed, with exactly the scored ones marked."""

import pytest
from tiny_tokenizers import FAMILIES

from brb_jax.data.case import Case, Option
from brb_jax.overview.shown_case import ShownToken, show_case
from brb_jax.overview.terminal import elided, printable
from brb_jax.tokens.encode import encode_cases
from brb_jax.tokens.tokenizer import load_tokenizer


def case(context, query, *texts):
    types = ("correct", "retrieval_similar", "random_wrong")
    options = tuple(Option(*parts) for parts in zip("ABC", texts, types, strict=True))
    return Case("w/1", "w", "MemoryRet", None, None, 2, context, query, options, "A")


def shown(tmp_path, family, case, delimiter=" ", max_length=500, **kwargs):
    tokenizer = load_tokenizer(FAMILIES[family](tmp_path / family))
    [tokenized] = encode_cases(
        [case], tokenizer, option_delimiter=delimiter, max_length=max_length, vocab_size=1_000, **kwargs
    )
    return show_case(case, tokenized, tokenizer, delimiter), tokenized


def test_a_long_prompt_loses_its_middle_but_never_a_single_line():
    lines = [f"{i}\n" for i in range(14)]
    assert elided("".join(lines[:13]), whole=False) == "".join(lines[:13])
    assert elided("".join(lines), whole=False) == "0\n1\n2\n3\n… 2 lines …\n6\n7\n8\n9\n10\n11\n12\n13\n"
    assert elided("".join(lines), whole=True) == "".join(lines)


def test_without_a_tokenizer():
    found = show_case(case("a -> b\n", "c ->", "d", " e", "f"), None, None, " ")
    assert [(o.label, o.read, o.scored) for o in found.options] == [
        ("A", "a -> b\nc ->", " d"),
        ("B", "a -> b\nc ->", " e"),
        ("C", "a -> b\nc ->", " f"),
    ]
    assert (found.case_id, found.answer, found.status, found.prefix) == ("w/1", "A", "ok", ())
    assert all(o.tokens is o.ids is o.exact is None for o in found.options)


def test_a_token_that_spans_the_join_is_scored_whole(tmp_path):
    found, tokenized = shown(tmp_path, "gpt2_like", case("hello", " wor", "ld", "ld is", "x"), delimiter="")
    a, b, c = found.options
    assert (a.read, a.scored) == ("hello", " world")
    assert [(t.token, t.text, t.in_prompt) for t in a.tokens] == [("Ġworld", " world", 4)]
    assert (b.read, b.scored) == ("hello", " world is")
    assert [t.text for t in b.tokens] == [" world", " is"] and [t.in_prompt for t in b.tokens] == [4, 0]
    assert c.read + c.scored == "hello worx" and c.scored == "x"
    for option, request in zip(found.options, tokenized.requests, strict=True):
        assert [token.id for token in option.tokens] == request.ids[request.scored_from :].tolist()
        assert option.ids == len(request.ids) and option.exact


@pytest.mark.parametrize("family", ["bos_and_eos", "glm_like", "llama2_like", "gemma_like"])
def test_what_stands_in_front(tmp_path, family):
    found, _ = shown(tmp_path, family, case("zorp: amber kite", " ->", "kite amber", "lark", "jade"))
    prefix = "[gMASK]<sop>" if family == "glm_like" else "<s>"
    assert found.prefix == (("[gMASK]", "<sop>") if family == "glm_like" else ("<s>",))
    for option, text in zip(found.options, ("kite amber", "lark", "jade"), strict=True):
        assert option.read.startswith(prefix)
        assert (option.read + option.scored).removeprefix(prefix).lstrip(" ") == f"zorp: amber kite -> {text}"
        assert option.scored == f" {text}"
        # White space that a tokenizer puts in front of all text is the one thing that may differ.
        assert option.exact


def test_a_character_of_several_tokens_is_marked_whole(tmp_path):
    """京 and 亰 share their first two bytes, which are tokens of their own: still no half of one is shown."""
    found, _ = shown(tmp_path, "gpt2_like", case("", "a", "京", "亰", "b"), delimiter="")
    assert [(o.read, o.scored) for o in found.options] == [("a", "京"), ("a", "亰"), ("a", "b")]
    assert [token.text for token in found.options[0].tokens] == ["京", "京", "京"]


def test_scored_from_within_a_character(tmp_path):
    """Under lm-eval's split the scored ids may begin within the prompt's last character."""
    tokenizer = load_tokenizer(FAMILIES["gpt2_like"](tmp_path))
    a_case = case("", "a", "京", "b", "c")
    [tokenized] = encode_cases([a_case], tokenizer, option_delimiter="", max_length=99, vocab_size=1_000)
    request = tokenized.requests[0]
    object.__setattr__(request, "scored_from", 2)
    option = show_case(a_case, tokenized, tokenizer, "").options[0]
    assert (option.read, option.scored) == ("a", "京") and len(option.tokens) == 2


def test_lm_eval_boundary(tmp_path):
    found, tokenized = shown(
        tmp_path, "gpt2_like", case("hello", " wor", "ld is", "x", "y"), delimiter="", boundary="lm_eval"
    )
    option, request = found.options[0], tokenized.requests[0]
    # The prompt's own ids are fed, and then what the joint ids have beyond their number: another text than the file's.
    assert not option.exact
    assert [token.id for token in option.tokens] == request.ids[request.scored_from :].tolist()
    assert option.read == "hello wor"


def test_context_that_was_cut(tmp_path):
    a_case = case("abcabcabc", "d", "ee", "f", "g")
    found, _ = shown(tmp_path, "lone_characters", a_case, delimiter="", max_length=5, overlong="truncate_left")
    # This tokenizer has no decoder: white space stands between its tokens.
    assert [(o.read, o.scored) for o in found.options] == [("a b c d", " e e"), ("a b c d", " f"), ("a b c d", " g")]
    assert (found.status, found.note) == ("ok", "truncated 6 tokens")
    assert found.options[0].tokens == (ShownToken(4, "e", "e", 0), ShownToken(4, "e", "e", 0))

    # Ten characters that the vocabulary does not join: of eleven inputs, six are cut.
    a_case = case("QZXJVKQZX", "J", "KK", "V", "Q")
    found, _ = shown(tmp_path, "gpt2_like", a_case, delimiter="", max_length=5, overlong="truncate_left")
    assert [(o.read, o.scored, o.exact) for o in found.options] == [
        ("QZXJ", "KK", False),
        ("QZXJ", "V", False),
        ("QZXJ", "Q", False),
    ]


def test_case_that_does_not_fit(tmp_path):
    found, _ = shown(tmp_path, "lone_characters", case("abcabcabc", "d", "ee", "f", "g"), delimiter="", max_length=5)
    assert (found.status, found.options) == ("overlong", ())


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a\nb", "a\nb"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\tb\r", "a\\tb\\r"),
        ("\u202e\u200b", "\\u202e\\u200b"),
        ("北 é\ufffd", "北 é\ufffd"),
    ],
)
def test_nothing_that_a_terminal_acts_on(text, printed):
    assert printable(text) == printed
