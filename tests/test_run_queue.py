"""The run queue delay of threads: read from the kernel, summed, kept when a thread ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.run_queue import RunQueueDelay
from tests.waiting import wait_until


def write(proc: Path, task: str, text: str) -> Path:
    directory = proc / task
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "schedstat").write_text(text, encoding="ascii")
    return directory


def test_delays_of_all_threads_are_summed_and_kept(tmp_path: Path) -> None:
    write(tmp_path, "1/task/1", "5000 1000000000 3\n")
    ended = write(tmp_path, "1/task/2", "7000 2000000000 3\n")
    write(tmp_path, "9/task/9", "7000 500000000 3\n")
    delay = RunQueueDelay(1, 9, proc=tmp_path)
    assert delay.is_available
    assert delay.total_s() == 3.5
    write(tmp_path, "1/task/1", "5000 1250000000 4\n")
    (ended / "schedstat").unlink()
    assert delay.total_s() == 3.75


def test_a_kernel_that_does_not_account(tmp_path: Path) -> None:
    assert not RunQueueDelay(1, proc=tmp_path).is_available
    write(tmp_path, "1/task/1", "0 0 0\n")
    assert not RunQueueDelay(1, proc=tmp_path).is_available


def test_processes_that_share_a_processor_delay_each_other() -> None:
    delay = RunQueueDelay(os.getpid())
    if not delay.is_available:  # e.g. another kernel than Linux: its users fall back, see test_blocking.py
        return
    processor = min(os.sched_getaffinity(0))
    busy = f"import os\nos.sched_setaffinity(0, {{{processor}}})\nwhile True: pass"
    processes = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(2)]
    try:
        first = RunQueueDelay(processes[0].pid)
        wait_until(lambda: first.total_s() > 0.1)
    finally:
        for process in processes:
            process.kill()
            process.wait()
