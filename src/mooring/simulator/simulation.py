"""A simulation at engine level: arrivals, departures and events on virtual time, decided by the scheduler's engine.

`simulate` is a pure function of a scenario, a policy and a seed. Everything that happens at the same time happens in
this order: pods end, nodes change, workloads are scaled, pods arrive, pending pods are scheduled, a sample is taken.

1. Binding and starting a pod take no time. A pod runs for its lifetime after it was placed.
2. Pending pods are tried by priority, then by the time since which they wait. There is no backoff: a rejected pod is
   tried again when a pod has ended or a node has changed, and not before. Pods of one signature are rejected together.
3. Preempted pods, and pods of removed nodes, end at once. If they have an owner, they are created again.
4. The nodes that an event chooses depend on the seed alone, so they are the same for all policies.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush
from pathlib import Path

import msgspec
from msgspec.structs import replace

from mooring.api.views.meta import controller_of
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod, PodStatus
from mooring.api.yaml import YamlError, load_document
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import CPU
from mooring.scheduler.catalogue import registry_with
from mooring.scheduler.config import ConfigurationError
from mooring.scheduler.cycle.decision import PreemptionPlan
from mooring.scheduler.cycle.schedule_pod import TieBreak
from mooring.scheduler.engine import Engine, UnknownProfileError
from mooring.scheduler.framework.loading import PluginFileError, enabled_if_unmentioned
from mooring.scheduler.framework.registry import BadPluginError
from mooring.scheduler.policy import load_configuration_or_policy
from mooring.simulator.errors import ScenarioError
from mooring.simulator.measures import Figures, SimulationMeter
from mooring.simulator.scenario import NodesPart, ScalePart, Scenario, ScenarioEvent, seconds
from mooring.simulator.sources import POOL, SimulationInput, gpu_milli, group_pod, pool_node, read_input
from mooring.simulator.workload import FOREVER_S, Arrival, PodTypes

PROGRESS_EVERY = 100
"""Arrivals between two reports of progress."""
SAMPLES_DEFAULT = 48
"""Samples of a scenario that does not say how often."""

Progress = Callable[[float], None]
"""Called with the share that is done."""


class SimulationResult(msgspec.Struct, frozen=True, rename="camel"):
    """The result of one simulation."""

    policy: str
    seed: int
    figures: Figures
    samples: list[Figures]
    wait_percentiles_s: list[float] = []
    """The percentiles 0 to 100 of the waiting times."""
    node_maps: list[list[int]] = []
    """For each sample, how much of each node is used (`SimulationMeter.node_maps`)."""
    placements: dict[str, str] = {}
    """The first node of each placed pod, if placements are kept."""


class _Kind(IntEnum):
    """In the order in which things happen at the same time."""

    END = 0
    NODES = 1
    SCALE = 2
    ARRIVAL = 3
    SAMPLE = 4


@dataclass(slots=True, eq=False)
class _SimulatedPod:
    view: Pod
    lifetime_s: float
    owner: str
    queued_s: float
    info: PodInfo | None = None
    was_placed: bool = False
    is_assumed: bool = False
    """False for a pod that had its node before the simulation."""
    run: int = 0
    """Increases when the pod is evicted: its end is no longer valid."""


@dataclass(slots=True)
class _PendingGroup:
    """Pending pods of one signature."""

    pods: deque[tuple[int, _SimulatedPod]] = field(default_factory=deque)
    """With the number of their place in the queue."""
    is_rejected: bool = False


def simulate(
    scenario: Scenario,
    policy: str,
    seed: int,
    progress: Progress = lambda share: None,
    *,
    keeps_placements: bool = False,
) -> SimulationResult:
    """Raises `ScenarioError`."""
    found = read_input(scenario, seed)
    clock = VirtualClock()
    engine = build_engine(scenario, policy, seed, found.workload.types, clock)
    run = _Simulation(scenario, seed, found, engine, clock, progress)
    if keeps_placements:
        run.placements = {}
    figures = run.run()
    return SimulationResult(
        policy,
        seed,
        figures,
        run.meter.samples,
        run.meter.wait_percentiles_s(run.pending_waits_s()),
        run.meter.node_maps(),
        run.placements or {},
    )


def build_engine(scenario: Scenario, policy: str, seed: int, types: PodTypes, clock: VirtualClock) -> Engine:
    """The engine of a policy. Raises `ScenarioError`."""
    part = scenario.policies[policy]
    config = part.config or scenario.config
    document = None
    try:
        document = load_document(Path(config).read_bytes(), config) if config else None
        registry, names = registry_with([*scenario.plugins, *part.plugins])
        configuration = load_configuration_or_policy(document.data if document is not None else None)
        return Engine(
            enabled_if_unmentioned(configuration, names),
            entropy=Entropy(seed).fork("decisions"),
            registry=registry,
            services={"clock": clock, "workload": types},
            tie_break=_smallest_name if scenario.ties == "name" else None,
        )
    except YamlError as error:
        raise ScenarioError(f"{config}:{error.line}", f"cannot be read as YAML: {error.text}") from error
    except OSError as error:
        raise ScenarioError(config, f"cannot be read: {error.strerror or error}") from error
    except ConfigurationError as error:
        first = error.problems[0]
        where = f"{config}:{document.line_of(first.path)}" if document is not None else ""
        raise ScenarioError(where, first.text) from error
    except (PluginFileError, BadPluginError) as error:
        raise ScenarioError("", f"policy {policy}: {error}") from error
    except ValueError as error:
        raise ScenarioError(config, str(error)) from error


class _Simulation:
    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        found: SimulationInput,
        engine: Engine,
        clock: VirtualClock,
        progress: Progress,
    ) -> None:
        self._scenario = scenario
        self._engine = engine
        self._clock = clock
        self._progress = progress
        self._entropy = Entropy(seed).fork("events")
        self._arrivals = found.workload.arrivals
        self._arrived = 0
        self._demand = 0
        self._demand_unit = max(gpu_milli(found.nodes), 1) / 100
        self._demand_points = sorted(scenario.samples.demand_percent)
        self._has_demand = bool(self._demand_points)
        self._at_demand: Figures = {}
        last_s = self._arrivals[-1].at_s if self._arrivals else 0.0
        self._duration_s = scenario.duration_s if scenario.duration_s is not None else last_s
        self._heap: list[tuple[float, int, int, object]] = []
        self._number = 0
        self._queue: dict[bytes, _PendingGroup] = {}
        self._pods: dict[str, _SimulatedPod] = {}
        """Placed pods by uid."""
        self._prices = {pool.name: pool.price for pool in scenario.cluster.pools}
        self._nodes_of_pool = {pool.name: pool.count for pool in scenario.cluster.pools}
        self._groups = {group.name: group for group in scenario.workload.pods}
        self._created_of_group = {group.name: group.replicas or 0 for group in scenario.workload.pods}
        self._dropped = 0
        """Pods that were rejected and are not tried again."""
        self.placements: dict[str, str] | None = None
        """The first node of each pod, by key."""
        self.meter = SimulationMeter(engine, found.workload.types)
        self._start(found)

    def run(self) -> Figures:
        heap = self._heap
        while heap and heap[0][0] <= self._duration_s:
            at_s = heap[0][0]
            self._clock.advance_to(at_s)
            self.meter.advance_to(at_s)
            while heap and heap[0][0] == at_s and heap[0][1] < _Kind.SAMPLE:
                self._handle(heappop(heap))
            self._schedule()
            self._sample_by_demand()
            while heap and heap[0][0] == at_s and heap[0][1] == _Kind.SAMPLE:
                heappop(heap)
                self._sample()
        self._clock.advance_to(max(self._duration_s, self._clock.now_s()))
        self.meter.advance_to(self._duration_s)
        self._sample_by_demand(is_end=True)
        return {**self.meter.totals(self.pending_waits_s(), self._pending_count()), **self._at_demand}

    def pending_waits_s(self) -> list[float]:
        """How long pods have waited that have not got a node yet."""
        now_s = self._clock.now_s()
        return [now_s - pod.queued_s for group in self._queue.values() for _, pod in group.pods if not pod.was_placed]

    # Start

    def _start(self, found: SimulationInput) -> None:
        for view in (*found.objects, *found.nodes):
            self._engine.put(view)
        for placed in found.placed:
            self._engine.put(placed.pod)
            info = self._engine.columns.pods.get(placed.pod.metadata.uid or placed.pod.key)
            if info is None:
                continue
            pod = _SimulatedPod(placed.pod, placed.lifetime_s, placed.owner, 0.0, info, was_placed=True)
            self._pods[info.uid] = pod
            self._push_end(pod)
        self._nodes_changed()
        self._push_arrival()
        for event in self._scenario.events:
            self._push(seconds(event.at), _kind_of(event), event)
        every_s = seconds(self._scenario.samples.every) if self._scenario.samples.every else 0.0
        if not every_s and not self._demand_points:
            every_s = self._duration_s / SAMPLES_DEFAULT
        if every_s:
            for number in range(math.floor(self._duration_s / every_s) + 1):
                self._push(number * every_s, _Kind.SAMPLE, None)

    # Things that happen

    def _handle(self, entry: tuple[float, int, int, object]) -> None:
        match entry[3]:
            case (_SimulatedPod() as pod, int() as run):
                if pod.run == run:
                    self._end(pod)
            case _SimulatedPod() as pod:
                self._delete(pod)
            case Arrival() as arrival:
                self._arrive(arrival)
            case ScenarioEvent() as event:
                self._apply(event)
            case (str() as kind, tuple() as nodes):
                self._bring_back(kind, nodes)
            case other:
                raise AssertionError(f"unknown entry of the heap: {other!r}")

    def _arrive(self, arrival: Arrival) -> None:
        self._demand += arrival.demand
        self._push_arrival()
        pod = _SimulatedPod(arrival.pod, arrival.lifetime_s, arrival.owner, self._clock.now_s())
        self._enqueue(pod)
        if arrival.deleted_s != FOREVER_S:
            self._push(arrival.deleted_s, _Kind.END, pod)

    def _delete(self, pod: _SimulatedPod) -> None:
        """The pod is deleted, whether it runs or waits."""
        if pod.info is None:
            return  # it has ended
        if self._pods.get(pod.info.uid) is pod:
            self._end(pod)
        else:
            self._drop_pending(pod)

    def _end(self, pod: _SimulatedPod) -> None:
        self._take_off(pod)
        self._may_help()

    def _apply(self, event: ScenarioEvent) -> None:
        found = event.change()
        assert found is not None, "the scenario was validated"
        if event.every:
            self._push(self._clock.now_s() + seconds(event.every), _kind_of(event), event)
        name, change = found
        if isinstance(change, ScalePart):
            self._scale(change)
            return
        if name == "add":
            self._add(change)
        else:
            nodes = self._chosen(change)
            for node in nodes:
                if name in ("remove", "fail"):
                    self._remove_node(node)
                else:
                    self._engine.put(_cordoned(node, name == "cordon"))
            if change.duration and nodes:
                self._push(self._clock.now_s() + seconds(change.duration), _Kind.NODES, (name, tuple(nodes)))
        self._nodes_changed()
        self._may_help()

    def _bring_back(self, kind: str, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if kind == "fail" or node.metadata.name in self._engine.columns.row_of:
                self._engine.put(node)
        self._nodes_changed()
        self._may_help()

    def _add(self, change: NodesPart) -> None:
        pool = next(pool for pool in self._scenario.cluster.pools if pool.name == change.pool)
        first = self._nodes_of_pool[pool.name]
        count = change.count or 0
        self._nodes_of_pool[pool.name] = first + count
        for number in range(first, first + count):
            self._engine.put(pool_node(pool, number))

    def _chosen(self, change: NodesPart) -> list[Node]:
        """The nodes of a change: those named, or some of the pool, by the seed."""
        columns = self._engine.columns
        nodes = {node.metadata.name: node for node in columns.nodes if node is not None}
        if change.nodes:
            unknown = [name for name in change.nodes if name not in nodes]
            if unknown:
                now_s = self._clock.now_s()
                raise ScenarioError("", f"an event at {now_s:.0f} s names {', '.join(unknown)}, which does not exist")
            return [nodes[name] for name in change.nodes]
        names = sorted(name for name, node in nodes.items() if node.metadata.labels.get(POOL) == change.pool)
        wanted = len(names) if change.count is None else min(change.count, len(names))
        chosen: list[Node] = []
        for _ in range(wanted):
            name = self._entropy.choose(names)
            names.remove(name)
            chosen.append(nodes[name])
        return chosen

    def _scale(self, change: ScalePart) -> None:
        group = self._groups[change.workload]
        pending = [pod for each in self._queue.values() for _, pod in each.pods if pod.owner == group.name]
        running = [pod for pod in self._pods.values() if pod.owner == group.name]
        surplus = len(pending) + len(running) - change.replicas
        for _ in range(-surplus):
            number = self._created_of_group[group.name]
            self._created_of_group[group.name] = number + 1
            self._enqueue(_SimulatedPod(group_pod(group, number), FOREVER_S, group.name, self._clock.now_s()))
        if surplus <= 0:
            return
        for pod in pending[::-1][:surplus]:
            self._drop_pending(pod)
        for pod in running[::-1][: max(surplus - len(pending), 0)]:
            self._take_off(pod)
        self._may_help()

    def _remove_node(self, node: Node) -> None:
        row = self._engine.columns.row_of[node.metadata.name]
        for info in list(self._engine.columns.pods_on[row].values()):
            self._evict(self._pods[info.uid])
        self._engine.remove(node)

    def _nodes_changed(self) -> None:
        nodes = (node for node in self._engine.columns.nodes if node is not None)
        price = sum(self._prices.get(node.metadata.labels.get(POOL, ""), 0.0) for node in nodes)
        self.meter.nodes_changed(price)

    # Pods

    def _evict(self, pod: _SimulatedPod) -> None:
        """The pod ends before its time. If it has an owner, it is created again."""
        self._take_off(pod)
        self.meter.evictions += 1
        owner = controller_of(pod.view.metadata)
        if owner is not None and owner.kind in ("DaemonSet", "Node"):
            return
        if owner is None and not pod.owner:
            return
        pod.queued_s = self._clock.now_s()
        self._enqueue(pod)

    def _take_off(self, pod: _SimulatedPod) -> None:
        """Remove a placed pod from its node."""
        info = pod.info
        assert info is not None, f"{pod.view.key} is on no node"
        pod.run += 1
        row = info.row
        if pod.is_assumed:
            self._engine.forget(info)
        else:
            self._engine.remove(pod.view)
            spec = replace(pod.view.spec, node_name="")
            pod.view = replace(pod.view, spec=spec, status=PodStatus())
        del self._pods[info.uid]
        if row >= 0:
            self.meter.pod_removed(info, row)
        pod.info = None

    def _enqueue(self, pod: _SimulatedPod) -> None:
        info = pod.info = self._engine.record(pod.view)
        self._number += 1
        self._queue.setdefault(info.signature.key, _PendingGroup()).pods.append((self._number, pod))

    def _drop_pending(self, pod: _SimulatedPod) -> None:
        for group in self._queue.values():
            for entry in group.pods:
                if entry[1] is pod:
                    group.pods.remove(entry)
                    return

    def _may_help(self) -> None:
        """Something changed that may help a rejected pod."""
        for group in self._queue.values():
            group.is_rejected = False

    def _schedule(self) -> None:
        """Try the pending pods whose signature was not rejected since the last change that may help."""
        heads: list[tuple[int, int, bytes]] = []
        for key, group in list(self._queue.items()):
            if not group.pods:
                del self._queue[key]
            elif not group.is_rejected:
                self._push_head(heads, key, group)
        while heads:
            _, _, key = heappop(heads)
            group = self._queue[key]
            _, pod = group.pods[0]
            victims = self._place(pod)
            if victims is None:
                group.pods.popleft()
            elif victims:
                self._preempt(victims, heads)
                continue
            elif self._scenario.retry:
                group.is_rejected = True
                continue
            else:
                group.pods.popleft()
                self._dropped += 1
            if group.pods:
                self._push_head(heads, key, group)

    def _place(self, pod: _SimulatedPod) -> Sequence[PodInfo] | None:
        """Place a pod. Returns None if that worked, else the pods whose eviction would help."""
        info = pod.info
        assert info is not None, f"{pod.view.key} is not in the queue"
        try:
            decision = self._engine.decide(info)
        except UnknownProfileError as error:
            raise ScenarioError("", str(error)) from error
        if decision.error is not None and decision.error != "nonodes":
            raise ScenarioError("", f"pod {info.key} at {self._clock.now_s():.0f} s: {decision.message}")
        if decision.node_name is None:
            plan: PreemptionPlan | None = decision.preemption
            return plan.victims if plan is not None else ()
        if self._engine.assume(decision) is not None:
            return ()
        pod.is_assumed = True
        self._pods[info.uid] = pod
        self.meter.pod_added(info)
        if not pod.was_placed:
            pod.was_placed = True
            self.meter.placed += 1
            self.meter.waits_s.append(self._clock.now_s() - pod.queued_s)
            if self.placements is not None:
                self.placements[info.key] = decision.node_name
        self._push_end(pod)
        return None

    def _preempt(self, victims: Sequence[PodInfo], heads: list[tuple[int, int, bytes]]) -> None:
        """Evict the victims. All pending pods are tried again, the preemptor before those of lower priority."""
        self.meter.preemptions += 1
        for victim in victims:
            self._evict(self._pods[victim.uid])
        waiting = {key for _, _, key in heads}
        for key, group in self._queue.items():
            group.is_rejected = False
            if group.pods and key not in waiting:
                self._push_head(heads, key, group)

    def _pending_count(self) -> int:
        return self._dropped + sum(len(group.pods) for group in self._queue.values())

    # The heap

    def _push(self, at_s: float, kind: _Kind, what: object) -> None:
        self._number += 1
        heappush(self._heap, (at_s, kind, self._number, what))

    def _push_end(self, pod: _SimulatedPod) -> None:
        if pod.lifetime_s != FOREVER_S:
            self._push(self._clock.now_s() + pod.lifetime_s, _Kind.END, (pod, pod.run))

    def _push_arrival(self) -> None:
        if self._arrived < len(self._arrivals):
            arrival = self._arrivals[self._arrived]
            self._arrived += 1
            self._push(arrival.at_s, _Kind.ARRIVAL, arrival)
            if self._arrived % PROGRESS_EVERY == 0:
                self._progress(self._arrived / len(self._arrivals))

    @staticmethod
    def _push_head(heads: list[tuple[int, int, bytes]], key: bytes, group: _PendingGroup) -> None:
        number, pod = group.pods[0]
        heappush(heads, (-(pod.view.spec.priority or 0), number, key))

    # Samples

    def _sample(self) -> Figures:
        cpu_milli = sum(
            len(group.pods) * int(info.signature.request_vector[CPU])
            for group in self._queue.values()
            if group.pods and (info := group.pods[0][1].info) is not None
        )
        taken = self.meter.sample(self._pending_count(), cpu_milli)
        if self._has_demand:
            taken["demand_percent"] = self._demand / self._demand_unit
        return taken

    def _sample_by_demand(self, *, is_end: bool = False) -> None:
        asked_percent = self._demand / self._demand_unit
        openb = self._scenario.workload.openb
        if is_end and openb is not None and openb.demand is not None:
            asked_percent = 100 * openb.demand  # the next pod would have asked for more
        while self._demand_points and asked_percent >= self._demand_points[0]:
            point = self._demand_points.pop(0)
            taken = self._sample()
            taken["demand_percent"] = point
            for name, value in taken.items():
                if name.endswith("_percent") and name not in ("demand_percent", "load_percent"):
                    self._at_demand[f"{name}_at_{point:g}"] = value


def _kind_of(event: ScenarioEvent) -> _Kind:
    return _Kind.SCALE if event.scale is not None else _Kind.NODES


def _cordoned(node: Node, is_cordoned: bool) -> Node:
    return replace(node, spec=replace(node.spec, unschedulable=is_cordoned))


def _smallest_name(columns: Columns) -> TieBreak:
    def choose(rows: Sequence[int] | Int64s) -> int:
        names = columns.node_names
        return min((int(row) for row in rows), key=names.__getitem__)

    return choose
