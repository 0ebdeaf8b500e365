"""`kill -9` at any time loses no acknowledged write, and no revision is assigned twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mooring.kit.entropy import Entropy
from tests.store.sqlite.builders import contents_of
from tests.store.sqlite.writer import REPEATED, WRITERS

ROUNDS = 6
LINES_MAX = 800
ROOT = Path(__file__).parents[3]
DELETED = "-"

Line = tuple[int, str, str]
"""Revision (0: started, not acknowledged), key, value."""


def writer(directory: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.store.sqlite.writer", str(directory)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_after(process: subprocess.Popen[str], count: int) -> list[Line]:
    """All lines of the process until it is killed, at least `count`."""
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        lines = [process.stdout.readline() for _ in range(count)]
        process.send_signal(signal.SIGKILL)
        rest, complaint = process.stdout.read(), process.stderr.read()
    assert process.returncode == -signal.SIGKILL, complaint
    whole = "".join(lines) + rest[: rest.rfind("\n") + 1]
    return [(int(revision), key, value) for revision, key, value in (line.split() for line in whole.splitlines())]


@pytest.mark.parametrize("seed", [7])
def test_acknowledged_writes_are_read_after_a_kill(seed: int, tmp_path: Path) -> None:
    entropy = Entropy(seed)
    before: dict[str, str] = {}
    last_revision = 1
    for _ in range(ROUNDS):
        message = kill_after(writer(tmp_path), 20 + entropy.integer_below(LINES_MAX))
        revisions = [revision for revision, _, _ in message if revision]
        assert min(revisions) > last_revision, "a revision was assigned twice"
        assert len({*revisions}) == len(revisions)
        last_revision, records = contents_of(tmp_path)
        assert max(revisions) <= last_revision <= max(revisions) + WRITERS
        found = {key: value[: len(value) // REPEATED].decode() for key, (_, value) in records.items()}
        allowed = allowed_values(before, message)
        assert {key: found.get(key, DELETED) for key in allowed if found.get(key, DELETED) not in allowed[key]} == {}
        assert found.keys() <= allowed.keys()
        assert all(value == text.encode() * REPEATED for text, (_, value) in zip(found.values(), records.values()))
        before = found


def allowed_values(before: dict[str, str], message: list[Line]) -> dict[str, list[str]]:
    """For each key its last acknowledged value, and later started writes, which may or may not be stored."""
    allowed = {key: [value] for key, value in before.items()}
    for revision, key, value in message:
        if revision:
            allowed[key] = [value]
        else:
            allowed.setdefault(key, [DELETED]).append(value)
    return allowed


def test_a_second_process_exits_with_the_id_of_the_process_that_uses_the_directory(tmp_path: Path) -> None:
    first = writer(tmp_path)
    assert first.stdout is not None
    first.stdout.readline()
    second = writer(tmp_path)
    _, message = second.communicate()
    assert second.returncode == 1
    assert f"{tmp_path} is in use by process {first.pid}: stop that process" in message
    kill_after(first, 10)
    assert contents_of(tmp_path)[0] > 1
