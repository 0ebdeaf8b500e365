"""The conditions that a kubelet tells of a pod.

Comes in   a pod, its phase, its slots
Goes out   PodReadyToStartContainers, Initialized, Ready, ContainersReady and PodScheduled, without their times

 1. Ready is ContainersReady, and every readiness gate besides.
 2. Messages list names as Go prints them: [a b].
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.kubelet.container_record import Slot
from mooring.kubelet.phases import FAILED, RUNNING, SUCCEEDED
from mooring.kubelet.runtime import Exited, Role, Running
from mooring.kubelet.views import KubeletPod

OWN_TYPES = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")

_ALL_WELL: list[Document] = [{"type": type, "status": "True"} for type in OWN_TYPES]
"""Of a pod that runs and is ready: nearly every one that is told of."""


def conditions_of(pod: KubeletPod, slots: Sequence[Slot], phase: str, *, has_sandbox: bool) -> list[Document]:
    """In the order in which a kubelet writes them."""
    if has_sandbox and phase == RUNNING and not pod.spec.readiness_gates and _are_all_well(slots):
        told = _ALL_WELL
    else:
        containers_ready = _containers_ready(slots, phase)
        told = [
            {"type": "PodReadyToStartContainers", "status": "True" if has_sandbox else "False"},
            {"type": "Initialized", **_initialized(slots, phase)},
            {"type": "Ready", **_ready(pod, containers_ready)},
            {"type": "ContainersReady", **containers_ready},
            {"type": "PodScheduled", "status": "True"},
        ]
    about = {"observedGeneration": pod.metadata.generation} if pod.metadata.generation else {}
    return [{**condition, **about} for condition in told]


def _are_all_well(slots: Sequence[Slot]) -> bool:
    """Whether there are but containers, and all of them are up and ready."""
    for slot in slots:
        state = slot.state
        if not (slot.role is Role.CONTAINER and isinstance(state, Running) and state.is_ready and state.is_started):
            return False
    return bool(slots)


def _initialized(slots: Sequence[Slot], phase: str) -> Document:
    if phase == SUCCEEDED:
        return {"status": "True", "reason": "PodCompleted"}
    if any(slot.role is Role.CONTAINER and slot.has_run for slot in slots):
        return {"status": "True"}
    incomplete = [slot.container.name for slot in slots if _is_incomplete(slot)]
    if not incomplete:
        return {"status": "True"}
    message = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return {"status": "False", "reason": "ContainersNotInitialized", "message": message}


def _is_incomplete(slot: Slot) -> bool:
    if slot.role is Role.SIDECAR:
        return not (isinstance(slot.state, Running) and slot.state.is_started)
    return slot.role is Role.INIT and not (isinstance(slot.state, Exited) and slot.state.code == 0)


def _containers_ready(slots: Sequence[Slot], phase: str) -> Document:
    if phase in (SUCCEEDED, FAILED):
        return {"status": "False", "reason": "PodCompleted" if phase == SUCCEEDED else "PodFailed"}
    unready = [
        slot.container.name
        for slot in slots
        if slot.role in (Role.SIDECAR, Role.CONTAINER)
        and not (isinstance(slot.state, Running) and slot.state.is_ready and slot.state.is_started)
    ]
    if not unready:
        return {"status": "True"}
    message = f"containers with unready status: [{' '.join(unready)}]"
    return {"status": "False", "reason": "ContainersNotReady", "message": message}


def _ready(pod: KubeletPod, containers_ready: Document) -> Document:
    gates = pod.spec.readiness_gates
    if containers_ready["status"] != "True" or not gates:
        return containers_ready
    told = {condition.type: condition.status for condition in pod.status.conditions}
    messages = []
    for gate in gates:
        status = told.get(gate.condition_type)
        if status is None:
            messages.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif status != "True":
            messages.append(f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {status}')
    if not messages:
        return containers_ready
    return {"status": "False", "reason": "ReadinessGatesNotReady", "message": ", ".join(messages)}
