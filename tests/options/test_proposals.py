"""What is taken of an LLM's replies: text of the right shape, and nothing else."""

import json

import pytest
from question_cases import WORDS_ANSWER, question

from brb_jax.generator.options.proposals import ATTEMPTS, checked, prompt, proposed

TAKEN = [WORDS_ANSWER, "moss jade lark kite"]
ASKED = question(task="MemoryCom")
GOOD = "lark pond calf rain"


def reply(text):
    return json.dumps({"answer": text})


@pytest.mark.parametrize(
    "text",
    [
        reply(GOOD),
        f"  {reply(GOOD)}\n",
        f"```json\n{reply(GOOD)}\n```",
        f"```\n{reply(GOOD)}\n```",
        json.dumps({"answer": f" {GOOD} ", "why": "because"}),
    ],
)
def test_replies_that_are_taken(text):
    assert checked(text, ASKED, TAKEN) == GOOD


HOSTILE = {
    "../../etc/passwd": "not the form",
    "__import__('os').system('true')": "not the form",
    "{{ 7 * 7 }}": "not the form",
    "<script>alert(1)</script>": "not the form",
    "</pre><b>x</b>": "not the form",
    "lark pond\0 calf rain": "U\\+0000",
    "lark pond\u001b[2J calf rain": "U\\+001B",
    "lark pond\ncalf rain": "U\\+000A",
    "\ud83d pond calf rain": "U\\+D83D",
    "lark pond calf ra\u202ein": "not the form",
    "lark pond": "not the form",
    "lark pond calf 7": "not the form",
    "lark, pond, calf, rain": "not the form",
    "x" * 100_000: "100000 characters, and no more than 38",
    "": "is empty",
    "   ": "is empty",
    WORDS_ANSWER: "repeats the option",
    f" {WORDS_ANSWER} ": "repeats the option",
    TAKEN[1]: "repeats the option",
}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:30])
def test_texts_that_are_refused(text):
    with pytest.raises(ValueError, match=HOSTILE[text]) as caught:
        checked(reply(text), ASKED, TAKEN)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "lark pond calf rain",
        '"lark pond calf rain"',
        f'["{GOOD}"]',
        '{"answer": 7}',
        '{"answer": null}',
        '{"answer": ["lark"]}',
        '{"option": "lark pond calf rain"}',
        f"Sure! {reply(GOOD)}",
        reply(GOOD) + reply(GOOD),
        reply(GOOD)[:-2],
        "<html><body>502</body></html>",
        "[" * 100_000,
        '{"answer": ' + "9" * 100_000 + "}",
        "\ud83d",
        "\0",
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_what_is_no_answer(text):
    with pytest.raises(ValueError, match="not one JSON object with a text as its answer"):
        checked(text, ASKED, TAKEN)


def test_the_form_may_be_that_of_an_output_shown():
    asked = question("[3, 1]", "a -> [1, 2]\nb -> [1, 2, 3]\nc -> []\n", "d ->", "MemoryRev")
    for text in ("[3, 10]", "[7, 7, 7]", "[]"):
        assert checked(reply(text), asked, ["[3, 1]"]) == text
    for text in ("[3]", "[3, 1, 2, 4]", "[3, a]", "3, 1"):
        with pytest.raises(ValueError, match="not the form"):
            checked(reply(text), asked, ["[3, 1]"])


def test_the_prompt_holds_the_question_and_what_to_avoid():
    for kind, says in (("wrong_rule", "wrong order"), ("old_rule", "missed that one was revised")):
        told = prompt(ASKED, kind, TAKEN, ["it is empty"])
        for part in (says, ASKED.context, ASKED.query, *TAKEN, "An earlier reply was refused: it is empty."):
            assert part in told


class Replies:
    """An LLM that gives these replies, one after the other."""

    def __init__(self, *replies):
        self.replies, self.prompts = list(replies), []

    def __call__(self, prompt):
        self.prompts.append(prompt)
        return self.replies.pop(0)


def test_a_refused_reply_is_followed_by_another_prompt_that_says_why():
    ask = Replies(reply(WORDS_ANSWER), "no JSON", reply(GOOD))
    assert proposed(ASKED, "wrong_rule", TAKEN, ask) == GOOD
    assert len(set(ask.prompts)) == 3
    assert "refused" not in ask.prompts[0]
    assert f"it repeats the option '{WORDS_ANSWER}'" in ask.prompts[1]
    assert "it is not one JSON object" in ask.prompts[2]


def test_an_llm_that_repeats_itself_is_asked_three_times():
    ask = Replies(*[reply(WORDS_ANSWER)] * 9)
    with pytest.raises(ValueError, match=r"3 replies of the LLM were refused: (it repeats the option '.*'(; )?){3}$"):
        proposed(ASKED, "wrong_rule", TAKEN, ask)
    assert len(ask.prompts) == ATTEMPTS == 3
