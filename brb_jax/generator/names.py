"""Pseudo-words for operators, so that nothing a model knows of a name can help it."""

from __future__ import annotations

from brb_jax.generator.draws import Draws

_CONSONANTS = "bdfgklmnprstvz"
_VOWELS = "aeiou"
_ENDINGS = "jv"  # English words hardly end in these, so no drawn name is one.


def draw_names(n: int, draws: Draws) -> list[str]:
    """`n` different names of five letters, such as `zorav`."""
    names: list[str] = []
    while len(names) < n:
        letters = (_CONSONANTS, _VOWELS, _CONSONANTS, _VOWELS, _ENDINGS)
        name = "".join(draws.choice(choices) for choices in letters)
        if name not in names:
            names.append(name)
    return names
