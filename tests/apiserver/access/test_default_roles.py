"""The default roles grant the permissions of those of Kubernetes, and are reconciled; consistency of their tables."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.access.default_roles import (
    CLUSTER_ROLES,
    CONTROLLER_ROLES,
    binding_object,
    default_objects,
    reconciled,
    role_object,
    rule,
    subject,
)
from mooring.apiserver.access.rbac import RoleAuthorizer
from mooring.serving.users import User
from tests.apiserver.access.builders import binding, may, put, request_attributes, user


def _fresh_cluster() -> RoleAuthorizer:
    roles = RoleAuthorizer()
    for resource, namespace, document in default_objects():
        roles.put(resource, namespace, document["metadata"]["name"], document)
    for name in ("admin", "edit", "view"):
        put(roles, binding(f"User {name}", to=f"ClusterRole {name}", name=name, namespace="web"))
    return roles


CLUSTER = _fresh_cluster()
AUTHENTICATED = user("anna", "system:authenticated")
ANONYMOUS = user("system:anonymous", "system:unauthenticated")
SCHEDULER = user("system:kube-scheduler", "system:authenticated")
MANAGER = user("system:kube-controller-manager", "system:authenticated")
REPLICAS = user("system:serviceaccount:kube-system:replicaset-controller", "system:authenticated")


@pytest.mark.parametrize(
    ("who", "request_text"),
    [
        (AUTHENTICATED, "get /apis/apps/v1"),
        (AUTHENTICATED, "get /openapi/v3"),
        (AUTHENTICATED, "create selfsubjectaccessreviews.authorization.k8s.io"),
        (AUTHENTICATED, "create selfsubjectreviews.authentication.k8s.io"),
        (ANONYMOUS, "get /healthz"),
        (ANONYMOUS, "get /version"),
        (user("x", "system:masters"), "delete nodes n"),
        (user("x", "system:masters"), "get /metrics"),
        (user("x", "system:monitoring"), "get /metrics"),
        (SCHEDULER, "create pods/binding p in web"),
        (SCHEDULER, "patch pods/status p in web"),
        (SCHEDULER, "update leases.coordination.k8s.io kube-scheduler in kube-system"),
        (SCHEDULER, "create leases.coordination.k8s.io in kube-system"),
        (SCHEDULER, "update persistentvolumeclaims c in web"),
        (SCHEDULER, "update resourceclaims/status.resource.k8s.io c in web"),
        (MANAGER, "list anything.example"),
        (MANAGER, "create serviceaccounts/token s in web"),
        (REPLICAS, "create pods in web"),
        (REPLICAS, "update replicasets/status.apps r in web"),
        (user("admin"), "create roles.rbac.authorization.k8s.io in web"),
        (user("admin"), "delete pods p in web"),
        (user("admin"), "list configmaps in web"),
        (user("edit"), "update deployments/scale.apps d in web"),
        (user("edit"), "get secrets s in web"),
        (user("edit"), "list pods in web"),
        (user("view"), "get pods/log p in web"),
    ],
)
def test_default_roles_allow(who: User, request_text: str) -> None:
    assert CLUSTER.authorize(request_attributes(who, request_text)).is_allowed


@pytest.mark.parametrize(
    ("who", "request_text"),
    [
        (AUTHENTICATED, "list pods in web"),
        (AUTHENTICATED, "get /metrics"),
        (ANONYMOUS, "get /apis"),
        (ANONYMOUS, "get /healthz/ping"),
        (SCHEDULER, "create pods in web"),
        (SCHEDULER, "update leases.coordination.k8s.io other in web"),
        (REPLICAS, "create nodes"),
        (user("admin"), "list pods in shop"),
        (user("admin"), "update resourcequotas q in web"),
        (user("edit"), "create roles.rbac.authorization.k8s.io in web"),
        (user("view"), "get secrets s in web"),
        (user("view"), "delete pods p in web"),
        (user("system:node:n1", "system:nodes"), "list services"),
    ],
)
def test_default_roles_do_not_allow(who: User, request_text: str) -> None:
    assert not CLUSTER.authorize(request_attributes(who, request_text)).is_allowed


def test_the_number_of_default_objects_equals_that_of_kubernetes() -> None:
    counted = Counter(resource for resource, _, _ in default_objects())
    assert counted == {"clusterroles": 69, "clusterrolebindings": 50, "roles": 7, "rolebindings": 7}


def test_every_default_binding_references_a_default_role_and_every_object_is_labelled() -> None:
    objects = list(default_objects())
    roles = {(each.document["kind"], each.namespace, each.document["metadata"]["name"]) for each in objects}
    for _, namespace, document in objects:
        assert document["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
        assert document["metadata"]["annotations"] == {"rbac.authorization.kubernetes.io/autoupdate": "true"}
        if "roleRef" in document:
            reference = document["roleRef"]
            home = namespace if reference["kind"] == "Role" else ""
            assert (reference["kind"], home, reference["name"]) in roles


def test_admin_aggregates_edit_and_edit_aggregates_view() -> None:
    found = {document["metadata"]["name"]: document for resource, _, document in default_objects()}
    label = "rbac.authorization.k8s.io/aggregate-to-"
    for name, gathered_by in (("view", "edit"), ("edit", "admin")):
        assert found[name]["rules"] is None
        assert found[name]["metadata"]["labels"][f"{label}{gathered_by}"] == "true"
        selector = {"matchLabels": {f"{label}{name}": "true"}}
        assert found[name]["aggregationRule"] == {"clusterRoleSelectors": [selector]}
        assert found[f"system:aggregate-to-{name}"]["metadata"]["labels"][f"{label}{name}"] == "true"


DEFAULTS = {(resource, document["metadata"]["name"]): document for resource, _, document in default_objects()}
ROLE = DEFAULTS["clusterroles", "system:kube-dns"]
AGGREGATED = DEFAULTS["clusterroles", "view"]
BINDING = DEFAULTS["clusterrolebindings", "system:basic-user"]


def _with(document: Document, **changes: Any) -> Document:
    return {**deepcopy(document), **changes}


@pytest.mark.parametrize("default", [ROLE, AGGREGATED, BINDING], ids=["a role", "an aggregated role", "a binding"])
def test_a_complete_default_object_is_not_changed(default: Document) -> None:
    assert reconciled(deepcopy(default), default) is None


def test_missing_rules_are_added_and_others_stay() -> None:
    changed = reconciled(_with(ROLE, rules=[may("list", "endpoints services"), may("get", "pods")]), ROLE)
    assert changed is not None
    assert changed["rules"] == [
        may("list", "endpoints services"),
        may("get", "pods"),
        may("watch", "endpoints"),
        may("watch", "services"),
    ]


def test_a_role_with_more_rules_than_by_default_is_not_changed() -> None:
    assert reconciled(_with(ROLE, rules=[may("*", "*", "*")]), ROLE) is None


def test_missing_aggregation_selectors_are_added() -> None:
    other = {"matchLabels": {"a": "b"}}
    changed = reconciled(_with(AGGREGATED, aggregationRule={"clusterRoleSelectors": [other]}), AGGREGATED)
    assert changed is not None
    assert changed["aggregationRule"]["clusterRoleSelectors"] == [
        other,
        *AGGREGATED["aggregationRule"]["clusterRoleSelectors"],
    ]


def test_an_aggregation_rule_that_the_default_role_lacks_is_removed() -> None:
    changed = reconciled(_with(ROLE, aggregationRule={"clusterRoleSelectors": []}), ROLE)
    assert changed == ROLE


def test_missing_subjects_are_added_and_others_stay() -> None:
    anna = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "anna"}
    changed = reconciled(_with(BINDING, subjects=[anna]), BINDING)
    assert changed is not None
    assert changed["subjects"] == [anna, *BINDING["subjects"]]


def test_a_binding_with_another_role_reference_is_replaced() -> None:
    assert reconciled(_with(BINDING, roleRef={"kind": "ClusterRole", "name": "x"}), BINDING) is BINDING


def test_missing_labels_and_annotations_are_restored_and_changed_ones_stay() -> None:
    stored = deepcopy(ROLE)
    stored["metadata"]["labels"] = {"kubernetes.io/bootstrapping": "mine", "a": "b"}
    del stored["metadata"]["annotations"]
    changed = reconciled(stored, ROLE)
    assert changed is not None
    assert changed["metadata"]["labels"] == {"kubernetes.io/bootstrapping": "mine", "a": "b"}
    assert changed["metadata"]["annotations"] == ROLE["metadata"]["annotations"]


def test_autoupdate_false_disables_reconciliation() -> None:
    stored = _with(ROLE, rules=[])
    stored["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false"
    assert reconciled(stored, ROLE) is None


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
