import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from etils.epath.testing import mock_epath

from brb_jax.results.journal import Journal, JournalError
from brb_jax.results.sample import OptionScore

FINGERPRINT = {"model": "tiny", "dataset": "d41d8cd9", "boundary": "cover"}
BATCHES = [
    {("f/1", 0): OptionScore(-1.5, 3, False), ("f/1", 1): OptionScore(-2.25, 1, True)},
    {("f/1", 2): OptionScore(-0.1, 2, False), ("f/2", 0): OptionScore(-7.0, 4, False)},
    {("ƒ 北京/3", 0): OptionScore(float("-inf"), 2, False)},
]


def filled(directory, batches=BATCHES):
    with Journal.open(directory, FINGERPRINT) as journal:
        for index, batch in enumerate(batches):
            journal.append(index, batch)
    return directory


def scores_of(directory):
    with Journal.open(directory, FINGERPRINT) as journal:
        return journal.scores


def prefix(number):
    return {key: score for batch in BATCHES[:number] for key, score in batch.items()}


def test_scores_read_back_exactly(tmp_path):
    rng = random.Random(0)
    batch = {("f/1", i): OptionScore(-rng.random() * 10 ** rng.randint(-300, 300), i + 1, False) for i in range(500)}
    assert scores_of(filled(tmp_path / "new" / "journal", [batch])) == batch


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_score_that_is_not_finite_survives_as_strict_json(tmp_path, value):
    filled(tmp_path, [{("f/1", 0): OptionScore(float(value), 2, False)}])

    def refuse(constant):
        raise AssertionError(constant)

    for line in (tmp_path / "000000.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=refuse)
    assert str(scores_of(tmp_path)["f/1", 0].logprob) == value


def test_a_run_goes_on_where_the_last_one_ended(tmp_path):
    filled(tmp_path, BATCHES[:1])
    with Journal.open(tmp_path, FINGERPRINT) as journal:
        assert journal.scores == prefix(1)
        journal.append(1, BATCHES[1])
        assert journal.scores == prefix(2)
    assert scores_of(tmp_path) == prefix(2)


def test_a_score_once_written_stands(tmp_path):
    filled(tmp_path, BATCHES[:1])
    with Journal.open(tmp_path, FINGERPRINT) as journal:
        journal.append(0, {("f/1", 1): OptionScore(-99.0, 1, False), ("f/9", 0): OptionScore(-1.0, 1, False)})
        in_memory = dict(journal.scores)
    assert in_memory == scores_of(tmp_path) == prefix(1) | {("f/9", 0): OptionScore(-1.0, 1, False)}


def test_every_torn_tail_leaves_whole_batches(tmp_path):
    data = (filled(tmp_path / "whole") / "000000.jsonl").read_bytes()
    ends = [0]
    for line in data.splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    closings = [end for end, line in zip(ends[1:], data.splitlines(), strict=True) if b'"close"' in line]
    torn = tmp_path / "torn"
    filled(torn, [])
    for length in range(len(data) + 1):
        (torn / "000000.jsonl").write_bytes(data[:length])
        assert scores_of(torn) == prefix(sum(end <= length for end in closings)), length
        # A page of zeros where the data never reached the disk.
        (torn / "000000.jsonl").write_bytes(data[:length].ljust(len(data), b"\0"))
        assert scores_of(torn) == prefix(sum(end <= length for end in closings)), length


def test_what_follows_a_torn_tail_is_written_elsewhere(tmp_path):
    segment = filled(tmp_path) / "000000.jsonl"
    torn = segment.read_bytes()[:-7]
    segment.write_bytes(torn)
    with Journal.open(tmp_path, FINGERPRINT) as journal:
        assert journal.scores == prefix(2)
        journal.append(2, BATCHES[2])
    assert segment.read_bytes() == torn
    assert scores_of(tmp_path) == prefix(3)


def test_a_batch_whose_pages_reached_the_disk_out_of_order_is_a_torn_tail(tmp_path):
    segment = filled(tmp_path, BATCHES[:2]) / "000000.jsonl"
    lines = segment.read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * len(lines[2])  # its closing line is whole
    segment.write_bytes(b"".join(lines))
    assert scores_of(tmp_path) == prefix(1)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_damage_before_whole_batches_is_an_error_that_names_the_line(tmp_path, number):
    segment = filled(tmp_path) / "000000.jsonl"
    lines = segment.read_bytes().splitlines(keepends=True)
    assert len(lines) == 7
    lines[number - 1] = lines[number - 1].replace(b":", b";", 1)
    segment.write_bytes(b"".join(lines))
    with pytest.raises(JournalError, match=rf"000000\.jsonl, line {number}: damaged"):
        Journal.open(tmp_path, FINGERPRINT)


def test_any_flipped_bit_is_noticed(tmp_path):
    segment = filled(tmp_path, BATCHES[:1]) / "000000.jsonl"
    data = segment.read_bytes()
    for position in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            segment.write_bytes(flipped)
            assert scores_of(tmp_path) == {}


def test_a_failed_write_does_not_spoil_later_batches(tmp_path, monkeypatch):
    with Journal.open(tmp_path, FINGERPRINT) as journal:
        journal.append(0, BATCHES[0])

        def disk_full(descriptor):
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - 5)
            raise OSError("No space left on device")

        monkeypatch.setattr(os, "fsync", disk_full)
        with pytest.raises(OSError, match="No space"):
            journal.append(1, BATCHES[1])
        monkeypatch.undo()
        journal.append(2, BATCHES[2])
    assert scores_of(tmp_path) == BATCHES[0] | BATCHES[2]


def test_another_fingerprint_is_refused_by_name(tmp_path):
    filled(tmp_path)
    with pytest.raises(JournalError) as error:
        Journal.open(tmp_path, {"model": "other", "dataset": "d41d8cd9", "bos": "always"})
    message = str(error.value)
    assert "model: 'tiny' there, 'other' now" in message
    assert "boundary: 'cover' there, None now" in message and "bos: None there, 'always' now" in message
    assert "dataset:" not in message and "--out" in message and "delete" in message
    assert scores_of(tmp_path) == prefix(3)


def test_the_fingerprint_is_compared_as_json(tmp_path):
    Journal.open(tmp_path, {"b": (1, 2), "a": 0.1}).close()
    Journal.open(tmp_path, {"a": 0.1, "b": [1, 2]}).close()


def test_scores_without_a_fingerprint_are_refused(tmp_path):
    (filled(tmp_path) / "fingerprint.json").unlink()
    with pytest.raises(JournalError, match="no fingerprint"):
        Journal.open(tmp_path, FINGERPRINT)


@pytest.mark.parametrize("content", ["", "{", "[1]", "null", "7"])
def test_a_damaged_fingerprint_is_refused(content, tmp_path):
    (filled(tmp_path) / "fingerprint.json").write_text(content)
    with pytest.raises(JournalError, match=r"fingerprint.json is damaged"):
        Journal.open(tmp_path, FINGERPRINT)


def test_two_runs_do_not_share_a_journal(tmp_path):
    with (
        Journal.open(tmp_path, FINGERPRINT),
        pytest.raises(JournalError, match="in use by another run"),
    ):
        Journal.open(tmp_path, FINGERPRINT)
    Journal.open(tmp_path, FINGERPRINT).close()


def test_a_refused_journal_is_not_left_locked(tmp_path):
    filled(tmp_path)
    with pytest.raises(JournalError, match="another evaluation"):
        Journal.open(tmp_path, {})
    assert scores_of(tmp_path) == prefix(3)


def test_in_an_object_store_every_batch_is_an_object(tmp_path):
    def local(path):
        return pathlib.Path(str(path).replace("gs://bucket", str(tmp_path)))

    def open_whole_objects(_, path, mode="r", **options):
        assert "a" not in mode and "+" not in mode
        return local(path).open(mode, **options)

    def make(_, path, **options):
        local(path).mkdir(parents=True, exist_ok=True)

    with mock_epath(
        open=open_whole_objects,
        exists=lambda _, path: local(path).exists(),
        glob=lambda _, pattern: [f"gs://bucket/journal/{p.name}" for p in local("gs://bucket/journal").glob("*l")],
        makedirs=make,
        mkdir=make,
    ):
        filled("gs://bucket/journal", BATCHES[:2])
        names = sorted(path.name for path in (tmp_path / "journal").iterdir())
        assert names == ["000000.jsonl", "000001.jsonl", "fingerprint.json"]
        with Journal.open("gs://bucket/journal", FINGERPRINT) as journal:
            assert journal.scores == prefix(2)
            journal.append(2, BATCHES[2])
    assert scores_of(tmp_path / "journal") == prefix(3)


WRITER = """
    import sys
    from brb_jax.results.journal import Journal
    from brb_jax.results.sample import OptionScore

    with Journal.open(sys.argv[1], {}) as journal:
        done = len(journal.scores) // 3
        for b in range(done, 10_000):
            journal.append(b, {(f"f/{b}-{i}", 0): OptionScore(-b - i / 7, 1, False) for i in range(3)})
            print(b, flush=True)
"""


def test_sigkill_at_random_points_leaves_a_prefix_of_whole_batches(tmp_path):
    rng = random.Random(48)
    program = textwrap.dedent(WRITER)
    done = 0
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE) as writer:
            first = int(writer.stdout.readline())
            assert first == done
            time.sleep(rng.random() * 0.1)
            writer.send_signal(signal.SIGKILL)
            acknowledged = max([first, *map(int, writer.stdout.read().split()[:-1])])
        with Journal.open(tmp_path, {}) as journal:
            done, rest = divmod(len(journal.scores), 3)
            assert rest == 0 and done > acknowledged
            keys = [(batch, i) for batch in range(done) for i in range(3)]
            assert journal.scores == {(f"f/{b}-{i}", 0): OptionScore(-b - i / 7, 1, False) for b, i in keys}
