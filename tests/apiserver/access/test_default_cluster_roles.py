"""Default roles: consistency of the tables of cluster roles and of controller roles."""

from __future__ import annotations

import pytest

from mooring.apiserver.access.default_roles import (
    CLUSTER_ROLES,
    CONTROLLER_ROLES,
    binding_object,
    role_object,
    rule,
    subject,
)


def test_rule_parses_a_line_of_the_table() -> None:
    assert rule("get list | core apps | pods | a b") == {
        "verbs": ["get", "list"],
        "apiGroups": ["", "apps"],
        "resources": ["pods"],
        "resourceNames": ["a", "b"],
    }
    assert rule("get | /a /b/*") == {"verbs": ["get"], "nonResourceURLs": ["/a", "/b/*"]}


def test_role_object_copies_the_rules() -> None:
    rules = (rule("get | core | pods"),)
    role_object("ClusterRole", "r", rules)["rules"][0]["verbs"].append("list")
    assert rules[0]["verbs"] == ["get"]


def test_role_object_and_binding_object() -> None:
    assert role_object("Role", "r", (), "web") == {
        "kind": "Role",
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {
            "name": "r",
            "namespace": "web",
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
        "rules": None,
    }
    bound = binding_object("b", ("ClusterRole", "r"), [subject("User", "u"), subject("ServiceAccount", "s")])
    assert bound["kind"] == "ClusterRoleBinding"
    assert bound["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    assert bound["subjects"] == [
        {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "kube-system"},
    ]
    assert "subjects" not in binding_object("b", ("ClusterRole", "r"), [])


@pytest.mark.parametrize("name", sorted(CLUSTER_ROLES))
def test_lists_of_cluster_roles_are_sorted(name: str) -> None:
    for each in CLUSTER_ROLES[name]:
        for message in ("verbs", "resources", "resourceNames", "nonResourceURLs"):
            assert each.get(message, []) == sorted(each.get(message, []))


def test_verb_list_implies_watch() -> None:
    for rules in CLUSTER_ROLES.values():
        assert [each for each in rules if "list" in each["verbs"] and "watch" not in each["verbs"]] == []


@pytest.mark.parametrize("name", sorted(CONTROLLER_ROLES))
def test_lists_of_controller_roles_are_sorted(name: str) -> None:
    for each in CONTROLLER_ROLES[name]:
        for message in ("verbs", "resources", "resourceNames", "nonResourceURLs"):
            assert each.get(message, []) == sorted(each.get(message, []))


def test_each_controller_has_a_role() -> None:
    assert len(CONTROLLER_ROLES) == 38
    assert {"replicaset-controller", "node-controller", "generic-garbage-collector"} <= set(CONTROLLER_ROLES)
