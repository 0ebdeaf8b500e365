"""Apply merges a document into the live object and prunes fields that are no longer applied."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.apply.field_set import FieldSet
from mooring.apiserver.apply.managers import APPLY, UPDATE, Entry, manager_id
from mooring.apiserver.apply.merging import merged, pruned, removed, with_named_fields
from mooring.apiserver.apply.typed import SchemaMismatchError
from tests.apiserver.apply.builders import MONDAY, THING, THING_VERSION, fields, shown, thing


@pytest.mark.parametrize(
    ("live", "applied", "result"),
    [
        pytest.param({"text": "a"}, {"count": 1}, {"text": "a", "count": 1}, id="both"),
        pytest.param({"text": "a"}, {"text": "b"}, {"text": "b"}, id="the applied value wins"),
        pytest.param({"text": "a"}, {"text": None}, {"text": None}, id="null is a value"),
        pytest.param({"words": {"a": "1"}}, {"words": {"b": "2"}}, {"words": {"a": "1", "b": "2"}}, id="maps"),
        pytest.param({"words": {"a": "1"}}, {"words": None}, {"words": {"a": "1"}}, id="null keeps a map"),
        pytest.param({"words": {"a": "1"}}, {"words": {}}, {"words": {"a": "1"}}, id="an empty map changes nothing"),
        pytest.param({"words": {}}, {"words": None}, {"words": None}, id="null for an empty one"),
        pytest.param({"pair": {"left": "a"}}, {"pair": {"right": "b"}}, {"pair": {"right": "b"}}, id="atomic maps"),
        pytest.param({"whole": ["a"]}, {"whole": ["b"]}, {"whole": ["b"]}, id="atomic lists"),
        pytest.param({"set": ["a"]}, {"set": None}, {"set": ["a"]}, id="null keeps a set"),
        pytest.param(
            {"ports": [{"port": 1, "note": "x"}]},
            {"ports": [{"port": 1, "protocol": "TCP"}]},
            {"ports": [{"port": 1, "note": "x", "protocol": "TCP"}]},
            id="items with the same keys",
        ),
        pytest.param({"free": {"a": 1}}, {"free": {"a": {"b": 1}}}, {"free": {"a": {"b": 1}}}, id="another type"),
    ],
)
def test_merged_takes_applied_values_and_keeps_the_others(
    live: dict[str, Any], applied: dict[str, Any], result: dict[str, Any]
) -> None:
    assert merged(THING.root, thing(**live), thing(**applied)) == thing(**result)


@pytest.mark.parametrize(
    ("live", "applied", "result"),
    [
        ("abc", "c", "abc"),
        ("abc", "d", "abcd"),
        ("abc", "ca", "bca"),
        ("abc", "xb", "axbc"),
        ("abcd", "dxa", "bcdxa"),
        ("", "ba", "ba"),
        ("aab", "b", "aab"),
        ("aab", "a", "ab"),
    ],
)
def test_merged_sets_have_shared_items_in_the_applied_order(live: str, applied: str, result: str) -> None:
    found = merged(THING.root, thing(set=list(live)), thing(set=list(applied)))
    assert "".join(found["spec"]["set"]) == result


def test_merged_changes_neither_document() -> None:
    live, applied = thing(words={"a": "1"}, set=["x"]), thing(words={"b": "2"}, set=["y"])
    before = str((live, applied))
    merged(THING.root, live, applied)
    assert str((live, applied)) == before


def test_a_live_item_without_keys_is_an_error() -> None:
    with pytest.raises(SchemaMismatchError, match="element 0: associative list with keys may not have a null element"):
        merged(THING.root, thing(ports=[None]), thing(ports=[{"port": 1}]))


@pytest.mark.parametrize(
    ("spec", "dropped", "left"),
    [
        pytest.param({"text": "a", "count": 1}, fields("spec text"), {"count": 1}, id="a field"),
        pytest.param(
            {"text": "a", "words": {"a": "1"}}, fields("spec words"), {"text": "a"}, id="a field with fields below it"
        ),
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
            id="a field of an atomic map",
        ),
        pytest.param({"text": "a"}, fields("spec other"), {"text": "a"}, id="an absent field"),
    ],
)
def test_removed_drops_the_given_fields(spec: dict[str, Any], dropped: FieldSet, left: dict[str, Any]) -> None:
    assert removed(THING.root, thing(**spec), dropped) == thing(**left)


def test_with_named_fields_adds_the_parents_of_owned_fields() -> None:
    owned = with_named_fields(THING.root, fields("spec words a", 'spec ports k:{"port":80,"protocol":"TCP"} note'))
    assert shown(owned) == [
        ".spec",
        ".spec.ports",
        ".spec.words",
        '.spec.ports[port=80,protocol="TCP"].note',
        ".spec.words.a",
    ]


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
            id="owned only by this manager",
        ),
        pytest.param({"text": "a"}, fields("spec text"), {}, fields("spec text"), {"text": "a"}, id="owned by another"),
        pytest.param({"text": "a"}, fields("spec text"), fields("spec text"), {}, {"text": "a"}, id="claimed again"),
        pytest.param({"text": "a"}, {}, {}, {}, {"text": "a"}, id="never owned by this manager"),
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
            id="an item with fields set by the server",
        ),
        pytest.param(
            {"ports": [{"port": 80, "protocol": "TCP", "note": "x"}]},
            fields(PORT, f"{PORT} port", f"{PORT} note"),
            {},
            fields(PORT, f"{PORT} port"),
            {"ports": [{"port": 80, "protocol": "TCP"}]},
            id="the fields of this manager in a shared item",
        ),
    ],
)
def test_pruned_drops_fields_that_are_no_longer_owned(
    spec: dict[str, Any], last: FieldSet, claimed: FieldSet, others: FieldSet, left: dict[str, Any]
) -> None:
    managers = {
        manager_id("anna", APPLY, THING_VERSION, ""): Entry(THING_VERSION, claimed, MONDAY),
        manager_id("bob", UPDATE, THING_VERSION, ""): Entry(THING_VERSION, others, MONDAY),
    }
    found = pruned(THING, THING_VERSION, thing(**spec), managers, Entry(THING_VERSION, last, MONDAY), claimed)
    assert found == thing(**left)


def test_pruned_keeps_fields_applied_in_an_unknown_version() -> None:
    last = Entry("example.com/v0", fields("spec text"), MONDAY)
    assert pruned(THING, THING_VERSION, thing(text="a"), {}, last, {}) == thing(text="a")


def test_pruned_drops_a_struct_without_owned_fields() -> None:
    last = Entry(THING_VERSION, fields("spec text"), MONDAY)
    left = pruned(THING, THING_VERSION, thing(text="a", count=1), {}, last, {})
    assert "spec" not in left
