"""Cases ─► requests: which ids are fed and which of them are scored. Rules: README, "How a case is
scored"."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from brb_jax.data.case import Case
from brb_jax.data.prompt import RenderedCase, render
from brb_jax.tokens.request import Request, TokenizedCase
from brb_jax.tokens.tokenizer import Encoding, Tokenizer

Boundary = Literal["cover", "lm_eval"]
Overlong = Literal["skip", "truncate_left"]

# Texts are encoded in batches of about this many characters: enough to keep every core busy, little to hold.
_BATCH_CHARACTERS = 4_000_000


class EncodingError(ValueError):
    """A case that cannot be turned into token ids, or not into ids of this model."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Span:
    """Ids with BOS, and where the scored ones begin."""

    ids: np.ndarray
    scored_from: int

    def same_as(self, other: _Span) -> bool:
        return self.scored_from == other.scored_from and np.array_equal(self.ids, other.ids)


def encode_cases(
    cases: Sequence[Case],
    tokenizer: Tokenizer,
    *,
    option_delimiter: str,
    max_length: int,
    vocab_size: int,
    boundary: Boundary = "cover",
    overlong: Overlong = "skip",
) -> list[TokenizedCase]:
    """Encodes every option of every case behind its prompt.

    The joint string is encoded once, so the ids fed always decode to prompt + continuation. With `cover`, a
    token is scored if it covers at least one character of the continuation. With `lm_eval` the split is that
    of lm-evaluation-harness (`TemplateLM._encode_pair`, v0.4): white space at the end of the prompt counts as
    continuation, the prompt's own ids are fed, and of the joint ids those beyond the prompt's number are
    scored.

    Args:
        cases: The run's cases; `case_index` in the result is the position here.
        tokenizer: Says which ids precede a text.
        option_delimiter: See `brb_jax.data.prompt.render`.
        max_length: The model's limit, in inputs. A request of `max_length + 1` ids fits: the last is no
            input.
        vocab_size: Rows of the model's embedding table.
        boundary: `cover` or `lm_eval`.
        overlong: `skip`: a case with an option that does not fit is `overlong`. `truncate_left`: as many ids
            are cut from the left of all its options as its longest one needs, BOS and scored ids excepted; a
            case whose scored ids alone do not fit is `overlong` still.

    Raises:
        EncodingError: The vocabulary is larger than the embedding table; or, with the case's id: an id lies
            outside the table, no token covers an option, or there is nothing to condition an empty prompt on.
    """
    if tokenizer.base_size > vocab_size:
        raise EncodingError(
            f"The tokenizer {tokenizer.path} has ids up to {tokenizer.base_size - 1}, the model's embedding "
            f"table only {vocab_size} rows: they do not belong together."
        )
    tokenized: list[TokenizedCase] = []
    for batch in _batches(cases, option_delimiter):
        encodings = _encode_texts(batch, tokenizer)
        for case, rendered in batch:
            for continuation in rendered.continuations:
                _check_whole(case, rendered.prompt + continuation, encodings, tokenizer)
            spans, differs = _spans(case, rendered, encodings, tokenizer, boundary)
            _check_ids(case, spans, tokenizer, vocab_size)
            special = any(tokenizer.spells_special(encodings[rendered.prompt + c].ids) for c in rendered.continuations)
            spans, note, context_tokens, truncated = _fit(spans, tokenizer, max_length, overlong)
            notes = [*_notes(rendered), *([note] if note else [])]
            case_index = len(tokenized)
            tokenized.append(
                TokenizedCase(
                    case_index=case_index,
                    requests=tuple(Request(case_index, i, s.ids, s.scored_from) for i, s in enumerate(spans)),
                    status="ok" if spans else "overlong",
                    note="; ".join(notes) or None,
                    context_tokens=context_tokens,
                    boundary_differs=differs,
                    special_text=special,
                    truncated=truncated,
                )
            )
    return tokenized


def _batches(cases: Sequence[Case], option_delimiter: str) -> Iterator[list[tuple[Case, RenderedCase]]]:
    batch, characters = [], 0
    for case in cases:
        rendered = render(case, option_delimiter)
        batch.append((case, rendered))
        characters += len(rendered.prompt) * (len(rendered.continuations) + 1)
        if characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _encode_texts(batch: Sequence[tuple[Case, RenderedCase]], tokenizer: Tokenizer) -> dict[str, Encoding]:
    """Encodes every joint string, and every prompt as the `lm_eval` boundary needs it, once each."""
    texts = dict.fromkeys(
        text
        for _, rendered in batch
        for text in (rendered.prompt.rstrip(), *(rendered.prompt + c for c in rendered.continuations))
    )
    return dict(zip(texts, tokenizer.encode_batch(list(texts)), strict=True))


def _spans(
    case: Case,
    rendered: RenderedCase,
    encodings: dict[str, Encoding],
    tokenizer: Tokenizer,
    boundary: Boundary,
) -> tuple[list[_Span], bool]:
    """The span of every option under `boundary`, and whether the other rule gives another for any of them."""
    prompt_ids = encodings[rendered.prompt.rstrip()].ids
    spans, differs = [], False
    for option, continuation in zip(case.options, rendered.continuations, strict=True):
        joint = rendered.prompt + continuation
        encoding = encodings[joint]
        both = {
            "cover": _Span(encoding.ids, encoding.first_token_in(len(rendered.prompt), len(joint))),
            "lm_eval": _Span(np.concatenate([prompt_ids, encoding.ids[len(prompt_ids) :]]), len(prompt_ids)),
        }
        span = _conditioned(case, both[boundary], tokenizer)
        if span.scored_from >= len(span.ids):
            advice = "; --boundary=cover scores the token that covers it." if boundary == "lm_eval" else "."
            raise EncodingError(
                f"Case {case.case_id}, option {option.label} {option.text!r}: the {boundary!r} boundary "
                f"leaves no token to score{advice}"
            )
        differs |= not both["cover"].same_as(both["lm_eval"])
        spans.append(span)
    return spans, differs


def _conditioned(case: Case, span: _Span, tokenizer: Tokenizer) -> _Span:
    """Puts BOS in front, unless the text itself begins with it, and something before the first scored
    token."""
    prefixed = _prefixed(span, tokenizer.prefix_ids)
    if prefixed.scored_from > 0:
        return prefixed
    if not tokenizer.conditioning_ids:
        raise EncodingError(
            f"Case {case.case_id}: nothing precedes its first scored token, and the tokenizer "
            f"{tokenizer.path} has neither BOS nor EOS to condition it on."
        )
    return _prefixed(prefixed, tokenizer.conditioning_ids)


def _prefixed(span: _Span, prefix: tuple[int, ...]) -> _Span:
    if tuple(span.ids[: len(prefix)]) == prefix:
        return _Span(span.ids, max(span.scored_from, len(prefix)))
    return _Span(np.concatenate([np.asarray(prefix, np.int32), span.ids]), span.scored_from + len(prefix))


def _check_whole(case: Case, text: str, encodings: dict[str, Encoding], tokenizer: Tokenizer) -> None:
    """A vocabulary that cannot spell a character may leave it out; all later offsets are then too small."""
    end = encodings[text].end
    if end < len(text.rstrip()):
        raise EncodingError(
            f"Case {case.case_id}: the tokenizer {tokenizer.path} drops characters: its tokens end at character "
            f"{end} of {len(text)}, so an option's tokens cannot be told from the prompt's."
        )


def _check_ids(case: Case, spans: Sequence[_Span], tokenizer: Tokenizer, vocab_size: int) -> None:
    """JAX would read row −1 or NaN for an id outside the table and go on."""
    for span in spans:
        outside = span.ids[(span.ids < 0) | (span.ids >= vocab_size)]
        if len(outside):
            raise EncodingError(
                f"Case {case.case_id}: token {tokenizer.backend.id_to_token(int(outside[0]))!r} has id "
                f"{outside[0]}, but the model's embedding table has {vocab_size} rows."
            )


def _notes(rendered: RenderedCase) -> list[str]:
    if rendered.prompt[-1:].isspace() and any(c[:1].isspace() for c in rendered.continuations):
        return ["white space on both sides of the join"]
    return []


def _fit(
    spans: list[_Span], tokenizer: Tokenizer, max_length: int, overlong: Overlong
) -> tuple[list[_Span], str | None, int, int]:
    """Applies the length rule to one case.

    Returns:
        The spans (none if the case is overlong), a note, the tokens before the longest span's first scored
        one, and how many were cut.
    """
    longest = max(spans, key=lambda span: len(span.ids))
    inputs = len(longest.ids) - 1
    excess = inputs - max_length
    if excess <= 0:
        return spans, None, longest.scored_from, 0
    kept = _kept(longest.ids, tokenizer)
    # One id has to stay before the first scored one, whether it is BOS or not.
    cuttable = min(span.scored_from for span in spans) - max(kept, 1)
    if overlong == "skip" or excess > cuttable:
        return [], f"needs {inputs} tokens, limit {max_length}", longest.scored_from, 0
    cut = [
        _Span(np.concatenate([span.ids[:kept], span.ids[kept + excess :]]), span.scored_from - excess) for span in spans
    ]
    return cut, f"truncated {excess} tokens", longest.scored_from, excess


def _kept(ids: np.ndarray, tokenizer: Tokenizer) -> int:
    """How many ids at the start are BOS and the like, from the tokenizer or from the text."""
    prefix = tokenizer.conditioning_ids
    return len(prefix) if prefix and tuple(ids[: len(prefix)]) == prefix else 0
