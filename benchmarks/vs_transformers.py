"""Speed, memory and agreement against the usual loop: transformers with torch, float32, one full pass per option.

    python benchmarks/vs_transformers.py --gguf=quickstart/smollm2-135m.gguf

Both sides score the same cases on the same machine, each in a process of its own, one after the other. Seconds count
tokenisation, planning and scoring; loading and compiling (or a first pass, for torch) are reported beside them.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags

from brb_jax.data.case import Case
from brb_jax.data.prompt import render
from brb_jax.data.reader import read_cases

_GGUF = flags.DEFINE_string("gguf", "quickstart/smollm2-135m.gguf", "The model, as both sides can read it.")
_CASES = flags.DEFINE_integer("cases", 4, "Cases of the workload without shared contexts.", 1)
_WORKLOADS = flags.DEFINE_list("workloads", ["separate", "shared"], "Which to run.")
_SIDE = flags.DEFINE_enum("side", None, ["jax", "torch"], "Internal: score --data and print JSON.")
_DATA = flags.DEFINE_string("data", None, "Internal: a benchmark file.")

Scores = list[list[float]]


def write_workload(name: str, folder: Path) -> Path:
    """One benchmark file: `separate` has 4-option cases of some 1,600 context tokens, `shared` 16 questions on one."""
    from brb_jax.generator.file import write_file
    from brb_jax.generator.spec import FileSpec

    if name == "separate":
        spec = FileSpec(domain="words", task="MemoryCom", k=2, m=88, cases=_CASES.value)
    else:
        spec = FileSpec(domain="words", task="MemoryRet", m=75, cases=16, questions_per_context=16)
    return Path(write_file(folder / name, spec))


def score_with_jax(cases: Sequence[Case]) -> tuple[Callable[[], Scores], float, dict[str, Any]]:
    import jax
    import jax.numpy as jnp

    from brb_jax.checkpoints import open_checkpoint
    from brb_jax.run import BATCH_TOKENS, load_model
    from brb_jax.scoring.batches import score_batches
    from brb_jax.scoring.mesh import make_mesh
    from brb_jax.tokens.encode import encode_cases
    from brb_jax.tokens.packing import plan
    from brb_jax.tokens.tokenizer import load_tokenizer

    started = time.perf_counter()
    checkpoint = open_checkpoint(_GGUF.value)
    tokenizer = load_tokenizer(checkpoint.tokenizer_path)
    model = load_model(checkpoint, jnp.dtype("float32").name, make_mesh({}))

    def prepare():
        tokenized = encode_cases(
            cases,
            tokenizer,
            option_delimiter=" ",
            max_length=checkpoint.config.max_positions,
            vocab_size=checkpoint.config.vocab_size,
        )
        requests = [request for case in tokenized for request in case.requests]
        return requests, plan(requests, batch_tokens=BATCH_TOKENS["cpu"])

    def score() -> Scores:
        requests, batches = prepare()
        scores: Scores = [[0.0] * len(case.options) for case in cases]
        for scored in score_batches(model, batches, range(batches.num_batches)):
            for index, logprob in zip(scored.requests_R, scored.logprobs_R, strict=True):
                request = requests[index]
                scores[request.case_index][request.option_index] = float(logprob)
        return scores

    _, batches = prepare()
    first_of_bucket = {batches.batch(i).tokens_BT.shape: i for i in reversed(range(batches.num_batches))}
    for index in first_of_bucket.values():
        jax.block_until_ready(model(batches.batch(index)))
    work = {"option_tokens": batches.work.option_tokens, "slots": batches.work.slots}
    return score, time.perf_counter() - started, work


def score_with_torch(cases: Sequence[Case]) -> tuple[Callable[[], Scores], float, dict[str, Any]]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    started = time.perf_counter()
    gguf = Path(_GGUF.value)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32).eval()

    @torch.inference_mode()
    def logprob(prompt: str, continuation: str) -> float:
        encoding = tokenizer(prompt + continuation, return_offsets_mapping=True)
        ids = torch.tensor(encoding["input_ids"])
        scored_from = next(i for i, (_, end) in enumerate(encoding["offset_mapping"]) if end > len(prompt))
        logits = model(ids[None, :-1]).logits[0, scored_from - 1 :]
        logprobs = torch.log_softmax(logits.double(), -1)
        return float(logprobs.gather(-1, ids[scored_from:, None]).sum())

    def score() -> Scores:
        rendered = [render(case) for case in cases]
        return [[logprob(case.prompt, text) for text in case.continuations] for case in rendered]

    first = render(cases[0])
    logprob(first.prompt, first.continuations[0])
    return score, time.perf_counter() - started, {}


def measure() -> dict[str, Any]:
    """What one side prints: its scores, and what they cost."""
    cases = read_cases([_DATA.value]).cases
    score, preparation, work = (score_with_jax if _SIDE.value == "jax" else score_with_torch)(cases)
    started = time.perf_counter()
    scores = score()
    return {
        "seconds": time.perf_counter() - started,
        "preparation": preparation,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "scores": scores,
        **work,
    }


def hide_torch() -> None:
    """As where brb_jax is installed by itself: transformers, which looks once, would import torch for a tokenizer."""
    sys.modules["torch"] = None  # type: ignore[assignment]
    from transformers.utils import is_torch_available

    if is_torch_available():
        raise RuntimeError("transformers finds torch all the same: the memory figures would count it")
    del sys.modules["torch"]


def run_side(side: str, data: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, f"--gguf={_GGUF.value}", f"--side={side}", f"--data={data}"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return json.loads(output.splitlines()[-1])


def compare(name: str, data: Path) -> None:
    sides = {side: run_side(side, data) for side in ("torch", "jax")}
    cases = len(sides["torch"]["scores"])
    print(f"\n{name}: {cases} cases, {sides['jax']['option_tokens']:,} tokens one pass per option, ", end="")
    print(f"{sides['jax']['slots']:,} slots as a tree")
    print(f"{'':14}{'s/case':>10}{'s in all':>10}{'peak GiB':>10}{'loading + first pass':>22}")
    for side, label in (("torch", "transformers"), ("jax", "brb_jax")):
        r = sides[side]
        print(
            f"{label:14}{r['seconds'] / cases:10.2f}{r['seconds']:10.2f}{r['peak_gib']:10.2f}{r['preparation']:20.1f} s"
        )
    pairs = zip(sides["torch"]["scores"], sides["jax"]["scores"], strict=True)
    difference = max(abs(a - b) for x, y in pairs for a, b in zip(x, y, strict=True))
    print(
        f"{sides['torch']['seconds'] / sides['jax']['seconds']:.1f} × as fast; largest difference {difference:.1e} nat"
    )


def main(argv: list[str]) -> None:
    del argv
    if _SIDE.value:
        if _SIDE.value == "jax":
            hide_torch()
        print(json.dumps(measure()))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in _WORKLOADS.value:
            compare(name, write_workload(name, Path(folder)))


if __name__ == "__main__":
    app.run(main)
