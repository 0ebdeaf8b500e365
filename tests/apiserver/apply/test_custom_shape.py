"""The shapes of kinds that users define."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.schema.model import ListKind
from mooring.apiserver.apply.patch import misfits, misfits_text
from mooring.apiserver.apply.shape import custom_shape
from mooring.apiserver.apply.typed import all_fields, claimed_fields
from tests.apiserver.apply.builders import THING, THING_VERSION, shown, thing


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
            id="unknown fields, as their values are",
        ),
        pytest.param(thing(size=1), [".spec.size"], id="a number or a text"),
    ],
)
def test_what_is_claimed(document: Document, claimed: list[str]) -> None:
    found = shown(claimed_fields(THING.root, document))
    assert [path for path in found if path.startswith(".spec")] == claimed


def test_a_creator_owns_the_spec_itself() -> None:
    assert ".spec" in shown(all_fields(THING.root, thing(text="x")))
    assert THING.empty == {"apiVersion": THING_VERSION, "kind": "Thing"}


def test_metadata_is_that_of_all_kinds() -> None:
    assert THING.root.map is not None
    metadata = THING.root.map.fields["metadata"].map
    assert metadata is not None
    finalizers = metadata.fields["finalizers"].list
    assert finalizers is not None
    assert finalizers.kind is ListKind.SET


def test_without_a_schema_the_values_decide() -> None:
    shape = custom_shape(THING_VERSION, "Thing", None)
    document = {"spec": {"a": {"b": 1}, "l": [1, 2]}, "top": 5}
    assert shown(claimed_fields(shape.root, document)) == [
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
        pytest.param({"additionalProperties": True}, "", id="anything more"),
        pytest.param({"additionalProperties": False}, ".x: field not declared in schema", id="nothing more"),
        pytest.param(
            {"additionalProperties": {"type": "string"}},
            ".x: expected string, got &value.valueUnstructured{Value:1}",
            id="more of one sort",
        ),
    ],
)
def test_unknown_fields(schema: Document, error: str) -> None:
    found = misfits(custom_shape(THING_VERSION, "Thing", {"type": "object", **schema}).root, {"x": 1})
    assert (misfits_text(found) if found else "") == error


def test_an_embedded_object_has_metadata() -> None:
    schema = {
        "type": "object",
        "properties": {"held": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {}}},
    }
    shape = custom_shape(THING_VERSION, "Thing", schema)
    document = {"held": {"kind": "Pod", "metadata": {"finalizers": ["x"]}}}
    assert '.held.metadata.finalizers[="x"]' in shown(claimed_fields(shape.root, document))


def test_other_versions_are_read_by_their_own_schema() -> None:
    other = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-map-type": "atomic"}}}
    shape = custom_shape("g/v1", "Thing", {"type": "object"}, other_versions={"g/v2": other})
    grain = shape.grain_at("g/v1", "g/v2")
    assert grain is not None
    assert shown(claimed_fields(grain, {"spec": {"a": 1}})) == [".spec"]
