"""Printer columns of custom resources. kube-apiserver v1.36.4 prints the same cells."""

from __future__ import annotations

import pytest

from mooring.apiserver.custom.printer_columns import JsonPath, JsonPathError, custom_columns
from mooring.apiserver.tables import Cell

OBJECT = {
    "spec": {
        "text": "t",
        "list": ["x", 2, "z"],
        "map": {"a.b": "dotted", "c": "plain"},
        "conditions": [
            {"type": "Ready", "status": "True", "n": 1, "flag": True},
            {"type": "Other", "status": "False", "n": 2, "x": 1},
        ],
        "n": {"deep": "down"},
    }
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.text", ["t"]),
        (".spec['text']", ["t"]),
        (".spec.map.a\\.b", ["dotted"]),
        (".spec.map['c']", ["plain"]),
        (".spec.map.*", ["dotted", "plain"]),
        (".spec.none", []),
        (".spec.text.deeper", []),
        (".", []),
        (".spec.list[0]", ["x"]),
        (".spec.list[-1]", ["z"]),
        (".spec.list[1:2]", [2]),
        (".spec.list[-2:]", [2, "z"]),
        (".spec.list[::2]", ["x", "z"]),
        (".spec.list[*]", ["x", 2, "z"]),
        (".spec.list[0,2]", ["x", "z"]),
        ("..deep", ["down"]),
        ('.spec.conditions[?(@.type=="Ready")].status', ["True"]),
        (".spec.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.spec.conditions[?(@.type != "Ready")].status', ["False"]),
        ('.spec.conditions[?(@.type=="None")].status', []),
        (".spec.conditions[?(@.n>1)].type", ["Other"]),
        (".spec.conditions[?(@.n>=1)].type", ["Ready", "Other"]),
        (".spec.conditions[?(@.n<=1)].type", ["Ready"]),
        (".spec.conditions[?(@.n<2)].type", ["Ready"]),
        (".spec.conditions[?(@.x)].type", ["Other"]),
        (".spec.conditions[?(@.flag==true)].type", ["Ready"]),
    ],
)
def test_json_path_finds_values(path: str, found: list[object]) -> None:
    assert JsonPath(path).find(OBJECT) == found


@pytest.mark.parametrize(
    "path", [".spec.list[", ".spec.list[x]", ".a[?(@.b", ".a[?(@.b)", '.a["', "....a", ".a[1:2:-1]", ".a|b[|]", ".a |"]
)
def test_an_invalid_json_path_is_rejected(path: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(path)


@pytest.mark.parametrize(
    "path",
    [
        ".spec.list[5]",
        ".spec.text[0]",
        ".spec.text[?(@.a)]",
        ".spec['no name']",
        ".spec.conditions[?(@.type>1)].n",
        ".spec.conditions[?(@.*==1)].n",
    ],
)
def test_a_json_path_that_does_not_fit_the_object_is_an_error(path: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(path).find(OBJECT)


NOW_S = 1_000_000.0
OBJ = {
    "metadata": {"name": "x", "creationTimestamp": "1970-01-12T13:46:00Z"},
    "spec": {
        "integer": 7,
        "number": 1.5,
        "large": 1000000.5,
        "larger": 123456789.5,
        "small": 0.00001,
        "huge": 1e22,
        "text": "text <&>",
        "flag": True,
        "null": None,
        "list": ["x", 2],
        "map": {"b": "1", "a": 2},
        "undated": "nope",
    },
}


@pytest.mark.parametrize(
    ("path", "type_name", "cell"),
    [
        (".spec.integer", "string", "7"),
        (".spec.integer", "integer", 7),
        (".spec.integer", "number", 7),
        (".spec.integer", "boolean", None),
        (".spec.integer", "date", None),
        (".spec.number", "string", "1.5"),
        (".spec.number", "integer", 1),
        (".spec.number", "number", 1.5),
        (".spec.large", "string", "1.0000005e+06"),
        (".spec.larger", "string", "1.234567895e+08"),
        (".spec.small", "string", "1e-05"),
        (".spec.huge", "string", "1e+22"),
        (".spec.huge", "integer", -(2**63)),
        (".spec.text", "string", "text <&>"),
        (".spec.text", "integer", None),
        (".spec.flag", "string", "true"),
        (".spec.flag", "boolean", True),
        (".spec.flag", "integer", None),
        (".spec.null", "string", "<no value>"),
        (".spec.null", "integer", None),
        (".spec.list", "string", '["x",2]'),
        (".spec.map", "string", '{"a":2,"b":"1"}'),
        (".spec.list[5]", "string", None),
        (".spec.none", "string", None),
        (".metadata.creationTimestamp", "date", "40s"),
        (".metadata.creationTimestamp", "string", "1970-01-12T13:46:00Z"),
        (".spec.undated", "date", "<invalid>"),
    ],
)
def test_cells_are_formatted_by_column_type(path: str, type_name: str, cell: Cell) -> None:
    table = custom_columns([{"name": "It", "type": type_name, "jsonPath": path}])
    assert table.row(OBJ, NOW_S) == {"cells": ["x", cell]}


def test_a_kind_without_printer_columns_has_an_age_column() -> None:
    table = custom_columns(())
    assert [column["name"] for column in table.columns] == ["Name", "Age"]
    assert table.row(OBJ, NOW_S) == {"cells": ["x", "40s"]}


def test_printer_column_definitions_become_table_columns() -> None:
    given = {"name": "A", "type": "integer", "jsonPath": ".a", "format": "int32", "priority": 3, "description": "d"}
    assert custom_columns([given]).columns[1] == {
        "name": "A",
        "type": "integer",
        "format": "int32",
        "description": "d",
        "priority": 3,
    }


def test_columns_from_the_first_invalid_path_on_are_omitted() -> None:
    paths = (".a", ".b[", ".c")
    table = custom_columns([{"name": path, "type": "string", "jsonPath": path} for path in paths])
    assert [column["name"] for column in table.columns] == ["Name", ".a"]
