"""Everything that a node has can be used, and its range has two names."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.defaults.node import default_node

FIRST, OTHER = "10.0.0.0/24", "10.0.1.0/24"


def test_capacity_can_be_allocated_and_is_rounded() -> None:
    node: Document = {"spec": {}, "status": {"capacity": {"cpu": "1.00001", "memory": "1Gi"}}}
    default_node(node)
    rounded = {"cpu": "1001m", "memory": "1Gi"}
    assert node["status"] == {"capacity": rounded, "allocatable": rounded}
    assert node["status"]["capacity"] is not node["status"]["allocatable"]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        pytest.param({}, {}, id="no range"),
        pytest.param({"podCIDR": FIRST}, {"podCIDR": FIRST, "podCIDRs": [FIRST]}, id="one"),
        pytest.param({"podCIDRs": [FIRST]}, {"podCIDR": FIRST, "podCIDRs": [FIRST]}, id="a list of one"),
        pytest.param(
            {"podCIDR": FIRST, "podCIDRs": [OTHER, FIRST]},
            {"podCIDR": FIRST, "podCIDRs": [FIRST]},
            id="the single one wins",
        ),
    ],
)
def test_the_range_of_the_pods(spec: Document, wanted: Document) -> None:
    node: Document = {"spec": dict(spec), "status": {}}
    default_node(node)
    default_node(node)
    assert node["spec"] == wanted
