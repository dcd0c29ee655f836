"""Builds a Hugging Face tokenizer from a GGUF file's metadata, as transformers can only do with torch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE

from brb_jax.checkpoints.checkpoint import CheckpointError

_CONTROL, _USER_DEFINED = 3, 4  # llama.cpp's token types.

_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3_PRE = ("llama-bpe", "llama3", "llama-v3")


def write_tokenizer(metadata: Mapping[str, Any], folder: Path) -> None:
    """Writes `tokenizer.json` and `tokenizer_config.json`, which `AutoTokenizer` loads.

    The tokenizer puts a BOS in front of every text if the file says so. It never appends an EOS.

    Args:
        metadata: Every key of the GGUF file.
        folder: An existing folder.

    Raises:
        CheckpointError: The file holds a kind of tokenizer that is not supported.
    """
    kind = metadata.get("tokenizer.ggml.model")
    pre = metadata.get("tokenizer.ggml.pre")
    tokens: list[str] = metadata.get("tokenizer.ggml.tokens", [])
    if kind == "gpt2":
        tokenizer = _byte_level(tokens, metadata["tokenizer.ggml.merges"], pre)
    elif kind == "llama" and metadata["general.architecture"] == "gemma3":
        tokens = [_respell(token) for token in tokens]
        tokenizer = _gemma(tokens, tokens[metadata["tokenizer.ggml.unknown_token_id"]])
    else:
        raise CheckpointError(
            f"a GGUF tokenizer of model {kind!r} in a {metadata['general.architecture']!r} file is not "
            "supported, only 'gpt2' and Gemma's 'llama'; use the model's safetensors"
        )
    types: Sequence[int] = metadata.get("tokenizer.ggml.token_type", ())
    vocabulary = tokenizer.get_vocab()
    named = [pair for pair in zip(tokens, types, strict=False) if pair[0] in vocabulary]
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t, kind in named if kind == _CONTROL])
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t, kind in named if kind == _USER_DEFINED])

    add_bos = metadata.get("tokenizer.ggml.add_bos_token", kind == "llama" or pre in _LLAMA3_PRE)
    special = {
        name: tokens[metadata[f"tokenizer.ggml.{key}_token_id"]]
        for name, key in {
            "bos_token": "bos",
            "eos_token": "eos",
            "unk_token": "unknown",
            "pad_token": "padding",
        }.items()
        if f"tokenizer.ggml.{key}_token_id" in metadata
    }
    if add_bos:
        bos = special["bos_token"]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, tokens.index(bos))]
        )
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        **special,
    }
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")


def _byte_level(tokens: Sequence[str], merges: Sequence[str], pre: str | None) -> Tokenizer:
    """Byte-level BPE. `pre` names how text is split first, which the merges depend on."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if pre == "smollm":
        split: list[pre_tokenizers.PreTokenizer] = [pre_tokenizers.Digits(individual_digits=True), byte_level]
    elif pre == "gpt-2":
        split = [byte_level]
    elif pre in _LLAMA3_PRE:
        split = [
            pre_tokenizers.Split(Regex(_LLAMA3_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    else:
        raise CheckpointError(
            f"a GGUF tokenizer with pre-tokenizer {pre!r} is not supported, only 'smollm', 'gpt-2' and "
            "'llama-bpe'; use the model's safetensors"
        )
    pairs = [(left, right) for left, right in (merge.split(" ") for merge in merges)]
    # Llama 3's vocabulary holds words its merges do not reach (`ignore_merges` in its tokenizer.json).
    tokenizer = Tokenizer(
        BPE(
            vocab={token: i for i, token in enumerate(tokens)},
            merges=pairs,
            fuse_unk=False,
            ignore_merges=pre in _LLAMA3_PRE,
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(split)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _gemma(tokens: Sequence[str], unknown: str) -> Tokenizer:
    """Gemma's SentencePiece BPE with byte fallback. The file has no merges; they follow from the vocabulary.

    A token's rank is its place in the vocabulary (the file's scores do not follow Gemma's merge order), and
    every way to join two tokens into it is a merge; of those, the one with the longest left part comes first,
    as in transformers' `generate_merges`.
    """
    vocabulary = {token: i for i, token in enumerate(tokens)}
    merges = [
        (token[:i], token[i:])
        for token in tokens
        for i in range(len(token) - 1, 0, -1)
        if token[:i] in vocabulary and token[i:] in vocabulary
    ]
    tokenizer = Tokenizer(
        BPE(
            vocab=vocabulary,
            merges=merges,
            fuse_unk=True,
            byte_fallback=True,
            unk_token=unknown,
            dropout=None,
        )
    )
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def _respell(token: str) -> str:
    """GGUF spells Gemma's tokens for runs of spaces with spaces, SentencePiece with its own mark."""
    return "▁" * len(token) if token and not token.strip(" ") else token
