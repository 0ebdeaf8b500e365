"""Metadata, selectors, and what all views have in common."""

from __future__ import annotations

import gc
import inspect
import types

import msgspec
import pytest

from mooring.api.decode import convert_as
from mooring.api.views import devices, meta, node, pod, storage, workloads
from mooring.api.views.meta import (
    Condition,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    ObjectReference,
    OwnerReference,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    View,
)
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod, Toleration


def test_identity_of_an_object() -> None:
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


# --- What all views have in common -----------------------------------------------------------------------------------


def views_of(module: types.ModuleType) -> list[type[View]]:
    classes = [each for _, each in inspect.getmembers(module, inspect.isclass) if each.__module__ == module.__name__]
    return [view_class for view_class in classes if issubclass(view_class, View)]


MODULES = (meta, pod, node, storage, workloads, devices)
VIEWS = [view for module in MODULES for view in views_of(module)]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: f"{view.__module__.rpartition('.')[2]}.{view.__name__}")
def test_every_view_is_frozen_untracked_and_has_defaults(view: type[View]) -> None:
    config = view.__struct_config__
    assert (config.frozen, config.gc, config.forbid_unknown_fields) == (True, False, False)
    assert msgspec.convert({"somethingNew": 1}, view) == view()


def test_a_view_cannot_be_changed() -> None:
    toleration = Toleration(key="a")
    with pytest.raises(AttributeError, match="immutable"):
        toleration.key = "b"  # type: ignore[misc]


def test_views_are_not_tracked_by_the_garbage_collector() -> None:
    assert not gc.is_tracked(Pod())


def test_field_names_are_those_of_kubernetes() -> None:
    read = {field.encode_name for field in msgspec.structs.fields(pod.PodSpec)}
    assert {"nodeName", "schedulerName", "topologySpreadConstraints", "hostNetwork", "resourceClaims"} <= read
    assert {field.encode_name for field in msgspec.structs.fields(pod.ContainerPort)} >= {"hostIP", "hostPort"}


# --- Selectors as they are written down ------------------------------------------------------------------------------


def test_view_of_a_label_selector() -> None:
    written = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Bogus", "values": ["d"]}]}
    assert convert_as(LabelSelector, written) == LabelSelector(
        match_labels={"a": "b"},
        match_expressions=(LabelSelectorRequirement(key="c", operator="Bogus", values=("d",)),),
    )


def test_node_selectors_can_be_keys_of_a_dictionary() -> None:
    written = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
    selector = convert_as(NodeSelector, written)
    assert selector == NodeSelector(
        node_selector_terms=(
            NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="a", operator="Exists"),)),
        )
    )
    assert {selector: "found"}[convert_as(NodeSelector, written)] == "found"


def test_view_of_a_topology_term() -> None:
    written = {"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}
    assert convert_as(TopologySelectorTerm, written) == TopologySelectorTerm(
        match_label_expressions=(TopologySelectorLabelRequirement(key="zone", values=("a", "b")),)
    )
