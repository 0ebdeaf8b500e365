"""Directories of pods, and what earlier processes left in them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.kubelet.processes import stale_processes
from mooring.kubelet.processes.directories import DirectoryTakenError, PodDirectories, abandoned_directories
from mooring.kubelet.processes.shim.linux import boot_id, start_ticks
from mooring.kubelet.processes.stale_processes import OWNER_VARIABLE, kill_stale_processes
from tests.waiting import LIMIT_S, wait_until


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


# --- Processes of an earlier kubelet are killed, others are not


@pytest.fixture
def directories(tmp_path: Path) -> Iterator[PodDirectories]:
    opened = PodDirectories.open(tmp_path / "pods")
    opened.make_container("uid", "main", 0)
    yield opened
    opened.close()


@pytest.fixture
def stale() -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own."""
    with subprocess.Popen(["sleep", "600"], env={"PATH": "/usr/bin:/bin"}, start_new_session=True) as process:
        yield process
        process.kill()


@contextmanager
def marked(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose environment says that it belongs to a directory."""
    mark = {OWNER_VARIABLE: str(directory)}
    with subprocess.Popen(["/bin/sleep", "600"], env=mark, start_new_session=True) as process:
        try:
            # `Popen` returns before exec has set up the environment.
            wait_until(Path(f"/proc/{process.pid}/environ").read_bytes)
            yield process
        finally:
            process.kill()


def record(directories: PodDirectories, **changes: object) -> None:
    directories.record("uid", "main").write_text(json.dumps(changes))


def cleared(directories: PodDirectories) -> int:
    return run_real(kill_stale_processes(directories, SystemClock()))


def test_recorded_processes_are_killed(directories: PodDirectories, stale: subprocess.Popen[bytes]) -> None:
    record(directories, pid=stale.pid, started=start_ticks(stale.pid), boot=boot_id())
    assert cleared(directories) == 1
    assert stale.wait(LIMIT_S) == -9
    assert list(directories.records()) == []


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"started": 1}, id="started at another time"),
        pytest.param({"boot": "another"}, id="before the machine was restarted"),
    ],
)
def test_a_process_with_a_reused_pid_is_left_alone(
    directories: PodDirectories, stale: subprocess.Popen[bytes], changes: dict[str, object]
) -> None:
    known = {"pid": stale.pid, "started": start_ticks(stale.pid), "boot": boot_id()}
    record(directories, **{**known, **changes})
    assert cleared(directories) == 0
    assert stale.poll() is None


def test_a_process_with_the_marker_is_killed(directories: PodDirectories) -> None:
    with marked(directories.container("uid", "main")) as process:
        assert cleared(directories) == 1
        assert process.wait(LIMIT_S) == -9


def test_a_process_that_one_scan_missed_is_killed(directories: PodDirectories, monkeypatch: pytest.MonkeyPatch) -> None:
    with marked(directories.container("uid", "main")) as process:
        find, looks = stale_processes._find, itertools.count()
        monkeypatch.setattr(stale_processes, "_find", lambda found: find(found) if next(looks) else iter(()))
        assert cleared(directories) == 1
        assert process.wait(LIMIT_S) == -9


def test_a_process_with_the_marker_of_another_directory_is_left_alone(
    directories: PodDirectories, tmp_path: Path
) -> None:
    with marked(tmp_path / "pods-of-another" / "uid") as process:
        assert cleared(directories) == 0
        assert process.poll() is None


def test_a_record_that_cannot_be_read_counts_for_nothing(directories: PodDirectories) -> None:
    directories.record("uid", "main").write_text("{")
    assert cleared(directories) == 0
