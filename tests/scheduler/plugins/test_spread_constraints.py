"""Compiled spread constraints: those of a pod, and the default ones for pods of services and controllers."""

from __future__ import annotations

from weakref import ReferenceType, ref

import pytest

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod, TopologySpreadConstraint
from mooring.scheduler.cache.arrays import Bools
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.plugin import Proceed
from mooring.scheduler.plugins import spread_constraints
from mooring.scheduler.plugins.pod_topology_spread import PodTopologySpread
from mooring.scheduler.plugins.spread_constraints import (
    HARD,
    SOFT,
    SYSTEM_DEFAULTS,
    default_constraints,
    default_selector,
    own_constraints,
)
from tests.api.builders import node_selector, selector, term
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
from tests.scheduler.harness import engine_of, plugin_of

WEB = {"app": "web", "version": "7"}


def compiled(view: Pod, action: str = HARD) -> list[str]:
    engine = engine_of()
    found = own_constraints(engine.columns, engine.record(view).signature, action)
    return [f"{constraint.column.key}: {constraint.selector}" for constraint in found]


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        pytest.param(spread(ZONE, app="web"), f"{ZONE}: app=web", id="a selector"),
        pytest.param(
            spread(ZONE, app="web", match_label_keys=["version"]),
            f"{ZONE}: app=web,version=7",
            id="narrowed to the pod's own version",
        ),
        pytest.param(
            spread(ZONE, app="web", match_label_keys=["missing"]),
            f"{ZONE}: app=web",
            id="but not by a label that the pod lacks",
        ),
        pytest.param(spread(ZONE), f"{ZONE}: ", id="an empty selector"),
        pytest.param(
            spread(ZONE, match_label_keys=["version"]), f"{ZONE}: version=7", id="which can be narrowed as well"
        ),
    ],
)
def test_the_pods_that_a_constraint_selects(constraint: TopologySpreadConstraint, said: str) -> None:
    assert compiled(pod(labels=WEB, spread=[constraint])) == [said]


def test_constraints_are_sorted_by_what_they_demand() -> None:
    view = pod(labels=WEB, spread=[spread(ZONE, app="a"), spread(HOSTNAME, app="b", hard=False), spread(ZONE, app="c")])
    assert compiled(view, HARD) == [f"{ZONE}: app=a", f"{ZONE}: app=c"]
    assert compiled(view, SOFT) == [f"{HOSTNAME}: app=b"]


@pytest.mark.parametrize(
    ("honours_affinity", "honours_taints", "policies"),
    [(None, None, (True, False)), (True, True, (True, True)), (False, False, (False, False))],
    ids=["by default affinity counts and taints do not", "both", "neither"],
)
def test_inclusion_policies(
    honours_affinity: bool | None, honours_taints: bool | None, policies: tuple[bool, bool]
) -> None:
    engine = engine_of()
    constraint = spread(ZONE, app="web", honours_affinity=honours_affinity, honours_taints=honours_taints)
    (found,) = own_constraints(engine.columns, engine.record(pod(spread=[constraint])).signature, HARD)
    assert (found.honours_affinity, found.honours_taints) == policies


def test_defaults_of_a_constraint() -> None:
    engine = engine_of()
    (found,) = own_constraints(
        engine.columns, engine.record(pod(labels=WEB, spread=[spread(ZONE, app="web")])).signature, HARD
    )
    assert (found.min_domains, found.max_skew, found.matches_itself, found.is_per_host) == (1, 1, True, False)
    assert found.selects("default", {"app": "web"})
    assert not found.selects("shop", {"app": "web"}), "only pods of the pod's own namespace count"


@pytest.mark.parametrize(
    ("objects", "view", "said"),
    [
        pytest.param([], pod(labels=WEB), "", id="a pod of nobody"),
        pytest.param([service("s", app="web")], pod(labels=WEB), "app=web", id="a service"),
        pytest.param([service("s", "shop", app="web")], pod(labels=WEB), "", id="a service of another namespace"),
        pytest.param([service("s", app="db")], pod(labels=WEB), "", id="a service for others"),
        pytest.param([service("s")], pod(labels=WEB), "", id="a service without a selector selects nobody"),
        pytest.param(
            [service("s", app="web"), service("t", version="7")],
            pod(labels=WEB),
            "app=web,version=7",
            id="two services",
        ),
        pytest.param(
            [replica_set("web", selector("app In web"))],
            pod(labels=WEB, owner=owned_by("ReplicaSet", "web")),
            "app=web",
            id="a replica set",
        ),
        pytest.param(
            [stateful_set("web", selector("app In web,www"))],
            pod(labels=WEB, owner=owned_by("StatefulSet", "web")),
            "app in (web,www)",
            id="a stateful set",
        ),
        pytest.param(
            [replication_controller("web", app="web")],
            pod(labels=WEB, owner=owned_by("ReplicationController", "web", "v1")),
            "app=web",
            id="a replication controller",
        ),
        pytest.param(
            [replica_set("web", selector("app In web")), service("s", version="7")],
            pod(labels=WEB, owner=owned_by("ReplicaSet", "web")),
            "app=web,version=7",
            id="a service and a controller together",
        ),
        pytest.param(
            [replica_set("web", selector("app In web"))],
            pod(labels=WEB, owner=owned_by("ReplicaSet", "web", "example.com/v1")),
            "",
            id="a replica set of somebody else's making",
        ),
        pytest.param(
            [replica_set("web", None)], pod(labels=WEB, owner=owned_by("ReplicaSet", "web")), "", id="without selector"
        ),
        pytest.param(
            [replica_set("web", selector("app Sometimes"))],
            pod(labels=WEB, owner=owned_by("ReplicaSet", "web")),
            "",
            id="with one that nobody can read",
        ),
        pytest.param([], pod(labels=WEB, owner=owned_by("ReplicaSet", "gone")), "", id="that is gone"),
    ],
)
def test_the_selector_of_default_constraints(objects: list[ApiObject], view: Pod, said: str) -> None:
    engine = engine_of(*objects)
    assert str(default_selector(engine.columns.objects, engine.record(view).signature)) == said


def test_default_constraints_are_for_pods_of_services_and_controllers() -> None:
    engine = engine_of(service("s", app="web"))
    signature = engine.record(pod(labels=WEB)).signature
    found = default_constraints(engine.columns, signature, SYSTEM_DEFAULTS, SOFT)
    assert [(constraint.column.key, constraint.max_skew) for constraint in found] == [(HOSTNAME, 3), (ZONE, 5)]
    assert default_constraints(engine.columns, signature, SYSTEM_DEFAULTS, HARD) == ()
    loner = engine.record(pod(labels={"app": "db"})).signature
    assert default_constraints(engine.columns, loner, SYSTEM_DEFAULTS, SOFT) == ()


def counting(engine: Engine, kind: str) -> ReferenceType[Bools]:
    """The nodes that count for a pod of this kind of node, as the plugin found them, held by nobody here."""
    wanting = pod(nodes=node_selector(term(f"kind In {kind}")), labels={"app": "web"}, spread=[spread(ZONE, app="web")])
    record = engine.record(wanting)
    answer = plugin_of(engine, PodTopologySpread).pre_filter(record)
    assert isinstance(answer, Proceed)
    return ref(answer.state[0].is_eligible)


def zones() -> Engine:
    return engine_of(node("a", zone="a", labels={"kind": "x"}), node("b", zone="b", labels={"kind": "y"}))


def test_a_pod_that_comes_again_finds_what_was_found() -> None:
    engine = zones()
    first = counting(engine, "x")()
    assert first is not None
    assert counting(engine, "x")() is first
    engine.put(pod("p", on="a"))
    assert counting(engine, "x")() is first


def test_compiled_constraints_are_dropped_when_a_node_changes() -> None:
    engine = zones()
    found = [counting(engine, kind) for kind in "xy"]
    assert all(reference() is not None for reference in found)
    engine.put(node("c", zone="c"))
    counting(engine, "x")
    assert [reference() for reference in found] == [None, None], "also for the pod that did not come again"


def test_only_so_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread_constraints, "CACHE_ENTRIES_MAX", 2)
    engine = zones()
    found = [counting(engine, kind) for kind in "xyzuvw"]
    assert sum(reference() is not None for reference in found) == 2
