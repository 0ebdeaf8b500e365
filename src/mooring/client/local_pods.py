"""What is special about pods: binding, and the time they are given to end.

Comes in   a pod as it is stored
Goes out   the pod with its node; how long it may take to end; or a `ConflictError` in the words of kube-apiserver v1.36

 1. A pod gets a node once. It keeps it until it is gone.
 2. Binding tells in the status too: PodScheduled becomes true, and the nomination is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, cast

import msgspec

from mooring.api.decode import convert_as
from mooring.api.errors import ObjectError
from mooring.api.kinds import POD
from mooring.api.views.pod import PodStatus
from mooring.client.errors import ConflictError
from mooring.client.interface import Deletion
from mooring.client.local_form import PlainObject, decoded, encoded, part_of
from mooring.client.local_refusals import conflict, other_uid

STATUSES_REMEMBERED_MAX = 64

_FINISHED = ("Succeeded", "Failed")
_USUAL_START = b'{"kind":"Pod","apiVersion":"v1","metadata":{'
_SPEC = b',"spec":{'
_STATUS = b',"status":'
_LABELS = b'"labels":{'
_CLOSING = ord("}")
_encode = msgspec.json.Encoder().encode


class BoundForm(NamedTuple):
    """A stored pod with its node; `status` is what the pod says of itself then, None if it was taken apart."""

    value: bytes
    status: PodStatus | None


def bound_form(value: bytes, key: str, *, uid: str, node_name: str, now: str, is_known_free: bool = False) -> BoundForm:
    """A stored pod on that node, as it is stored. Raises `ConflictError` if it must not go there.

    Thousands of pods are bound in a second, and of their 4 KB two small parts change. Reading JSON costs as much for
    what is skipped as for what is kept, so the two places are found in the bytes. A pod that looks unusual there
    (terminating, gated, bound, written in another order) is taken apart instead. Of one that is known to be free only
    the places are looked up.
    """
    places = _places(value, uid, is_known_free)
    told = _bound_status(value[places[1] + len(_STATUS) : -1], now) if places is not None else None
    if places is None or told is None:
        whole = bound(decoded(value), key, uid=uid, node_name=node_name, now=now)
        return BoundForm(encoded(whole), None)
    spec_end, status_end = places[0] + len(_SPEC), places[1] + len(_STATUS)
    parts = (
        value[:spec_end],
        b'"nodeName":',
        _encode(node_name),
        b",",
        value[spec_end:status_end],
        told[0],
        b"}",
    )
    return BoundForm(b"".join(parts), told[1])


def with_labels(value: bytes, labels: Mapping[str, str]) -> bytes | None:
    """A stored pod with these labels as well, likewise; None if it has to be taken apart."""
    start = value.find(_LABELS, 0, value.find(_SPEC)) + len(_LABELS)
    end = value.find(b"}", start)  # no label holds one
    is_usual = start > len(_LABELS) and end > start and value.startswith(_USUAL_START)
    if not is_usual or any(value.find(b"%b:" % _encode(key), start, end) >= 0 for key in labels):
        return None
    return b"".join((value[:end], b",", _encode(labels)[1:-1], value[end:]))


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


@lru_cache(maxsize=STATUSES_REMEMBERED_MAX)
def _bound_status(status: bytes, now: str) -> tuple[bytes, PodStatus] | None:
    """What a status becomes, as bytes and as it is read; None if this is not one status and nothing else.

    Pods that were just created say nothing of themselves, and all of a second's bindings the same.
    """
    try:
        told = decoded(status)
    except msgspec.DecodeError:
        return None
    told.pop("nominatedNodeName", None)
    _set_scheduled(told, now)
    try:
        return _encode(told), convert_as(PodStatus, told)
    except ObjectError:
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
