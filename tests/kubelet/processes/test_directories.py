"""Directories of pods: one kubelet at a time, and nothing is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mooring.kubelet.processes.directories import DirectoryTakenError, PodDirectories, abandoned_directories


def test_one_kubelet_has_a_directory_at_a_time(tmp_path: Path) -> None:
    first = PodDirectories.open(tmp_path / "pods")
    with pytest.raises(DirectoryTakenError, match="in use by another mooring process"):
        PodDirectories.open(tmp_path / "pods")
    first.close()
    PodDirectories.open(tmp_path / "pods").close()


def test_what_is_kept_of_a_container_when_it_is_started_again(tmp_path: Path) -> None:
    directories = PodDirectories.open(tmp_path)
    for attempt in range(4):
        directories.make_container("uid", "main", attempt)
        directories.log("uid", "main", attempt).write_text("said")
        directories.log("uid", "main", attempt).with_name(f"{attempt}.log.1").write_text("said before")
        directories.termination_log("uid", "main").write_text("bye")
    directories.make_container("uid", "main", 4)
    names = sorted(path.name for path in directories.container("uid", "main").iterdir())
    assert names == ["3.log", "3.log.1", "termination-log", "work"]
    assert directories.termination_log("uid", "main").read_text() == ""
    directories.close()


def test_a_pod_that_is_removed_leaves_nothing(tmp_path: Path) -> None:
    directories = PodDirectories.open(tmp_path)
    directories.make_container("uid-1", "main", 0)
    directories.make_container("uid-2", "main", 0)
    assert directories.pods() == ["uid-1", "uid-2"]
    directories.remove_pod("uid-1")
    assert directories.pods() == ["uid-2"]
    directories.close()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / f"mooring-{os.getuid()}"


def test_a_temporary_directory_is_gone_at_the_end(temporary: Path) -> None:
    directories = PodDirectories.temporary()
    directories.make_container("uid", "main", 0)
    assert directories.root.parent == temporary
    directories.close()
    assert list(temporary.iterdir()) == []


def test_only_directories_without_their_kubelet_are_abandoned(temporary: Path) -> None:
    alive = PodDirectories.temporary()
    dead = temporary / "pods-dead"
    (dead / "uid").mkdir(parents=True)
    (dead / "lock").touch()
    (found,) = abandoned_directories()
    assert found.root == dead
    found.close()
    assert list(temporary.iterdir()) == [alive.root]
    alive.close()
