"""Measures a cluster on virtual time: `MeasuringClock` before time moves, `PodObserver` by watching pods.

1. Figures are integrals over the state at the end of each instant. The clock knows when an instant ends: when its loop
   moves it. So nothing polls, and a sample sees everything that happened at its time.
2. Allocation is that of the scheduler's columns, as at the engine level.
3. A pod counts as placed when it is bound, and as evicted when it gets the condition DisruptionTarget before it has
   ended. A pod that is created in place of another one is a pod of its own.
4. Controllers generate names, which differ between policies. For comparisons, a pod is the first, second, … that its
   controller created; a pod of a StatefulSet has its name, and pods of DaemonSets are not compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from mooring.api.resources import fit_filter_requests
from mooring.api.views.meta import controller_of
from mooring.api.views.pod import Pod
from mooring.api.well_known import TERMINAL_PHASES
from mooring.client.interface import Change
from mooring.controllers.documents import DISRUPTION_TARGET
from mooring.kit.clock import VIRTUAL_WALL_S, VirtualClock
from mooring.scheduler.cache.columns import Columns
from mooring.simulator.measures import SimulationMeter


class MeasuringClock(VirtualClock):
    """A virtual clock that calls `before` each time before it moves, with the time to which it moves."""

    __slots__ = ("before",)

    def __init__(self, wall_s: float = VIRTUAL_WALL_S) -> None:
        super().__init__(wall_s=wall_s)
        self.before: Callable[[float], None] = lambda now_s: None

    def advance_to(self, now_s: float) -> None:
        self.before(now_s)
        super().advance_to(now_s)


class ClusterMeter:
    """Updates a meter from the columns, and takes its samples."""

    def __init__(
        self,
        meter: SimulationMeter,
        columns: Columns,
        observer: PodObserver,
        working_nodes: Callable[[], tuple[int, float]],
        times_s: Sequence[float],
    ) -> None:
        """`working_nodes`: their number, and their price per hour. `times_s` are those of samples."""
        self._meter = meter
        self._columns = columns
        self._observer = observer
        self._working_nodes = working_nodes
        self._times_s = list(times_s)
        self._seen = (-1, -1)

    def invalidate(self) -> None:
        """The price of the nodes has changed: read everything again before time moves."""
        self._seen = (-1, -1)

    def before(self, now_s: float, next_s: float) -> None:
        """Time moves on from one time of the scenario to another: what happened until now is complete."""
        changes = (self._columns.usage_changes.position, self._columns.fact_changes.position)
        if changes != self._seen:
            self._seen = changes
            self._meter.advance_to(now_s)
            self._meter.nodes_changed(*self._working_nodes())
        while self._times_s and self._times_s[0] < next_s:
            self._meter.advance_to(self._times_s.pop(0))
            self._meter.sample(len(self._observer.pending), self._observer.pending_cpu_milli())


class PodObserver:
    """The reflector sink of a watch of pods."""

    def __init__(self, meter: SimulationMeter, clock: VirtualClock) -> None:
        self._meter = meter
        self._clock = clock
        self.pending: dict[str, tuple[float, Pod]] = {}
        """Pods without a node, and since when they wait, by uid."""
        self.on_node: dict[str, dict[str, Pod]] = {}
        """Pods that have not ended, by node and uid."""
        self._evicted: set[str] = set()
        self._names: dict[str, str] = {}
        """What pending pods are called in comparisons, by uid."""
        self._created: Counter[str] = Counter()
        """Pods that were created, by controller."""

    def replace(self, views: Sequence[Pod], revision: str) -> None:
        for view in views:
            self.apply(Change.ADDED, view)

    def apply(self, change: Change, view: Pod) -> None:
        uid, node = view.metadata.uid, view.spec.node_name
        if not node:
            if change is Change.DELETED:
                self.pending.pop(uid, None)
                self._names.pop(uid, None)
            else:
                if uid not in self._names:
                    self._names[uid] = self._compared_name(view)
                since_s, _ = self.pending.get(uid, (self._clock.now_s(), view))
                self.pending[uid] = since_s, view
            return
        waited = self.pending.pop(uid, None)
        if waited is not None:
            self._meter.pod_placed(self._names.pop(uid), node, self._clock.now_s() - waited[0])
        # Before it is taken off its node: a controller may end a pod and say why at once, or evict one that has ended.
        was_running = uid in self.on_node.get(node, {}) or waited is not None
        if was_running and uid not in self._evicted and _is_disrupted(view):
            self._evicted.add(uid)
            self._meter.evictions += 1
        if change is Change.DELETED or view.status.phase in TERMINAL_PHASES:
            self.on_node.get(node, {}).pop(uid, None)
            self._evicted.discard(uid)
        else:
            self.on_node.setdefault(node, {})[uid] = view

    def _compared_name(self, pod: Pod) -> str:
        """Empty: the pod is not compared."""
        owner = controller_of(pod.metadata)
        if owner is None or owner.kind == "StatefulSet":
            return pod.key
        if owner.kind == "DaemonSet":
            return ""
        key = f"{pod.metadata.namespace}/{owner.name}"
        self._created[key] += 1
        return f"{key} #{self._created[key]}"

    def pending_cpu_milli(self) -> int:
        """The cpu that the pending pods request."""
        return sum(fit_filter_requests(pod).get("cpu", 0) for _, pod in self.pending.values())

    def unschedulable_pods(self) -> list[Pod]:
        """The pods that the scheduler has rejected."""
        return [pod for _, pod in self.pending.values() if _is_unschedulable(pod)]

    def waits_s(self) -> list[float]:
        """How long the pending pods have waited."""
        return [self._clock.now_s() - since_s for since_s, _ in self.pending.values()]


def _is_unschedulable(pod: Pod) -> bool:
    return any(
        condition.type == "PodScheduled" and condition.reason == "Unschedulable" for condition in pod.status.conditions
    )


def _is_disrupted(pod: Pod) -> bool:
    return any(
        condition.type == DISRUPTION_TARGET and condition.status == "True" for condition in pod.status.conditions
    )
