"""SelectorSpread: the pods of services and controllers, spread over nodes and zones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.csi_translation import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import ConfigurationError
from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.policy.plugins import SelectorSpread, spread_score
from tests.api.builders import selector
from tests.builders import (
    HOSTNAME,
    ZONE,
    node,
    owned_by,
    pod,
    replica_set,
    replication_controller,
    service,
    spread,
    stateful_set,
)
from tests.scheduler.config.builders import plugins, with_profile
from tests.scheduler.harness import decide, engine_of, scored_by

PROFILE = with_profile(plugins={"multiPoint": {"enabled": plugins("SelectorSpread")}})
WEB = {"app": "web"}
WANTED = pod("new", labels=WEB)


@pytest.mark.parametrize(
    ("counts", "zones", "scores"),
    [
        pytest.param([0, 0], [0, 0], [100, 100], id="nobody anywhere"),
        pytest.param([0, 0], [1, 0], [100, 100], id="nobody anywhere, and a zone"),
        pytest.param([2, 1, 0], [0, 0, 0], [0, 50, 100], id="without zones: the distance from the most"),
        pytest.param([3, 2, 1], [0, 0, 0], [0, 33, 66], id="cut off"),
        pytest.param([1, 0, 0], [1, 1, 2], [0, 33, 100], id="a third is the node's, two thirds the zone's"),
        pytest.param([2, 1, 0], [1, 2, 0], [0, 50, 100], id="a node without a zone has only its own"),
        pytest.param([1, 1, 1], [1, 1, 2], [0, 0, 33], id="zones of different sizes"),
        pytest.param([5, 0], [0, 1], [0, 100], id="only the empty node has a zone"),
    ],
)
def test_few_pods_are_good(counts: list[int], zones: list[int], scores: list[int]) -> None:
    assert spread_score(np.array(counts), np.array(zones)).tolist() == scores


@pytest.mark.parametrize(
    ("objects", "wanting", "scores"),
    [
        pytest.param([service("web", app="web")], WANTED, {"n1": 0, "n2": 100}, id="a service"),
        pytest.param(
            [replica_set("web", selector(app="web"))],
            pod("new", labels=WEB, owner=owned_by("ReplicaSet", "web")),
            {"n1": 0, "n2": 100},
            id="a replica set",
        ),
        pytest.param(
            [stateful_set("web", selector("app In web"))],
            pod("new", labels=WEB, owner=owned_by("StatefulSet", "web")),
            {"n1": 0, "n2": 100},
            id="a stateful set",
        ),
        pytest.param(
            [replication_controller("web", app="web")],
            pod("new", labels=WEB, owner=owned_by("ReplicationController", "web", "v1")),
            {"n1": 0, "n2": 100},
            id="a replication controller",
        ),
        pytest.param([], WANTED, {"n1": 100, "n2": 100}, id="nobody selects it"),
        pytest.param(
            [service("web", app="web"), service("canary", stage="canary")],
            pod("new", labels=WEB | {"stage": "canary"}),
            {"n1": 100, "n2": 100},
            id="of two services, only pods of both count",
        ),
        pytest.param([service("web", "shop", app="web")], WANTED, {"n1": 100, "n2": 100}, id="of another namespace"),
    ],
)
def test_which_pods_a_pod_is_spread_against(objects: list[ApiObject], wanting: Pod, scores: dict[str, int]) -> None:
    engine = engine_of(node("n1"), node("n2"), pod("old", labels=WEB, on="n1"), *objects, config=PROFILE)
    assert scored_by(engine, SelectorSpread, wanting) == scores


@pytest.mark.parametrize(
    "uncounted",
    [
        pytest.param(pod("old", labels=WEB, on="n1", terminating=True), id="on its way out"),
        pytest.param(pod("old", labels=WEB, on="n1", namespace="shop"), id="in another namespace"),
        pytest.param(pod("old", labels={"app": "db"}, on="n1"), id="of another application"),
        pytest.param(pod("old", labels=WEB, on="n7"), id="on a node that nobody knows"),
    ],
)
def test_pods_that_do_not_count(uncounted: Pod) -> None:
    engine = engine_of(node("n1"), node("n2"), service("web", app="web"), uncounted, config=PROFILE)
    assert scored_by(engine, SelectorSpread, WANTED) == {"n1": 100, "n2": 100}


def test_a_pod_with_constraints_of_its_own_is_none_of_its_business() -> None:
    engine = engine_of(node("n1"), service("web", app="web"), config=PROFILE)
    assert scored_by(engine, SelectorSpread, pod(labels=WEB, spread=[spread(HOSTNAME, app="web")])) is SKIP


def test_only_nodes_that_can_take_the_pod_are_compared() -> None:
    objects = (service("web", app="web"), *(pod(f"p{number}", labels=WEB, on="a1") for number in range(3)))
    nodes = (node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"))
    engine = engine_of(*nodes, *objects, pod("b", labels=WEB, on="b1"), config=PROFILE)
    assert scored_by(engine, SelectorSpread, WANTED) == {"a1": 0, "a2": 33, "b1": 66}
    assert scored_by(engine, SelectorSpread, WANTED, feasible=["a2", "b1"]) == {"a2": 100, "b1": 0}


@pytest.mark.parametrize(
    ("crowded", "empty", "scores"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, {"n1": 0, "n2": 33}, id="the same zone"),
        pytest.param(
            {ZONE: "a"}, {BETA_ZONE_LABEL: "a"}, {"n1": 0, "n2": 33}, id="by its old label and by its new one"
        ),
        pytest.param(
            {BETA_ZONE_LABEL: "a", ZONE: "b"}, {ZONE: "b"}, {"n1": 0, "n2": 100}, id="the old label goes first"
        ),
        pytest.param(
            {BETA_ZONE_LABEL: "", ZONE: "a"}, {ZONE: "a"}, {"n1": 0, "n2": 100}, id="even if the old label is empty"
        ),
        pytest.param(
            {ZONE: "a", REGION_LABEL: "r1"},
            {ZONE: "a", REGION_LABEL: "r2"},
            {"n1": 0, "n2": 100},
            id="the same name elsewhere",
        ),
        pytest.param(
            {ZONE: "a", BETA_REGION_LABEL: "r1"},
            {BETA_ZONE_LABEL: "a", REGION_LABEL: "r1"},
            {"n1": 0, "n2": 33},
            id="the same region",
        ),
        pytest.param({REGION_LABEL: "r1"}, {REGION_LABEL: "r1"}, {"n1": 0, "n2": 33}, id="a region is enough"),
        pytest.param({REGION_LABEL: "x"}, {ZONE: "x"}, {"n1": 0, "n2": 100}, id="a region is not a zone"),
    ],
)
def test_what_a_zone_is(crowded: dict[str, str], empty: dict[str, str], scores: dict[str, int]) -> None:
    engine = engine_of(
        node("n1", labels=crowded),
        node("n2", labels=empty),
        service("web", app="web"),
        pod("old", labels=WEB, on="n1"),
        config=PROFILE,
    )
    assert scored_by(engine, SelectorSpread, WANTED) == scores


def test_it_follows_services_nodes_and_pods() -> None:
    engine = engine_of(node("n1", zone="a"), node("n2", zone="a"), pod("old", labels=WEB, on="n1"), config=PROFILE)

    def scores() -> list[int]:
        said = decide(engine, WANTED).scores
        return [said[name]["SelectorSpread"] for name in ("n1", "n2")]

    assert scores() == [100, 100]
    engine.put(service("web", app="web"))
    assert scores() == [0, 33]
    engine.put(node("n2", zone="b"))
    assert scores() == [0, 100]
    engine.put(pod("other", labels=WEB, on="n2"))
    assert scores() == [0, 0]
    engine.remove(service("web", app="web"))
    assert scores() == [100, 100]


def test_it_takes_no_arguments() -> None:
    profile = with_profile(
        plugins={"multiPoint": {"enabled": plugins("SelectorSpread")}},
        pluginConfig=[{"name": "SelectorSpread", "args": {"zones": True}}],
    )
    with pytest.raises(ConfigurationError, match="takes no arguments, but was given zones"):
        engine_of(config=profile)


# --- against the rule, written down node by node ----------------------------------------------------------------


def zone_of(view: Node) -> str:
    labels = view.metadata.labels
    zone = labels[BETA_ZONE_LABEL] if BETA_ZONE_LABEL in labels else labels.get(ZONE, "")
    region = labels[BETA_REGION_LABEL] if BETA_REGION_LABEL in labels else labels.get(REGION_LABEL, "")
    return f"{region}:\0:{zone}" if region or zone else ""


def expected_scores(nodes: list[Node], pods: list[Pod], wanted: dict[str, str]) -> dict[str, int]:
    counts = {
        node_view.metadata.name: sum(
            p.spec.node_name == node_view.metadata.name
            and p.metadata.namespace == "default"
            and p.metadata.deletion_timestamp is None
            and wanted.items() <= p.metadata.labels.items()
            for p in pods
        )
        for node_view in nodes
    }
    by_zone: dict[str, int] = {}
    for node_view in nodes:
        if zone_of(node_view):
            by_zone[zone_of(node_view)] = by_zone.get(zone_of(node_view), 0) + counts[node_view.metadata.name]
    most, most_in_zone = max(counts.values(), default=0), max(by_zone.values(), default=0)
    scores = {}
    for node_view in nodes:
        score = 100.0
        if most > 0:
            score = 100.0 * (float(most - counts[node_view.metadata.name]) / float(most))
        if zone_of(node_view):
            zone_score = 100.0
            if most_in_zone > 0:
                zone_score = 100.0 * (float(most_in_zone - by_zone[zone_of(node_view)]) / float(most_in_zone))
            score = (score * (1.0 - 2.0 / 3.0)) + ((2.0 / 3.0) * zone_score)
        scores[node_view.metadata.name] = int(score)
    return scores


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_results_equal_the_plain_rule(seed: int) -> None:
    chance = Entropy(seed)
    nodes = [
        node(
            f"n{number}",
            labels={
                key: chance.choose(("", "a", "b"))
                for key in (ZONE, BETA_ZONE_LABEL, REGION_LABEL, BETA_REGION_LABEL)
                if not chance.integer_below(3)
            },
        )
        for number in range(chance.integer_below(7))
    ]
    pods = [
        pod(
            f"p{number}",
            labels={"app": chance.choose(("web", "db"))},
            namespace=chance.choose(("default", "default", "shop")),
            on=f"n{chance.integer_below(7)}",
            terminating=not chance.integer_below(5),
        )
        for number in range(chance.integer_below(20))
    ]
    engine = engine_of(*nodes, *pods, service("web", app="web"), config=PROFILE)
    assert scored_by(engine, SelectorSpread, WANTED) == expected_scores(nodes, pods, WEB)
