"""One case exactly as a model will read it: from the ids that are fed, not from the string they were made of."""

from __future__ import annotations

import dataclasses
from typing import Any

from brb_jax.data.case import Case
from brb_jax.data.prompt import render
from brb_jax.tokens.request import Request, TokenizedCase
from brb_jax.tokens.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True)
class ShownToken:
    """A scored token.

    Attributes:
        id, token: As the vocabulary has it.
        text: The characters of prompt and option that it covers.
        in_prompt: How many of them belong to the prompt.
    """

    id: int
    token: str
    text: str
    in_prompt: int


@dataclasses.dataclass(frozen=True)
class ShownOption:
    """An option behind its prompt.

    Attributes:
        read: What the ids before the first scored one decode to, special tokens included; the prompt itself without a
            tokenizer.
        scored: The rest; it begins within `read`'s last character where a token begins there.
        ids: How many ids are fed, the last scored one included; None without a tokenizer.
        tokens: The scored ones; None without a tokenizer.
        exact: Whether the ids decode to prompt and option, letter for letter, after what the tokenizer puts in front.
            Not so where a tokenizer normalises text, or the context was cut. None without a tokenizer.
    """

    label: str
    type: str
    read: str
    scored: str
    ids: int | None
    tokens: tuple[ShownToken, ...] | None
    exact: bool | None


@dataclasses.dataclass(frozen=True)
class ShownCase:
    """A case as it is read.

    Attributes:
        status, note: As in `samples.jsonl`.
        prefix: The tokens that are fed before the text.
        options: Empty where the case does not fit.
    """

    case_id: str
    answer: str
    status: str
    note: str | None
    prefix: tuple[str, ...]
    options: tuple[ShownOption, ...]

    def to_json(self) -> dict[str, Any]:
        """As strict JSON values."""
        return dataclasses.asdict(self)


def show_case(
    case: Case, tokenized: TokenizedCase | None, tokenizer: Tokenizer | None, option_delimiter: str
) -> ShownCase:
    """Renders a case.

    Args:
        case: The case.
        tokenized: The same case as token ids; None without a tokenizer.
        tokenizer: What made them.
        option_delimiter: As it was given to `encode_cases`.
    """
    rendered = render(case, option_delimiter)
    if tokenizer is None or tokenized is None:
        options = tuple(
            ShownOption(option.label, option.type, rendered.prompt, continuation, None, None, None)
            for option, continuation in zip(case.options, rendered.continuations, strict=True)
        )
        return ShownCase(case.case_id, case.answer, "ok", None, (), options)
    prefix = tuple(str(tokenizer.backend.id_to_token(i)) for i in tokenizer.prefix_ids)
    options = tuple(
        _show_option(case, request, rendered.prompt, rendered.continuations[request.option_index], tokenizer)
        for request in tokenized.requests
    )
    return ShownCase(case.case_id, case.answer, tokenized.status, tokenized.note, prefix, options)


def _show_option(case: Case, request: Request, prompt: str, continuation: str, tokenizer: Tokenizer) -> ShownOption:
    option = case.options[request.option_index]
    whole, read = tokenizer.decode(request.ids), tokenizer.decode(request.ids[: request.scored_from])
    # A character whose bytes lie on both sides decodes to a replacement in `read`: it belongs to what is scored.
    common = next((i for i, (a, b) in enumerate(zip(whole, read, strict=False)) if a != b), len(read))
    return ShownOption(
        label=option.label,
        type=option.type,
        read=whole[:common],
        scored=whole[common:],
        ids=len(request.ids),
        tokens=tuple(_scored_tokens(request, prompt, continuation, tokenizer)),
        exact=whole.endswith(prompt + continuation),
    )


def _scored_tokens(request: Request, prompt: str, continuation: str, tokenizer: Tokenizer) -> list[ShownToken]:
    encoding = tokenizer.encode(prompt + continuation)
    # Under either boundary, cut or not, the scored ids are the last of the joint ones.
    count = request.num_scored
    assert encoding.ids[-count:].tolist() == request.ids[-count:].tolist()
    shown = []
    for id_, (start, end) in zip(encoding.ids[-count:].tolist(), encoding.offsets[-count:].tolist(), strict=True):
        token = str(tokenizer.backend.id_to_token(id_))
        text = (prompt + continuation)[start:end]
        shown.append(ShownToken(id_, token, text, max(0, min(end, len(prompt)) - start)))
    return shown
