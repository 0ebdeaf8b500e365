"""Bounds: never better than a real placement, and exact where a placement can reach them."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.scheduler.plan.bound import NOT_INSTALLED, fewest_used_nodes, most_pods
from mooring.scheduler.plan.planner import Planner
from mooring.scheduler.plan.request import NodeType, PlanRequest, Question
from tests.builders import node, owned_by, pod
from tests.scheduler.plan.test_planner import engine_with

WEB = owned_by("ReplicaSet", "web")

CPUS = st.lists(st.integers(1, 8), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(CPUS, st.lists(st.integers(2, 16), min_size=1, max_size=3))
def test_no_plan_is_cheaper_than_the_bound(cpus: list[int], sizes: list[int]) -> None:
    pods = tuple(pod(f"p{number}", cpu=cpu) for number, cpu in enumerate(cpus))
    types = tuple(
        NodeType(f"t{number}", node(f"t{number}", cpu=size), float(size)) for number, size in enumerate(sizes)
    )
    planner = Planner(engine_with(node("n1", cpu=3)), lambda: ())
    result = planner.plan(PlanRequest(Question.ADD_NODES, pods=pods, node_types=types))
    assert result.bound is not None
    assert result.bound.value is not None
    assert sum(each.price for each in result.nodes_to_add) >= result.bound.value - 1e-6


@settings(max_examples=60, deadline=None)
@given(CPUS)
def test_no_placement_has_more_pods_than_the_bound(cpus: list[int]) -> None:
    pods = tuple(pod(f"p{number}", cpu=cpu) for number, cpu in enumerate(cpus))
    engine = engine_with(node("n1", cpu=8), node("n2", cpu=4))
    bound = most_pods(engine, [engine.record(view) for view in pods])
    result = Planner(engine, lambda: ()).plan(PlanRequest(Question.PLACE, pods=pods))
    assert bound.value is not None
    assert len(result.placements) <= bound.value


def test_a_bound_that_is_reached() -> None:
    pods = tuple(pod(f"p{number}", cpu=2) for number in range(8))
    planner = Planner(engine_with(node("n1", pods=0)), lambda: ())
    types = (NodeType("m", node("m", cpu=4)),)
    result = planner.plan(PlanRequest(Question.ADD_NODES, pods=pods, node_types=types))
    assert result.nodes_to_add[0].count == 4
    assert result.bound is not None
    assert result.bound.text == "no plan needs fewer than 4 nodes."


def test_selectors_and_taints_count() -> None:
    engine = engine_with(
        node("n1", cpu=8), node("n2", cpu=8, labels={"disk": "ssd"}), node("n3", taints=["x:NoSchedule"])
    )
    pods = [engine.record(pod(f"p{number}", cpu=4, node_labels={"disk": "ssd"})) for number in range(5)]
    assert most_pods(engine, pods).value == 2


def test_pods_that_cannot_move_keep_their_nodes() -> None:
    engine = engine_with(
        *(node(f"n{number}", cpu=4) for number in range(3)),
        pod("bare", cpu=1, on="n0"),
        pod("web-1", cpu=4, on="n1", owner=WEB),
        pod("web-2", cpu=1, on="n2", owner=WEB),
    )
    assert fewest_used_nodes(engine).value == 2


def test_without_the_solver_the_text_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    engine = engine_with(node("n1"))
    bound = most_pods(engine, [engine.record(pod("p"))])
    assert (bound.value, bound.text) == (None, NOT_INSTALLED)
