"""Tests of kinds.role and kinds.role_binding."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.role import GROUP, validate_aggregation, validate_rules
from mooring.apiserver.kinds.role_binding import validate_role_binding, validate_role_change
from tests.apiserver.core_documents import messages
from tests.apiserver.workload_builders import body, created, defaulted, updated

READ: Document = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
ROLE: Document = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"}


@pytest.mark.parametrize(
    ("rule", "is_namespaced", "errors"),
    [
        pytest.param(READ, True, [], id="valid"),
        pytest.param(
            {},
            True,
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
            ],
            id="empty",
        ),
        pytest.param(
            {"verbs": ["get"], "nonResourceURLs": ["/x"]}, False, [], id="non-resource URLs of a cluster role"
        ),
        pytest.param(
            {"verbs": ["get"], "nonResourceURLs": ["/x"]},
            True,
            ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
            id="non-resource URLs of a role",
        ),
        pytest.param(
            {**READ, "nonResourceURLs": ["/x"]},
            False,
            [
                'rules[0].nonResourceURLs: Invalid value: ["/x"]: '
                "rules cannot apply to both regular resources and non-resource URLs"
            ],
            id="non-resource URLs and resources",
        ),
    ],
)
def test_policy_rules_are_validated(rule: Document, is_namespaced: bool, errors: list[str]) -> None:
    assert messages(validate_rules([rule], is_namespaced)) == errors


@pytest.mark.parametrize(
    ("rule", "errors"),
    [
        pytest.param(None, [], id="none"),
        pytest.param({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}, [], id="valid"),
        pytest.param(
            {},
            [
                "aggregationRule.clusterRoleSelectors: Required value: "
                "at least one clusterRoleSelector required if aggregationRule is non-nil"
            ],
            id="empty",
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
def test_aggregation_rules_are_validated(rule: Document | None, errors: list[str]) -> None:
    assert messages(validate_aggregation(rule, None)) == errors


@pytest.mark.parametrize(
    ("subject", "is_namespaced", "errors"),
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
            id="an unknown kind without a name",
        ),
    ],
)
def test_subjects_are_validated(subject: Document, is_namespaced: bool, errors: list[str]) -> None:
    assert messages(validate_role_binding({"roleRef": ROLE, "subjects": [subject]}, is_namespaced)) == errors


def test_cluster_role_bindings_must_refer_to_cluster_roles() -> None:
    binding = {"roleRef": {"apiGroup": "x", "kind": "Role", "name": ""}}
    assert messages(validate_role_binding(binding, False)) == [
        f'roleRef.apiGroup: Unsupported value: "x": supported values: "{GROUP}"',
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
        "roleRef.name: Required value",
    ]


def test_the_role_reference_is_immutable() -> None:
    assert messages(validate_role_change({"roleRef": {**ROLE, "name": "edit"}}, {"roleRef": ROLE})) == [
        f'roleRef: Invalid value: {{"APIGroup":"{GROUP}","Kind":"ClusterRole","Name":"edit"}}: cannot change roleRef'
    ]


@pytest.mark.parametrize("kind", ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"])
@pytest.mark.parametrize(
    ("name", "errors"),
    [
        pytest.param("system:Anything at all", [], id="any name"),
        pytest.param("a/b", ["metadata.name: Invalid value: \"a/b\": may not contain '/'"], id="a slash"),
    ],
)
def test_names_of_roles_and_bindings_are_path_segments(kind: str, name: str, errors: list[str]) -> None:
    assert created(body(kind, metadata__name=name)).errors == errors


@pytest.mark.parametrize("kind", ["Role", "ClusterRole"])
def test_empty_rules_are_stored_as_null(kind: str) -> None:
    assert created(body(kind, rules=[])).obj["rules"] is None


def test_an_update_cannot_change_the_role_reference() -> None:
    old = created(body("RoleBinding")).obj
    (error,) = updated(body("RoleBinding", roleRef__name="other"), old).errors
    assert error.endswith("cannot change roleRef")


def test_an_update_of_a_role_is_validated_like_a_new_role() -> None:
    old = created(body("Role")).obj
    assert updated(body("Role", rules=[{"verbs": ["get"], "apiGroups": [""]}]), old).errors == [
        "rules[0].resources: Required value: resource rules must supply at least one resource"
    ]


def test_api_groups_of_role_references_and_subjects_are_defaulted() -> None:
    subjects = [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]
    obj = defaulted(body("RoleBinding", subjects=subjects))
    assert obj["roleRef"]["apiGroup"] == GROUP
    assert [subject.get("apiGroup") for subject in obj["subjects"]] == [GROUP, None]
