"""The domains files can be made of, by the name they have in file names."""

from collections.abc import Mapping
from typing import Any

from brb_jax.generator.domain import Domain
from brb_jax.generator.domains.digits import DIGITS
from brb_jax.generator.domains.words import WORDS

DOMAINS: Mapping[str, Domain[Any]] = {domain.name: domain for domain in (WORDS, DIGITS)}
