"""NodeAffinity: required, preferred and added terms. NodeName."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.views.meta import NodeSelector
from mooring.api.views.pod import Pod
from mooring.scheduler.framework.plugin import SKIP, Proceed
from mooring.scheduler.framework.status import Status
from mooring.scheduler.plugins.node_affinity import NodeAffinity, named_nodes
from mooring.scheduler.plugins.node_name import NodeName
from tests.api.builders import node_selector, preferred, term
from tests.builders import ZONE, node, pod
from tests.scheduler.config.builders import with_arguments
from tests.scheduler.harness import engine_of, plugin_of, rejected_by, scored_by

NODES = (node("a1", zone="a"), node("a2", zone="a", labels={"disk": "ssd"}), node("b1", zone="b"))
OWN = ("node(s) didn't match Pod's node affinity/selector",)
ENFORCED = ("node(s) didn't match scheduler-enforced node affinity",)


@pytest.mark.parametrize(
    ("wanting", "rejecting"),
    [
        pytest.param(pod(node_labels={ZONE: "a"}), ["b1"], id="a node selector"),
        pytest.param(pod(nodes=node_selector(term(f"{ZONE} NotIn a"))), ["a1", "a2"], id="a required term"),
        pytest.param(pod(node_labels={"disk": "ssd"}, nodes=node_selector(term(f"{ZONE} In b"))), ["a1", "a2", "b1"]),
    ],
)
def test_nodes_that_do_not_match(wanting: Pod, rejecting: list[str]) -> None:
    assert rejected_by(engine_of(*NODES), NodeAffinity, wanting) == dict.fromkeys(rejecting, OWN)


def test_pods_without_wishes_are_none_of_its_business() -> None:
    engine = engine_of(*NODES)
    assert rejected_by(engine, NodeAffinity, pod()) is SKIP
    assert scored_by(engine, NodeAffinity, pod(node_labels={ZONE: "a"})) is SKIP


NAME = "metadata.name"


@pytest.mark.parametrize(
    ("required", "names"),
    [
        (node_selector(term(fields=[f"{NAME} In n1"])), {"n1"}),
        (node_selector(term(fields=[f"{NAME} In n1,n2"]), term(fields=[f"{NAME} In n3"])), {"n1", "n2", "n3"}),
        (node_selector(term(fields=[f"{NAME} In n1,n2", f"{NAME} In n2,n3"])), {"n2"}),
        (node_selector(term(fields=[f"{NAME} In n1", f"{NAME} In n2"])), set()),
        (node_selector(term(fields=[f"{NAME} In n1"]), term("disk In ssd")), None),
        (node_selector(term(fields=[f"{NAME} NotIn n1"])), None),
        (node_selector(term("disk In ssd")), None),
        (node_selector(), None),
    ],
    ids=["one", "any of several terms", "all of one term", "contradiction", "another term", "not in", "labels", "none"],
)
def test_nodes_that_a_pod_names(required: NodeSelector, names: set[str] | None) -> None:
    assert named_nodes(required) == names


def test_naming_nodes_narrows_the_search() -> None:
    engine = engine_of(*NODES)
    plugin = plugin_of(engine, NodeAffinity)
    answer = plugin.pre_filter(engine.record(pod(nodes=node_selector(term(fields=[f"{NAME} In a1,b1"])))))
    assert isinstance(answer, Proceed)
    assert answer.node_names == frozenset(("a1", "b1"))
    contradiction = pod(nodes=node_selector(term(fields=[f"{NAME} In a1", f"{NAME} In b1"])))
    assert plugin.pre_filter(engine.record(contradiction)) == Status.unresolvable("pod affinity terms conflict")


@pytest.mark.parametrize(
    ("wanting", "scores"),
    [
        pytest.param(
            pod(prefers_nodes=[preferred(30, f"{ZONE} In a"), preferred(10, "disk In ssd")]),
            {"a1": 75, "a2": 100, "b1": 0},
            id="weights add up, and the best gets 100",
        ),
        pytest.param(
            pod(prefers_nodes=[preferred(5, "disk In tape")]), {"a1": 0, "a2": 0, "b1": 0}, id="nobody is liked"
        ),
        pytest.param(
            pod(prefers_nodes=[preferred(7)]), {"a1": 0, "a2": 0, "b1": 0}, id="an empty preference likes nobody"
        ),
    ],
)
def test_nodes_that_are_liked(wanting: Pod, scores: dict[str, int]) -> None:
    assert scored_by(engine_of(*NODES), NodeAffinity, wanting) == scores


def test_a_preference_that_cannot_be_read_is_a_failure() -> None:
    answer = scored_by(engine_of(*NODES), NodeAffinity, pod(prefers_nodes=[preferred(7, "disk Sometimes")]))
    assert isinstance(answer, Status)
    assert answer.code is Status.error().code
    assert "Sometimes" in answer.message


def added(**affinity: Any) -> dict[str, Any]:
    return with_arguments("NodeAffinity", {"addedAffinity": affinity})


IN_A = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
ONLY_A = added(requiredDuringSchedulingIgnoredDuringExecution={"nodeSelectorTerms": [IN_A]})
LIKES_A = added(preferredDuringSchedulingIgnoredDuringExecution=[{"weight": 10, "preference": IN_A}])


@pytest.mark.parametrize(
    ("wanting", "rejected"),
    [
        pytest.param(pod(), {"b1": ENFORCED}, id="for all pods"),
        pytest.param(pod(node_labels={"disk": "ssd"}), {"a1": OWN, "b1": ENFORCED}, id="before the pod's own"),
    ],
)
def test_what_a_profile_demands(wanting: Pod, rejected: dict[str, tuple[str, ...]]) -> None:
    assert rejected_by(engine_of(*NODES, config=ONLY_A), NodeAffinity, wanting) == rejected


@pytest.mark.parametrize(
    ("wanting", "scores"),
    [
        pytest.param(pod(), {"a1": 100, "a2": 100, "b1": 0}, id="for all pods"),
        pytest.param(
            pod(prefers_nodes=[preferred(10, "disk In ssd")]), {"a1": 50, "a2": 100, "b1": 0}, id="with the pod's own"
        ),
    ],
)
def test_what_a_profile_likes(wanting: Pod, scores: dict[str, int]) -> None:
    assert scored_by(engine_of(*NODES, config=LIKES_A), NodeAffinity, wanting) == scores


# --- NodeName: a pod that names its node -----------------------------------------------------------------------------


TEXT = ("node(s) didn't match the requested node name",)


@pytest.mark.parametrize(("named", "rejecting"), [("n2", ["n1", "n3"]), ("nowhere", ["n1", "n2", "n3"])])
def test_only_the_named_node_takes_it(named: str, rejecting: list[str]) -> None:
    engine = engine_of(node("n1"), node("n2"), node("n3"))
    assert rejected_by(engine, NodeName, pod(on=named)) == dict.fromkeys(rejecting, TEXT)


def test_most_pods_name_none() -> None:
    assert rejected_by(engine_of(node("n1")), NodeName, pod()) is SKIP
