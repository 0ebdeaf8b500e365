"""PodTopologySpread: hard constraints reject, soft ones score, and the quirks of kube-scheduler v1.36."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.plugins.pod_topology_spread import PodTopologySpread
from tests.api.builders import node_selector, selector, term
from tests.builders import HOSTNAME, ZONE, node, owned_by, pod, replica_set, service, spread
from tests.scheduler.config.builders import with_arguments
from tests.scheduler.harness import decide, engine_of, rejected_by, scored_by, settle
from tests.scheduler.queueing import Change, queues

WEB = {"app": "web"}
UNEVEN = ("node(s) didn't match pod topology spread constraints",)
UNLABELLED = ("node(s) didn't match pod topology spread constraints (missing required label)",)

ZONES = (node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("x"))


def web(name: str, on: str = "", **more: Any) -> Pod:
    return pod(name, labels=WEB, on=on, **more)


def wants(*constraints: Any, **more: Any) -> Pod:
    return pod("new", labels=WEB, spread=constraints, **more)


@pytest.mark.parametrize(
    ("placed", "wanting", "rejected"),
    [
        pytest.param([], wants(spread(ZONE, app="web")), {"x": UNLABELLED}, id="nobody there yet"),
        pytest.param([web("w", "a1")], wants(spread(ZONE, app="web")), {"a1": UNEVEN, "a2": UNEVEN, "x": UNLABELLED}),
        pytest.param(
            [web("w", "a1")], wants(spread(ZONE, app="web", max_skew=2)), {"x": UNLABELLED}, id="a larger skew is fine"
        ),
        pytest.param(
            [web("w", "a1"), web("v", "b1")], wants(spread(ZONE, app="web")), {"x": UNLABELLED}, id="even already"
        ),
        pytest.param(
            [web("w", "a1")],
            wants(spread(HOSTNAME, app="web")),
            {"a1": UNEVEN},
            id="by host, where every node is a domain",
        ),
        pytest.param(
            [web("w", "a1", namespace="shop")], wants(spread(ZONE, app="web")), {"x": UNLABELLED}, id="other namespaces"
        ),
        pytest.param(
            [web("w", "a1", terminating=True)],
            wants(spread(ZONE, app="web")),
            {"x": UNLABELLED},
            id="pods on their way out are not counted",
        ),
        pytest.param([web("w", "a1")], wants(spread(ZONE)), {"x": UNLABELLED}, id="an empty selector counts nobody"),
        pytest.param(
            [web("w", "a1"), web("v", "a1")],
            pod("new", labels={"app": "db"}, spread=[spread(ZONE, app="web")]),
            {"a1": UNEVEN, "a2": UNEVEN, "x": UNLABELLED},
            id="a pod that does not count itself still keeps away",
        ),
        pytest.param(
            [web("w", "a1")],
            pod("new", labels={"app": "db"}, spread=[spread(ZONE, app="web")]),
            {"x": UNLABELLED},
            id="but adds nothing",
        ),
        pytest.param(
            [web("w", "a1"), web("v", "b1")],
            wants(spread(ZONE, app="web", min_domains=3)),
            {"a1": UNEVEN, "a2": UNEVEN, "b1": UNEVEN, "x": UNLABELLED},
            id="with fewer domains than demanded, empty ones are imagined",
        ),
        pytest.param(
            [web("w", "a1"), web("v", "b1")],
            wants(spread(ZONE, app="web", min_domains=2)),
            {"x": UNLABELLED},
            id="with as many as demanded they are not",
        ),
        pytest.param(
            [web("w", "a1"), web("v", "b1"), web("u", "a1")],
            wants(spread(ZONE, app="web"), spread(HOSTNAME, app="web")),
            {"a1": UNEVEN, "a2": UNEVEN, "b1": UNEVEN, "x": UNLABELLED},
            id="all constraints must hold",
        ),
        pytest.param(
            [web("w", "x")],
            wants(spread(HOSTNAME, app="web"), spread(ZONE, app="web")),
            {"x": UNLABELLED},
            id="nodes that lack one label count for none",
        ),
    ],
)
def test_hard_constraints(placed: list[ApiObject], wanting: Pod, rejected: dict[str, tuple[str, ...]]) -> None:
    assert rejected_by(engine_of(*ZONES, *placed), PodTopologySpread, wanting) == rejected


def test_what_can_be_helped_by_evicting() -> None:
    rejections = decide(engine_of(*ZONES, web("w", "a1")), wants(spread(ZONE, app="web"))).node_to_status
    uneven, unlabelled = rejections["a1"], rejections["x"]
    assert uneven is not None
    assert unlabelled is not None
    assert (uneven.code, unlabelled.code) == (Code.UNSCHEDULABLE, Code.UNRESOLVABLE)


POLICED = (
    node("a1", zone="a"),
    node("b1", zone="b", taints=["gpu:NoSchedule"]),
    node("c1", zone="c", labels={"disk": "hdd"}),
    web("w", "a1"),
)


@pytest.mark.parametrize(
    ("wanting", "rejecting"),
    [
        pytest.param(wants(spread(ZONE, app="web")), ["a1"], id="b and c are empty, so a is full"),
        pytest.param(
            wants(spread(ZONE, app="web"), nodes=node_selector(term("disk NotIn hdd"))),
            ["a1"],
            id="c is out of reach, but b is still empty",
        ),
        pytest.param(
            wants(spread(ZONE, app="web", honours_taints=True), nodes=node_selector(term("disk NotIn hdd"))),
            [],
            id="with the taint honoured nothing is left but a",
        ),
        pytest.param(
            wants(
                spread(ZONE, app="web", honours_taints=True, honours_affinity=False),
                nodes=node_selector(term("disk NotIn hdd")),
            ),
            ["a1"],
            id="with affinity ignored c counts again",
        ),
        pytest.param(
            wants(
                spread(ZONE, app="web", honours_taints=True),
                nodes=node_selector(term("disk NotIn hdd")),
                tolerations=["gpu"],
            ),
            ["a1"],
            id="a taint that is tolerated is no taint",
        ),
    ],
)
def test_which_nodes_count(wanting: Pod, rejecting: list[str]) -> None:
    assert rejected_by(engine_of(*POLICED), PodTopologySpread, wanting) == dict.fromkeys(rejecting, UNEVEN)


def test_pods_without_constraints_are_none_of_its_business() -> None:
    engine = engine_of(*ZONES)
    assert rejected_by(engine, PodTopologySpread, web("new")) is SKIP
    assert scored_by(engine, PodTopologySpread, web("new")) is SKIP
    assert rejected_by(engine, PodTopologySpread, wants(spread(ZONE, app="web", hard=False))) is SKIP
    assert scored_by(engine, PodTopologySpread, wants(spread(ZONE, app="web"))) is SKIP


def test_a_selector_that_cannot_be_read_is_a_failure() -> None:
    answer = rejected_by(engine_of(*ZONES), PodTopologySpread, wants(spread(ZONE, "app Sometimes")))
    assert isinstance(answer, Status)
    assert answer.code is Code.ERROR
    assert answer.message == (
        "get constraints from pod: obtaining pod's hard topology spread constraints: "
        '"Sometimes" is not a valid label selector operator'
    )


def test_pods_follow_one_another_evenly() -> None:
    engine = engine_of(node("a1", zone="a"), node("b1", zone="b"), node("c1", zone="c"))
    chosen = settle(engine, *(pod(f"w{n}", labels=WEB, spread=[spread(ZONE, app="web")]) for n in range(6)))
    assert sorted(map(str, chosen[:3])) == sorted(map(str, chosen[3:])) == ["a1", "b1", "c1"]


@pytest.mark.parametrize(
    ("placed", "wanting", "scores"),
    [
        pytest.param(
            [web("w", "a1")],
            wants(spread(ZONE, app="web", hard=False)),
            {"a1": 0, "a2": 0, "b1": 100, "x": 0},
            id="emptier domains are better, nodes without the label worst",
        ),
        pytest.param(
            [],
            wants(spread(ZONE, app="web", hard=False)),
            {"a1": 100, "a2": 100, "b1": 100, "x": 0},
            id="all are empty",
        ),
        pytest.param(
            [web("w", "a1"), web("v", "a1"), web("u", "a2")],
            wants(spread(HOSTNAME, app="web", hard=False)),
            {"a1": 0, "a2": 50, "b1": 100, "x": 100},
            id="by host",
        ),
        pytest.param(
            [web("w", "a1", terminating=True)],
            wants(spread(ZONE, app="web", hard=False)),
            {"a1": 100, "a2": 100, "b1": 100, "x": 0},
            id="pods on their way out are not counted",
        ),
    ],
)
def test_soft_constraints(placed: list[ApiObject], wanting: Pod, scores: dict[str, int]) -> None:
    assert scored_by(engine_of(*ZONES, *placed), PodTopologySpread, wanting) == scores


def test_soft_constraints_weigh_a_topology_by_its_size() -> None:
    """Of three zones one pod more matters less than of two: log(size + 2) is the weight."""
    engine = engine_of(*ZONES[:3], node("c1", zone="c"), web("w", "a1"), web("v", "a1"), web("u", "b1"))
    wanting = wants(spread(ZONE, app="web", hard=False))
    assert scored_by(engine, PodTopologySpread, wanting) == {"a1": 0, "a2": 0, "b1": 33, "c1": 100}
    assert scored_by(engine, PodTopologySpread, wanting, feasible=["a1", "b1"]) == {"a1": 33, "b1": 100}


def test_services_and_controllers_are_spread_by_default() -> None:
    engine = engine_of(*ZONES[:3], service("web", app="web"), web("w", "a1"))
    assert scored_by(engine, PodTopologySpread, web("new")) == {"a1": 66, "a2": 88, "b1": 100}
    engine.remove(service("web", app="web"))
    assert scored_by(engine, PodTopologySpread, web("new")) is SKIP
    engine.put(replica_set("web", None))
    owned = web("new", owner=owned_by("ReplicaSet", "web"))
    assert scored_by(engine, PodTopologySpread, owned) is SKIP


def test_default_constraints_from_the_configuration() -> None:
    constraint = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    config = with_arguments("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [constraint]})
    engine = engine_of(*ZONES, service("web", app="web"), web("w", "a1"), config=config)
    assert rejected_by(engine, PodTopologySpread, web("new")) == {"a1": UNEVEN, "a2": UNEVEN, "x": UNLABELLED}
    own = wants(spread(HOSTNAME, app="web"))
    assert rejected_by(engine, PodTopologySpread, own) == {"a1": UNEVEN}, "a pod's own constraints replace the defaults"


def test_counts_follow_nodes_and_pods() -> None:
    engine = engine_of(*ZONES[:3], web("w", "a1"))
    wanting = wants(spread(ZONE, app="web"))
    assert rejected_by(engine, PodTopologySpread, wanting) == {"a1": UNEVEN, "a2": UNEVEN}
    engine.put(node("a1", zone="b"))
    assert rejected_by(engine, PodTopologySpread, wanting) == {"a1": UNEVEN, "b1": UNEVEN}
    engine.remove(node("a2"))
    assert rejected_by(engine, PodTopologySpread, wanting) == {}, "only one zone is left"


def test_a_promised_pod_may_be_what_makes_it_even() -> None:
    """Beside it the emptiest zone is no longer empty, so that one more there is not one too many."""
    engine = engine_of(*ZONES[:3], web("w", "a1"), web("q", nominated="b1"))
    rejections = decide(engine, wants(spread(ZONE, app="web"))).node_to_status
    assert {name for name, status in rejections.items() if status is None} == {"b1"}


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
            id="soft constraints reject nobody",
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


# Zones of the system defaults

REPLICA = pod("new", labels=WEB, owner=owned_by("ReplicaSet", "web"))
WEB_SET = replica_set("web", selector(app="web"))


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
