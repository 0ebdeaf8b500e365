"""PodTopologyLabels: a pod gets the zone and region labels of its node."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import NODE, POD
from mooring.apiserver.admission.pod_topology_labels import PodTopologyLabels
from mooring.apiserver.call import Operation
from tests.apiserver.admission.builders import Known, admitted, attempt, pod

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
KNOWN = Known({NODE: [{"metadata": {"name": "n", "labels": {ZONE: "z", REGION: "r", "other": "x"}}}]})


@pytest.mark.parametrize(
    ("labels", "target", "expected"),
    [
        pytest.param(None, {"kind": "Node", "name": "n"}, {ZONE: "z", REGION: "r"}, id="both labels, no others"),
        pytest.param(
            {ZONE: "mine", "a": "b"},
            {"kind": "Node", "name": "n"},
            {ZONE: "z", REGION: "r", "a": "b"},
            id="replaces the pod's labels",
        ),
        pytest.param(None, {"kind": "Node", "name": "missing"}, None, id="a missing node"),
        pytest.param(None, {"name": "n"}, None, id="a target without a kind"),
    ],
)
def test_a_binding_gets_the_topology_labels_of_its_node(labels: Any, target: Any, expected: Any) -> None:
    metadata = {"name": "p", **({"labels": labels} if labels else {})}
    made = attempt(POD, {"metadata": metadata, "target": target}, subresource="binding")
    assert admitted(PodTopologyLabels(), made, KNOWN)["metadata"].get("labels") == expected


@pytest.mark.parametrize(("spec", "expected"), [({"nodeName": "n"}, {ZONE: "z", REGION: "r"}), ({}, None)])
def test_a_new_pod_with_a_node_name_gets_the_topology_labels(spec: Any, expected: Any) -> None:
    assert admitted(PodTopologyLabels(), attempt(POD, pod(**spec)), KNOWN)["metadata"].get("labels") == expected


def test_other_subresources_are_not_handled() -> None:
    assert not PodTopologyLabels().handles(POD, "eviction", Operation.CREATE)
