"""What is told of a container.

Comes in   a slot
Goes out   a ContainerStatus, as JSON

 1. The name and the image stand there from the first moment; an id only of a container that was made.
 2. A container that waits to be started again is waiting, and its end is its last state.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from mooring.api.document import Document
from mooring.api.views.pod import ResourceRequirements
from mooring.kit.clock import format_rfc3339
from mooring.kubelet.container_record import Slot
from mooring.kubelet.runtime import ContainerState, Exited, Role, Running, Waiting
from mooring.kubelet.views import KubeletContainer

SCHEME = "mooring://"
"""In front of the ids of containers, where other runtimes write `containerd://`."""


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
