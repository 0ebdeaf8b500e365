"""The data of the pages /debug/queue, /debug/cache and /metrics/resources.

The debug pages show as JSON why a pod waits and what a node holds. /metrics/resources shows the requests and limits of
each pod, as two gauges in Prometheus' text format.

 1. The functions only read and never await: a page shows one moment.
 2. The debug page of one pod always has an entry: a pod that has left the queue may wait for a volume for ten minutes,
    and is still pending for its owner.
 3. /metrics/resources has no pods that have finished, and no pending pods of other schedulers: the scheduler does not
    hold them. kube-scheduler shows the latter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring.api.quantity import NANO, quantity_nano
from mooring.api.resources import RequestRules, pod_requests_nano
from mooring.api.views.pod import Container, Pod
from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.scheduler.binding.assumed_pods import AssumedPods
from mooring.scheduler.binding.cycle import Binding, BindingStage
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PerSignature, PodInfo, PodSignature
from mooring.scheduler.cache.resources import CPU_NON_ZERO, MEMORY_NON_ZERO
from mooring.scheduler.cycle.explain import explain
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.waiting_pods import WaitingPods
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.queue.queued_pod import QueuedPod

ROWS_MAX = 10_000
"""Maximum number of pods or nodes on a page. The page has the total number."""
NEAREST_MAX = 50
"""Maximum number of nodes whose obstacles a page lists."""


BINDING = "binding"
"""The state of a pod that has left the queue and is being bound."""

UNKNOWN_POD = "not known: it does not exist, has finished, or waits for another scheduler"


def queue_page(
    queue: SchedulingQueue, bindings: Mapping[str, Binding], waiting: WaitingPods, clock: Clock
) -> dict[str, object]:
    """Every pod that is queued or being bound, with its state, since when, and why."""
    rows = list(islice(_rows(queue, bindings, waiting, clock), ROWS_MAX))
    return {"counts": queue_counts(queue, bindings), "shown": len(rows), "pods": rows}


def queue_counts(queue: SchedulingQueue, bindings: Mapping[str, Binding]) -> dict[str, int]:
    """Number of pods by state."""
    numbers = queue.statistics()
    return {
        "active": numbers.active,
        "backoff": numbers.backoff,
        "unschedulable": numbers.unschedulable,
        "gated": numbers.gated,
        "inFlight": numbers.in_flight,
        "binding": sum(queue.status(uid) is None for uid in bindings),
    }


def pod_page(
    key: str,
    queue: SchedulingQueue,
    bindings: Mapping[str, Binding],
    waiting: WaitingPods,
    engine: Engine,
    clock: Clock,
    nearest: int = 0,
) -> dict[str, object]:
    """The rows of one pod (NAMESPACE/NAME) in any state. More than one row if a name was used again.

    A pod without a node has the obstacles of the `nearest` nodes, as of now."""
    columns = engine.columns
    rows = list(_rows(queue, bindings, waiting, clock, key))
    for entry in list(queue.entries()) if nearest else ():
        if entry.pod.key == key and entry.pod.uid not in columns.pods:
            explained = _nearest_nodes(engine, entry.pod, min(nearest, NEAREST_MAX))
            rows = [row | explained if row["uid"] == entry.pod.uid else row for row in rows]
    shown = {row["uid"] for row in rows}
    for pod in columns.pods.values():
        if pod.key == key and pod.uid not in shown:
            rows.append({"pod": key, "uid": pod.uid, "state": "on its node", "node": pod.node_name})
    return {"shown": len(rows), "pods": rows or [{"pod": key, "state": UNKNOWN_POD}]}


def _nearest_nodes(engine: Engine, pod: PodInfo, count: int) -> dict[str, object]:
    """The obstacles of a pending pod: on every node, and on the nodes with the fewest and smallest obstacles."""
    found = explain(engine.cycle_for(pod).profile, engine.columns, pod, nearest_max=count)
    return {
        "nodesWithoutObstacles": found.free_count,
        "obstaclesEverywhere": [obstacle.document() for obstacle in found.everywhere],
        "nearestNodes": [
            {"node": name, "obstacles": [obstacle.document() for obstacle in found.at(name)]} for name in found.nearest
        ],
    }


def _rows(
    queue: SchedulingQueue,
    bindings: Mapping[str, Binding],
    waiting: WaitingPods,
    clock: Clock,
    key: str = "",
) -> Iterator[dict[str, object]]:
    """All pods, or those with a key."""
    for entry in queue.entries():
        if not key or entry.pod.key == key:
            yield queued_pod_row(queue, entry, bindings.get(entry.pod.uid), waiting, clock)
    for uid, binding in bindings.items():
        if queue.get(uid) is None and (not key or binding.pod.key == key):
            yield binding_row(binding, waiting, clock)


def binding_row(binding: Binding, waiting: WaitingPods, clock: Clock) -> dict[str, object]:
    """A pod that has left the queue and is being bound."""
    return {
        "pod": binding.pod.key,
        "uid": binding.pod.uid,
        "scheduler": binding.entry.scheduler_name,
        "priority": binding.pod.signature.priority,
        "state": BINDING,
        "since": wall_time(binding.started_s, clock),
        "attempts": binding.entry.attempts,
    } | _binding_fields(binding, waiting)


def _binding_fields(binding: Binding, waiting: WaitingPods) -> dict[str, object]:
    """The progress of a binding."""
    row: dict[str, object] = {"node": binding.node_name, "stage": binding.stage.value}
    waiter = waiting.get(binding.pod.uid)
    if waiter is not None:
        row["waitsFor"] = list(waiter.pending_plugins)
    elif binding.stage is BindingStage.PREPARING:
        row["waitsFor"] = [plugin.name for plugin in binding.pre_binds]
    return row


def queued_pod_row(
    queue: SchedulingQueue, entry: QueuedPod, binding: Binding | None, waiting: WaitingPods, clock: Clock
) -> dict[str, object]:
    """A pod in the queue, and the progress of its binding if it has one."""
    status = queue.status(entry.pod.uid)
    assert status is not None, f"{entry} has no status"
    row: dict[str, object] = {
        "pod": entry.pod.key,
        "uid": entry.pod.uid,
        "scheduler": entry.scheduler_name,
        "priority": entry.pod.signature.priority,
        "state": status.state.text,
        "since": wall_time(status.since_s, clock),
        "cause": status.cause.text,
        "event": status.event_label,
        "attempts": status.attempts,
    }
    if status.gating_plugin is not None:
        row["gatedBy"] = status.gating_plugin
    if status.unschedulable_plugins:
        row["rejectedBy"] = list(status.unschedulable_plugins)
    if status.pending_plugins:
        row["waitsFor"] = list(status.pending_plugins)
    events = queue.awaited_events(entry)
    if events:
        row["awaits"] = list(events)
    if status.backoff_end_s is not None:
        row["backsOffUntil"] = wall_time(status.backoff_end_s, clock)
    if status.timeout_s is not None:
        row["retriedAtTheLatest"] = wall_time(status.timeout_s, clock)
    if entry.pod.nominated_node:
        row["nominatedNode"] = entry.pod.nominated_node
    return row if binding is None else row | _binding_fields(binding, waiting)


def cache_page(columns: Columns, assumed_pods: AssumedPods, *, node: str = "") -> dict[str, object]:
    """Every node with its allocatable and requested resources; if `node` is given, that node with its pods."""
    rows = [row for name, row in sorted(columns.row_of.items()) if not node or name == node]
    return {
        "counts": {"nodes": columns.node_count, "pods": len(columns.pods), "assumedPods": len(assumed_pods)},
        "shown": min(len(rows), ROWS_MAX),
        "nodes": [_node_row(columns, assumed_pods, row, with_pods=bool(node)) for row in rows[:ROWS_MAX]],
    }


def _node_row(columns: Columns, assumed_pods: AssumedPods, index: int, *, with_pods: bool) -> dict[str, object]:
    offered, used = columns.resources.at(index)
    pods = columns.pods_on[index]
    row: dict[str, Any] = {
        "node": columns.node_names[index],
        "unschedulable": bool(columns.unschedulable[index]),
        "allocatable": _amounts(columns, offered),
        "requested": _amounts(columns, used),
        "pods": len(pods),
        "assumedPods": sum(uid in assumed_pods for uid in pods),
    }
    if with_pods:
        row["podNames"] = sorted(pod.key for pod in pods.values())
    return row


def _amounts(columns: Columns, amounts: list[int]) -> dict[str, int]:
    """Amounts by resource, cpu in millicores."""
    return {
        "cpuMilli" if name == "cpu" else name: amount
        for resource, (name, amount) in enumerate(zip(columns.resources.names, amounts))
        if amount and resource not in (CPU_NON_ZERO, MEMORY_NON_ZERO)
    }


def wall_time(now_s: float, clock: Clock) -> str:
    """A time of the clock as a timestamp."""
    return format_rfc3339_micro(clock.wall_s() - clock.now_s() + now_s)


LABELS = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_BYTES = ("memory", "storage", "ephemeral-storage")

Amounts = Mapping[str, float]


def pod_resources_text(pods: Iterable[PodInfo]) -> bytes:
    """The text of the page."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_PodResources(pods))
    return generate_latest(registry)


class _PodResources(Collector):
    def __init__(self, pods: Iterable[PodInfo]) -> None:
        self._pods = pods

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        limits = GaugeMetricFamily("kube_pod_resource_limit", "What a pod may use at most, by resource.", labels=LABELS)
        requests = GaugeMetricFamily("kube_pod_resource_request", "What a pod requests, by resource.", labels=LABELS)
        for pod in self._pods:
            requested, limited = _requests_and_limits(pod.signature)
            spec = pod.signature.spec
            priority = str(spec.priority) if spec.priority is not None else ""
            labels = (pod.namespace, pod.name, pod.node_name, spec.scheduler_name, priority)
            for family, amounts in ((requests, requested), (limits, limited)):
                for resource, amount in amounts.items():
                    family.add_metric((*labels, resource, unit_of(resource)), amount)
        yield limits
        yield requests


def unit_of(resource: str) -> str:
    if resource == "cpu":
        return "cores"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


@PerSignature
def _requests_and_limits(signature: PodSignature) -> tuple[Amounts, Amounts]:
    pod = signature.view
    return _in_units(pod_requests_nano(pod, RequestRules())), _in_units(_limits_nano(pod))


def _in_units(amounts_nano: Mapping[str, int]) -> Amounts:
    return {name: amount / NANO for name, amount in sorted(amounts_nano.items()) if amount}


def _limits_nano(pod: Pod) -> dict[str, int]:
    """Limits add up like requests, but overhead counts only for resources with a limit."""
    spec = pod.spec
    limited = replace(
        pod,
        spec=replace(
            spec,
            containers=tuple(_with_limits(container) for container in spec.containers),
            init_containers=tuple(_with_limits(container) for container in spec.init_containers),
            resources=None if spec.resources is None else replace(spec.resources, requests=spec.resources.limits),
        ),
    )
    limits = pod_requests_nano(limited, RequestRules(counts_overhead=False))
    for name, amount in spec.overhead.items():
        if limits.get(name):
            limits[name] += quantity_nano(amount)
    return limits


def _with_limits(container: Container) -> Container:
    return replace(container, resources=replace(container.resources, requests=container.resources.limits))
