"""Priority: from the name of a priority class to the number that the scheduler compares.

Input: new and changed pods; new, changed and deleted priority classes.
Output: pods with priority, class name and preemption policy; 403 where they contradict their class.

 1. A pod without a class gets the global default, or 0 if there is none.
 2. A cluster has at most one global default. If a race created two, the lower one counts.
 3. The two system classes cannot be deleted. kube-apiserver checks this in its registry, not in admission.
"""

from __future__ import annotations

from typing import NamedTuple

from mooring.api.document import Document
from mooring.api.kinds import POD, PRIORITY_CLASS, Kind
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, own_part, refused
from mooring.apiserver.call import Operation
from mooring.apiserver.kinds.priority_class import SYSTEM_VALUES

PRIORITY_WITHOUT_CLASS = 0
POLICY_WITHOUT_CLASS = "PreemptLowerPriority"


class Priority(Admission):
    """Resolves priority classes."""

    name = "Priority"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        if subresource:
            return False
        if kind is POD:
            return operation in (Operation.CREATE, Operation.UPDATE)
        return kind is PRIORITY_CLASS and operation is not Operation.CONNECT

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        if attempt.call.kind is PRIORITY_CLASS:
            if attempt.operation is Operation.DELETE and attempt.call.name in SYSTEM_VALUES:
                raise refused(attempt, "this is a system priority class and cannot be deleted")
        elif attempt.operation is Operation.CREATE:
            assert attempt.obj is not None
            _resolve(attempt, attempt.obj, await _class_of(attempt, attempt.obj, lookup))
        else:
            assert attempt.obj is not None
            assert attempt.old is not None
            _keep(attempt.obj, attempt.old)

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        if attempt.obj is None or attempt.call.kind is not PRIORITY_CLASS or not attempt.obj.get("globalDefault"):
            return
        default = await _global_default(lookup)
        if default is None:
            return
        name = default["metadata"]["name"]
        if attempt.operation is Operation.CREATE or name != attempt.obj["metadata"]["name"]:
            raise refused(attempt, f"PriorityClass {name} is already marked as default. Only one default can exist")


class _PriorityClass(NamedTuple):
    name: str
    value: int
    policy: str | None


async def _class_of(attempt: Attempt, pod: Document, lookup: Lookup) -> _PriorityClass:
    name = pod["spec"].get("priorityClassName")
    if name:
        found = await lookup.get(PRIORITY_CLASS, "", name)
        if found is None:
            raise refused(attempt, f"no PriorityClass with name {name} was found")
    else:
        found = await _global_default(lookup)
        if found is None:
            return _PriorityClass("", PRIORITY_WITHOUT_CLASS, POLICY_WITHOUT_CLASS)
    return _PriorityClass(found["metadata"]["name"], found.get("value", 0), found.get("preemptionPolicy"))


async def _global_default(lookup: Lookup) -> Document | None:
    defaults = [found for found in await lookup.list(PRIORITY_CLASS) if found.get("globalDefault")]
    return min(defaults, key=lambda found: found.get("value", 0)) if defaults else None


def _resolve(attempt: Attempt, pod: Document, resolved: _PriorityClass) -> None:
    spec = own_part(pod, "spec")
    if resolved.name:
        spec["priorityClassName"] = resolved.name
    else:
        spec.pop("priorityClassName", None)
    given = spec.get("priority")
    if given is not None and given != resolved.value:
        raise refused(
            attempt,
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller "
            f"computed {resolved.value} from the given PriorityClass name",
        )
    spec["priority"] = resolved.value
    if resolved.policy is None:
        return
    given = spec.get("preemptionPolicy")
    if given is not None and given != resolved.policy:
        raise refused(
            attempt,
            f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission "
            f"controller computed {resolved.policy} from the given PriorityClass name",
        )
    spec["preemptionPolicy"] = resolved.policy


def _keep(pod: Document, old: Document) -> None:
    """Copy what admission added from the old pod: a PUT of the original manifest does not repeat it."""
    for field in ("priority", "preemptionPolicy"):
        value = old["spec"].get(field)
        if value is not None and pod["spec"].get(field) is None:
            own_part(pod, "spec")[field] = value
