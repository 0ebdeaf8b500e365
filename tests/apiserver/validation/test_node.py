"""Nodes: taints that can be told apart, amounts that can be, address ranges that never change."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import NODE
from mooring.apiserver.validation.node import node_faults, node_update_faults
from tests.apiserver.core_documents import document
from tests.apiserver.field_errors import messages

AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
TAINTS = "scheduler.alpha.kubernetes.io/taints"
ONCE = 'Forbidden: node updates may not change {} except from "" to valid'


@pytest.mark.parametrize(
    ("parts", "faults"),
    [
        pytest.param({}, [], id="a name is enough"),
        pytest.param(
            {"spec": {"taints": [{"key": "a", "effect": "Bad"}]}},
            [
                'metadata.taints[0].effect: Unsupported value: "Bad": supported values: "NoSchedule", '
                '"PreferNoSchedule", "NoExecute"'
            ],
            id="an effect that nobody knows",
        ),
        pytest.param(
            {"spec": {"taints": [{"key": "a"}]}}, ["metadata.taints[0].effect: Required value"], id="no effect"
        ),
        pytest.param(
            {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}] * 2}},
            [
                'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoExecute","TimeAdded":null}: '
                "taints must be unique by key and effect pair"
            ],
            id="one taint twice",
        ),
        pytest.param(
            {"status": {"capacity": {"example.com/gpu": "500m"}, "allocatable": {"cpu": "-1"}}},
            [
                'status.capacity.example.com/gpu: Invalid value: "500m": must be an integer',
                'status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0',
            ],
            id="amounts that cannot be",
        ),
        pytest.param(
            {"status": {"nodeInfo": {"swap": {"capacity": 0}}}},
            ["metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero"],
            id="no swap at all",
        ),
        pytest.param(
            {"status": {"declaredFeatures": ["B", "A", "A"]}},
            [
                'status.declaredFeatures[1]: Invalid value: "A": list must be sorted alphabetically',
                'status.declaredFeatures[2]: Duplicate value: "A"',
            ],
            id="features in disorder",
        ),
        pytest.param(
            {"spec": {"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]}},
            [
                'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one CIDR for '
                "each IP family"
            ],
            id="two ranges of one family",
        ),
        pytest.param(
            {"metadata": {"annotations": {AVOID: "x"}}},
            [
                f'metadata.annotations.AvoidPods: Invalid value: "{AVOID}": '
                "invalid character 'x' looking for beginning of value"
            ],
            id="pods to avoid that cannot be read",
        ),
        pytest.param(
            {"metadata": {"annotations": {AVOID: '{"preferAvoidPods":[{}]}'}}},
            [f"metadata.annotations.{AVOID}[0].PodSignature: Required value"],
            id="pods to avoid without a signature",
        ),
        pytest.param(
            {"metadata": {"annotations": {TAINTS: "{}"}}},
            [
                f'metadata.annotations: Invalid value: "{TAINTS}": '
                "json: cannot unmarshal object into Go value of type []core.Taint"
            ],
            id="taints in an annotation that are none",
        ),
    ],
)
def test_nodes(parts: Document, faults: list[str]) -> None:
    assert messages(node_faults(document(NODE, **parts))) == faults


def test_a_broken_range_among_two_is_told_three_times() -> None:
    faults = messages(node_faults(document(NODE, spec={"podCIDRs": ["x", "fd00::/64"]})))
    assert [fault.partition(":")[0] for fault in faults] == ["spec.podCIDRs[0]", "spec.podCIDRs", "spec.podCIDRs"]
    assert faults[1].endswith("invalid CIDR[0]: <nil> (invalid CIDR address: x)")


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param({"podCIDR": "10.0.0.0/24", "providerID": "p", "externalID": "e"}, [], id="nothing changed"),
        pytest.param(
            {"podCIDR": "10.0.1.0/24", "providerID": "q", "externalID": "f"},
            [
                f"spec.podCIDRs: {ONCE.format('podCIDR')}",
                f"spec.providerID: {ONCE.format('providerID')}",
                "spec.externalID: Forbidden: may not be updated",
            ],
            id="everything that is set once",
        ),
        pytest.param(
            {"providerID": "p", "externalID": "e", "configSource": {}},
            [
                f"spec.podCIDRs: {ONCE.format('podCIDR')}",
                'spec.configSource: Invalid value: {"ConfigMap":null}: exactly one reference subfield must be non-nil',
            ],
            id="a range taken away, and a configuration from nowhere",
        ),
    ],
)
def test_what_is_set_once(spec: Document, faults: list[str]) -> None:
    old = document(NODE, spec={"podCIDR": "10.0.0.0/24", "providerID": "p", "externalID": "e"})
    assert messages(node_update_faults(document(NODE, spec=spec), old)) == faults


def test_an_address_is_told_once() -> None:
    address = {"type": "InternalIP", "address": "1.2.3.4"}
    node = document(NODE, status={"addresses": [address, address]})
    assert messages(node_update_faults(node, document(NODE))) == [
        'status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"1.2.3.4"}'
    ]
