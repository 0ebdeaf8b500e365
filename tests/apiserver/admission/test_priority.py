"""Priority: pods get the value of their priority class."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import POD, PRIORITY_CLASS
from mooring.apiserver.admission.priority import Priority
from mooring.apiserver.call import Operation
from mooring.client.errors import ForbiddenError
from tests.apiserver.admission.builders import Known, admitted, attempt, check, named, pod, wait

HIGH = named("high", value=1000, preemptionPolicy="PreemptLowerPriority")
NEVER_PREEMPTING = named("gentle", value=50, preemptionPolicy="Never")
DEFAULT = named("usual", value=500, globalDefault=True, preemptionPolicy="PreemptLowerPriority")
LOWER_DEFAULT = named("z-lower", value=400, globalDefault=True, preemptionPolicy="Never")


@pytest.mark.parametrize(
    ("classes", "given", "expected"),
    [
        pytest.param([], {}, (0, None, "PreemptLowerPriority"), id="no class"),
        pytest.param([HIGH], {"priorityClassName": "high"}, (1000, "high", "PreemptLowerPriority"), id="a class"),
        pytest.param(
            [NEVER_PREEMPTING],
            {"priorityClassName": "gentle"},
            (50, "gentle", "Never"),
            id="a class that never preempts",
        ),
        pytest.param([DEFAULT, HIGH], {}, (500, "usual", "PreemptLowerPriority"), id="the global default"),
        pytest.param([DEFAULT], {"priorityClassName": ""}, (500, "usual", "PreemptLowerPriority"), id="an empty name"),
        pytest.param([DEFAULT, LOWER_DEFAULT], {}, (400, "z-lower", "Never"), id="the lower of two defaults"),
        pytest.param(
            [HIGH],
            {"priorityClassName": "high", "priority": 1000},
            (1000, "high", "PreemptLowerPriority"),
            id="the correct priority is given",
        ),
    ],
)
def test_a_pod_gets_priority_and_preemption_policy_of_its_class(
    classes: list[Any], given: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    spec = admitted(Priority(), attempt(POD, pod(**given)), Known({PRIORITY_CLASS: classes}))["spec"]
    assert (spec["priority"], spec.get("priorityClassName"), spec["preemptionPolicy"]) == expected


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param({"priorityClassName": "none"}, "no PriorityClass with name none was found", id="no such class"),
        pytest.param(
            {"priorityClassName": "gentle", "priority": 7},
            "the integer value of priority (7) must not be provided in pod spec; "
            "priority admission controller computed 50 from the given PriorityClass name",
            id="another priority",
        ),
        pytest.param(
            {"priorityClassName": "gentle", "preemptionPolicy": "PreemptLowerPriority"},
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; "
            "priority admission controller computed Never from the given PriorityClass name",
            id="another policy",
        ),
    ],
)
def test_a_pod_that_contradicts_its_priority_class_is_rejected(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ForbiddenError) as caught:
        admitted(Priority(), attempt(POD, pod(**given)), Known({PRIORITY_CLASS: [NEVER_PREEMPTING]}))
    assert caught.value.message == f'pods "p" is forbidden: {why}'


def test_an_update_without_priority_keeps_that_of_the_old_pod() -> None:
    old = pod(priority=5, preemptionPolicy="Never")
    new = pod()
    spec = admitted(Priority(), attempt(POD, new, old))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (5, "Never")


@pytest.mark.parametrize(
    ("obj", "old", "is_allowed"),
    [
        pytest.param(named("b", globalDefault=True), None, False, id="a second default"),
        pytest.param(named("b", globalDefault=True), named("b"), False, id="an update to a second default"),
        pytest.param(named("usual", globalDefault=True), named("usual"), True, id="an update of the default"),
        pytest.param(named("b"), None, True, id="a class that is not the default"),
    ],
)
def test_only_one_priority_class_can_be_the_global_default(obj: Any, old: Any, is_allowed: bool) -> None:
    made, known = attempt(PRIORITY_CLASS, obj, old), Known({PRIORITY_CLASS: [DEFAULT]})
    if is_allowed:
        check(Priority(), made, known)
        return
    with pytest.raises(ForbiddenError, match="PriorityClass usual is already marked as default"):
        check(Priority(), made, known)


def test_system_priority_classes_cannot_be_deleted() -> None:
    made = attempt(PRIORITY_CLASS, None, named("system-node-critical"), operation=Operation.DELETE)
    with pytest.raises(ForbiddenError, match="this is a system priority class and cannot be deleted"):
        wait(Priority().admit(made, Known()))
