"""Scoring: totals, weights, and what one plugin contributes."""

from __future__ import annotations

from tests.api.builders import preferred
from tests.builders import MIB, ZONE, node, pod, pods_like
from tests.scheduler.config.builders import plugins, with_profile
from tests.scheduler.harness import decide, engine_of

WEB = {"app": "web"}


def test_a_total_is_the_sum_of_weighted_scores() -> None:
    engine = engine_of(node("n1", zone="a", images={"web:1": 900 * MIB}), node("n2", taints=["old:PreferNoSchedule"]))
    scores = decide(engine, pod(cpu=1, image="web:1", prefers_nodes=[preferred(1, f"{ZONE} In a")])).scores
    assert scores["n1"]["NodeAffinity"] == 200, "weight 2"
    assert scores["n1"]["TaintToleration"] == 300, "weight 3"
    assert scores["n2"]["TaintToleration"] == 0
    for of_node in scores.values():
        assert of_node["total"] == sum(score for name, score in of_node.items() if name != "total")


def test_a_plugin_that_has_nothing_to_say_is_absent() -> None:
    engine = engine_of(node("n1"), node("n2"))
    assert set(decide(engine, pod(cpu=1)).scores["n1"]) == {
        "TaintToleration",
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
        "DynamicResources",
        "total",
    }
    assert "NodeResourcesBalancedAllocation" not in decide(engine, pod()).scores["n1"]


def test_scores_are_normalised_over_the_nodes_that_fit() -> None:
    """A node that refuses must not be the yardstick for the others, whoever refuses there."""
    engine = engine_of(
        node("n1", labels={"rank": "1"}),
        node("n2", labels={"rank": "2"}),
        node("n3", labels={"rank": "3"}),
        pod("w", on="n3", labels=WEB),
    )
    prefers = [preferred(10, "rank Gt 1"), preferred(10, "rank Gt 2")]
    everywhere = decide(engine, pod(prefers_nodes=prefers)).scores
    assert [everywhere[name]["NodeAffinity"] for name in ("n1", "n2", "n3")] == [0, 100, 200]
    apart = decide(engine, pod(prefers_nodes=prefers, apart=[pods_like("kubernetes.io/hostname", app="web")])).scores
    assert {name: scores["NodeAffinity"] for name, scores in apart.items()} == {"n1": 0, "n2": 200}


def test_pods_that_dislike_each_other_are_placed_by_rank_until_no_node_is_left() -> None:
    engine = engine_of(node("n1"), node("n2"), node("n3"), pod("a", cpu=1, on="n2"))
    apart = [pods_like("kubernetes.io/hostname", app="web")]
    found = []
    for number in range(4):
        decision = engine.decide(engine.record(pod(f"w{number}", labels=WEB, apart=apart)))
        found.append((decision.feasible_count, decision.node_name))
        if decision.node_name is not None:
            engine.assume(decision)
    assert [count for count, _ in found] == [3, 2, 1, 0]
    assert {name for _, name in found[:2]} == {"n1", "n3"}, "the emptier ones first"
    assert found[2:] == [(1, "n2"), (0, None)]


def test_weights_come_from_the_configuration() -> None:
    config = with_profile(
        plugins={"score": {"enabled": plugins("ImageLocality=9"), "disabled": plugins("TaintToleration")}}
    )
    engine = engine_of(node("n1", images={"web:1": 5000 * MIB}), config=config)
    scores = decide(engine, pod(image="web:1")).scores["n1"]
    assert scores["ImageLocality"] == 900
    assert "TaintToleration" not in scores


def test_without_any_score_all_nodes_that_fit_are_equally_good() -> None:
    config = with_profile(plugins={"multiPoint": {"disabled": plugins("*"), "enabled": plugins(*ONLY_FILTERS)}})
    engine = engine_of(node("n2"), node("n1"), node("n0", unschedulable=True), config=config)
    decision = decide(engine, pod())
    assert decision.node_name == "n1"
    assert decision.scores == {"n1": {"total": 0}, "n2": {"total": 0}}


ONLY_FILTERS = ("PrioritySort", "NodeUnschedulable", "DefaultBinder")
