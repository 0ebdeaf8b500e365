"""What an applier lets go of is taken out, unless somebody else owns it."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.apply.field_set import FieldSet
from mooring.apiserver.apply.managers import APPLY, UPDATE, Entry, manager_id
from mooring.apiserver.apply.pruning import pruned
from tests.apiserver.apply.builders import MONDAY, THING, THING_VERSION, fields, thing

PORT = 'spec ports k:{"port":80,"protocol":"TCP"}'


@pytest.mark.parametrize(
    ("spec", "last", "claimed", "others", "left"),
    [
        pytest.param(
            {"text": "a", "count": 1},
            fields("spec text"),
            {},
            fields("spec count"),
            {"count": 1},
            id="his own, which nobody else owns",
        ),
        pytest.param({"text": "a"}, fields("spec text"), {}, fields("spec text"), {"text": "a"}, id="owned by another"),
        pytest.param({"text": "a"}, fields("spec text"), fields("spec text"), {}, {"text": "a"}, id="claimed again"),
        pytest.param({"text": "a"}, {}, {}, {}, {"text": "a"}, id="never his"),
        pytest.param(
            {"words": {"a": "1", "b": "2"}},
            fields("spec words a"),
            {},
            fields("spec words b"),
            {"words": {"b": "2"}},
            id="an entry",
        ),
        pytest.param(
            {"ports": [{"port": 80, "protocol": "TCP", "note": "x"}], "text": "a"},
            fields(PORT, f"{PORT} port"),
            {},
            fields("spec text"),
            {"text": "a"},
            id="an item, with what the server filled in",
        ),
        pytest.param(
            {"ports": [{"port": 80, "protocol": "TCP", "note": "x"}]},
            fields(PORT, f"{PORT} port", f"{PORT} note"),
            {},
            fields(PORT, f"{PORT} port"),
            {"ports": [{"port": 80, "protocol": "TCP"}]},
            id="his part of a shared item",
        ),
    ],
)
def test_is_pruned(
    spec: dict[str, Any], last: FieldSet, claimed: FieldSet, others: FieldSet, left: dict[str, Any]
) -> None:
    managers = {
        manager_id("anna", APPLY, THING_VERSION, ""): Entry(THING_VERSION, claimed, MONDAY),
        manager_id("bob", UPDATE, THING_VERSION, ""): Entry(THING_VERSION, others, MONDAY),
    }
    found = pruned(THING, THING_VERSION, thing(**spec), managers, Entry(THING_VERSION, last, MONDAY), claimed)
    assert found == thing(**left)


def test_what_was_applied_in_a_forgotten_version_stays() -> None:
    last = Entry("example.com/v0", fields("spec text"), MONDAY)
    assert pruned(THING, THING_VERSION, thing(text="a"), {}, last, {}) == thing(text="a")


def test_a_struct_without_owned_fields_is_removed() -> None:
    last = Entry(THING_VERSION, fields("spec text"), MONDAY)
    left = pruned(THING, THING_VERSION, thing(text="a", count=1), {}, last, {})
    assert "spec" not in left
