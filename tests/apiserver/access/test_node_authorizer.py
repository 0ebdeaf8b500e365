"""Node authorizer: a node may access its own objects and read what its pods need.

Node graph: a node is related to the objects of its pods, and to nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME, POD, RESOURCE_SLICE, VOLUME_ATTACHMENT
from mooring.apiserver.access.default_roles import node_rules
from mooring.apiserver.access.node_authorizer import NodeAuthorizer, NodeGraph
from mooring.serving.users import User
from tests.apiserver.access.builders import request_attributes, user

NODE = User("system:node:n1", groups=("system:nodes", "system:authenticated"))


def _is_related(node: str, resource: str, namespace: str, name: str) -> bool:
    return node == "n1" and name == "mine"


AUTHORIZER = NodeAuthorizer(node_rules(), _is_related)
UNRELATED = "no relationship found between node 'n1' and this object"


@pytest.mark.parametrize(
    "request_text",
    [
        "create tokenreviews.authentication.k8s.io",
        "list services",
        "create nodes",
        "get nodes n1",
        "watch nodes n1",
        "patch nodes n1",
        "update nodes/status n1",
        "create events in web",
        "create pods in web",
        "delete pods p in web",
        "patch pods/status p in web",
        "create pods/eviction p in web",
        "get pods mine in web",
        "watch pods mine in web",
        "get secrets mine in web",
        "watch configmaps mine in web",
        "get persistentvolumeclaims mine in web",
        "patch persistentvolumeclaims/status mine in web",
        "get persistentvolumes mine",
        "get resourceclaims.resource.k8s.io mine in web",
        "get volumeattachments.storage.k8s.io mine",
        "get serviceaccounts mine in web",
        "create serviceaccounts/token mine in web",
        "create leases.coordination.k8s.io in kube-node-lease",
        "update leases.coordination.k8s.io n1 in kube-node-lease",
        "create csinodes.storage.k8s.io",
        "update csinodes.storage.k8s.io n1",
        "create resourceslices.resource.k8s.io",
        "update resourceslices.resource.k8s.io mine",
        "list runtimeclasses.node.k8s.io",
    ],
)
def test_allowed_requests_of_a_node(request_text: str) -> None:
    assert AUTHORIZER.authorize(request_attributes(NODE, request_text)).is_allowed


@pytest.mark.parametrize(
    ("request_text", "reason"),
    [
        ("list deployments.apps in web", ""),
        ("get /metrics", ""),
        ("delete nodes n1", ""),
        ("get nodes/proxy n1", ""),
        ("list nodes", "node 'n1' cannot read all nodes, only its own Node object"),
        ("get nodes n2", "node 'n1' cannot read 'n2', only its own Node object"),
        ("get pods other in web", UNRELATED),
        ("list pods", "can only list/watch pods with spec.nodeName field selector"),
        ("update pods p in web", ""),
        ("get secrets other in web", UNRELATED),
        ("list secrets in web", "No Object name found"),
        ("list secrets", "can only read namespaced object of this type"),
        ("update secrets mine in web", "can only read resources of this type"),
        ("get configmaps/status mine in web", "cannot read subresource"),
        ("list persistentvolumes", "can only get individual resources of this type"),
        ("get persistentvolumes/status mine", "cannot get subresource"),
        ("get persistentvolumeclaims/status mine in web", "can only get/update/patch this type"),
        ("list serviceaccounts in web", "can only create tokens for individual service accounts"),
        ("create serviceaccounts/other mine in web", "can only create token subresource of serviceaccount"),
        ("create serviceaccounts/token other in web", UNRELATED),
        ("list leases.coordination.k8s.io", "can only get, create, update, patch, or delete a node lease"),
        (
            "get leases.coordination.k8s.io n1 in web",
            'can only access leases in the "kube-node-lease" system namespace',
        ),
        (
            "get leases.coordination.k8s.io n2 in kube-node-lease",
            "can only access node lease with the same name as the requesting node",
        ),
        ("list csinodes.storage.k8s.io", "can only get, create, update, patch, or delete a CSINode"),
        ("get csinodes/status.storage.k8s.io n1", "cannot authorize CSINode subresources"),
        ("get csinodes.storage.k8s.io n2", "can only access CSINode with the same name as the requesting node"),
        (
            "list resourceslices.resource.k8s.io",
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        ("get resourceslices/status.resource.k8s.io mine", "cannot authorize ResourceSlice subresources"),
        (
            "escalate resourceslices.resource.k8s.io mine",
            "only the following verbs are allowed for a ResourceSlice: "
            "get, watch, list, create, update, patch, delete, deletecollection",
        ),
    ],
)
def test_forbidden_requests_of_a_node(request_text: str, reason: str) -> None:
    decision = AUTHORIZER.authorize(request_attributes(NODE, request_text))
    assert (decision.is_allowed, decision.reason) == (False, reason)


@pytest.mark.parametrize("resource", ["pods", "resourceslices.resource.k8s.io"])
def test_a_node_may_list_only_with_a_selector_of_its_name(resource: str) -> None:
    question = request_attributes(NODE, f"list {resource}")
    assert AUTHORIZER.authorize(replace(question, fields_equal=(("spec.nodeName", "n1"),))).is_allowed
    assert not AUTHORIZER.authorize(replace(question, fields_equal=(("spec.nodeName", "n2"),))).is_allowed


@pytest.mark.parametrize(
    ("who", "reason"),
    [
        pytest.param(user("system:node:n1"), "", id="without the group"),
        pytest.param(user("n1", "system:nodes"), "", id="without the user name"),
        pytest.param(
            user("system:node:", "system:nodes"), 'unknown node for user "system:node:"', id="a node without a name"
        ),
    ],
)
def test_users_that_are_not_nodes_are_not_allowed(who: User, reason: str) -> None:
    decision = AUTHORIZER.authorize(request_attributes(who, "list services"))
    assert (decision.is_allowed, decision.reason) == (False, reason)


def test_rules_for_a_node_are_incomplete() -> None:
    held = AUTHORIZER.rules_for(NODE, "web")
    assert (held.rules, held.is_incomplete) == ((), True)
    assert held.errors == ("node authorizer does not support user rule resolution",)
    assert not AUTHORIZER.rules_for(user("anna"), "web").is_incomplete


def pod(name: str, node: str, **spec: Any) -> Document:
    return {"metadata": {"name": name, "namespace": "web"}, "spec": {"containers": [], "nodeName": node, **spec}}


POD_WITH_ALL_REFERENCES = pod(
    "p",
    "n1",
    serviceAccountName="robot",
    imagePullSecrets=[{"name": "pull"}],
    containers=[
        {
            "envFrom": [{"secretRef": {"name": "env-secret"}}, {"configMapRef": {"name": "env-map"}}],
            "env": [
                {"valueFrom": {"secretKeyRef": {"name": "key-secret"}}},
                {"valueFrom": {"configMapKeyRef": {"name": "key-map"}}},
                {"value": "plain"},
            ],
        }
    ],
    initContainers=[{"env": [{"valueFrom": {"secretKeyRef": {"name": "init-secret"}}}]}],
    ephemeralContainers=[{"env": [{"valueFrom": {"secretKeyRef": {"name": "debug-secret"}}}]}],
    volumes=[
        {"name": "a", "secret": {"secretName": "volume-secret"}},
        {"name": "b", "configMap": {"name": "volume-map"}},
        {"name": "c", "projected": {"sources": [{"secret": {"name": "in-one"}}, {"configMap": {"name": "in-other"}}]}},
        {"name": "d", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "e", "ephemeral": {}},
        {"name": "f", "csi": {"nodePublishSecretRef": {"name": "publish"}}},
        {"name": "g", "rbd": {"secretRef": {"name": "ring"}}},
    ],
    resourceClaims=[{"name": "gpu", "resourceClaimName": "one-gpu"}, {"name": "net", "resourceClaimTemplateName": "t"}],
)
POD_WITH_ALL_REFERENCES["status"] = {"resourceClaimStatuses": [{"name": "net", "resourceClaimName": "p-net-x1"}]}

RELATED = [
    ("pods", "p"),
    ("serviceaccounts", "robot"),
    *(("secrets", name) for name in ("pull", "env-secret", "key-secret", "init-secret", "debug-secret")),
    *(("secrets", name) for name in ("volume-secret", "in-one", "publish", "ring")),
    *(("configmaps", name) for name in ("env-map", "key-map", "volume-map", "in-other")),
    ("persistentvolumeclaims", "claim"),
    ("persistentvolumeclaims", "p-e"),
    ("resourceclaims", "one-gpu"),
    ("resourceclaims", "p-net-x1"),
]


@pytest.mark.parametrize(("resource", "name"), RELATED)
def test_objects_of_a_pod_are_related_only_to_its_node(resource: str, name: str) -> None:
    graph = NodeGraph()
    graph.put(POD, POD_WITH_ALL_REFERENCES)
    assert graph.is_related("n1", resource, "web", name)
    assert not graph.is_related("n2", resource, "web", name)
    assert not graph.is_related("n1", resource, "other", name)


@pytest.mark.parametrize(("resource", "name"), RELATED)
def test_removal_of_a_pod_removes_its_relations(resource: str, name: str) -> None:
    graph = NodeGraph()
    graph.put(POD, POD_WITH_ALL_REFERENCES)
    graph.put(POD, POD_WITH_ALL_REFERENCES)
    graph.remove(POD, POD_WITH_ALL_REFERENCES)
    assert not graph.is_related("n1", resource, "web", name)


def test_a_secret_of_two_pods_is_related_until_both_are_removed() -> None:
    graph = NodeGraph()
    one, other = (pod(name, "n1", imagePullSecrets=[{"name": "pull"}]) for name in ("one", "other"))
    graph.put(POD, one)
    graph.put(POD, other)
    graph.remove(POD, one)
    assert graph.is_related("n1", "secrets", "web", "pull")
    graph.remove(POD, other)
    assert not graph.is_related("n1", "secrets", "web", "pull")


def test_a_mirror_pod_has_no_relations_except_to_itself() -> None:
    mirror = pod("m", "n1", imagePullSecrets=[{"name": "pull"}])
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    graph = NodeGraph()
    graph.put(POD, mirror)
    assert graph.is_related("n1", "pods", "web", "m")
    assert not graph.is_related("n1", "secrets", "web", "pull")


def test_an_unbound_pod_is_related_to_no_node() -> None:
    graph = NodeGraph()
    graph.put(POD, pod("p", ""))
    assert not graph.is_related("", "pods", "web", "p")


def test_volumes_and_their_secrets_are_related_by_way_of_the_claim() -> None:
    volume = {
        "metadata": {"name": "pv"},
        "spec": {
            "claimRef": {"namespace": "web", "name": "claim"},
            "csi": {
                "driver": "d",
                "nodeStageSecretRef": {"namespace": "storage", "name": "stage"},
                "controllerPublishSecretRef": {"namespace": "storage", "name": "controller"},
            },
        },
    }
    graph = NodeGraph()
    graph.put(PERSISTENT_VOLUME, volume)
    assert not graph.is_related("n1", "persistentvolumes", "", "pv")
    graph.put(POD, POD_WITH_ALL_REFERENCES)
    assert graph.is_related("n1", "persistentvolumes", "", "pv")
    assert graph.is_related("n1", "secrets", "storage", "stage")
    assert not graph.is_related("n1", "secrets", "storage", "controller")
    assert not graph.is_related("n2", "secrets", "storage", "stage")
    graph.remove(PERSISTENT_VOLUME, volume)
    assert not graph.is_related("n1", "persistentvolumes", "", "pv")
    assert not graph.is_related("n1", "secrets", "storage", "stage")


@pytest.mark.parametrize("kind", [VOLUME_ATTACHMENT, RESOURCE_SLICE])
def test_objects_with_a_node_name_are_related_to_that_node(kind: Any) -> None:
    graph = NodeGraph()
    graph.put(kind, {"metadata": {"name": "x"}, "spec": {"nodeName": "n1"}})
    assert graph.is_related("n1", kind.plural, "", "x")
    assert not graph.is_related("n2", kind.plural, "", "x")
