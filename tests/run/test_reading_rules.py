"""What changes the text that a model reads makes another run; what only names files otherwise does not."""

import json

import pytest

from brb_jax.config import RunConfig
from brb_jax.data.rules import Rules
from brb_jax.results.journal import JournalError
from brb_jax.run import evaluate


def test_rules_are_part_of_the_fingerprint(models, data, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for file in data.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    config = RunConfig(model=str(models["llama"]), data=(str(data),), out=str(tmp_path / "out"), limit=2)
    first = evaluate(config)
    # Other paths, the same files: the run is done already, and stays what it was.
    by_glob = RunConfig(**{**config.__dict__, "data": (f"{folder}/*_que_ans.json",)})
    assert evaluate(by_glob) == first
    for rules in (
        Rules(prompt_template="Read:\n{{ context }}{{ query }}"),
        Rules(example_template="{{ example }}"),
        Rules(field_map={"context": "context"}),
    ):
        with pytest.raises(JournalError, match="rules"):
            evaluate(RunConfig(**{**config.__dict__, "rules": rules}))
    run = json.loads((tmp_path / "out/run.json").read_text())
    assert run["settings"]["rules"] == {"field_map": {}, "example_template": None, "prompt_template": None}
    assert run["settings"]["only"]["tasks"] == []
