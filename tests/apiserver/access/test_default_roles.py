"""A new cluster lets everybody do what Kubernetes lets them do."""

from __future__ import annotations

from collections import Counter

import pytest

from mooring.apiserver.access.default_roles import default_objects
from mooring.apiserver.access.rbac import RoleAuthorizer
from mooring.apiserver.access.users import User
from tests.apiserver.access.builders import asks, binding, put, user


def _fresh_cluster() -> RoleAuthorizer:
    roles = RoleAuthorizer()
    for resource, namespace, document in default_objects():
        roles.put(resource, namespace, document["metadata"]["name"], document)
    for name in ("admin", "edit", "view"):
        put(roles, binding(f"User {name}", to=f"ClusterRole {name}", name=name, namespace="web"))
    return roles


CLUSTER = _fresh_cluster()
ANYBODY = user("anna", "system:authenticated")
STRANGER = user("system:anonymous", "system:unauthenticated")
SCHEDULER = user("system:kube-scheduler", "system:authenticated")
MANAGER = user("system:kube-controller-manager", "system:authenticated")
REPLICAS = user("system:serviceaccount:kube-system:replicaset-controller", "system:authenticated")


@pytest.mark.parametrize(
    ("who", "request_text"),
    [
        (ANYBODY, "get /apis/apps/v1"),
        (ANYBODY, "get /openapi/v3"),
        (ANYBODY, "create selfsubjectaccessreviews.authorization.k8s.io"),
        (ANYBODY, "create selfsubjectreviews.authentication.k8s.io"),
        (STRANGER, "get /healthz"),
        (STRANGER, "get /version"),
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
def test_it_is_allowed(who: User, request_text: str) -> None:
    assert CLUSTER.authorize(asks(who, request_text)).is_allowed


@pytest.mark.parametrize(
    ("who", "request_text"),
    [
        (ANYBODY, "list pods in web"),
        (ANYBODY, "get /metrics"),
        (STRANGER, "get /apis"),
        (STRANGER, "get /healthz/ping"),
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
def test_it_is_not_allowed(who: User, request_text: str) -> None:
    assert not CLUSTER.authorize(asks(who, request_text)).is_allowed


def test_there_are_as_many_as_in_the_original() -> None:
    counted = Counter(resource for resource, _, _ in default_objects())
    assert counted == {"clusterroles": 69, "clusterrolebindings": 50, "roles": 7, "rolebindings": 7}


def test_every_binding_leads_to_a_role_and_every_object_is_marked() -> None:
    objects = list(default_objects())
    roles = {(each.document["kind"], each.namespace, each.document["metadata"]["name"]) for each in objects}
    for _, namespace, document in objects:
        assert document["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
        assert document["metadata"]["annotations"] == {"rbac.authorization.kubernetes.io/autoupdate": "true"}
        if "roleRef" in document:
            reference = document["roleRef"]
            home = namespace if reference["kind"] == "Role" else ""
            assert (reference["kind"], home, reference["name"]) in roles


def test_admin_gathers_edit_and_edit_gathers_view() -> None:
    found = {document["metadata"]["name"]: document for resource, _, document in default_objects()}
    label = "rbac.authorization.k8s.io/aggregate-to-"
    for name, gathered_by in (("view", "edit"), ("edit", "admin")):
        assert found[name]["rules"] is None
        assert found[name]["metadata"]["labels"][f"{label}{gathered_by}"] == "true"
        selector = {"matchLabels": {f"{label}{name}": "true"}}
        assert found[name]["aggregationRule"] == {"clusterRoleSelectors": [selector]}
        assert found[f"system:aggregate-to-{name}"]["metadata"]["labels"][f"{label}{name}"] == "true"
