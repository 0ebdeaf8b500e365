"""Match the taints of a node with the tolerations of a pod.

Output: the first taint that is not tolerated, and the number of PreferNoSchedule taints that are not tolerated.

 1. A toleration with an empty effect matches all effects, one with an empty key all keys.
 2. The operators `Lt` and `Gt` are alpha and off by default in kube-scheduler v1.36: such a toleration matches no
    taint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mooring.api.views.node import Taint
from mooring.api.views.pod import Toleration

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

HARD_EFFECTS = frozenset({NO_SCHEDULE, NO_EXECUTE})
"""The effects that filters apply. PreferNoSchedule only lowers the score of a node."""

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""The taint of a cordoned node, whether or not the node has it."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def find_untolerated_taint(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint with a hard effect that no toleration matches."""
    for taint in taints:
        if taint.effect in HARD_EFFECTS and not is_tolerated(taint, tolerations):
            return taint
    return None


def tolerations_of_preferences(tolerations: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """The tolerations that can match a PreferNoSchedule taint. Computed once for each pod, used for all nodes."""
    return tuple(toleration for toleration in tolerations if toleration.effect in ("", PREFER_NO_SCHEDULE))


def count_intolerable_preferences(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> int:
    """The number of PreferNoSchedule taints that no toleration matches."""
    return sum(taint.effect == PREFER_NO_SCHEDULE and not is_tolerated(taint, tolerations) for taint in taints)
