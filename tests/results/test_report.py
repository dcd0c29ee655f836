import html.parser
import json
import math
import re

import pytest
from result_cases import make_case, make_sample

from brb_jax.results.metrics import summarise
from brb_jax.results.report import MAX_CASES, PROMPT_TAIL, choose_cases, prompt_tail, write_report

HOSTILE = '</script><script>alert(1)</script><b>&amp; "quoted" \u2028 北京 <!--'
RUN = {
    "written": "2030-01-02T03:04:05+00:00",
    "settings": {
        "model": "tiny <model>",
        "data": ("bench/a", "bench/b"),
        "selection": "logprob",
        "dtype": None,
        "param_dtype": "float32",
        "activation_dtype": None,
        "boundary": "cover",
        "bos": "auto",
        "overlong": "skip",
    },
    "devices": {"kind": "cpu", "count": 2},
}


class Page(html.parser.HTMLParser):
    """What a browser takes for elements, for addresses to load, for scripts and for text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.loads, self.scripts, self.words = [], [], [], []
        self.in_script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loads += [value for name, value in attrs if name in ("src", "href", "data", "action")]
        self.in_script = tag == "script"
        if self.in_script:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.in_script = False

    def handle_data(self, data):
        if self.in_script:
            self.scripts[-1] += data
        else:
            self.words += data.split()

    @property
    def text(self):
        return " ".join(self.words)

    @property
    def cases(self):
        return json.loads(self.scripts[0])


def written(tmp_path, samples, run=RUN, references=None, tail="zorp: a ->"):
    path = tmp_path / "report.html"
    tails = {sample.case_id: tail for sample in samples}
    write_report(path, summarise(samples), samples, run, tails, references)
    return path.read_text()


def numbered(outcomes):
    scores = {
        "correct": [-1.0, -2.0, -3.0],
        "wrong": [-2.0, -1.0, -3.0],
        "overlong": None,
        "error": [math.nan, -1.0, -2.0],
    }
    return [make_sample(scores[outcome], case_id=f"f/{i}") for i, outcome in enumerate(outcomes)]


def test_the_page_needs_nothing_but_itself(tmp_path):
    text = written(tmp_path, numbered(["correct", "wrong"]))
    page = Page(text)
    assert page.loads == []
    assert not re.search(r"https?:|@import|url\(|<link|<img|fetch\(|import\(", text)
    assert {"link", "img", "iframe"}.isdisjoint(page.tags)


def test_the_page_says_what_the_results_hold(tmp_path):
    samples = numbered(["correct"] * 8 + ["wrong"] * 2 + ["overlong"])
    text = Page(written(tmp_path, samples)).text
    assert "tiny <model>" in text and "80.0 %" in text and "49.0 … 94.3" in text and "33.3 %" in text
    assert "data bench/a, bench/b" in text and "devices 2 × cpu" in text and "written 2030-01-02" in text
    assert "1 overlong" in text and "All 11 cases." in text


def test_the_page_says_how_many_cases_were_cut(tmp_path):
    samples = [make_sample([-1.0, -2.0, -3.0], case_id=f"f/{i}", truncated=i) for i in range(3)]
    assert "excluded: none · 2 truncated" in Page(written(tmp_path, samples)).text
    assert "excluded: none ·" not in Page(written(tmp_path, samples[:1])).text


def test_text_of_cases_and_settings_stays_text(tmp_path):
    sample = make_sample([-1.0, -2.0, -3.0], texts=[HOSTILE, "b", "c"], case_id=f"f/{HOSTILE}")
    page = Page(written(tmp_path, [sample], run=RUN | {"note": f"</pre>{HOSTILE}"}, tail=HOSTILE))
    plain = Page(written(tmp_path, numbered(["correct"]), run=RUN | {"note": "plain"}))
    assert page.tags == plain.tags
    (case,) = page.cases
    assert case["options"][0]["text"] == HOSTILE and case["tail"] == HOSTILE
    assert "alert(1)" not in page.scripts[1]


def test_the_embedded_cases_are_strict_json_in_order(tmp_path):
    outcomes = ["correct", "error", "wrong", "overlong", "correct"]
    cases = Page(written(tmp_path, numbered(outcomes))).cases
    assert [case["outcome"] for case in cases] == outcomes
    assert [case["case_id"] for case in cases] == [f"f/{i}" for i in range(5)]
    assert cases[1]["options"][0]["logprob"] is None
    assert cases[0]["options"][1]["ppl"] == math.exp(2)


@pytest.mark.parametrize("outcomes", [[], ["overlong"], ["error"]])
def test_where_nothing_counts_the_page_says_so(tmp_path, outcomes):
    page = Page(written(tmp_path, numbered(outcomes)))
    assert len(page.cases) == len(outcomes)
    assert "Accuracy n/a n/a · chance n/a" in page.text and "No case was counted." in page.text


def test_references_stand_beside_the_model(tmp_path):
    right, wrong = summarise(numbered(["correct"] * 4)), summarise(numbered(["wrong"] * 4))
    samples = numbered(["correct", "wrong", "wrong", "wrong"])
    text = Page(written(tmp_path, samples, references={"baseline:solver": right, "baseline:nearest": wrong})).text
    assert "tiny <model> 25.0 % 25.0 % baseline:solver 100.0 % 100.0 % baseline:nearest 0.0 % 0.0 %" in text


def test_equal_runs_make_equal_pages(tmp_path):
    samples = numbered(["correct", "wrong", "error"])
    assert written(tmp_path, samples) == written(tmp_path, samples)


def test_a_large_run_shows_what_went_wrong_first_and_says_so(tmp_path):
    outcomes = ["correct", "wrong", "correct"] * 900
    page = Page(written(tmp_path, numbered(outcomes)))
    assert len(page.cases) == MAX_CASES
    assert sum(case["outcome"] == "wrong" for case in page.cases) == 900
    assert f"This page holds {MAX_CASES} of 2700 cases; left out are 700 correct." in page.text


def test_cases_are_chosen_by_outcome_and_then_evenly():
    samples = numbered(["correct"] * 6 + ["wrong"] * 2 + ["overlong", "error"])
    ids = [sample.case_id for sample in choose_cases(samples, limit=6)]
    assert ids == ["f/0", "f/3", "f/6", "f/7", "f/8", "f/9"]
    assert choose_cases(samples, limit=10) == samples
    assert [s.case_id for s in choose_cases(samples, limit=2)] == ["f/6", "f/9"]


def test_prompt_tail_is_the_end_of_the_prompt():
    for length in (0, 3, PROMPT_TAIL - 4, PROMPT_TAIL, 5 * PROMPT_TAIL):
        case = make_case(context="".join(str(i % 10) for i in range(length)))
        assert prompt_tail(case) == (case.context + case.query)[-PROMPT_TAIL:]
