"""What is told of a pod: its status as a kubelet writes it, and the patch that brings it there.

Comes in   a pod, its slots, its addresses and times
Goes out   a status as JSON; a strategic merge patch with what differs from the status that was written last

 1. A condition keeps the time at which its status changed.
 2. Of the conditions only the kubelet's own are told: the others are merged, and stay.
 3. A field that is told no more is taken away (null); lists but the conditions are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from mooring.api.document import Document
from mooring.api.views.pod import NO_RESOURCES, ResourceRequirements
from mooring.kit.clock import format_rfc3339
from mooring.kubelet.container_record import Slot
from mooring.kubelet.pod_actions import should_restart
from mooring.kubelet.runtime import ContainerState, Exited, Role, Running, Waiting
from mooring.kubelet.views import KubeletContainer, KubeletPod, KubeletPodSpec

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
OVER = (SUCCEEDED, FAILED)
SCHEME = "mooring://"
"""In front of the ids of containers, where other runtimes write `containerd://`."""
OWN_TYPES = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")

_ALL_WELL: list[Document] = [{"type": type, "status": "True"} for type in OWN_TYPES]
"""Of a pod that runs and is ready: nearly every one that is told of."""
_LIST_OF_ROLE = {
    Role.INIT: "initContainerStatuses",
    Role.SIDECAR: "initContainerStatuses",
    Role.CONTAINER: "containerStatuses",
    Role.EPHEMERAL: "ephemeralContainerStatuses",
}

_TAKEN_AWAY: Document = {"reason": None, "message": None}
"""Conditions are merged field by field: a reason that is told no more must be taken away."""


def phase_of(spec: KubeletPodSpec, slots: Sequence[Slot], *, is_ending: bool) -> str:
    """`is_ending`: no container will be started any more, whatever the restart policy says."""
    if slots and all(slot.role is Role.CONTAINER and isinstance(slot.state, Running) for slot in slots):
        return RUNNING  # as nearly all are that are asked for
    containers = [slot for slot in slots if slot.role is Role.CONTAINER]
    if any(_has_failed_for_good(spec, slot) for slot in slots if slot.role is Role.INIT):
        return FAILED
    is_initialized = any(slot.has_run for slot in containers)
    if any(_is_pending(slot, is_initialized) for slot in slots) or not all(slot.has_run for slot in containers):
        return PENDING
    if any(slot.is_running for slot in slots if slot.role is not Role.EPHEMERAL):
        return RUNNING
    ends = [_end_of(slot) for slot in containers]
    if not is_ending and any(should_restart(slot.container, spec, end) for slot, end in zip(containers, ends)):
        return RUNNING
    return SUCCEEDED if not any(ends) else FAILED


def _is_pending(slot: Slot, is_initialized: bool) -> bool:
    if slot.role is Role.INIT:
        return not isinstance(slot.state, Exited) and slot.last is None
    if slot.role is Role.SIDECAR and not is_initialized:
        return not (isinstance(slot.state, Running) and slot.state.is_started) and slot.last is None
    return False


def _has_failed_for_good(spec: KubeletPodSpec, slot: Slot) -> bool:
    state = slot.state
    return isinstance(state, Exited) and state.code != 0 and not should_restart(slot.container, spec, state.code)


def _end_of(slot: Slot) -> int:
    """The exit code of the run that ended last."""
    ended = slot.state if isinstance(slot.state, Exited) else slot.last
    return ended.code if ended is not None else 0


def container_status(slot: Slot, pod_uid: str, *, is_initializing: bool, resources: ResourceRequirements) -> Document:
    """The status of one container; `is_initializing`: the pod has init containers."""
    if isinstance(slot.state, Running) and slot.last is None and slot.role is Role.CONTAINER:
        return _first_run(slot, slot.state, pod_uid, resources)
    container, last = slot.container, slot.last
    state: ContainerState | None = slot.state
    attempt = slot.told_attempt
    last_attempt = max(0, attempt - 1)
    if slot.hold is not None and isinstance(state, Exited):
        last = state
        state = slot.hold
    if state is None or isinstance(state, Waiting):
        last_attempt = attempt
    status: Document = {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": False,
        "restartCount": attempt,
        "lastState": {"terminated": _ended(last, pod_uid, container.name, last_attempt)} if last else {},
        "state": {},
    }
    match state:
        case Running(started_s, is_ready, is_started):
            status["state"] = {"running": {"startedAt": format_rfc3339(started_s)}}
            status["ready"] = is_ready and is_started and slot.role in (Role.CONTAINER, Role.SIDECAR)
            status["started"] = is_started
        case Exited():
            status["state"] = {"terminated": _ended(state, pod_uid, container.name, attempt)}
            status["ready"] = slot.role is Role.INIT and state.code == 0
            status["started"] = False
        case Waiting(reason, message):
            status["state"] = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
            status["started"] = False
        case None:
            status["state"] = {"waiting": {"reason": "PodInitializing" if is_initializing else "ContainerCreating"}}
            status["started"] = False
    if slot.role is Role.EPHEMERAL:
        del status["started"]
    if slot.has_run:
        status["imageID"] = image_id(slot.image)
        status["containerID"] = container_id(pod_uid, container.name, attempt)
        _tell_resources(status, resources)
    if container.volume_mounts:
        status["volumeMounts"] = _mounts(container)
    return status


def container_id(pod_uid: str, name: str, attempt: int) -> str:
    """Always the same for the same run."""
    return SCHEME + blake2b(f"{pod_uid}/{name}/{attempt}".encode(), digest_size=32).hexdigest()


@lru_cache(maxsize=1024)
def image_id(image: str) -> str:
    """A digest that nobody computed from an image, but the same for the same name."""
    name = image.partition("@")[0]
    colon = name.rfind(":")
    repository = name[:colon] if colon > name.rfind("/") else name
    return f"{repository}@sha256:{blake2b(image.encode(), digest_size=32).hexdigest()}"


def _first_run(slot: Slot, state: Running, pod_uid: str, resources: ResourceRequirements) -> Document:
    """Of a container that runs and has not ended before, as nearly all of which is told: the same, without detours."""
    container, attempt = slot.container, max(0, slot.attempt)
    status: Document = {
        "name": container.name,
        "image": container.image,
        "imageID": image_id(slot.image),
        "ready": state.is_ready and state.is_started,
        "restartCount": attempt,
        "lastState": {},
        "state": {"running": {"startedAt": format_rfc3339(state.started_s)}},
        "started": state.is_started,
        "containerID": container_id(pod_uid, container.name, attempt),
    }
    _tell_resources(status, resources)
    if container.volume_mounts:
        status["volumeMounts"] = _mounts(container)
    return status


def _ended(state: Exited, pod_uid: str, name: str, attempt: int) -> Document:
    told: Document = {
        "exitCode": state.code,
        "reason": state.reason,
    }
    if state.finished_s:
        # One that could not be found has neither times nor an id.
        told["startedAt"] = format_rfc3339(state.started_s)
        told["finishedAt"] = format_rfc3339(state.finished_s)
        told["containerID"] = container_id(pod_uid, name, attempt)
    if state.message:
        told["message"] = state.message
    if state.signal:
        told["signal"] = state.signal
    return told


def _tell_resources(status: Document, resources: ResourceRequirements) -> None:
    told: Document = {}
    if resources.limits:
        told["limits"] = dict(resources.limits)
    if resources.requests:
        told["requests"] = dict(resources.requests)
        status["allocatedResources"] = dict(resources.requests)
    status["resources"] = told


def _mounts(container: KubeletContainer) -> list[Document]:
    mounts = []
    for mount in container.volume_mounts:
        told: Document = {"name": mount.name, "mountPath": mount.mount_path}
        if mount.read_only:
            told |= {"readOnly": True, "recursiveReadOnly": "Disabled"}
        mounts.append(told)
    return mounts


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


class PodFacts(NamedTuple):
    """What a worker knows of its pod beside the containers."""

    phase: str
    host_ip: str
    pod_ip: str
    """Empty until it has one."""
    start_time: str
    has_sandbox: bool
    reason: str = ""
    message: str = ""
    resize: Sequence[Document] = ()
    """The conditions of a resize that waits, or that the runtime could not carry out."""


def status_of(
    pod: KubeletPod, slots: Sequence[Slot], facts: PodFacts, allocated: Mapping[str, ResourceRequirements]
) -> Document:
    """The status of a pod that was admitted, without the times of its conditions."""
    status: Document = {
        "phase": facts.phase,
        "hostIP": facts.host_ip,
        "hostIPs": [{"ip": facts.host_ip}],
        "startTime": facts.start_time,
    }
    _tell_why(status, pod, facts.reason, facts.message)
    if facts.pod_ip:
        status["podIP"] = facts.pod_ip
        status["podIPs"] = [{"ip": facts.pod_ip}]
    conditions = conditions_of(pod, slots, facts.phase, has_sandbox=facts.has_sandbox)
    status["conditions"] = [*conditions, *facts.resize] if facts.resize else conditions
    is_initializing = bool(pod.spec.init_containers)
    uid = pod.metadata.uid
    for slot in slots:
        resources = allocated.get(slot.container.name, NO_RESOURCES)
        told = container_status(slot, uid, is_initializing=is_initializing, resources=resources)
        status.setdefault(_LIST_OF_ROLE[slot.role], []).append(told)
    return status


def rejected_status(pod: KubeletPod, reason: str, message: str, start_time: str) -> Document:
    """The status of a pod that was turned away."""
    status: Document = {"phase": "Failed", "startTime": start_time}
    _tell_why(status, pod, reason, f"Pod was rejected: {message}")
    return status


def stamp_conditions(status: Document, before: Mapping[str, tuple[str, str]], now: str) -> dict[str, tuple[str, str]]:
    """Give each condition its time: `now` if its status is another than before. Returns status and time by type."""
    stamped: dict[str, tuple[str, str]] = {}
    for condition in status.get("conditions", ()):
        had = before.get(condition["type"])
        since = had[1] if had is not None and had[0] == condition["status"] else now
        condition["lastTransitionTime"] = since
        stamped[condition["type"]] = (condition["status"], since)
    return stamped


def status_patch(status: Document, written: Document) -> Document:
    """What has to be sent so that `written` becomes `status`; empty if nothing has."""
    if not written:
        return _first_patch(status)
    patch: Document = {}
    for field, value in status.items():
        if field == "conditions":
            known = {condition["type"]: condition for condition in written.get("conditions", ())}
            changed = [{**_TAKEN_AWAY, **each} for each in value if known.get(each["type"]) != each]
            told = {each["type"] for each in value}
            changed += [{"type": type, "$patch": "delete"} for type in known if type not in told]
            if changed:
                patch["conditions"] = changed
        elif written.get(field) != value:
            patch[field] = value
    for field in written:
        if field not in status:
            patch[field] = None
    return patch


def _first_patch(status: Document) -> Document:
    if not status.get("conditions"):
        return status
    return {**status, "conditions": [{**_TAKEN_AWAY, **each} for each in status["conditions"]]}


def revision_number(revision: str) -> int:
    """For comparing which is newer; 0 for a text that is no number, which is never newer."""
    return int(revision) if revision.isascii() and revision.isdecimal() else 0


def _tell_why(status: Document, pod: KubeletPod, reason: str, message: str) -> None:
    if pod.metadata.generation:
        status["observedGeneration"] = pod.metadata.generation
    if reason:
        status["reason"] = reason
    if message:
        status["message"] = message
