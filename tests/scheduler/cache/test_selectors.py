"""Pods counted by selector: for each row and for each domain, from whenever somebody asks."""

from __future__ import annotations

import pytest

from mooring.api.labels import compile_selector
from mooring.api.views.selectors import LabelSelector
from mooring.scheduler.cache import selectors
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.selectors import Counter, Part
from tests.api.builders import selector
from tests.builders import ZONE, node, pod
from tests.scheduler.harness import engine_of

WEB, DB = {"app": "web"}, {"app": "db"}


def part(selected: LabelSelector | None, *namespaces: str) -> Part:
    return Part(frozenset(namespaces) if namespaces else None, compile_selector(selected))


def count(columns: Columns, *parts: Part, terminating: bool = False) -> Counter:
    return columns.selectors.counter(parts, wants_terminating=terminating)


def rows(columns: Columns, counter: Counter) -> dict[str, int]:
    return {name: int(counter.rows[row]) for name, row in columns.row_of.items() if counter.rows[row]}


def zones(columns: Columns, counter: Counter) -> dict[str | None, int]:
    column = columns.labels.column(ZONE)
    counts = counter.domains(column, columns.height)
    return {column.values[code]: int(counts[code]) for code in range(column.codes_max) if counts[code]}


CLUSTER = (
    node("n1", zone="a"),
    node("n2", zone="a"),
    node("n3", zone="b"),
    node("n4"),
    pod("w1", labels=WEB, on="n1"),
    pod("w2", labels=WEB, on="n2"),
    pod("w3", labels=WEB, on="n2", terminating=True),
    pod("w4", labels=WEB, on="n3", namespace="shop"),
    pod("w5", labels=WEB, on="n4"),
    pod("d1", labels=DB | {"tier": "x"}, on="n3"),
    pod("nobody", on="n1"),
)


@pytest.mark.parametrize(
    ("parts", "terminating", "counted"),
    [
        pytest.param([part(selector(app="web"))], False, {"n1": 1, "n2": 1, "n3": 1, "n4": 1}, id="in any namespace"),
        pytest.param([part(selector(app="web"), "default")], False, {"n1": 1, "n2": 1, "n4": 1}, id="in one"),
        pytest.param(
            [part(selector(app="web"), "default")], True, {"n1": 1, "n2": 2, "n4": 1}, id="and on its way out"
        ),
        pytest.param([part(selector(), "default")], False, {"n1": 2, "n2": 1, "n3": 1, "n4": 1}, id="everybody"),
        pytest.param([part(None)], False, {}, id="no selector selects nobody"),
        pytest.param([part(selector("app In web,db"), "shop", "default")], False, {"n1": 1, "n2": 1, "n3": 2, "n4": 1}),
        pytest.param([part(selector("tier Exists"))], False, {"n3": 1}, id="by an expression"),
        pytest.param([part(selector("app NotIn web"), "default")], False, {"n1": 1, "n3": 1}, id="without the label"),
        pytest.param([part(selector(app="db")), part(selector(tier="x"))], False, {"n3": 1}, id="all parts must match"),
        pytest.param([part(selector(app="db")), part(selector(app="web"))], False, {}, id="which nobody does"),
    ],
)
def test_whom_a_counter_counts(parts: list[Part], terminating: bool, counted: dict[str, int]) -> None:
    asked_late = engine_of(*CLUSTER).columns
    assert rows(asked_late, count(asked_late, *parts, terminating=terminating)) == counted
    engine = engine_of()
    counter = count(engine.columns, *parts, terminating=terminating)
    for each in CLUSTER:
        engine.put(each)
    assert rows(engine.columns, counter) == counted, "asked before anybody came"


def test_domains_are_sums_of_rows() -> None:
    columns = engine_of(*CLUSTER).columns
    assert zones(columns, count(columns, part(selector(app="web")))) == {"a": 2, "b": 1, None: 1}


def test_domains_follow_pods_and_nodes() -> None:
    engine = engine_of(*CLUSTER)
    columns = engine.columns
    counter = count(columns, part(selector(app="web"), "default"))
    assert zones(columns, counter) == {"a": 2, None: 1}
    engine.put(pod("w6", labels=WEB, on="n3"))
    engine.remove(pod("w1", labels=WEB, on="n1"))
    assert zones(columns, counter) == {"a": 1, "b": 1, None: 1}
    engine.put(node("n4", zone="b"))
    assert zones(columns, counter) == {"a": 1, "b": 2}
    engine.put(node("n2", zone="new"))
    assert zones(columns, counter) == {"new": 1, "b": 2}
    engine.put(node("n2", zone="b"))
    assert zones(columns, counter) == {"b": 3}
    engine.put(node("n2", zone="new"))
    engine.remove(node("n3"))
    assert zones(columns, counter) == {"new": 1, "b": 1}


def test_whoever_asks_for_the_same_gets_the_same_counter() -> None:
    columns = Columns()
    same = count(columns, part(selector("app In web"), "a", "b"))
    assert count(columns, part(selector(app="web"), "b", "a")) is same
    assert count(columns, part(selector(app="web"), "b", "a"), terminating=True) is not same
    assert count(columns, part(selector(app="web"))) is not same


def test_a_counter_that_was_retired_counts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(*CLUSTER)
    columns = engine.columns
    kept = count(columns, part(selector(app="web"), "default"))
    monkeypatch.setattr(selectors, "COUNTERS_BYTES_MAX", 1)
    for number in range(3):
        count(columns, part(selector(app=str(number))))
    assert not kept.registered
    engine.put(pod("w6", labels=WEB, on="n1"))
    assert rows(columns, columns.selectors.fresh(kept)) == {"n1": 2, "n2": 1, "n4": 1}


def test_counters_grow_with_the_table() -> None:
    engine = engine_of()
    counter = count(engine.columns, part(selector(app="web")))
    for number in range(200):
        engine.put(node(f"n{number}", zone=str(number % 7)))
    engine.put(pod("w", labels=WEB, on="n199"))
    assert rows(engine.columns, counter) == {"n199": 1}
    assert zones(engine.columns, counter) == {"3": 1}
