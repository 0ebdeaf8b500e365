"""Nominated pods: at most one node each, in the order of nomination."""

from __future__ import annotations

from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.nominations import Nominations
from mooring.scheduler.cache.pods import PodInfo
from tests.builders import pod


def pods(*names: str) -> list[PodInfo]:
    columns = Columns()
    return [columns.record(pod(name)) for name in names]


def test_pods_are_found_by_node_in_the_order_of_nomination() -> None:
    nominations = Nominations()
    first, second, third = pods("a", "b", "c")
    for nominated in (second, first, third):
        nominations.add(nominated, "n1" if nominated is not third else "n2")
    assert list(nominations.on("n1")) == [second, first]
    assert list(nominations.nodes()) == ["n1", "n2"]
    assert nominations.node_of(third) == "n2"
    assert len(nominations) == 3


def test_a_new_nomination_replaces_the_old_one() -> None:
    nominations = Nominations()
    (nominated,) = pods("a")
    nominations.add(nominated, "n1")
    nominations.add(nominated, "n2")
    assert list(nominations.on("n1")) == []
    assert list(nominations.nodes()) == ["n2"]
    assert len(nominations) == 1


def test_a_withdrawn_nomination_leaves_nothing() -> None:
    nominations = Nominations()
    (nominated,) = pods("a")
    nominations.add(nominated, "n1")
    assert nominations.get(nominated.uid) is nominated
    assert nominations.remove(nominated) == "n1"
    assert nominations.remove(nominated) is None
    assert nominations.get(nominated.uid) is None
    assert nominations.node_of(nominated) is None
    assert (len(nominations), list(nominations.nodes())) == (0, [])
