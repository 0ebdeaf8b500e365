"""The columns: rows of nodes, sums of pods, and pods whose node does not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from mooring.api.views.meta import Condition
from mooring.api.views.node import Node
from mooring.scheduler.cache.columns import PRIORITY_NONE, Columns, Transaction
from mooring.scheduler.cache.resources import CPU, PODS
from mooring.scheduler.engine import Engine
from tests.api.builders import taint
from tests.builders import node, pod, pods_like
from tests.scheduler.cache.logical_state import logical_state
from tests.scheduler.harness import engine_of


def used(columns: Columns, name: str) -> tuple[int, int]:
    """How many pods a node has, and how much cpu they requested."""
    row = columns.row_of[name]
    return int(columns.resources.used[PODS, row]), int(columns.resources.used[CPU, row])


def test_a_row_belongs_to_its_node_until_the_node_is_removed() -> None:
    columns = engine_of(node("n1"), node("n2"), node("n3")).columns
    row = columns.row_of["n2"]
    columns.put_node(node("n2", cpu=64))
    assert columns.row_of["n2"] == row
    columns.remove_node("n2")
    assert "n2" not in columns.row_of
    assert (columns.node_count, columns.height, columns.alive[row]) == (2, 3, False)
    columns.put_node(node("n4"))
    assert columns.row_of["n4"] == row, "free rows are used again"
    assert columns.height == 3


def test_live_rows_are_a_slice_while_there_are_no_gaps() -> None:
    columns = engine_of(node("n1"), node("n2"), node("n3")).columns
    assert columns.live_rows == slice(0, 3)
    columns.remove_node("n2")
    assert isinstance(columns.live_rows, np.ndarray)
    assert columns.live_rows.tolist() == [0, 2]
    columns.put_node(node("n4"))
    assert columns.live_rows == slice(0, 3)


def test_pods_are_summed_up_on_their_row() -> None:
    engine = engine_of(node("n1"), pod("a", cpu="500m", on="n1"), pod("b", cpu=1, on="n1"))
    assert used(engine.columns, "n1") == (2, 1500)
    engine.remove(pod("a"))
    assert used(engine.columns, "n1") == (1, 1000)


def test_a_node_that_changes_keeps_its_pods() -> None:
    engine = engine_of(node("n1"), pod("a", cpu=1, on="n1"))
    engine.put(node("n1", cpu=8, zone="z", taints=["gpu:NoSchedule"], unschedulable=True))
    assert used(engine.columns, "n1") == (1, 1000)
    assert engine.columns.unschedulable[engine.columns.row_of["n1"]]


def test_pods_of_an_unknown_node_wait_for_it() -> None:
    engine = engine_of(pod("early", cpu=1, on="n1"), node("n2"))
    assert list(engine.columns.pods) == ["default/early"]
    assert used(engine.columns, "n2") == (0, 0)
    engine.put(node("n1"))
    assert used(engine.columns, "n1") == (1, 1000)


def test_pods_outlive_their_node() -> None:
    engine = engine_of(node("n1"), pod("a", cpu=1, on="n1"), pod("b", cpu=2, on="n1"))
    engine.remove(node("n1"))
    assert sorted(engine.columns.pods) == ["default/a", "default/b"]
    engine.remove(pod("a"))
    engine.put(node("n1"))
    assert used(engine.columns, "n1") == (1, 2000)


def test_the_lowest_priority_of_a_row() -> None:
    engine = engine_of(node("n1"))
    columns = engine.columns
    assert columns.priority_lowest[0] == PRIORITY_NONE
    for name, priority in (("a", 10), ("b", -5), ("c", 7)):
        engine.put(pod(name, priority=priority, on="n1"))
    assert columns.priority_lowest[0] == -5
    engine.remove(pod("b"))
    assert columns.priority_lowest[0] == 7
    engine.remove(pod("c"))
    engine.remove(pod("a"))
    assert columns.priority_lowest[0] == PRIORITY_NONE


def test_a_pod_cannot_be_placed_twice() -> None:
    columns = engine_of(node("n1"), node("n2")).columns
    record = columns.record(pod("a"))
    columns.place(record, "n1")
    with pytest.raises(AssertionError, match="is placed already"):
        columns.place(record, "n2")


SORTS_OF_PODS: list[dict[str, Any]] = [
    {"cpu": 1},
    {"memory": "1Gi", "priority": 7},
    {"terminating": True},
    {"ports": ["8080"]},
    {"claims": ["data"]},
    {"apart": [pods_like("zone", app="web")]},
]


@pytest.mark.parametrize("copies", [1, 40], ids=["one by one", "by shape"])
def test_pods_that_are_placed_together_count_as_if_placed_alone(copies: int) -> None:
    alone, together = (engine_of(node("n1", zone="a"), node("n2", zone="b")).columns for _ in range(2))
    views = [
        pod(f"p{number}-{copy}-{name}", labels={"app": "web"}, on=name, **sort)
        for number, sort in enumerate(SORTS_OF_PODS)
        for copy in range(copies)
        for name in ("n1", "n2", "unknown")
    ]
    for view in views:
        alone.place(alone.record(view), view.spec.node_name)
    together.place_all([together.record(view) for view in views])
    assert logical_state(together) == logical_state(alone)
    assert together.priority_lowest.tolist() == alone.priority_lowest.tolist()
    assert [record.arrival for record in together.pods.values()] == [record.arrival for record in alone.pods.values()]
    changed = together.usage_changes.since(0)
    assert changed is not None
    assert changed.tolist() == [0, 1]


@pytest.mark.parametrize("sort", [{"cpu": 1}, {"terminating": True}, {"ports": ["80"]}, {"near": [pods_like("zone")]}])
def test_a_relabelled_pod_counts_as_if_placed_again(sort: dict[str, Any]) -> None:
    relabelled, anew = (engine_of(node("n1", zone="a"), node("n2", zone="b")).columns for _ in range(2))
    before = pod("p", on="n1", labels={"app": "web"}, **sort)
    after = pod("p", on="n1", labels={"app": "web", "zone": "a"}, **sort)
    for columns in (relabelled, anew):
        columns.place(columns.record(before), "n1")
        columns.place(columns.record(pod("q", on="n1", labels={"app": "web"}, **sort)), "n1")
    position = relabelled.usage_changes.position
    known = relabelled.pods["default/p"]
    relabelled.relabel(known, relabelled.record(after))
    anew.displace(anew.pods["default/p"])
    anew.place(anew.record(after), "n1")
    assert logical_state(relabelled) == logical_state(anew)
    changed = relabelled.usage_changes.since(position)
    assert (changed is not None and changed.tolist(), known.row) == ([0], -1)
    relabelled.displace(relabelled.pods["default/p"])
    assert used(relabelled, "n1")[0] == 1


def test_only_labels_and_owners_can_be_changed_in_place() -> None:
    columns = engine_of(node("n1")).columns
    columns.place(columns.record(pod("p", on="n1", cpu=1)), "n1")
    with pytest.raises(AssertionError, match="differs from"):
        columns.relabel(columns.pods["default/p"], columns.record(pod("p", on="n1", cpu=2)))


def test_changes_are_logged_by_what_they_touch() -> None:
    engine = engine_of(node("n1"), node("n2"))
    columns = engine.columns
    usage, facts = columns.usage_changes.position, columns.fact_changes.position
    engine.put(pod("a", on="n2"))
    assert columns.usage_changes.since(usage) == [columns.row_of["n2"]]
    assert columns.fact_changes.position == facts
    usage = columns.usage_changes.position
    engine.put(node("n1", cpu=64))
    assert columns.fact_changes.since(facts) == [columns.row_of["n1"]]
    assert columns.usage_changes.position == usage
    engine.put(pod("q", nominated="n1"))
    assert columns.usage_changes.since(usage) == [columns.row_of["n1"]], "a nominated pod counts like a placed one"


HEARTBEAT = replace(node("n1"), status=replace(node("n1").status, conditions=(Condition(type="Ready"),)))


@pytest.mark.parametrize(
    ("changed", "is_logged"),
    [
        pytest.param(HEARTBEAT, False, id="a heartbeat changes nothing"),
        pytest.param(node("n1"), False, id="nor does the same again"),
        pytest.param(node("n1", labels={"a": "b"}), True, id="labels"),
        pytest.param(node("n1", taints=["a:NoSchedule"]), True, id="taints"),
        pytest.param(node("n1", unschedulable=True), True, id="a cordon"),
        pytest.param(node("n1", cpu=5), True, id="capacity"),
        pytest.param(node("n1", images={"web:1": 1}), True, id="images"),
        pytest.param(node("n1", features=["Swim"]), True, id="features"),
    ],
)
def test_what_counts_as_a_change_of_a_node(changed: Node, is_logged: bool) -> None:
    columns = engine_of(node("n1")).columns
    position = columns.fact_changes.position
    columns.put_node(changed)
    assert (columns.fact_changes.position > position) is is_logged
    assert columns.nodes[0] is changed


def test_a_table_of_any_size() -> None:
    engine = engine_of(*(node(f"n{number}", cpu=number) for number in range(300)))
    columns = engine.columns
    engine.put(pod("a", cpu=1, on="n299"))
    assert columns.height == columns.node_count == 300 <= columns.capacity
    assert columns.resources.allocatable[CPU, columns.row_of["n299"]] == 299_000
    assert used(columns, "n299") == (1, 1000)
    assert columns.priority_lowest[columns.row_of["n298"]] == PRIORITY_NONE


def test_rows_by_name() -> None:
    columns = engine_of(node("n1"), node("n2"), node("n3")).columns
    assert columns.rows_named(["n3", "nowhere", "n1", "n3"]).tolist() == [0, 2]


def test_a_row_that_changes_hands_has_nothing_of_its_former_node() -> None:
    engine = engine_of(node("n1", zone="a", taints=["gpu:NoSchedule"], unschedulable=True, images={"web:1": 9}))
    engine.put(pod("a", cpu=1, on="n1", ports=["80"]))
    engine.remove(node("n1"))
    engine.put(node("n2"))
    columns, row = engine.columns, engine.columns.row_of["n2"]
    assert row == 0
    assert not columns.unschedulable[row]
    assert columns.taints.sets[columns.taints.set_of_row[row]] == ()
    assert columns.images.holders == {}
    assert used(columns, "n2") == (0, 0)
    assert columns.nodes[row] == node("n2")
    assert taint("gpu:NoSchedule") in columns.taints.sets[1], "sets stay interned"


def cpu_milli(engine: Engine, name: str) -> int:
    return int(engine.columns.resources.used[CPU, engine.columns.row_of[name]])


def test_a_transaction_is_seen_while_it_lasts() -> None:
    engine = engine_of(node("n1"), node("n2"), pod("a", cpu=1, on="n1"))
    columns = engine.columns
    resident, stranger = columns.pods["default/a"], columns.record(pod("b", cpu=2))
    with Transaction(columns) as transaction:
        transaction.displace(resident)
        transaction.place(stranger, columns.row_of["n1"])
        transaction.place(resident, columns.row_of["n2"])
        assert (cpu_milli(engine, "n1"), cpu_milli(engine, "n2")) == (2000, 1000)
        assert resident.node_name == "n2"
        assert list(columns.pods_on[columns.row_of["n1"]]) == ["default/b"]
    assert (cpu_milli(engine, "n1"), cpu_milli(engine, "n2")) == (1000, 0)
    assert (resident.node_name, resident.row) == ("n1", columns.row_of["n1"])
    assert (stranger.node_name, stranger.row) == ("", -1)


def test_there_is_one_transaction_at_a_time() -> None:
    columns = engine_of(node("n1")).columns
    with Transaction(columns), pytest.raises(AssertionError, match="one transaction at a time"):
        Transaction(columns)
    with Transaction(columns):
        assert columns.in_transaction
    assert not columns.in_transaction


def test_a_transaction_that_fails_is_taken_back_too() -> None:
    engine = engine_of(node("n1"), pod("a", cpu=1, on="n1"))
    with pytest.raises(KeyError), Transaction(engine.columns) as transaction:
        transaction.displace(engine.columns.pods["default/a"])
        raise KeyError("something else went wrong")
    assert cpu_milli(engine, "n1") == 1000


def test_the_order_of_a_rows_pods_comes_back() -> None:
    engine = engine_of(node("n1"), *(pod(name, on="n1") for name in "abc"))
    columns = engine.columns
    with Transaction(columns) as transaction:
        first = columns.pods["default/a"]
        transaction.displace(first)
        transaction.place(first, 0)
        assert list(columns.pods_on[0]) == ["default/b", "default/c", "default/a"]
    assert list(columns.pods_on[0]) == ["default/a", "default/b", "default/c"]


def test_a_port_that_was_taken_before_is_taken_after() -> None:
    engine = engine_of(node("n1"), pod("a", ports=["80"], on="n1"))
    columns = engine.columns
    same_port = columns.record(pod("same_port", ports=["80"]))
    with Transaction(columns) as transaction:
        transaction.place(same_port, 0)
        transaction.displace(same_port)
        assert not columns.ports.conflicts_at(same_port.signature.host_ports, 0), "the first of two frees it"
    assert columns.ports.conflicts_at(same_port.signature.host_ports, 0)
