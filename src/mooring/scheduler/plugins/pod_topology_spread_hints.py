"""Queueing hints of PodTopologySpread: matching pods that come, go or change, and nodes that change domains or taints.

A further pod can help as well as one pod fewer: it fills the domain that the others are compared with.

1. A pod counts for a constraint or it does not. By how much that changes the skew is for the next attempt to find out.
2. As in kube-scheduler v1.36, a pod that starts to terminate, and no longer counts, causes no retry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mooring.api.errors import LabelSelectorError
from mooring.api.views.node import Node
from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.framework.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    has_node_or_nomination,
    queue_if,
)
from mooring.scheduler.plugins.spread_constraints import Constraint

Constraints = Sequence[Constraint]


class SpreadHints:
    """The hints, over the hard constraints that the plugin has compiled for a signature."""

    def __init__(self, constraints_of: Callable[[PodSignature], Constraints], *, are_in_the_signature: bool) -> None:
        self._constraints_of = constraints_of
        self._are_in_the_signature = are_in_the_signature
        """Whether a signature always has the same constraints; default ones depend on the services that there are."""

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        changes_of_node = (
            ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        )
        return (
            ClusterEventWithHint(
                EventResource.ASSIGNED_POD,
                ActionType.ADD,
                self._counts_now,
                True,
                per_signature_pair=self._are_in_the_signature,
            ),
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, self._counted, per_signature=True),
            ClusterEventWithHint(
                EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL, self._counts_otherwise, per_signature=True
            ),
            ClusterEventWithHint(
                EventResource.UNSCHEDULABLE_POD,
                ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION,
                self._changes_itself,
            ),
            ClusterEventWithHint(EventResource.NODE, changes_of_node, self._changes_domains, per_signature=True),
        )

    def _counts_now(self, pod: PodInfo, old: None, new: PodInfo) -> QueueingHint:
        return queue_if(self._counts(pod, new))

    def _counted(self, pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
        return queue_if(self._counts(pod, old))

    def _counts(self, pod: PodInfo, other: PodInfo) -> bool:
        if other.namespace != pod.namespace or not has_node_or_nomination(other):
            return False
        constraints, labels = self._readable(pod), other.signature.labels
        return constraints is None or any(each.selector.matches(labels) for each in constraints)

    def _counts_otherwise(self, pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
        if new.namespace != pod.namespace or not has_node_or_nomination(old) or not has_node_or_nomination(new):
            return QueueingHint.SKIP
        constraints = self._readable(pod)
        return queue_if(
            constraints is None or _match_otherwise(constraints, old.signature.labels, new.signature.labels)
        )

    def _changes_itself(self, pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
        """The pod has other labels, or tolerates more nodes: is it spread otherwise now?"""
        if new.uid != pod.uid:
            return QueueingHint.SKIP
        constraints = self._readable(pod)
        if constraints is None:
            return QueueingHint.QUEUE
        tolerates_otherwise = old.signature.spec.tolerations != new.signature.spec.tolerations
        if tolerates_otherwise and any(each.honours_taints for each in constraints):
            return QueueingHint.QUEUE
        return queue_if(_match_otherwise(constraints, old.signature.labels, new.signature.labels))

    def _changes_domains(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        """A node came, went or changed: does it count now or did it before, and if both, in another way?"""
        constraints = self._readable(pod)
        if constraints is None:
            return QueueingHint.QUEUE
        did_count, does_count = _has_keys(old, constraints), _has_keys(new, constraints)
        if old is None or new is None or did_count != does_count:
            return queue_if(did_count or does_count)
        if not does_count:
            return QueueingHint.SKIP
        before, after = old.metadata.labels, new.metadata.labels
        return queue_if(
            old.spec.taints != new.spec.taints
            or any(before.get(each.column.key) != after.get(each.column.key) for each in constraints)
        )

    def _readable(self, pod: PodInfo) -> Constraints | None:
        """The pod's hard constraints; None if they cannot be read."""
        try:
            return self._constraints_of(pod.signature)
        except LabelSelectorError:
            return None


def _has_keys(node: Node | None, constraints: Constraints) -> bool:
    """Whether the node has the topology labels of all constraints, without which it counts for none."""
    return node is not None and all(each.column.key in node.metadata.labels for each in constraints)


def _match_otherwise(constraints: Constraints, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    return before != after and any(
        each.selector.matches(before) != each.selector.matches(after) for each in constraints
    )
