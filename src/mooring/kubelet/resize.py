"""Resizing: other amounts for a pod that runs already.

Comes in   the pod with the amounts that it wants now, and its node
Goes out   the amounts that are granted, to the runtime, and the containers that must be started again to get theirs;
           or the condition PodResizePending, which says why they are not granted; events

 1. Amounts are granted as a whole, and given at once: nothing here takes time to grow.
 2. What the node could never have is Infeasible. What it has not now is Deferred, and considered again when others
    leave.
 3. Amounts that were granted but that the runtime cannot set are told by the condition PodResizeInProgress, with its
    error; the next resize tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.json import encode

from mooring.api.document import Document
from mooring.api.resources import fit_filter_requests
from mooring.api.views.pod import ResourceRequirements
from mooring.kubelet.container_record import Slot, containers_of
from mooring.kubelet.node_state import FleetNode
from mooring.kubelet.runtime import Role, Runtime
from mooring.kubelet.views import KubeletContainer, KubeletPod


class Resizing:
    """The amounts of one pod."""

    __slots__ = ("_runtime", "_tell_event", "allocated", "failed", "pending")

    def __init__(self, runtime: Runtime, tell_event: Callable[[KubeletPod, bool, str, str], None]) -> None:
        self._runtime = runtime
        self._tell_event = tell_event
        self.allocated: dict[str, ResourceRequirements] = {}
        """By the names of the containers."""
        self.pending: Document | None = None
        self.failed: Document | None = None

    @property
    def conditions(self) -> list[Document]:
        return [condition for condition in (self.pending, self.failed) if condition is not None]

    def grant(self, pod: KubeletPod) -> None:
        """Give it what it wants."""
        self.allocated = {container.name: container.resources for container, _ in containers_of(pod.spec)}
        self.pending = None

    def consider(self, pod: KubeletPod, node: FleetNode, slots: Iterable[Slot]) -> list[Slot]:
        """Grant and give what a pod wants, if it wants something else and there is room. Returns the containers that
        get it only by being started again."""
        before = self.allocated
        if {container.name: container.resources for container, _ in containers_of(pod.spec)} == before:
            self.pending = None
            return []
        requests = fit_filter_requests(pod)
        lacking = node.lacking(pod, requests)
        if lacking is not None:
            self._put_off(pod, "Infeasible" if _is_more_than_all(pod, node) else "Deferred", lacking.message)
            return []
        self.grant(pod)
        node.take(pod, requests)
        self._tell_event(pod, False, "ResizeStarted", _message(pod, "started"))
        return self._give(pod, before, slots)

    def _put_off(self, pod: KubeletPod, reason: str, why: str) -> None:
        had = self.pending
        self.pending = _condition(pod, "PodResizePending", reason, why)
        if had is None or had["reason"] != reason:
            self._tell_event(pod, True, f"Resize{reason}", _message(pod, reason, why))

    def _give(self, pod: KubeletPod, before: dict[str, ResourceRequirements], slots: Iterable[Slot]) -> list[Slot]:
        changed = [slot for slot in slots if slot.is_running and slot.container.name in before]
        changed = [slot for slot in changed if slot.container.resources != before[slot.container.name]]
        again = [slot for slot in changed if _must_start_again(slot.container, before[slot.container.name])]
        refusals = [
            self._runtime.resize(pod.metadata.uid, slot.container, slot.attempt)
            for slot in changed
            if slot not in again
        ]
        why = "; ".join(refusal for refusal in refusals if refusal)
        self.failed = _condition(pod, "PodResizeInProgress", "Error", why) if why else None
        if why:
            self._tell_event(pod, True, "ResizeError", _message(pod, "error", why))
        else:
            self._tell_event(pod, False, "ResizeCompleted", _message(pod, "completed"))
        return again


def _condition(pod: KubeletPod, type: str, reason: str, message: str) -> Document:
    return {
        "type": type,
        "status": "True",
        "reason": reason,
        "message": message,
        "observedGeneration": pod.metadata.generation,
    }


def _is_more_than_all(pod: KubeletPod, node: FleetNode) -> bool:
    return any(amount > node.allocatable.get(name, 0) for name, amount in fit_filter_requests(pod).items())


def _must_start_again(container: KubeletContainer, before: ResourceRequirements) -> bool:
    """Whether its policy asks for that, for something that changes."""
    now = container.resources
    return any(
        policy.restart_policy == "RestartContainer"
        and (
            before.requests.get(policy.resource_name) != now.requests.get(policy.resource_name)
            or before.limits.get(policy.resource_name) != now.limits.get(policy.resource_name)
        )
        for policy in container.resize_policy
    )


def _message(pod: KubeletPod, what: str, error: str = "") -> str:
    """As a kubelet tells it: with the amounts of all containers."""
    told: dict[str, list[Document]] = {}
    for container, role in containers_of(pod.spec):
        if role is not Role.EPHEMERAL:
            amounts = {"limits": container.resources.limits, "requests": container.resources.requests}
            summary = {"name": container.name, "resources": {name: held for name, held in amounts.items() if held}}
            told.setdefault("containers" if role is Role.CONTAINER else "initContainers", []).append(summary)
    document = {**told, "generation": pod.metadata.generation, **({"error": error} if error else {})}
    return f"Pod resize {what}: {encode(document).decode()}"
