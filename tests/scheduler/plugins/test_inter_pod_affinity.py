"""InterPodAffinity: affinity and anti-affinity in both directions, and the quirks of kube-scheduler v1.36."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from tests.api.builders import selector
from tests.builders import HOSTNAME, ZONE, namespace, node, pod, pods_like
from tests.scheduler.config.builders import with_arguments
from tests.scheduler.harness import decide, engine_of, rejected_by, scored_by
from tests.scheduler.queueing import Change, queues

WEB, DB = {"app": "web"}, {"app": "db"}
LONELY = ("node(s) didn't match pod affinity rules",)
CROWDED = ("node(s) didn't match pod anti-affinity rules",)
UNWELCOME = ("node(s) didn't satisfy existing pods anti-affinity rules",)

ZONES = (node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("x"))
NEAR_DB, NEAR_WEB = pods_like(ZONE, app="db"), pods_like(ZONE, app="web")


def rejecting(text: tuple[str, ...], *names: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(names, text)


@pytest.mark.parametrize(
    ("placed", "wanting", "rejected"),
    [
        pytest.param(
            [pod("d", labels=DB, on="a1")], pod(near=[NEAR_DB]), rejecting(LONELY, "b1", "x"), id="in the same zone"
        ),
        pytest.param(
            [pod("d", labels=DB, on="a1")],
            pod(near=[pods_like(HOSTNAME, app="db")]),
            rejecting(LONELY, "a2", "b1", "x"),
            id="on the same host",
        ),
        pytest.param([], pod(near=[NEAR_DB]), rejecting(LONELY, "a1", "a2", "b1", "x"), id="near nobody"),
        pytest.param(
            [pod("d", labels=DB, on="x")],
            pod(near=[NEAR_DB]),
            rejecting(LONELY, "a1", "a2", "b1", "x"),
            id="near somebody who is in no zone",
        ),
        pytest.param(
            [pod("d", labels=DB, on="a1", namespace="shop")],
            pod(near=[NEAR_DB]),
            rejecting(LONELY, "a1", "a2", "b1", "x"),
            id="near somebody in another namespace",
        ),
        pytest.param(
            [pod("d", labels=DB, on="a1", terminating=True)],
            pod(near=[NEAR_DB]),
            rejecting(LONELY, "b1", "x"),
            id="near somebody on the way out",
        ),
        pytest.param(
            [pod("d", labels=DB, on="a1"), pod("w", labels=WEB, on="b1")],
            pod(near=[NEAR_DB, NEAR_WEB]),
            rejecting(LONELY, "a1", "a2", "b1", "x"),
            id="all terms must be met by the same pods",
        ),
        pytest.param(
            [pod("dw", labels=DB | {"tier": "x"}, on="a1")],
            pod(near=[NEAR_DB, pods_like(HOSTNAME, tier="x")]),
            rejecting(LONELY, "a2", "b1", "x"),
            id="each within its own topology",
        ),
        pytest.param(
            [],
            pod(labels=DB, near=[NEAR_DB]),
            rejecting(LONELY, "x"),
            id="the first of its kind goes anywhere with a zone",
        ),
        pytest.param(
            [pod("d", labels=DB, on="b1")],
            pod(labels=DB, near=[NEAR_DB]),
            rejecting(LONELY, "a1", "a2", "x"),
            id="the second goes to the first",
        ),
        pytest.param(
            [pod("d", labels=DB, on="x")],
            pod(labels=DB, near=[NEAR_DB]),
            rejecting(LONELY, "x"),
            id="a first one without a zone does not count",
        ),
        pytest.param(
            [],
            pod(labels=DB, near=[NEAR_DB, NEAR_WEB]),
            rejecting(LONELY, "a1", "a2", "b1", "x"),
            id="a pod is of its own kind only if it meets all terms",
        ),
    ],
)
def test_near_whom(placed: list[ApiObject], wanting: Pod, rejected: dict[str, tuple[str, ...]]) -> None:
    assert rejected_by(engine_of(*ZONES, *placed), InterPodAffinity, wanting) == rejected


@pytest.mark.parametrize(
    ("placed", "wanting", "rejected"),
    [
        pytest.param(
            [pod("d", labels=DB, on="a1")], pod(apart=[NEAR_DB]), rejecting(CROWDED, "a1", "a2"), id="in the same zone"
        ),
        pytest.param(
            [pod("d", labels=DB, on="x")], pod(apart=[NEAR_DB]), {}, id="somebody without a zone is in nobody's way"
        ),
        pytest.param(
            [pod("d", labels=DB, on="a1")],
            pod(apart=[pods_like(ZONE, app="db", namespaces=["shop"])]),
            {},
            id="only in the namespaces that are named",
        ),
        pytest.param(
            [pod("d", apart=[NEAR_WEB], on="a1")],
            pod(labels=WEB),
            rejecting(UNWELCOME, "a1", "a2"),
            id="unwanted there",
        ),
        pytest.param([pod("d", apart=[NEAR_WEB], on="a1")], pod(labels=DB), SKIP, id="not meant"),
        pytest.param([pod("d", apart=[NEAR_WEB], on="x")], pod(labels=WEB), SKIP, id="unwanted in no zone at all"),
        pytest.param(
            [pod("d", apart=[NEAR_WEB], on="a1", namespace="shop")], pod(labels=WEB), SKIP, id="unwanted elsewhere"
        ),
        pytest.param(
            [pod("d", apart=[pods_like(ZONE, app="web", namespaces=["default"])], on="a1", namespace="shop")],
            pod(labels=WEB),
            rejecting(UNWELCOME, "a1", "a2"),
            id="unwanted from another namespace",
        ),
        pytest.param(
            [pod("d", labels=DB, apart=[NEAR_WEB], on="a1")],
            pod(labels=WEB, near=[NEAR_DB], apart=[NEAR_DB]),
            rejecting(CROWDED, "a1", "a2") | rejecting(LONELY, "b1", "x"),
            id="affinity is reported first, then the pod's own anti-affinity",
        ),
        pytest.param(
            [pod("d", labels=DB, apart=[NEAR_WEB], on="a1"), pod("e", labels=DB, on="b1")],
            pod(labels=WEB, apart=[NEAR_DB]),
            rejecting(CROWDED, "a1", "a2", "b1"),
            id="and only then that of others",
        ),
    ],
)
def test_apart_from_whom(placed: list[ApiObject], wanting: Pod, rejected: object) -> None:
    assert rejected_by(engine_of(*ZONES, *placed), InterPodAffinity, wanting) == rejected


NAMESPACES = (namespace("default", team="x"), namespace("shop", team="y"), namespace("bare"))


@pytest.mark.parametrize(
    ("term", "counted"),
    [
        pytest.param({"namespaces_like": selector(team="y")}, {"shop"}, id="by label"),
        pytest.param(
            {"namespaces_like": selector(team="y"), "namespaces": ["default"]}, {"default", "shop"}, id="or by name"
        ),
        pytest.param({"namespaces_like": selector()}, {"default", "shop", "bare", "unknown"}, id="all namespaces"),
        pytest.param({"namespaces_like": selector("team Exists")}, {"default", "shop"}, id="labelled at all"),
        pytest.param(
            {"namespaces_like": selector("team NotIn y")},
            {"default", "shop", "bare", "unknown"},
            id="one that a namespace without labels would satisfy means all of them",
        ),
        pytest.param({"namespaces_like": selector(team="z")}, set(), id="none"),
    ],
)
def test_namespaces_of_the_pods_own_terms(term: dict[str, Any], counted: set[str]) -> None:
    for where in ("default", "shop", "bare", "unknown"):
        engine = engine_of(*NAMESPACES, *ZONES, pod("d", labels=DB, on="a1", namespace=where))
        rejected = rejected_by(engine, InterPodAffinity, pod(apart=[pods_like(ZONE, app="db", **term)]))
        assert rejected == (rejecting(CROWDED, "a1", "a2") if where in counted else {}), where


def test_a_pods_own_terms_follow_namespaces() -> None:
    engine = engine_of(*NAMESPACES, *ZONES, pod("d", labels=DB, on="a1", namespace="shop"))
    wanting = pod(apart=[pods_like(ZONE, app="db", namespaces_like=selector(team="y"))])
    assert rejected_by(engine, InterPodAffinity, wanting) == rejecting(CROWDED, "a1", "a2")
    engine.put(namespace("shop", team="z"))
    assert rejected_by(engine, InterPodAffinity, wanting) == {}


def test_what_can_be_helped_by_evicting() -> None:
    engine = engine_of(*ZONES[:3], pod("d", labels=DB, on="a1"), pod("e", apart=[NEAR_WEB], on="b1"))
    rejections = decide(engine, pod(labels=WEB, apart=[NEAR_DB])).node_to_status
    assert {name: r.code for name, r in rejections.items() if r is not None} == dict.fromkeys(
        ("a1", "a2", "b1"), Code.UNSCHEDULABLE
    )
    lonely = decide(engine_of(*ZONES[:1]), pod(near=[NEAR_DB])).node_to_status["a1"]
    assert lonely is not None
    assert lonely.code is Code.UNRESOLVABLE


def test_terms_that_cannot_be_read() -> None:
    engine = engine_of(*ZONES)
    bad = pod(near=[pods_like(ZONE, "app Sometimes")])
    assert rejected_by(engine, InterPodAffinity, bad) == Status.unresolvable(
        'parsing pod: requiredAffinityTerms: "Sometimes" is not a valid label selector operator'
    )
    engine.put(pod("d", labels=DB, apart=[pods_like(ZONE, "app Sometimes"), NEAR_WEB], on="a1"))
    assert rejected_by(engine, InterPodAffinity, pod(labels=WEB)) is SKIP, "nobody reads what a placed pod misspelt"


@pytest.mark.parametrize(
    ("placed", "wanting", "scores"),
    [
        pytest.param(
            [pod("d", labels=DB, on="a1")],
            pod(prefers_near=[(10, NEAR_DB)]),
            {"a1": 100, "a2": 100, "b1": 0, "x": 0},
            id="drawn near",
        ),
        pytest.param(
            [pod("d", labels=DB, on="a1")],
            pod(prefers_apart=[(10, NEAR_DB)]),
            {"a1": 0, "a2": 0, "b1": 100, "x": 100},
            id="kept apart",
        ),
        pytest.param(
            [pod("d", labels=DB, on="a1"), pod("e", labels=DB, on="a2"), pod("w", labels=WEB, on="b1")],
            pod(prefers_near=[(10, NEAR_DB), (15, NEAR_WEB)]),
            {"a1": 100, "a2": 100, "b1": 75, "x": 0},
            id="every pod counts, with the term's weight",
        ),
        pytest.param(
            [pod("d", prefers_near=[(10, NEAR_WEB)], on="a1"), pod("e", prefers_apart=[(5, NEAR_WEB)], on="b1")],
            pod(labels=WEB),
            {"a1": 100, "a2": 100, "b1": 0, "x": 33},
            id="what others would like",
        ),
        pytest.param(
            [pod("d", near=[NEAR_WEB], labels=WEB, on="b1")],
            pod(labels=WEB),
            {"a1": 0, "a2": 0, "b1": 100, "x": 0},
            id="who needs the pod is glad of it",
        ),
        pytest.param([pod("d", labels=DB, on="a1")], pod(prefers_near=[(10, NEAR_WEB)]), SKIP, id="nobody meant"),
        pytest.param([], pod(), SKIP, id="nothing said"),
    ],
)
def test_scores_of_affinity_terms(placed: list[ApiObject], wanting: Pod, scores: object) -> None:
    assert scored_by(engine_of(*ZONES, *placed), InterPodAffinity, wanting) == scores


def configured(**arguments: Any) -> dict[str, Any]:
    return with_arguments("InterPodAffinity", arguments)


@pytest.mark.parametrize(
    ("config", "scores"),
    [
        pytest.param(None, {"a1": 100, "b1": 16, "c1": 0}, id="needing somebody weighs 1"),
        pytest.param(
            configured(hardPodAffinityWeight=9), {"a1": 66, "b1": 100, "c1": 0}, id="or what the profile says"
        ),
        pytest.param(configured(hardPodAffinityWeight=0), {"a1": 100, "b1": 0, "c1": 0}, id="or nothing"),
        pytest.param(
            configured(ignorePreferredTermsOfExistingPods=True),
            SKIP,
            id="others may be ignored by a pod without wishes",
        ),
    ],
)
def test_the_arguments(config: dict[str, Any] | None, scores: object) -> None:
    engine = engine_of(
        node("a1", zone="a"),
        node("b1", zone="b"),
        node("c1", zone="c"),
        pod("d", prefers_near=[(6, NEAR_WEB)], on="a1"),
        pod("e", near=[NEAR_WEB], labels=WEB, on="b1"),
        config=config,
    )
    assert scored_by(engine, InterPodAffinity, pod(labels=WEB)) == scores


def test_a_victim_with_equal_terms_rejects_no_pod_after_its_eviction() -> None:
    """Both of its terms were counted, so both must go with it."""
    twice = pod("v", apart=[NEAR_WEB, NEAR_WEB], on="a1", priority=0)
    plan = decide(engine_of(node("a1", zone="a"), twice), pod(labels=WEB, priority=9)).preemption
    assert plan is not None
    assert [victim.name for victim in plan.victims] == ["v"]


POD_NEAR_WEB = pod(near=[pods_like(ZONE, app="web")])
POD_APART_FROM_WEB = pod(apart=[pods_like(ZONE, app="web")])
UNREADABLE = pod(near=[pods_like(ZONE, "app Like web")])


def relabelled(old: Mapping[str, str], new: Mapping[str, str]) -> Change:
    return {"before": pod("q", labels=old, on="n1"), "after": pod("q", labels=new, on="n1")}


@pytest.mark.parametrize(
    ("rejected", "change", "is_queued"),
    [
        pytest.param(POD_NEAR_WEB, {"came": pod("q", labels=WEB, on="n1")}, True, id="a matching pod came"),
        pytest.param(POD_NEAR_WEB, {"came": pod("q", labels=DB, on="n1")}, False, id="another pod came"),
        pytest.param(
            POD_NEAR_WEB, {"came": pod("q", labels=WEB, namespace="b", on="n1")}, False, id="to another namespace"
        ),
        pytest.param(
            pod(near=[pods_like(ZONE, app="web"), pods_like(HOSTNAME, "tier Exists")]),
            {"came": pod("q", labels=WEB, on="n1")},
            False,
            id="a matching pod must match all terms",
        ),
        pytest.param(POD_APART_FROM_WEB, {"came": pod("q", labels=DB, on="n1")}, False, id="nobody's avoided pod came"),
        pytest.param(UNREADABLE, {"came": pod("q", on="n1")}, True, id="what cannot be read may help"),
        pytest.param(POD_NEAR_WEB, relabelled(DB, WEB), True, id="a pod became a matching pod"),
        pytest.param(POD_NEAR_WEB, relabelled(WEB, {**WEB, "a": "b"}), False, id="a pod was a matching pod before"),
        pytest.param(POD_APART_FROM_WEB, relabelled(WEB, DB), True, id="an avoided pod is none any more"),
        pytest.param(POD_APART_FROM_WEB, relabelled(DB, WEB), False, id="a pod became an avoided pod"),
        pytest.param(UNREADABLE, relabelled(DB, WEB), True, id="what cannot be read may help here too"),
        pytest.param(POD_APART_FROM_WEB, {"gone": pod("q", labels=WEB, on="n1")}, True, id="an avoided pod is gone"),
        pytest.param(POD_APART_FROM_WEB, {"gone": pod("q", labels=WEB, nominated="n1")}, True, id="a promised one is"),
        pytest.param(
            POD_APART_FROM_WEB, {"gone": pod("q", labels=WEB)}, False, id="an avoided pod is gone that was nowhere"
        ),
        pytest.param(
            POD_APART_FROM_WEB, {"gone": pod("q", labels=DB, on="n1")}, False, id="nobody's avoided pod is gone"
        ),
        pytest.param(
            pod(labels=WEB),
            {"gone": pod("q", apart=[pods_like(ZONE, app="web")], on="n1")},
            True,
            id="a pod is gone whose avoided pod it was",
        ),
        pytest.param(
            pod(labels=DB),
            {"gone": pod("q", apart=[pods_like(ZONE, app="web")], on="n1")},
            False,
            id="a pod is gone that others are avoided pods of",
        ),
        pytest.param(
            pod(labels=DB),
            {"gone": pod("q", apart=[pods_like(ZONE, "app Like web")], on="n1")},
            True,
            id="a pod is gone that cannot be read",
        ),
        pytest.param(pod(), {"before": pod(), "after": pod(labels=WEB)}, True, id="it has other labels itself"),
        pytest.param(pod(), {"before": pod("q"), "after": pod("q", labels=WEB)}, False, id="another pending pod has"),
    ],
)
def test_friends_come_and_enemies_go(rejected: Pod, change: Change, is_queued: bool) -> None:
    assert queues(InterPodAffinity, rejected, **change) is is_queued


@pytest.mark.parametrize(
    ("rejected", "old", "new", "is_queued"),
    [
        pytest.param(POD_NEAR_WEB, None, node(zone="a"), True, id="a node came where matching pods may be"),
        pytest.param(POD_NEAR_WEB, None, node(), False, id="a node came that is in no zone"),
        pytest.param(POD_APART_FROM_WEB, None, node(), True, id="a node came: avoided pods are everywhere but there"),
        pytest.param(POD_NEAR_WEB, node(), node(zone="a"), True, id="a node joins a zone"),
        pytest.param(POD_NEAR_WEB, node(zone="a"), node(zone="b"), True, id="a node moves, to matching pods perhaps"),
        pytest.param(POD_NEAR_WEB, node(zone="a"), node(), False, id="a node leaves, and matching pods with it"),
        pytest.param(
            POD_NEAR_WEB, node(zone="a"), node(zone="a", labels={"x": "y"}), False, id="a node has another label"
        ),
        pytest.param(
            POD_APART_FROM_WEB, node(zone="a"), node(), True, id="a node leaves, and avoided pods stay behind"
        ),
        pytest.param(
            POD_APART_FROM_WEB, node(zone="a"), node(zone="b"), True, id="a node moves, away from avoided pods"
        ),
        pytest.param(
            POD_APART_FROM_WEB, node(), node(zone="b"), False, id="a node joins a zone, where avoided pods may be"
        ),
        pytest.param(UNREADABLE, None, node(), True, id="what cannot be read may help"),
    ],
)
def test_nodes_come_and_move(rejected: Pod, old: Node | None, new: Node, is_queued: bool) -> None:
    assert queues(InterPodAffinity, rejected, before=old, after=new) is is_queued


TEAM_A = namespace("team-a", team="a")


@pytest.mark.parametrize(
    ("rejected", "change"),
    [
        pytest.param(
            pod(near=[pods_like(ZONE, namespaces_like=selector(team="a"), app="web")]),
            {"came": pod("q", labels=WEB, namespace="team-a", on="n1")},
            id="a matching pod in a namespace that is selected by its labels",
        ),
        pytest.param(
            pod(labels=WEB, near=[pods_like(ZONE, app="web")]),
            {"gone": pod("q", labels=WEB, on="n1")},
            id="the last matching pod goes, and the pod could be the first",
        ),
        pytest.param(pod(labels=WEB), {"came": node("n2", zone="b")}, id="a node without pods that dislike the pod"),
        pytest.param(
            pod(apart=[pods_like(ZONE, app="web"), pods_like(ZONE, app="db")]),
            {"gone": pod("q", labels=WEB, on="n1")},
            id="an avoided pod that only one of two terms speaks of",
        ),
    ],
)
def test_kube_scheduler_sleeps_through_this_too(rejected: Pod, change: Change) -> None:
    assert not queues(InterPodAffinity, rejected, TEAM_A, **change)


def test_an_empty_namespace_selector_selects_all_namespaces() -> None:
    rejected = pod(near=[pods_like(ZONE, namespaces_like=selector(), app="web")])
    assert queues(InterPodAffinity, rejected, came=pod("q", labels=WEB, namespace="team-a", on="n1"))
