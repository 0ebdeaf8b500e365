"""Filtering: nominated pods, one's own and those of others, and nodes that are left out."""

from __future__ import annotations

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.engine import Engine
from tests.api.builders import node_selector, term
from tests.builders import HOSTNAME, ZONE, node, pod, pods_like, spread
from tests.scheduler.harness import decide, engine_of

WEB = {"app": "web"}


def refusals(engine: Engine, view: Pod) -> dict[str, str]:
    """The first reason of each node that refuses."""
    return {name: r.reasons[0] for name, r in decide(engine, view).node_to_status.items() if r is not None}


@pytest.mark.parametrize(
    ("nominated_row", "pending", "refused"),
    [
        pytest.param(
            pod("q", cpu=3, priority=5, nominated="n1"),
            pod(cpu=2, priority=5),
            {"n1": "Insufficient cpu"},
            id="room that is promised to an equal is taken",
        ),
        pytest.param(
            pod("q", cpu=3, priority=9, nominated="n1"),
            pod(cpu=2, priority=5),
            {"n1": "Insufficient cpu"},
            id="and to somebody more important",
        ),
        pytest.param(
            pod("q", cpu=3, priority=1, nominated="n1"), pod(cpu=2, priority=5), {}, id="but not to somebody less so"
        ),
        pytest.param(
            pod("q", cpu=3, priority=9, nominated="n1"), pod(cpu=1, priority=5), {}, id="there may be room for both"
        ),
        pytest.param(
            pod("q", ports=["80"], nominated="n1"),
            pod(ports=["80"]),
            {"n1": "node(s) didn't have free ports for the requested pod ports"},
            id="a host port is promised too",
        ),
        pytest.param(
            pod("q", labels=WEB, nominated="n1"),
            pod(apart=[pods_like(HOSTNAME, app="web")]),
            {"n1": "node(s) didn't match pod anti-affinity rules"},
            id="a pod that is not there yet can be in the way",
        ),
        pytest.param(
            pod("q", apart=[pods_like(HOSTNAME, app="web")], nominated="n1"),
            pod(labels=WEB, apart=[pods_like(HOSTNAME, app="db")]),
            {"n1": "node(s) didn't satisfy existing pods anti-affinity rules"},
            id="and can keep others away",
        ),
        pytest.param(
            pod("q", apart=[pods_like(HOSTNAME, app="web")], nominated="n1"),
            pod(labels=WEB),
            {},
            id="except those that affinity had skipped before: so does kube-scheduler v1.36",
        ),
        pytest.param(
            pod("q", labels=WEB, nominated="n1"),
            pod(near=[pods_like(HOSTNAME, app="web")]),
            {
                "n1": "node(s) didn't match pod affinity rules",
                "n2": "node(s) didn't match pod affinity rules",
            },
            id="but is no company yet: the node must be right without it as well",
        ),
        pytest.param(
            pod("q", labels=WEB, nominated="n1"),
            pod(labels=WEB, spread=[spread(HOSTNAME, app="web")]),
            {"n1": "node(s) didn't match pod topology spread constraints"},
            id="and it is spread against",
        ),
        pytest.param(pod("q", cpu=3, priority=9, nominated="elsewhere"), pod(cpu=2), {}, id="a node that nobody knows"),
    ],
)
def test_pods_that_are_nominated_elsewhere(nominated_row: Pod, pending: Pod, refused: dict[str, str]) -> None:
    engine = engine_of(node("n1", cpu=4), node("n2", cpu=4), nominated_row)
    assert refusals(engine, pending) == refused


def test_what_is_promised_is_not_scored() -> None:
    engine = engine_of(node("n1"), node("n2"))
    before = decide(engine, pod(cpu=1)).scores
    engine.put(pod("q", cpu=1, priority=9, nominated="n1"))
    assert decide(engine, pod(cpu=1)).scores == before


def nominated_to(name: str, *cluster: ApiObject) -> tuple[Engine, Pod]:
    view = pod("mine", cpu=2, priority=5, nominated=name)
    return engine_of(*cluster, view), view


@pytest.mark.parametrize(
    ("cluster", "chosen", "scored"),
    [
        pytest.param([node("n1", cpu=64), node("n2")], "n2", {"n2"}, id="it goes where it was promised room"),
        pytest.param([node("n1"), node("n2", cpu=1)], "n1", {"n1"}, id="or elsewhere, if there is none"),
        pytest.param([node("n1"), node("n3")], "n1", {"n1", "n3"}, id="or elsewhere, if the node is gone"),
        pytest.param(
            [node("n1"), node("n2"), pod("q", cpu=3, priority=9, nominated="n2")],
            "n1",
            {"n1"},
            id="or elsewhere, if the same room was promised to somebody more important",
        ),
    ],
)
def test_a_pod_that_is_nominated_itself(cluster: list[ApiObject], chosen: str, scored: set[str]) -> None:
    engine, view = nominated_to("n2", *cluster)
    decision = decide(engine, view)
    assert decision.node_name == chosen
    assert set(decision.scores) == scored
    assert engine.decide(engine.record(view)).node_name == chosen


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    engine, view = nominated_to("n2", node("n1", cpu=1), node("n2", cpu=3))
    engine.put(pod("q", cpu=1, priority=5, nominated="n2"))
    assert decide(engine, view).node_name == "n2"
    assert refusals(engine, pod("another", cpu=2, priority=5)) == {"n1": "Insufficient cpu", "n2": "Insufficient cpu"}


def test_what_other_nodes_would_say_to_a_nominated_pod_is_told_in_full() -> None:
    engine, view = nominated_to("n2", node("n1", cpu=1), node("n2"), node("n3"))
    assert {name for name, status in decide(engine, view).node_to_status.items() if status is None} == {"n2", "n3"}


def test_a_nominated_node_that_is_not_named_is_tried_all_the_same() -> None:
    view = pod("mine", nominated="n2", nodes=node_selector(term(fields=["metadata.name In n1"])))
    decision = decide(engine_of(node("n1"), node("n2"), node("n3"), view), view)
    assert decision.node_name == "n1"
    said = {name: status.reasons[0] for name, status in decision.node_to_status.items() if status is not None}
    assert said == {
        "n2": "node(s) didn't match Pod's node affinity/selector",
        "n3": "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    }


def test_rows_without_a_node_are_nobody() -> None:
    engine = engine_of(node("n1", zone="a"), node("n2", zone="b"), node("n3", zone="c"))
    engine.remove(node("n2"))
    view = pod(labels=WEB, spread=[spread(ZONE, app="web")])
    assert set(decide(engine, view).node_to_status) == {"n1", "n3"}
    engine.remove(node("n1"))
    engine.remove(node("n3"))
    assert decide(engine, view).error == "nonodes"
