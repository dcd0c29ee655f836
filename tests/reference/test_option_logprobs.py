"""SmolLM2-135M and Gemma 3 270M: option log-probabilities against torch, contexts of 1 to 1,600 tokens."""

import jax
import numpy as np
import pytest
import torch
from jax.sharding import AxisType
from tiny_decoders import logprobs
from torch_reference import logprob
from transformers import AutoModelForCausalLM, AutoTokenizer

from brb_jax.checkpoints import open_checkpoint
from brb_jax.data.case import Case, Option
from brb_jax.data.prompt import render
from brb_jax.generator.file import generate_cases
from brb_jax.generator.spec import FileSpec
from brb_jax.models.partitioning import MESH_AXES
from brb_jax.run import load_model
from brb_jax.scoring.mesh import make_mesh
from brb_jax.tokens.encode import encode_cases
from brb_jax.tokens.tokenizer import load_tokenizer

pytestmark = [pytest.mark.reference, pytest.mark.real_model]


def prose_cases() -> list[Case]:
    """Prompts of a few tokens, down to one, in several scripts: boundaries where tokens merge and split."""
    prompts = [
        "A",
        "The",
        "hello wor",
        "北京",
        "x =",
        "def f(x):\n    return",
        "Once upon a",
        "Numbers: 1 2 3 4",
        "émigré",
    ]
    options = ["ld", "time", "1 + 2", "5 6"]
    return [
        Case(f"prose_MemoryRet_M0/{i}", "prose", "MemoryRet", None, None, 0, "", prompt, _options(options), "A")
        for i, prompt in enumerate(prompts)
    ]


def _options(texts) -> tuple[Option, ...]:
    return tuple(Option("ABCD"[i], text, "correct" if i == 0 else "random_wrong") for i, text in enumerate(texts))


def generated_cases() -> list[Case]:
    """All tasks and domains; most contexts are short, so that torch is done in a minute or two."""
    specs = [
        FileSpec(domain="words", task="MemoryRet", m=4, operators=1, cases=20),
        FileSpec(domain="words", task="MemoryRet", m=8, operators=2, cases=12, questions_per_context=2),
        FileSpec(domain="words", task="MemoryRev", m=10, edit_k=1, operators=2, cases=10),
        FileSpec(domain="digits", task="MemoryRet", m=8, operators=2, cases=8),
        FileSpec(domain="words", task="MemoryCom", m=40, k=2, cases=1),
        FileSpec(domain="digits", task="MemoryRev", m=30, edit_k=1, operators=3, cases=1),
        FileSpec(domain="words", task="MemoryRet", m=107, cases=1),
    ]
    return [case for spec in specs for case in generate_cases(spec)]


# How far sharing and the mesh may move a score. The goal is 2e-4 for both; Gemma 3 270M does not meet it yet: its own
# distance from torch is 4e-4, and what sharing changes is of that size. It is held to the bound against torch alone.
@pytest.mark.parametrize(("name", "invariance"), [("smollm2-135m", 2e-4), ("gemma-3-270m", 1e-3)])
def test_every_option_within_1e_3_nat(name, invariance, demo_models):
    cases = prose_cases() + generated_cases()
    gguf = demo_models / f"{name}.gguf"
    reference_tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    reference = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32).eval()
    expected = []
    for case in cases:
        rendered = render(case)
        for text in rendered.continuations:
            encoding = reference_tokenizer(rendered.prompt + text, return_offsets_mapping=True)
            ends = [end for _, end in encoding["offset_mapping"]]
            scored_from = next(i for i, end in enumerate(ends) if end > len(rendered.prompt))
            expected.append(logprob(reference, encoding["input_ids"], max(scored_from, 1)))
    del reference

    checkpoint = open_checkpoint(gguf)
    tokenized = encode_cases(
        cases,
        load_tokenizer(checkpoint.tokenizer_path),
        option_delimiter=" ",
        max_length=checkpoint.config.max_positions,
        vocab_size=checkpoint.config.vocab_size,
    )
    requests = [request for case in tokenized for request in case.requests]
    contexts = [case.context_tokens for case in tokenized]
    assert len(cases) >= 60
    assert min(contexts) <= 2 and max(contexts) >= 1_500, sorted(contexts)  # BOS counts, where there is one

    one_device = jax.make_mesh((1, 1, 1), MESH_AXES, axis_types=(AxisType.Auto,) * 3, devices=jax.devices()[:1])
    scorer = load_model(checkpoint, "float32", one_device)
    scores = {sharing: logprobs(scorer, requests, sharing=sharing, batch_tokens=2_048) for sharing in ("tree", "none")}
    for sharing, found in scores.items():
        difference = np.abs(found - expected).max()
        print(f"{name}, sharing={sharing}: {len(requests)} options, at most {difference:.1e} nat from torch")
        assert difference < 1e-3
    assert np.abs(scores["tree"] - scores["none"]).max() < invariance

    short = [i for i, request in enumerate(requests) if len(request.ids) < 250]
    meshed = load_model(checkpoint, "float32", make_mesh({"data": 2, "fsdp": 2, "tensor": 2}))
    again = logprobs(meshed, [requests[i] for i in short], buckets=[256], batch_tokens=512)
    assert np.abs(again - scores["tree"][short]).max() < invariance
