"""Binding a pod to a node."""

from __future__ import annotations

from copy import deepcopy

import pytest

from mooring.api.document import Document
from mooring.apiserver.strategies.pod_binding import binding_refusal, bound_pod
from tests.apiserver.pod_builders import NOW, changed, pod, stored


@pytest.mark.parametrize(
    ("spec", "metadata", "refusal"),
    [
        pytest.param({}, {}, "", id="a free pod"),
        pytest.param({"nodeName": "n1"}, {}, 'pod p is already assigned to node "n1"', id="one that has a node"),
        pytest.param(
            {}, {"deletionTimestamp": NOW}, "pod p is being deleted, cannot be assigned to a host", id="one that ends"
        ),
        pytest.param(
            {"schedulingGates": [{"name": "g"}]},
            {},
            "pod p has non-empty .spec.schedulingGates",
            id="one behind a gate",
        ),
    ],
)
def test_refusals(spec: Document, metadata: Document, refusal: str) -> None:
    assert binding_refusal(changed(stored(pod()), spec, metadata)) == refusal


def test_a_bound_pod_has_its_node_and_what_the_binding_brings() -> None:
    old = stored(pod(metadata={"labels": {"a": "b", "zone": "old"}}))
    old["status"]["nominatedNodeName"] = "n2"
    before = deepcopy(old)
    binding = {"metadata": {"labels": {"zone": "new"}, "annotations": {"c": "d"}}, "target": {"name": "n1"}}
    new = bound_pod(old, binding, NOW)
    assert old == before
    assert (new["spec"]["nodeName"], new["metadata"]["labels"]) == ("n1", {"a": "b", "zone": "new"})
    assert new["metadata"]["annotations"] == {"c": "d"}
    assert "nominatedNodeName" not in new["status"]
    assert new["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": NOW}
    ]
