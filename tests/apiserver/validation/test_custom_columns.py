"""Columns, selectable fields and subresources of custom kinds."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.custom.schema import read_schema
from mooring.apiserver.validation.custom_columns import column_faults, selectable_faults, subresources_faults
from tests.apiserver.custom.definitions import fields

SCHEMA = read_schema(
    fields(
        spec=fields(
            a={"type": "string"}, o={"type": "object"}, **{f"f{number}": {"type": "integer"} for number in range(9)}
        ),
        metadata=fields(name={"type": "string"}),
    )
)


@pytest.mark.parametrize(
    ("column", "found"),
    [
        pytest.param({"name": "A", "type": "string", "jsonPath": ".a"}, [], id="fine"),
        pytest.param(
            {},
            [
                "c.name: Required value",
                "c.type: Required value: must be one of boolean,date,integer,number,string",
                "c.JSONPath: Required value",
            ],
            id="empty",
        ),
        pytest.param(
            {"name": "A", "type": "x", "jsonPath": "a", "format": "z"},
            [
                'c.type: Invalid value: "x": must be one of boolean,date,integer,number,string',
                'c.format: Invalid value: "z": must be one of byte,date,date-time,double,float,int32,int64,password',
                'c.JSONPath: Invalid value: "a": must be a simple json path starting with .',
            ],
            id="all wrong",
        ),
    ],
)
def test_columns(column: Document, found: list[str]) -> None:
    assert [fault.message for fault in column_faults(column, "c")] == found


@pytest.mark.parametrize(
    ("path", "message"),
    [
        pytest.param(".spec.a", "", id="fine"),
        pytest.param("", "s[0].jsonPath: Required value", id="none"),
        pytest.param(
            ".spec.z",
            's[0].jsonPath: Invalid value: ".spec.z": is an invalid path: does not refer to a valid field',
            id="unknown",
        ),
        pytest.param(
            ".metadata.name",
            's[0].jsonPath: Invalid value: ".metadata.name": must not point to fields in metadata',
            id="metadata",
        ),
        pytest.param(
            ".spec.o",
            's[0].jsonPath: Invalid value: ".spec.o": must point to a field of type string, boolean or integer. Enum '
            "string fields and strings with formats are allowed.",
            id="an object",
        ),
    ],
)
def test_selectable_fields(path: str, message: str) -> None:
    faults = selectable_faults([{"jsonPath": path}], SCHEMA, "s")
    assert [fault.message for fault in faults] == ([message] if message else [])


def test_there_are_at_most_eight_selectable_fields() -> None:
    fields_ = [{"jsonPath": f".spec.f{number}"} for number in range(9)]
    assert [fault.message for fault in selectable_faults(fields_, SCHEMA, "s")] == [
        "s: Too many: 9: must have at most 8 items"
    ]
    assert selectable_faults(fields_, SCHEMA, "s", may_be_too_many=True) == []
    assert len(selectable_faults([fields_[0], fields_[0]], SCHEMA, "s")) == 1


@pytest.mark.parametrize(
    ("scale", "paths"),
    [
        pytest.param({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}, [], id="fine"),
        pytest.param({}, ["p.scale.specReplicasPath", "p.scale.statusReplicasPath"], id="nothing said"),
        pytest.param(
            {"specReplicasPath": ".status.n", "statusReplicasPath": "x", "labelSelectorPath": ".foo"},
            ["p.scale.specReplicasPath", "p.scale.statusReplicasPath", "p.scale.labelSelectorPath"],
            id="all wrong",
        ),
    ],
)
def test_scales(scale: Document, paths: list[str]) -> None:
    assert [fault.field for fault in subresources_faults({"scale": scale}, "p")] == paths
    assert subresources_faults(None, "p") == []
