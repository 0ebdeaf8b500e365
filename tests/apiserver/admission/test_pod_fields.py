"""Plugins that set fields of pods: Priority, RuntimeClass, DefaultTolerationSeconds, PodTopologyLabels; node taints."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD, PRIORITY_CLASS, RUNTIME_CLASS
from mooring.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from mooring.apiserver.admission.pod_topology_labels import PodTopologyLabels
from mooring.apiserver.admission.priority import Priority
from mooring.apiserver.admission.runtime_class import RuntimeClass, merged_tolerations
from mooring.apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition
from mooring.apiserver.call import Operation
from mooring.client.errors import ForbiddenError, ServerError
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


KATA = named(
    "kata",
    overhead={"podFixed": {"cpu": "250m"}},
    scheduling={"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
)
PLAIN = named("plain")
KNOWN = Known({RUNTIME_CLASS: [KATA, PLAIN]})


def test_overhead_selector_and_tolerations_are_merged_into_the_pod() -> None:
    spec = admitted(RuntimeClass(), attempt(POD, pod(runtimeClassName="kata", nodeSelector={"a": "b"})), KNOWN)["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"a": "b", "kata": "yes"}
    assert spec["tolerations"] == [{"key": "kata", "operator": "Exists"}]
    assert spec["overhead"] is not KATA["overhead"]["podFixed"]


def test_an_equal_overhead_in_another_notation_is_allowed() -> None:
    made = attempt(POD, pod(runtimeClassName="kata", overhead={"cpu": "0.25"}))
    admitted(RuntimeClass(), made, KNOWN)
    check(RuntimeClass(), made, KNOWN)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found', id="no such class"),
        pytest.param(
            {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            id="another overhead",
        ),
        pytest.param(
            {"runtimeClassName": "kata", "nodeSelector": {"kata": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no",
            id="another node selector",
        ),
    ],
)
def test_a_pod_that_contradicts_its_runtime_class_is_rejected(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ForbiddenError) as caught:
        admitted(RuntimeClass(), attempt(POD, pod(**given)), KNOWN)
    assert caught.value.message == f'pods "p" is forbidden: {why}'


@pytest.mark.parametrize("given", [{}, {"runtimeClassName": "plain"}], ids=["no class", "a class without overhead"])
def test_overhead_without_a_runtime_class_that_defines_it_is_rejected(given: dict[str, Any]) -> None:
    with pytest.raises(ForbiddenError, match="Pod Overhead set without corresponding RuntimeClass defined Overhead"):
        check(RuntimeClass(), attempt(POD, pod(overhead={"cpu": "1"}, **given)), KNOWN)


def test_an_empty_runtime_class_name_is_an_error() -> None:
    with pytest.raises(ServerError, match="resource name may not be empty"):
        admitted(RuntimeClass(), attempt(POD, pod(runtimeClassName="")), KNOWN)


ALL: Document = {"operator": "Exists"}
KEY: Document = {"key": "k", "operator": "Exists"}
VALUE: Document = {"key": "k", "operator": "Equal", "value": "v"}
SHORT: Document = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
LONG: Document = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}
BARE: Document = {"key": "k", "value": "v"}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param([KEY], [KEY], [KEY], id="equal tolerations"),
        pytest.param([VALUE], [KEY], [KEY], id="a key covers its values"),
        pytest.param([KEY], [VALUE], [KEY], id="a key covers its values, reverse order"),
        pytest.param([KEY, VALUE], [ALL], [ALL], id="a toleration without a key covers all"),
        pytest.param([SHORT], [LONG], [LONG], id="the longer time covers the shorter"),
        pytest.param([BARE], [VALUE], [BARE], id="no operator covers Equal"),
        pytest.param(
            [VALUE],
            [{"key": "other", "operator": "Exists"}],
            [VALUE, {"key": "other", "operator": "Exists"}],
            id="different keys",
        ),
    ],
)
def test_merged_tolerations(first: list[Document], second: list[Document], expected: list[Document]) -> None:
    assert merged_tolerations(first, second) == expected


NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def default_toleration(key: str) -> Document:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param([], [NOT_READY, UNREACHABLE], id="no tolerations"),
        pytest.param([{"key": NOT_READY, "operator": "Exists"}], [UNREACHABLE], id="a toleration for all effects"),
        pytest.param([{"key": NOT_READY, "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE], id="another effect"),
        pytest.param([{"key": NOT_READY, "value": "x"}], [UNREACHABLE], id="values are ignored"),
        pytest.param([{"operator": "Exists"}], [], id="tolerates all taints"),
        pytest.param([{"operator": "Exists", "effect": "NoExecute"}], [], id="tolerates NoExecute of all taints"),
    ],
)
def test_default_toleration_seconds_adds_missing_tolerations(given: list[Document], added: list[str]) -> None:
    made = attempt(POD, pod(tolerations=list(given)))
    assert admitted(DefaultTolerationSeconds(), made)["spec"]["tolerations"] == [
        *given,
        *map(default_toleration, added),
    ]


def test_an_update_does_not_change_the_old_pod() -> None:
    old = pod()
    new = {**old, "metadata": dict(old["metadata"])}
    assert len(admitted(DefaultTolerationSeconds(), attempt(POD, new, old))["spec"]["tolerations"]) == 2
    assert "tolerations" not in old["spec"]


NOT_READY_TAINT: Document = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OTHER: Document = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, [NOT_READY_TAINT], id="no taints"),
        pytest.param({"taints": [OTHER]}, [OTHER, NOT_READY_TAINT], id="another effect is another taint"),
        pytest.param(
            {"taints": [{**NOT_READY_TAINT, "value": "x"}]}, [{**NOT_READY_TAINT, "value": "x"}], id="already tainted"
        ),
    ],
)
def test_taint_nodes_by_condition_adds_the_not_ready_taint(given: Document, expected: list[Document]) -> None:
    assert admitted(TaintNodesByCondition(), attempt(NODE, named("n", spec=given)))["spec"]["taints"] == expected


def test_only_new_nodes_are_tainted() -> None:
    assert not TaintNodesByCondition().handles(NODE, "", Operation.UPDATE)


ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
KNOWN_NODE = Known({NODE: [{"metadata": {"name": "n", "labels": {ZONE: "z", REGION: "r", "other": "x"}}}]})


@pytest.mark.parametrize(
    ("labels", "target", "expected"),
    [
        pytest.param(None, {"kind": "Node", "name": "n"}, {ZONE: "z", REGION: "r"}, id="both labels, no others"),
        pytest.param(
            {ZONE: "mine", "a": "b"},
            {"kind": "Node", "name": "n"},
            {ZONE: "z", REGION: "r", "a": "b"},
            id="replaces the pod's labels",
        ),
        pytest.param(None, {"kind": "Node", "name": "missing"}, None, id="a missing node"),
        pytest.param(None, {"name": "n"}, None, id="a target without a kind"),
    ],
)
def test_a_binding_gets_the_topology_labels_of_its_node(labels: Any, target: Any, expected: Any) -> None:
    metadata = {"name": "p", **({"labels": labels} if labels else {})}
    made = attempt(POD, {"metadata": metadata, "target": target}, subresource="binding")
    assert admitted(PodTopologyLabels(), made, KNOWN_NODE)["metadata"].get("labels") == expected


@pytest.mark.parametrize(("spec", "expected"), [({"nodeName": "n"}, {ZONE: "z", REGION: "r"}), ({}, None)])
def test_a_new_pod_with_a_node_name_gets_the_topology_labels(spec: Any, expected: Any) -> None:
    assert admitted(PodTopologyLabels(), attempt(POD, pod(**spec)), KNOWN_NODE)["metadata"].get("labels") == expected


def test_other_subresources_are_not_handled() -> None:
    assert not PodTopologyLabels().handles(POD, "eviction", Operation.CREATE)
