"""Which files of a checkpoint make up its tokenizer."""

from __future__ import annotations

from pathlib import Path

from etils import epath

TOKENIZER_FILES = (
    "added_tokens.json",
    "chat_template.jinja",
    "config.json",  # Where tokenizer_config.json names no class, AutoTokenizer goes by the model's type.
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
)


def copy_tokenizer(source: epath.Path, target: epath.Path) -> None:
    """Copies those of `TOKENIZER_FILES` that `source` has into the existing folder `target`."""
    for name in TOKENIZER_FILES:
        if (source / name).exists():
            (target / name).write_bytes((source / name).read_bytes())


def has_tokenizer(folder: Path) -> bool:
    """Whether `AutoTokenizer` has something to load there."""
    return any((folder / name).exists() for name in ("tokenizer.json", "tokenizer.model", "vocab.json"))
