"""The nodes on which a DaemonSet runs, the pods to create and delete, and the status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import DaemonSetStatus
from mooring.controllers.daemonset.plan import (
    FORGOTTEN_AFTER_S,
    DaemonSetPlan,
    DaemonSetSync,
    FailedPodsBackoff,
    FitCache,
    NodeFit,
    count_status,
    daemon_pod,
    is_same_status,
    pin_to_node,
    plan_nodes,
    plan_update,
    status_document,
    target_node,
    with_daemon_tolerations,
)
from tests.controllers.batch_builders import daemon_set_view, identity, node_view, view_of
from tests.controllers.builders import NOW_S, pod_view

RUNS, STAYS, LEAVES = NodeFit(True, True), NodeFit(False, True), NodeFit(False, False)


def new(name: str, *, ready: bool = True, **parts: Any) -> Pod:
    return daemon(name, "new", ready=ready, **parts)


def old(name: str, *, ready: bool = True, **parts: Any) -> Pod:
    return daemon(name, "old", ready=ready, **parts)


def daemon(name: str, revision: str, *, ready: bool, **parts: Any) -> Pod:
    return pod_view(name, labels={"controller-revision-hash": revision}, ready_for_s=60 if ready else None, **parts)


def state(fits: Mapping[str, NodeFit], **parts: Any) -> DaemonSetSync:
    return DaemonSetSync(daemon_set_view(**parts), fits, "new", NOW_S)


def events(plan: DaemonSetPlan) -> tuple[list[str], list[str]]:
    return plan.nodes, [pod.metadata.name for pod in plan.to_delete]


@pytest.mark.parametrize(
    ("fit", "pods", "expected"),
    [
        pytest.param(RUNS, None, (["n1"], []), id="one is missing"),
        pytest.param(RUNS, [new("a")], ([], []), id="one is there"),
        pytest.param(RUNS, [new("a", age_s=9), new("b", age_s=99)], ([], ["a"]), id="two: the younger goes"),
        pytest.param(
            RUNS, [new("a", age_s=99, on=""), new("b", age_s=9)], ([], ["a"]), id="two: the one without a node goes"
        ),
        pytest.param(RUNS, [new("a", going=True)], ([], []), id="one is going: wait"),
        pytest.param(RUNS, [new("a", phase="Failed")], ([], ["a"]), id="a failed one goes"),
        pytest.param(RUNS, [new("a", phase="Succeeded")], ([], ["a"]), id="one that ended goes"),
        pytest.param(STAYS, None, ([], []), id="none may come"),
        pytest.param(STAYS, [new("a")], ([], []), id="but it may stay"),
        pytest.param(LEAVES, [new("a"), new("b", going=True)], ([], ["a"]), id="it may not stay"),
    ],
)
def test_one_node(fit: NodeFit, pods: Sequence[Pod] | None, expected: tuple[list[str], list[str]]) -> None:
    by_node = {"n1": pods} if pods is not None else {}
    assert events(plan_nodes(state({"n1": fit}), by_node, lambda node: 0.0)) == expected


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([old("a", going=True)], (["n1"], []), id="only a terminating pod"),
        pytest.param([old("a"), new("b", ready=False)], ([], []), id="the new one is not available yet"),
        pytest.param([old("a"), new("b")], ([], ["a"]), id="the new one is available"),
        pytest.param([old("a", ready=False), new("b", ready=False)], ([], ["a"]), id="the old one is not ready"),
        pytest.param([new("a", age_s=99), new("b", age_s=9)], ([], ["b"]), id="two new ones"),
    ],
)
def test_one_node_while_surging(pods: Sequence[Pod], expected: tuple[list[str], list[str]]) -> None:
    update = {"maxSurge": 1, "maxUnavailable": 0}
    assert events(plan_nodes(state({"n1": RUNS}, update=update), {"n1": pods}, lambda node: 0.0)) == expected


def test_failed_pods_wait_and_are_reported() -> None:
    by_node = {"n1": [new("a", phase="Failed")], "n2": [new("b", phase="Failed", on="n2")]}
    plan = plan_nodes(state({"n1": RUNS, "n2": RUNS}), by_node, lambda node: 4.0 if node == "n2" else 0.0)
    assert (events(plan)[1], plan.later_s, plan.failed_on) == (["a"], 4.0, ["n1"])
    message = "Found failed daemon pod default/a on node n1, will try to kill it"
    assert plan.events == [("Warning", "FailedDaemonPod", message)]


def test_a_pod_for_a_node_that_is_not_there_goes() -> None:
    by_node = {"gone": [new("a", on=""), new("b", on="gone")]}
    assert events(plan_nodes(state({}), by_node, lambda node: 0.0)) == ([], ["a"])


def nodes(count: int, fit: NodeFit = RUNS) -> dict[str, NodeFit]:
    return {f"n{number}": fit for number in range(1, count + 1)}


@pytest.mark.parametrize(
    ("unavailable", "pods", "expected"),
    [
        pytest.param(1, [[old("a")], [old("b")], [old("c")]], ["a"], id="one at a time"),
        pytest.param(2, [[old("a")], [old("b")], [old("c")]], ["a", "b"], id="two at a time"),
        pytest.param("50%", [[old("a")], [old("b")], [old("c")]], ["a", "b"], id="half of them, rounded up"),
        pytest.param(1, [[new("a", ready=False)], [old("b")]], [], id="a new one is not available yet"),
        pytest.param(1, [[new("a")], [old("b")]], ["b"], id="it is"),
        pytest.param(
            1, [[old("a", ready=False)], [old("b", ready=False)], [old("c")]], ["a", "b"], id="who is not available"
        ),
        pytest.param(1, [[], [old("b")]], [], id="one is missing"),
        pytest.param(1, [[old("a", going=True)], [old("b")]], [], id="one is going"),
        pytest.param(0, [[old("a")], [old("b")]], ["a"], id="neither surge nor unavailability is one at a time"),
    ],
)
def test_replacing(unavailable: int | str, pods: Sequence[Sequence[Pod]], expected: list[str]) -> None:
    by_node = {f"n{number}": pod for number, pod in enumerate(pods, 1) if pod}
    daemon_set = state(nodes(len(pods)), update={"maxUnavailable": unavailable, "maxSurge": 0})
    assert events(plan_update(daemon_set, by_node)) == ([], expected)


@pytest.mark.parametrize(
    ("surge", "fits", "pods", "expected"),
    [
        pytest.param(1, nodes(2), [[old("a")], [old("b")]], (["n1"], []), id="one at a time"),
        pytest.param("100%", nodes(2), [[old("a")], [old("b")]], (["n1", "n2"], []), id="all at once"),
        pytest.param(1, nodes(2), [[old("a"), new("x", ready=False)], [old("b")]], ([], []), id="one is under way"),
        pytest.param(1, nodes(2), [[old("a"), new("x")], [old("b")]], (["n2"], ["a"]), id="and is there"),
        pytest.param(1, nodes(2), [[old("a", ready=False)], [old("b")]], (["n1", "n2"], []), id="who is not available"),
        pytest.param(
            1,
            {"n1": STAYS, "n2": RUNS},
            [[old("a")], [new("b")]],
            ([], ["a"]),
            id="out of place, and another is available",
        ),
        pytest.param(
            1, {"n1": STAYS, "n2": RUNS}, [[old("a")], [new("b", ready=False)]], ([], []), id="out of place, but needed"
        ),
    ],
)
def test_surging(
    surge: int | str, fits: dict[str, NodeFit], pods: Sequence[Sequence[Pod]], expected: tuple[list[str], list[str]]
) -> None:
    by_node = {f"n{number}": pod for number, pod in enumerate(pods, 1)}
    assert events(plan_update(state(fits, update={"maxSurge": surge, "maxUnavailable": 0}), by_node)) == expected


def test_the_counts() -> None:
    fits = {"n1": RUNS, "n2": RUNS, "n3": RUNS, "n4": STAYS, "n5": LEAVES}
    by_node = {"n1": [new("a")], "n2": [old("b", ready=False)], "n4": [old("c")]}
    status = count_status(state(fits), by_node)
    assert (status.desired_number_scheduled, status.current_number_scheduled, status.number_misscheduled) == (3, 2, 1)
    assert (status.number_ready, status.number_available, status.number_unavailable) == (1, 1, 2)
    assert status.updated_number_scheduled == 1


def test_each_failure_doubles_the_wait() -> None:
    backoff = FailedPodsBackoff()
    assert backoff.wait_s("n1", 0.0) == 0.0
    backoff.record("n1", 0.0)
    assert backoff.wait_s("n1", 0.5) == 1.0
    assert backoff.wait_s("n2", 0.5) == 0.0
    assert backoff.wait_s("n1", 1.0) == 0.0
    backoff.record("n1", 1.0)
    assert backoff.wait_s("n1", 2.9) == 2.0
    assert backoff.wait_s("n1", 3.0) == 0.0


def test_the_backoff_starts_again_after_a_time_without_failures() -> None:
    backoff = FailedPodsBackoff()
    for _ in range(20):
        backoff.record("n1", 0.0)
    assert backoff.wait_s("n1", 1.0) == 900.0
    backoff.record("n2", FORGOTTEN_AFTER_S + 1)
    backoff.record("n1", FORGOTTEN_AFTER_S + 1)
    assert backoff.wait_s("n1", FORGOTTEN_AFTER_S + 1.5) == 1.0


def test_a_pod_carries_its_revision() -> None:
    pod = daemon_pod(daemon_set_view(), "abc")
    assert pod["metadata"]["labels"] == {"app": "agent", "controller-revision-hash": "abc"}
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    assert len(pod["spec"]["tolerations"]) == 6


def test_a_status_keeps_what_is_not_counted() -> None:
    counts = DaemonSetStatus(desired_number_scheduled=2, number_unavailable=2)
    assert status_document({"collisionCount": 1, "numberAvailable": 7, "numberReady": 7}, counts) == {
        "collisionCount": 1,
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 2,
        "numberReady": 0,
        "numberUnavailable": 2,
    }


def test_a_status_is_stale_until_the_generation_was_seen() -> None:
    counts = DaemonSetStatus(number_ready=1)
    assert is_same_status(daemon_set_view(status={"numberReady": 1, "observedGeneration": 1}), counts)
    assert not is_same_status(daemon_set_view(status={"numberReady": 1}), counts)
    assert not is_same_status(daemon_set_view(status={"observedGeneration": 1}), counts)


def requirements(key: str, operator: str, *values: str) -> Document:
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
    required = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


@pytest.mark.parametrize(
    ("pod_spec", "node", "expected"),
    [
        pytest.param({}, node_view("n1"), RUNS, id="anywhere"),
        pytest.param({"nodeName": "n2"}, node_view("n1"), LEAVES, id="on one node only"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, node_view("n1", labels={"disk": "ssd"}), RUNS, id="selected"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, node_view("n1"), LEAVES, id="not selected"),
        pytest.param(
            requirements("z", "Gt", "3"), node_view("n1", labels={"z": "4"}), RUNS, id="as its affinity demands"
        ),
        pytest.param(
            requirements("z", "Gt", "3"),
            node_view("n1", labels={"z": "2"}),
            LEAVES,
            id="not as its affinity demands",
        ),
        pytest.param({}, node_view("n1", taints=["gpu:NoSchedule"]), STAYS, id="a taint keeps new ones away"),
        pytest.param({}, node_view("n1", taints=["gpu:NoExecute"]), LEAVES, id="a taint drives out"),
        pytest.param({}, node_view("n1", taints=["gpu:PreferNoSchedule"]), RUNS, id="a taint that only asks"),
        pytest.param(
            {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
            node_view("n1", taints=["gpu=a:NoExecute"]),
            RUNS,
            id="tolerated",
        ),
        pytest.param({}, node_view("n1", taints=["node.kubernetes.io/unschedulable:NoSchedule"]), RUNS, id="cordoned"),
        pytest.param({}, node_view("n1", taints=["node.kubernetes.io/not-ready:NoExecute"]), RUNS, id="not ready"),
        pytest.param(
            {}, node_view("n1", taints=["node.kubernetes.io/not-ready:NoSchedule"]), STAYS, id="not ready yet"
        ),
        pytest.param(
            {},
            node_view("n1", taints=["node.kubernetes.io/network-unavailable:NoSchedule"]),
            STAYS,
            id="without a network",
        ),
        pytest.param(
            {"hostNetwork": True},
            node_view("n1", taints=["node.kubernetes.io/network-unavailable:NoSchedule"]),
            RUNS,
            id="that needs no network",
        ),
    ],
)
def test_nodes(pod_spec: Document, node: Node, expected: NodeFit) -> None:
    assert FitCache().fit(daemon_set_view(pod_spec=pod_spec), node) == expected


def test_a_verdict_holds_until_something_changes() -> None:
    memory = FitCache()
    wanted = daemon_set_view(pod_spec={"nodeSelector": {"a": "1"}})
    assert memory.fit(wanted, node_view("n1")) == LEAVES
    assert memory.fit(wanted, node_view("n1", labels={"a": "1"})) == RUNS
    assert memory.fit(wanted, node_view("n1", labels={"a": "1"}, taints=["x:NoExecute"])) == LEAVES
    assert memory.fit(daemon_set_view(generation=2), node_view("n1")) == RUNS
    memory.forget_node("n1")
    memory.forget_daemon_set(wanted.metadata.uid)
    assert memory.fit(wanted, node_view("n1")) == LEAVES


def test_tolerations_are_added_once() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    tolerations = with_daemon_tolerations({"tolerations": [{"key": "mine"}, own]})["tolerations"]
    assert len(tolerations) == 7
    assert tolerations[0] == {"key": "mine"}
    assert tolerations[1] == {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    assert len(with_daemon_tolerations({"hostNetwork": True})["tolerations"]) == 7


def test_a_pod_is_pinned_to_its_node() -> None:
    spec = pin_to_node({**requirements("z", "Exists"), "containers": []}, "n7")
    pod = view_of(Pod, identity("p"), spec, {})
    assert target_node(pod) == "n7"
    assert spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}]
    }


@pytest.mark.parametrize(
    ("node_name", "values", "expected"),
    [("n1", ["n2"], "n1"), ("", ["n2"], "n2"), ("", ["n2", "n3"], None), ("", [], None)],
)
def test_whose_node_it_is(node_name: str, values: Sequence[str], expected: str | None) -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(values)}]}
    required = {"nodeSelectorTerms": [term] if values else []}
    spec = {
        "nodeName": node_name,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    }
    assert target_node(view_of(Pod, identity("p"), spec, {})) == expected
