"""Selectors as they are written down."""

from __future__ import annotations

from mooring.api.decode import convert_as
from mooring.api.views.selectors import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)


def test_what_is_read_of_a_label_selector() -> None:
    written = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Bogus", "values": ["d"]}]}
    assert convert_as(LabelSelector, written) == LabelSelector(
        match_labels={"a": "b"},
        match_expressions=(LabelSelectorRequirement(key="c", operator="Bogus", values=("d",)),),
    )


def test_node_selectors_can_be_keys_of_a_dictionary() -> None:
    written = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
    selector = convert_as(NodeSelector, written)
    assert selector == NodeSelector(
        node_selector_terms=(
            NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="a", operator="Exists"),)),
        )
    )
    assert {selector: "found"}[convert_as(NodeSelector, written)] == "found"


def test_what_is_read_of_a_topology_term() -> None:
    written = {"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}
    assert convert_as(TopologySelectorTerm, written) == TopologySelectorTerm(
        match_label_expressions=(TopologySelectorLabelRequirement(key="zone", values=("a", "b")),)
    )
