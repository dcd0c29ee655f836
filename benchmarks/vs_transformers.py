"""Speed, memory and agreement against the usual loop: transformers with torch, float32, one full pass per option.

    python benchmarks/vs_transformers.py --gguf=quickstart/smollm2-135m.gguf

Both sides score the same cases on the same machine, each in a process of its own, in turn, several rounds: on a shared
machine the two of a round meet the same conditions. Seconds count tokenisation, planning and scoring; loading and
compiling (or a first pass, for torch) are reported beside them.
"""

from __future__ import annotations

import json
import resource
import statistics
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
_CASES = flags.DEFINE_integer("cases", 3, "Cases of the workload without shared contexts.", 1)
_ROUNDS = flags.DEFINE_integer("rounds", 3, "How often each side scores everything, in turn.", 1)
_WORKLOADS = flags.DEFINE_list("workloads", ["separate", "shared"], "Which to run.")
_SIDE = flags.DEFINE_enum("side", None, ["jax", "torch"], "Internal: score --data and print JSON.")
_DATA = flags.DEFINE_string("data", None, "Internal: a benchmark file.")

Scores = list[list[float]]


def write_workload(name: str, folder: Path) -> Path:
    """One benchmark file: `separate`, 4-option cases of about 1,600 context tokens; `shared`, 16 questions on 1,200."""
    from brb_jax.generator.file import write_file
    from brb_jax.generator.spec import FileSpec

    if name == "separate":
        spec = FileSpec(domain="words", task="MemoryCom", k=2, m=93, cases=_CASES.value)
    else:
        spec = FileSpec(domain="words", task="MemoryRet", m=82, cases=16, questions_per_context=16)
    return Path(write_file(folder / name, spec))


def score_with_jax(cases: Sequence[Case]) -> tuple[Callable[[], Scores], float, dict[str, Any]]:
    import jax
    import jax.numpy as jnp

    from brb_jax.checkpoints import open_checkpoint
    from brb_jax.config import BATCH_TOKENS
    from brb_jax.run import load_model
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


def serve() -> None:
    """One side: gets ready, then scores all cases once for every line of standard input, and prints what it cost."""
    cases = read_cases([_DATA.value]).cases
    score, preparation, work = (score_with_jax if _SIDE.value == "jax" else score_with_torch)(cases)
    print(json.dumps({"preparation": preparation, **work}), flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        scores = score()
        seconds = time.perf_counter() - started
        peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps({"seconds": seconds, "scores": scores, "peak_gib": peak_gib}), flush=True)


def hide_torch() -> None:
    """As where brb_jax is installed by itself: transformers, which looks once, would import torch for a tokenizer."""
    sys.modules["torch"] = None  # type: ignore[assignment]
    from transformers.utils import is_torch_available

    if is_torch_available():
        raise RuntimeError("transformers finds torch all the same: the memory figures would count it")
    del sys.modules["torch"]


class Side:
    """A process that scores with one of the two, when asked to."""

    def __init__(self, name: str, data: Path):
        command = [sys.executable, __file__, f"--gguf={_GGUF.value}", f"--side={name}", f"--data={data}"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, text=True, **pipes)
        self.ready = self._read()
        self.rounds: list[dict[str, Any]] = []

    def score(self) -> None:
        self._process.stdin.write("again\n")
        self._process.stdin.flush()
        self.rounds.append(self._read())

    def seconds(self) -> float:
        return statistics.median(r["seconds"] for r in self.rounds)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a side ended early: {' '.join(self._process.args)}")
        return json.loads(line)


def compare(name: str, data: Path) -> None:
    torch, jax = sides = [Side("torch", data), Side("jax", data)]
    for _ in range(_ROUNDS.value):
        for side in sides:
            side.score()
    for side in sides:
        side.close()
    cases = len(jax.rounds[0]["scores"])
    print(f"\n{name}: {cases} cases, {jax.ready['option_tokens']:,} tokens one pass per option, ", end="")
    print(f"{jax.ready['slots']:,} slots as a tree; median of {_ROUNDS.value} rounds")
    print(f"{'':14}{'s/case':>10}{'s in all':>10}{'peak GiB':>10}{'loading + first pass':>22}")
    for side, label in ((torch, "transformers"), (jax, "brb_jax")):
        peak = side.rounds[-1]["peak_gib"]
        print(f"{label:14}{side.seconds() / cases:10.2f}{side.seconds():10.2f}{peak:10.2f}", end="")
        print(f"{side.ready['preparation']:20.1f} s")
    ratios = [t["seconds"] / j["seconds"] for t, j in zip(torch.rounds, jax.rounds, strict=True)]
    pairs = zip(torch.rounds[0]["scores"], jax.rounds[0]["scores"], strict=True)
    difference = max(abs(a - b) for x, y in pairs for a, b in zip(x, y, strict=True))
    each = ", ".join(f"{ratio:.1f}" for ratio in ratios)
    print(f"{statistics.median(ratios):.1f} × as fast (by round: {each}); largest difference {difference:.1e} nat")


def main(argv: list[str]) -> None:
    del argv
    if _SIDE.value:
        if _SIDE.value == "jax":
            hide_torch()
        serve()
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in _WORKLOADS.value:
            compare(name, write_workload(name, Path(folder)))


if __name__ == "__main__":
    app.run(main)
