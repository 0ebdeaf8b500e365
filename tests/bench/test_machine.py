"""The machine: what is known of it, and how much memory is taken."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import bench.machine
from bench.machine import (
    commit,
    cpu_s_of,
    describe_machine,
    family_of,
    forget_peak,
    free_port,
    peak_bytes,
    resident_bytes,
    resident_bytes_of,
)


def test_the_machine_is_described() -> None:
    machine = describe_machine()
    assert machine.cores >= 1
    assert machine.cpu
    assert machine.python.split()[-1].count(".") == 2
    assert machine.numpy == np.__version__


def test_the_peak_is_at_least_what_is_resident() -> None:
    resident = resident_bytes()
    assert 1 << 20 < resident <= peak_bytes()


def test_a_peak_can_be_forgotten() -> None:
    taken = np.ones(64 << 20, dtype=np.uint8)
    high = peak_bytes()
    del taken
    forget_peak()
    # Where the system cannot do it, the old peak stays: it never grows by being forgotten.
    assert resident_bytes() <= peak_bytes() <= high


def test_garbage_collection_is_described_as_it_is() -> None:
    assert "thresholds" in describe_machine().garbage_collection
    gc.disable()
    try:
        assert describe_machine().garbage_collection == "off"
    finally:
        gc.enable()


def test_a_tree_without_git_has_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.machine, "__file__", str(tmp_path / "machine.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit() == ("unknown", False)


def test_another_process_is_seen_as_it_sees_itself() -> None:
    assert resident_bytes_of(os.getpid()) == pytest.approx(resident_bytes(), rel=0.2)


def test_cpu_time_is_counted_in_less_than_ticks() -> None:
    before_s = time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID)
    first_s = cpu_s_of(os.getpid())
    second_s = cpu_s_of(os.getpid())
    assert before_s < first_s < second_s < time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID)


def test_free_ports_differ_and_are_not_the_kernels_to_give_away() -> None:
    ports = [free_port() for _ in range(50)]
    assert len(set(ports)) == 50
    with socket.socket() as drawn:
        drawn.bind(("127.0.0.1", 0))
        assert max(ports) < drawn.getsockname()[1]


def test_those_who_were_started_belong_to_the_family() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        family = family_of(os.getpid())
        child.communicate(b"\n")
    assert family[0] == os.getpid()
    assert child.pid in family
    assert child.pid not in family_of(os.getpid())
