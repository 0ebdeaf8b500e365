"""Pods in the fake client: binding, and the grace period.

1. A pod is bound once and keeps its node.
2. Binding also sets the condition PodScheduled and clears the nominated node.
3. A second binding raises a `ConflictError` with the text of kube-apiserver v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from mooring.api.kinds import POD
from mooring.apiserver.storage.errors import conflict, other_uid
from mooring.apiserver.storage.stored_form import PlainObject
from mooring.client.errors import ConflictError
from mooring.client.interface import Deletion

_FINISHED = ("Succeeded", "Failed")


def bound(pod: PlainObject, key: str, *, uid: str, node_name: str, now: str) -> PlainObject:
    """The pod on that node. Raises `ConflictError` if it must not go there. `pod` is changed."""
    metadata = cast(PlainObject, pod["metadata"])
    spec = cast(PlainObject, pod.setdefault("spec", {}))
    name = cast(str, metadata["name"])
    if uid and metadata["uid"] != uid:
        raise other_uid(POD, key, name, uid, metadata["uid"])
    if metadata.get("deletionTimestamp"):
        raise _not_bindable(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _not_bindable(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _not_bindable(name, f"pod {name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = node_name
    status = cast(PlainObject, pod.setdefault("status", {}))
    status.pop("nominatedNodeName", None)
    _set_scheduled(status, now)
    return pod


def _not_bindable(name: str, why: str) -> ConflictError:
    return conflict(POD, name, why, subresource="binding")


def _set_scheduled(status: PlainObject, now: str) -> None:
    conditions = cast("list[PlainObject]", status.get("conditions") or [])
    status["conditions"] = conditions
    scheduled: PlainObject = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    for index, condition in enumerate(conditions):
        if condition.get("type") == "PodScheduled":
            if condition.get("status") == "True":
                scheduled["lastTransitionTime"] = condition.get("lastTransitionTime")
            conditions[index] = scheduled
            return
    conditions.append(scheduled)


def grace_of_deletion_s(pod: PlainObject, deletion: Deletion) -> int:
    """How long a pod may take to end, in seconds; none where no kubelet has it, or it has ended."""
    spec, status = part_of(pod, "spec"), part_of(pod, "status")
    if not spec.get("nodeName") or status.get("phase") in _FINISHED:
        return 0
    grace_s = deletion.grace_s if deletion.grace_s is not None else spec.get("terminationGracePeriodSeconds", 0)
    # Kubernetes takes a negative time for one second.
    return 1 if cast(int, grace_s) < 0 else cast(int, grace_s)


def part_of(plain: Mapping[str, object], field: str) -> Mapping[str, object]:
    """The spec, the status, ... of an object, to be read; empty if there is none."""
    part = plain.get(field)
    return part if isinstance(part, Mapping) else {}
