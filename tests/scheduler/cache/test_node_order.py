"""The order of nodes: zones round robin, and each search from where the last one ended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.views.node import Node
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.node_order import NodeOrder, zone_of
from tests.builders import node

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION, OLD_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"


def names(columns: Columns, order: NodeOrder, among: Sequence[str] | None = None) -> list[str]:
    mask = None
    if among is not None:
        mask = np.zeros(columns.height, dtype=np.bool_)
        mask[columns.rows_named(among)] = True
    return [columns.node_names[row] for row in order.rows_in_order(mask).tolist()]


def known(*nodes: Node) -> tuple[Columns, NodeOrder]:
    columns = Columns()
    for node_view in nodes:
        columns.put_node(node_view)
    return columns, NodeOrder(columns)


@pytest.mark.parametrize(
    ("nodes", "order"),
    [
        pytest.param([node("b"), node("a"), node("c")], "bac", id="without zones, as they came"),
        pytest.param([node("a", zone="x"), node("b", zone="x"), node("c", zone="y")], "acb", id="zones in turn"),
        pytest.param(
            [node("a", zone="y"), node("b", zone="x"), node("c", zone="x"), node("d", zone="x"), node("e", zone="y")],
            "abecd",
            id="a zone that has no more is left out",
        ),
        pytest.param([node("a", zone="x"), node("b"), node("c")], "abc", id="no zone is a zone, too"),
        pytest.param(
            [node("a", zone="x"), node("b", zone="x", labels={REGION: "far"}), node("c", zone="x")],
            "abc",
            id="zones of two regions are two, even if they share a name",
        ),
    ],
)
def test_the_order_of_nodes(nodes: list[Node], order: str) -> None:
    assert "".join(names(*known(*nodes))) == order


@pytest.mark.parametrize(
    ("labelled", "zone"),
    [
        pytest.param(node(), "", id="no labels"),
        pytest.param(node(zone="x"), "\0x", id="a zone"),
        pytest.param(node(labels={REGION: "r"}), "r\0", id="a region alone"),
        pytest.param(
            node(zone="new", labels={OLD_ZONE: "old", OLD_REGION: "r"}), "r\0old", id="the old names come first"
        ),
        pytest.param(node(zone="new", labels={OLD_ZONE: ""}), "", id="even if they say nothing"),
    ],
)
def test_what_reports_zones_apart(labelled: Node, zone: str) -> None:
    assert zone_of(labelled) == zone


def test_a_search_starts_where_the_last_one_ended() -> None:
    columns, order = known(*(node(name) for name in "abcde"))
    order.advance(3)
    assert "".join(names(columns, order)) == "deabc"
    assert "".join(names(columns, order, among="abcd")) == "dabc", "of four nodes, the fourth is next"
    order.advance(4)
    assert "".join(names(columns, order)) == "cdeab"
    for name in "abc":
        columns.remove_node(name)
    assert "".join(names(columns, order)) == "de", "the start is read modulo what is there"


def test_without_nodes_there_is_no_order() -> None:
    columns, order = known()
    order.advance(3)
    assert names(columns, order) == []
    assert order.start == 0


# As a tree of zones, kept by hand

Step = tuple[str, str]


class Tree:
    """A list of zones, each with a list of nodes: what kube-scheduler keeps."""

    def __init__(self) -> None:
        self.zones: list[tuple[str, list[str]]] = []

    def put(self, name: str, zone: str) -> None:
        if name in dict(self.zones).get(zone, []):
            return
        self.remove(name)
        for known_zone, nodes in self.zones:
            if known_zone == zone:
                nodes.append(name)
                return
        self.zones.append((zone, [name]))

    def remove(self, name: str) -> None:
        for zone, nodes in self.zones:
            if name in nodes:
                nodes.remove(name)
                if not nodes:
                    self.zones.remove((zone, nodes))
                return

    def rows_in_order(self) -> list[str]:
        longest = max((len(nodes) for _, nodes in self.zones), default=0)
        return [nodes[turn] for turn in range(longest) for _, nodes in self.zones if turn < len(nodes)]


STEPS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["x", "y", "z", "gone"])), max_size=40)


@given(STEPS)
def test_any_history_leads_to_the_order_of_the_tree(steps: list[Step]) -> None:
    columns, tree = Columns(), Tree()
    order = NodeOrder(columns)
    for name, zone in steps:
        if zone == "gone":
            tree.remove(name)
            if name in columns.row_of:
                columns.remove_node(name)
        else:
            tree.put(name, zone)
            columns.put_node(node(name, zone=zone))
        assert names(columns, order) == tree.rows_in_order()


@given(STEPS)
def test_nodes_that_were_added_together_are_ordered_by_arrival(steps: list[Step]) -> None:
    columns, tree = Columns(), Tree()
    arrived: set[str] = set()
    for name, zone in steps:
        if name not in arrived and zone != "gone":
            arrived.add(name)
            tree.put(name, zone)
            columns.put_node(node(name, zone=zone))
    assert names(columns, NodeOrder(columns)) == tree.rows_in_order()
