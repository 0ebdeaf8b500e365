"""The runner of the engine: builds the cluster of a workload, schedules its pods, and measures the time.

Input: a workload and a size. Output: a `Result` with the cost and all problems.

For each measured pod, time is measured from the decoded pod to the assumed decision:

    record -> decide -> assume                                                   bound
    record -> decide (with PostFilter and message)                               rejected
    record -> decide -> nominate -> remove the victims -> decide -> assume       preempting

 1. Pods are decoded before; the cost of decoding is reported separately. Claims and volumes of measured pods exist
    before, too, as in the suite of kube-scheduler.
 2. The garbage collector has the settings of Python, as in the scheduler. It runs once before time is measured, so that
    loading the cluster does not count.
 3. Measured pods stay until the end of the level and are checked; then they are removed, so that the next level starts
    with exactly its number of placed pods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from cProfile import Profile
from itertools import islice
from time import perf_counter_ns, process_time_ns, thread_time_ns
from typing import NamedTuple

import numpy as np

from bench.expectations import Evidence, problems
from bench.machine import peak_bytes, resident_bytes
from bench.results import Level, Result
from bench.scenario import Item, PodItem, Scenario
from bench.workload import Outcome, Size, Workload
from mooring.api.decode import decode_as
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.kit.memory import settle_memory
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config import load_configuration
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine

SECONDS_MAX = 20.0
"""A level ends after this time, whatever the number of pods."""
CHUNK = 10_000
"""Number of pods that exist as JSON at the same time while a cluster is loaded."""
ENGINE_SEED = 1

AfterChunk = Callable[[int, int], None]
"""Called with the number of pods of a chunk and their CPU time in nanoseconds."""


def run(workload: Workload, size: Size, *, seconds_max: float = SECONDS_MAX, profile: Profile | None = None) -> Result:
    """One workload, measured at each level."""
    scenario = Scenario(workload, size)
    bench = EngineRun(scenario, seconds_max, profile)
    node_load_us = bench.load_nodes_and_objects()
    levels: list[Level] = []
    found: list[str] = []
    for number, placed_count in enumerate(size.level_counts):
        loaded = bench.load_pods(placed_count)
        times = bench.measure(size.pods)
        levels.append(_level(placed_count, loaded, times))
        found += bench.check(times)
        if number + 1 < len(size.levels):
            bench.remove_pods(times.pods)
    peak = peak_bytes()
    if workload.memory_bytes_max is not None and peak > workload.memory_bytes_max:
        found.append(f"took {peak >> 20} MiB, allowed are {workload.memory_bytes_max >> 20}")
    return Result(
        name=workload.name,
        nodes=size.nodes,
        node_load_us=node_load_us,
        levels=tuple(levels),
        peak_bytes=peak,
        problems=tuple(found),
        target_pods_per_second=workload.target_pods_per_second,
    )


class _Loaded(NamedTuple):
    """The number of placed pods, and the time to decode and to add them."""

    pods: int
    spent_ns: int


class _Times(NamedTuple):
    """What was measured, pod by pod."""

    spent_ns: int
    cpu_ns: int
    decode_ns: int
    prepared: int
    record_ns: Sequence[int]
    total_ns: Sequence[int]
    pods: Sequence[PodInfo]
    """Those of the warm-up first."""
    outcomes: Sequence[Outcome]
    expected: Sequence[Outcome]
    messages: Sequence[str]
    victim_counts: Sequence[int]
    feasible_counts: Sequence[int]


class EngineRun:
    """An engine, and the streams of objects that fill it."""

    def __init__(
        self,
        scenario: Scenario,
        seconds_max: float = SECONDS_MAX,
        profile: Profile | None = None,
        *,
        engine_class: type[Engine] = Engine,
    ) -> None:
        self._scenario = scenario
        self._seconds_max = seconds_max
        self._profile = profile
        self._engine = engine_class(load_configuration(None), entropy=Entropy(seed=ENGINE_SEED))
        self._placed = scenario.placed()
        self._measured = scenario.measured()
        self._placed_count = 0
        preempts = any(group.outcome == "preempts" for group in scenario.workload.measured)
        self._views: dict[str, Pod] | None = {} if preempts else None
        """The placed pods by uid, for their deletion; None if no pod of the workload preempts."""

    def load_nodes_and_objects(self) -> float:
        """Returns the microseconds for each node."""
        spent_ns = 0
        for item in self._scenario.nodes():
            spent_ns += self._put(item)
        for item in self._scenario.objects():
            self._put(item)
        return spent_ns / max(1, self._scenario.size.nodes) / 1_000

    def load_pods(self, placed_count: int) -> _Loaded:
        """Place pods until this number is placed."""
        count = placed_count - self._placed_count
        spent_ns = 0
        for start in range(0, count, CHUNK):
            items = list(islice(self._placed, min(CHUNK, count - start)))
            for item in items:
                for companion in item.companions:
                    self._put(companion)
            spent_ns += self._place(items)
        self._placed_count = placed_count
        return _Loaded(count, spent_ns)

    def measure(self, chunk: int, after_chunk: AfterChunk | None = None) -> _Times:
        """Warm up, then decide about the measured pods. After every `chunk` pods, `after_chunk` gets their number and
        their CPU time; what it does itself counts as time between pods."""
        size = self._scenario.size
        items = list(islice(self._measured, size.warm_up + size.pods))
        for item in items:
            for companion in item.companions:
                self._put(companion)
        started = perf_counter_ns()
        views = [decode_as(Pod, item.raw) for item in items]
        decode_ns = perf_counter_ns() - started
        expected = [item.outcome for item in items]
        del items
        loop = DecisionLoop(self._engine, self._views)
        loop.run(views[: size.warm_up], deadline_ns=None)
        warm = len(loop.pods)
        settle_memory()
        if self._profile is not None:
            self._profile.enable()
        cpu_started, started = process_time_ns(), perf_counter_ns()
        deadline_ns = started + int(self._seconds_max * 1e9)
        for first in range(size.warm_up, len(views), chunk):
            known, chunk_started = len(loop.pods), thread_time_ns()
            loop.run(views[first : first + chunk], deadline_ns=deadline_ns)
            if after_chunk is not None:
                after_chunk(len(loop.pods) - known, thread_time_ns() - chunk_started)
            if perf_counter_ns() > deadline_ns:
                break
        spent_ns, cpu_ns = perf_counter_ns() - started, process_time_ns() - cpu_started
        if self._profile is not None:
            self._profile.disable()
        return _Times(
            spent_ns,
            cpu_ns,
            decode_ns,
            len(views),
            loop.record_ns[warm:],
            loop.total_ns[warm:],
            loop.pods,
            loop.outcomes,
            expected[: len(loop.pods)],
            loop.messages,
            loop.victim_counts,
            loop.feasible_counts,
        )

    def check(self, times: _Times) -> list[str]:
        evidence = Evidence(self._engine, times.pods, times.messages, times.victim_counts, times.feasible_counts)
        others = [
            f"{pod.name} was {outcome}, expected {expected}"
            for pod, outcome, expected in zip(times.pods, times.outcomes, times.expected, strict=True)
            if outcome != expected
        ]
        found = [f"{others[0]}, and {len(others) - 1} more like it"] if others else []
        return found + problems(self._scenario.workload.expect, evidence)

    def remove_pods(self, pods: Sequence[PodInfo]) -> None:
        for pod in pods:
            if pod.row >= 0:
                self._engine.forget(pod)

    def _put(self, item: Item) -> int:
        started = perf_counter_ns()
        self._engine.put(decode_as(item.kind, item.raw))
        return perf_counter_ns() - started

    def _place(self, items: Sequence[PodItem]) -> int:
        put = self._engine.put
        started = perf_counter_ns()
        for item in items:
            put(decode_as(Pod, item.raw))
        spent_ns = perf_counter_ns() - started
        if self._views is not None:
            self._views |= {view.metadata.uid: view for view in (decode_as(Pod, item.raw) for item in items)}
        return spent_ns


class DecisionLoop:
    """The measured loop, and what it records."""

    def __init__(self, engine: Engine, views: dict[str, Pod] | None) -> None:
        self._engine = engine
        self._views = views
        self.record_ns: list[int] = []
        self.total_ns: list[int] = []
        self.pods: list[PodInfo] = []
        self.outcomes: list[Outcome] = []
        self.messages: list[str] = []
        self.victim_counts: list[int] = []
        self.feasible_counts: list[int] = []

    def run(self, views: Sequence[Pod], deadline_ns: int | None) -> None:
        engine = self._engine
        for view in views:
            started = perf_counter_ns()
            pod = engine.record(view)
            recorded = perf_counter_ns()
            decision = engine.decide(pod)
            if decision.node_name is not None:
                outcome: Outcome = "placed" if engine.assume(decision) is None else "refused"
                self.feasible_counts.append(decision.feasible_count)
            elif decision.preemption is not None and self._views is not None:
                outcome = self._preempt(decision, self._views)
            else:
                outcome = "refused"
            ended = perf_counter_ns()
            self.record_ns.append(recorded - started)
            self.total_ns.append(ended - started)
            self.pods.append(pod)
            self.outcomes.append(outcome)
            if decision.message is not None and decision.preemption is None:
                self.messages.append(decision.message)
            if deadline_ns is not None and ended > deadline_ns:
                return

    def _preempt(self, decision: Decision, views: dict[str, Pod]) -> Outcome:
        """The rest of a preemption: nominate the node, remove the victims, decide again."""
        engine, plan = self._engine, decision.preemption
        assert plan is not None, f"{decision.pod} has no preemption"
        engine.nominate(decision)
        for victim in plan.victims:
            engine.remove(views.pop(victim.uid))
        self.victim_counts.append(len(plan.victims))
        again = engine.decide(decision.pod)
        if again.node_name != plan.node_name or engine.assume(again) is not None:
            return "refused"
        return "preempts"


def _level(placed_count: int, loaded: _Loaded, times: _Times) -> Level:
    count = len(times.total_ns)
    total_us = np.array(times.total_ns) / 1_000
    record_ns = sum(times.record_ns)
    return Level(
        placed=placed_count,
        pods=count,
        seconds=times.spent_ns / 1e9,
        pods_per_second=count / times.spent_ns * 1e9,
        pods_per_second_without_record=count / (times.spent_ns - record_ns) * 1e9,
        mean_us=times.spent_ns / count / 1_000,
        p50_us=float(np.percentile(total_us, 50)),
        p99_us=float(np.percentile(total_us, 99)),
        longest_us=float(total_us.max()),
        record_us=record_ns / count / 1_000,
        decode_us=times.decode_ns / times.prepared / 1_000,
        cpu_share=times.cpu_ns / times.spent_ns,
        loaded=loaded.pods,
        load_us=loaded.spent_ns / max(1, loaded.pods) / 1_000,
        resident_bytes=resident_bytes(),
    )
