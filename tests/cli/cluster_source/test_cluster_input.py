from __future__ import annotations

import io
from typing import cast

import pytest

from mooring.api.views.devices import ResourceClaim
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.api.views.workloads import Namespace
from mooring.cli.cluster_source.cluster_input import ClusterInput, complete, skipped_note
from mooring.cli.manifests.read import Source, read_manifests
from mooring.kit.entropy import Entropy


def completed(*objects: str) -> ClusterInput:
    """The cluster of these objects, each `v1 Pod {flow style}`."""
    text = "\n---\n".join(
        f"{{apiVersion: {version}, kind: {kind}, {rest[1:]}"
        for version, kind, rest in (o.split(" ", 2) for o in objects)
    )
    manifests = read_manifests([Source("f", None)], io.BytesIO(text.encode()), lambda amount: None)
    return complete(manifests.objects, [], manifests.kinds, Entropy(1), 0.0, manifests.policies)


def only(cluster: ClusterInput, kind: type[ApiObject], name: str) -> ApiObject:
    return next(view for view in cluster.objects if isinstance(view, kind) and view.metadata.name == name)


@pytest.mark.parametrize(
    ("pod", "where"),
    [
        pytest.param("{metadata: {name: p}}", "pending", id="without a node"),
        pytest.param("{metadata: {name: p}, spec: {nodeName: n1}}", "placed", id="with one"),
        pytest.param("{metadata: {name: p}, spec: {nodeName: n1}, status: {phase: Failed}}", "finished", id="failed"),
        pytest.param(
            "{metadata: {name: p}, status: {phase: Succeeded}}", "finished", id="finished without ever running"
        ),
        pytest.param(
            "{metadata: {name: p}, status: {phase: Pending, nominatedNodeName: n1}}", "pending", id="nominated"
        ),
    ],
)
def test_pods_are_sorted_by_whether_they_have_a_node(pod: str, where: str) -> None:
    cluster = completed(f"v1 Pod {pod}")
    assert [name for name in ("pending", "placed", "finished") if getattr(cluster, name)] == [where]
    assert len(cluster.pods()) == 1


def test_objects_without_a_namespace_live_in_the_default_one() -> None:
    cluster = completed(
        "v1 Pod {metadata: {name: p}}", "v1 Service {metadata: {name: s}}", "v1 Node {metadata: {name: n1}}"
    )
    assert [view.key for view in (*cluster.pending, *cluster.objects)] == ["default/p", "default/s", "n1", "default"]


def test_a_generated_name_is_the_same_every_time() -> None:
    first, second = (completed("v1 Pod {metadata: {generateName: web-}}").pending[0].metadata.name for _ in range(2))
    assert first == second
    assert first.startswith("web-")
    assert len(first) == len("web-") + 5


def test_of_two_objects_with_one_name_the_later_counts() -> None:
    cluster = completed(
        "v1 Node {metadata: {name: n1}, status: {allocatable: {cpu: 1}}}",
        "v1 Node {metadata: {name: n1}, status: {allocatable: {cpu: 2}}}",
        "v1 Pod {metadata: {name: p, namespace: default}}",
        "v1 Pod {metadata: {name: p}, spec: {nodeName: n1}}",
    )
    assert cast(Node, only(cluster, Node, "n1")).status.allocatable == {"cpu": "2"}
    assert (len(cluster.pending), len(cluster.placed), cluster.node_count) == (0, 1, 1)
    assert cluster.notes == ["found twice, the later one counts: Node n1 (f:3) and 1 more"]


@pytest.mark.parametrize(
    ("status", "allocatable"),
    [
        pytest.param("{capacity: {cpu: 4}}", {"cpu": "4"}, id="only capacity"),
        pytest.param("{capacity: {cpu: 4}, allocatable: {cpu: 3}}", {"cpu": "3"}, id="both"),
    ],
)
def test_allocatable_from_capacity(status: str, allocatable: dict[str, str]) -> None:
    cluster = completed(f"v1 Node {{metadata: {{name: n1}}, status: {status}}}")
    assert cast(Node, only(cluster, Node, "n1")).status.allocatable == allocatable


def test_namespaces_carry_their_name_and_exist_where_pods_do() -> None:
    cluster = completed(
        "v1 Namespace {metadata: {name: a, labels: {team: x}}}",
        "v1 Pod {metadata: {name: p, namespace: a}}",
        "v1 Pod {metadata: {name: p, namespace: b}, spec: {nodeName: n1}}",
    )
    label = "kubernetes.io/metadata.name"
    assert only(cluster, Namespace, "a").metadata.labels == {"team": "x", label: "a"}
    assert only(cluster, Namespace, "b").metadata.labels == {label: "b"}


DEFAULT_CLASS = (
    "storage.k8s.io/v1 StorageClass "
    "{metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}}"
)


@pytest.mark.parametrize(
    ("claim", "storage_class"),
    [
        pytest.param("{metadata: {name: c}}", "fast", id="the default class"),
        pytest.param("{metadata: {name: c}, spec: {storageClassName: ''}}", "", id="none, if it asks for none"),
        pytest.param("{metadata: {name: c}, spec: {storageClassName: slow}}", "slow", id="its own"),
        pytest.param("{metadata: {name: c, uid: u}}", None, id="as it was admitted"),
    ],
)
def test_claims_get_the_default_class(claim: str, storage_class: str | None) -> None:
    cluster = completed(DEFAULT_CLASS, f"v1 PersistentVolumeClaim {claim}")
    found = cast(PersistentVolumeClaim, only(cluster, PersistentVolumeClaim, "c"))
    assert found.spec.storage_class_name == storage_class
    assert cast(StorageClass, only(cluster, StorageClass, "fast")).volume_binding_mode == "Immediate"


@pytest.mark.parametrize(
    ("volume", "phase"),
    [
        pytest.param("{metadata: {name: v}}", "Available", id="without an owner"),
        pytest.param("{metadata: {name: v}, spec: {claimRef: {name: c}}}", "Pending", id="somebody's"),
        pytest.param("{metadata: {name: v}, status: {phase: Released}}", "Released", id="as it says"),
    ],
)
def test_unclaimed_volumes_are_available(volume: str, phase: str) -> None:
    found = only(completed(f"v1 PersistentVolume {volume}"), PersistentVolume, "v")
    assert cast(PersistentVolume, found).status.phase == phase


@pytest.mark.parametrize(
    ("objects", "note"),
    [
        pytest.param(
            ["v1 Pod {metadata: {name: p}, spec: {priorityClassName: gold}}"],
            'priority class "gold" is not in the input: 1 pod of it counted with priority 0',
            id="a priority class that is not there",
        ),
        pytest.param(
            ["v1 Node {metadata: {name: n1}}", "v1 Pod {metadata: {name: p}, spec: {nodeName: m}}"],
            "1 pod on nodes that are not in the input: not counted anywhere",
            id="a node that is not there",
        ),
    ],
)
def test_notes(objects: list[str], note: str) -> None:
    assert completed(*objects).notes == [note]


def test_what_was_skipped_in_one_line() -> None:
    note = skipped_note({"Secret": 2, "ConfigMap": 10, "Boat": 2})
    said = "skipped 14 objects of kinds that scheduling does not read: ConfigMap 10, Boat 2, Secret 2"
    assert note == said


# Claims from templates

TEMPLATE = (
    "resource.k8s.io/v1 ResourceClaimTemplate {metadata: {name: t}, spec: {metadata: {labels: {team: x}}, "
    "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 2}}]}}}}"
)
CLAIMS = "resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]"


def test_a_template_makes_a_claim_that_belongs_to_the_pod() -> None:
    cluster = completed(TEMPLATE, f"v1 Pod {{metadata: {{name: p}}, spec: {{{CLAIMS}}}}}")
    statuses = cluster.pending[0].status.resource_claim_statuses
    assert [(status.name, status.resource_claim_name) for status in statuses] == [("gpu", "p-gpu")]
    claim = cast(ResourceClaim, only(cluster, ResourceClaim, "p-gpu"))
    assert (claim.key, claim.metadata.labels) == ("default/p-gpu", {"team": "x"})
    (request,) = claim.spec.devices.requests
    assert request.exactly is not None
    assert (request.exactly.device_class_name, request.exactly.count) == ("gpu", 2)
    assert [(owner.uid, owner.controller) for owner in claim.metadata.owner_references] == [("default/p", True)]


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([TEMPLATE, f"v1 Pod {{metadata: {{name: p, uid: u}}, spec: {{{CLAIMS}}}}}"], id="an admitted pod"),
        pytest.param(
            [
                TEMPLATE,
                f"v1 Pod {{metadata: {{name: p}}, spec: {{{CLAIMS}}}, "
                "status: {resourceClaimStatuses: [{name: gpu, resourceClaimName: made}]}}",
            ],
            id="a claim that exists",
        ),
        pytest.param([f"v1 Pod {{metadata: {{name: p}}, spec: {{{CLAIMS}}}}}"], id="no template"),
    ],
)
def test_no_claim_is_made(objects: list[str]) -> None:
    assert [view for view in completed(*objects).objects if isinstance(view, ResourceClaim)] == []
