"""What a line-by-line comparison with kube-scheduler v1.36 found: each case decided otherwise once.

They are combinations that no recording happens to have: two rules that are right alone and meet in one cluster.
"""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.plugins.pod_topology_spread import PodTopologySpread
from tests.api.builders import selector
from tests.builders import HOSTNAME, budget, claim, csi_node, node, owned_by, pod, pods_like, replica_set
from tests.scheduler.config.builders import plugins, with_arguments, with_profile
from tests.scheduler.harness import decide, engine_of, scored_by
from tests.storage_builders import ephemeral

WEB = {"app": "web"}
URGENT = pod("urgent", cpu=2, priority=100)
REPLICA = pod("new", labels=WEB, owner=owned_by("ReplicaSet", "web"))
WEB_SET = replica_set("web", selector(app="web"))


def full(name: str, priority: int = 0, labels: dict[str, str] | None = None) -> list[ApiObject]:
    """A node, and a pod that fills it."""
    return [node(name, cpu=2), pod(f"on-{name}", cpu=2, priority=priority, on=name, labels=labels, started_s=0.0)]


def victims_of(view: Pod, *views: ApiObject, config: dict[str, Any] | None = None) -> list[str] | None:
    plan = decide(engine_of(*views, config=config), view).preemption
    return [victim.name for victim in plan.victims] if plan is not None else None


# --- the candidates of preemption -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("percentage", "absolute", "victims"),
    [
        pytest.param(0, 1, ["on-n1"], id="one candidate is wanted: of those that violate a budget, the first is kept"),
        pytest.param(0, 2, ["on-n2"], id="two are wanted: the better of the first two"),
        pytest.param(100, 0, ["on-n3"], id="all are wanted: the best of all"),
        pytest.param(10, 0, None, id="a tenth of three nodes is none at all"),
    ],
)
def test_how_many_candidates_that_violate_a_budget_are_kept(
    percentage: int, absolute: int, victims: list[str] | None
) -> None:
    wanted = {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}
    protected = [
        *full("n1", 9, WEB),
        *full("n2", 5, WEB),
        *full("n3", 1, WEB),
        budget("b", selector(app="web"), allowed=0),
    ]
    assert victims_of(URGENT, *protected, config=with_arguments("DefaultPreemption", wanted)) == victims


def test_nodes_that_were_candidates_but_not_wanted_count_as_not_helpful() -> None:
    none_wanted = {"minCandidateNodesPercentage": 1, "minCandidateNodesAbsolute": 0}
    engine = engine_of(*full("n1"), *full("n2", 200), config=with_arguments("DefaultPreemption", none_wanted))
    message = decide(engine, URGENT).message or ""
    assert message.partition("preemption: ")[2] == (
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_a_failure_that_several_nodes_share_is_reported_once() -> None:
    """Without VolumeBinding nobody stops a pod whose claim belongs to another, until its victims are gone."""
    foreign = claim("urgent-scratch")
    view = pod("urgent", cpu=2, priority=100, volumes=[ephemeral("scratch")])
    config = with_profile(plugins={"multiPoint": {"disabled": plugins("VolumeBinding")}})
    limits = (csi_node("n1", driver=1), csi_node("n2", driver=1))
    message = decide(engine_of(*full("n1"), *full("n2"), *limits, foreign, config=config), view).message or ""
    assert message.count("was not created for pod") == 1
    assert "[" not in message


# --- a pod that says the same twice -----------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_victim_takes_all_that_it_said_along(times: int) -> None:
    term = pods_like(HOSTNAME, app="web")
    resident = pod("resident", apart=[term] * times, on="n1", priority=0)
    assert victims_of(pod("new", labels=WEB, priority=9), node("n1"), resident) == ["resident"]


# --- an empty zone and none -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unlabelled", "expected"),
    [
        pytest.param(node("bare", pods=1), {"a": 100, "blank": 85}, id="a full node without zone counts for the empty"),
        pytest.param(node("bare", pods=1, zone="b"), {"a": 100, "blank": 100}, id="one with a zone does not"),
    ],
)
def test_system_defaults_read_a_missing_zone_as_an_empty_one(unlabelled: ApiObject, expected: dict[str, int]) -> None:
    cluster = (node("a", zone="a"), node("blank", zone=""), unlabelled, pod("old", labels=WEB, on="bare"), WEB_SET)
    assert scored_by(engine_of(*cluster), PodTopologySpread, REPLICA, feasible=["a", "blank"]) == expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(
            node("blank", zone=""), {"a": 9, "blank": 80, "bare": 100}, id="an empty zone and none: one domain"
        ),
        pytest.param(node("blank", zone="b"), {"a": 9, "blank": 81, "bare": 100}, id="a zone and none: two"),
    ],
)
def test_how_many_domains_weigh_the_zones(other: ApiObject, expected: dict[str, int]) -> None:
    crowd = [pod(f"web-{number}", labels=WEB, on="a") for number in range(5)]
    engine = engine_of(node("a", zone="a"), other, node("bare"), *crowd, WEB_SET)
    assert scored_by(engine, PodTopologySpread, REPLICA) == expected
