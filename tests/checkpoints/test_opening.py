"""Which checkpoint a path means, and what is said where it means none."""

import shutil
from pathlib import Path

import huggingface_hub
import pytest
import tiny_models

from brb_jax.checkpoints import CheckpointError, huggingface, open_checkpoint
from brb_jax.convert import convert

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A Hugging Face folder `here/model`, with `here` the working directory."""
    here = tmp_path / "here"
    tiny_models.llama().save(here / "model")
    monkeypatch.chdir(here)
    return here / "model"


def test_relative_home_and_trailing_slash(model, monkeypatch):
    monkeypatch.setenv("HOME", str(model.parent))
    fingerprints = {open_checkpoint(path).fingerprint for path in ("model", "./model/", "~/model", str(model), model)}
    assert len(fingerprints) == 1


def test_the_folder_above(model):
    with pytest.raises(CheckpointError, match=r"it holds model/; there is a checkpoint below: .*/here/model$"):
        open_checkpoint(model.parent)


def test_the_folder_below(model):
    (model / "onnx").mkdir()
    with pytest.raises(CheckpointError, match=r"it holds nothing; the folder above is a checkpoint: .*/here/model$"):
        open_checkpoint(model / "onnx")
    with pytest.raises(CheckpointError, match=r"config.json is a file; .*the folder above is a checkpoint"):
        open_checkpoint(model / "config.json")


def test_no_such_path(model):
    with pytest.raises(CheckpointError, match=r"here/modle does not exist; .*here holds model/"):
        open_checkpoint(model.parent / "modle")
    with pytest.raises(CheckpointError, match=r"does not exist; .*/model holds config.json, .*model.safetensors"):
        open_checkpoint("model/1/2")


def test_hub_repository_without_a_network(model):
    with pytest.raises(CheckpointError, match=r"^nobody/nothing is no path here, and fetching it from .* failed: .+$"):
        open_checkpoint("nobody/nothing")


def test_hub_repository(model, monkeypatch):
    """Only the config, safetensors and the tokenizer are fetched."""
    asked = {}

    def snapshot_download(repo, allow_patterns):
        asked[repo] = allow_patterns
        return str(model)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    assert open_checkpoint("someone/model").tokenizer_path == model
    (patterns,) = asked.values()
    assert {"config.json", "*.safetensors", "tokenizer.json"} <= set(patterns)
    assert not any("bin" in pattern or pattern == "*" for pattern in patterns)


def test_hub_repository_of_pickles(model, monkeypatch):
    """They are not fetched, so what is said does not depend on what else the repository holds."""
    (model / "model.safetensors").unlink()
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda repo, allow_patterns: str(model))
    with pytest.raises(
        CheckpointError, match=r"^someone/old has no safetensors on the .* are pickles, .*'someone/old'"
    ):
        open_checkpoint("someone/old")


def test_pickles_beside_a_checkpoint(model):
    """The checkpoint is what is pointed out."""
    (model.parent / "optimizer.pt").write_text("")
    with pytest.raises(CheckpointError, match=r"it holds model/, optimizer.pt; there is a checkpoint below: .*/model$"):
        open_checkpoint(model.parent)
    (model / "optimizer.pt").write_text("")
    with pytest.raises(CheckpointError, match=r"optimizer.pt is a file; .*the folder above is a checkpoint"):
        open_checkpoint(model / "optimizer.pt")


def test_folder_of_something_else(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(CheckpointError, match=r"is not a converted directory, .*: it holds notes.txt"):
        open_checkpoint(tmp_path)


def test_several_ggufs(tmp_path):
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(CheckpointError, match=r"holds 2 GGUF files; name one: a.gguf, b.gguf"):
        open_checkpoint(tmp_path)


def test_unknown_architecture(model):
    config = (model / "config.json").read_text().replace("LlamaForCausalLM", "MambaForCausalLM")
    (model / "config.json").write_text(config)
    with pytest.raises(CheckpointError, match="architecture MambaForCausalLM is not supported, only LlamaForCausalLM"):
        open_checkpoint(model)


def test_converted_params_and_their_parent(model, tmp_path):
    convert(str(model), str(tmp_path / "converted"))
    assert open_checkpoint(tmp_path / "converted").source == "converted from huggingface"
    with pytest.raises(CheckpointError, match="the folder above is a checkpoint"):
        open_checkpoint(tmp_path / "converted" / "params")


def test_unfinished_conversion(model, tmp_path):
    out = tmp_path / "converted"
    convert(str(model), str(out))
    unfinished = shutil.copytree(out, tmp_path / "converted.unfinished")
    with pytest.raises(CheckpointError, match=r"unfinished conversion; run brb_jax.convert again"):
        open_checkpoint(unfinished)
    (unfinished / "model.json").unlink()
    with pytest.raises(CheckpointError, match=r"unfinished conversion; run brb_jax.convert again"):
        open_checkpoint(unfinished)


def test_config_and_tokenizer_of_a_hub_repository_without_its_weights(model, tmp_path, monkeypatch):
    """A hub that hands out what is asked for, into an empty cache."""

    def snapshot_download(repo, allow_patterns):
        (tmp_path / "cache").mkdir()
        for file in model.iterdir():
            if any(file.match(pattern) for pattern in allow_patterns):
                shutil.copy(file, tmp_path / "cache")
        return str(tmp_path / "cache")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    folder = huggingface.download("someone/model", weights=False)
    assert (folder / "config.json").exists() and not list(folder.glob("*.safetensors"))


def test_a_checkpoint_of_another_framework_with_a_config_in_its_folder(tmp_path):
    folder = FIXTURES / "maxtext/llama-3.1-train-state"
    with pytest.raises(CheckpointError, match=rf"{folder} is an Orbax .* --source={folder} --hf_config={folder} --out"):
        open_checkpoint(folder)


def test_paths_that_begin_like_none(model, tmp_path):
    for call in (
        lambda: open_checkpoint("foo://x/y"),
        lambda: convert("foo://x/y", str(tmp_path / "out")),
        lambda: convert(str(model), "foo://x/y"),
        lambda: convert("foo://x/y", str(tmp_path / "out"), hf_config=str(model)),
    ):
        with pytest.raises(CheckpointError, match=r"foo://x/y is no path that can be read"):
            call()


def test_a_setting_of_maxtext_that_is_named_twice(tmp_path):
    folder = FIXTURES / "maxtext/llama-3.1-train-state"
    settings = ["rope_type=default", "rope_type=llama3.1"]
    with pytest.raises(CheckpointError, match=r"rope_type=default,rope_type=llama3.1 names a setting twice"):
        convert(str(folder), str(tmp_path / "out"), hf_config=str(folder), maxtext_settings=settings)


def test_a_conversion_without_a_tokenizer_says_so(model, tmp_path):
    (model / "tokenizer.json").write_text("{}")
    assert "tokenizer" not in convert(str(model), str(tmp_path / "with"))
    (model / "tokenizer.json").unlink()
    said = convert(str(model), str(tmp_path / "without"))
    assert said.endswith(f"without a tokenizer, since {model} has none: put tokenizer.json into {tmp_path / 'without'}")
