"""List and map types of schemas."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.custom_lists import has_unatomic_set, list_faults, map_set_faults
from tests.apiserver.custom.definitions import fields

TEXT: Document = {"type": "string"}
LIST, KEYS, MAP = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
KEYED = {**fields(k=TEXT), "required": ["k"]}


def array(items: Document | None, kind: str | None, *keys: str) -> Document:
    found: Document = {"type": "array"}
    found |= {"items": items} if items is not None else {}
    found |= {LIST: kind} if kind is not None else {}
    return found | ({KEYS: list(keys)} if keys else {})


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        pytest.param(array(TEXT, "set"), [], id="a set"),
        pytest.param(array(KEYED, "map", "k"), [], id="a map"),
        pytest.param(
            {**TEXT, LIST: "set"},
            [f'p.type: Invalid value: "string": must be array if {LIST} is specified'],
            id="no list",
        ),
        pytest.param({LIST: "set"}, [f"p.type: Required value: must be array if {LIST} is specified"], id="no type"),
        pytest.param(
            array(TEXT, "foo"),
            [f'p.{LIST}: Unsupported value: "foo": supported values: "atomic", "set", "map"'],
            id="unknown",
        ),
        pytest.param(
            array({"type": "object"}, "set"),
            [f"p.items.{MAP}: Invalid value: null: must be atomic as item of a list with {LIST}=set"],
            id="a set of objects",
        ),
        pytest.param(
            array(KEYED, None, "k"),
            [f"p.{LIST}: Required value: must be map if {KEYS} is non-empty"],
            id="keys of no map",
        ),
        pytest.param(
            array(KEYED, "map"), [f"p.{KEYS}: Required value: must not be empty if {LIST} is map"], id="no keys"
        ),
        pytest.param(
            array(None, "map", "k"), [f"p.items: Required value: must have a schema if {LIST} is map"], id="no items"
        ),
        pytest.param(
            array(TEXT, "map", "k"),
            [f'p.items.type: Invalid value: "string": must be object if parent array\'s {LIST} is map'],
            id="a map of texts",
        ),
        pytest.param(
            array(KEYED, "map", "z"),
            [f'p.{KEYS}: Invalid value: ["z"]: entries must all be names of item properties'],
            id="unknown keys",
        ),
        pytest.param(
            array(KEYED, "map", "k", "k"),
            [f'p.{KEYS}: Invalid value: ["k","k"]: must not contain duplicate entries'],
            id="a key twice",
        ),
        pytest.param(
            {**TEXT, MAP: "atomic"},
            [f'p.type: Invalid value: "string": must be object if {MAP} is specified'],
            id="no map",
        ),
        pytest.param(
            {"type": "object", MAP: "x"},
            [f'p.{MAP}: Unsupported value: "x": supported values: "atomic", "granular"'],
            id="unknown map",
        ),
        pytest.param(
            {"x-kubernetes-preserve-unknown-fields": False},
            ["p.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
            id="keeping nothing",
        ),
    ],
)
def test_types(raw: Document, found: list[str]) -> None:
    assert [fault.message for fault in list_faults(raw, "p", needs_atomic_sets=True)] == found


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        pytest.param(array(KEYED, "map", "k"), [], id="required"),
        pytest.param(array(fields(k={**TEXT, "default": "x"}), "map", "k"), [], id="with a default"),
        pytest.param(array(fields(k=TEXT), "map", "k"), ["p.items.properties[k].default"], id="optional"),
        pytest.param(
            array({**fields(k={**TEXT, "nullable": True}), "required": ["k"]}, "map", "k"),
            ["p.items.properties[k].nullable"],
            id="null",
        ),
        pytest.param(array({**TEXT, "nullable": True}, "set"), ["p.items.nullable"], id="null in a set"),
    ],
)
def test_keys(raw: Document, paths: list[str]) -> None:
    assert [fault.field for fault in map_set_faults(raw, "p")] == paths


def test_sets_of_what_can_change() -> None:
    assert has_unatomic_set(array({"type": "object"}, "set"))
    assert not has_unatomic_set(array({"type": "object", MAP: "atomic"}, "set"))
