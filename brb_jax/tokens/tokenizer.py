"""A tokenizer as scoring needs it: ids with character offsets, one rule for BOS, and nothing added behind the
text.

Wraps the Rust tokenizer of a transformers fast tokenizer. What a tokenizer's files say about truncation,
padding and `model_max_length` is not used: length limits belong to the model. Knows nothing of cases.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import tokenizers
import transformers

BosRule = Literal["auto", "always", "never"]

# Any text will do that every vocabulary can spell: only what is put around its ids is of interest.
_PROBE = "a"


class TokenizerError(ValueError):
    """A tokenizer that cannot be read, or not be used as asked."""


@dataclasses.dataclass(frozen=True, eq=False)
class Encoding:
    """The ids of one text and the characters each covers.

    Attributes:
        ids: int32 `[n]`.
        rust: The Rust encoding; offsets stay there because turning 10^5 of them into Python objects costs as
            much as encoding the text did, and most callers ask for one.
    """

    ids: np.ndarray
    rust: tokenizers.Encoding

    @property
    def offsets(self) -> np.ndarray:
        """int32 `[n, 2]`: token i covers the characters `offsets[i, 0]:offsets[i, 1]`.

        The tokens that spell the bytes of one character each cover that character; a leading space a token
        stands for is among its characters.
        """
        return np.asarray(self.rust.offsets, np.int32).reshape(-1, 2)

    @property
    def end(self) -> int:
        """One past the last character the last token covers; 0 without tokens."""
        if not len(self.ids):
            return 0
        characters = self.rust.token_to_chars(len(self.ids) - 1)
        assert characters is not None, "only tokens of a post-processor have none, and there is none"
        return characters[1]

    def first_token_in(self, start: int, stop: int) -> int:
        """Index of the first token that covers a character of `start:stop`; `len(ids)` if none does."""
        # Over all characters, because a normalizer may drop the first ones (they have no token then).
        tokens = (self.rust.char_to_token(position) for position in range(start, stop))
        return min((token for token in tokens if token is not None), default=len(self.ids))


@dataclasses.dataclass(frozen=True, eq=False)
class Tokenizer:
    """Text to ids. Make one with `load_tokenizer`.

    A special token's text inside a prompt or an option (`<|endoftext|>`) is parsed as the tokenizer does by
    default: as the control token, unless its files set `split_special_tokens`. `spells_special` finds such
    texts.

    Attributes:
        path: Where it came from.
        backend: The Rust tokenizer, without truncation, padding and post-processor.
        bos_rule: The rule `prefix_ids` follows.
        prefix_ids: What is put before every text: BOS for nearly all tokenizers, `[gMASK] <sop>` for GLM, or
            nothing.
        conditioning_ids: What the first token of a text is conditioned on when nothing else precedes it: the
            prefix, else BOS, else EOS; empty when the tokenizer has none of them.
        removed_ids: What the tokenizer would append to every text by default (EOS), and this one does not.
        bos_id, eos_id: None where the tokenizer has none.
        size: Highest id plus one, added tokens included.
        base_size: Highest id plus one of the vocabulary proper. A model has a row for each of these, while
            added tokens may lie beyond its embedding table (Gemma 3's image token in a text-only model).
        fingerprint: sha256 of all that decides which ids a text gets.
    """

    path: str
    backend: tokenizers.Tokenizer
    bos_rule: BosRule
    prefix_ids: tuple[int, ...]
    conditioning_ids: tuple[int, ...]
    removed_ids: tuple[int, ...]
    bos_id: int | None
    eos_id: int | None
    size: int
    base_size: int
    special_ids: frozenset[int]
    fingerprint: str

    def encode(self, text: str) -> Encoding:
        """Ids of the text alone; neither `prefix_ids` nor anything else is put around them."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """As `encode`, for many texts on all cores."""
        encodings = self.backend.encode_batch(list(texts), add_special_tokens=False)
        return [Encoding(np.asarray(encoding.ids, np.int32), encoding) for encoding in encodings]

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """Text of the ids, special tokens included."""
        return self.backend.decode([int(i) for i in ids], skip_special_tokens=False)

    def spells_special(self, ids: np.ndarray) -> bool:
        """Whether a text's own ids (those of `encode`) hold a special token."""
        return bool(np.isin(ids, list(self.special_ids)).any())

    def describe(self) -> dict[str, Any]:
        """What `run.json` says about the tokenizer."""
        return {
            "path": self.path,
            "fingerprint": self.fingerprint,
            "size": self.size,
            "bos_rule": self.bos_rule,
            "prefix_ids": list(self.prefix_ids),
            "prefix": [self.backend.id_to_token(i) for i in self.prefix_ids],
            "conditioning_of_empty_prompts": [self.backend.id_to_token(i) for i in self.conditioning_ids],
            "removed_from_the_end": [self.backend.id_to_token(i) for i in self.removed_ids],
            "special_tokens_in_text": "split" if self.backend.encode_special_tokens else "parsed",
        }


def load_tokenizer(path: str | os.PathLike[str], bos: BosRule = "auto") -> Tokenizer:
    """Loads the tokenizer of a local directory or a Hub repository.

    Args:
        path: A directory with `tokenizer.json` (or what transformers converts to it), or a Hub id.
        bos: `auto`: what the tokenizer puts before a text by default. `always`: that, or BOS if it puts
            nothing. `never`: nothing.

    Raises:
        TokenizerError: There is no tokenizer that transformers can read, it is a slow one (no character
            offsets), or `always` is asked of one without BOS.
    """
    path = os.fspath(path)
    try:
        wrapper = transformers.AutoTokenizer.from_pretrained(path)
    except Exception as error:  # What transformers raises for damaged files is whatever it stumbles over.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise TokenizerError(f"{path}: no tokenizer.json that can be read; put the model's there ({reason})") from error
    if not wrapper.is_fast:
        raise TokenizerError(
            f"{path}: {type(wrapper).__name__} is a slow tokenizer and gives no character offsets, so the "
            "tokens of an option cannot be found. Save the fast version (tokenizer.json) beside the model."
        )
    backend = _bare_backend(wrapper)
    default_prefix, removed = _surrounding_ids(path, wrapper)
    bos_id = wrapper.bos_token_id
    prefix = {"auto": default_prefix, "always": default_prefix or _present(bos_id), "never": ()}[bos]
    if bos == "always" and not prefix:
        raise TokenizerError(f"{path}: --bos=always, but the tokenizer has no BOS token. Use --bos=auto.")
    return Tokenizer(
        path=path,
        backend=backend,
        bos_rule=bos,
        prefix_ids=prefix,
        conditioning_ids=prefix or default_prefix or _present(bos_id) or _present(wrapper.eos_token_id),
        removed_ids=removed,
        bos_id=bos_id,
        eos_id=wrapper.eos_token_id,
        size=max(backend.get_vocab(with_added_tokens=True).values()) + 1,
        base_size=max(backend.get_vocab(with_added_tokens=False).values()) + 1,
        special_ids=frozenset(i for i, token in backend.get_added_tokens_decoder().items() if token.special),
        fingerprint=_fingerprint(backend, prefix),
    )


def _present(token_id: int | None) -> tuple[int, ...]:
    return () if token_id is None else (token_id,)


def _surrounding_ids(path: str, wrapper: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What the tokenizer puts before and behind a text by default, by watching it: files state it in many
    ways."""
    bare = wrapper(_PROBE, add_special_tokens=False)["input_ids"]
    full = wrapper(_PROBE, add_special_tokens=True)["input_ids"]
    for start in range(len(full) - len(bare) + 1):
        if bare and full[start : start + len(bare)] == bare:
            return tuple(full[:start]), tuple(full[start + len(bare) :])
    raise TokenizerError(
        f"{path}: cannot tell which special tokens it adds: {_PROBE!r} is {bare} without, {full} with them."
    )


def _bare_backend(wrapper: Any) -> tokenizers.Tokenizer:
    """A copy of the Rust tokenizer that only splits text."""
    backend = tokenizers.Tokenizer.from_str(wrapper.backend_tokenizer.to_str())
    backend.encode_special_tokens = wrapper.split_special_tokens  # not part of the serialised form
    backend.no_truncation()
    backend.no_padding()
    # The post-processor adds special tokens, and in some families also takes a token's leading space out of
    # its offsets; the delimiter's token would then seem to cover nothing.
    backend.post_processor = None
    return backend


def _fingerprint(backend: tokenizers.Tokenizer, prefix: tuple[int, ...]) -> str:
    policy = json.dumps({"prefix_ids": prefix, "split_special_tokens": backend.encode_special_tokens})
    return hashlib.sha256(f"{backend.to_str()}\n{policy}".encode()).hexdigest()
