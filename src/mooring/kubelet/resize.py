"""In-place resize: new resources for the containers of a running pod.

Input: a pod whose resources changed, and its node. Output: new limits for the runtime, containers to restart; or the
condition PodResizePending; events.

 1. A resize is granted for the whole pod or not at all, and takes effect at once.
 2. A resize that exceeds the node is Infeasible. One that does not fit now is Deferred and considered again when other
    pods release resources.
 3. If the runtime cannot set granted limits, the condition PodResizeInProgress has its error. The next resize retries.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.json import encode

from mooring.api.document import Document
from mooring.api.resources import fit_filter_requests
from mooring.api.views.pod import ResourceRequirements
from mooring.kubelet.node_state import NodeState
from mooring.kubelet.pod_actions import ContainerRecord, containers_of
from mooring.kubelet.runtime import RecordEvent, Role, Runtime
from mooring.kubelet.views import KubeletContainer, KubeletPod


class PodResize:
    """The allocated resources of one pod."""

    __slots__ = ("_record_event", "_runtime", "allocated", "failed", "pending")

    def __init__(self, runtime: Runtime, record_event: RecordEvent) -> None:
        self._runtime = runtime
        self._record_event = record_event
        self.allocated: dict[str, ResourceRequirements] = {}
        """By container name."""
        self.pending: Document | None = None
        self.failed: Document | None = None

    @property
    def conditions(self) -> list[Document]:
        return [condition for condition in (self.pending, self.failed) if condition is not None]

    def grant(self, pod: KubeletPod) -> None:
        """Allocate what the spec requests."""
        self.allocated = _requested(pod)
        self.pending = None

    def consider(self, pod: KubeletPod, node: NodeState, records: Iterable[ContainerRecord]) -> list[ContainerRecord]:
        """Grant a changed spec if it fits. Returns the containers that must restart to get their resources."""
        before = self.allocated
        if _requested(pod) == before:
            self.pending = None
            return []
        requests = fit_filter_requests(pod)
        insufficient = node.insufficient(pod, requests)
        if insufficient is not None:
            self._reject_resize(pod, "Infeasible" if _is_more_than_all(pod, node) else "Deferred", insufficient.message)
            return []
        self.grant(pod)
        node.reserve(pod, requests)
        self._record_event(pod, "Normal", "ResizeStarted", _message(pod, "started"))
        return self._actuate(pod, before, records)

    def _reject_resize(self, pod: KubeletPod, reason: str, why: str) -> None:
        had = self.pending
        self.pending = _condition(pod, "PodResizePending", reason, why)
        if had is None or had["reason"] != reason:
            self._record_event(pod, "Warning", f"Resize{reason}", _message(pod, reason, why))

    def _actuate(
        self, pod: KubeletPod, before: dict[str, ResourceRequirements], records: Iterable[ContainerRecord]
    ) -> list[ContainerRecord]:
        changed = [record for record in records if record.is_running and record.container.name in before]
        changed = [record for record in changed if record.container.resources != before[record.container.name]]
        to_restart = [
            record for record in changed if _must_start_again(record.container, before[record.container.name])
        ]
        errors = [
            self._runtime.resize(pod.metadata.uid, record.container, record.attempt)
            for record in changed
            if record not in to_restart
        ]
        why = "; ".join(error for error in errors if error)
        self.failed = _condition(pod, "PodResizeInProgress", "Error", why) if why else None
        if why:
            self._record_event(pod, "Warning", "ResizeError", _message(pod, "error", why))
        else:
            self._record_event(pod, "Normal", "ResizeCompleted", _message(pod, "completed"))
        return to_restart


def _requested(pod: KubeletPod) -> dict[str, ResourceRequirements]:
    """Resources by container name. Ephemeral containers have none, and adding one is not a resize."""
    return {
        container.name: container.resources for container, role in containers_of(pod.spec) if role is not Role.EPHEMERAL
    }


def _condition(pod: KubeletPod, type: str, reason: str, message: str) -> Document:
    return {
        "type": type,
        "status": "True",
        "reason": reason,
        "message": message,
        "observedGeneration": pod.metadata.generation,
    }


def _is_more_than_all(pod: KubeletPod, node: NodeState) -> bool:
    return any(amount > node.allocatable.get(name, 0) for name, amount in fit_filter_requests(pod).items())


def _must_start_again(container: KubeletContainer, before: ResourceRequirements) -> bool:
    """Whether the resize policy demands a restart for a resource that changes."""
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
    """The message of a resize event, with the resources of all containers, as a kubelet writes it."""
    reported: dict[str, list[Document]] = {}
    for container, role in containers_of(pod.spec):
        if role is not Role.EPHEMERAL:
            amounts = {"limits": container.resources.limits, "requests": container.resources.requests}
            summary = {"name": container.name, "resources": {name: held for name, held in amounts.items() if held}}
            reported.setdefault("containers" if role is Role.CONTAINER else "initContainers", []).append(summary)
    document = {**reported, "generation": pod.metadata.generation, **({"error": error} if error else {})}
    return f"Pod resize {what}: {encode(document).decode()}"
