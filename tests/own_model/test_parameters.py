"""Where a model of one's own and its parameters come from, and every way they may not be there."""

from __future__ import annotations

import dataclasses
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import orbax.checkpoint.experimental.v1 as ocp_v1
import pytest
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec
from toy_models import D, V, parameters, toy

from brb_jax.checkpoints import CheckpointError
from brb_jax.checkpoints import own_parameters as own_parameters_module
from brb_jax.checkpoints.orbax_tree import find_tree
from brb_jax.checkpoints.own_parameters import open_own_model
from brb_jax.models.own_model import OwnModel, OwnModelError, OwnModelSource, build_own_model, names_own_model
from brb_jax.scoring.mesh import make_mesh


def opened(own: OwnModel, monkeypatch, mesh=None):
    """The model as if a module had built it."""
    source = OwnModelSource("team.model:build", "team/model.py", "0" * 64)
    monkeypatch.setattr(own_parameters_module, "build_own_model", lambda name, mesh: (own, source))
    return open_own_model("team.model:build", mesh or make_mesh({}))


def shapes(tree):
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The toy's parameters beside an optimizer's state: below `steps`, as a manager keeps them, and by the v1 API."""
    folder = tmp_path_factory.mktemp("orbax")
    state = {
        "model": {"params": parameters()},
        "opt_state": [{"mu": jax.tree.map(np.zeros_like, parameters())}, None],
        "step": 7,
    }
    with ocp.CheckpointManager(folder / "steps") as manager:
        for step in (9, 10):
            manager.save(step, args=ocp.args.StandardSave(state | {"step": step}))
    (folder / "steps" / "20.orbax-checkpoint-tmp-0").mkdir()
    ocp_v1.save(folder / "v1", state)
    return folder


@pytest.mark.parametrize("mesh", [{"data": 8}, {"fsdp": 2, "tensor": 4}, {"data": 2, "tensor": 4}], ids=str)
@pytest.mark.parametrize("where", ["steps", "steps/9", "steps/10/default", "v1", "v1/state"])
def test_restored_to_the_shardings_of_the_rules(where, mesh, saved, monkeypatch):
    own = toy(
        "plain",
        parameters=jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jnp.bfloat16), parameters()),
        checkpoint=saved / where,
        checkpoint_key="model/params",
        sharding=[
            ("^(query|key)$", PartitionSpec("fsdp", "tensor")),
            ("query|value", PartitionSpec(("fsdp", "tensor"))),
            ("embedding", PartitionSpec(None, "data")),
        ],
    )
    device_mesh = make_mesh(mesh)
    loaded = opened(own, monkeypatch, device_mesh).load(device_mesh)
    for name, value in parameters().items():
        np.testing.assert_array_equal(loaded[name], value.astype(jnp.bfloat16), err_msg=name)
    specs = {
        "query": PartitionSpec("fsdp", "tensor"),
        "key": PartitionSpec("fsdp", "tensor"),
        "value": PartitionSpec(("fsdp", "tensor")),
        "embedding": PartitionSpec(None, "data"),
        "position": PartitionSpec(),
    }
    for name, spec in specs.items():
        assert loaded[name].sharding.is_equivalent_to(NamedSharding(device_mesh, spec), 2), name


def test_an_axis_that_the_mesh_does_not_divide_is_whole(monkeypatch):
    mesh = make_mesh({"data": 1, "fsdp": 1, "tensor": 8})
    own = toy("plain", parameters={"a": np.ones((12, 16), np.float32)}, sharding=[("a", PartitionSpec("tensor", None))])
    assert opened(own, monkeypatch, mesh).load(mesh)["a"].sharding.is_fully_replicated


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"extra": np.zeros(3, np.float32)}, "extra is not in the checkpoint"),
        ({"query": None}, "query is in the checkpoint, but not in the model"),
        (
            {"key": np.zeros((D, 3), np.float32)},
            r"key has shape \(16, 16\) in the checkpoint and \(16, 3\) in the model",
        ),
    ],
)
def test_pitfall_35_parameters_that_do_not_match(change, says, saved, monkeypatch):
    changed = {name: value for name, value in (parameters() | change).items() if value is not None}
    own = toy("plain", parameters=shapes(changed), checkpoint=saved / "steps", checkpoint_key="model/params")
    with pytest.raises(CheckpointError, match=says):
        opened(own, monkeypatch).load(make_mesh({}))


@pytest.mark.parametrize(
    ("where", "key", "says"),
    [
        ("nowhere", "", "nowhere is not a directory"),
        ("", "", "no Orbax checkpoint of a tree .* it holds steps, v1"),
        ("steps/20.orbax-checkpoint-tmp-0", "", "is an unfinished checkpoint"),
        ("steps", "params", "has nothing at 'params' .checkpoint_key.; there are model/params, opt_state/0, step"),
    ],
)
def test_checkpoints_that_are_not_there(where, key, says, saved, monkeypatch):
    own = toy("plain", parameters=shapes(parameters()), checkpoint=saved / where, checkpoint_key=key)
    with pytest.raises(CheckpointError, match=says):
        opened(own, monkeypatch).load(make_mesh({}))


def test_pitfall_34_the_latest_finished_step(saved):
    assert find_tree(saved / "steps") == find_tree(saved / "steps/10") == find_tree(saved / "steps/10/default")


def test_nnx_states_are_found_with_and_without_the_value_level(tmp_path, monkeypatch):
    """As `nnx.state` and as `nnx.to_pure_dict` of it, saved either way."""
    _, state = nnx.split(nnx.Linear(3, 5, rngs=nnx.Rngs(0)), nnx.Param)
    trees = {"state": state, "dict": nnx.to_pure_dict(state)}
    with ocp.StandardCheckpointer() as checkpointer:
        for name, tree in trees.items():
            checkpointer.save(tmp_path / name, tree)
    for saved_as in trees:
        for asked in trees.values():
            own = toy("plain", parameters=shapes(asked), checkpoint=tmp_path / saved_as)
            loaded = opened(own, monkeypatch).load(make_mesh({}))
            assert jax.tree.structure(loaded) == jax.tree.structure(asked)
            jax.tree.map(np.testing.assert_array_equal, loaded, asked)


def test_a_fingerprint_of_what_the_scores_depend_on(monkeypatch):
    before = opened(toy("plain"), monkeypatch)
    changed = parameters()
    changed["query"][-1, -1] += 1
    other = opened(toy("plain", parameters=changed), monkeypatch)
    assert before.fingerprint == opened(toy("plain"), monkeypatch).fingerprint != other.fingerprint
    assert before.fingerprint.startswith(f"team.model:build (plain) source sha256:{'0' * 64} parameters sha256:")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"parameters": {"a": 3.0}}, "the parameter a is a float, not an array"),
        ({"parameters": {"a": {"b": jax.ShapeDtypeStruct((3,), jnp.float32)}}}, "the parameter a/b is only a shape"),
        ({"parameters": {"a": jax.eval_shape(lambda: jax.random.key(0))}}, "the parameter a has dtype key<fry>, not"),
        (
            {"sharding": [("query", PartitionSpec("model"))]},
            "names the axis 'model'; the mesh has data, fsdp, expert, tensor",
        ),
        ({"sharding": [("query", PartitionSpec(None, None, "data"))]}, "is for more axes than query has"),
    ],
    ids=str,
)
def test_parameters_and_rules_that_cannot_be(changes, says, monkeypatch):
    with pytest.raises(OwnModelError, match=f"--model=team.model:build: .*{says}"):
        opened(toy("plain", **changes), monkeypatch).load(make_mesh({}))


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes `team_model.py` into the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "team_model", raising=False)

    def write(source: str) -> None:
        header = "from brb_jax.models.own_model import OwnModel\n"
        (tmp_path / "team_model.py").write_text(header + textwrap.dedent(source))

    yield write
    sys.modules.pop("team_model", None)


SOUND = {"tokenizer": "t", "vocab_size": V, "max_length": 8, "parameters": {}, "plain": print}


def declared(**changes) -> str:
    fields = ", ".join(
        f"{name}={value.__name__ if value is print else repr(value)}" for name, value in (SOUND | changes).items()
    )
    return f"def build():\n    return OwnModel({fields})\n"


@pytest.mark.parametrize("arguments", ["", "mesh"])
def test_a_module_in_the_working_directory(arguments, module, tmp_path):
    module(declared().replace("build()", f"build({arguments})"))
    mesh = make_mesh({})
    own, source = build_own_model("team_model:build", mesh)
    assert own.signature == "plain" and own.plain is print
    assert source.file == str(tmp_path / "team_model.py") and len(source.sha256) == 64


def test_a_builder_that_needs_the_mesh(module):
    module("def build(mesh):\n    raise ValueError(dict(mesh.shape))\n")
    with pytest.raises(OwnModelError, match=r"build\(\) failed: ValueError: {'data': 8, .*\(.*team_model.py, line 3\)"):
        build_own_model("team_model:build", make_mesh({}))


def test_the_most_capable_function_is_used():
    own = toy("packed", plain=print)
    assert own.signature == "packed"
    assert dataclasses.replace(own, tree=print).signature == "tree"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def other(): pass", "team_model.py has no function 'build'"),
        ("build = 3", "has no function 'build'"),
        (
            "import nowhere_to_be_found",
            "importing it failed: ModuleNotFoundError: No module named 'nowhere_to_be_found'",
        ),
        ("1 / 0", r"importing it failed: ZeroDivisionError: division by zero \(.*team_model.py, line 2\)"),
        ("def build(size): pass", "build.. failed: TypeError: .*'size'"),
        ("def build(): return {}", "returned a dict; it must return a brb_jax.models.own_model.OwnModel"),
        (declared(plain=None), "none of the functions tree, packed and plain"),
        (declared(plain="print"), "plain is a str, not a function"),
        (declared(vocab_size=0), "vocab_size is 0; it must be a positive whole number"),
        (declared(max_length=1e30), r"max_length is 1e\+30; it must be"),
        (declared(checkpoint_key="params"), "there is a checkpoint_key, 'params', but no checkpoint"),
        (declared(sharding=["query"]), "sharding: 'query' is not a pair"),
        (declared(sharding=[("(", None)]), "is not a pair of a regular expression"),
        (declared(sharding=[("query", "data")]), "'data' for 'query' is not a jax.sharding.PartitionSpec"),
        (declared(nonsense=1), "build.. failed: TypeError: .*'nonsense'"),
    ],
)
def test_modules_that_are_wrong(source, says, module):
    module(source)
    with pytest.raises(OwnModelError, match=says) as refused:
        build_own_model("team_model:build", make_mesh({}))
    assert str(refused.value).startswith("--model=team_model:build: ") and "\n" not in str(refused.value)


def test_modules_that_are_not_there(module):
    with pytest.raises(OwnModelError, match=r"there is no module 'team_model' in .* or among the installed ones"):
        build_own_model("team_model:build", make_mesh({}))


def test_names_and_paths_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert names_own_model("a:build") and names_own_model("team.models.llama:build_8b")
    assert not any(map(names_own_model, ["gs://bucket/a", "owner/name", "model.gguf", "~/a", "/tmp/a:b", "a:b/c", "a"]))
    (tmp_path / "a:build").mkdir()
    assert not names_own_model("a:build")
