"""A document without the fields of a set."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.apply.field_set import FieldSet
from mooring.apiserver.apply.removing import removed, with_named_fields
from tests.apiserver.apply.builders import THING, fields, shown, thing


@pytest.mark.parametrize(
    ("spec", "gone", "left"),
    [
        pytest.param({"text": "a", "count": 1}, fields("spec text"), {"count": 1}, id="a field"),
        pytest.param({"text": "a", "words": {"a": "1"}}, fields("spec words"), {"text": "a"}, id="with what is below"),
        pytest.param({"words": {"a": "1", "b": "2"}}, fields("spec words a"), {"words": {"b": "2"}}, id="an entry"),
        pytest.param({"words": {"a": "1"}}, fields("spec words a"), {"words": None}, id="the last entry"),
        pytest.param({"set": ["x", "y"]}, fields('spec set v:"x"'), {"set": ["y"]}, id="an item of a set"),
        pytest.param(
            {"ports": [{"port": 80, "note": "x"}]},
            fields('spec ports k:{"port":80,"protocol":"TCP"} note'),
            {"ports": [{"port": 80}]},
            id="a field of an item",
        ),
        pytest.param(
            {"pair": {"left": "a"}, "text": "a"},
            fields("spec pair left"),
            {"pair": None, "text": "a"},
            id="in something atomic",
        ),
        pytest.param({"text": "a"}, fields("spec other"), {"text": "a"}, id="what is not there"),
    ],
)
def test_is_removed(spec: dict[str, Any], gone: FieldSet, left: dict[str, Any]) -> None:
    assert removed(THING.root, thing(**spec), gone) == thing(**left)


def test_named_fields_on_the_way_count_as_owned() -> None:
    owned = with_named_fields(THING.root, fields("spec words a", 'spec ports k:{"port":80,"protocol":"TCP"} note'))
    assert shown(owned) == [
        ".spec",
        ".spec.ports",
        ".spec.words",
        '.spec.ports[port=80,protocol="TCP"].note',
        ".spec.words.a",
    ]
