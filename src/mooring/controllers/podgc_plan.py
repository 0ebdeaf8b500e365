"""Pod garbage, decided: which pods nobody will ever take away.

Comes in   pods, nodes, the threshold
Goes out   lists of pods, in the order in which they go

 1. Of terminated pods those above the threshold go: evicted ones first, then the oldest, then by name.
 2. A pod that goes on a node which is not ready and marked as out of service is lost: its kubelet will not say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.controllers.node.health import READY, TRUE, condition_of

OUT_OF_SERVICE_KEY = "node.kubernetes.io/out-of-service"
_LIVING_PHASES = ("Pending", "Running", "Unknown")


def is_terminated(pod: Pod) -> bool:
    return pod.status.phase not in _LIVING_PHASES


def is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def surplus(terminated: Iterable[Pod], threshold: int) -> list[Pod]:
    """Those above the threshold; none if there is no threshold."""
    pods = [*terminated]
    count = len(pods) - threshold
    return sorted(pods, key=_age)[:count] if threshold > 0 and count > 0 else []


def out_of_service(terminating: Iterable[Pod], node_of: Callable[[str], Node | None]) -> list[Pod]:
    """Those that go on a node which is out of service."""
    lost = [pod for pod in terminating if (node := node_of(pod.spec.node_name)) is not None and _is_lost(node)]
    return sorted(lost, key=_age)


def unscheduled(terminating: Iterable[Pod]) -> list[Pod]:
    """Those that go and have no node, so that no kubelet sees to it."""
    return [pod for pod in terminating if not pod.spec.node_name]


def _is_lost(node: Node) -> bool:
    ready = condition_of(node.status.conditions, READY)
    is_ready = ready is not None and ready.status == TRUE
    return not is_ready and any(taint.key == OUT_OF_SERVICE_KEY for taint in node.spec.taints)


def _age(pod: Pod) -> tuple[bool, str, str]:
    is_evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not is_evicted, pod.metadata.creation_timestamp or "", pod.metadata.name
