"""What is special about pods: binding, and the time they are given to end.

Comes in   a pod as it is stored
Goes out   the pod with its node; how long it may take to end; or a `ConflictError` in the words of kube-apiserver v1.36

 1. A pod gets a node once. It keeps it until it is gone.
 2. Binding tells in the status too: PodScheduled becomes true, and the nomination is over.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import msgspec

from mooring.api.kinds import POD
from mooring.client.errors import ConflictError
from mooring.client.local_form import PlainObject, decoded, encoded, part_of
from mooring.client.local_refusals import conflict, other_uid
from mooring.client.promise import Deletion

_FINISHED = ("Succeeded", "Failed")
_USUAL_START = b'{"kind":"Pod","apiVersion":"v1","metadata":{'
_SPEC = b',"spec":{'
_STATUS = b',"status":'
_CLOSING = ord("}")
_encode = msgspec.json.Encoder().encode


class BoundForm(NamedTuple):
    """A stored pod with its node; `status` is what the pod says of itself then, None if it was taken apart."""

    value: bytes
    status: PlainObject | None


def bound_form(value: bytes, key: str, *, uid: str, node_name: str, now: str, is_known_free: bool = False) -> BoundForm:
    """A stored pod on that node, as it is stored. Raises `ConflictError` if it must not go there.

    Thousands of pods are bound in a second, and of their 4 KB two small parts change. Reading JSON costs as much for
    what is skipped as for what is kept, so the two places are found in the bytes. A pod that looks unusual there
    (terminating, gated, bound, written in another order) is taken apart instead. Of one that is known to be free only
    the places are looked up.
    """
    places = _places(value, uid, is_known_free)
    status = _status_behind(value, places[1]) if places is not None else None
    if places is None or status is None:
        whole = bound(decoded(value), key, uid=uid, node_name=node_name, now=now)
        return BoundForm(encoded(whole), None)
    spec_at, status_at = places
    status.pop("nominatedNodeName", None)
    _set_scheduled(status, now)
    parts = (
        value[: spec_at + len(_SPEC)],
        b'"nodeName":',
        _encode(node_name),
        b",",
        value[spec_at + len(_SPEC) : status_at + len(_STATUS)],
        _encode(status),
        b"}",
    )
    form = b"".join(parts)
    return BoundForm(form, status)


def _places(value: bytes, uid: str, is_known_free: bool) -> tuple[int, int] | None:
    """Where spec and status of a usual pod begin; None: look closer.

    A stored object begins with its metadata, which holds no field called spec; a text inside of a JSON string has its
    quotes escaped. So the first `,"spec":{` is the pod's own, and what is searched for is a field wherever it is found.
    """
    spec_at = value.find(_SPEC)
    status_at = value.rfind(_STATUS)
    if spec_at < 0 or status_at < spec_at or not value.startswith(_USUAL_START):
        return None
    is_empty = value[spec_at + len(_SPEC)] == _CLOSING
    if is_known_free:
        return (spec_at, status_at) if not is_empty else None
    is_itself = value.find(b'"deletionTimestamp"', 0, spec_at) < 0
    is_itself = is_itself and (not uid or value.find(b'"uid":"%b"' % uid.encode(), 0, spec_at) > 0)
    is_free = value.find(b'"nodeName"', spec_at) < 0 and value.find(b'"schedulingGates"', spec_at) < 0
    return (spec_at, status_at) if is_itself and is_free and not is_empty else None


def _status_behind(value: bytes, status_at: int) -> PlainObject | None:
    """The status, if it is the last part of the object and nothing else."""
    try:
        return decoded(value[status_at + len(_STATUS) : -1])
    except msgspec.DecodeError:
        return None


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
