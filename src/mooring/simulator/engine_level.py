"""A simulation at engine level: arrivals, departures and events on virtual time, decided by the scheduler's engine.

What happens at the same time happens in this order: pods end, nodes change, workloads are scaled, pods arrive, pending
pods are scheduled, a sample is taken.

1. Binding and starting a pod take no time. A pod runs for its lifetime after it was placed.
2. Pending pods are tried by priority, then by the time since which they wait. There is no backoff: a rejected pod is
   tried again when a pod has ended or a node has changed, and not before (`pending_pods`).
3. Preempted and evicted pods, and pods of removed nodes, end at once. If they have an owner, they are created again.
4. What an event does is in `events`; this module carries out its commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from heapq import heappop, heappush

from msgspec.structs import replace

from mooring.api.views.meta import controller_of
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod, PodStatus
from mooring.api.well_known import NODE_BOUND_OWNERS
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import PreemptionPlan
from mooring.scheduler.engine import Engine, UnknownProfileError
from mooring.scheduler.plan.new_objects import RemovalOutcome, removal_outcome
from mooring.simulator.autoscaler import Autoscaler
from mooring.simulator.budgets import EngineBudgets
from mooring.simulator.errors import ScenarioError
from mooring.simulator.events import (
    DRAIN_CHECK_S,
    EVICTION_RETRY_S,
    AddNodes,
    CordonNode,
    DrainNodes,
    FailNode,
    Fork,
    Pause,
    RecoverNode,
    RemoveNode,
    Steps,
    event_steps,
)
from mooring.simulator.measures import Figures, Progress, SimulationMeter, sample_times_s
from mooring.simulator.pending_pods import PendingPods, SimulatedPod
from mooring.simulator.policies import loaded_policy, smallest_name
from mooring.simulator.scenario.fields import RolloutPart, ScalePart, Scenario, ScenarioEvent, seconds
from mooring.simulator.sources import POOL, NodePools, SimulationInput, gpu_milli, group_pod, read_input
from mooring.simulator.workload import FOREVER_S, Arrival, PodTypes

PROGRESS_EVERY = 100
"""Arrivals between two reports of progress."""


class _Kind(IntEnum):
    """In the order in which things happen at the same time."""

    END = 0
    NODES = 1
    SCALE = 2
    ARRIVAL = 3
    SAMPLE = 4


@dataclass(slots=True)
class _RunningEvent:
    """An event of the scenario that is being carried out."""

    number: int
    """As the meter counts it."""
    steps: Steps
    drain: DrainNodes | None = None
    drain_until_s: float = FOREVER_S


def simulate_engine(
    scenario: Scenario, policy: str, seed: int, progress: Progress, keeps_placements: bool
) -> tuple[Figures, SimulationMeter, list[float]]:
    """The figures of a scenario, its meter, and how long pending pods have waited. Raises `ScenarioError`."""
    found = read_input(scenario, seed)
    clock = VirtualClock()
    engine = build_engine(scenario, policy, seed, found.workload.types, clock)
    meter = SimulationMeter(engine, found.workload.types)
    meter.placements = {} if keeps_placements else None
    simulation = EngineSimulation(scenario, seed, found, engine, meter, clock, progress)
    figures = simulation.run()
    return figures, meter, simulation.pending_waits_s()


def build_engine(scenario: Scenario, policy: str, seed: int, types: PodTypes, clock: VirtualClock) -> Engine:
    """The engine of a policy. Raises `ScenarioError`."""
    with loaded_policy(scenario, policy) as (configuration, registry):
        return Engine(
            configuration,
            entropy=Entropy(seed).fork("decisions"),
            registry=registry,
            services={"clock": clock, "workload": types},
            tie_break=smallest_name if scenario.ties == "name" else None,
        )


class EngineSimulation:
    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        found: SimulationInput,
        engine: Engine,
        meter: SimulationMeter,
        clock: VirtualClock,
        progress: Progress,
    ) -> None:
        self._scenario = scenario
        self.engine = engine
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
        self._pending = PendingPods()
        self._pods: dict[str, SimulatedPod] = {}
        """Placed pods by uid."""
        self.pools = NodePools(scenario.cluster.pools)
        self._failed: dict[str, Node] = {}
        """Nodes that are not in the engine, and come back."""
        self._groups = {group.name: group for group in scenario.workload.pods}
        self._created_of_group = {group.name: group.replicas or 0 for group in scenario.workload.pods}
        self._dropped = 0
        """Pods that were rejected and are not tried again."""
        self.meter = meter
        for view in found.objects:
            engine.put(view)
        self._budgets = EngineBudgets(engine, clock, scenario.workload.pods)
        self._autoscaler = Autoscaler(scenario, seed, self)
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
        totals = self.meter.totals(self.pending_waits_s(), self._pending_count(), self._autoscaler.figures())
        return {**totals, **self._at_demand}

    def pending_waits_s(self) -> list[float]:
        """How long pods have waited that have not got a node yet."""
        now_s = self._clock.now_s()
        return [now_s - pod.queued_s for pod in self._pending if not pod.was_placed]

    # Start

    def _start(self, found: SimulationInput) -> None:
        for view in found.nodes:
            self.engine.put(view)
        for placed in found.placed:
            self.engine.put(placed.pod)
            info = self.engine.columns.pods.get(placed.pod.metadata.uid or placed.pod.key)
            if info is None:
                continue
            pod = SimulatedPod(placed.pod, placed.lifetime_s, placed.owner, 0.0, info, was_placed=True)
            self._pods[info.uid] = pod
            if self._budgets:
                self._budgets.track(info, is_healthy=True)
            self._push_end(pod)
        self._nodes_changed()
        self._push_arrival()
        for number in range(len(self._scenario.events)):
            self._push_event(number, 0)
        if self._scenario.has_autoscaler:
            self._continue_event(_RunningEvent(self.meter.event_began("", 0.0), self._autoscaler.steps()))
        if self._scenario.samples.every or not self._demand_points:
            for at_s in sample_times_s(self._scenario.samples.every, self._duration_s):
                self._push_entry(at_s, _Kind.SAMPLE, None)

    # Entries of the heap

    def _handle(self, entry: tuple[float, int, int, object]) -> None:
        match entry[3]:
            case (SimulatedPod() as pod, int() as run):
                if pod.run == run:
                    self._end(pod)
            case SimulatedPod() as pod:
                self._delete(pod)
            case Arrival() as arrival:
                self._arrive(arrival)
            case (int() as number, int() as occurrence):
                self._begin_event(number, occurrence)
            case _RunningEvent() as event:
                self._continue_event(event)
            case other:
                raise AssertionError(f"unknown entry of the heap: {other!r}")

    def _arrive(self, arrival: Arrival) -> None:
        self._demand += arrival.demand
        self._push_arrival()
        pod = SimulatedPod(arrival.pod, arrival.lifetime_s, arrival.owner, self._clock.now_s())
        self._enqueue(pod)
        if arrival.deleted_s != FOREVER_S:
            self._push_entry(arrival.deleted_s, _Kind.END, pod)

    def _delete(self, pod: SimulatedPod) -> None:
        """The pod is deleted, whether it runs or waits."""
        if pod.info is None:
            return  # it has ended
        if self._pods.get(pod.info.uid) is pod:
            self._end(pod)
        else:
            self._drop_pending(pod)

    def _end(self, pod: SimulatedPod) -> None:
        self._remove_from_node(pod)
        self._pending.retry_all()

    # Events

    def _begin_event(self, number: int, occurrence: int) -> None:
        event = self._scenario.events[number]
        if event.every:
            self._push_event(number, occurrence + 1)
        found = event.change()
        assert found is not None, "the scenario was validated"
        steps = event_steps(event, self, self._entropy.fork(f"event {number} {occurrence}"))
        self._continue_event(_RunningEvent(self.meter.event_began(found[0], self.now_s()), steps))

    def _continue_event(self, event: _RunningEvent) -> None:
        """Carry out steps of the event until it waits for something."""
        if event.drain is not None and not self._drain(event, event.drain):
            return
        for command in event.steps:
            match command:
                case Pause(delay_s):
                    self._push_entry(self._clock.now_s() + delay_s, _Kind.NODES, event)
                    return
                case DrainNodes():
                    event.drain, event.drain_until_s = command, self._clock.now_s() + command.timeout_s
                    if not self._drain(event, command):
                        return
                case Fork(steps):
                    self._continue_event(_RunningEvent(self.meter.event_began("", self.now_s()), steps))
                case ScalePart():
                    self._scale(command)
                case RolloutPart():
                    raise AssertionError("the scenario was validated")
                case _:
                    self._change_node(command)
        self.meter.event_ended(event.number, self.now_s())

    def _change_node(self, command: AddNodes | RemoveNode | FailNode | RecoverNode | CordonNode) -> None:
        match command:
            case AddNodes(nodes):
                for added in nodes:
                    self.engine.put(added)
            case RemoveNode(name):
                self._remove_node(name)
                self._failed.pop(name, None)
            case FailNode(name):
                node = self._remove_node(name)
                if node is not None:
                    self._failed[name] = node
            case RecoverNode(name):
                node = self._failed.pop(name, None)
                if node is not None:
                    self.engine.put(node)
            case CordonNode(name, is_cordoned):
                node = self._node(name)
                if node is not None:
                    self.engine.put(_cordoned(node, is_cordoned))
                elif name in self._failed:
                    self._failed[name] = _cordoned(self._failed[name], is_cordoned)
        self._nodes_changed()
        self._pending.retry_all()

    def _drain(self, event: _RunningEvent, drain: DrainNodes) -> bool:
        """Evict the pods that budgets allow to evict. Returns whether the drain has ended; if not, it will go on.

        A drain ends at the first check that finds nothing to evict, so that evicted pods are placed before it goes on.
        """
        columns, budgets, found, blocked = self.engine.columns, self._budgets.count_evictions(), 0, 0
        for name in drain.names:
            row = columns.row_of.get(name)
            for info in list(columns.pods_on[row].values()) if row is not None else ():
                if removal_outcome(info) is RemovalOutcome.ENDS:
                    continue  # as kubectl drain --ignore-daemonsets
                found += 1
                if budgets.blocking(info):
                    blocked += 1
                else:
                    budgets.take(info)
                    self._evict(self._pods[info.uid])
        now_s = self._clock.now_s()
        if found and now_s < event.drain_until_s:
            self._pending.retry_all()
            delay_s = EVICTION_RETRY_S if blocked else DRAIN_CHECK_S
            self._push_entry(min(now_s + delay_s, event.drain_until_s), _Kind.NODES, event)
            return False
        event.drain = None
        return True

    def now_s(self) -> float:
        return self._clock.now_s()

    def has_node(self, name: str) -> bool:
        return name in self.engine.columns.row_of or name in self._failed

    def pool_nodes(self, pool: str) -> list[str]:
        nodes = (node for node in self.engine.columns.nodes if node is not None)
        return sorted(node.metadata.name for node in nodes if node.metadata.labels.get(POOL) == pool)

    def failed_nodes(self, pool: str) -> list[str]:
        return [name for name, node in self._failed.items() if node.metadata.labels.get(POOL) == pool]

    def unschedulable_pods(self) -> list[Pod]:
        return [pod.view for pod in self._pending]

    def _node(self, name: str) -> Node | None:
        row = self.engine.columns.row_of.get(name)
        return self.engine.columns.nodes[row] if row is not None else None

    def _scale(self, change: ScalePart) -> None:
        group = self._groups[change.workload]
        pending = [pod for pod in self._pending if pod.owner == group.name]
        running = [pod for pod in self._pods.values() if pod.owner == group.name]
        surplus = len(pending) + len(running) - change.replicas
        for _ in range(-surplus):
            number = self._created_of_group[group.name]
            self._created_of_group[group.name] = number + 1
            self._enqueue(SimulatedPod(group_pod(group, number), FOREVER_S, group.name, self._clock.now_s()))
        if surplus <= 0:
            return
        for pod in pending[::-1][:surplus]:
            self._drop_pending(pod)
        for pod in running[::-1][: max(surplus - len(pending), 0)]:
            self._remove_from_node(pod)
        self._pending.retry_all()

    def _remove_node(self, name: str) -> Node | None:
        node = self._node(name)
        if node is not None:
            row = self.engine.columns.row_of[name]
            for info in list(self.engine.columns.pods_on[row].values()):
                self._evict(self._pods[info.uid])
            self.engine.remove(node)
        return node

    def _nodes_changed(self) -> None:
        nodes = (node for node in self.engine.columns.nodes if node is not None)
        pools = [node.metadata.labels.get(POOL, "") for node in nodes]
        self.meter.nodes_changed(len(pools), self.pools.price_per_h(pools))

    # Pods

    def _evict(self, pod: SimulatedPod) -> None:
        """The pod ends before its time. If it has an owner, it is created again."""
        self._remove_from_node(pod)
        self.meter.evictions += 1
        owner = controller_of(pod.view.metadata)
        if owner is not None and owner.kind in NODE_BOUND_OWNERS:
            return
        group = self._groups.get(pod.owner)
        if owner is None and (not pod.owner or (group is not None and group.bare)):
            return
        pod.queued_s = self._clock.now_s()
        self._enqueue(pod)

    def _remove_from_node(self, pod: SimulatedPod) -> None:
        """Remove a placed pod from its node."""
        info = pod.info
        assert info is not None, f"{pod.view.key} is on no node"
        if self._budgets:
            self._budgets.untrack(info)
        pod.run += 1
        row = info.row
        if pod.is_assumed:
            self.engine.forget(info)
        else:
            self.engine.remove(pod.view)
            spec = replace(pod.view.spec, node_name="")
            pod.view = replace(pod.view, spec=spec, status=PodStatus())
        del self._pods[info.uid]
        if row >= 0:
            self.meter.pod_removed(info, row)
        pod.info = None

    def _enqueue(self, pod: SimulatedPod) -> None:
        info = self.engine.record(pod.view)
        if self._budgets:
            self._budgets.track(info, is_healthy=False)
        self._pending.add(pod, info)

    def _drop_pending(self, pod: SimulatedPod) -> None:
        if self._pending.discard(pod) and self._budgets and pod.info is not None:
            self._budgets.untrack(pod.info)

    def _schedule(self) -> None:
        """Try the pending pods whose signature was not rejected since the last change that may help."""
        self._budgets.flush()
        self._pending.begin_round()
        while (pod := self._pending.next()) is not None:
            victims = self._place(pod)
            if victims is None:
                self._pending.take_next()
            elif victims:
                self._preempt(victims)
            elif self._scenario.retry:
                self._pending.reject_next()
            else:
                self._pending.take_next()
                self._dropped += 1

    def _place(self, pod: SimulatedPod) -> Sequence[PodInfo] | None:
        """Place a pod. Returns None if that worked, else the pods whose eviction would help."""
        info = pod.info
        assert info is not None, f"{pod.view.key} is not in the queue"
        try:
            decision = self.engine.decide(info)
        except UnknownProfileError as error:
            raise ScenarioError("", str(error)) from error
        if decision.error is not None and decision.error != "nonodes":
            raise ScenarioError("", f"pod {info.key} at {self._clock.now_s():.0f} s: {decision.message}")
        if decision.node_name is None:
            plan: PreemptionPlan | None = decision.preemption
            return plan.victims if plan is not None else ()
        if self.engine.assume(decision) is not None:
            return ()
        pod.is_assumed = True
        self._pods[info.uid] = pod
        self.meter.pod_added(info)
        if self._budgets:
            self._budgets.track(info, is_healthy=True)
        if not pod.was_placed:
            pod.was_placed = True
            self.meter.pod_placed(info.key, decision.node_name, self._clock.now_s() - pod.queued_s)
        self._push_end(pod)
        return None

    def _preempt(self, victims: Sequence[PodInfo]) -> None:
        """Evict the victims. All pending pods are tried again, the preemptor before those of lower priority."""
        self.meter.preemptions += 1
        for victim in victims:
            self._evict(self._pods[victim.uid])
        self._budgets.flush()
        self._pending.retry_all()
        self._pending.begin_round()

    def _pending_count(self) -> int:
        return self._dropped + len(self._pending)

    # The heap

    def _push_entry(self, at_s: float, kind: _Kind, what: object) -> None:
        self._number += 1
        heappush(self._heap, (at_s, kind, self._number, what))

    def _push_event(self, number: int, occurrence: int) -> None:
        event = self._scenario.events[number]
        at_s = seconds(event.at) + occurrence * (seconds(event.every) if event.every else 0.0)
        self._push_entry(at_s, _kind_of(event), (number, occurrence))

    def _push_end(self, pod: SimulatedPod) -> None:
        if pod.lifetime_s != FOREVER_S:
            self._push_entry(self._clock.now_s() + pod.lifetime_s, _Kind.END, (pod, pod.run))

    def _push_arrival(self) -> None:
        if self._arrived < len(self._arrivals):
            arrival = self._arrivals[self._arrived]
            self._arrived += 1
            self._push_entry(arrival.at_s, _Kind.ARRIVAL, arrival)
            if self._arrived % PROGRESS_EVERY == 0:
                self._progress(self._arrived / len(self._arrivals))

    # Samples

    def _sample(self) -> Figures:
        taken = self.meter.sample(self._pending_count(), self._pending.requested_cpu_milli())
        if self._has_demand:
            taken["demand_percent"] = self._demand / self._demand_unit
        return taken

    def _sample_by_demand(self, *, is_end: bool = False) -> None:
        requested_percent = self._demand / self._demand_unit
        openb = self._scenario.workload.openb
        if is_end and openb is not None and openb.demand is not None:
            requested_percent = 100 * openb.demand  # the next pod would have asked for more
        while self._demand_points and requested_percent >= self._demand_points[0]:
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
