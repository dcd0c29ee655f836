"""Models and data that other evaluators got wrong silently, through a whole run."""

from __future__ import annotations

import json

import pytest
import random_models
from samples_of_runs import assert_scores, read_json, read_samples
from tokenizers import Tokenizer

from brb_jax.checkpoints import CheckpointError
from brb_jax.config import RunConfig
from brb_jax.data.fault import DataError
from brb_jax.run import evaluate
from brb_jax.tokens.encode import EncodingError


def input_lengths(tokenizer, raw_cases):
    """The number of inputs each case's longest option takes, BOS left out."""
    backend = Tokenizer.from_file(str(tokenizer))

    def length(case, option):
        joint = f"{case['context']}{case['query']} {option['text']}"
        return len(backend.encode(joint, add_special_tokens=False).ids) - 1

    return {case_id: max(length(case, option) for option in case["options"]) for case_id, case in raw_cases.items()}


def test_pitfall_5_an_empty_option_is_refused_before_the_model_is_opened(tmp_path):
    options = [{"label": "A", "text": "", "type": "correct"}, {"label": "B", "text": "A", "type": "random_wrong"}]
    case = {"id": 7, "context": "a -> b\n", "query": "c ->", "options": options, "answer": "A"}
    (tmp_path / "words_MemoryRet_M6_que_ans.json").write_text(json.dumps([case]))
    with pytest.raises(DataError, match=r"id 7.*empty"):
        evaluate(RunConfig(model="/nowhere", data=(str(tmp_path),), out=str(tmp_path / "out")))


def test_pitfall_12_the_limit_is_the_nested_config_s(sources, data, raw_cases, truth, tmp_path):
    lengths = input_lengths(sources["gemma3"] / "tokenizer.json", raw_cases)
    limit = sorted(lengths.values())[len(lengths) // 2]
    fits = {case_id: length + 1 <= limit for case_id, length in lengths.items()}  # BOS is an input too
    assert 0 < sum(fits.values()) < len(fits)
    model = random_models.write_gemma3(tmp_path / "model", nested_limit=limit)
    evaluate(RunConfig(model=str(model), data=(str(data),), out=str(tmp_path / "out")))
    samples = read_samples(tmp_path / "out")
    assert {s["case_id"]: s["status"] == "ok" for s in samples} == fits
    scored = {case_id: truth["gemma3"][case_id] for case_id in fits if fits[case_id]}
    assert_scores([s for s in samples if s["status"] == "ok"], scored)


def test_pitfall_13_a_tokenizer_larger_than_the_embedding_table(data, tmp_path):
    model = random_models.write_llama(tmp_path / "model", vocab_size=128)
    with pytest.raises(EncodingError, match=r"has ids up to 299, the model's embedding table only 128 rows"):
        evaluate(RunConfig(model=str(model), data=(str(data),), out=str(tmp_path / "out")))


def test_pitfall_16_a_model_with_nan_gives_errors_not_answers(data, tmp_path, capsys):
    model = random_models.write_llama(tmp_path / "model", nan_in="model.layers.1.mlp.down_proj.weight")
    evaluate(RunConfig(model=str(model), data=(str(data),), out=str(tmp_path / "out"), selection="ppl"))
    assert "n/a" in capsys.readouterr().out
    for sample in read_samples(tmp_path / "out"):
        assert (sample["status"], sample["prediction"], sample["correct"]) == ("error", None, None)
        assert "log-probability of option A is nan" in sample["note"]
        assert all(option["logprob"] is None and option["ppl"] is None for option in sample["options"])
    overall = read_json((tmp_path / "out/results.json").read_text())["overall"]
    assert overall["accuracy"] is None


def test_pitfall_35_more_layers_in_the_config_than_in_the_checkpoint(models, data, tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    for entry in models["llama"].iterdir():
        (model / entry.name).symlink_to(entry)
    described = json.loads((model / "model.json").read_text())
    described["config"] |= {"num_layers": 3, "layer_pattern": [0, 0, 0]}
    (model / "model.json").unlink()
    (model / "model.json").write_text(json.dumps(described))
    with pytest.raises(CheckpointError, match="layers/attention/key/kernel"):
        evaluate(RunConfig(model=str(model), data=(str(data),), out=str(tmp_path / "out")))


def test_pitfall_38_what_does_not_fit_is_counted_not_cut(models, sources, data, raw_cases, truth, tmp_path):
    lengths = input_lengths(sources["llama"] / "tokenizer.json", raw_cases)
    limit = sorted(lengths.values())[len(lengths) // 2]
    results = evaluate(
        RunConfig(model=str(models["llama"]), data=(str(data),), out=str(tmp_path / "out"), max_length=limit)
    )
    samples = read_samples(tmp_path / "out")
    assert {s["case_id"]: s["status"] for s in samples} == {
        case_id: "ok" if length <= limit else "overlong" for case_id, length in lengths.items()
    }
    for sample in samples:
        if sample["status"] == "overlong":
            assert f"limit {limit}" in sample["note"] and sample["prediction"] is None
    scored = [sample for sample in samples if sample["status"] == "ok"]
    assert_scores(scored, {s["case_id"]: truth["llama"][s["case_id"]] for s in scored})
    assert results["overall"]["accuracy"] == sum(sample["correct"] for sample in scored) / len(scored)


def test_what_is_cut_is_counted(models, sources, data, raw_cases, tmp_path):
    lengths = input_lengths(sources["llama"] / "tokenizer.json", raw_cases)
    limit = sorted(lengths.values())[len(lengths) // 2]
    settings = {"max_length": limit, "overlong": "truncate_left"}
    results = evaluate(RunConfig(model=str(models["llama"]), data=(str(data),), out=str(tmp_path / "out"), **settings))
    excess = {case_id: max(0, length - limit) for case_id, length in lengths.items()}
    assert {sample["case_id"]: sample["truncated"] for sample in read_samples(tmp_path / "out")} == excess
    assert results["overall"]["truncated"] == sum(cut > 0 for cut in excess.values()) > 0
    assert results["overall"]["ok"] == len(lengths)


@pytest.mark.parametrize(
    ("overlong", "advice"),
    [("skip", ", or cut contexts with --overlong=truncate_left"), ("truncate_left", "")],
)
def test_a_run_in_which_nothing_fits_says_so(overlong, advice, models, data, tmp_path, capsys):
    settings = {"max_length": 1, "overlong": overlong}
    evaluate(RunConfig(model=str(models["llama"]), data=(str(data),), out=str(tmp_path / "out"), **settings))
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "22 cases, 0 options: nothing to compute"
    assert said[1] == f"no case fits the limit of 1 tokens: raise it with --max_length{advice}"
    assert {sample["status"] for sample in read_samples(tmp_path / "out")} == {"overlong"}


@pytest.mark.parametrize(("sharing", "spared"), [("tree", True), ("none", False)])
def test_what_is_spared_is_told_where_anything_is(sharing, spared, models, data, tmp_path, capsys):
    evaluate(
        RunConfig(
            model=str(models["llama"]), data=(str(data),), out=str(tmp_path / "out"), sharing=sharing, batch_tokens=256
        )
    )
    line = capsys.readouterr().err.splitlines()[0]
    assert " slots to compute in rows of " in line and ("instead of" in line) == spared


@pytest.mark.parametrize("text", ["", "[]"])
def test_pitfall_44_an_empty_file(text, models, tmp_path):
    file = tmp_path / "words_MemoryRet_M6_que_ans.json"
    file.write_text(text)
    evaluate(RunConfig(model=str(models["llama"]), data=(str(file),), out=str(tmp_path / "out")))
    assert_nothing_counted(tmp_path / "out")


def test_pitfall_44_no_cases_asked_for(models, data, tmp_path, capsys):
    evaluate(RunConfig(model=str(models["llama"]), data=(str(data),), out=str(tmp_path), limit=0))
    assert_nothing_counted(tmp_path)
    printed = capsys.readouterr()
    assert "n/a" in printed.out and "0 cases, 0 options: nothing to compute\n" in printed.err


def assert_nothing_counted(directory):
    assert read_samples(directory) == []
    overall = read_json((directory / "results.json").read_text())["overall"]
    assert (overall["cases"], overall["accuracy"]) == (0, None)
    assert "<html" in (directory / "report.html").read_text()
