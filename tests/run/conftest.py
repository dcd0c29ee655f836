"""Two tiny random models, small benchmark files, and what the models' option scores are in truth."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import pytest
import random_models
from dense_decoder import DenseDecoder, option_scores

from brb_jax.convert import convert
from brb_jax.generator.file import write_file
from brb_jax.generator.spec import FileSpec
from brb_jax.scoring import mesh as meshes


@pytest.fixture(scope="session")
def sources(tmp_path_factory) -> dict[str, Path]:
    """The models as Hugging Face directories, by family."""
    folder = tmp_path_factory.mktemp("sources")
    return {
        "llama": random_models.write_llama(folder / "llama"),
        "gemma3": random_models.write_gemma3(folder / "gemma3"),
    }


@pytest.fixture(scope="session")
def models(sources, tmp_path_factory) -> dict[str, Path]:
    """The same models, converted."""
    folder = tmp_path_factory.mktemp("models")
    for family, source in sources.items():
        convert(str(source), str(folder / family))
    return {family: folder / family for family in sources}


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    """22 cases of all tasks and both domains, of which some share a context."""
    folder = tmp_path_factory.mktemp("data")
    settings = {"m": 6, "questions_per_context": 2, "operators": 3, "revision": "both", "seed": 0}
    for domain, task, knobs in (
        ("words", "MemoryRet", {"k": None, "edit_k": None, "cases": 4}),
        ("digits", "MemoryRev", {"k": None, "edit_k": 1, "cases": 8}),
        ("digits", "MemoryCom", {"k": 2, "edit_k": None, "cases": 10}),
    ):
        write_file(folder, FileSpec(domain=domain, task=task, **knobs, **settings))
    return folder


@pytest.fixture(scope="session")
def raw_cases(data) -> dict[str, dict]:
    """The files' cases as JSON has them, by `case_id`, in dataset order."""
    return {
        f"{file.name.removesuffix('_que_ans.json')}/{case['id']}": case
        for file in sorted(data.glob("*_que_ans.json"))
        for case in json.loads(file.read_text())["cases"]
    }


@pytest.fixture(scope="session")
def truth(sources, raw_cases) -> dict[str, dict[str, list[float]]]:
    """By family and `case_id`: the options' log-probabilities by the dense decoder."""
    return {
        family: {
            case_id: option_scores(DenseDecoder(source), source / "tokenizer.json", case, bos=family == "gemma3")
            for case_id, case in raw_cases.items()
        }
        for family, source in sources.items()
    }


@pytest.fixture(scope="session")
def compilation_cache(tmp_path_factory) -> str:
    return f"--compilation_cache={tmp_path_factory.mktemp('compiled')}"


@pytest.fixture
def on_devices(monkeypatch):
    """Call it with a number: meshes are then made of so many of the eight devices."""

    def use(count: int) -> None:
        devices = jax.devices()[:count]

        def make_mesh(request):
            sizes = meshes.mesh_sizes(request, count)
            types = (jax.sharding.AxisType.Auto,) * len(sizes)
            return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=types, devices=devices)

        monkeypatch.setattr(meshes, "make_mesh", make_mesh)

    return use
