"""What wakes pods that PodTopologySpread refused: other counts, or other domains.

Comes in   pods of the same namespace as they come, go and change; nodes as they come, go, move and are tainted
Goes out   whether that can help a sleeping pod

A pod more can help as well as a pod less: it fills the domain that the others are compared with.

 1. A pod counts for a constraint or it does not; how much that changes is for the next attempt to find out.
 2. kube-scheduler v1.36 does not hear of a pod that starts to terminate, and no longer counts; nor do we.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mooring.api.errors import LabelSelectorError
from mooring.api.views.node import Node
from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.framework.events import Action, Subject, Wake
from mooring.scheduler.framework.hints import takes_up_room
from mooring.scheduler.plugins.spread_constraints import Constraint

Constraints = Sequence[Constraint]


class SpreadHints:
    """The hints, over the hard constraints that the plugin has compiled for a signature."""

    def __init__(self, constraints_of: Callable[[PodSignature], Constraints], *, are_in_the_signature: bool) -> None:
        self._constraints_of = constraints_of
        self._are_in_the_signature = are_in_the_signature
        """Whether a signature always has the same constraints; default ones depend on the services that there are."""

    def wakes(self) -> tuple[Wake, ...]:
        changes_of_node = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return (
            Wake(
                Subject.ASSIGNED_POD, Action.ADD, self._counts_now, True, by_both_signatures=self._are_in_the_signature
            ),
            Wake(Subject.ASSIGNED_POD, Action.DELETE, self._counted, by_signature=True),
            Wake(Subject.ASSIGNED_POD, Action.UPDATE_POD_LABEL, self._counts_otherwise, by_signature=True),
            Wake(Subject.PENDING_POD, Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION, self._changes_itself),
            Wake(Subject.NODE, changes_of_node, self._changes_domains, by_signature=True),
        )

    def _counts_now(self, pod: PodInfo, old: None, new: PodInfo) -> bool:
        return self._counts(pod, new)

    def _counted(self, pod: PodInfo, old: PodInfo, new: None) -> bool:
        return self._counts(pod, old)

    def _counts(self, pod: PodInfo, other: PodInfo) -> bool:
        if other.namespace != pod.namespace or not takes_up_room(other):
            return False
        constraints, labels = self._readable(pod), other.signature.labels
        return constraints is None or any(each.selector.matches(labels) for each in constraints)

    def _counts_otherwise(self, pod: PodInfo, old: PodInfo, new: PodInfo) -> bool:
        if new.namespace != pod.namespace or not takes_up_room(old) or not takes_up_room(new):
            return False
        constraints = self._readable(pod)
        return constraints is None or _match_otherwise(constraints, old.signature.labels, new.signature.labels)

    def _changes_itself(self, pod: PodInfo, old: PodInfo, new: PodInfo) -> bool:
        """The pod has other labels, or tolerates more nodes: is it spread otherwise now?"""
        if new.uid != pod.uid:
            return False
        constraints = self._readable(pod)
        if constraints is None:
            return True
        tolerates_otherwise = old.signature.spec.tolerations != new.signature.spec.tolerations
        if tolerates_otherwise and any(each.honours_taints for each in constraints):
            return True
        return _match_otherwise(constraints, old.signature.labels, new.signature.labels)

    def _changes_domains(self, pod: PodInfo, old: Node | None, new: Node | None) -> bool:
        """A node came, went or changed: does it count now or did it before, and if both, in another way?"""
        constraints = self._readable(pod)
        if constraints is None:
            return True
        did_count, does_count = _has_keys(old, constraints), _has_keys(new, constraints)
        if old is None or new is None or did_count != does_count:
            return did_count or does_count
        if not does_count:
            return False
        before, after = old.metadata.labels, new.metadata.labels
        return old.spec.taints != new.spec.taints or any(
            before.get(each.column.key) != after.get(each.column.key) for each in constraints
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
