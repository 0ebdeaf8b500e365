"""Tests of kinds.node."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import NODE
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.node import (
    node_selector_term_warnings,
    validate_config_source,
    validate_config_status,
    validate_node,
    validate_node_update,
)
from tests.apiserver.core_documents import call, changed, created, document, messages, strategy

FIRST, OTHER = "10.0.0.0/24", "10.0.1.0/24"


def test_allocatable_defaults_to_the_rounded_capacity() -> None:
    node: Document = {"spec": {}, "status": {"capacity": {"cpu": "1.00001", "memory": "1Gi"}}}
    strategy_of(NODE).default(node)
    rounded = {"cpu": "1001m", "memory": "1Gi"}
    assert node["status"] == {"capacity": rounded, "allocatable": rounded}
    assert node["status"]["capacity"] is not node["status"]["allocatable"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {}, id="no range"),
        pytest.param({"podCIDR": FIRST}, {"podCIDR": FIRST, "podCIDRs": [FIRST]}, id="one"),
        pytest.param({"podCIDRs": [FIRST]}, {"podCIDR": FIRST, "podCIDRs": [FIRST]}, id="a list of one"),
        pytest.param(
            {"podCIDR": FIRST, "podCIDRs": [OTHER, FIRST]},
            {"podCIDR": FIRST, "podCIDRs": [FIRST]},
            id="podCIDR wins",
        ),
    ],
)
def test_pod_cidr_and_pod_cidrs_are_synchronized(spec: Document, expected: Document) -> None:
    node: Document = {"spec": dict(spec), "status": {}}
    strategy_of(NODE).default(node)
    strategy_of(NODE).default(node)
    assert node["spec"] == expected


REFERENCE = {"namespace": "web", "name": "kubelet", "kubeletConfigKey": "config"}


def test_a_config_source_in_the_spec_must_not_have_a_uid() -> None:
    assert validate_config_source({"configMap": REFERENCE}, "c") == []
    assert messages(validate_config_source({"configMap": {**REFERENCE, "uid": "u", "name": ""}}, "c")) == [
        "c.configMap.uid: Forbidden: uid must not be set in spec",
        "c.configMap.name: Required value",
    ]


def test_a_config_source_in_the_status_must_have_uid_and_resource_version() -> None:
    found = {"configMap": {**REFERENCE, "uid": "u", "resourceVersion": "1"}}
    assert validate_config_status({"active": found, "error": "none"}, "c") == []
    assert messages(validate_config_status({"assigned": {}, "active": {"configMap": REFERENCE}}, "c")) == [
        'c.assigned: Invalid value: {"ConfigMap":null}: exactly one reference subfield must be non-nil',
        "c.active.configMap.uid: Required value",
        "c.active.configMap.resourceVersion: Required value",
    ]


AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
TAINTS = "scheduler.alpha.kubernetes.io/taints"
ONCE = 'Forbidden: node updates may not change {} except from "" to valid'


@pytest.mark.parametrize(
    ("parts", "errors"),
    [
        pytest.param({}, [], id="only a name"),
        pytest.param(
            {"spec": {"taints": [{"key": "a", "effect": "Bad"}]}},
            [
                'metadata.taints[0].effect: Unsupported value: "Bad": supported values: "NoSchedule", '
                '"PreferNoSchedule", "NoExecute"'
            ],
            id="an unknown effect",
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
            id="a duplicate taint",
        ),
        pytest.param(
            {"status": {"capacity": {"example.com/gpu": "500m"}, "allocatable": {"cpu": "-1"}}},
            [
                'status.capacity.example.com/gpu: Invalid value: "500m": must be an integer',
                'status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0',
            ],
            id="invalid amounts",
        ),
        pytest.param(
            {"status": {"nodeInfo": {"swap": {"capacity": 0}}}},
            ["metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero"],
            id="swap of zero",
        ),
        pytest.param(
            {"status": {"declaredFeatures": ["B", "A", "A"]}},
            [
                'status.declaredFeatures[1]: Invalid value: "A": list must be sorted alphabetically',
                'status.declaredFeatures[2]: Duplicate value: "A"',
            ],
            id="unsorted features",
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
            id="invalid preferAvoidPods",
        ),
        pytest.param(
            {"metadata": {"annotations": {AVOID: '{"preferAvoidPods":[{}]}'}}},
            [f"metadata.annotations.{AVOID}[0].PodSignature: Required value"],
            id="preferAvoidPods without a signature",
        ),
        pytest.param(
            {"metadata": {"annotations": {TAINTS: "{}"}}},
            [
                f'metadata.annotations: Invalid value: "{TAINTS}": '
                "json: cannot unmarshal object into Go value of type []core.Taint"
            ],
            id="invalid taints in the annotation",
        ),
    ],
)
def test_nodes_are_validated(parts: Document, errors: list[str]) -> None:
    assert messages(validate_node(document(NODE, **parts))) == errors


def test_an_invalid_pod_cidr_of_two_has_three_errors() -> None:
    errors = messages(validate_node(document(NODE, spec={"podCIDRs": ["x", "fd00::/64"]})))
    assert [error.partition(":")[0] for error in errors] == ["spec.podCIDRs[0]", "spec.podCIDRs", "spec.podCIDRs"]
    assert errors[1].endswith("invalid CIDR[0]: <nil> (invalid CIDR address: x)")


@pytest.mark.parametrize(
    ("spec", "errors"),
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
            id="a removed CIDR and an empty config source",
        ),
    ],
)
def test_some_fields_of_nodes_can_be_set_only_once(spec: Document, errors: list[str]) -> None:
    old = document(NODE, spec={"podCIDR": "10.0.0.0/24", "providerID": "p", "externalID": "e"})
    assert messages(validate_node_update(document(NODE, spec=spec), old)) == errors


def test_duplicate_addresses_of_nodes_are_rejected() -> None:
    address = {"type": "InternalIP", "address": "1.2.3.4"}
    node = document(NODE, status={"addresses": [address, address]})
    assert messages(validate_node_update(node, document(NODE))) == [
        'status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"1.2.3.4"}'
    ]


def test_deprecated_labels_in_node_selector_terms_have_a_warning() -> None:
    term = {"matchExpressions": [{"key": "zone"}, {"key": "beta.kubernetes.io/os"}]}
    assert node_selector_term_warnings(term, "t") == [
        't.matchExpressions[1].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead'
    ]
    assert node_selector_term_warnings({}, "t") == []


CONFIG = {"configMap": {"namespace": "a", "name": "b", "kubeletConfigKey": "c"}}


def test_a_new_node_keeps_its_status_without_removed_fields() -> None:
    node = document(
        NODE, spec={"configSource": CONFIG}, status={"phase": "Running", "config": {"error": "x"}, "images": []}
    )
    assert created(NODE, node) == []
    assert "configSource" not in node["spec"]
    assert node["status"]["phase"] == "Running"
    assert "config" not in node["status"]


def test_updates_and_status_updates_of_nodes_change_only_their_part() -> None:
    old = document(NODE, status={"phase": "Running"})
    errors, node = changed(NODE, old, spec={"unschedulable": True, "configSource": CONFIG}, status={})
    assert errors == []
    assert node["spec"] == {"unschedulable": True}
    assert node["status"] == old["status"]
    errors, node = changed(NODE, old, "status", spec={"unschedulable": True}, status={"config": {"error": "x"}})
    assert errors == []
    assert node["spec"] == {}
    assert "config" not in node["status"]
    assert "phase" not in node["status"]


def test_an_update_of_a_node_is_validated_twice() -> None:
    errors, _ = changed(NODE, document(NODE), spec={"taints": [{"key": "a"}]})
    assert errors == ["metadata.taints[0].effect: Required value"] * 2


def test_deprecated_fields_of_nodes_have_a_warning() -> None:
    node = document(NODE, spec={"externalID": "e", "podCIDRs": ["FD00::/64"]})
    assert strategy(NODE).warnings_on_create(node, call(NODE)) == [
        "spec.externalID: this field is deprecated, and is unused by Kubernetes",
        'spec.podCIDRs[0]: IPv6 CIDR value "FD00::/64" should be in RFC 5952 canonical format ("fd00::/64")',
    ]
    kept = {**document(NODE), "spec": {"configSource": CONFIG}}
    assert strategy(NODE).warnings_on_update(kept, kept, call(NODE)) == ["spec.configSource: the feature is removed"]


def test_nodes_can_be_selected_by_unschedulable() -> None:
    fields = [strategy(NODE).selectable_fields(document(NODE, spec={"unschedulable": flag})) for flag in (True, False)]
    assert fields == [{"spec.unschedulable": "true"}, {"spec.unschedulable": "false"}]
