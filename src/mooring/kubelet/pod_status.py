"""The status of a pod: phase, conditions and container statuses, and the patch that writes it.

Input: a pod, its container records, its addresses and times. Output: a PodStatus as JSON; a strategic merge patch with
the difference to the status that was written last.

 1. A pod is Pending until each container was started once, then Running, also while all containers wait for a restart.
    It is Succeeded or Failed only when nothing runs any more; the exit codes of sidecars do not count.
 2. Ready is ContainersReady plus every readiness gate. A condition keeps its lastTransitionTime while its status is the
    same. Conditions of other components are not written.
 3. A container that waits for its restart is waiting; its end is its last state. It has a container id once it was
    created.
 4. The patch removes fields that are not set any more (null). It replaces all lists but the conditions.
 5. Running pods whose containers are all ready take shortcuts: nearly every status that is written is one of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from mooring.api.document import Document
from mooring.api.views.pod import NO_RESOURCES, ResourceRequirements
from mooring.api.well_known import FAILED, PENDING, RUNNING, SUCCEEDED, TERMINAL_PHASES
from mooring.kit.clock import format_rfc3339
from mooring.kubelet.pod_actions import ContainerRecord, should_restart
from mooring.kubelet.runtime import ContainerState, Exited, Role, Running, Waiting
from mooring.kubelet.views import KubeletContainer, KubeletPod, KubeletPodSpec

SCHEME = "mooring://"
"""The prefix of container ids, as `containerd://` in Kubernetes."""
OWN_TYPES = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")

_ALL_READY: list[Document] = [{"type": type, "status": "True"} for type in OWN_TYPES]
"""The conditions of a running pod whose containers are all ready."""
_LIST_OF_ROLE = {
    Role.INIT: "initContainerStatuses",
    Role.SIDECAR: "initContainerStatuses",
    Role.CONTAINER: "containerStatuses",
    Role.EPHEMERAL: "ephemeralContainerStatuses",
}

_TAKEN_AWAY: Document = {"reason": None, "message": None}
"""Conditions are merged field by field: a reason that is not set any more must be removed."""


def phase_of(spec: KubeletPodSpec, records: Sequence[ContainerRecord], *, is_ending: bool) -> str:
    """`is_ending`: no container will be started any more, whatever the restart policy."""
    if records and all(record.role is Role.CONTAINER and record.is_running for record in records):
        return RUNNING  # the common case
    containers = [record for record in records if record.role is Role.CONTAINER]
    if any(_has_failed_for_good(spec, record) for record in records if record.role is Role.INIT):
        return FAILED
    is_initialized = any(record.has_run for record in containers)
    if any(_is_pending(record, is_initialized) for record in records) or not all(
        record.has_run for record in containers
    ):
        return PENDING
    if any(record.is_running for record in records if record.role is not Role.EPHEMERAL):
        return RUNNING
    ends = [_end_of(record) for record in containers]
    if not is_ending and any(should_restart(record.container, spec, end) for record, end in zip(containers, ends)):
        return RUNNING
    return SUCCEEDED if not any(ends) else FAILED


def _is_pending(record: ContainerRecord, is_initialized: bool) -> bool:
    if record.role is Role.INIT:
        return not isinstance(record.state, Exited) and record.last is None
    if record.role is Role.SIDECAR and not is_initialized:
        return not record.is_started and record.last is None
    return False


def _has_failed_for_good(spec: KubeletPodSpec, record: ContainerRecord) -> bool:
    state = record.state
    return isinstance(state, Exited) and state.code != 0 and not should_restart(record.container, spec, state.code)


def _end_of(record: ContainerRecord) -> int:
    """The exit code of the run that ended last."""
    ended = record.state if isinstance(record.state, Exited) else record.last
    return ended.code if ended is not None else 0


def container_status(
    record: ContainerRecord, pod_uid: str, *, is_initializing: bool, resources: ResourceRequirements
) -> Document:
    """The ContainerStatus of one container; `is_initializing`: the pod has init containers."""
    if isinstance(record.state, Running) and record.last is None and record.role is Role.CONTAINER:
        return _running_status(record, record.state, pod_uid, resources)
    container, last = record.container, record.last
    state: ContainerState | None = record.state
    attempt = record.reported_attempt
    last_attempt = max(0, attempt - 1)
    if record.waiting is not None and isinstance(state, Exited):
        last = state
        state = record.waiting
    if state is None or isinstance(state, Waiting):
        last_attempt = attempt
    status: Document = {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": False,
        "restartCount": attempt,
        "lastState": {"terminated": _terminated_state(last, pod_uid, container.name, last_attempt)} if last else {},
        "state": {},
    }
    match state:
        case Running(started_s, is_ready, is_started):
            status["state"] = {"running": {"startedAt": format_rfc3339(started_s)}}
            status["ready"] = is_ready and is_started and record.role in (Role.CONTAINER, Role.SIDECAR)
            status["started"] = is_started
        case Exited():
            status["state"] = {"terminated": _terminated_state(state, pod_uid, container.name, attempt)}
            status["ready"] = record.role is Role.INIT and state.code == 0
            status["started"] = False
        case Waiting(reason, message):
            status["state"] = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
            status["started"] = False
        case None:
            status["state"] = {"waiting": {"reason": "PodInitializing" if is_initializing else "ContainerCreating"}}
            status["started"] = False
    if record.role is Role.EPHEMERAL:
        del status["started"]
    if record.has_run:
        status["imageID"] = image_id(record.image)
        status["containerID"] = container_id(pod_uid, container.name, attempt)
        _set_resources(status, resources)
    if container.volume_mounts:
        status["volumeMounts"] = _mounts(container)
    return status


def container_id(pod_uid: str, name: str, attempt: int) -> str:
    """The same for the same run of a container, always."""
    return SCHEME + blake2b(f"{pod_uid}/{name}/{attempt}".encode(), digest_size=32).hexdigest()


@lru_cache(maxsize=1024)
def image_id(image: str) -> str:
    """A digest derived from the image name, because there is no image."""
    name = image.partition("@")[0]
    colon = name.rfind(":")
    repository = name[:colon] if colon > name.rfind("/") else name
    return f"{repository}@sha256:{blake2b(image.encode(), digest_size=32).hexdigest()}"


def _running_status(record: ContainerRecord, state: Running, pod_uid: str, resources: ResourceRequirements) -> Document:
    """The status of a container in its first run: the same as below, with fewer branches."""
    container, attempt = record.container, max(0, record.attempt)
    status: Document = {
        "name": container.name,
        "image": container.image,
        "imageID": image_id(record.image),
        "ready": state.is_ready and state.is_started,
        "restartCount": attempt,
        "lastState": {},
        "state": {"running": {"startedAt": format_rfc3339(state.started_s)}},
        "started": state.is_started,
        "containerID": container_id(pod_uid, container.name, attempt),
    }
    _set_resources(status, resources)
    if container.volume_mounts:
        status["volumeMounts"] = _mounts(container)
    return status


def _terminated_state(state: Exited, pod_uid: str, name: str, attempt: int) -> Document:
    reported: Document = {
        "exitCode": state.code,
        "reason": state.reason,
    }
    if state.finished_s:
        # A container that could not be found has neither times nor an id.
        reported["startedAt"] = format_rfc3339(state.started_s)
        reported["finishedAt"] = format_rfc3339(state.finished_s)
        reported["containerID"] = container_id(pod_uid, name, attempt)
    if state.message:
        reported["message"] = state.message
    if state.signal:
        reported["signal"] = state.signal
    return reported


def _set_resources(status: Document, resources: ResourceRequirements) -> None:
    reported: Document = {}
    if resources.limits:
        reported["limits"] = dict(resources.limits)
    if resources.requests:
        reported["requests"] = dict(resources.requests)
        status["allocatedResources"] = dict(resources.requests)
    status["resources"] = reported


def _mounts(container: KubeletContainer) -> list[Document]:
    mounts = []
    for mount in container.volume_mounts:
        reported: Document = {"name": mount.name, "mountPath": mount.mount_path}
        if mount.read_only:
            reported |= {"readOnly": True, "recursiveReadOnly": "Disabled"}
        mounts.append(reported)
    return mounts


def conditions_of(
    pod: KubeletPod, records: Sequence[ContainerRecord], phase: str, *, has_sandbox: bool
) -> list[Document]:
    """In the order in which a kubelet writes them."""
    if has_sandbox and phase == RUNNING and not pod.spec.readiness_gates and _are_all_ready(records):
        reported = _ALL_READY
    else:
        containers_ready = _containers_ready(records, phase)
        reported = [
            {"type": "PodReadyToStartContainers", "status": "True" if has_sandbox else "False"},
            {"type": "Initialized", **_initialized(records, phase)},
            {"type": "Ready", **_ready(pod, containers_ready)},
            {"type": "ContainersReady", **containers_ready},
            {"type": "PodScheduled", "status": "True"},
        ]
    about = {"observedGeneration": pod.metadata.generation} if pod.metadata.generation else {}
    return [{**condition, **about} for condition in reported]


def _are_all_ready(records: Sequence[ContainerRecord]) -> bool:
    """Whether the pod has regular containers only, and all of them are started and ready."""
    return bool(records) and all(record.role is Role.CONTAINER and record.is_ready for record in records)


def _initialized(records: Sequence[ContainerRecord], phase: str) -> Document:
    if phase == SUCCEEDED:
        return {"status": "True", "reason": "PodCompleted"}
    if any(record.role is Role.CONTAINER and record.has_run for record in records):
        return {"status": "True"}
    incomplete = [record.container.name for record in records if _is_incomplete(record)]
    if not incomplete:
        return {"status": "True"}
    message = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return {"status": "False", "reason": "ContainersNotInitialized", "message": message}


def _is_incomplete(record: ContainerRecord) -> bool:
    if record.role is Role.SIDECAR:
        return not record.is_started
    return record.role is Role.INIT and not (isinstance(record.state, Exited) and record.state.code == 0)


def _containers_ready(records: Sequence[ContainerRecord], phase: str) -> Document:
    if phase in TERMINAL_PHASES:
        return {"status": "False", "reason": "PodCompleted" if phase == SUCCEEDED else "PodFailed"}
    unready = [
        record.container.name
        for record in records
        if record.role in (Role.SIDECAR, Role.CONTAINER) and not record.is_ready
    ]
    if not unready:
        return {"status": "True"}
    message = f"containers with unready status: [{' '.join(unready)}]"
    return {"status": "False", "reason": "ContainersNotReady", "message": message}


def _ready(pod: KubeletPod, containers_ready: Document) -> Document:
    gates = pod.spec.readiness_gates
    if containers_ready["status"] != "True" or not gates:
        return containers_ready
    reported = {condition.type: condition.status for condition in pod.status.conditions}
    messages = []
    for gate in gates:
        status = reported.get(gate.condition_type)
        if status is None:
            messages.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif status != "True":
            messages.append(f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {status}')
    if not messages:
        return containers_ready
    return {"status": "False", "reason": "ReadinessGatesNotReady", "message": ", ".join(messages)}


class PodFacts(NamedTuple):
    """The state of a pod besides its containers."""

    phase: str
    host_ip: str
    pod_ip: str
    """Empty until the pod has one."""
    start_time: str
    has_sandbox: bool
    reason: str = ""
    message: str = ""
    resize: Sequence[Document] = ()
    """The conditions of a resize that is pending or failed."""


def status_of(
    pod: KubeletPod, records: Sequence[ContainerRecord], facts: PodFacts, allocated: Mapping[str, ResourceRequirements]
) -> Document:
    """The status of an admitted pod, without the times of its conditions."""
    status: Document = {
        "phase": facts.phase,
        "hostIP": facts.host_ip,
        "hostIPs": [{"ip": facts.host_ip}],
        "startTime": facts.start_time,
    }
    _set_reason(status, pod, facts.reason, facts.message)
    if facts.pod_ip:
        status["podIP"] = facts.pod_ip
        status["podIPs"] = [{"ip": facts.pod_ip}]
    conditions = conditions_of(pod, records, facts.phase, has_sandbox=facts.has_sandbox)
    status["conditions"] = [*conditions, *facts.resize] if facts.resize else conditions
    is_initializing = bool(pod.spec.init_containers)
    uid = pod.metadata.uid
    for record in records:
        resources = allocated.get(record.container.name, NO_RESOURCES)
        reported = container_status(record, uid, is_initializing=is_initializing, resources=resources)
        status.setdefault(_LIST_OF_ROLE[record.role], []).append(reported)
    return status


def rejected_status(pod: KubeletPod, reason: str, message: str, start_time: str) -> Document:
    """The status of a pod that was not admitted."""
    status: Document = {"phase": FAILED, "startTime": start_time}
    _set_reason(status, pod, reason, f"Pod was rejected: {message}")
    return status


def stamp_conditions(status: Document, before: Mapping[str, tuple[str, str]], now: str) -> dict[str, tuple[str, str]]:
    """Set lastTransitionTime: `now` if the status of the condition changed. Returns status and time by type."""
    stamped: dict[str, tuple[str, str]] = {}
    for condition in status.get("conditions", ()):
        had = before.get(condition["type"])
        since = had[1] if had is not None and had[0] == condition["status"] else now
        condition["lastTransitionTime"] = since
        stamped[condition["type"]] = (condition["status"], since)
    return stamped


def status_patch(status: Document, written: Document) -> Document:
    """The patch that turns `written` into `status`; empty if they are equal."""
    if not written:
        return _first_patch(status)
    patch: Document = {}
    for field, value in status.items():
        if field == "conditions":
            known = {condition["type"]: condition for condition in written.get("conditions", ())}
            changed = [{**_TAKEN_AWAY, **condition} for condition in value if known.get(condition["type"]) != condition]
            reported = {condition["type"] for condition in value}
            changed += [{"type": type, "$patch": "delete"} for type in known if type not in reported]
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
    return {**status, "conditions": [{**_TAKEN_AWAY, **condition} for condition in status["conditions"]]}


def revision_number(revision: str) -> int:
    """A resource version as a number, for comparing; 0 if it is not a number."""
    return int(revision) if revision.isascii() and revision.isdecimal() else 0


def _set_reason(status: Document, pod: KubeletPod, reason: str, message: str) -> None:
    if pod.metadata.generation:
        status["observedGeneration"] = pod.metadata.generation
    if reason:
        status["reason"] = reason
    if message:
        status["message"] = message
