"""Strings of eight letters, capital or small: operators work on the alphabet, the case, or the order."""

from __future__ import annotations

import re
from collections.abc import Callable

from brb_jax.generator.domain import Domain, Operator
from brb_jax.generator.draws import Draws

LENGTH = 8
_TEXT = re.compile(rf"[A-Za-z]{{{LENGTH}}}")

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_VOWELS = "aeiou"
# Vowels come up twice as often as other letters: rules about them need some to be seen.
_DRAWN = _ALPHABET + _ALPHABET.upper() + _VOWELS + _VOWELS.upper()


def _turned(alphabet: str, by: int) -> dict[int, int]:
    """A table for `str.translate`: each letter becomes the one `by` further on in a closed circle, in its case."""
    turned = alphabet[by:] + alphabet[:by]
    return str.maketrans(alphabet + alphabet.upper(), turned + turned.upper())


_NEXT = _turned(_ALPHABET, 1)
_OPPOSITE = _turned(_ALPHABET, 13)
_NEXT_VOWEL = _turned(_VOWELS, 1)
_MIRROR = str.maketrans(_ALPHABET + _ALPHABET.upper(), _ALPHABET[::-1] + _ALPHABET[::-1].upper())
_CAPITAL_VOWELS = str.maketrans(_VOWELS, _VOWELS.upper())
_BY_PLACE = [_turned(_ALPHABET, place) for place in range(1, LENGTH + 1)]


def _sample(draws: Draws) -> str:
    return "".join(draws.choice(_DRAWN) for _ in range(LENGTH))


def _parse(text: str) -> str:
    if _TEXT.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not {LENGTH} letters")
    return text


def _edit(letters: str, place: int, draws: Draws) -> str:
    letter = draws.choice([letter for letter in _DRAWN if letter != letters[place]])
    return letters[:place] + letter + letters[place + 1 :]


def _first(wanted: Callable[[str], bool]) -> Callable[[str], str]:
    return lambda s: "".join(sorted(s, key=lambda letter: not wanted(letter)))


def _alternate(letters: str) -> str:
    return "".join(letter.lower() if i % 2 else letter.upper() for i, letter in enumerate(letters))


def _pass_case(letters: str) -> str:
    return "".join(letter.upper() if letters[i - 1].isupper() else letter.lower() for i, letter in enumerate(letters))


_OPERATORS = (
    Operator("next_letter", "replace every letter by the next of the alphabet, z by a", lambda s: s.translate(_NEXT)),
    Operator(
        "opposite_letter",
        "replace every letter by the one thirteen places on in the alphabet, a following z",
        lambda s: s.translate(_OPPOSITE),
    ),
    Operator(
        "mirror_alphabet",
        "replace a by z, b by y and so on, every letter by the one as far from the other end of the alphabet",
        lambda s: s.translate(_MIRROR),
    ),
    Operator(
        "move_by_place",
        "move the first letter one place on in the alphabet, the second two and so on, a following z",
        lambda s: "".join(letter.translate(table) for letter, table in zip(s, _BY_PLACE, strict=True)),
    ),
    Operator(
        "next_vowel",
        "replace every vowel by the next of a, e, i, o, u, and u by a",
        lambda s: s.translate(_NEXT_VOWEL),
    ),
    Operator("swap_case", "turn capitals into small letters and small letters into capitals", lambda s: s.swapcase()),
    Operator("capitals", "turn every letter into a capital", lambda s: s.upper()),
    Operator(
        "capital_vowels",
        "turn vowels into capitals and all other letters into small ones",
        lambda s: s.lower().translate(_CAPITAL_VOWELS),
    ),
    Operator("alternate_case", "make the letters capital and small by turns, the first one capital", _alternate),
    Operator(
        "pass_case",
        "give every letter the case of the letter before it, and the first the case of the last",
        _pass_case,
    ),
    Operator("reverse", "put the letters in reverse order", lambda s: s[::-1]),
    Operator("rotate_three", "move the last three letters to the front", lambda s: s[-3:] + s[:-3]),
    Operator("swap_ends", "swap the first and the last letter", lambda s: s[-1] + s[1:-1] + s[0]),
    Operator(
        "sort",
        "put the letters in alphabetical order, whatever their case, equal letters as they stood",
        lambda s: "".join(sorted(s, key=str.lower)),
    ),
    Operator(
        "capitals_first",
        "put the capitals before the small letters, each in the order they stood",
        _first(str.isupper),
    ),
    Operator(
        "vowels_first",
        "put the vowels before the other letters, each in the order they stood",
        _first(lambda letter: letter.lower() in _VOWELS),
    ),
    Operator(
        "double_half",
        "write each of the first four letters twice and leave out the others",
        lambda s: "".join(letter * 2 for letter in s[:4]),
    ),
)

LETTERS = Domain(
    name="letters",
    operators=_OPERATORS,
    sample=_sample,
    render=str,
    parse=_parse,
    parts=tuple,
    edit=_edit,
)
