"""Resizing: other amounts for a pod that runs already.

Comes in   the pod with the amounts that it wants now, and its node
Goes out   the amounts that are granted; or the condition PodResizePending, which says why they are not

 1. Amounts are granted as a whole, and given at once: nothing here takes time to grow.
 2. What the node could never have is Infeasible. What it has not now is Deferred, and considered again when others
    leave.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.resources import fit_filter_requests
from mooring.api.views.pod import ResourceRequirements
from mooring.kubelet.nodes import FleetNode
from mooring.kubelet.slots import containers_of
from mooring.kubelet.views import KubeletPod


class Resizing:
    """The amounts of one pod."""

    __slots__ = ("allocated", "pending")

    def __init__(self) -> None:
        self.allocated: dict[str, ResourceRequirements] = {}
        """By the names of the containers."""
        self.pending: Document | None = None

    def grant(self, pod: KubeletPod) -> None:
        """Give it what it wants."""
        self.allocated = {container.name: container.resources for container, _ in containers_of(pod.spec)}
        self.pending = None

    def consider(self, pod: KubeletPod, node: FleetNode) -> bool:
        """Grant what a pod wants, if it wants something else and there is room; says whether that was so."""
        wanted = {container.name: container.resources for container, _ in containers_of(pod.spec)}
        if wanted == self.allocated:
            self.pending = None
            return False
        lacking = node.lacking(pod)
        if lacking is None:
            self.grant(pod)
            return True
        self.pending = {
            "type": "PodResizePending",
            "status": "True",
            "reason": "Infeasible" if _is_more_than_all(pod, node) else "Deferred",
            "message": lacking.message,
            "observedGeneration": pod.metadata.generation,
        }
        return False


def _is_more_than_all(pod: KubeletPod, node: FleetNode) -> bool:
    return any(amount > node.allocatable.get(name, 0) for name, amount in fit_filter_requests(pod).items())
