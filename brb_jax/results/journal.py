"""The crash-safe record of what a run has scored so far. Knows batches and scores, not how they were made.

Layout of a journal directory::

    fingerprint.json   what the scores depend on: model, tokenizer, dataset, scoring settings
    lock               held by the process that writes (local only; the kernel releases it on SIGKILL)
    000000.jsonl …     segments; each is written by one process and never touched again by another

A segment is a sequence of batches. A batch is a line for each case it scored options of, then a line that
closes it::

    {"case":"sets_MemoryRet_M70/7","crc32":"41056955","options":{"0":[-12.5,5,false],"2":[-9.25,4,true]}}
    {"close":3,"crc32":"d025cd10","lines":1}

A batch counts once its closing line is there and it and every line it closes have the right checksum.
`append` returns only after the batch is synced to disk, so after a crash at any moment a journal holds
exactly the batches whose `append` returned, and perhaps the one that was under way, whole. What follows the
last whole batch of a segment is a torn tail: it is ignored, and since every run writes segments of its own,
nothing is ever appended behind it.

Object stores have neither append nor sync, but writing an object is atomic: there every batch is a segment,
which the reader need not know. They have no lock either: that no second run uses the directory is up to the
user.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import pathlib
import zlib
from collections.abc import Mapping
from typing import IO, Any, Self

from absl import logging
from etils import epath

from brb_jax.results import atomic
from brb_jax.results.sample import OptionScore

ScoreKey = tuple[str, int]
"""(case_id, option_index)."""


class JournalError(Exception):
    """The journal cannot be used as it is; the message says what to do."""


class Journal:
    """An open journal: what was scored before, and a place to append what is scored now.

    Attributes:
        scores: Every score written so far. A score once written stands: a later one for the same option is
            left out, so a run resumed with other batches cannot change a result.
    """

    scores: dict[ScoreKey, OptionScore]

    def __init__(self, directory: epath.Path, scores: dict[ScoreKey, OptionScore], segments: int, lock: IO | None):
        """Use `Journal.open`."""
        self.scores = scores
        self._directory = directory
        self._segments = segments
        self._lock = lock
        self._segment: IO | None = None

    @classmethod
    def open(cls, directory: epath.PathLike, fingerprint: Mapping[str, Any]) -> Self:
        """Opens the journal in `directory`, which is created if need be, and reads the scores it holds.

        Only one process of a run may hold a journal open; others learn the scores from it.

        Args:
            directory: Local path or object-store URL.
            fingerprint: Whatever the scores depend on; strict JSON values.

        Raises:
            JournalError: The directory belongs to another fingerprint, is in use, or is damaged elsewhere
                than at a segment's end.
        """
        directory = epath.Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        lock = _lock(directory) if atomic.is_local(directory) else None
        try:
            names = sorted(path.name for path in directory.glob("*.jsonl"))
            _check_fingerprint(directory, fingerprint, has_segments=bool(names))
            scores: dict[ScoreKey, OptionScore] = {}
            for name in names:
                # Older segments win, as they did while the newer ones were written.
                scores = _read_segment(directory / name) | scores
            segments = int(names[-1].removesuffix(".jsonl")) + 1 if names else 0
        except BaseException:
            if lock is not None:
                lock.close()
            raise
        return cls(directory, scores, segments, lock)

    def append(self, batch_index: int, scores: Mapping[ScoreKey, OptionScore]) -> None:
        """Writes one batch's scores; they are on disk when this returns."""
        new = {key: score for key, score in scores.items() if key not in self.scores}
        if not new:
            return
        data = _encode_batch(batch_index, new)
        if atomic.is_local(self._directory):
            self._append_locally(data)
        else:
            self._new_segment().write_bytes(data)
        self.scores.update(new)

    def close(self) -> None:
        """Ends writing and releases the lock. Closing twice is allowed."""
        for file in (self._segment, self._lock):
            if file is not None:
                file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _append_locally(self, data: bytes) -> None:
        # Taken out while it is written to: nothing may follow a torn batch, so after a failed write (disk
        # full) the next batch starts a new segment.
        segment, self._segment = self._segment, None
        if segment is None:
            path = pathlib.Path(self._new_segment())
            segment = path.open("xb")
            atomic.sync_directory(path.parent)
        segment.write(data)
        segment.flush()
        os.fsync(segment.fileno())
        self._segment = segment

    def _new_segment(self) -> epath.Path:
        # Six digits sort as they count; with a segment per batch that is a million batches.
        path = self._directory / f"{self._segments:06d}.jsonl"
        self._segments += 1
        return path


def _lock(directory: epath.Path) -> IO | None:
    lock = pathlib.Path(directory / "lock").open("ab")  # noqa: SIM115 — held for the journal's life
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise JournalError(
            f"{directory} is in use by another run. Wait for it to end, or give this run another --out."
        ) from None
    except OSError as error:
        lock.close()
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP):
            raise
        logging.warning("%s: no locks on this file system; make sure no second run uses it.", directory)
        return None
    return lock


def _check_fingerprint(directory: epath.Path, fingerprint: Mapping[str, Any], has_segments: bool) -> None:
    text = json.dumps(fingerprint, sort_keys=True, indent=1, allow_nan=False)
    path = directory / "fingerprint.json"
    if not path.exists():
        if has_segments:
            raise JournalError(
                f"{directory} holds scores but no fingerprint.json to tell whose. "
                "Restore that file, or use another --out."
            )
        atomic.write_text(path, text + "\n")
        return
    try:
        there = dict(json.loads(path.read_text()))
    except (TypeError, ValueError):  # TypeError: JSON, but no object
        raise JournalError(
            f"{path} is damaged, so whose scores lie beside it cannot be told. Restore it, or use another --out."
        ) from None
    wanted = json.loads(text)
    differing = sorted(name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name))
    if differing:
        changes = "; ".join(f"{n}: {there.get(n)!r} there, {wanted.get(n)!r} now" for n in differing)
        raise JournalError(
            f"{directory} holds the scores of another evaluation. It differs in {changes}. "
            "Use another --out, or delete the directory to start again."
        )


def _encode_batch(batch_index: int, scores: Mapping[ScoreKey, OptionScore]) -> bytes:
    cases: dict[str, dict[str, list]] = {}
    for (case_id, option_index), score in sorted(scores.items()):
        # Python's floats print so that they read back to the last bit; strict JSON has no NaN or infinity.
        logprob = float(score.logprob)
        number = logprob if math.isfinite(logprob) else str(logprob)
        cases.setdefault(case_id, {})[str(option_index)] = [number, int(score.tokens), bool(score.greedy)]
    lines = [_encode_line({"case": case_id, "options": options}) for case_id, options in cases.items()]
    lines.append(_encode_line({"close": batch_index, "lines": len(cases)}))
    return b"".join(lines)


def _encode_line(record: dict[str, Any]) -> bytes:
    return _canonical({**record, "crc32": f"{zlib.crc32(_canonical(record)):08x}"}) + b"\n"


def _canonical(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _decode_line(line: bytes) -> dict[str, Any] | None:
    """The record of one line, or None unless every byte of it, line feed included, is as it was written."""
    try:
        record = json.loads(line)
        del record["crc32"]
        return record if _encode_line(record) == line else None
    except (ValueError, TypeError, KeyError):
        return None


def _read_segment(path: epath.Path) -> dict[ScoreKey, OptionScore]:
    """The scores of a segment's whole batches.

    Raises:
        JournalError: Whole batches follow lines that belong to none: not the trace of a crash, but damage.
    """
    records = [_decode_line(line) for line in path.read_bytes().splitlines(keepends=True)]
    scores: dict[ScoreKey, OptionScore] = {}
    end = 0
    for index, record in enumerate(records):
        if record is None or "close" not in record:
            continue
        start = index - record["lines"]
        batch = [line for line in records[max(start, 0) : index] if line is not None and "case" in line]
        if len(batch) < record["lines"]:
            continue
        if start != end:
            bad = next((i for i in range(end, start) if records[i] is None), end)
            raise JournalError(
                f"{path}, line {bad + 1}: damaged, though whole batches follow it. A crash does not do that; "
                "check the disk. Delete this file to score its batches again, or restore it from a copy."
            )
        for line in batch:
            scores |= _decode_scores(line)
        end = index + 1
    if end < len(records):
        logging.warning("%s: dropped %d lines of an unfinished batch.", path, len(records) - end)
    return scores


def _decode_scores(record: Mapping[str, Any]) -> dict[ScoreKey, OptionScore]:
    return {
        (record["case"], int(index)): OptionScore(float(logprob), tokens, greedy)
        for index, (logprob, tokens, greedy) in record["options"].items()
    }
