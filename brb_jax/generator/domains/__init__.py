"""The domains files can be made of, by the name they have in file names."""

from collections.abc import Mapping
from typing import Any

from brb_jax.generator.domain import Domain
from brb_jax.generator.domains.dates import DATES
from brb_jax.generator.domains.digits import DIGITS
from brb_jax.generator.domains.grids import GRIDS
from brb_jax.generator.domains.letters import LETTERS
from brb_jax.generator.domains.numbers import NUMBERS
from brb_jax.generator.domains.records import RECORDS
from brb_jax.generator.domains.sets import SETS
from brb_jax.generator.domains.words import WORDS

DOMAINS: Mapping[str, Domain[Any]] = {
    domain.name: domain for domain in (WORDS, DIGITS, LETTERS, NUMBERS, SETS, GRIDS, RECORDS, DATES)
}
