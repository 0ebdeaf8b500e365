"""Queueing hints: pods that InterPodAffinity rejected, and what kube-scheduler and we sleep through."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from tests.api.builders import selector
from tests.builders import HOSTNAME, ZONE, namespace, node, pod, pods_like
from tests.scheduler.queueing import Change, queues

WEB = {"app": "web"}
DB = {"app": "db"}
NEAR_WEB = pod(near=[pods_like(ZONE, app="web")])
APART_FROM_WEB = pod(apart=[pods_like(ZONE, app="web")])
UNREADABLE = pod(near=[pods_like(ZONE, "app Like web")])


def relabelled(old: Mapping[str, str], new: Mapping[str, str]) -> Change:
    return {"before": pod("q", labels=old, on="n1"), "after": pod("q", labels=new, on="n1")}


@pytest.mark.parametrize(
    ("rejected", "change", "is_queued"),
    [
        pytest.param(NEAR_WEB, {"came": pod("q", labels=WEB, on="n1")}, True, id="a friend came"),
        pytest.param(NEAR_WEB, {"came": pod("q", labels=DB, on="n1")}, False, id="another pod came"),
        pytest.param(
            NEAR_WEB, {"came": pod("q", labels=WEB, namespace="b", on="n1")}, False, id="to another namespace"
        ),
        pytest.param(
            pod(near=[pods_like(ZONE, app="web"), pods_like(HOSTNAME, "tier Exists")]),
            {"came": pod("q", labels=WEB, on="n1")},
            False,
            id="a friend must match all terms",
        ),
        pytest.param(APART_FROM_WEB, {"came": pod("q", labels=DB, on="n1")}, False, id="nobody's enemy came"),
        pytest.param(UNREADABLE, {"came": pod("q", on="n1")}, True, id="what cannot be read may help"),
        pytest.param(NEAR_WEB, relabelled(DB, WEB), True, id="a pod became a friend"),
        pytest.param(NEAR_WEB, relabelled(WEB, {**WEB, "a": "b"}), False, id="a pod was a friend before"),
        pytest.param(APART_FROM_WEB, relabelled(WEB, DB), True, id="an enemy is none any more"),
        pytest.param(APART_FROM_WEB, relabelled(DB, WEB), False, id="a pod became an enemy"),
        pytest.param(UNREADABLE, relabelled(DB, WEB), True, id="what cannot be read may help here too"),
        pytest.param(APART_FROM_WEB, {"gone": pod("q", labels=WEB, on="n1")}, True, id="an enemy is gone"),
        pytest.param(APART_FROM_WEB, {"gone": pod("q", labels=WEB, nominated="n1")}, True, id="a promised one is"),
        pytest.param(APART_FROM_WEB, {"gone": pod("q", labels=WEB)}, False, id="an enemy is gone that was nowhere"),
        pytest.param(APART_FROM_WEB, {"gone": pod("q", labels=DB, on="n1")}, False, id="nobody's enemy is gone"),
        pytest.param(
            pod(labels=WEB),
            {"gone": pod("q", apart=[pods_like(ZONE, app="web")], on="n1")},
            True,
            id="a pod is gone whose enemy it was",
        ),
        pytest.param(
            pod(labels=DB),
            {"gone": pod("q", apart=[pods_like(ZONE, app="web")], on="n1")},
            False,
            id="a pod is gone that others are enemies of",
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
        pytest.param(NEAR_WEB, None, node(zone="a"), True, id="a node came where friends may be"),
        pytest.param(NEAR_WEB, None, node(), False, id="a node came that is in no zone"),
        pytest.param(APART_FROM_WEB, None, node(), True, id="a node came: enemies are everywhere but there"),
        pytest.param(NEAR_WEB, node(), node(zone="a"), True, id="a node joins a zone"),
        pytest.param(NEAR_WEB, node(zone="a"), node(zone="b"), True, id="a node moves, to friends perhaps"),
        pytest.param(NEAR_WEB, node(zone="a"), node(), False, id="a node leaves, and friends with it"),
        pytest.param(NEAR_WEB, node(zone="a"), node(zone="a", labels={"x": "y"}), False, id="a node has another label"),
        pytest.param(APART_FROM_WEB, node(zone="a"), node(), True, id="a node leaves, and enemies stay behind"),
        pytest.param(APART_FROM_WEB, node(zone="a"), node(zone="b"), True, id="a node moves, away from enemies"),
        pytest.param(APART_FROM_WEB, node(), node(zone="b"), False, id="a node joins a zone, where enemies may be"),
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
            id="a friend in a namespace that is selected by its labels",
        ),
        pytest.param(
            pod(labels=WEB, near=[pods_like(ZONE, app="web")]),
            {"gone": pod("q", labels=WEB, on="n1")},
            id="the last friend goes, and the pod could be the first",
        ),
        pytest.param(pod(labels=WEB), {"came": node("n2", zone="b")}, id="a node without pods that dislike the pod"),
        pytest.param(
            pod(apart=[pods_like(ZONE, app="web"), pods_like(ZONE, app="db")]),
            {"gone": pod("q", labels=WEB, on="n1")},
            id="an enemy that only one of two terms speaks of",
        ),
    ],
)
def test_kube_scheduler_sleeps_through_this_too(rejected: Pod, change: Change) -> None:
    assert not queues(InterPodAffinity, rejected, TEAM_A, **change)


def test_a_namespace_selector_without_conditions_reaches_everybody() -> None:
    rejected = pod(near=[pods_like(ZONE, namespaces_like=selector(), app="web")])
    assert queues(InterPodAffinity, rejected, came=pod("q", labels=WEB, namespace="team-a", on="n1"))
