"""From questions to cases: which options are made how, what gives way, and where the right answer stands."""

import json
from collections import Counter

import pytest
from etils import epath
from question_cases import WORDS, WORDS_ANSWER, question

from brb_jax.data.case import TASKS
from brb_jax.data.files import Source
from brb_jax.data.questions import QuestionFile
from brb_jax.generator.options.making import MadeOptions, assembled, make_options

REVISED = {"input": "48291067", "program": ["reverse"], "old_program": ["add_one"]}


def no_llm(prompt):
    raise AssertionError("an LLM was asked")


def test_retention_needs_no_llm():
    made = make_options(question(), 0, no_llm)
    assert list(made.texts) == ["correct", "retrieval_similar", "random_wrong"] and not made.missing
    # `pond acid rain calf` shares three words in order with `pond lark rain calf`.
    assert made.texts["retrieval_similar"] == "calf rain acid pond" and made.texts["correct"] == WORDS_ANSWER
    assert made.made_by == {"retrieval_similar": "search", "random_wrong": "mutation"}
    random = made.texts["random_wrong"].split()
    assert len(set(made.texts.values())) == 3 and [len(word) for word in random] == [4] * 4


def test_an_example_whose_output_is_the_answer_gives_way():
    made = make_options(question(answer="calf rain acid pond"), 0, None)
    assert made.texts["retrieval_similar"] == "moss jade lark kite"


def test_the_similar_option_gives_way_to_a_program():
    context = "zorav: 48291060 -> 59302178\nzorav: 11111111 -> 11111111\n"
    asked = question("76019284", context, "zorav: 48291067 ->", "MemoryRev", "digits", REVISED)
    made = make_options(asked, 0, no_llm)
    assert made.texts["old_rule"] == "59302178" and made.texts["retrieval_similar"] == "11111111"
    assert made.made_by == {"retrieval_similar": "search", "old_rule": "program", "random_wrong": "mutation"}


def test_a_domain_of_ours_is_searched_as_the_generator_does():
    # The later example has as many digits in place, and one more anywhere.
    context = "zorav: 12340000 -> 00004321\nzorav: 12348765 -> 56784321\n"
    made = make_options(question("87654321", context, "zorav: 12345678 ->", domain="digits"), 0, None)
    assert made.texts["retrieval_similar"] == "56784321"


def test_an_llm_is_asked_for_rules_without_a_program():
    prompts = []

    def ask(prompt):
        prompts.append(prompt)
        return json.dumps({"answer": "rain calf pond lark"})

    made = make_options(question(task="MemoryCom"), 0, ask)
    assert made.texts["wrong_rule"] == "rain calf pond lark" and made.made_by["wrong_rule"] == "llm"
    [prompt] = prompts
    assert WORDS in prompt and made.texts["surface_similar"] in prompt


def test_without_an_llm_it_is_said():
    made = make_options(question(task="MemoryCom"), 0, None)
    assert list(made.missing) == ["wrong_rule"] and "--llm_endpoint" in made.missing["wrong_rule"]


def test_metadata_that_contradicts_the_answer_is_said_and_no_llm_is_asked():
    made = make_options(question("1", WORDS, "q ->", "MemoryRev", "digits", REVISED), 0, no_llm)
    assert "the program in its metadata gives '76019284'" in made.missing["old_rule"]


def test_a_question_that_is_lost_costs_no_reply():
    made = make_options(question(context="Nothing is shown.", task="MemoryCom"), 0, no_llm)
    assert made.missing == {"surface_similar": "its context has no line of the form `input -> output`"}


def test_every_output_taken():
    made = make_options(question("b", "a -> b\nc -> b\n", "d ->"), 0, None)
    assert made.missing["retrieval_similar"] == "every output that its context shows is another option already"


def test_no_other_value():
    made = make_options(question("true", "a -> false\n", "b ->"), 0, None)
    assert made.missing == {"random_wrong": "no other value of the form of 'true' was found"}


def test_random_options_start_from_any_option_of_the_form():
    right, similar = "11111111", "22222222"
    starts = Counter()
    for number in range(60):
        asked = question(right, f"a: 10 -> {similar}\nb: 3 -> 34567890\n", "a: 20 ->", number=number)
        random = make_options(asked, 0, None).texts["random_wrong"]
        starts["right" if random.count("1") >= 7 else "similar" if random.count("2") >= 7 else "none"] += 1
    assert starts["none"] == 0 and 15 < starts["right"] < 45
    longer = make_options(question("1111", f"a: 10 -> {similar}\n", "a: 20 ->"), 0, None)
    assert longer.texts["random_wrong"].count("1") == 3


def file_of(task, number):
    questions = tuple(question(task=task, number=i, metadata={"source": i}) for i in range(number))
    return QuestionFile(Source("x", questions[0].name, epath.Path("x"), "x"), {}, questions)


@pytest.mark.parametrize("task", TASKS)
def test_labels_are_balanced_and_options_shuffled(task):
    file = file_of(task, 50)
    types = TASKS[task].option_types
    made = [MadeOptions({kind: f"{kind} {i}" for kind in types}, {}, {}) for i in range(50)]
    cases = assembled(file, made, seed=0)
    labels = "ABCD"[: len(types)]
    for number in (3, 4, 7, 50):
        counts = Counter(case.answer for case in cases[:number])
        assert max(counts.values()) - min(counts[label] for label in labels) <= 1
    for case in cases:
        assert [option.label for option in case.options] == list(labels)
        assert {option.type: option.text for option in case.options} == made[int(case.case_id.split("/")[1])].texts
        [right] = [option for option in case.options if option.type == "correct"]
        assert right.label == case.answer
    # Every type stands in every place now and then: 50 cases, a quarter or third each.
    for kind in types:
        places = Counter(next(o.label for o in case.options if o.type == kind) for case in cases)
        assert min(places[label] for label in labels) >= 4
    assert assembled(file, made, seed=0) == cases != assembled(file, made, seed=1)
    assert len({tuple(case.answer for case in assembled(file, made, seed=s)) for s in range(3)}) == 3


def test_incomplete_questions_are_left_out_before_labels_are_dealt():
    file = file_of("MemoryRet", 30)
    types = TASKS["MemoryRet"].option_types
    made = [
        MadeOptions({kind: f"{kind} {i}" for kind in types}, {"random_wrong": "mutation"}, {"x": "no"} if i % 2 else {})
        for i in range(30)
    ]
    cases = assembled(file, made, seed=0)
    assert [case.metadata["source"] for case in cases] == list(range(0, 30, 2))
    assert set(Counter(case.answer for case in cases).values()) == {5}
    assert cases[0].metadata == {"source": 0, "options_made_by": {"random_wrong": "mutation"}}


def test_options_depend_on_seed_and_case_only():
    one, two = (make_options(question(number=i), 0, None) for i in (1, 2))
    assert one == make_options(question(number=1), 0, None)
    assert len({make_options(question(number=1), s, None).texts["random_wrong"] for s in range(9)} | {*two.texts}) > 3
