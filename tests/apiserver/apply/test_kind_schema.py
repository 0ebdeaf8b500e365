"""Kind schemas: granularity of ownership, list keys, defaults, and versions of managedFields entries.

They come from the structs of built-in kinds and from the OpenAPI schemas of custom kinds.
"""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.schema.types import ListKind
from mooring.apiserver.apply.kind_schema import (
    DEDUCED,
    TEXT,
    WHOLE,
    KindSchema,
    ListSchema,
    MapSchema,
    ValueSchema,
    custom_kind_schemas,
)
from mooring.apiserver.apply.patch import type_mismatches, type_mismatches_text
from mooring.apiserver.apply.typed import all_fields, claimed_fields
from tests.apiserver.apply.builders import (
    CONFIG_MAP,
    DEPLOYMENT,
    POD,
    THING,
    THING_VERSION,
    kind_schema_of,
    shown,
    thing,
)


@pytest.mark.parametrize(
    ("value_schema", "is_leaf"),
    [
        pytest.param(TEXT, True, id="a string"),
        pytest.param(WHOLE, True, id="anything as a whole"),
        pytest.param(DEDUCED, False, id="anything, maps by entry"),
        pytest.param(ValueSchema(map=MapSchema(is_atomic=True)), True, id="an atomic map"),
        pytest.param(ValueSchema(map=MapSchema()), False, id="a map"),
        pytest.param(ValueSchema(list=ListSchema(ListKind.ATOMIC, TEXT)), True, id="an atomic list"),
        pytest.param(ValueSchema(list=ListSchema(ListKind.SET, TEXT)), False, id="a set"),
    ],
)
def test_atomic_schemas_are_leaves(value_schema: ValueSchema, is_leaf: bool) -> None:
    assert value_schema.is_leaf is is_leaf


def test_schema_at_is_none_for_versions_that_are_not_served() -> None:
    assert CONFIG_MAP.schema_at("v1", "v1") is CONFIG_MAP.root
    assert CONFIG_MAP.schema_at("v1", "v2") is None


def at(kind_schema: KindSchema, path: str) -> ValueSchema:
    """The schema of a field; `[]` selects the items of a list or a map."""
    value_schema = kind_schema.root
    for step in path.split("."):
        if step == "[]":
            inner = (
                value_schema.list.item
                if value_schema.list is not None
                else value_schema.map.item
                if value_schema.map is not None
                else None
            )
        else:
            inner = value_schema.map.fields[step] if value_schema.map is not None else None
        assert inner is not None, f"{path}: nothing at {step}"
        value_schema = inner
    return value_schema


@pytest.mark.parametrize(
    ("kind_schema", "empty"),
    [
        pytest.param(
            POD,
            {"metadata": {}, "spec": {"containers": None}, "status": {}, "apiVersion": "v1", "kind": "Pod"},
            id="structs and what has no omitempty",
        ),
        pytest.param(
            kind_schema_of("v1", "ConfigMap"), {"metadata": {}, "apiVersion": "v1", "kind": "ConfigMap"}, id="none"
        ),
        pytest.param(
            kind_schema_of("v1", "Event"),
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
def test_the_empty_object_of_a_kind_has_the_fields_that_go_always_writes(
    kind_schema: KindSchema, empty: dict[str, Any]
) -> None:
    assert kind_schema.empty == empty


@pytest.mark.parametrize(
    ("kind_schema", "path", "kind", "keys"),
    [
        pytest.param(POD, "spec.containers", ListKind.MAP, ("name",), id="containers by name"),
        pytest.param(
            POD, "spec.containers.[].ports", ListKind.MAP, ("containerPort", "protocol"), id="ports by two keys"
        ),
        pytest.param(POD, "spec.tolerations", ListKind.ATOMIC, (), id="tolerations as a whole"),
        pytest.param(POD, "metadata.finalizers", ListKind.SET, (), id="finalizers are a set"),
        pytest.param(
            DEPLOYMENT, "spec.template.spec.volumes", ListKind.MAP, ("name",), id="volumes of a pod template by name"
        ),
    ],
)
def test_list_types_and_keys_come_from_the_schema(
    kind_schema: KindSchema, path: str, kind: ListKind, keys: tuple[str, ...]
) -> None:
    value_schema = at(kind_schema, path).list
    assert value_schema is not None
    assert (value_schema.kind, value_schema.keys) == (kind, keys)


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
def test_atomic_maps_and_structs_come_from_the_schema(path: str, is_atomic: bool) -> None:
    value_schema = at(DEPLOYMENT, path).map
    assert value_schema is not None
    assert value_schema.is_atomic is is_atomic


@pytest.mark.parametrize(
    ("path", "defaults"),
    [
        pytest.param("spec.containers.[].ports", {"containerPort": 0, "protocol": "TCP"}, id="a default and a zero"),
        pytest.param("spec.containers.[].env", {"name": ""}, id="an empty name"),
        pytest.param("metadata.ownerReferences", {"uid": ""}, id="an empty uid"),
    ],
)
def test_absent_list_keys_have_defaults(path: str, defaults: dict[str, object]) -> None:
    items = at(POD, path).list
    assert items is not None
    assert items.item.map is not None
    assert {key: items.item.map.defaults.get(key) for key in items.keys} == defaults


@pytest.mark.parametrize(
    ("document", "claimed"),
    [
        pytest.param(thing(text="x", count=1), [".spec.count", ".spec.text"], id="scalars"),
        pytest.param(thing(whole=["x", "y"]), [".spec.whole"], id="a list without a type is atomic"),
        pytest.param(thing(set=["y", "x"]), ['.spec.set[="x"]', '.spec.set[="y"]'], id="a set"),
        pytest.param(
            thing(ports=[{"port": 80, "note": "x"}]),
            [
                '.spec.ports[port=80,protocol="TCP"]',
                '.spec.ports[port=80,protocol="TCP"].note',
                '.spec.ports[port=80,protocol="TCP"].port',
            ],
            id="keys have defaults",
        ),
        pytest.param(thing(pair={"left": "x"}), [".spec.pair"], id="an atomic map"),
        pytest.param(thing(words={"a": "x"}), [".spec.words.a"], id="a granular map"),
        pytest.param(
            thing(free={"a": {"b": 1}, "l": [1]}),
            [".spec.free.a", ".spec.free.l", ".spec.free.a.b"],
            id="unknown fields are deduced from values",
        ),
        pytest.param(thing(size=1), [".spec.size"], id="int or string"),
    ],
)
def test_claimed_fields_of_a_custom_object(document: Document, claimed: list[str]) -> None:
    found = shown(claimed_fields(THING.root, document))
    assert [path for path in found if path.startswith(".spec")] == claimed


def test_all_fields_of_a_custom_object_include_the_spec_itself() -> None:
    assert ".spec" in shown(all_fields(THING.root, thing(text="x")))
    assert THING.empty == {"apiVersion": THING_VERSION, "kind": "Thing"}


def test_the_metadata_of_custom_kinds_has_the_schema_of_built_in_kinds() -> None:
    assert THING.root.map is not None
    metadata = THING.root.map.fields["metadata"].map
    assert metadata is not None
    finalizers = metadata.fields["finalizers"].list
    assert finalizers is not None
    assert finalizers.kind is ListKind.SET


def test_claimed_fields_without_a_schema_are_deduced_from_values() -> None:
    kind_schema = custom_kind_schemas("Thing", {THING_VERSION: None})[THING_VERSION]
    document = {"spec": {"a": {"b": 1}, "l": [1, 2]}, "top": 5}
    assert shown(claimed_fields(kind_schema.root, document)) == [
        ".spec",
        ".top",
        ".spec.a",
        ".spec.l",
        ".spec.a.b",
    ]


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        pytest.param({"properties": {"a": {"type": "string"}}}, ".x: field not declared in schema", id="closed"),
        pytest.param({}, "", id="an object without properties is open"),
        pytest.param(
            {"properties": {"a": {"type": "string"}}, "x-kubernetes-preserve-unknown-fields": True}, "", id="preserving"
        ),
        pytest.param({"additionalProperties": True}, "", id="additional properties"),
        pytest.param(
            {"additionalProperties": False}, ".x: field not declared in schema", id="no additional properties"
        ),
        pytest.param(
            {"additionalProperties": {"type": "string"}},
            ".x: expected string, got &value.valueUnstructured{Value:1}",
            id="additional properties of one type",
        ),
    ],
)
def test_unknown_fields_are_errors_unless_the_schema_allows_them(schema: Document, error: str) -> None:
    found = type_mismatches(
        custom_kind_schemas("Thing", {THING_VERSION: {"type": "object", **schema}})[THING_VERSION].root, {"x": 1}
    )
    assert (type_mismatches_text(found) if found else "") == error


def test_an_embedded_resource_has_the_schema_of_metadata() -> None:
    schema = {
        "type": "object",
        "properties": {"held": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {}}},
    }
    kind_schema = custom_kind_schemas("Thing", {THING_VERSION: schema})[THING_VERSION]
    document = {"held": {"kind": "Pod", "metadata": {"finalizers": ["x"]}}}
    assert '.held.metadata.finalizers[="x"]' in shown(claimed_fields(kind_schema.root, document))


def test_schema_at_returns_the_schema_of_another_version() -> None:
    other = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-map-type": "atomic"}}}
    kind_schema = custom_kind_schemas("Thing", {"g/v1": {"type": "object"}, "g/v2": other})["g/v1"]
    value_schema = kind_schema.schema_at("g/v1", "g/v2")
    assert value_schema is not None
    assert shown(claimed_fields(value_schema, {"spec": {"a": 1}})) == [".spec"]
