"""The table of default cluster roles holds together.

The table of the controllers' roles holds together.
"""

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


def test_a_line_is_a_rule() -> None:
    assert rule("get list | core apps | pods | a b") == {
        "verbs": ["get", "list"],
        "apiGroups": ["", "apps"],
        "resources": ["pods"],
        "resourceNames": ["a", "b"],
    }
    assert rule("get | /a /b/*") == {"verbs": ["get"], "nonResourceURLs": ["/a", "/b/*"]}


def test_documents_are_copies() -> None:
    rules = (rule("get | core | pods"),)
    role_object("ClusterRole", "r", rules)["rules"][0]["verbs"].append("list")
    assert rules[0]["verbs"] == ["get"]


def test_a_role_and_a_binding() -> None:
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
def test_lists_stand_in_the_order_of_the_alphabet(name: str) -> None:
    for each in CLUSTER_ROLES[name]:
        for message in ("verbs", "resources", "resourceNames", "nonResourceURLs"):
            assert each.get(message, []) == sorted(each.get(message, []))


def test_list_implies_watch() -> None:
    for rules in CLUSTER_ROLES.values():
        assert [each for each in rules if "list" in each["verbs"] and "watch" not in each["verbs"]] == []


@pytest.mark.parametrize("name", sorted(CONTROLLER_ROLES))
def test_lists_of_controller_roles_stand_in_the_order_of_the_alphabet(name: str) -> None:
    for each in CONTROLLER_ROLES[name]:
        for message in ("verbs", "resources", "resourceNames", "nonResourceURLs"):
            assert each.get(message, []) == sorted(each.get(message, []))


def test_there_is_one_for_each_controller() -> None:
    assert len(CONTROLLER_ROLES) == 38
    assert {"replicaset-controller", "node-controller", "generic-garbage-collector"} <= set(CONTROLLER_ROLES)
