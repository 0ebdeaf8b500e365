"""Metadata."""

from __future__ import annotations

import pytest

from mooring.api.decode import convert_as
from mooring.api.views.meta import Condition, ObjectMeta, ObjectReference, OwnerReference
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod


def test_who_an_object_is() -> None:
    metadata = convert_as(
        ObjectMeta,
        {
            "name": "web-1",
            "generateName": "web-",
            "namespace": "default",
            "uid": "u1",
            "resourceVersion": "42",
            "generation": 3,
            "creationTimestamp": "2024-06-12T22:21:21Z",
            "deletionTimestamp": "2024-06-12T22:22:21Z",
            "labels": {"app": "web"},
            "annotations": {"note": "x"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u0", "controller": True}
            ],
            "managedFields": [{"manager": "kubectl"}],
        },
    )
    assert metadata == ObjectMeta(
        name="web-1",
        generate_name="web-",
        namespace="default",
        uid="u1",
        resource_version="42",
        generation=3,
        creation_timestamp="2024-06-12T22:21:21Z",
        deletion_timestamp="2024-06-12T22:22:21Z",
        labels={"app": "web"},
        annotations={"note": "x"},
        owner_references=(
            OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="u0", controller=True),
        ),
    )


@pytest.mark.parametrize(
    ("found", "key"),
    [
        (Pod(metadata=ObjectMeta(namespace="default", name="p")), "default/p"),
        (Node(metadata=ObjectMeta(name="n1")), "n1"),
    ],
    ids=["in a namespace", "in none"],
)
def test_the_key_of_an_object(found: Pod | Node, key: str) -> None:
    assert found.key == key


def test_the_kind_belongs_to_the_class() -> None:
    assert (Pod.api_version, Pod.kind) == ("v1", "Pod")
    assert Pod().kind == "Pod"


def test_references_and_conditions() -> None:
    reference = convert_as(
        ObjectReference, {"kind": "PersistentVolumeClaim", "namespace": "a", "name": "b", "uid": "c"}
    )
    assert reference == ObjectReference(kind="PersistentVolumeClaim", namespace="a", name="b", uid="c")
    condition = convert_as(Condition, {"type": "Ready", "status": "True", "lastProbeTime": None})
    assert condition == Condition(type="Ready", status="True")
