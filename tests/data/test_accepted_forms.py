"""Every accepted form, each in a file of its own under `forms/`, reads to the same cases."""

import gzip
import json
from pathlib import Path

import pytest

from brb_jax.data.case import Case, Option
from brb_jax.data.fault import DataError
from brb_jax.data.reader import read_cases
from brb_jax.data.rules import Rules, RulesError

FORMS = Path(__file__).parent / "forms"
CONTEXT = "zorav: amber kite -> kite amber\nmiqel: fern dusk -> fern\n"


def case(own_id, query, answer, *options, metadata=None):
    options = tuple(Option(*option) for option in options)
    own_metadata = metadata or {}
    return Case(
        f"words_MemoryRet_M2/{own_id}",
        "words",
        "MemoryRet",
        None,
        None,
        2,
        CONTEXT,
        query,
        options,
        answer,
        own_metadata,
    )


def expected(metadata=None):
    return (
        case(
            "17",
            "zorav: lark jade ->",
            "B",
            ("A", "kite amber", "retrieval_similar"),
            ("B", "jade lark", "correct"),
            ("C", "jade moss", "random_wrong"),
            metadata=metadata,
        ),
        case(
            "x/2",
            "miqel: 北京 reed ->",
            "A",
            ("A", "北京", "correct"),
            ("B", "fern", "retrieval_similar"),
            ("C", "reed", "random_wrong"),
            metadata=metadata,
        ),
    )


PLAIN = [
    "canonical",
    "list",
    "list_under_a_key",
    "keyed_by_id",
    "keyed_by_id_under_cases",
    "lines",
    "lines_in_json",
    "option_objects_without_labels",
    "option_objects_of_other_names",
    "option_texts_and_list_of_types",
    "option_objects_and_list_of_types",
    "options_by_label",
    "other_field_names",
    "examples_as_objects",
    "examples_as_texts",
]


@pytest.mark.parametrize("form", PLAIN)
def test_forms_that_need_no_flag(form):
    assert read_cases([FORMS / form]).cases == expected()


@pytest.mark.parametrize("form", ["canonical", "lines"])
def test_packed(form, tmp_path):
    [file] = (FORMS / form).iterdir()
    (tmp_path / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert read_cases([tmp_path]).cases == expected()


def test_options_by_type_are_shuffled_by_the_case_id_alone():
    first, second = read_cases([FORMS / "options_by_type"]).cases
    # By sha256 of "<case id>\x1f<type>", worked out apart: the order must be the same on every machine and Python.
    assert [option.type for option in first.options] == ["random_wrong", "retrieval_similar", "correct"]
    assert [option.type for option in second.options] == ["correct", "retrieval_similar", "random_wrong"]
    for read, like in zip((first, second), expected(), strict=True):
        assert [option.label for option in read.options] == ["A", "B", "C"]
        assert {o.type: o.text for o in read.options} == {o.type: o.text for o in like.options}
        assert read.options[read.correct_index].type == "correct"
        assert (read.case_id, read.context, read.query) == (like.case_id, like.context, like.query)


def test_options_by_type_spread_the_correct_label(tmp_path):
    options = {"correct": "a b", "surface_similar": "c d", "wrong_rule": "e f", "random_wrong": "g h"}
    raw = [{"id": i, "context": "", "query": "q", "options": options} for i in range(4000)]
    (tmp_path / "words_MemoryCom_k2_M2_que_ans.json").write_text(json.dumps(raw))
    answers = [case.answer for case in read_cases([tmp_path]).cases]
    # Binomial with p = 1/4: four standard deviations are 110.
    assert all(abs(answers.count(label) - 1000) < 110 for label in "ABCD")


FIELD_MAP = {
    "cases": "rows",
    "id": "nr",
    "context": "text_before",
    "query": "ask",
    "options": "offers",
    "text": "choice",
    "type": "why",
    "answer": "truth",
}


@pytest.mark.parametrize(
    ("form", "rules", "metadata"),
    [
        ("field_map", Rules(field_map=FIELD_MAP), {"passage": "nothing"}),
        ("example_template", Rules(example_template="{{ op }}: {{ input }} -> {{ output }}\n"), None),
        ("example_template", Rules(example_template="{{ example.op }}: {{ example['in'] }} -> {{ out }}\n"), None),
        ("canonical", Rules(prompt_template="{{ context }}{{ query }}"), None),
        ("examples_as_objects", Rules(prompt_template="{{ context }}{{ query }}"), None),
        (
            "examples_as_objects",
            Rules(
                prompt_template="{% for e in examples %}{{ e.input }} -> {{ e['output'] }}\n{% endfor %}{{ question }}"
            ),
            None,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_forms_that_need_a_flag(form, rules, metadata):
    assert read_cases([FORMS / form], rules=rules).cases == expected(metadata)


def test_prompt_template_of_fields_without_an_alias():
    shots = "{% for shot in shots %}{{ shot[0] }} -> {{ shot[1] }}{{ '\\n' }}{% endfor %}"
    rules = Rules(prompt_template=shots + "{{ op }}: {{ query }} ->")
    read = read_cases([FORMS / "prompt_template"], rules=rules).cases
    for found, like in zip(read, expected(), strict=True):
        assert (found.context, found.query, found.options) == (like.context, like.query, like.options)
        assert set(found.metadata) == {"shots", "op"}


@pytest.mark.parametrize("hidden", ["options", "types", "answer"])
def test_templates_do_not_see_what_gives_the_answer_away(hidden):
    with pytest.raises(DataError, match=f"does not fit --prompt_template: '{hidden}' is undefined; the template sees"):
        read_cases([FORMS / "options_by_label"], rules=Rules(prompt_template=f"{{{{ query }}}}{{{{ {hidden} }}}}"))


@pytest.mark.parametrize(
    "template",
    [
        "{{ query.__class__.__mro__ }}{{ query }}",
        "{{ ''.__class__.__base__.__subclasses__() }}{{ query }}",
        "{{ query }}{{ query.format.__globals__ }}",
        "{{ query }}{{ '{0.__class__}'.format(query) }}",
    ],
)
def test_templates_run_in_a_sandbox(template):
    with pytest.raises(DataError, match=r"unsafe|undefined"):
        read_cases([FORMS / "canonical"], rules=Rules(prompt_template=template))


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{{ query | random }}", "--prompt_template: .* is no template: No filter named 'random'"),
        ("{{ query }}{{ lipsum(1) }}", "'lipsum' is undefined"),
        ("{{ query }}{{ now() }}", "'now' is undefined"),
        # These would print as their address in memory.
        ("{{ query }}{{ query | map('upper') }}", "it prints a generator, which is no text"),
        ("{{ query }}{{ query.upper }}", "it prints a builtin_function_or_method, which is no text"),
        ("{{ query }}{{ cycler('a') }}", "it prints a Cycler, which is no text"),
    ],
)
def test_templates_give_the_same_text_in_every_run(template, says):
    with pytest.raises((RulesError, DataError), match=says):
        read_cases([FORMS / "canonical"], rules=Rules(prompt_template=template))


def test_prompt_of_one_line_is_split_at_the_query(tmp_path):
    raw = [{"id": 1, "context": "zip", "query": " amber", "options": ["a", "b", "c"], "answer": 0}]
    raw[0]["types"] = ["correct", "retrieval_similar", "random_wrong"]
    (tmp_path / "words_MemoryRet_M2_que_ans.json").write_text(json.dumps(raw))
    [case] = read_cases([tmp_path], rules=Rules(prompt_template="{{ context }}: {{ query | trim }} =")).cases
    assert (case.context, case.query) == ("zip: ", "amber =")
    [case] = read_cases([tmp_path], rules=Rules(prompt_template="Do:\n\n{{ context }}\nNow {{ query }}!\n->")).cases
    assert (case.context, case.query) == ("Do:\n\nzip\n", "Now  amber!\n->")


def test_cases_without_ids_are_numbered(tmp_path):
    raw = json.loads((FORMS / "list" / "words_MemoryRet_M2_que_ans.json").read_text())
    for case_ in raw:
        case_["note"] = case_.pop("id")
    (tmp_path / "words_MemoryRet_M2_que_ans.json").write_text(json.dumps(raw))
    cases = read_cases([tmp_path]).cases
    assert [c.case_id for c in cases] == ["words_MemoryRet_M2/0", "words_MemoryRet_M2/1"]
    assert [c.metadata for c in cases] == [{"note": 17}, {"note": "x/2"}]


def test_prompt_in_one_field(tmp_path):
    raw = {"prompt": "a -> b\nc ->", "options": {"A": "d", "B": "e", "C": "f"}, "answer": "C"}
    raw["types"] = {"A": "random_wrong", "B": "retrieval_similar", "C": "correct"}
    (tmp_path / "words_MemoryRet_M2_que_ans.json").write_text(json.dumps([raw]))
    [case] = read_cases([tmp_path], rules=Rules(field_map={"context": "", "query": "prompt"})).cases
    assert (case.context, case.query, case.answer) == ("", "a -> b\nc ->", "C")


def test_equal_contexts_are_one_string(tmp_path):
    context = "zorav: amber kite -> kite amber\n" * 100
    raw = json.loads((FORMS / "list" / "words_MemoryRet_M2_que_ans.json").read_text())
    examples = ["zorav: amber kite -> kite amber"] * 100
    for name, value in (("a", context), ("b", context), ("c", examples)):
        document = [{**case_, "context": value} for case_ in raw]
        (tmp_path / f"{name}_MemoryRet_M2_que_ans.json").write_text(json.dumps(document))
    cases = read_cases([tmp_path]).cases
    assert len(cases) == 6 and cases[0].context == context
    assert len({id(case.context) for case in cases}) == 1
