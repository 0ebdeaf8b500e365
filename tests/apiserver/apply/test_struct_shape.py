"""The shapes of built-in kinds: what was there before anybody wrote, and how fine ownership is."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.schema.model import ListKind
from mooring.apiserver.apply.shape import Grain, Shape
from tests.apiserver.apply.builders import DEPLOYMENT, POD, shape_of


def at(shape: Shape, path: str) -> Grain:
    """The grain of a field; `[]` steps into a list or a map."""
    grain = shape.root
    for step in path.split("."):
        if step == "[]":
            inner = grain.list.item if grain.list is not None else grain.map.item if grain.map is not None else None
        else:
            inner = grain.map.fields[step] if grain.map is not None else None
        assert inner is not None, f"{path}: nothing at {step}"
        grain = inner
    return grain


@pytest.mark.parametrize(
    ("shape", "empty"),
    [
        pytest.param(
            POD,
            {"metadata": {}, "spec": {"containers": None}, "status": {}, "apiVersion": "v1", "kind": "Pod"},
            id="structs and what has no omitempty",
        ),
        pytest.param(shape_of("v1", "ConfigMap"), {"metadata": {}, "apiVersion": "v1", "kind": "ConfigMap"}, id="none"),
        pytest.param(
            shape_of("v1", "Event"),
            {
                "metadata": {},
                "involvedObject": {},
                "source": {},
                "firstTimestamp": None,
                "lastTimestamp": None,
                "eventTime": None,
                "reportingComponent": "",
                "reportingInstance": "",
                "apiVersion": "v1",
                "kind": "Event",
            },
            id="omitempty does not leave out times",
        ),
    ],
)
def test_a_new_object_is_compared_with_the_empty_one(shape: Shape, empty: dict[str, Any]) -> None:
    assert shape.empty == empty


@pytest.mark.parametrize(
    ("shape", "path", "kind", "keys"),
    [
        pytest.param(POD, "spec.containers", ListKind.MAP, ("name",), id="containers by name"),
        pytest.param(
            POD, "spec.containers.[].ports", ListKind.MAP, ("containerPort", "protocol"), id="ports by two keys"
        ),
        pytest.param(POD, "spec.tolerations", ListKind.ATOMIC, (), id="tolerations as a whole"),
        pytest.param(POD, "metadata.finalizers", ListKind.SET, (), id="finalizers are a set"),
        pytest.param(DEPLOYMENT, "spec.template.spec.volumes", ListKind.MAP, ("name",), id="in a template, too"),
    ],
)
def test_lists_are_merged_as_the_schema_says(shape: Shape, path: str, kind: ListKind, keys: tuple[str, ...]) -> None:
    grain = at(shape, path).list
    assert grain is not None
    assert (grain.kind, grain.keys) == (kind, keys)


@pytest.mark.parametrize(
    ("path", "is_atomic"),
    [
        ("spec.selector", True),
        ("metadata.labels", False),
        ("metadata.ownerReferences.[]", True),
        ("spec.template.spec.nodeSelector", True),
        ("spec.template.spec.securityContext", False),
        ("spec.template.spec.containers.[].env.[].valueFrom.configMapKeyRef", True),
    ],
)
def test_maps_and_structs_are_atomic_where_the_schema_says_so(path: str, is_atomic: bool) -> None:
    grain = at(DEPLOYMENT, path).map
    assert grain is not None
    assert grain.is_atomic is is_atomic


@pytest.mark.parametrize(
    ("path", "defaults"),
    [
        pytest.param("spec.containers.[].ports", {"containerPort": 0, "protocol": "TCP"}, id="a default and a zero"),
        pytest.param("spec.containers.[].env", {"name": ""}, id="Go writes an empty name"),
        pytest.param("metadata.ownerReferences", {"uid": ""}, id="and an empty uid"),
    ],
)
def test_absent_keys_have_defaults(path: str, defaults: dict[str, object]) -> None:
    items = at(POD, path).list
    assert items is not None
    assert items.item.map is not None
    assert {key: items.item.map.defaults.get(key) for key in items.keys} == defaults
