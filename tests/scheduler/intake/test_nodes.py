"""Nodes: what they leave in the columns, and what the queue hears of them."""

from __future__ import annotations

import logging

import pytest
from msgspec.structs import replace

from mooring.api.views.meta import Condition
from mooring.api.views.node import Node
from mooring.client.interface import Change
from mooring.scheduler.intake.nodes import NodeIntake
from tests.builders import node, pod
from tests.scheduler.harness import engine_of
from tests.scheduler.intake.listening import Heard, listening

N1 = node("n1", cpu=4)


def ready(view: Node, status: str, said: str) -> Node:
    conditions = (Condition(type="Ready", status=status, message=said),)
    return replace(view, status=replace(view.status, conditions=conditions))


UP = ready(N1, "True", "all is well")


@pytest.mark.parametrize(
    ("before", "after", "events"),
    [
        pytest.param(UP, ready(N1, "True", "all is still well"), [], id="a heartbeat wakes nobody"),
        pytest.param(N1, node("n1", cpu="4000m"), [], id="the same amount in other words wakes nobody"),
        pytest.param(UP, ready(N1, "False", "all is well"), ["NodeUpdateNodeCondition"], id="it is not ready any more"),
        pytest.param(N1, node("n1", cpu=8), ["NodeUpdateNodeAllocatable"], id="it has grown"),
        pytest.param(N1, node("n1", labels={"disk": "ssd"}), ["NodeUpdateNodeLabel"], id="it has a new label"),
        pytest.param(node("n1", taints=["a:NoSchedule"]), N1, ["NodeUpdateNodeTaint"], id="it has lost its taint"),
        pytest.param(
            N1,
            node("n1", cpu=8, labels={"disk": "ssd"}),
            ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"],
            id="several changes are several events",
        ),
    ],
)
def test_an_update_is_the_events_that_it_consists_of(before: Node, after: Node, events: list[str]) -> None:
    engine = engine_of(before)
    queue = listening(engine)
    NodeIntake(engine, queue).apply(Change.MODIFIED, after)
    assert queue.heard == [(event, "n1", "n1") for event in events]
    assert engine.columns.nodes[engine.columns.row_of["n1"]] is after, "the columns have the newest, heartbeats too"


def test_a_node_that_comes_is_in_the_columns_before_anybody_wakes() -> None:
    engine = engine_of()
    queue = listening(engine)
    NodeIntake(engine, queue).apply(Change.ADDED, N1)
    assert queue.heard == [("NodeAdd", None, "n1")]
    assert queue.believed == [("n1",)]


def test_a_node_that_goes_is_told_as_it_was_and_its_pods_outlive_it() -> None:
    engine = engine_of(N1, pod("web", uid="web", on="n1"))
    queue = listening(engine)
    intake = NodeIntake(engine, queue)
    intake.apply(Change.DELETED, node("n1", labels={"new": "label"}))
    assert queue.heard == [("NodeDelete", "n1", None)]
    assert (dict(engine.columns.row_of), list(engine.columns.pods)) == ({}, ["web"])
    intake.apply(Change.DELETED, N1)
    assert len(queue.heard) == 1, "a node that nobody knows cannot go"


def test_a_list_is_what_there_is() -> None:
    engine = engine_of(node("gone"), node("same"), node("grown", cpu=1))
    queue = listening(engine)
    NodeIntake(engine, queue).replace([node("same"), node("grown", cpu=2), node("new")], "7")
    expected: list[Heard] = [
        ("NodeDelete", "gone", None),
        ("NodeUpdateNodeAllocatable", "grown", "grown"),
        ("NodeAdd", None, "new"),
    ]
    assert queue.heard == expected
    assert sorted(engine.columns.row_of) == ["grown", "new", "same"]


@pytest.mark.parametrize(
    ("known", "cpu_milli"),
    [
        pytest.param((), None, id="a new node that cannot be read is none"),
        pytest.param((N1,), 4000, id="one that becomes unreadable stays as it was"),
    ],
)
def test_half_a_node_would_be_worse_than_none(
    known: tuple[Node, ...], cpu_milli: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    engine = engine_of(*known)
    queue = listening(engine)
    with caplog.at_level(logging.ERROR):
        NodeIntake(engine, queue).apply(Change.MODIFIED, node("n1", cpu="banana", labels={"disk": "ssd"}))
    assert queue.heard == []
    assert "Node n1 is left out because it cannot be read" in caplog.text
    row = engine.columns.row_of.get("n1")
    assert (None if row is None else int(engine.columns.resources.allocatable[0, row])) == cpu_milli
    assert row is None or engine.columns.nodes[row] is N1
