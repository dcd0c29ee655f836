"""Files ─► an overview of all that a run would take from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from brb_jax.config import BATCH_TOKENS
from brb_jax.data.case import Case
from brb_jax.data.fault import Fault
from brb_jax.data.filename import FileName
from brb_jax.data.reader import Survey
from brb_jax.overview.facts import Facts, describe
from brb_jax.overview.shown_case import ShownCase, show_case
from brb_jax.tokens.request import TokenizedCase
from brb_jax.tokens.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True)
class FileOverview:
    """What one file holds, and what is wrong with it."""

    file: str
    name: FileName
    facts: Facts
    faults: tuple[Fault, ...]


@dataclasses.dataclass(frozen=True)
class Overview:
    """What a dataset holds.

    Attributes:
        source: Where the tokenizer is from, as the user named it; None without one.
        tokenizer: What `run.json` says of it.
        files: In dataset order.
        total: Of all files together; contexts that files share are counted once.
        case: One case as it is read; None where there is no sound one.
        faults: All of them.
    """

    source: str | None
    tokenizer: dict[str, Any] | None
    files: tuple[FileOverview, ...]
    total: Facts
    case: ShownCase | None
    faults: tuple[Fault, ...]

    @property
    def reading(self) -> str:
        """A sentence on what lengths are measured in."""
        if self.tokenizer is None:
            return (
                "Lengths are in characters and UTF-8 bytes, of context and query; "
                "for tokens, name a --model or --tokenizer."
            )
        return f"Lengths are in tokens of {self.source}."

    def to_json(self) -> dict[str, Any]:
        """As strict JSON values."""
        return {
            "source": self.source,
            "tokenizer": self.tokenizer,
            "batch_tokens": BATCH_TOKENS["cpu"],
            "files": [
                {
                    "file": file.file,
                    **dataclasses.asdict(file.name),
                    **file.facts.to_json(),
                    "faults": [dataclasses.asdict(fault) for fault in file.faults],
                }
                for file in self.files
            ],
            "total": self.total.to_json(),
            "case": None if self.case is None else self.case.to_json(),
            "faults": [dataclasses.asdict(fault) for fault in self.faults],
        }


class NoSuchCaseError(ValueError):
    """A case that was asked for is not there, or not sound."""


def survey_overview(
    survey: Survey,
    encode: Callable[[Sequence[Case]], Sequence[TokenizedCase]] | None,
    tokenizer: Tokenizer | None,
    *,
    source: str | None,
    option_delimiter: str,
    length_class: Callable[[int], int],
    limit: int | None,
    case_id: str | None,
) -> Overview:
    """Makes an overview.

    Args:
        survey: The files as they were read.
        encode: Turns the cases into ids, as a run does; None without a tokenizer.
        tokenizer: What `encode` uses.
        source: Where that is from.
        option_delimiter: What `encode` uses.
        length_class: The model's; see `build_forest`.
        limit: Take the first so many sound cases only.
        case_id: The case to show; by default the first.

    Raises:
        NoSuchCaseError: There is no sound case of this id among those taken.
        EncodingError: A case cannot be encoded.
    """
    cases = [case for file in survey.files for case in file.items][:limit]
    tokenized = None if encode is None else list(encode(cases))
    files, start = [], 0
    for file in survey.files:
        end = min(start + len(file.items), len(cases))
        facts = describe(cases[start:end], None if tokenized is None else tokenized[start:end], length_class)
        files.append(FileOverview(file.source.exact, file.source.name, facts, file.faults))
        start = end
    shown = None
    index = next((i for i, case in enumerate(cases) if case_id in (None, case.case_id)), None)
    if index is not None:
        of_case = None if tokenized is None else tokenized[index]
        shown = show_case(cases[index], of_case, tokenizer, option_delimiter)
    elif case_id is not None:
        near = f"; the first is {cases[0].case_id}" if cases else ""
        raise NoSuchCaseError(f"--case: there is no sound case {case_id!r} among the {len(cases)} read{near}")
    return Overview(
        source=source,
        tokenizer=None if tokenizer is None else tokenizer.describe(),
        files=tuple(files),
        total=describe(cases, tokenized, length_class),
        case=shown,
        faults=survey.faults,
    )
