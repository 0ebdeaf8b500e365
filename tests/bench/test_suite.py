"""The suite: its runs, each in a process; memory and CPU time of processes."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
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
)
from bench.results import AnyResult, Result, SchedulerResult
from bench.suite import (
    NODES_SWEEP,
    SizeOptions,
    Starter,
    best_runs,
    here,
    in_a_process_of_its_own,
    nodes_sweep,
    placed_sweep,
    suite_names,
    through_engine,
    through_scheduler,
)
from bench.workload import Size, read_workload
from tests.bench.test_results import LEVEL, SCHEDULER_RESULT


@pytest.mark.parametrize(
    ("options", "size"),
    [
        pytest.param(SizeOptions(), Size(pods=20_000), id="no option: the workload's own size"),
        pytest.param(
            SizeOptions(nodes=10, placed=0, pods=5), Size(nodes=10, placed=0, pods=5), id="every number can be set"
        ),
        pytest.param(SizeOptions(quick=True), Size(nodes=60, placed=120, pods=40, warm_up=5), id="quick is tiny"),
        pytest.param(
            SizeOptions(nodes=9, quick=True),
            Size(nodes=9, placed=120, pods=40, warm_up=5),
            id="a number overrides quick",
        ),
    ],
)
def test_sizes_of_the_command_line(options: SizeOptions, size: Size) -> None:
    assert options.size_of(read_workload("plain")) == size


def test_the_suite_starts_with_the_highest_targets_and_leaves_the_largest_cluster_out() -> None:
    names = suite_names("engine")
    assert set(names[:2]) == {"plain", "node-affinity"}
    assert "huge" not in names
    assert len(names) == len(set(names)) >= 20


def test_the_suite_through_the_scheduler_starts_with_the_highest_targets() -> None:
    names = suite_names("scheduler")
    assert names[0] == "loop-plain"
    assert set(names[1:4]) == {"loop-anti-affinity", "loop-spread-hard", "loop-spread-soft"}
    assert set(names).isdisjoint(suite_names("engine"))


def test_a_quick_run_has_few_waiting_pods() -> None:
    beside = read_workload("loop-plain-beside-gated")
    assert (SizeOptions().size_of(beside).waiting, SizeOptions(quick=True).size_of(beside).waiting) == (10_000, 30)


def test_an_explicit_number_of_placed_pods_overrides_a_full_cluster() -> None:
    preemption = read_workload("preemption")
    assert SizeOptions().size_of(preemption).placed_count == 20_000
    assert SizeOptions(placed=7).size_of(preemption).placed_count == 7


class Recorder:
    """Writes down what would have been started."""

    def __init__(self) -> None:
        self.started: list[tuple[str, SizeOptions]] = []

    def __call__(self, name: str, options: SizeOptions) -> Result:
        self.started.append((name, options))
        return Result(name=name, nodes=options.nodes or 0, node_load_us=0.0, levels=(), peak_bytes=0)


def test_the_nodes_sweep_goes_from_100_to_100000_nodes_with_two_pods_each() -> None:
    recorder = Recorder()
    results = list(nodes_sweep(SizeOptions(), recorder))
    assert [result.nodes for result in results if result.name == "plain"] == list(NODES_SWEEP)
    assert (NODES_SWEEP[0], NODES_SWEEP[-1]) == (100, 100_000)
    assert {result.name for result in results} == {"plain", "spread-hard"}
    assert all(options.placed == 2 * (options.nodes or 0) for _, options in recorder.started)


def test_the_placed_sweep_is_the_largest_cluster() -> None:
    assert placed_sweep(SizeOptions(), Recorder()).name == "huge"


@pytest.mark.parametrize("start", [here, in_a_process_of_its_own], ids=["in this process", "in one of its own"])
def test_a_run(start: Starter) -> None:
    result = start("plain", SizeOptions(nodes=12, quick=True))
    assert isinstance(result, Result)
    assert (result.name, result.nodes, result.last.pods, result.problems) == ("plain", 12, 40, ())


@pytest.mark.parametrize("start", [here, in_a_process_of_its_own], ids=["in this process", "in one of its own"])
def test_a_run_through_the_scheduler(start: Starter) -> None:
    result = start("loop-plain", SizeOptions(nodes=12, quick=True))
    assert isinstance(result, SchedulerResult)
    assert (result.name, result.nodes, result.pods, result.problems) == ("loop-plain", 12, 40, ())


def test_beside_waiting_pods_a_workload_is_started_once() -> None:
    started: list[str] = []

    def start(name: str, options: SizeOptions) -> AnyResult:
        started.append(name)
        return SCHEDULER_RESULT

    list(best_runs(["loop-plain", "loop-plain-beside-gated"], SizeOptions(), start))
    assert started == ["loop-plain"] * 3 + ["loop-plain-beside-gated"]


@pytest.mark.parametrize("keep", [through_engine, through_scheduler], ids=["the engine's", "the scheduler's"])
def test_results_are_not_mixed(keep: Callable[[Iterable[AnyResult]], Iterator[AnyResult]]) -> None:
    with pytest.raises(AssertionError, match="goes through the"):
        list(keep([a_result(1.0), SCHEDULER_RESULT]))


def test_of_several_runs_the_fastest_counts_and_a_wrong_one_before_all() -> None:
    speeds = iter([100.0, 300.0, 200.0])
    fastest = list(best_runs(["plain"], SizeOptions(), lambda name, options: a_result(next(speeds))))
    assert [result.pods_per_second for result in fastest] == [300.0]
    outcomes = iter([(), ("two pods were lost",), ()])
    wrong = list(best_runs(["plain"], SizeOptions(), lambda name, options: a_result(100.0, next(outcomes))))
    assert [result.problems for result in wrong] == [("two pods were lost",)]


def a_result(pods_per_second: float, problems: tuple[str, ...] = ()) -> Result:
    level = msgspec.structs.replace(LEVEL, pods_per_second=pods_per_second)
    return Result(name="plain", nodes=1, node_load_us=1.0, levels=(level,), peak_bytes=1, problems=problems)


# --- The machine: what is known of it, and how much memory is taken --------------------------------------------------


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
    assert resident_bytes(os.getpid()) == pytest.approx(resident_bytes(), rel=0.2)


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


def test_started_processes_belong_to_the_family() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        family = family_of(os.getpid())
        child.communicate(b"\n")
    assert family[0] == os.getpid()
    assert child.pid in family
    assert child.pid not in family_of(os.getpid())
