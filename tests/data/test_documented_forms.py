"""docs/data.md lists the names that the reader takes, and its examples of flags do what it says."""

import json
import re
import shlex
from pathlib import Path

from brb_jax.data.fields import CASE_ALIASES, EXAMPLE_ALIASES, NAMES, OPTION_ALIASES
from brb_jax.data.reader import read_cases
from brb_jax.data.rules import Rules

PAGE = (Path(__file__).parents[2] / "docs/data.md").read_text("utf-8")
OPTIONS = {"correct": "a", "retrieval_similar": "b", "random_wrong": "c"}


def test_table_of_names():
    rows = re.findall(r"^\| `(\w+)`(?: of an \w+)? \| ((?:`\w+`(?:, )?)+) \|$", PAGE, re.MULTILINE)
    documented = [(name, (name, *re.findall(r"`(\w+)`", others))) for name, others in rows]
    assert documented == [*CASE_ALIASES.items(), *OPTION_ALIASES.items(), *EXAMPLE_ALIASES.items()]
    assert [name for name, _ in documented] == list(NAMES[1:]) and NAMES[0] == "cases"


def flag(name):
    [text] = re.findall(rf"^`(--{name}='.*')`", PAGE, re.MULTILINE)
    [word] = shlex.split(text)
    return word.partition("=")[2]


def read(tmp_path, raw, **rules):
    (tmp_path / "words_MemoryRet_M2_que_ans.json").write_text(json.dumps([{"id": 1, "options": OPTIONS, **raw}]))
    [case] = read_cases([tmp_path], rules=Rules(**rules)).cases
    return case.context, case.query


def test_templates(tmp_path):
    examples = [{"op": "zorp", "input": "amber", "output": "rebma"}, {"op": "miq", "input": "jade", "output": "ja"}]
    raw = {"examples": examples, "query": "zorp: lark ->"}
    lines = "zorp: amber -> rebma\nmiq: jade -> ja\n"
    assert read(tmp_path, raw, example_template=flag("example_template")) == (lines, "zorp: lark ->")
    lines = "amber -> rebma\njade -> ja\n"
    raw = {"examples": [{k: e[k] for k in ("input", "output")} for e in examples], "query": "lark"}
    assert read(tmp_path, raw, prompt_template=flag("prompt_template")) == (lines, "lark ->")
