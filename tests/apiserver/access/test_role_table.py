"""Tables of roles become role objects."""

from __future__ import annotations

from mooring.apiserver.access.role_table import binding_object, may, may_get, role_object, subject


def test_a_line_is_a_rule() -> None:
    assert may("get list", "core apps", "pods", "a b") == {
        "verbs": ["get", "list"],
        "apiGroups": ["", "apps"],
        "resources": ["pods"],
        "resourceNames": ["a", "b"],
    }
    assert may_get("/a /b/*") == {"verbs": ["get"], "nonResourceURLs": ["/a", "/b/*"]}


def test_documents_are_copies() -> None:
    rules = (may("get", "core", "pods"),)
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
