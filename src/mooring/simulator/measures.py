"""What a simulation measures: counts, waiting times, means over time, and samples.

1. Sums are kept up to date with each placed and removed pod. The cost of an event does not depend on the size of the
   cluster; a sample may read all nodes.
2. Allocation, used nodes and cost are integrals over time. Without a passage of time the last value counts.
3. A pod that still waits at the end counts with the time that it has waited, and an event that has not ended with the
   time that it has taken.
4. Fragmentation is the share of the cluster's cpu that is idle where pods of the workload do not fit: the mean over
   the `TYPES_MAX` most frequent pod types, weighted by their frequency. A plugin with a measure of the same name
   replaces it.
5. The skew of a workload is the number of its pods in its fullest zone minus that in its emptiest, as in
   topologySpreadConstraints. `zone_skew` is the largest of all workloads, and is measured if there are two zones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from mooring.api.well_known import JOB_LABELS, POD_TEMPLATE_HASH, REGION, ZONE
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import CPU, CPU_NON_ZERO, MEMORY_NON_ZERO, PODS
from mooring.scheduler.engine import Engine
from mooring.simulator.scenario.fields import seconds
from mooring.simulator.workload import HOUR_S, PodTypes

TYPES_MAX = 20
NODES_IN_MAP_MAX = 120
"""Of a larger cluster, the map has nodes at equal distances."""
NO_NODE = -1
"""In a map: there is no node in this row."""
SAMPLES_DEFAULT = 48
"""Samples of a scenario that does not say how often."""
FRAGMENTATION = "fragmentation_percent"
SKEW = "zone_skew"
_NOT_MEASURED = (PODS, CPU_NON_ZERO, MEMORY_NON_ZERO)

TIMED_EVENTS = ("drain", "upgrade", "rollout")
"""Events whose mean duration is a figure."""
_OF_SAMPLES = ("time_s", "pending", "running", "nodes", "demand_percent", "load_percent")
"""Figures that only samples have."""
_MEANS_OF_SAMPLES = (FRAGMENTATION, SKEW)
"""Figures of the whole simulation that are means over its samples."""

Figures = dict[str, float]
Progress = Callable[[float], None]
"""Called with the share of a simulation that is done."""
_ADDED_LABELS = frozenset((ZONE, REGION, POD_TEMPLATE_HASH, *JOB_LABELS))
_WorkloadKey = tuple[str, tuple[tuple[str, str], ...]]
NodeMap = np.ndarray[tuple[int], np.dtype[np.int8]]


@runtime_checkable
class SamplePlugin(Protocol):
    """A plugin with measures of its own. Every sample contains them."""

    def sample(self) -> Mapping[str, float]: ...


def sample_times_s(every: str, duration_s: float) -> list[float]:
    """The times of samples: `SAMPLES_DEFAULT` of them if the scenario does not say how often."""
    every_s = seconds(every) if every else duration_s / SAMPLES_DEFAULT
    return [number * every_s for number in range(math.floor(duration_s / every_s) + 1)] if every_s else [0.0]


class SimulationMeter:
    """The measures of one simulation."""

    def __init__(self, engine: Engine, types: PodTypes) -> None:
        self._engine = engine
        self._types = list(types)[:TYPES_MAX]
        plugins = [plugin for cycle in engine.cycles.values() for plugin in cycle.profile.plugins.values()]
        self._sample_plugins = [plugin for plugin in plugins if isinstance(plugin, SamplePlugin)]
        self.placed = 0
        self.evictions = 0
        self.preemptions = 0
        self.waits_s: list[float] = []
        self.samples: list[dict[str, float]] = []
        self.placements: dict[str, str] | None = None
        """The first node of each pod, by name, if that is wanted."""
        self._at_s = 0.0
        self._used: np.ndarray[tuple[int], np.dtype[np.float64]] = np.zeros(0)
        self._capacity: np.ndarray[tuple[int], np.dtype[np.float64]] = np.zeros(0)
        self._used_nodes = 0
        self._nodes = 0
        self._price_per_h = 0.0
        self._integrals: Figures = {}
        self._node_hours = 0.0
        self._cost = 0.0
        self._zones: list[str] = []
        self._pods_in_zones: dict[_WorkloadKey, dict[str, int]] = {}
        self._workload_of: dict[bytes, _WorkloadKey] = {}
        """By signature."""
        self._maps: list[NodeMap] = []
        self._events: list[tuple[str, float, float | None]] = []
        """Name, begin and end of the events of the scenario; None: it has not ended."""

    def pod_placed(self, name: str, node_name: str, wait_s: float) -> None:
        """A pod got its first node. Without a name it is not compared."""
        self.placed += 1
        self.waits_s.append(wait_s)
        if self.placements is not None and name:
            self.placements.setdefault(name, node_name)

    def event_began(self, name: str, at_s: float) -> int:
        """An event of the scenario began. Returns a number for `event_ended`."""
        self._events.append((name, at_s, None))
        return len(self._events) - 1

    def event_ended(self, number: int, at_s: float) -> None:
        name, began_s, _ = self._events[number]
        self._events[number] = (name, began_s, at_s)

    def nodes_changed(self, nodes: int, price_per_h: float) -> None:
        """Nodes were added or removed: read the sums anew. `nodes` is the number of those that work."""
        columns = self._engine.columns
        rows, resources = columns.live_rows, columns.resources
        self._capacity = resources.allocatable[:, rows].sum(axis=1).astype(np.float64)
        self._used = resources.used[:, rows].sum(axis=1).astype(np.float64)
        self._used_nodes = sum(bool(columns.pods_on[row]) for row in columns.row_of.values())
        self._nodes, self._price_per_h = nodes, price_per_h
        self._zones = sorted({self._zone(row) for row in columns.row_of.values()} - {""})
        self._count_zones()

    def pod_added(self, pod: PodInfo) -> None:
        """The pod was placed on its row."""
        vector = pod.signature.request_vector
        self._widen(len(vector))
        self._used[: len(vector)] += vector
        self._used_nodes += len(self._engine.columns.pods_on[pod.row]) == 1
        self._count_in_zone(pod, pod.row, 1)

    def pod_removed(self, pod: PodInfo, row: int) -> None:
        """The pod was removed from a row."""
        vector = pod.signature.request_vector
        self._used[: len(vector)] -= vector
        self._used_nodes -= not self._engine.columns.pods_on[row]
        self._count_in_zone(pod, row, -1)

    def advance_to(self, at_s: float) -> None:
        """Time passes with the cluster as it is."""
        passed_s = at_s - self._at_s
        if passed_s > 0:
            for name, value in self._current().items():
                self._integrals[name] = self._integrals.get(name, 0.0) + value * passed_s
            self._node_hours += self._nodes * passed_s / HOUR_S
            self._cost += self._price_per_h * passed_s / HOUR_S
            self._at_s = at_s

    def sample(self, pending: int, pending_cpu_milli: int = 0) -> Figures:
        """The measures of this moment."""
        taken: Figures = {"time_s": self._at_s, "pending": pending, "running": len(self._engine.columns.pods)}
        taken |= self._current()
        taken["nodes"] = float(self._nodes)
        if self._capacity.size and self._capacity[CPU]:
            taken["load_percent"] = 100 * float(self._used[CPU] + pending_cpu_milli) / float(self._capacity[CPU])
        if len(self._zones) > 1:
            taken[SKEW] = float(self._zone_skew())
        self._maps.append(self._node_map())
        for plugin in self._sample_plugins:
            taken |= plugin.sample()
        if FRAGMENTATION not in taken:
            taken[FRAGMENTATION] = self._fragmentation_percent()
        self.samples.append(taken)
        return taken

    def node_maps(self) -> list[list[int]]:
        """For each sample, the used percent of at most `NODES_IN_MAP_MAX` nodes."""
        height = max((len(node_map) for node_map in self._maps), default=0)
        step = max(-(-height // NODES_IN_MAP_MAX), 1)
        rows = range(0, height, step)
        return [[int(node_map[row]) if row < len(node_map) else NO_NODE for row in rows] for node_map in self._maps]

    def wait_percentiles_s(self, pending_waits_s: Sequence[float]) -> list[float]:
        """The percentiles 0 to 100 of the waiting times."""
        waits = np.array([*self.waits_s, *pending_waits_s]) if self.waits_s or pending_waits_s else np.zeros(1)
        return [float(value) for value in np.percentile(waits, range(101))]

    def totals(self, pending_waits_s: Sequence[float], pending: int, autoscaler: Figures) -> Figures:
        """The measures of the whole simulation; those of the autoscaler, if there is one, with node hours."""
        waits_s = self.wait_percentiles_s(pending_waits_s)
        last = self.samples[-1] if self.samples else self.sample(pending)
        means = {name: value / self._at_s for name, value in self._integrals.items()} if self._at_s else {}
        plugin_figures = {name: value for name, value in last.items() if name not in _OF_SAMPLES}
        sampled = {
            name: float(np.mean([sample[name] for sample in self.samples if name in sample]))
            for name in _MEANS_OF_SAMPLES
            if name in last
        }
        return {
            "placed": float(self.placed),
            "pending": float(pending),
            "p50_wait_s": waits_s[50],
            "p99_wait_s": waits_s[99],
            **plugin_figures,
            **means,
            **sampled,
            "evictions": float(self.evictions),
            "preemptions": float(self.preemptions),
            **self._event_lengths_s(),
            **autoscaler,
            **({"node_hours": self._node_hours} if autoscaler else {}),
            "cost": self._cost,
        }

    def _event_lengths_s(self) -> Figures:
        lengths: dict[str, list[float]] = {}
        for name, began_s, ended_s in self._events:
            if name in TIMED_EVENTS:
                end_s = ended_s if ended_s is not None else self._at_s
                lengths.setdefault(f"{name}_s", []).append(end_s - began_s)
        return {name: float(np.mean(lengths_s)) for name, lengths_s in lengths.items()}

    def _current(self) -> Figures:
        names = self._engine.columns.resources.names
        found = {
            f"{names[index]}_allocation_percent": 100 * float(self._used[index]) / float(capacity)
            for index, capacity in enumerate(self._capacity.tolist())
            if capacity and index not in _NOT_MEASURED
        }
        return {**found, "nodes_used": float(self._used_nodes)}

    def _fragmentation_percent(self) -> float:
        engine, columns = self._engine, self._engine.columns
        resources, height = columns.resources, columns.height
        alive = columns.alive[:height]
        idle = np.where(alive, np.maximum(resources.allocatable[CPU, :height] - resources.used[CPU, :height], 0), 0)
        capacity = float(resources.allocatable[CPU, :height][alive].sum())
        weight = sum(pod_type.share for pod_type in self._types)
        if not capacity or not weight:
            return 0.0
        unusable = sum(
            pod_type.share * float(idle[~engine.feasible_rows(engine.record(pod_type.pod))].sum())
            for pod_type in self._types
        )
        return 100 * unusable / weight / capacity

    def _zone(self, row: int) -> str:
        node = self._engine.columns.nodes[row]
        return node.metadata.labels.get(ZONE, "") if node is not None else ""

    def _count_zones(self) -> None:
        """Count again: a node may have come, gone, or changed its zone."""
        self._pods_in_zones = {}
        if len(self._zones) > 1:
            for pod in self._engine.columns.pods.values():
                self._count_in_zone(pod, pod.row, 1)

    def _count_in_zone(self, pod: PodInfo, row: int, change: int) -> None:
        if len(self._zones) > 1 and row >= 0:
            workload = self._workload_of.get(pod.signature.key)
            if workload is None:
                workload = self._workload_of[pod.signature.key] = _workload_of(pod)
            counts = self._pods_in_zones.setdefault(workload, dict.fromkeys(self._zones, 0))
            zone = self._zone(row)
            if zone in counts:
                counts[zone] += change

    def _zone_skew(self) -> int:
        return max((max(counts.values()) - min(counts.values()) for counts in self._pods_in_zones.values()), default=0)

    def _node_map(self) -> NodeMap:
        """For each row of the columns: the share in percent of the resource that is used most; `NO_NODE` without a
        node."""
        columns = self._engine.columns
        height = columns.height
        measured = [index for index in range(len(columns.resources.names)) if index not in _NOT_MEASURED]
        most = np.full(height, NO_NODE, dtype=np.int8)
        most[columns.alive[:height]] = 0
        for index in measured:
            capacity = columns.resources.allocatable[index, :height]
            used = np.minimum(100 * columns.resources.used[index, :height] // np.maximum(capacity, 1), 100)
            np.maximum(most, used.astype(np.int8), out=most, where=columns.alive[:height] & (capacity > 0))
        return most

    def _widen(self, length: int) -> None:
        if length > len(self._used):
            self._used = np.concatenate([self._used, np.zeros(length - len(self._used))])


def _workload_of(pod: PodInfo) -> _WorkloadKey:
    """The workload of a pod: its namespace and labels, but for those that its node or its controller gives it."""
    labels = {name: value for name, value in pod.signature.labels.items() if name not in _ADDED_LABELS}
    return pod.namespace, tuple(sorted(labels.items()))
