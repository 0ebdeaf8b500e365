"""A data directory has one owner, who may die without tidying up, and a number that only proves what it can."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mooring.store.sqlite.errors import DirectoryInUse, DirectoryUnusable
from mooring.store.sqlite.file import DataDirectory


def test_the_second_owner_is_told_who_the_first_is(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path / "data")
    with pytest.raises(DirectoryInUse, match=f"data is in use by process {os.getpid()}: stop that process"):
        DataDirectory(tmp_path / "data")
    first.close()
    DataDirectory(tmp_path / "data").close()


def test_a_lock_that_a_dead_process_left_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("4242424242424242424\n")
    DataDirectory(tmp_path).close()
    assert (tmp_path / "lock").read_text().split() == [str(os.getpid())]


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data")
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0
    assert all(each.stat().st_mode & 0o077 == 0 for each in (tmp_path / "data").iterdir())
    directory.close()


def test_what_is_no_directory_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DirectoryUnusable, match=r"cannot be the data directory: .*choose another one"):
        DataDirectory(tmp_path / "file")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        pytest.param(b"", 0, id="nothing was noted yet"),
        pytest.param(b"\0" * 30, 0, id="a power cut left zeros"),
        pytest.param(b"00000000000000001234", 0, id="a part of it"),
        pytest.param(b"00000000000000009234 60f5bf34\n", 0, id="a digit is another one"),
        pytest.param(None, 1234, id="what was noted"),
    ],
)
def test_what_was_acknowledged_is_known_only_if_it_is_whole(text: bytes | None, known: int, tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    directory.acknowledge(99)
    directory.acknowledge(1234)
    if text is not None:
        (tmp_path / "acknowledged").write_bytes(text)
    assert directory.acknowledged() == known
    directory.close()
