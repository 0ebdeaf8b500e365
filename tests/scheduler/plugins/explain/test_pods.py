"""What PodTopologySpread and InterPodAffinity say of a node that they reject."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod, PodAffinityTerm
from mooring.scheduler.framework.obstacle import Obstacle, ObstacleKind
from tests.builders import HOSTNAME, ZONE, namespace, node, pod, pods_like, spread
from tests.scheduler.harness import engine_of, obstacles

WEB = {"app": "web"}


def found_on(name: str, view: Pod, *views: ApiObject) -> tuple[Obstacle, ...]:
    return obstacles(engine_of(*views), view, name)


def texts(name: str, view: Pod, *views: ApiObject) -> list[str]:
    return [obstacle.text for obstacle in found_on(name, view, *views)]


ZONES = (node("n1", zone="a", labels={"rack": "r1"}), node("n2", zone="b", labels={"rack": "r2"}), node("n3"))


# Spreading


@pytest.mark.parametrize(
    ("topology", "max_skew", "labels", "text"),
    [
        pytest.param(ZONE, 1, WEB, "zone a would have 4 pods matching app=web, at most 1 is allowed", id="a zone"),
        pytest.param(ZONE, 2, WEB, "zone a would have 4 pods matching app=web, at most 2 are allowed", id="more skew"),
        pytest.param(
            ZONE, 1, {}, "zone a has 3 pods matching app=web, at most 1 is allowed", id="it does not match itself"
        ),
        pytest.param(
            HOSTNAME, 1, WEB, "this node would have 4 pods matching app=web, at most 1 is allowed", id="a host"
        ),
        pytest.param("rack", 1, WEB, "rack=r1 would have 4 pods matching app=web, at most 1 is allowed", id="a rack"),
    ],
)
def test_domains_that_are_too_full(topology: str, max_skew: int, labels: dict[str, str], text: str) -> None:
    running = [pod(f"w{n}", labels=WEB, on="n1") for n in range(3)]
    view = pod(labels=labels, spread=[spread(topology, max_skew=max_skew, app="web")])
    assert texts("n1", view, *ZONES, *running) == [text]


def test_a_node_outside_of_the_topology_needs_its_label() -> None:
    assert texts("n3", pod(spread=[spread(ZONE, app="web")]), *ZONES) == [f"needs the label {ZONE}"]


def test_every_constraint_that_would_break_is_reported() -> None:
    running = [pod(f"w{n}", labels=WEB, on="n1") for n in range(2)]
    view = pod(labels=WEB, spread=[spread(ZONE, app="web"), spread("rack", app="web")])
    assert len(texts("n1", view, *ZONES, *running)) == 2


def test_the_details_of_a_domain() -> None:
    (found,) = found_on("n1", pod(labels=WEB, spread=[spread(ZONE, app="web")]), *ZONES, pod("w", labels=WEB, on="n1"))
    assert found.kind is ObstacleKind.SPREAD
    assert found.details == {
        "topologyKey": ZONE, "domain": "a", "selector": "app=web", "matching": 2, "allowed": 1
    }  # fmt: skip


# Affinity


@pytest.mark.parametrize(
    ("term", "name", "text"),
    [
        pytest.param(pods_like(ZONE, app="db"), "n1", "no pod matching app=db in zone a", id="in a zone"),
        pytest.param(pods_like(HOSTNAME, app="db"), "n1", "no pod matching app=db on this node", id="on a host"),
        pytest.param(pods_like("rack", app="db"), "n1", "no pod matching app=db where rack=r1", id="in a rack"),
        pytest.param(pods_like(ZONE, app="db"), "n3", f"needs the label {ZONE}", id="outside of the topology"),
        pytest.param(
            pods_like(ZONE, namespaces=["x", "w"], app="db"), "n1",
            "no pod matching app=db of namespace w, x in zone a", id="of other namespaces",
        ),
        pytest.param(
            PodAffinityTerm(topology_key=ZONE), "n1", "no pod matching (no labelSelector) in zone a", id="nobody"
        ),
    ],
)  # fmt: skip
def test_friends_that_are_missing(term: PodAffinityTerm, name: str, text: str) -> None:
    assert texts(name, pod(near=[term]), *ZONES, pod("db", labels={"app": "db"}, on="n2", namespace="elsewhere")) == [
        text
    ]


def test_the_first_of_its_kind_misses_nobody() -> None:
    assert texts("n1", pod(labels=WEB, near=[pods_like(ZONE, app="web")]), *ZONES) == []


# Anti-affinity, from both sides


@pytest.mark.parametrize(
    ("term", "text"),
    [
        pytest.param(
            pods_like(ZONE, app="web"), "keeps away from app=web: default/w0 and 1 other run in zone a", id="zone"
        ),
        pytest.param(
            pods_like(HOSTNAME, app="web"), "keeps away from app=web: default/w0 runs on this node", id="host"
        ),
    ],
)
def test_whom_a_pod_avoids(term: PodAffinityTerm, text: str) -> None:
    running = [pod("w0", labels=WEB, on="n1"), pod("w1", labels=WEB, on="n4")]
    assert texts("n1", pod(apart=[term]), *ZONES, node("n4", zone="a"), *running) == [text]


@pytest.mark.parametrize(
    ("topology", "hermits", "text"),
    [
        pytest.param(ZONE, 1, "default/h0 keeps it away from zone a", id="from a zone"),
        pytest.param(HOSTNAME, 1, "default/h0 keeps it away", id="from a node"),
        pytest.param(ZONE, 3, "default/h0 and 2 others keep it away from zone a", id="three of them"),
    ],
)
def test_who_avoids_a_pod(topology: str, hermits: int, text: str) -> None:
    running = [pod(f"h{n}", on="n1", apart=[pods_like(topology, app="web")]) for n in range(hermits)]
    found = found_on("n1", pod(labels=WEB), *ZONES, *running)
    assert [(each.text, each.kind) for each in found] == [(text, ObstacleKind.ANTI_AFFINITY)]


def test_replicas_that_avoid_each_other_are_reported_once() -> None:
    signature: dict[str, Any] = {"labels": WEB, "apart": [pods_like(HOSTNAME, app="web")]}
    assert texts("n1", pod("new", **signature), *ZONES, pod("old", on="n1", **signature)) == [
        "keeps away from app=web: default/old runs on this node"
    ]


def test_namespaces_by_selector() -> None:
    term = pods_like(ZONE, namespaces_like=pods_like("", team="x").label_selector, app="web")
    running = [namespace("a", team="x"), pod("w", namespace="a", labels=WEB, on="n1")]
    assert texts("n1", pod(apart=[term]), *ZONES, *running) == [
        "keeps away from app=web of namespace a: a/w runs in zone a"
    ]
