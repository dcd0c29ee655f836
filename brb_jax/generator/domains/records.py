"""Records of four fields, in any order: operators change one field, take one from another, or reorder them."""

from __future__ import annotations

import re
from collections.abc import Callable

from brb_jax.generator.domain import Domain, Operator
from brb_jax.generator.domains.words import VOCABULARY
from brb_jax.generator.draws import Draws

Record = tuple[tuple[str, str], ...]
"""Fields in order, each its key and its value as text."""

_VALUE = {"code": "[0-9]{3}", "hue": "[a-z]{4}", "item": "[a-z]{4}", "size": "[1-9][0-9]"}
_FIELD = re.compile("|".join(f"(?:{key})=(?:{value})" for key, value in _VALUE.items()))
_HUES = ("aqua", "blue", "cyan", "gold", "gray", "jade", "lime", "navy", "pink", "plum", "rose", "teal")


def _draw(key: str, draws: Draws) -> str:
    if key == "code":
        return f"{draws.below(1000):03}"
    if key == "size":
        return str(10 + draws.below(90))
    return draws.choice(_HUES if key == "hue" else VOCABULARY)


def _sample(draws: Draws) -> Record:
    return tuple((key, _draw(key, draws)) for key in draws.shuffled(list(_VALUE)))


def _parts(record: Record) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in record)


def _render(record: Record) -> str:
    return f"({', '.join(_parts(record))})"


def _parse(text: str) -> Record:
    fields = text[1:-1].split(", ")
    if text == f"({', '.join(fields)})" and all(_FIELD.fullmatch(field) for field in fields):
        record = tuple((key, value) for key, _, value in (field.partition("=") for field in fields))
        if sorted(key for key, _ in record) == sorted(_VALUE):
            return record
    raise ValueError(f"{text!r} is not a record such as (item=lamp, hue=blue, size=37, code=482)")


def _edit(record: Record, place: int, draws: Draws) -> Record:
    key, old = record[place]
    new = _draw(key, draws)
    while new == old:
        new = _draw(key, draws)
    return (*record[:place], (key, new), *record[place + 1 :])


def _set(key: str, value: Callable[[dict[str, str]], str]) -> Callable[[Record], Record]:
    """Puts into the field `key` what `value` makes of all fields."""

    def apply(record: Record) -> Record:
        new = value(dict(record))
        return tuple((k, new if k == key else old) for k, old in record)

    return apply


def _add_to_code(number: Callable[[dict[str, str]], int]) -> Callable[[Record], Record]:
    return _set("code", lambda fields: f"{(int(fields['code']) + number(fields)) % 1000:03}")


def _swap_texts(record: Record) -> Record:
    swapped = {"item": "hue", "hue": "item"}
    fields = dict(record)
    return tuple((key, fields[swapped.get(key, key)]) for key, _ in record)


_NEXT_HUE = dict(zip(_HUES, (*_HUES[1:], _HUES[0]), strict=True))

_OPERATORS = (
    Operator(
        "next_size",
        "add one to the size, 10 following 99",
        _set("size", lambda f: str(max(10, (int(f["size"]) + 1) % 100))),
    ),
    Operator("mirror_size", "take the size from 109", _set("size", lambda f: str(109 - int(f["size"])))),
    Operator("round_size", "round the size down to a multiple of ten", _set("size", lambda f: f["size"][0] + "0")),
    Operator("add_to_code", "add 111 to the code, 000 following 999", _add_to_code(lambda f: 111)),
    Operator("code_backwards", "write the code backwards", _set("code", lambda f: f["code"][::-1])),
    Operator("mirror_code", "take the code from 999", _set("code", lambda f: f"{999 - int(f['code']):03}")),
    Operator(
        "size_into_code",
        "put the size in place of the last two figures of the code",
        _set("code", lambda f: f["code"][0] + f["size"]),
    ),
    Operator(
        "size_onto_code",
        "add the size to the code, 000 following 999",
        _add_to_code(lambda f: int(f["size"])),
    ),
    Operator("item_backwards", "spell the item backwards", _set("item", lambda f: f["item"][::-1])),
    Operator(
        "item_letter_to_end",
        "move the first letter of the item to its end",
        _set("item", lambda f: f["item"][1:] + f["item"][0]),
    ),
    Operator("hue_as_item", "put the hue in place of the item too", _set("item", lambda f: f["hue"])),
    Operator(
        "next_hue",
        f"replace the hue by the next of {', '.join(_HUES)}, and {_HUES[-1]} by {_HUES[0]}",
        _set("hue", lambda f: _NEXT_HUE.get(f["hue"], f["hue"])),
    ),
    Operator("swap_texts", "swap the values of item and hue", _swap_texts),
    Operator("reverse", "put the fields in reverse order", lambda r: r[::-1]),
    Operator("first_to_end", "move the first field to the end", lambda r: (*r[1:], r[0])),
    Operator(
        "swap_pairs",
        "swap the first field with the second and the third with the fourth",
        lambda r: (r[1], r[0], r[3], r[2]),
    ),
    Operator("sort", "order the fields by their keys, alphabetically", lambda r: tuple(sorted(r))),
)

RECORDS = Domain(
    name="records",
    operators=_OPERATORS,
    sample=_sample,
    render=_render,
    parse=_parse,
    parts=_parts,
    edit=_edit,
)
