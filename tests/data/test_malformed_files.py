"""Malformed files, each with the one message it deserves: nothing more, nothing less, and no case of it half-read."""

import dataclasses
import gzip
import json
import subprocess
import sys
from typing import Any

import pytest

from brb_jax.data.fault import DataError
from brb_jax.data.reader import read_cases
from brb_jax.data.rules import Rules

STEM = "words_MemoryRet_M2"
FILE = f"{STEM}_que_ans.json"
TYPES = ["retrieval_similar", "correct", "random_wrong"]
TEXTS = ["kite amber", "jade lark", "jade moss"]
MISSING = object()


def case(**changes):
    """A sound canonical case, with changes; `MISSING` takes a key out."""
    sound = {
        "id": 7,
        "context": "zorav: amber kite -> kite amber\n",
        "query": "zorav: lark jade ->",
        "options": [
            {"label": label, "text": text, "type": type_}
            for label, text, type_ in zip("ABC", TEXTS, TYPES, strict=True)
        ],
        "answer": "B",
    }
    return {key: value for key, value in {**sound, **changes}.items() if value is not MISSING}


def options(*changes):
    """The sound options, each with its changes."""
    return [
        {k: v for k, v in {**o, **c}.items() if v is not MISSING}
        for o, c in zip(case()["options"], changes, strict=False)
    ]


def texts_case(**changes):
    """A case of the form: a list of texts, a list of types."""
    return case(**{"options": TEXTS, "types": TYPES, **changes})


def labels_case(**changes):
    """A case of the form: label to text, label to type."""
    by_label = {"options": dict(zip("ABC", TEXTS, strict=True)), "types": dict(zip("ABC", TYPES, strict=True))}
    return case(**{**by_label, **changes})


def typed_case(**changes):
    """A case of the form: type to text."""
    return case(**{"options": dict(zip(TYPES, TEXTS, strict=True)), "answer": MISSING, **changes})


@dataclasses.dataclass
class Bad:
    """A malformed file, and the faults expected of it: place in the file, the case's id, what is wrong."""

    content: Any  # bytes as they are; anything else as JSON
    faults: list[tuple[int | None, str | None, str]]
    name: str = FILE
    rules: Rules = dataclasses.field(default_factory=Rules)


def of_file(content, *problems, **kwargs):
    return Bad(content, [(None, None, problem) for problem in problems], **kwargs)


def of_case(raw, *problems, own_id="7", **kwargs):
    """The case among sound ones: only it is at fault."""
    return Bad([case(id=1), raw, case(id=2)], [(1, own_id, problem) for problem in problems], **kwargs)


def keyed(raw):
    return {"1": case(id=1), "7": raw}


def dumped(value):
    return json.dumps(value).encode()


WHOLE = gzip.compress(dumped([case()]))
KEYS = "its keys are ['id', 'context', 'query', 'options', 'answer']"

MALFORMED = {
    # The bytes.
    "empty braces": of_file(
        b"{", "not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    ),
    "cut off": of_file(
        dumped([case()])[:-20], "not JSON: Unterminated string starting at: line 1 column 271 (char 270)"
    ),
    "cut off in a string": of_file(
        b'[{"id": "x', "not JSON: Unterminated string starting at: line 1 column 9 (char 8)"
    ),
    "text behind": of_file(dumped([case()]) + b"\n[]", "not JSON: Extra data: line 2 column 1 (char 304)"),
    "missing comma": of_file(b"[1 2]", "not JSON: Expecting ',' delimiter: line 1 column 4 (char 3)"),
    "single quotes": of_file(
        b"[{'id': 1}]", "not JSON: Expecting property name enclosed in double quotes: line 1 column 3 (char 2)"
    ),
    "Python's None": of_file(b"[None]", "not JSON: Expecting value: line 1 column 2 (char 1)"),
    "control character": of_file(b'["a\tb"]', "not JSON: Invalid control character at: line 1 column 4 (char 3)"),
    "Latin-1": of_file('["é"]'.encode("latin-1"), "not UTF-8: byte 0xe9 at offset 2"),
    "UTF-16": of_file("[]".encode("utf-16"), "not UTF-8: byte 0xff at offset 0"),
    "gzip without the ending": of_file(WHOLE, "not UTF-8: byte 0x8b at offset 1"),
    "no gzip": of_file(dumped([case()]), "not a whole gzip file: Not a gzipped file (b'[{')", name=FILE + ".gz"),
    "gzip cut off": of_file(
        WHOLE[:-20],
        "not a whole gzip file: Compressed file ended before the end-of-stream marker was reached",
        name=FILE + ".gz",
    ),
    "gzip of a bad kind": of_file(
        b"\x1f\x8b\x09" + WHOLE[3:], "not a whole gzip file: Unknown compression method", name=FILE + ".gz"
    ),
    "gzip of no bytes": of_file(b"", "not a whole gzip file: it is empty", name=FILE + ".gz"),
    "gzip of no JSON": of_file(
        gzip.compress(b"["), "not JSON: Expecting value: line 1 column 2 (char 1)", name=FILE + ".gz"
    ),
    "nested too deeply": of_file(b"[" * 200_000, "not readable as JSON: nested too deeply"),
    "metadata nested 201 deep": of_file(
        b'{"metadata": ' + b"[" * 200 + b"]" * 200 + b"}", "not readable as JSON: nested too deeply"
    ),
    "a case nested too deeply in a line": of_file(
        dumped(case()) + b"\n[" + b"[" * 5_000 + b"]" * 5_001,
        "line 2 is not readable as JSON: nested too deeply",
        name=FILE + "l",
    ),
    # The top level.
    "a number": of_file(b"3", "holds int"),
    "a text": of_file(b'"cases"', "holds str"),
    "null": of_file(b"null", "holds NoneType"),
    "no cases in it": of_file({"data": []}, "holds an object with the keys ['data']"),
    "cases a number": of_file({"cases": 3}, "holds an object with the keys ['cases']"),
    "only metadata": of_file({"metadata": {"m": 2}}, "holds an object with the keys ['metadata']"),
    "two lists": of_file(
        {"train": [case()], "test": [case()]}, "holds an object in which 'train' and 'test' could be the cases"
    ),
    "a list and cases by id": of_file(
        {"data": [case()], "8": case()}, "holds an object in which 'data' and its other values could be the cases"
    ),
    "the key that the flag names": of_file(
        {"data": [case()]}, "holds an object with the keys ['data']", rules=Rules(field_map={"cases": "rows"})
    ),
    "many keys": of_file(
        {f"k{i:02}": i for i in range(30)},
        "holds an object with the keys " + str([f"k{i:02}" for i in range(20)]) + " and 10 more",
    ),
    "doubled key of the file": of_file(b'{"cases": [], "cases": []}', "the key 'cases' stands twice in one object"),
    "doubled id": of_file(
        b'{"7": %s, "7": %s}' % (dumped(case()), dumped(case())), "the key '7' stands twice in one object"
    ),
    "NaN beside the cases": of_file(b'{"score": NaN, "cases": []}', "NaN is no JSON number"),
    "metadata of another task": of_file(
        {"metadata": {"task": "MemoryCom"}, "cases": []},
        "its name says task='MemoryRet', its metadata task='MemoryCom'",
    ),
    "metadata a list": of_file({"metadata": [], "cases": []}, "its metadata is a list, not an object"),
    # JSON Lines.
    "a bad line": of_file(
        dumped(case()) + b"\n{oops}\n",
        "line 2 is not JSON: Expecting property name enclosed in double quotes at column 2",
    ),
    "two bad lines": of_file(
        b"\n".join([b"[", dumped(case()), b"", b"{"]),
        "line 1 is not JSON: Expecting value at column 2",
        "line 4 is not JSON: Expecting property name enclosed in double quotes at column 2",
        name=FILE + "l",
    ),
    "cut off line": of_file(
        dumped(case()) + b"\n" + dumped(case(id=8))[:40],
        "line 2 is not JSON: Unterminated string starting at at column 22",
        name=FILE + "l",
    ),
    "a list in a line": Bad(
        dumped(case(id=1)) + b"\n" + dumped([case(id=8)]), [(1, None, "is a list, not an object")], name=FILE + "l"
    ),
    "NaN in a line": Bad(dumped(case())[:-1] + b', "x": NaN}', [(0, "7", "NaN is no JSON number")], name=FILE + "l"),
    # Ids.
    "no id": of_case(case(id=MISSING), "lacks id; its keys are ['context', 'query', 'options', 'answer']", own_id=None),
    "null id": of_case(case(id=None), "its id is None", own_id=None),
    "bool id": of_case(case(id=True), "its id is True", own_id=None),
    "float id": of_case(case(id=7.0), "its id is 7.0", own_id=None),
    "list id": of_case(case(id=[7]), "its id is [7]", own_id=None),
    "empty id": of_case(case(id=""), "its id is ''", own_id=None),
    "same id": of_case(case(id="1"), "its id stands twice in the file", own_id="1"),
    "two ids": of_case(
        {**case(id=MISSING), "qid": 7, "uid": 9},
        "'qid' or 'uid' could be its id; its keys are ['context', 'query', 'options', 'answer', 'qid', 'uid']",
        own_id=None,
    ),
    "id against its key": Bad(keyed(case(id=8)), [(1, None, "its id is 8, but it stands under the key '7'")]),
    "value that is no case": Bad(keyed(None), [(1, None, "is a NoneType, not an object")]),
    # Fields.
    "a text for a case": of_case("case", "is a str, not an object", own_id=None),
    "empty object": of_case({}, "lacks id, context, query, options, answer; its keys are []", own_id=None),
    "no context": of_case(case(context=MISSING), "lacks context; its keys are ['id', 'query', 'options', 'answer']"),
    "no query": of_case(case(query=MISSING), "lacks query; its keys are ['id', 'context', 'options', 'answer']"),
    "no options": of_case(case(options=MISSING), "lacks options; its keys are ['id', 'context', 'query', 'answer']"),
    "no answer": of_case(case(answer=MISSING), "lacks answer; its keys are ['id', 'context', 'query', 'options']"),
    "two queries": of_case(
        {**case(query=MISSING), "question": "q", "input": "i"},
        "'question' or 'input' could be its query; "
        "its keys are ['id', 'context', 'options', 'answer', 'question', 'input']",
    ),
    "two contexts": of_case(
        {**case(context=MISSING), "prompt": "p", "examples": []},
        "'prompt' or 'examples' could be its context; "
        "its keys are ['id', 'query', 'options', 'answer', 'prompt', 'examples']",
    ),
    "the question in the prompt too": of_case(
        {**case(context=MISSING, query=MISSING), "prompt": "a -> b\nc -> ", "question": "c ->"},
        "its prompt ends with its question, which would be read twice",
    ),
    "one key in two cases of letters": of_case(
        {**case(query=MISSING), "Question": "q", "question": "q"},
        "'Question' or 'question' could be its query; "
        "its keys are ['id', 'context', 'options', 'answer', 'Question', 'question']",
    ),
    "context null": of_case(case(context=None), "its context is a NoneType"),
    "context an object": of_case(case(context={"a": 1}), "its context is a dict"),
    "query a number": of_case(case(query=12), "its query is a int"),
    "field that the flag names": Bad(
        [case()],
        [(0, "7", f"lacks 'passage', which --field_map takes for its context; {KEYS}")],
        rules=Rules(field_map={"context": "passage"}),
    ),
    "metadata text": of_case(case(metadata="m"), "its metadata is a str"),
    "metadata twice": of_case(case(metadata={"n": 1}, n=2), "n stands both in its metadata and beside it"),
    # Options.
    "options null": of_case(case(options=None), "its options are a NoneType, not an array"),
    "options a text": of_case(case(options="A) x B) y"), "its options are a str, not an array"),
    "options by number": of_case(
        case(options={"1": "a", "2": "b", "3": "c"}),
        "its options have the keys ['1', '2', '3'], which are neither labels (A, B, …) nor types",
    ),
    "no options in the list": of_case(
        case(options=[]),
        "has 0 options, MemoryRet has 3",
        *(f"has 0 options of type {t}" for t in ("correct", "retrieval_similar", "random_wrong")),
    ),
    "an option null": of_case(case(options=[*options({}, {}), None]), "its option 2 is None"),
    "an option without text": of_case(
        case(options=options({}, {}, {"text": MISSING})), "its option 2 is {'label': 'C', 'type': 'random_wrong'}"
    ),
    "some labels missing": of_case(
        case(options=options({}, {}, {"label": MISSING})),
        "its option 2 is {'text': 'jade moss', 'type': 'random_wrong'}",
    ),
    "an option of two texts": of_case(
        case(options=[{"text": t, "content": t, "type": y} for t, y in zip(TEXTS, TYPES, strict=True)]),
        *(
            f"'text' or 'content' could be option {i}'s text; its keys are ['text', 'content', 'type']"
            for i in range(3)
        ),
    ),
    "text a number": of_case(
        case(options=options({}, {"text": 12}, {})), "its option 1 is {'label': 'B', 'text': 12, 'type': 'correct'}"
    ),
    "labels out of order": of_case(
        case(options=options({"label": "B"}, {"label": "A"}, {})),
        "its labels are B, A, C",
    ),
    "labels lower case": of_case(
        labels_case(options=dict(zip("abc", TEXTS, strict=True)), types=dict(zip("abc", TYPES, strict=True))),
        "its labels are a, b, c",
    ),
    "labels with a gap": of_case(
        labels_case(options=dict(zip("ABD", TEXTS, strict=True)), types=dict(zip("ABD", TYPES, strict=True))),
        "its labels are A, B, D",
    ),
    "texts without types": of_case(texts_case(types=MISSING), "has no types for its options"),
    "texts with types by label": of_case(
        texts_case(types={"A": "correct"}), "its options need a list of types, but its types are {'A': 'correct'}"
    ),
    "too few types": of_case(texts_case(types=TYPES[:2]), "has 3 options, but 2 types"),
    "labels without types": of_case(labels_case(types=MISSING), "has no types for its options"),
    "labels with a list of types": of_case(
        labels_case(types=TYPES), f"its options need a mapping label to type, but its types are {TYPES}"
    ),
    "labels with types of others": of_case(
        labels_case(types=dict(zip("ABD", TYPES, strict=True))),
        "its options are labelled ['A', 'B', 'C'], its types ['A', 'B', 'D']",
    ),
    "two keys of types": of_case(
        {**labels_case(), "option_types": {}},
        "'types' or 'option_types' could be its types; "
        "its keys are ['id', 'context', 'query', 'options', 'answer', 'types', 'option_types']",
    ),
    "type null": of_case(
        texts_case(types=[None, *TYPES[1:]]), "its option 0 is {'label': 'A', 'text': 'kite amber', 'type': None}"
    ),
    "type of another task": of_case(
        texts_case(types=["old_rule", *TYPES[1:]]),
        "has 0 options of type retrieval_similar",
        "has an option of the unknown type 'old_rule'",
    ),
    "two correct": of_case(
        texts_case(types=["correct", *TYPES[1:]]),
        "has 2 options of type correct",
        "has 0 options of type retrieval_similar",
    ),
    "four options": of_case(
        texts_case(options=[*TEXTS, "x"], types=[*TYPES, "random_wrong"]),
        "has 4 options, MemoryRet has 3",
        "has 2 options of type random_wrong",
    ),
    "same texts": of_case(
        texts_case(options=["jade", "lark", "jade"], answer="B"), "its options A and C have the same text 'jade'"
    ),
    "same texts but for white space": of_case(
        labels_case(options={"A": "jade", "B": "lark", "C": " jade\n"}), "its options A and C have the same text 'jade'"
    ),
    "empty text": of_case(labels_case(options={"A": "", "B": "lark", "C": "jade"}), "its option A is empty"),
    "blank text": of_case(
        typed_case(options=dict(zip(TYPES, ["a", "b", " \t"], strict=True))), "its option A is empty"
    ),
    "typed without correct": of_case(
        typed_case(options={"retrieval_similar": "a", "random_wrong": "b"}),
        "has 2 options, MemoryRet has 3",
        "has 0 options of type correct",
    ),
    "typed with a type of another task": of_case(
        typed_case(options={"correct": "a", "retrieval_similar": "b", "wrong_rule": "c"}),
        "has 0 options of type random_wrong",
        "has an option of the unknown type 'wrong_rule'",
    ),
    "typed with a label for answer": of_case(
        typed_case(answer="B"),
        "the answer 'B' is no option's text, and options keyed by type have no labels or places",
    ),
    "typed with an index for answer": of_case(
        typed_case(answer=0), "the answer 0 is no option's text, and options keyed by type have no labels or places"
    ),
    # Answers.
    "answer null": of_case(case(answer=None), "the answer None is neither text nor an index"),
    "answer true": of_case(case(answer=True), "the answer True is neither text nor an index"),
    "answer a list": of_case(case(answer=["B"]), "the answer ['B'] is neither text nor an index"),
    "answer 1.0": of_case(case(answer=1.0), "the answer 1.0 is neither text nor an index"),
    "answer -1": of_case(case(answer=-1), "the answer -1 names none of the 3 options"),
    "answer 3": of_case(texts_case(answer=3), "the answer 3 names none of the 3 options"),
    "answer '1'": of_case(case(answer="1"), "the answer '1' names none of the 3 options"),
    "answer D": of_case(labels_case(answer="D"), "the answer 'D' names none of the 3 options"),
    "answer (B)": of_case(case(answer="(B)"), "the answer '(B)' names none of the 3 options"),
    "answer another text": of_case(
        texts_case(answer="jade lark."), "the answer 'jade lark.' names none of the 3 options"
    ),
    "answer an index counted from 1": of_case(
        texts_case(answer=2), "its answer is C (of type random_wrong), but of type correct is B"
    ),
    "answer against types": of_case(
        labels_case(answer="A"), "its answer is A (of type retrieval_similar), but of type correct is B"
    ),
    "answer a label and a text": of_case(
        texts_case(options=["B", "lark", "A"], answer="A"), "the answer 'A' could mean option A or C"
    ),
    "answer an index and a text": of_case(
        texts_case(options=["1", "0", "2"], answer=0), "the answer 0 could mean option A or B"
    ),
    "two answers": of_case(
        {**case(answer=MISSING), "gold": "B", "label": "B"},
        "'gold' or 'label' could be its answer; its keys are ['id', 'context', 'query', 'options', 'gold', 'label']",
    ),
    # Characters and numbers.
    "NUL": of_case(case(context="ab\0c"), "its context holds a NUL at character 2"),
    "NUL in an example": of_case(case(context=["ab", "\0c"]), "its context holds a NUL at character 3"),
    "lone surrogate": of_case(case(query="a\ud83d"), "its query holds the lone surrogate U+D83D at character 1"),
    "lone surrogate in an option": of_case(
        labels_case(options={"A": "a", "B": "b\udc00", "C": "c"}),
        "its option B holds the lone surrogate U+DC00 at character 1",
    ),
    "lone surrogate in the id": of_case(
        case(id="\udc00"), "its id holds the lone surrogate U+DC00 at character 0", own_id=None
    ),
    "NaN": Bad(b"[%s]" % dumped(case(x=1)).replace(b'"x": 1', b'"x": NaN'), [(0, "7", "NaN is no JSON number")]),
    "infinite": Bad(
        b"[%s]" % dumped(case(x=1)).replace(b'"x": 1', b'"x": [1e400]'), [(0, "7", "1e400 is no JSON number")]
    ),
    "endless": Bad(
        b"[%s]" % dumped(case(x=1)).replace(b'"x": 1', b'"x": ' + b"9" * 5000),
        [(0, "7", "9999999999… (5000 digits) is no JSON number")],
    ),
    "doubled key": Bad(
        b"[%s]" % dumped(case(x=1)).replace(b'"x": 1', b'"query": "q"'),
        [(0, "7", "the key 'query' stands twice in one object")],
    ),
    "doubled type": Bad(
        b"[%s]" % dumped(typed_case()).replace(b'"correct":', b'"correct": "x", "correct":'),
        [(0, "7", "the key 'correct' stands twice in one object")],
    ),
    # Examples and templates.
    "examples of two kinds": of_case(
        case(context=["a -> b", 3]),
        "its example 1 is 3",
    ),
    "example of other keys": of_case(
        case(context=[{"input": "a", "output": "b", "op": "zorav"}]),
        "its example 0 has the keys ['input', 'output', 'op'], not input and output",
    ),
    "example without output": of_case(
        case(context=[{"input": "a", "output": "b"}, {"input": "a"}]),
        "its example 1 has the keys ['input'], not input and output",
    ),
    "example of two inputs": of_case(
        case(context=[{"x": "a", "question": "a", "output": "b"}]),
        "'x' or 'question' could be example 0's input; its keys are ['x', 'question', 'output']",
        rules=Rules(example_template="{{ input }}"),
    ),
    "example of a list": of_case(
        case(context=[{"input": ["a"], "output": "b"}]), "its example 0 has the input ['a'], which is no text"
    ),
    "query that does not go on like the examples": of_case(
        case(context=[{"input": "a", "output": "b"}], query="lark"),
        "its examples are objects, by default written 'input -> output', but its query 'lark' does not end in '->'",
    ),
    "example template of a key that is not there": of_case(
        case(context=[{"input": "a", "output": "b"}]),
        "its example 0 does not fit --example_template: 'op' is undefined",
        rules=Rules(example_template="{{ op }}"),
    ),
    "prompt template without the query": Bad(
        [case()], [(0, "7", "--prompt_template leaves its query out")], rules=Rules(prompt_template="{{ context }}")
    ),
    "prompt template of a key that is not there": Bad(
        [case()],
        [
            (
                0,
                "7",
                "does not fit --prompt_template: 'passage' is undefined; the template sees ['id', 'context', 'query']",
            )
        ],
        rules=Rules(prompt_template="{{ passage }}{{ query }}"),
    ),
    # Names.
    "name of no task": of_file(
        [case()],
        "the name 'words_MemoryFoo_M2_que_ans.json' does not follow "
        "{domain}_{task}_[k{K}_][editk{editK}_]M{M}_que_ans.json with a task of MemoryRet, MemoryCom, MemoryRev",
        name="words_MemoryFoo_M2_que_ans.json",
    ),
    "file of another task": Bad(
        [case()],
        [
            (0, "7", "has 3 options, MemoryCom has 4"),
            (0, "7", "has 0 options of type surface_similar"),
            (0, "7", "has 0 options of type wrong_rule"),
            (0, "7", "has an option of the unknown type 'retrieval_similar'"),
        ],
        name="words_MemoryCom_k2_M2_que_ans.json",
    ),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_the_right_message(kind, tmp_path):
    bad = MALFORMED[kind]
    path = tmp_path / bad.name
    path.write_bytes(bad.content if isinstance(bad.content, bytes) else dumped(bad.content))
    with pytest.raises(DataError) as caught:
        read_cases([path], rules=bad.rules)
    faults = caught.value.faults
    assert [(fault.place, fault.case, fault.problem) for fault in faults] == bad.faults
    assert all(fault.file == str(path) and fault.remedy for fault in faults)
    head, *lines = str(caught.value).splitlines()
    assert head == f"{len(faults)} fault{'s' * (len(faults) > 1)} in the data:" and len(lines) == len(faults)
    str(caught.value).encode()

    # Left out, where it is a case that is wrong: then the others are whole, and nothing of it is among them.
    if all(fault.place is not None for fault in faults):
        kept = read_cases([path], rules=bad.rules, on_bad_case="skip")
        assert kept.skipped == faults
        assert {case.case_id for case in kept.cases} <= {f"{STEM}/1", f"{STEM}/2"}
    else:
        with pytest.raises(DataError):
            read_cases([path], rules=bad.rules, on_bad_case="skip")


def test_there_are_many():
    assert len(MALFORMED) >= 60


@pytest.mark.parametrize("kind", ["two queries", "gzip cut off", "typed with a label for answer", "two lists"])
def test_through_the_command_line(kind, tmp_path):
    """One message, before anything is computed, and no traceback."""
    bad = MALFORMED[kind]
    (tmp_path / bad.name).write_bytes(bad.content if isinstance(bad.content, bytes) else dumped(bad.content))
    done = subprocess.run(
        [sys.executable, "-m", "brb_jax.main", "--model=/nowhere", f"--data={tmp_path}", f"--out={tmp_path / 'out'}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stdout == ""
    [(place, own_id, problem)] = bad.faults
    where = "" if place is None else f", case #{place} (id {own_id})"
    first, second, *rest = done.stderr.splitlines()
    assert (first, rest) == ("brb_jax: 1 fault in the data:", [])
    assert second.startswith(f"  {tmp_path / bad.name}{where}: {problem}; ")
    assert not (tmp_path / "out").exists()


def test_reading_imports_no_jax(tmp_path):
    (tmp_path / FILE).write_bytes(b"[")
    code = f"""
import sys
from brb_jax.data.reader import survey_files
assert len(survey_files([{str(tmp_path)!r}]).faults) == 1
assert 'jax' not in sys.modules and 'huggingface_hub' not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
