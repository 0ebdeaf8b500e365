"""Old names of node labels are told, and where they stand."""

from __future__ import annotations

from mooring.apiserver.strategies.node_label_warnings import node_selector_term_warnings


def test_old_names_are_told() -> None:
    term = {"matchExpressions": [{"key": "zone"}, {"key": "beta.kubernetes.io/os"}]}
    assert node_selector_term_warnings(term, "t") == [
        't.matchExpressions[1].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead'
    ]
    assert node_selector_term_warnings({}, "t") == []
