"""The benchmark's file-name convention, the one place that says what a file holds."""

from __future__ import annotations

import dataclasses
import re

from brb_jax.data.case import TASKS

SUFFIX = "_que_ans.json"
SUFFIXES = tuple(f"_que_ans.{kind}{packed}" for kind in ("json", "jsonl") for packed in ("", ".gz"))
CONVENTION = "{domain}_{task}_[k{K}_][editk{editK}_]M{M}_que_ans.json"

_PATTERN = re.compile(
    rf"(?P<domain>.+)_(?P<task>{'|'.join(TASKS)})_(?:k(?P<k>[1-9][0-9]*)_)?(?:editk(?P<edit_k>[1-9][0-9]*)_)?"
    r"M(?P<m>0|[1-9][0-9]*)_que_ans\.jsonl?(?:\.gz)?",
    re.DOTALL,
)


class FileNameError(ValueError):
    """A file's name does not follow the convention."""


@dataclasses.dataclass(frozen=True)
class FileName:
    """The parts of a benchmark file's name.

    Attributes:
        domain: What the values are (`words`); may contain underscores.
        task: One of `TASKS`.
        k: Number of composed operators, or None where the name has none.
        edit_k: Number of revised operators, or None where the name has none.
        m: Number of examples shown in a context.

    Raises:
        FileNameError: A part cannot stand in a file name of the convention.
    """

    domain: str
    task: str
    k: int | None
    edit_k: int | None
    m: int

    def __post_init__(self):
        if not self.domain or "/" in self.domain:
            raise FileNameError(f"{self.domain!r} is no domain: it must be non-empty and hold no slash")
        if self.task not in TASKS:
            raise FileNameError(f"unknown task {self.task!r}; tasks are {', '.join(TASKS)}")
        for part, number, least in (("k", self.k, 1), ("edit_k", self.edit_k, 1), ("m", self.m, 0)):
            if number is not None and number < least:
                raise FileNameError(f"{part} must be at least {least}, got {number}")

    @classmethod
    def parse(cls, name: str) -> FileName:
        """Reads a file's name (no directory), whichever of `SUFFIXES` it ends in.

        Raises:
            FileNameError: The name does not follow the convention.

        >>> FileName.parse("words_MemoryCom_k2_M70_que_ans.json")
        FileName(domain='words', task='MemoryCom', k=2, edit_k=None, m=70)
        """
        match = _PATTERN.fullmatch(name)
        if match is None:
            raise FileNameError(f"the name {name!r} does not follow {CONVENTION} with a task of {', '.join(TASKS)}")
        k, edit_k = (None if match[part] is None else int(match[part]) for part in ("k", "edit_k"))
        return cls(match["domain"], match["task"], k, edit_k, int(match["m"]))

    @property
    def stem(self) -> str:
        """The name without its suffix, as it stands at the head of a `case_id`."""
        k = "" if self.k is None else f"k{self.k}_"
        edit_k = "" if self.edit_k is None else f"editk{self.edit_k}_"
        return f"{self.domain}_{self.task}_{k}{edit_k}M{self.m}"

    def format(self) -> str:
        """The file's name with the suffix `.json`; the inverse of `parse` for such names."""
        return self.stem + SUFFIX
