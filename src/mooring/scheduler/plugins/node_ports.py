"""NodePorts: two pods on a node cannot use the same host port."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import ANY_ADDRESS, HostPort
from mooring.scheduler.framework.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    has_node_or_nomination,
    queue_if,
)
from mooring.scheduler.framework.obstacle import ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import SKIP, Filter, PreFilter, Proceed, Scope, Skip
from mooring.scheduler.framework.status import Reason

HostPorts = tuple[HostPort, ...]


class NodePorts(PreFilter[HostPorts], Filter[HostPorts]):
    name = "NodePorts"
    obstacle_kind = ObstacleKind.HOST_PORT
    filter_scope = Scope.NODE_PODS
    filter_reasons = (Reason("node(s) didn't have free ports for the requested pod ports"),)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def pre_filter(self, pod: PodInfo) -> Proceed[HostPorts] | Skip:
        return Proceed(pod.signature.host_ports) if pod.signature.host_ports else SKIP

    def filter(self, state: HostPorts, rows: Rows) -> Int64s:
        return self._columns.ports.conflicts(state, self._columns.height)[rows].astype(np.int64)

    def filter_row(self, state: HostPorts, row: int) -> int:
        return int(self._columns.ports.conflicts_at(state, row))

    def explain(self, state: HostPorts, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        pods = (*self._columns.pods_on[row].values(), *context.nominated_to(row))
        holders = [(port, _holder(pods, port)) for port in state]
        found = [_obstacle(port, holder) for port, holder in holders if holder is not None]
        return found or super().explain(state, row, bits, context)

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, _frees_a_port, per_signature=True),
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD),
        )


def _frees_a_port(pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    """Whether the deleted pod used a port of this pod."""
    freed = old.signature.host_ports
    return queue_if(
        bool(freed)
        and has_node_or_nomination(old)
        and any(mine.conflicts_with(port) for mine in pod.signature.host_ports for port in freed)
    )


def _holder(pods: Sequence[PodInfo], host_port: HostPort) -> PodInfo | None:
    """The first pod with a conflicting port."""
    return next((pod for pod in pods if any(host_port.conflicts_with(port) for port in pod.signature.host_ports)), None)


def _obstacle(port: HostPort, holder: PodInfo) -> Obstacle:
    address = f" on {port.address}" if port.address != ANY_ADDRESS else ""
    details: dict[str, str | int] = {
        "protocol": port.protocol,
        "port": port.port,
        "address": port.address,
        "takenBy": holder.key,
    }
    text = f"host port {port.protocol} {port.port}{address} is taken by {holder.key}"
    return Obstacle(NodePorts.name, ObstacleKind.HOST_PORT, text, details)
