"""Processes of the shim."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mooring.kubelet.processes.shim.linux import boot_id, descendants_of, has_oom_kill, start_ticks


def test_who_descends_from_whom() -> None:
    script = "sleep 600 & echo $!; wait"
    with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as shell:
        assert shell.stdout is not None
        process = int(shell.stdout.readline())
        assert descendants_of(shell.pid) == [process]
        assert {shell.pid, process} <= set(descendants_of(os.getpid()))
        os.killpg(shell.pid, 9)


def test_a_process_is_known_by_the_time_of_its_start() -> None:
    assert start_ticks(os.getpid()) > 0
    assert start_ticks(2**22 + 1) == 0
    assert boot_id() == boot_id() != ""


@pytest.mark.parametrize(
    ("text", "is_killed"),
    [
        pytest.param("low 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n", True, id="v2, killed"),
        pytest.param("low 0\nmax 3\noom 0\noom_kill 0\n", False, id="v2, not killed"),
        pytest.param("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", True, id="v1, killed"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_whether_the_memory_was_too_small(tmp_path: Path, text: str, is_killed: bool) -> None:
    (tmp_path / "events").write_text(text)
    assert has_oom_kill(str(tmp_path / "events")) is is_killed
    assert has_oom_kill(str(tmp_path / "none")) is False
