"""Another value of the same type, shape and length: one typed piece of a text is changed, the rest stays."""

from __future__ import annotations

import dataclasses
import functools
import unicodedata
from collections.abc import Mapping, Sequence

from brb_jax.generator.draws import Draws
from brb_jax.generator.options.shape import BOOLEANS, FORMATS, Atom, atoms, pattern
from brb_jax.generator.surface import shown_examples

_TRIES = 40


@dataclasses.dataclass(frozen=True)
class Material:
    """What the outputs shown in a context are made of; mutated values are made of the same.

    Attributes:
        outputs: The outputs themselves, in order, each once.
        alike: For each pattern, the pieces of the outputs that have it.
        words, letters, symbols: In order of appearance, each once; symbols are neither letters, digits nor white space.
    """

    outputs: Mapping[str, None]
    alike: Mapping[str, Sequence[tuple[Atom, ...]]]
    words: tuple[str, ...]
    letters: tuple[str, ...]
    symbols: tuple[str, ...]


@functools.lru_cache(maxsize=8)
def material(context: str) -> Material:
    """Cached, for many questions may share one long context."""
    outputs = dict.fromkeys(example.output for example in shown_examples(context))
    alike: dict[str, list[tuple[Atom, ...]]] = {}
    for output in outputs:
        alike.setdefault(pattern(output), []).append(atoms(output))
    words = dict.fromkeys(atom.text for output in outputs for atom in atoms(output) if atom.kind == "W")
    characters = dict.fromkeys("".join(outputs))
    return Material(
        outputs=outputs,
        alike=alike,
        words=tuple(words),
        letters=tuple(character for character in characters if character.isalpha()),
        symbols=tuple(c for c in characters if not c.isalnum() and not c.isspace()),
    )


def mutated(bases: Sequence[str], taken: Sequence[str], context: str, draws: Draws) -> str | None:
    """A value made of one of `bases` by changing one piece of it.

    A number stays a number of as many digits, one of which changes; so does a date or a time, and stays a valid one of
    its form. A word becomes another word as long and written alike (capitals), a boolean the other one, and a text
    without such pieces has one symbol changed. If it can be, the new digit or word stands at the same place of an
    output shown that has the same pattern; else any digit will do, any word shown, or a word with one letter changed to
    one shown. Preferred are values that repeat no piece where their base does not, and that no example shows as its
    output.

    Args:
        bases: What to start from; one is drawn.
        taken: Texts that the value must differ from.
        context: Where words, letters and symbols are taken from.
        draws: The stream to draw from.

    Returns:
        None if no such value was found.
    """
    made_of = material(context)
    for in_place in (True, False):
        found: list[tuple[bool, bool, int, str]] = []
        for attempt in range(_TRIES):
            base = draws.choice(bases)
            value = _change_one(base, made_of, in_place, draws)
            if value is not None and value.strip() not in taken:
                repeats = _all_differ(base) and not _all_differ(value)
                found.append((repeats, value in made_of.outputs, attempt, value))
        if found:
            return min(found)[-1]
    return None


def _all_differ(text: str) -> bool:
    pieces = [atom.text for atom in atoms(text)]
    return len(set(pieces)) == len(pieces)


def _change_one(text: str, made_of: Material, in_place: bool, draws: Draws) -> str | None:
    """The text with one piece changed, or None where the draw changed nothing."""
    pieces = atoms(text)
    if not pieces:
        return _change_symbol(text, made_of, draws)
    place = draws.below(len(pieces))
    piece = pieces[place]
    before, after = text[: piece.start], text[piece.start + len(piece.text) :]
    others = [other[place].text for other in made_of.alike.get(pattern(text), ())] if in_place else None
    change = _change(piece, others, before.endswith("-"), made_of, draws)
    return None if change is None else before + change + after


def _change(piece: Atom, others: Sequence[str] | None, negative: bool, made_of: Material, draws: Draws) -> str | None:
    """Another piece of the same kind and length, or None.

    Args:
        piece: The piece.
        others: What stands in its place elsewhere, to be made of that alone; None to be made of anything.
        negative: Whether a minus stands before it.
        made_of: What else there is.
        draws: The stream to draw from.
    """
    if piece.kind == "B":
        return _opposite(piece.text)
    if piece.kind == "W":
        return _other_word(piece.text, others, made_of, draws)
    at = draws.choice([i for i, character in enumerate(piece.text) if character.isdigit()])
    zero = ord(piece.text[at]) - unicodedata.decimal(piece.text[at])
    digits = [chr(zero + digit) for digit in range(10)]
    if others is not None:
        shown = {other[at] for other in others if len(other) == len(piece.text)}
        digits = [digit for digit in digits if digit in shown]
    if at == 0 and piece.kind in ("N", "F") and (negative or len(piece.text) > 1) and ord(piece.text[0]) != zero:
        digits = [digit for digit in digits if ord(digit) != zero]  # Else of fewer digits, or minus zero.
    digits = [digit for digit in digits if digit != piece.text[at]]
    if not digits:
        return None
    change = piece.text[:at] + draws.choice(digits) + piece.text[at + 1 :]
    if piece.kind in FORMATS and not FORMATS[piece.kind](change) >= FORMATS[piece.kind](piece.text):
        return None
    return change


def _opposite(text: str) -> str:
    [pair] = [pair for pair in BOOLEANS if text.lower() in pair]
    other = pair[1 - pair.index(text.lower())]
    return other.upper() if text.isupper() else other.capitalize() if text[0].isupper() else other


def _other_word(word: str, others: Sequence[str] | None, made_of: Material, draws: Draws) -> str | None:
    words = dict.fromkeys(made_of.words if others is None else others)
    alike = [other for other in words if other != word and _written(other) == _written(word)]
    if alike:
        return draws.choice(alike)
    if others is not None:
        return None
    place = draws.below(len(word))
    letters = [c for c in made_of.letters or word if c != word[place] and _written(c) == _written(word[place])]
    return word[:place] + draws.choice(letters) + word[place + 1 :] if letters else None


def _written(word: str) -> tuple[int, bool, bool]:
    """Equal for words of one length and use of capitals."""
    return len(word), word.isupper(), word.islower()


def _change_symbol(text: str, made_of: Material, draws: Draws) -> str | None:
    places = [i for i, character in enumerate(text) if not character.isspace()]
    place = draws.choice(places)
    symbols = [symbol for symbol in made_of.symbols or text if symbol != text[place] and not symbol.isspace()]
    return text[:place] + draws.choice(symbols) + text[place + 1 :] if symbols else None
