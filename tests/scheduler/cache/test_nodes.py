"""Nodes by selector: columns answer for all rows what the compiled selector says of each node."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.api.nodeselector import compile_preferred, preferred_node_affinity, required_node_affinity
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.scheduler.cache import nodes
from mooring.scheduler.cache.columns import Columns
from tests.api.builders import node_selector, preferred, term
from tests.builders import ZONE, node, pod

NODES = (
    node("n1", zone="a", labels={"disk": "ssd", "cores": "16"}),
    node("n2", zone="b", labels={"disk": "hdd", "cores": "8"}),
    node("n3", zone="c", labels={"disk": "ssd"}),
    node("n4", labels={"cores": "many"}),
)


def columns_of(*views: Node) -> Columns:
    columns = Columns()
    for view in views:
        columns.put_node(view)
    return columns


def matching(columns: Columns, wanting: Pod) -> list[str]:
    """The nodes that match; asked in three ways, which must agree."""
    affinity = required_node_affinity(wanting)
    rows = np.arange(columns.height)
    together = columns.node_selection.required(affinity, rows)
    assert columns.node_selection.required(affinity, slice(0, columns.height)).tolist() == together.tolist()
    assert [columns.node_selection.required(affinity, rows[row : row + 1])[0] for row in rows] == together.tolist()
    return [columns.node_names[row] for row in np.flatnonzero(together)]


@pytest.mark.parametrize(
    ("wanting", "names"),
    [
        pytest.param(pod(), ["n1", "n2", "n3", "n4"], id="no wishes"),
        pytest.param(pod(node_labels={"disk": "ssd"}), ["n1", "n3"], id="a label"),
        pytest.param(pod(node_labels={"disk": "ssd", ZONE: "a"}), ["n1"], id="two labels"),
        pytest.param(pod(node_labels={"disk": "tape"}), [], id="a value that no node has"),
        pytest.param(pod(node_labels={"planet": "mars"}), [], id="a key that no node has"),
        pytest.param(pod(nodes=node_selector(term(f"{ZONE} In a,b"))), ["n1", "n2"], id="one of two values"),
        pytest.param(pod(nodes=node_selector(term(f"{ZONE} In a,b,c,d"))), ["n1", "n2", "n3"], id="one of many"),
        pytest.param(pod(nodes=node_selector(term("disk NotIn ssd"))), ["n2", "n4"], id="not in: absence is fine"),
        pytest.param(
            pod(nodes=node_selector(term(f"{ZONE} NotIn a,b,d,e"))), ["n3", "n4"], id="not in many: absence is fine"
        ),
        pytest.param(pod(nodes=node_selector(term("disk Exists"))), ["n1", "n2", "n3"], id="exists"),
        pytest.param(pod(nodes=node_selector(term("disk DoesNotExist"))), ["n4"], id="does not exist"),
        pytest.param(pod(nodes=node_selector(term("cores Gt 8"))), ["n1"], id="more than, where it is a number"),
        pytest.param(pod(nodes=node_selector(term("cores Lt 16"))), ["n2"], id="less than"),
        pytest.param(
            pod(nodes=node_selector(term("disk In ssd", f"{ZONE} In c"), term("cores In 8"))), ["n2", "n3"], id="terms"
        ),
        pytest.param(pod(nodes=node_selector(term())), [], id="an empty term matches nothing"),
        pytest.param(pod(nodes=node_selector()), [], id="no terms match nothing"),
        pytest.param(pod(nodes=node_selector(term(fields=["metadata.name In n2"]))), ["n2"], id="by name"),
        pytest.param(
            pod(nodes=node_selector(term(fields=["metadata.name NotIn n2"]))), ["n1", "n3", "n4"], id="not by name"
        ),
        pytest.param(pod(nodes=node_selector(term(fields=["metadata.name In n9"]))), [], id="by the name of nobody"),
        pytest.param(
            pod(node_labels={"disk": "ssd"}, nodes=node_selector(term(f"{ZONE} In c"))), ["n3"], id="selector and terms"
        ),
        pytest.param(pod(nodes=node_selector(term("disk Maybe"), term("cores In 8"))), ["n2"], id="a term in error"),
    ],
)
def test_nodes_that_match(wanting: Pod, names: list[str]) -> None:
    assert matching(columns_of(*NODES), wanting) == names


def test_preferences_add_up() -> None:
    columns = columns_of(*NODES)
    terms = preferred_node_affinity(
        pod(prefers_nodes=[preferred(5, "disk In ssd"), preferred(7, f"{ZONE} In a"), preferred(-2, "cores Exists")])
    )
    assert columns.node_selection.preference(terms, slice(0, 4)).tolist() == [10, -2, 5, -2]
    assert columns.node_selection.preference(compile_preferred(()), slice(0, 4)).tolist() == [0, 0, 0, 0]


def test_answers_follow_nodes_that_change() -> None:
    columns = columns_of(*NODES)
    wanting = pod(nodes=node_selector(term("cores Gt 8")))
    assert matching(columns, wanting) == ["n1"]
    columns.put_node(node("n2", labels={"cores": "32"}))
    columns.put_node(node("n1", labels={"cores": "4"}))
    assert matching(columns, wanting) == ["n2"]
    columns.remove_node("n2")
    columns.put_node(node("n9", labels={"cores": "9"}))
    assert matching(columns, wanting) == ["n9"]


def test_more_requirements_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "EVALUATIONS_MAX", 2)
    columns = columns_of(*NODES)
    for _ in range(2):
        for least, names in ((0, ["n1", "n2"]), (8, ["n1"]), (16, []), (15, ["n1"])):
            assert matching(columns, pod(nodes=node_selector(term(f"cores Gt {least}")))) == names
