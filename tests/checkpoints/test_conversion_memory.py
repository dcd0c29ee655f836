"""Conversion of a checkpoint of 2 GiB: killed halfway, then done again in far less memory than the model takes."""

import json
import math
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

from brb_jax.checkpoints import CheckpointError, open_checkpoint
from brb_jax.checkpoints.streaming import parameter_shapes

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


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A Hugging Face folder of bfloat16 noise, which hardly compresses; written piece by piece."""
    folder = tmp_path_factory.mktemp("large")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    bits = np.frombuffer(np.random.default_rng(0).bytes(2**25), "<u2")
    piece = (bits & 0x80FF | 0x3F00).tobytes()  # ± 0.5 to 2
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


def test_it_is_done_again_in_the_memory_of_its_largest_parameter(killed, source):
    done = subprocess.run(
        [sys.executable, "-c", PEAK_OF_CHILD, *command(source, killed)], capture_output=True, text=True, check=True
    )
    peak = int(done.stdout.splitlines()[-1]) * 1024
    config = open_checkpoint(killed).config
    sizes = [2 * math.prod(shape) for shape in parameter_shapes(config).values()]
    print(f"peak {peak / GIB:.2f} GiB, largest {max(sizes) / GIB:.2f} GiB, all {sum(sizes) / GIB:.2f} GiB")
    assert peak <= 1.3 * max(sizes) + GIB < sum(sizes)
    assert [path.name for path in killed.parent.iterdir()] == ["out"]
