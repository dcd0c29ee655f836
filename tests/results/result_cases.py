"""Small cases for the tests of this folder."""

from brb_jax.data.case import TASKS, Case, Option
from brb_jax.results.sample import OptionScore, Sample, Selection
from brb_jax.results.selection import sample
from brb_jax.tokens.request import TokenizedCase


def make_case(
    case_id="words_MemoryRet_M70/1",
    domain="words",
    task="MemoryRet",
    k=None,
    edit_k=None,
    m=70,
    context="a -> b\n",
    types=None,
    texts=None,
) -> Case:
    """A case with options A, B, … of `types`, in that order (by default those of the task, correct first)."""
    types = types or TASKS[task].option_types
    texts = texts or [f"{type_} text" for type_ in types]
    options = tuple(
        Option(label, text, type_) for label, text, type_ in zip("ABCD"[: len(types)], texts, types, strict=True)
    )
    answer = next(option.label for option in options if option.type == "correct")
    return Case(case_id, domain, task, k, edit_k, m, context, "c ->", options, answer)


def tokenized(status="ok", note=None, truncated=0) -> TokenizedCase:
    return TokenizedCase(0, (), status, note, 40, False, truncated=truncated)


def make_sample(logprobs, tokens=None, selection: Selection = "logprob", truncated=0, **case_fields) -> Sample:
    """A scored sample; `logprobs=None` makes an overlong one."""
    case = make_case(**case_fields)
    if logprobs is None:
        return sample(case, tokenized("overlong"), None, selection)
    tokens = tokens or [1] * len(logprobs)
    scores = [OptionScore(logprob, n, False) for logprob, n in zip(logprobs, tokens, strict=True)]
    return sample(case, tokenized(truncated=truncated), scores, selection)
