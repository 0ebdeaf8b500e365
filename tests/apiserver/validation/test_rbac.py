"""What is wrong with roles and bindings."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.rbac import (
    GROUP,
    aggregation_faults,
    role_binding_faults,
    role_change_faults,
    rules_faults,
)
from tests.apiserver.field_errors import messages

READ: Document = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
ROLE: Document = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"}


@pytest.mark.parametrize(
    ("rule", "is_namespaced", "faults"),
    [
        pytest.param(READ, True, [], id="a sound one"),
        pytest.param(
            {},
            True,
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
            ],
            id="an empty one",
        ),
        pytest.param({"verbs": ["get"], "nonResourceURLs": ["/x"]}, False, [], id="paths of the cluster"),
        pytest.param(
            {"verbs": ["get"], "nonResourceURLs": ["/x"]},
            True,
            ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
            id="paths of a namespace",
        ),
        pytest.param(
            {**READ, "nonResourceURLs": ["/x"]},
            False,
            [
                'rules[0].nonResourceURLs: Invalid value: ["/x"]: '
                "rules cannot apply to both regular resources and non-resource URLs"
            ],
            id="paths and resources",
        ),
    ],
)
def test_rules(rule: Document, is_namespaced: bool, faults: list[str]) -> None:
    assert messages(rules_faults([rule], is_namespaced)) == faults


@pytest.mark.parametrize(
    ("rule", "faults"),
    [
        pytest.param(None, [], id="none"),
        pytest.param({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}, [], id="a sound one"),
        pytest.param(
            {},
            [
                "aggregationRule.clusterRoleSelectors: Required value: "
                "at least one clusterRoleSelector required if aggregationRule is non-nil"
            ],
            id="an empty one",
        ),
        pytest.param(
            {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Q"}]}]},
            [
                "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: "
                'Invalid value: "Q": not a valid selector operator',
                "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.",
            ],
            id="a bad selector",
        ),
    ],
)
def test_aggregation(rule: Document | None, faults: list[str]) -> None:
    assert messages(aggregation_faults(rule, None)) == faults


@pytest.mark.parametrize(
    ("subject", "is_namespaced", "faults"),
    [
        pytest.param({"kind": "User", "name": "anna", "apiGroup": GROUP}, False, [], id="a user"),
        pytest.param({"kind": "ServiceAccount", "name": "s"}, True, [], id="an account of this namespace"),
        pytest.param(
            {"kind": "ServiceAccount", "name": "s"},
            False,
            ["subjects[0].namespace: Required value"],
            id="an account of no namespace",
        ),
        pytest.param(
            {"kind": "ServiceAccount", "name": "s", "apiGroup": "x"},
            True,
            ['subjects[0].apiGroup: Unsupported value: "x": supported values: ""'],
            id="an account of another group",
        ),
        pytest.param(
            {"kind": "User", "name": "u", "apiGroup": "x"},
            True,
            [f'subjects[0].apiGroup: Unsupported value: "x": supported values: "{GROUP}"'],
            id="a user of another group",
        ),
        pytest.param(
            {"kind": "Robot", "name": ""},
            True,
            [
                "subjects[0].name: Required value",
                'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
            ],
            id="nobody of no kind",
        ),
    ],
)
def test_subjects(subject: Document, is_namespaced: bool, faults: list[str]) -> None:
    assert messages(role_binding_faults({"roleRef": ROLE, "subjects": [subject]}, is_namespaced)) == faults


def test_a_binding_of_the_cluster_binds_roles_of_the_cluster() -> None:
    binding = {"roleRef": {"apiGroup": "x", "kind": "Role", "name": ""}}
    assert messages(role_binding_faults(binding, False)) == [
        f'roleRef.apiGroup: Unsupported value: "x": supported values: "{GROUP}"',
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
        "roleRef.name: Required value",
    ]


def test_a_binding_is_for_one_role() -> None:
    assert messages(role_change_faults({"roleRef": {**ROLE, "name": "edit"}}, {"roleRef": ROLE})) == [
        f'roleRef: Invalid value: {{"APIGroup":"{GROUP}","Kind":"ClusterRole","Name":"edit"}}: cannot change roleRef'
    ]
