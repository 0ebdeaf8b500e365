"""Queueing hints: pods that PodTopologySpread rejected."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.scheduler.plugins.pod_topology_spread import PodTopologySpread
from tests.builders import HOSTNAME, ZONE, node, pod, service, spread
from tests.scheduler.config.builders import with_arguments
from tests.scheduler.queueing import Change, queues

WEB = {"app": "web"}
DB = {"app": "db"}
SPREAD = pod(labels=WEB, spread=[spread(ZONE, app="web")])
UNREADABLE = pod(spread=[spread(ZONE, "app Like web")])


def relabelled(old: Mapping[str, str], new: Mapping[str, str], name: str = "q", on: str = "n1") -> Change:
    wishes = [spread(ZONE, app="web")] if name == "p" else []
    return {
        "before": pod(name, labels=old, on=on, spread=wishes),
        "after": pod(name, labels=new, on=on, spread=wishes),
    }


@pytest.mark.parametrize(
    ("rejected", "change", "is_queued"),
    [
        pytest.param(SPREAD, {"came": pod("q", labels=WEB, on="n1")}, True, id="one of its kind came"),
        pytest.param(SPREAD, {"gone": pod("q", labels=WEB, on="n1")}, True, id="one of its kind is gone"),
        pytest.param(SPREAD, {"gone": pod("q", labels=WEB, nominated="n1")}, True, id="a promise to one is gone"),
        pytest.param(SPREAD, {"gone": pod("q", labels=WEB)}, False, id="one is gone that was nowhere"),
        pytest.param(SPREAD, {"came": pod("q", labels=DB, on="n1")}, False, id="one of another kind came"),
        pytest.param(SPREAD, {"gone": pod("q", labels=WEB, namespace="b", on="n1")}, False, id="another namespace"),
        pytest.param(SPREAD, relabelled(DB, WEB), True, id="a pod became one of its kind"),
        pytest.param(SPREAD, relabelled(WEB, DB), True, id="a pod is no longer of its kind"),
        pytest.param(SPREAD, relabelled(WEB, {**WEB, "a": "b"}), False, id="a pod of its kind has one more label"),
        pytest.param(SPREAD, relabelled(DB, WEB, on=""), False, id="a pod without a node became one of its kind"),
        pytest.param(
            pod(spread=[spread(ZONE, app="web"), spread(HOSTNAME, app="db")]),
            {"gone": pod("q", labels=DB, on="n1")},
            True,
            id="one constraint counts it",
        ),
        pytest.param(
            pod(spread=[spread(ZONE, app="web", hard=False)]),
            {"gone": pod("q", labels=WEB, on="n1")},
            False,
            id="soft constraints refuse nobody",
        ),
        pytest.param(UNREADABLE, {"gone": pod("q", on="n1")}, True, id="what cannot be read may help"),
        pytest.param(UNREADABLE, relabelled(DB, WEB), True, id="nor who changed"),
        pytest.param(
            SPREAD,
            {"before": pod("q", labels=WEB, on="n1"), "after": pod("q", labels=WEB, on="n1", terminating=True)},
            False,
            id="one starts to terminate: kube-scheduler does not hear of it",
        ),
    ],
)
def test_other_counts(rejected: Pod, change: Change, is_queued: bool) -> None:
    assert queues(PodTopologySpread, rejected, **change) is is_queued


def tolerating(*tolerations: str, honours_taints: bool | None) -> Pod:
    constraint = spread(ZONE, app="web", honours_taints=honours_taints)
    return pod(labels=WEB, tolerations=tolerations, spread=[constraint])


@pytest.mark.parametrize(
    ("change", "is_queued"),
    [
        pytest.param(relabelled(WEB, DB, "p", ""), True, id="it is no longer of the kind that it counts"),
        pytest.param(relabelled(WEB, {**WEB, "a": "b"}, "p", ""), False, id="it has one more label"),
        pytest.param(
            {"before": tolerating(honours_taints=True), "after": tolerating("gpu", honours_taints=True)},
            True,
            id="it tolerates more nodes, and so more nodes count",
        ),
        pytest.param(
            {"before": tolerating(honours_taints=None), "after": tolerating("gpu", honours_taints=None)},
            False,
            id="it tolerates more nodes, and tainted ones count anyway",
        ),
        pytest.param(
            {"before": UNREADABLE, "after": pod(labels=WEB, spread=[spread(ZONE, "app Like web")])},
            True,
            id="what cannot be read may help",
        ),
    ],
)
def test_it_changes_itself(change: Change, is_queued: bool) -> None:
    assert queues(PodTopologySpread, SPREAD, **change) is is_queued


TWO = pod(labels=WEB, spread=[spread(ZONE, app="web"), spread("rack", app="web")])
IN_BOTH = node(zone="a", labels={"rack": "r1"})


@pytest.mark.parametrize(
    ("rejected", "old", "new", "is_queued"),
    [
        pytest.param(SPREAD, None, node(zone="a"), True, id="a node came"),
        pytest.param(SPREAD, None, node(), False, id="a node came that is in no domain"),
        pytest.param(TWO, None, node(zone="a"), False, id="a node came that lacks one of two labels"),
        pytest.param(SPREAD, node(zone="a"), None, True, id="a node is gone, and perhaps the emptiest domain with it"),
        pytest.param(SPREAD, node(), None, False, id="a node is gone that did not count"),
        pytest.param(SPREAD, node(), node(zone="a"), True, id="a node counts now"),
        pytest.param(SPREAD, node(zone="a"), node(), True, id="a node counts no more"),
        pytest.param(SPREAD, node(zone="a"), node(zone="b"), True, id="a node moved"),
        pytest.param(SPREAD, node(zone="a"), node(zone="a", labels={"x": "y"}), False, id="it has another label"),
        pytest.param(SPREAD, node(zone="a"), node(zone="a", taints=["a:NoSchedule"]), True, id="a node was tainted"),
        pytest.param(SPREAD, node(), node(taints=["a:NoSchedule"]), False, id="one that does not count"),
        pytest.param(
            TWO, IN_BOTH, node(zone="a", labels={"rack": "r2"}), True, id="a node moved in one of two topologies"
        ),
        pytest.param(UNREADABLE, None, node(), True, id="what cannot be read may help"),
    ],
)
def test_other_domains(rejected: Pod, old: Node | None, new: Node | None, is_queued: bool) -> None:
    assert queues(PodTopologySpread, rejected, before=old, after=new) is is_queued


@pytest.mark.parametrize(("labels", "is_queued"), [(WEB, True), (DB, False)], ids=["of the service", "of another one"])
def test_constraints_of_the_profile_count_the_pods_of_a_service(labels: Mapping[str, str], is_queued: bool) -> None:
    hard = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    arguments = {"defaultingType": "List", "defaultConstraints": [hard]}
    config = with_arguments("PodTopologySpread", arguments)
    gone = pod("q", labels=labels, on="n1")
    assert queues(PodTopologySpread, pod(labels=WEB), service("web", app="web"), gone=gone, config=config) is is_queued
