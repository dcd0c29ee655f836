"""Any case, written in any combination of accepted forms, reads back as itself."""

import gzip
import json

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from brb_jax.data.case import TASKS, Case, Option
from brb_jax.data.filename import FileName
from brb_jax.data.reader import read_cases

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
# Two characters and a hyphen: no text is a label, an index or another option's label with white space around.
option_text = st.text(characters, max_size=8).map(lambda text: f"{text}-{text}x")
ids = st.integers(-5, 10**6) | st.text(characters, min_size=1, max_size=6)
task_names = st.sampled_from(sorted(TASKS))


@st.composite
def files(draw):
    """A file's name and its cases."""
    task = TASKS[draw(task_names)]
    name = FileName("words", task.name, None, None, 2)
    cases = []
    for own_id in draw(st.lists(ids, min_size=1, max_size=3, unique_by=str)):
        kinds = draw(st.permutations(task.option_types))
        texts = draw(st.lists(option_text, min_size=len(kinds), max_size=len(kinds), unique_by=str.strip))
        options = tuple(Option("ABCD"[i], text, kind) for i, (text, kind) in enumerate(zip(texts, kinds, strict=True)))
        answer = next(option.label for option in options if option.type == "correct")
        context, query = draw(st.text(characters, max_size=20)), draw(st.text(characters, max_size=10))
        case = Case(f"{name.stem}/{own_id}", "words", task.name, None, None, 2, context, query, options, answer)
        cases.append((own_id, case))
    return name, cases


ANSWERS = {
    "label": lambda case: case.answer,
    "lower": lambda case: case.answer.lower(),
    "padded": lambda case: f" {case.answer}. ",
    "index": lambda case: case.correct_index,
    "text": lambda case: case.options[case.correct_index].text,
}
OPTIONS = {
    "objects": lambda options: {"options": [{"label": o.label, "text": o.text, "type": o.type} for o in options]},
    "unlabelled": lambda options: {"options": [{"text": o.text, "type": o.type} for o in options]},
    "texts": lambda options: {"options": [o.text for o in options], "types": [o.type for o in options]},
    "labels": lambda options: {
        "options": {o.label: o.text for o in reversed(options)},
        "types": {o.label: o.type for o in options},
    },
}
NAMES = [
    {},
    {"id": "qid", "context": "memory", "query": "question", "options": "choices", "types": "option_types"},
    {"id": "Case-ID", "context": "Prompt", "query": "INPUT", "options": "Options", "answer": "label"},
    {"context": "passage", "query": "que", "answer": "gold"},
]
ENCODINGS = {
    ".json": lambda text: text.encode(),
    ".json.gz": lambda text: gzip.compress(text.encode()),
    ".json with BOM": lambda text: text.encode("utf-8-sig"),
}
TOPS = {
    "list": lambda raw: json.dumps(raw),
    "pretty": lambda raw: json.dumps({"cases": raw}, indent=2, ensure_ascii=False),
    "under a key": lambda raw: json.dumps({"note": [1, 2], "rows": raw}),
    "lines": lambda raw: "\n".join(json.dumps(case, ensure_ascii=False) for case in raw) + "\n",
}
any_of = st.sampled_from


@settings(max_examples=300, deadline=None)
@given(
    files(), any_of(list(ANSWERS)), any_of(list(OPTIONS)), any_of(NAMES), any_of(list(TOPS)), any_of(list(ENCODINGS))
)
def test_any_form(tmp_path_factory, file, answer, option_form, names, top, encoding):
    name, cases = file
    if names.get("context") == "Prompt":  # which would be taken for all of it, question included
        assume(not any(c.query.strip() and c.context.rstrip().endswith(c.query.strip()) for _, c in cases))
    raw = []
    for own_id, case in cases:
        fields = {
            "id": own_id,
            "context": case.context,
            "query": case.query,
            "answer": ANSWERS[answer](case),
            **OPTIONS[option_form](case.options),
        }
        raw.append({names.get(field, field): value for field, value in fields.items()})
    path = tmp_path_factory.mktemp("form") / name.format().replace(".json", encoding.split()[0])
    path.write_bytes(ENCODINGS[encoding](TOPS[top](raw)))
    assert read_cases([path]).cases == tuple(case for _, case in cases)


@settings(max_examples=100, deadline=None)
@given(files(), any_of(list(ANSWERS)), any_of(list(OPTIONS)))
def test_keyed_by_id(tmp_path_factory, file, answer, option_form):
    name, cases = file
    raw = {
        str(own_id): {
            "context": case.context,
            "query": case.query,
            "answer": ANSWERS[answer](case),
            **OPTIONS[option_form](case.options),
        }
        for own_id, case in cases
        if own_id not in ("cases", "metadata")
    }
    assume(raw)
    path = tmp_path_factory.mktemp("keyed") / name.format()
    path.write_text(json.dumps(raw))
    assert read_cases([path]).cases == tuple(case for own_id, case in cases if str(own_id) in raw)


@settings(max_examples=100, deadline=None)
@given(files(), st.booleans())
def test_by_type(tmp_path_factory, file, with_answer):
    """The order is not the file's, all else is."""
    name, cases = file
    raw = [
        {
            "id": own_id,
            "context": case.context,
            "query": case.query,
            "options": {o.type: o.text for o in case.options},
            **({"answer": ANSWERS["text"](case)} if with_answer else {}),
        }
        for own_id, case in cases
    ]
    path = tmp_path_factory.mktemp("typed") / name.format()
    path.write_text(json.dumps(raw))
    for read, (_, case) in zip(read_cases([path]).cases, cases, strict=True):
        assert (read.case_id, read.context, read.query) == (case.case_id, case.context, case.query)
        assert {(o.type, o.text) for o in read.options} == {(o.type, o.text) for o in case.options}
        assert [o.label for o in read.options] == [o.label for o in case.options]
        assert read.options[read.correct_index].type == "correct"
