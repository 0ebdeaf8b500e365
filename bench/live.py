"""The live runner: a workload through the running scheduler, from created pods to bound pods.

Input: a workload with `through: scheduler`, a size. Output: a `SchedulerResult` with the cost and all problems.

    store: nodes, objects, placed pods -> scheduler starts -> waiting pods are created and tried -> warm-up
        -> memory is settled -> CLOCK: pods are created, decided, bound -> quiet -> check, from the store

1. The clock runs from the first create to the last measured pod that is bound in the store (or is rejected, where that
   is expected). Watches, decisions, bindings, conditions, events and metrics share one process and one thread; the
   scheduler's requests are those of the loopback client, with validation and admission.
2. Pods are dictionaries before the clock starts: the work of their owners is not measured.
3. With waiting pods the same is measured without them too, in turns in the same process. The fastest round of each
   counts, because other load of the machine only makes a round slower.
4. Memory is reported of the first round: later rounds reuse the memory of the process.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from cProfile import Profile
from itertools import islice
from time import perf_counter_ns, process_time_ns
from typing import NamedTuple

import msgspec
import numpy as np

from bench.live_check import check
from bench.live_cluster import LiveCluster, PodToCreate, expected, live_cluster, pods_to_create
from bench.machine import forget_peak, peak_bytes, resident_bytes
from bench.results import SchedulerResult
from bench.scenario import PodItem, Scenario
from bench.workload import Size, Workload
from mooring.kit.loop import run_real
from mooring.kit.memory import settle_memory
from mooring.kit.tasks import TaskGroup

SECONDS_MAX = 60.0
"""Pods that are not decided after this time are reported as undecided."""
ROUNDS = 4


class _Round(NamedTuple):
    """One cluster, measured once."""

    spent_ns: int
    cpu_ns: int
    quiet_ns: int
    waits_ns: Sequence[int]
    """From created to bound, for each pod that was bound."""
    resident_before: int
    resident_after: int
    resident_peak: int
    problems: Sequence[str]


def run_live(
    workload: Workload,
    size: Size,
    *,
    seconds_max: float = SECONDS_MAX,
    rounds: int = ROUNDS,
    profile: Profile | None = None,
) -> SchedulerResult:
    """One workload through the scheduler."""
    loaded: list[_Round] = []
    unloaded: list[_Round] = []
    for _ in range(rounds if workload.waiting else 1):
        loaded.append(_one_round(Scenario(workload, size), seconds_max, profile))
        if workload.waiting and profile is None:
            without = msgspec.structs.replace(size, waiting=0)
            unloaded.append(_one_round(Scenario(workload, without), seconds_max, None))
    return _result(workload, size, loaded, unloaded)


def _one_round(scenario: Scenario, seconds_max: float, profile: Profile | None) -> _Round:
    # The memory of the last cluster is frozen: the garbage collector would never free it.
    gc.unfreeze()
    gc.collect()
    return run_real(_live_round(scenario, seconds_max, profile))


async def _live_round(scenario: Scenario, seconds_max: float, profile: Profile | None) -> _Round:
    size, workload = scenario.size, scenario.workload
    waiting_items = list(islice(scenario.waiting(), size.waiting))
    measured_items = list(islice(scenario.measured(), size.warm_up + size.pods))
    async with live_cluster() as cluster, TaskGroup("bench") as group:
        await _load(cluster, scenario, [*waiting_items, *measured_items])
        waiting, measured = pods_to_create(waiting_items), pods_to_create(measured_items)
        del waiting_items, measured_items
        warm_up, counted = measured[: size.warm_up], measured[size.warm_up :]
        await cluster.start(group)
        undecided = await cluster.decide(waiting, seconds_max)
        undecided += await cluster.decide(warm_up, seconds_max)
        is_ready = await cluster.wait_until_quiet(seconds_max)
        times = await _measure(cluster, counted, seconds_max, profile)
        found = [] if is_ready else ["the scheduler did not come to rest before the clock started"]
        if undecided:
            found.append(f"{undecided} pods were not decided before the clock started")
        found += times.problems
        found += await check(cluster, [*waiting, *measured], workload.expect)
    return times._replace(problems=found)


async def _load(cluster: LiveCluster, scenario: Scenario, pods: Sequence[PodItem]) -> None:
    """Create what exists before: nodes, objects, placed pods, and what the measured pods need."""
    for item in scenario.nodes():
        await cluster.put(item)
    for item in scenario.objects():
        await cluster.put(item)
    for pod in islice(scenario.placed(), scenario.size.placed_count):
        for companion in pod.companions:
            await cluster.put(companion)
        await cluster.place(pod)
    for pod in pods:
        for companion in pod.companions:
            await cluster.put(companion)


async def _measure(
    cluster: LiveCluster, pods: Sequence[PodToCreate], seconds_max: float, profile: Profile | None
) -> _Round:
    observer = cluster.observer
    observer.expect(*expected(pods))
    settle_memory()
    forget_peak()
    resident_before = resident_bytes()
    if profile is not None:
        profile.enable()
    cpu_started, started = process_time_ns(), perf_counter_ns()
    created_ns = await cluster.create(pods)
    undecided = await observer.wait_until_decided(seconds_max)
    ended = perf_counter_ns()
    cpu_ns = process_time_ns() - cpu_started
    if profile is not None:
        profile.disable()
    is_quiet = await cluster.wait_until_quiet(seconds_max)
    quiet_ns = perf_counter_ns() - ended
    found = [f"{undecided} pods were not decided after {seconds_max:.0f} s"] if undecided else []
    if not is_quiet:
        found.append("the scheduler did not come to rest")
    bound_ns = observer.bound_ns
    waits_ns = [bound_ns[pod.key] - created for pod, created in zip(pods, created_ns) if pod.key in bound_ns]
    return _Round(ended - started, cpu_ns, quiet_ns, waits_ns, resident_before, resident_bytes(), peak_bytes(), found)


def _result(workload: Workload, size: Size, loaded: Sequence[_Round], unloaded: Sequence[_Round]) -> SchedulerResult:
    first, fastest = loaded[0], min(loaded, key=lambda one: one.spent_ns)
    found = [problem for one in (*loaded, *unloaded) for problem in one.problems]
    growth = first.resident_after - first.resident_before
    if workload.growth_bytes_max is not None and growth > workload.growth_bytes_max:
        found.append(f"the pods took {growth / 1e6:.0f} MB, allowed are {workload.growth_bytes_max / 1e6:.0f}")
    waits_ms = np.array(fastest.waits_ns or [0]) / 1e6
    return SchedulerResult(
        name=workload.name,
        nodes=size.nodes,
        placed=size.placed_count,
        waiting=size.waiting,
        pods=size.pods,
        seconds=fastest.spent_ns / 1e9,
        pods_per_second=size.pods / fastest.spent_ns * 1e9,
        mean_us=fastest.spent_ns / size.pods / 1_000,
        p50_ms=float(np.percentile(waits_ms, 50)),
        p99_ms=float(np.percentile(waits_ms, 99)),
        cpu_share=fastest.cpu_ns / fastest.spent_ns,
        quiet_ms=fastest.quiet_ns / 1e6,
        resident_before_bytes=first.resident_before,
        resident_after_bytes=first.resident_after,
        resident_peak_bytes=first.resident_peak,
        seconds_alone=min(one.spent_ns for one in unloaded) / 1e9 if unloaded else None,
        cpu_slowdown=min(one.cpu_ns for one in loaded) / min(one.cpu_ns for one in unloaded) if unloaded else None,
        slowdown_max=workload.slowdown_max,
        problems=tuple(dict.fromkeys(found)),
        target_pods_per_second=workload.target_pods_per_second,
    )
