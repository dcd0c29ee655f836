"""Tokenizers of a few hundred ids, each built as those of one family are, as transformers reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

_CORPUS = [
    "hello world is big, the world is new york newer new",
    "Answer: B Answer: A\nzorp: amber kite -> kite amber\nlark jade -> jade lark\n",
    "abc de abc de",
]


def gpt2_like(directory: Path, **config: Any) -> Path:
    """Byte-level BPE; `<|endoftext|>` is BOS and EOS, and neither is added."""
    return _save(_byte_level(["<|endoftext|>"]), directory, {"eos_token": "<|endoftext|>", **config})


def roberta_like(directory: Path) -> Path:
    """Byte-level BPE, `<s> … </s>`, whose post-processor takes leading spaces out of the offsets."""
    tokenizer = _byte_level(["<s>", "</s>"])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0), trim_offsets=True)
    return _save(tokenizer, directory, {"bos_token": "<s>", "eos_token": "</s>"})


def bos_and_eos(directory: Path) -> Path:
    """Byte-level BPE whose post-processor puts BOS in front and EOS behind."""
    tokenizer = _byte_level(["<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return _save(tokenizer, directory, {"bos_token": "<s>", "eos_token": "</s>"})


def glm_like(directory: Path) -> Path:
    """Byte-level BPE with a prefix of two tokens, neither of them declared as BOS."""
    tokenizer = _byte_level(["[gMASK]", "<sop>", "<eop>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[gMASK] <sop> $A", special_tokens=[("[gMASK]", 0), ("<sop>", 1)]
    )
    return _save(tokenizer, directory, {"eos_token": "<eop>"})


def truncating(directory: Path) -> Path:
    """Truncation to 8 ids and padding to 8, stored in the file."""
    tokenizer = _byte_level(["<|endoftext|>"])
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    return _save(tokenizer, directory, {"eos_token": "<|endoftext|>", "model_max_length": 8})


def without_specials(directory: Path) -> Path:
    return _save(_byte_level([]), directory, {})


def llama2_like(directory: Path) -> Path:
    """SentencePiece BPE: a dummy `▁` before the text, bytes for unknown characters, BOS added."""
    tokenizer = _sentencepiece()
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return _save(tokenizer, directory, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"})


def gemma_like(directory: Path) -> Path:
    """SentencePiece BPE without a dummy prefix, BOS added, an added token beyond the vocabulary proper."""
    tokenizer = _sentencepiece()
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(["<image>"])
    return _save(tokenizer, directory, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"})


def lone_characters(directory: Path) -> Path:
    """One token a character (`abc` + `de` is five tokens), nothing added, no special tokens."""
    vocab = {character: i for i, character in enumerate("abcdefgh ")}
    return _save(Tokenizer(models.BPE(vocab, [])), directory, {})


def _byte_level(special_tokens: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special_tokens, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(_CORPUS * 3, trainer)
    return tokenizer


def _sentencepiece() -> Tokenizer:
    specials = ["<s>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trained.train_from_iterator(
        _CORPUS * 3, trainers.BpeTrainer(vocab_size=400, special_tokens=specials, show_progress=False)
    )
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    tokenizer = Tokenizer(models.BPE(model["vocab"], merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.add_special_tokens(["<s>", "</s>", "<unk>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def _save(tokenizer: Tokenizer, directory: Path, config: dict[str, Any]) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", **config}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    return directory


FAMILIES = {
    builder.__name__: builder
    for builder in (
        gpt2_like,
        roberta_like,
        bos_and_eos,
        glm_like,
        truncating,
        without_specials,
        llama2_like,
        gemma_like,
        lone_characters,
    )
}
