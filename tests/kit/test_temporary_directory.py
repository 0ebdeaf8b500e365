"""Temporary directories are removed at the end, and those of killed processes by the next process."""

from __future__ import annotations

import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mooring.kit.temporary_directory import remove_temporary_directories, temporary_directory

PREFIX = "mooring-test-"
PROGRAM = f"""
import sys
from mooring.kit.temporary_directory import temporary_directory
with temporary_directory({PREFIX!r}) as path:
    (path / "key.pem").write_text("secret")
    print(path, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_a_directory_is_private_and_removed_at_the_end(tmp_path: Path) -> None:
    with temporary_directory(PREFIX) as path:
        (path / "key.pem").write_text("secret")
        assert (path.parent, path.name.startswith(PREFIX)) == (tmp_path, True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []


def test_a_failing_block_removes_its_directory(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), temporary_directory(PREFIX):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_directories_are_removed_before_the_process_ends_at_once(tmp_path: Path) -> None:
    with temporary_directory(PREFIX), temporary_directory("mooring-other-"):
        remove_temporary_directories()
        assert list(tmp_path.iterdir()) == []


def test_the_directory_of_a_killed_process_is_removed_by_the_next_one() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        other = Path(process.stdout.readline().strip())
        with temporary_directory(PREFIX):
            assert (other / "key.pem").exists(), "its process is running"
        process.kill()
        process.wait()
        assert (other / "key.pem").exists(), "a killed process removes nothing"
        with temporary_directory("mooring-other-"):
            assert other.exists(), "another prefix"
        with temporary_directory(PREFIX):
            assert not other.exists()
