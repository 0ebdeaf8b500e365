"""What spread constraints reach is kept for a while, and no longer. (Which nodes count: see PodTopologySpread.)"""

from __future__ import annotations

from weakref import ReferenceType, ref

import pytest

from mooring.scheduler.cache.arrays import Bools
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.plugin import Proceed
from mooring.scheduler.plugins import spread_constraints
from mooring.scheduler.plugins.pod_topology_spread import PodTopologySpread
from tests.api.builders import node_selector, term
from tests.builders import ZONE, node, pod, spread
from tests.scheduler.harness import engine_of, plugin_of


def counting(engine: Engine, kind: str) -> ReferenceType[Bools]:
    """The nodes that count for a pod of this kind of node, as the plugin found them, held by nobody here."""
    wanting = pod(nodes=node_selector(term(f"kind In {kind}")), labels={"app": "web"}, spread=[spread(ZONE, app="web")])
    record = engine.record(wanting)
    answer = plugin_of(engine, PodTopologySpread).pre_filter(record)
    assert isinstance(answer, Proceed)
    return ref(answer.state[0].eligible)


def zones() -> Engine:
    return engine_of(node("a", zone="a", labels={"kind": "x"}), node("b", zone="b", labels={"kind": "y"}))


def test_a_pod_that_comes_again_finds_what_was_found() -> None:
    engine = zones()
    first = counting(engine, "x")()
    assert first is not None
    assert counting(engine, "x")() is first
    engine.put(pod("p", on="a"))
    assert counting(engine, "x")() is first


def test_after_a_node_changed_nobody_holds_what_was_found_before() -> None:
    engine = zones()
    found = [counting(engine, kind) for kind in "xy"]
    assert all(each() is not None for each in found)
    engine.put(node("c", zone="c"))
    counting(engine, "x")
    assert [each() for each in found] == [None, None], "also for the pod that did not come again"


def test_only_so_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread_constraints, "REACHES_MAX", 2)
    engine = zones()
    found = [counting(engine, kind) for kind in "xyzuvw"]
    assert sum(each() is not None for each in found) == 2
