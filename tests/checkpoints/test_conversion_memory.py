"""Conversion of checkpoints of 2 GiB in far less memory than the model takes; one is killed halfway before."""

import json
import math
import signal
import struct
import subprocess
import sys
import time

import jax
import ml_dtypes
import numpy as np
import orbax.checkpoint.experimental.v1 as ocp
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from brb_jax.checkpoints import CheckpointError, open_checkpoint
from brb_jax.checkpoints.frameworks.gemma import GEMMA_LAYOUTS
from brb_jax.checkpoints.frameworks.maxtext import MAXTEXT
from brb_jax.checkpoints.streaming import nest, parameter_shapes
from brb_jax.models.families import family_of

GIB = 2**30
# GPT-2 stores its matrices as they are kept, which saves the time of transposing them.
D, F, LAYERS, VOCAB = 4096, 20480, 5, 512
CONFIG = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "n_embd": D,
    "n_inner": F,
    "n_layer": LAYERS,
    "n_head": 32,
    "n_positions": 64,
    "vocab_size": VOCAB,
}
SHAPES = {"wte.weight": (VOCAB, D), "wpe.weight": (64, D), "ln_f.weight": (D,), "ln_f.bias": (D,)}
for layer in range(LAYERS):
    for norm in ("ln_1", "ln_2"):
        SHAPES |= {f"h.{layer}.{norm}.weight": (D,), f"h.{layer}.{norm}.bias": (D,)}
    for name, shape in (
        ("attn.c_attn", (D, 3 * D)),
        ("attn.c_proj", (D, D)),
        ("mlp.c_fc", (D, F)),
        ("mlp.c_proj", (F, D)),
    ):
        SHAPES |= {f"h.{layer}.{name}.weight": shape, f"h.{layer}.{name}.bias": shape[1:]}
SHARDS = 3

# Resident memory of the child alone: a process starts with the mark of the one that it was forked from, which here is
# this small one and not the tests'.
PEAK_OF_CHILD = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)


# bfloat16 noise, ± 0.5 to 2, which hardly compresses.
PIECE = (np.frombuffer(np.random.default_rng(0).bytes(2**25), "<u2") & 0x80FF | 0x3F00).view(ml_dtypes.bfloat16)

# Its layers are stored as one array, by MaxText scanned, by Gemma stacked.
STACKED = {
    "hidden_size": D,
    "intermediate_size": F,
    "num_hidden_layers": 4,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": VOCAB,
    "max_position_embeddings": 64,
}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A Hugging Face folder, written piece by piece."""
    folder = tmp_path_factory.mktemp("large")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    piece = PIECE.tobytes()
    places = {name: f"model-{i % SHARDS + 1:05}-of-{SHARDS:05}.safetensors" for i, name in enumerate(SHAPES)}
    for file in set(places.values()):
        header, end = {}, 0
        for name in (name for name, place in places.items() if place == file):
            start, end = end, end + 2 * math.prod(SHAPES[name])
            header[name] = {"dtype": "BF16", "shape": SHAPES[name], "data_offsets": [start, end]}
        text = json.dumps(header).encode()
        with (folder / file).open("wb") as stream:
            stream.write(struct.pack("<Q", len(text)) + text)
            while end > 0:
                end -= stream.write(piece[:end])
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    assert sum(path.stat().st_size for path in folder.glob("*.safetensors")) > 2 * GIB
    return folder


def command(source, out):
    return [sys.executable, "-m", "brb_jax.convert", f"--source={source}", f"--out={out}", "--dtype=bfloat16"]


def written(folder):
    """Bytes in a folder that another process writes; 0 if that renames something just now."""
    try:
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    except FileNotFoundError:
        return 0


@pytest.fixture(scope="module")
def killed(source, tmp_path_factory):
    """Where a conversion was to go that was killed in the middle of the first large parameter, or soon after."""
    out = tmp_path_factory.mktemp("killed") / "out"
    process = subprocess.Popen(command(source, out), stdout=subprocess.DEVNULL)
    unfinished = out.with_name("out.unfinished")
    while written(unfinished) < GIB // 4:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    return out


def test_what_a_killed_conversion_leaves_does_not_open(killed):
    unfinished = killed.with_name("out.unfinished")
    left = [path for path in unfinished.rglob("*") if path.is_dir()]
    assert len(left) > 3
    for path in (unfinished, *left):
        with pytest.raises(CheckpointError, match=rf"^{unfinished} is an unfinished conversion; run brb_jax.convert"):
            open_checkpoint(path)
    with pytest.raises(
        CheckpointError, match=rf"{killed} does not exist, but {unfinished} is an unfinished conversion"
    ):
        open_checkpoint(killed)


def assert_memory_of_the_largest_parameter(command, out):
    done = subprocess.run([sys.executable, "-c", PEAK_OF_CHILD, *command], capture_output=True, text=True, check=True)
    peak = int(done.stdout.splitlines()[-1]) * 1024
    sizes = [2 * math.prod(shape) for shape in parameter_shapes(open_checkpoint(out).config).values()]
    print(f"peak {peak / GIB:.2f} GiB, largest {max(sizes) / GIB:.2f} GiB, all {sum(sizes) / GIB:.2f} GiB")
    assert peak <= 1.3 * max(sizes) + GIB < sum(sizes)


def test_it_is_done_again_in_the_memory_of_its_largest_parameter(killed, source):
    assert_memory_of_the_largest_parameter(command(source, killed), killed)
    assert [path.name for path in killed.parent.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("framework", "family", "root", "first_layer", "settings"),
    [
        (MAXTEXT, "llama", "params/params/", "decoder/layers/", {"rope_type": "default"}),
        (GEMMA_LAYOUTS[1], "gemma", "transformer/", "stacked_layers/attention_type_0/", {}),
    ],
    ids=["MaxText, scanned", "Gemma, stacked"],
)
def test_of_layers_stored_as_one_array(framework, family, root, first_layer, settings, tmp_path):
    """As eight devices saved them, in chunks of 64 MiB at most; a device's share of the largest array is 160 MiB."""
    hf = {**STACKED, "architectures": [f"{family.capitalize()}ForCausalLM"], "model_type": family}
    (tmp_path / "config.json").write_text(json.dumps(hf))
    config = family_of(hf).config_from_hf(hf)
    mesh = Mesh(np.array(jax.devices()), ("fsdp",))
    context = ocp.Context()
    context.array.saving.storage_options.chunk_byte_size = 2**26
    for tensor in framework.table(config, {first_layer: ()}, **settings):
        shape = tensor.source_shape(config)
        largest = shape.index(max(shape))
        sharding = NamedSharding(mesh, PartitionSpec(*[None] * largest, "fsdp"))
        shard = np.resize(PIECE, sharding.shard_shape(shape))
        array = jax.make_array_from_callback(shape, sharding, lambda _, shard=shard: shard)
        (name,) = tensor.names(config)
        if tensor.piece == 0:
            with context:
                ocp.partial.save(tmp_path / "source", nest({root + name: array}))
    ocp.partial.finalize(tmp_path / "source")
    flags = [f"--hf_config={tmp_path}", *(f"--maxtext_settings={name}={value}" for name, value in settings.items())]
    out = tmp_path / "out"
    assert_memory_of_the_largest_parameter([*command(tmp_path / "source", out), *flags], out)
