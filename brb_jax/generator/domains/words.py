"""Four lowercase words: operators move words about, or the letters within them."""

from __future__ import annotations

import re
from collections.abc import Callable

from brb_jax.generator.domain import Domain, Operator
from brb_jax.generator.draws import Draws

Words = tuple[str, ...]

# One number of words, and of letters, so that all options of a case have the same length.
_TEXT = re.compile(r"[a-z]{4}(?: [a-z]{4}){3}")

_NOUNS = """
acid arch army atom aunt baby bake ball band bank barn bath beam bear bell belt bird blue boat body bolt
bone book boot bowl bulb bush cafe cage cake calf camp cane card cart cave cell chin city clay club coal
coat code coin cone cook cord cork corn crab crow cube curl dawn deer desk dial dish dock door dove drum
duck dune dust east echo face farm fern film fire fish flag foam fork fort frog fuel gate gift girl glue
goat gold golf gown grid gulf hall hand harp hawk herb hill hook horn iron jade jury kite knee knot lace
lake lamb lamp lark leaf lime lion loft lung maid mask maze meal milk mint mist moon moss moth nail nest
node note oven page palm park path peak pear pine pipe plum poem pond pony pool rain reef ring road robe
rock roof rope rose sage sail salt sand seal seed ship shoe silk snow soap sofa soup star stem swan tail
tent tide tile town tree tuna vase veil vine wall wave west wing wolf wool yard
"""
VOCABULARY = tuple(_NOUNS.split())


def _each(spell: Callable[[str], str]) -> Callable[[Words], Words]:
    return lambda words: tuple(spell(word) for word in words)


def _sample(draws: Draws) -> Words:
    return tuple(draws.sample(VOCABULARY, 4))


def _parse(text: str) -> Words:
    if _TEXT.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not four words of four lowercase letters")
    return tuple(text.split(" "))


def _edit(words: Words, place: int, draws: Draws) -> Words:
    word = draws.choice([word for word in VOCABULARY if word not in words])
    return (*words[:place], word, *words[place + 1 :])


_OPERATORS = (
    Operator("reverse", "put the words in reverse order", lambda w: w[::-1]),
    Operator("rotate_left", "move the first word to the end", lambda w: (*w[1:], w[0])),
    Operator("rotate_right", "move the last word to the front", lambda w: (w[-1], *w[:-1])),
    Operator("swap_halves", "move the first two words to the end", lambda w: (*w[2:], *w[:2])),
    Operator("swap_ends", "swap the first and the last word", lambda w: (w[3], w[1], w[2], w[0])),
    Operator("swap_middle", "swap the second and the third word", lambda w: (w[0], w[2], w[1], w[3])),
    Operator("swap_front", "swap the first and the second word", lambda w: (w[1], w[0], w[2], w[3])),
    Operator(
        "swap_pairs",
        "swap the first word with the second and the third with the fourth",
        lambda w: (w[1], w[0], w[3], w[2]),
    ),
    Operator("sort", "put the words in alphabetical order", lambda w: tuple(sorted(w))),
    Operator("sort_down", "put the words in reverse alphabetical order", lambda w: tuple(sorted(w, reverse=True))),
    Operator(
        "sort_by_last",
        "order the words by their last letters, words with the same last letter as they stood",
        lambda w: tuple(sorted(w, key=lambda word: word[-1])),
    ),
    Operator("repeat_first", "put the first word in place of the last", lambda w: (*w[:-1], w[0])),
    Operator("spell_backwards", "spell every word backwards", _each(lambda word: word[::-1])),
    Operator("first_backwards", "spell the first word backwards", lambda w: (w[0][::-1], *w[1:])),
    Operator("last_backwards", "spell the last word backwards", lambda w: (*w[:-1], w[-1][::-1])),
    Operator(
        "letter_to_end",
        "move the first letter of every word to its end",
        _each(lambda word: word[1:] + word[0]),
    ),
    Operator(
        "swap_outer_letters",
        "swap the first and the last letter of every word",
        _each(lambda word: word[-1] + word[1:-1] + word[0]),
    ),
)

WORDS = Domain(
    name="words",
    operators=_OPERATORS,
    sample=_sample,
    render=" ".join,
    parse=_parse,
    parts=lambda words: words,
    edit=_edit,
)
