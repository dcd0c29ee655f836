"""What the user says about files of another form than the canonical one. It changes what a model reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from brb_jax.data import templates
from brb_jax.data.fields import NAMES


class RulesError(ValueError):
    """A flag about the form of files that cannot be followed."""


@dataclasses.dataclass(frozen=True)
class Rules:
    """How raw cases are to be read.

    Attributes:
        field_map: For a name of `fields.NAMES`, the key that holds it in the files; empty: the files have none.
            Names that are not in it are found by `fields.ALIASES`.
        example_template: How one example of a list is written; None: `input -> output`, or the text itself, on a
            line of its own.
        prompt_template: How context and query are written; None: as they stand.

    Raises:
        RulesError: An unknown name, a key used twice, or a template that is no Jinja.
    """

    field_map: Mapping[str, str] = dataclasses.field(default_factory=dict)
    example_template: str | None = None
    prompt_template: str | None = None

    def __post_init__(self):
        for name, key in self.field_map.items():
            if name not in NAMES:
                raise RulesError(f"--field_map: there is no field {name!r}; the fields are {', '.join(NAMES)}")
            if not key and name not in ("id", "context"):
                raise RulesError(f"--field_map: {name}= names no key; only id and context may be left out of a file")
        for flag in ("example_template", "prompt_template"):
            template = getattr(self, flag)
            if template is not None:
                try:
                    templates.check(template)
                except templates.TemplateError as error:
                    raise RulesError(f"--{flag}: {error}") from error


def parse_field_map(items: list[str]) -> dict[str, str]:
    """`["context=passage", …]` as a mapping.

    Raises:
        RulesError: An item is not of this form, or a name stands twice.
    """
    field_map: dict[str, str] = {}
    for item in items:
        name, equals, key = item.partition("=")
        if not equals:
            raise RulesError(f"--field_map: {item!r} is not of the form context=passage")
        if name.strip() in field_map:
            raise RulesError(f"--field_map: {name.strip()} is given twice")
        field_map[name.strip()] = key.strip()
    return field_map
