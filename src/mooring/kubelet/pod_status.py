"""What is told of a pod: its status as a kubelet writes it, and the patch that brings it there.

Comes in   a pod, its slots, its addresses and times
Goes out   a status as JSON; a strategic merge patch with what differs from the status that was written last

 1. A condition keeps the time at which its status changed.
 2. Of the conditions only the kubelet's own are told: the others are merged, and stay.
 3. A field that is told no more is taken away (null); lists but the conditions are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mooring.api.document import Document
from mooring.api.views.pod import NO_RESOURCES, ResourceRequirements
from mooring.kubelet.conditions import conditions_of
from mooring.kubelet.container_record import Slot
from mooring.kubelet.container_status import container_status
from mooring.kubelet.runtime import Role
from mooring.kubelet.views import KubeletPod

_LIST_OF_ROLE = {
    Role.INIT: "initContainerStatuses",
    Role.SIDECAR: "initContainerStatuses",
    Role.CONTAINER: "containerStatuses",
    Role.EPHEMERAL: "ephemeralContainerStatuses",
}

_TAKEN_AWAY: Document = {"reason": None, "message": None}
"""Conditions are merged field by field: a reason that is told no more must be taken away."""


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
