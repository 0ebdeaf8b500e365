from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.wire.scalars import SCHEMA_VALUES, Irregular, ScalarError


def schema(raw: Any, dropped: list[str]) -> Any:
    return {"schema": raw}


@pytest.mark.parametrize(
    ("field", "raw", "expected"),
    [
        ("items", {"type": "x"}, {"schema": {"type": "x"}}),
        ("items", [None, {}], [{"schema": {}}, {"schema": {}}]),
        ("items", "overlooked", None),
        ("additionalProperties", False, False),
        ("additionalItems", {}, {"schema": {}}),
        ("dependencies", {"a": {}, "b": ["c"], "d": 5}, {"a": {"schema": {}}, "b": ["c"], "d": None}),
    ],
)
def test_a_value_is_a_schema_or_something_else(field: str, raw: Any, expected: Any) -> None:
    assert SCHEMA_VALUES[field](schema)(raw, []) == expected


def test_neither_a_schema_nor_a_boolean() -> None:
    with pytest.raises(ScalarError, match="boolean or JSON schema expected"):
        SCHEMA_VALUES["additionalProperties"](schema)("x", [])
    with pytest.raises(Irregular):
        SCHEMA_VALUES["dependencies"](schema)([], [])
    with pytest.raises(Irregular):
        SCHEMA_VALUES["dependencies"](schema)({"a": [5]}, [])
