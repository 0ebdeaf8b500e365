"""RuntimeClass: a pod gets the overhead, node selector and tolerations of its runtime class.

1. Fields of the pod must not contradict the class.
2. A toleration that another one covers is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.kinds import POD, RUNTIME_CLASS, Kind
from mooring.api.quantity import quantity_nano
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, own_part, refused
from mooring.apiserver.call import Operation
from mooring.apiserver.errors import plain_error

_OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_OVERHEAD_WITHOUT_CLASS = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(Admission):
    """Merges the runtime class into the pod."""

    name = "RuntimeClass"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        return kind is POD and not subresource and operation is Operation.CREATE

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        found = await _class_of(attempt, attempt.obj, lookup)
        if found is None:
            return
        spec = own_part(attempt.obj, "spec")
        overhead = _overhead_of(found)
        if overhead is not None:
            if spec.get("overhead") and not _is_same_amount(spec["overhead"], overhead):
                raise refused(attempt, _OTHER_OVERHEAD)
            if overhead:
                spec["overhead"] = dict(overhead)
            else:
                spec.pop("overhead", None)
        scheduling = found.get("scheduling")
        if scheduling is not None:
            _merge_scheduling(attempt, spec, scheduling)

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        found = await _class_of(attempt, attempt.obj, lookup)
        given = attempt.obj["spec"].get("overhead")
        overhead = None if found is None else _overhead_of(found)
        if overhead is not None:
            if not _is_same_amount(given or {}, overhead):
                raise refused(attempt, _OTHER_OVERHEAD)
        elif given is not None:
            raise refused(attempt, _OVERHEAD_WITHOUT_CLASS)


async def _class_of(attempt: Attempt, pod: Document, lookup: Lookup) -> Document | None:
    name = pod["spec"].get("runtimeClassName")
    if name is None:
        return None
    if not name:
        raise plain_error("resource name may not be empty")
    found = await lookup.get(RUNTIME_CLASS, "", name)
    if found is None:
        raise refused(attempt, f"pod rejected: RuntimeClass {quoted(name)} not found")
    return found


def _overhead_of(found: Document) -> Document | None:
    overhead = found.get("overhead")
    return None if overhead is None else overhead.get("podFixed") or {}


def _is_same_amount(one: Document, other: Document) -> bool:
    return one.keys() == other.keys() and all(quantity_nano(one[key]) == quantity_nano(other[key]) for key in one)


def _merge_scheduling(attempt: Attempt, spec: Document, scheduling: Document) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in sorted((scheduling.get("nodeSelector") or {}).items()):
        if selector.get(key, value) != value:
            raise refused(
                attempt,
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}",
            )
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    tolerations = merged_tolerations(spec.get("tolerations") or [], scheduling.get("tolerations") or [])
    if tolerations:
        spec["tolerations"] = tolerations


def merged_tolerations(first: Sequence[Document], second: Sequence[Document]) -> list[Document]:
    """The tolerations of both, without those that another one covers. The first of equal ones is kept."""
    everything = [*first, *second]
    merged: list[Document] = []
    for index, toleration in enumerate(everything):
        later = everything[index + 1 :]
        if any(_covers(wider, toleration) for wider in merged):
            continue
        if any(wider != toleration and _covers(wider, toleration) for wider in later):
            continue
        merged.append(toleration)
    return merged


def _covers(wide: Document, narrow: Document) -> bool:
    if wide == narrow:
        return True
    wide_key, wide_operator = wide.get("key", ""), wide.get("operator", "")
    if narrow.get("key", "") != wide_key and (wide_key or wide_operator != "Exists"):
        return False
    wide_effect = wide.get("effect", "")
    if wide_effect and narrow.get("effect", "") != wide_effect:
        return False
    if wide_effect == "NoExecute" and not _lasts(wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")):
        return False
    if wide_operator in ("", "Equal"):
        # As in kube-apiserver, an absent operator means Equal for the wider toleration only.
        return narrow.get("operator") == "Equal" and narrow.get("value", "") == wide.get("value", "")
    return bool(wide_operator == "Exists")


def _lasts(wide_s: int | None, narrow_s: int | None) -> bool:
    return wide_s is None or (narrow_s is not None and narrow_s <= wide_s)
