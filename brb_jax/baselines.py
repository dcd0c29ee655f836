"""Readers of known skill: what they choose needs no model, tokenizer or device.

solver        understands everything, from the text and the domain's library
prerevision   the same, but stops reading before a revision
nearest       copies the output of the example most like the query
random        draws an option by a hash of the case's id and a seed
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from brb_jax.data.case import Case
from brb_jax.data.fault import listed
from brb_jax.generator import certificates
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.draws import Draws
from brb_jax.generator.surface import ranked

PREFIX = "baseline:"
NAMES = (*certificates.BASELINES, "random")


class BaselineError(ValueError):
    """There is no such baseline, or it cannot read all the cases; the message lists those."""


def named(model: str) -> str | None:
    """The baseline that `--model` names, or None where it names a checkpoint.

    Raises:
        BaselineError: There is no baseline of that name.

    >>> named("baseline:solver"), named("checkpoints/mine")
    ('solver', None)
    """
    if not model.startswith(PREFIX):
        return None
    name = model.removeprefix(PREFIX)
    if name not in NAMES:
        raise BaselineError(f"--model={model}: there is no such baseline; there are {', '.join(NAMES)}")
    return name


def choices(name: str, cases: Sequence[Case], seed: int = 0) -> dict[str, str]:
    """The label a baseline chooses in each case, by `case_id`.

    Args:
        name: One of `NAMES`.
        cases: The cases.
        seed: Of `random`; the others draw nothing.

    Raises:
        BaselineError: Lists every case that the baseline cannot read. Cases of a domain it does not know are found
            before any other is read.
    """
    reads = f"it reads generated cases of the domains {', '.join(DOMAINS)}"
    strangers = {case.case_id: f"of the domain {case.domain!r}" for case in cases if not _knows(name, case)}
    _refuse(name, strangers, len(cases), reads)
    chosen, unread = _try_each(name, cases, seed)
    _refuse(
        name, unread, len(cases), "it needs examples, one a line, as input -> output" if name == "nearest" else reads
    )
    return chosen


def references(cases: Sequence[Case], seed: int = 0) -> dict[str, dict[str, str]]:
    """By baseline: the labels it chooses, by `case_id`, in the cases that it can read."""
    return {name: _try_each(name, [case for case in cases if _knows(name, case)], seed)[0] for name in NAMES}


def _knows(name: str, case: Case) -> bool:
    return name in ("nearest", "random") or case.domain in DOMAINS


def _try_each(name: str, cases: Iterable[Case], seed: int) -> tuple[dict[str, str], dict[str, str]]:
    """By `case_id`: the labels chosen, and why there is none."""
    chosen: dict[str, str] = {}
    unread: dict[str, str] = {}
    for case in cases:
        try:
            chosen[case.case_id] = _choose(name, case, seed)
        except ValueError as error:
            unread[case.case_id] = str(error).removeprefix(f"case {case.case_id}: ")
    return chosen, unread


def _choose(name: str, case: Case, seed: int) -> str:
    """A label.

    Raises:
        ValueError: The baseline cannot read the case; says why.
    """
    if name == "random":
        return Draws(PREFIX + name, seed, case.case_id).choice(case.options).label
    if name != "nearest":
        return certificates.choose(name, case)
    if case.domain in DOMAINS:
        try:
            return certificates.choose(name, case)
        except ValueError:
            pass  # Another hand's file, of a domain that happens to have this name.
    return _copy(case)


def _copy(case: Case) -> str:
    """The option that is the output of the example most like the query, of those whose output is an option."""
    labels = {option.text.strip(): option.label for option in case.options}
    for example in ranked(case.context, case.query):
        if example.output in labels:
            return labels[example.output]
    raise ValueError("no line of its context, read as `input -> output`, has one of its options for output")


def _refuse(name: str, unread: Mapping[str, str], cases: int, needs: str) -> None:
    if not unread:
        return
    lines = (f"{case_id}: {reason}" for case_id, reason in unread.items())
    raise BaselineError(
        f"{PREFIX}{name} cannot read {len(unread)} of {cases} cases ({needs}); "
        f"leave their files out of --data, or take another baseline:{listed(lines)}"
    )
