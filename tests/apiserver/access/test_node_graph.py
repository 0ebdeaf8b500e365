"""A node is related to the objects of its pods, and to nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME, POD, RESOURCE_SLICE, VOLUME_ATTACHMENT
from mooring.apiserver.access.node_authorizer import NodeGraph


def pod(name: str, node: str, **spec: Any) -> Document:
    return {"metadata": {"name": name, "namespace": "web"}, "spec": {"containers": [], "nodeName": node, **spec}}


EVERYTHING = pod(
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
EVERYTHING["status"] = {"resourceClaimStatuses": [{"name": "net", "resourceClaimName": "p-net-x1"}]}

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
def test_objects_of_a_pod_are_related_to_its_node_alone(resource: str, name: str) -> None:
    graph = NodeGraph()
    graph.put(POD, EVERYTHING)
    assert graph.is_related("n1", resource, "web", name)
    assert not graph.is_related("n2", resource, "web", name)
    assert not graph.is_related("n1", resource, "other", name)


@pytest.mark.parametrize(("resource", "name"), RELATED)
def test_the_relation_ends_with_the_pod(resource: str, name: str) -> None:
    graph = NodeGraph()
    graph.put(POD, EVERYTHING)
    graph.put(POD, EVERYTHING)
    graph.remove(POD, EVERYTHING)
    assert not graph.is_related("n1", resource, "web", name)


def test_two_pods_of_a_node_share_a_secret() -> None:
    graph = NodeGraph()
    one, other = (pod(name, "n1", imagePullSecrets=[{"name": "pull"}]) for name in ("one", "other"))
    graph.put(POD, one)
    graph.put(POD, other)
    graph.remove(POD, one)
    assert graph.is_related("n1", "secrets", "web", "pull")
    graph.remove(POD, other)
    assert not graph.is_related("n1", "secrets", "web", "pull")


def test_a_mirror_pod_relates_nothing_but_itself() -> None:
    mirror = pod("m", "n1", imagePullSecrets=[{"name": "pull"}])
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    graph = NodeGraph()
    graph.put(POD, mirror)
    assert graph.is_related("n1", "pods", "web", "m")
    assert not graph.is_related("n1", "secrets", "web", "pull")


def test_a_pending_pod_is_on_no_node() -> None:
    graph = NodeGraph()
    graph.put(POD, pod("p", ""))
    assert not graph.is_related("", "pods", "web", "p")


def test_volumes_and_their_secrets_are_related_through_the_claim() -> None:
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
    graph.put(POD, EVERYTHING)
    assert graph.is_related("n1", "persistentvolumes", "", "pv")
    assert graph.is_related("n1", "secrets", "storage", "stage")
    assert not graph.is_related("n1", "secrets", "storage", "controller")
    assert not graph.is_related("n2", "secrets", "storage", "stage")
    graph.remove(PERSISTENT_VOLUME, volume)
    assert not graph.is_related("n1", "persistentvolumes", "", "pv")
    assert not graph.is_related("n1", "secrets", "storage", "stage")


@pytest.mark.parametrize("kind", [VOLUME_ATTACHMENT, RESOURCE_SLICE])
def test_what_names_a_node_is_related_to_it(kind: Any) -> None:
    graph = NodeGraph()
    graph.put(kind, {"metadata": {"name": "x"}, "spec": {"nodeName": "n1"}})
    assert graph.is_related("n1", kind.plural, "", "x")
    assert not graph.is_related("n2", kind.plural, "", "x")
