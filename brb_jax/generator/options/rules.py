"""Wrong answers that a program gives: the right operators in a wrong order, or the rule before its revision."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from brb_jax.data.questions import Question
from brb_jax.generator.domain import Domain, run
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.draws import Draws

RULES = ("wrong_rule", "old_rule")

_MOST_OPERATORS = 8  # All their orders are tried.


def has_program(question: Question, kind: str) -> bool:
    """Whether the question's metadata holds what the option follows from, of a domain whose library is known."""
    needed = {"program", "input", *(("old_program",) if kind == "old_rule" else ())}
    return question.name.domain in DOMAINS and needed <= question.metadata.keys()


def by_program(question: Question, kind: str, taken: Sequence[str], draws: Draws) -> str:
    """The option's text, computed.

    Args:
        question: One that `has_program`. Its metadata is as the generator writes it: `program` and `old_program` are
            operators' keys, the first acts first; `wrong_names` are names that `operators` defines.
        kind: One of `RULES`.
        taken: Texts that the option must differ from.
        draws: Orders the orders, where the metadata has none.

    Raises:
        ValueError: The metadata is not of that form, or gives another answer than the question's; or no order, or not
            the old rule, gives a text that is not taken.
    """
    domain, metadata = DOMAINS[question.name.domain], question.metadata
    program = _keys(metadata["program"], "program")
    right = _output(domain, program, metadata["input"])
    if right != question.answer.strip():
        raise ValueError(f"the program in its metadata gives {right!r}, its answer is {question.answer!r}")
    if kind == "old_rule":
        programs: Iterable[Sequence[str]] = [_keys(metadata["old_program"], "old_program")]
        without = "the old program in its metadata gives no other answer"
    else:
        programs = _other_orders(metadata, program, draws)
        without = "no other order of the operators in its metadata gives another answer"
    outputs = (_output(domain, keys, metadata["input"]) for keys in programs)
    text = next((output for output in outputs if output not in taken), None)
    if text is None:
        raise ValueError(without)
    return text


def _other_orders(metadata: Any, program: Sequence[str], draws: Draws) -> Iterator[Sequence[str]]:
    """The program that the metadata names as the wrong one, if any; then every other order of the right one."""
    if len(program) > _MOST_OPERATORS:
        raise ValueError(f"its metadata composes {len(program)} operators; at most {_MOST_OPERATORS} are put in order")
    if "wrong_names" in metadata:
        names, defined = metadata["wrong_names"], metadata.get("operators")
        try:
            named = [defined[name]["operator"] for name in names]
        except (KeyError, TypeError):
            problem = f"the wrong_names in its metadata are {names!r}, not names that its operators define"
            raise ValueError(problem) from None
        yield _keys(named, "wrong_names")
    yield from draws.shuffled(list(itertools.permutations(program)))


def _keys(value: Any, what: str) -> Sequence[str]:
    if not isinstance(value, list) or not value or not all(isinstance(key, str) for key in value):
        raise ValueError(f"the {what} in its metadata is {value!r}, not a list of operators")
    return value


def _output(domain: Domain[Any], keys: Sequence[str], text: Any) -> str:
    library = {operator.key: operator for operator in domain.operators}
    unknown = [key for key in keys if key not in library]
    if unknown:
        raise ValueError(f"its metadata names the operator {unknown[0]!r}, which the domain {domain.name} lacks")
    if not isinstance(text, str):
        raise ValueError(f"the input in its metadata is {text!r}, not a text")
    return domain.render(run([library[key] for key in keys], domain.parse(text)))
