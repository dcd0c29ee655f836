"""The command: whole files in, whole files or a list of what is missing out."""

import gzip
import itertools
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from llm_server import Response, answer, completion, serve

from brb_jax.data.reader import read_cases
from brb_jax.generator.file import write_file
from brb_jax.generator.spec import FileSpec
from brb_jax.make_options import OptionsConfig, OptionsError, write_options

ROOT = Path(__file__).parents[2]
KEY = "sk-secret-0123456789abcdef"
SMALL = {"m": 10, "cases": 7, "operators": 3}


def without_options(source, folder, keep_metadata=True):
    """The files of `source` as question/answer files; and by case id, the options they had, by type."""
    had = {}
    folder.mkdir(exist_ok=True)
    for path in source.iterdir():
        document = json.loads(path.read_text())
        for case in document["cases"]:
            options = {option["type"]: option["text"] for option in case.pop("options")}
            had[f"{path.name.removesuffix('_que_ans.json')}/{case['id']}"] = options
            case["answer"] = options["correct"]
            if not keep_metadata:
                case["metadata"] = {}
        path = folder / path.name
        path.write_text(json.dumps(document))
    return had


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generated")
    for domain in ("words", "digits"):
        for task, knobs in (("MemoryRet", {}), ("MemoryCom", {"k": 2}), ("MemoryRev", {"edit_k": 1})):
            write_file(folder, FileSpec(domain, task, **knobs, **SMALL))
    return folder


@pytest.fixture(scope="module")
def composed(generated, tmp_path_factory):
    """One file of MemoryCom, without options or programs: every case needs an LLM."""
    folder = tmp_path_factory.mktemp("composed")
    without_options(generated, folder, keep_metadata=False)
    for path in folder.iterdir():
        if "words_MemoryCom" not in path.name:
            path.unlink()
    return folder


def config(data, out, **settings):
    return OptionsConfig(data=(str(data),), out=str(out), **settings)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_generated_questions_get_exact_options_back(generated, tmp_path):
    had = without_options(generated, tmp_path / "questions")
    lines = write_options(config(tmp_path / "questions", tmp_path / "out"))
    assert len(lines) == 6 and all(": 7 of 7 cases; " in line for line in lines)
    cases = read_cases([tmp_path / "out"]).cases
    assert {case.case_id for case in cases} == set(had) and len(cases) == 42
    answers = Counter()
    for case in cases:
        texts = {option.type: option.text for option in case.options}
        random, random_had = texts.pop("random_wrong"), had[case.case_id].pop("random_wrong")
        assert texts == had[case.case_id]
        assert random not in texts.values() and len(random) == len(random_had)
        answers[case.task, case.answer] += 1
        assert case.metadata["program"] and case.metadata["options_made_by"]["random_wrong"] == "mutation"
    assert max(answers.values()) <= 2 * 3
    for path in (tmp_path / "out").iterdir():
        metadata = json.loads(path.read_text())["metadata"]
        assert metadata["make_options"] == {"seed": 0, "llm_model": None} and metadata["generator"]


def test_files_of_another_seed_are_replaced_only_on_request(generated, tmp_path):
    without_options(generated, tmp_path / "questions")
    write_options(config(tmp_path / "questions", tmp_path / "out"))
    first = contents(tmp_path / "out")
    with pytest.raises(OSError, match=f"^{tmp_path / 'out'}/.* exists and holds something else; pass --overwrite"):
        write_options(config(tmp_path / "questions", tmp_path / "out", seed=1))
    assert contents(tmp_path / "out") == first
    write_options(config(tmp_path / "questions", tmp_path / "out", seed=1, overwrite=True))
    assert all(content != first[name] for name, content in contents(tmp_path / "out").items())


def test_equal_flags_make_equal_bytes(generated, tmp_path):
    without_options(generated, tmp_path / "questions")
    for name, settings in (("one", {}), ("two", {"llm_concurrency": 1}), ("other", {"seed": 1})):
        write_options(config(tmp_path / "questions", tmp_path / name, **settings))
    one, two, other = (contents(tmp_path / name) for name in ("one", "two", "other"))
    assert one == two and all(one[name] != other[name] for name in one)


def test_what_cannot_be_made_is_listed_and_nothing_is_written(generated, tmp_path):
    without_options(generated, tmp_path / "questions", keep_metadata=False)
    with pytest.raises(OptionsError) as caught:
        write_options(config(tmp_path / "questions", tmp_path / "out"))
    first, *listed, last = str(caught.value).splitlines()
    assert first == "28 options could not be made:" and listed[-1] == "  … and 8 more" and len(listed) == 21
    assert listed[0].startswith("  digits_MemoryCom_k2_M10/0: wrong_rule: its metadata has no program")
    assert last == "nothing was written; --on_unmade=skip writes the complete cases"
    assert not (tmp_path / "out").exists()


def test_the_complete_cases_alone(generated, tmp_path, capsys):
    without_options(generated, tmp_path / "questions")
    path = tmp_path / "questions/digits_MemoryRev_editk1_M10_que_ans.json"
    document = json.loads(path.read_text())
    for case in document["cases"][1:4]:
        case["metadata"] = {}
    path.write_text(json.dumps(document))
    for case in (bare := json.loads((tmp_path / "questions/words_MemoryCom_k2_M10_que_ans.json").read_text()))["cases"]:
        case["metadata"] = {}
    (tmp_path / "questions/words_MemoryCom_k2_M10_que_ans.json").write_text(json.dumps(bare))
    lines = write_options(config(tmp_path / "questions", tmp_path / "out", on_unmade="skip"))
    assert "10 options could not be made" in capsys.readouterr().err
    assert any("digits_MemoryRev_editk1_M10_que_ans.json: 4 of 7 cases" in line for line in lines)
    assert any(line.endswith("none of 7 cases is complete, not written") for line in lines)
    cases = read_cases([tmp_path / "out"]).cases
    assert len(cases) == 42 - 3 - 7
    revised = [case for case in cases if case.case_id.startswith("digits_MemoryRev")]
    assert [case.case_id.split("/")[1] for case in revised] == ["0", "4", "5", "6"]
    assert sorted(case.answer for case in revised) == list("ABCD")


def test_files_of_another_form_by_the_command(generated, tmp_path):
    questions, packed = tmp_path / "questions", tmp_path / "packed"
    without_options(generated, questions)
    packed.mkdir()
    for path in questions.iterdir():
        raw = json.loads(path.read_text())["cases"]
        lines = [{"nr": c["id"], "Memory": c["context"].splitlines(), "ask": c["query"]} for c in raw]
        lines = [{**line, "gold": c["answer"], "metadata": c["metadata"]} for line, c in zip(lines, raw, strict=True)]
        data = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        (packed / f"{path.name}l.gz").write_bytes(gzip.compress(data))
    write_options(config(questions, tmp_path / "plain"))
    map_ = "--field_map=id=nr,query=ask"
    done = command(f"--data={packed}/*_M10_*", map_, "--tasks=MemoryCom,MemoryRev", f"--out={tmp_path / 'out'}")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and lines[0].startswith(f"{tmp_path}/out/digits_MemoryCom_k2_M10_que_ans.json: 7 of 7 cases")
    plain = read_cases([tmp_path / "plain"]).cases
    assert read_cases([tmp_path / "out"]).cases == tuple(case for case in plain if case.task != "MemoryRet")

    one = packed / "words_MemoryRet_M10_que_ans.jsonl.gz"
    first, *others = gzip.decompress(one.read_bytes()).splitlines()
    faulty = {**json.loads(first), "choices": []}
    one.write_bytes(gzip.compress(b"\n".join([json.dumps(faulty).encode(), *others])))
    done = command(f"--data={one}", map_, f"--out={tmp_path / 'faulty'}")
    told = f"{one}, case #0 (id 0): has options already; leave the file out, or take the options out"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"make_options: 1 fault in the data:\n  {told}\n"
    done = command(f"--data={one}", map_, "--on_bad_case=skip", "--limit=5", f"--out={tmp_path / 'faulty'}")
    assert done.returncode == 0 and ": 5 of 5 cases; " in done.stdout
    assert done.stderr == f"make_options: cases left out for 1 fault in the data:\n  {told}\n"


def test_the_source_is_not_replaced(generated, tmp_path):
    without_options(generated, tmp_path / "questions")
    before = contents(tmp_path / "questions")
    with pytest.raises(OptionsError, match=r"would replace .*; name another directory"):
        write_options(config(tmp_path / "questions", tmp_path / "questions/../questions"))
    assert contents(tmp_path / "questions") == before
    for path in (tmp_path / "questions").iterdir():
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    with pytest.raises(OptionsError, match=r"would hold a file of the same name as .*\.gz; name another directory"):
        write_options(config(tmp_path / "questions", tmp_path / "questions"))


def wrong(request):
    """The query's input in another order; in yet another where that was refused for being another option already."""
    words = re.search(r"Question:\n.*: (\w+) (\w+) (\w+) (\w+) ->", request.prompt).groups()
    orders = list(itertools.permutations(words))
    return answer(" ".join(orders[13 + request.prompt.count("An earlier reply was refused")]))


def llm_config(data, folder, server, **settings):
    return config(
        data,
        folder / "out",
        llm_endpoint=server.url,
        llm_model="tiny",
        llm_cache=str(folder / "cache"),
        **settings,
    )


def test_an_llm_makes_the_rule_options_and_is_never_asked_twice(composed, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serve(wrong) as server:
        [line] = write_options(llm_config(composed, tmp_path, server))
        assert "7 of 7 cases" in line and "7 wrong_rule by llm" in line
        first, asked = contents(tmp_path / "out"), len(server.requests)
        assert asked >= 7
        assert write_options(llm_config(composed, tmp_path, server)) == [line]
        assert len(server.requests) == asked and contents(tmp_path / "out") == first
    cases = read_cases([tmp_path / "out"]).cases
    for case in cases:
        [option] = [option for option in case.options if option.type == "wrong_rule"]
        assert sorted(option.text.split()) == sorted(re.findall(r"\b[a-z]{4}\b", case.query)[-4:])
        assert case.metadata["options_made_by"]["wrong_rule"] == "llm"
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or KEY not in path.read_text()


def test_work_that_was_cut_short_goes_on_from_the_cache(composed, tmp_path):
    def three(request):
        return wrong(request) if len(server.requests) <= 3 else Response(401, b"your credit is used up")

    with serve(three) as server:
        with pytest.raises(OptionsError, match=r"401 Unauthorized: your credit is used up") as caught:
            write_options(llm_config(composed, tmp_path, server, llm_concurrency=1))
        assert f"replies so far are kept in {tmp_path / 'cache'}" in str(caught.value)
        assert not (tmp_path / "out").exists()
        asked = {request.prompt for request in server.requests[:3]}
        server.requests.clear()
        server.respond = wrong
        write_options(llm_config(composed, tmp_path, server))
        assert asked.isdisjoint(request.prompt for request in server.requests)
        assert len(server.requests) >= 4


def test_no_more_requests_at_once_than_allowed(composed, tmp_path):
    def slow(request):
        response = wrong(request)
        response.delay = 0.05
        return response

    with serve(slow) as server:
        write_options(llm_config(composed, tmp_path, server, llm_concurrency=3))
    assert 1 < server.most_under_way <= 3


HOSTILE = {
    "a path": answer("../../etc/passwd"),
    "code": answer("__import__('os').system('touch pwned')"),
    "code as it stands": completion("__import__('os').system('touch pwned')"),
    "huge": answer("x " * 400_000),
    "empty": completion(""),
    "wrong JSON": completion('{"answer": "'),
    "HTML": completion("<html></html>"),
    "NUL": answer("kite\0lark jade moss"),
    "lone surrogate": answer("kit\ud83d lark jade moss"),
    "markup": answer("</script><script>alert(1)</script>"),
    "a completion that is none": Response(body=b"<html>502</html>"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_an_endpoint_returns_is_data(name, composed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with serve(lambda request: HOSTILE[name]) as server, pytest.raises(OptionsError) as caught:
        write_options(llm_config(composed, tmp_path, server))
    assert {path.name for path in tmp_path.iterdir()} <= {"cache"}
    message = str(caught.value)
    assert len(message) < 20_000 and {c for c in message if not c.isprintable()} == {"\n"}
    for path in (tmp_path / "cache").rglob("*.json"):
        assert path.is_relative_to(tmp_path / "cache") and isinstance(json.loads(path.read_text())["reply"], str)


def test_an_llm_that_repeats_the_right_answer_makes_nothing(composed, tmp_path):
    def repeat(request):
        return answer(re.search(r"The right answer is: (.+)", request.prompt)[1])

    with serve(repeat) as server, pytest.raises(OptionsError, match="7 options could not be made") as caught:
        write_options(llm_config(composed, tmp_path, server))
    assert len(server.requests) == 7 * 3
    assert "3 replies of the LLM were refused: it repeats the option" in str(caught.value)


def command(*arguments, **variables):
    return subprocess.run(
        [sys.executable, "-m", "brb_jax.make_options", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **variables},
    )


def test_the_command(composed, generated, tmp_path):
    questions = tmp_path / "questions"
    without_options(generated, questions)
    done = command(f"--data={questions}", f"--out={tmp_path / 'out'}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 6 and "7 old_rule by program" in done.stdout

    done = command(f"--data={composed}", f"--out={tmp_path / 'none'}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("make_options: 7 options could not be made:\n  words_MemoryCom_k2_M10/0: wrong_rule:")
    assert not (tmp_path / "none").exists()

    cache = f"--llm_cache={tmp_path / 'cache'}"
    with serve(wrong) as server:
        flags = (f"--data={composed}", f"--out={tmp_path / 'llm'}", "--llm_model=tiny", cache)
        done = command(*flags, f"--llm_endpoint={server.url}", "--verbosity=1", OPENAI_API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    assert {request.headers["Authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert KEY not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--llm_model=tiny"], "--llm_endpoint and --llm_model belong together"),
        (["--llm_endpoint=http://127.0.0.1:1/v1"], "--llm_endpoint and --llm_model belong together"),
        (["--llm_endpoint=nowhere", "--llm_model=tiny"], "--llm_endpoint=nowhere is not an address"),
        (["--llm_concurrency=0"], "--llm_concurrency=0"),
        (["--on_unmade=guess"], "value should be one of <fail|skip>"),
        (["--data=/nowhere"], "1 fault in the data:\n  /nowhere: "),
        (["--limit=0"], "no case is left to make options for; nothing was written"),
        (["--m=few"], "--m: 'few' is neither a whole number nor 'none'"),
        (["--field_map=passage"], "--field_map: 'passage' is not of the form context=passage"),
        (["--prompt_template={{"], "--prompt_template: "),
        (["--out=/dev/null/out"], "/dev/null/out"),
        (["questions"], "unexpected argument 'questions'"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_mistakes_are_told_in_a_line_or_two(arguments, says, generated, tmp_path):
    without_options(generated, tmp_path / "questions")
    done = command(f"--data={tmp_path / 'questions'}", f"--out={tmp_path / 'out'}", *arguments)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("make_options: ") and says in done.stderr and done.stderr.count("\n") <= 3
    assert not (tmp_path / "out").exists()


def test_neither_jax_nor_the_llms_client_is_imported_before_it_is_needed():
    code = "import sys, brb_jax.make_options; assert not {'jax', 'httpx2', 'tenacity'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
