"""NodeDeclaredFeatures: reject nodes that do not declare a kubelet feature that the pod needs."""

from __future__ import annotations

import numpy as np

from mooring.api.views.node import Node
from mooring.api.views.pod import PodSpec
from mooring.scheduler.cache.arrays import Int64s, Rows, row_numbers
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint, queue_if
from mooring.scheduler.framework.obstacle import ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import SKIP, Filter, PreFilter, Proceed, Scope, Skip
from mooring.scheduler.framework.status import Code, Reason

Features = frozenset[str]

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"


class NodeDeclaredFeatures(PreFilter[Features], Filter[Features]):
    name = "NodeDeclaredFeatures"
    obstacle_kind = ObstacleKind.FEATURE
    filter_scope = Scope.NODE
    filter_reasons = (Reason("node(s) didn't match Pod's required features", Code.UNRESOLVABLE),)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def pre_filter(self, pod: PodInfo) -> Proceed[Features] | Skip:
        needed = needed_features(pod.signature.spec)
        return Proceed(needed) if needed else SKIP

    def filter(self, state: Features, rows: Rows) -> Int64s:
        numbers = row_numbers(rows)
        nodes = (self._columns.nodes[row] for row in numbers)
        lacking = [node is None or not state.issubset(node.status.declared_features) for node in nodes]
        return np.array(lacking, dtype=np.int64)

    def explain(self, state: Features, row: int, bits: int, context: ExplainContext) -> tuple[Obstacle, ...]:
        node = self._columns.nodes[row]
        missing = sorted(state.difference(node.status.declared_features if node is not None else ()))
        text = f"needs a kubelet that declares {', '.join(missing)}"
        return (Obstacle(self.name, ObstacleKind.FEATURE, text, {"needs": ",".join(missing)}),)

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE,
                _changes_features,
                per_signature=True,
            ),
            ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE, _changes_needs),
        )


def needed_features(spec: PodSpec) -> Features:
    """The kubelet features that the pod's specification needs."""
    needed = set()
    containers = (*spec.containers, *spec.init_containers)
    if any(rule.action == "RestartAllContainers" for c in containers for rule in c.restart_policy_rules):
        needed.add(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        needed.add(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(needed)


def _changes_features(pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
    return queue_if(old is None or old.status.declared_features != new.status.declared_features)


def _changes_needs(pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
    return queue_if(new.uid == pod.uid and needed_features(old.signature.spec) != needed_features(new.signature.spec))
