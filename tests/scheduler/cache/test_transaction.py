"""Experiments on the columns: seen while they last, and gone after. (That nothing is left is a property test.)"""

from __future__ import annotations

import pytest

from mooring.scheduler.cache.resources import CPU
from mooring.scheduler.cache.transaction import Transaction
from mooring.scheduler.engine import Engine
from tests.builders import node, pod
from tests.scheduler.harness import engine_of


def cpu_milli(engine: Engine, name: str) -> int:
    return int(engine.columns.resources.used[CPU, engine.columns.row_of[name]])


def test_an_experiment_is_seen_while_it_lasts() -> None:
    engine = engine_of(node("n1"), node("n2"), pod("a", cpu=1, on="n1"))
    columns = engine.columns
    resident, stranger = columns.pods["default/a"], columns.record(pod("b", cpu=2))
    with Transaction(columns) as experiment:
        experiment.displace(resident)
        experiment.place(stranger, columns.row_of["n1"])
        experiment.place(resident, columns.row_of["n2"])
        assert (cpu_milli(engine, "n1"), cpu_milli(engine, "n2")) == (2000, 1000)
        assert resident.node_name == "n2"
        assert list(columns.pods_on[columns.row_of["n1"]]) == ["default/b"]
    assert (cpu_milli(engine, "n1"), cpu_milli(engine, "n2")) == (1000, 0)
    assert (resident.node_name, resident.row) == ("n1", columns.row_of["n1"])
    assert (stranger.node_name, stranger.row) == ("", -1)


def test_there_is_one_experiment_at_a_time() -> None:
    columns = engine_of(node("n1")).columns
    with Transaction(columns), pytest.raises(AssertionError, match="one transaction at a time"):
        Transaction(columns)
    with Transaction(columns):
        assert columns.in_transaction
    assert not columns.in_transaction


def test_an_experiment_that_fails_is_taken_back_too() -> None:
    engine = engine_of(node("n1"), pod("a", cpu=1, on="n1"))
    with pytest.raises(KeyError), Transaction(engine.columns) as experiment:
        experiment.displace(engine.columns.pods["default/a"])
        raise KeyError("something else went wrong")
    assert cpu_milli(engine, "n1") == 1000


def test_the_order_of_a_rows_pods_comes_back() -> None:
    engine = engine_of(node("n1"), *(pod(name, on="n1") for name in "abc"))
    columns = engine.columns
    with Transaction(columns) as experiment:
        first = columns.pods["default/a"]
        experiment.displace(first)
        experiment.place(first, 0)
        assert list(columns.pods_on[0]) == ["default/b", "default/c", "default/a"]
    assert list(columns.pods_on[0]) == ["default/a", "default/b", "default/c"]


def test_a_port_that_was_taken_before_is_taken_after() -> None:
    engine = engine_of(node("n1"), pod("a", ports=["80"], on="n1"))
    columns = engine.columns
    twin = columns.record(pod("twin", ports=["80"]))
    with Transaction(columns) as experiment:
        experiment.place(twin, 0)
        experiment.displace(twin)
        assert not columns.ports.conflicts_at(twin.signature.host_ports, 0), "the first of two frees it"
    assert columns.ports.conflicts_at(twin.signature.host_ports, 0)
