"""What managers still own after an object has changed."""

from __future__ import annotations

import pytest

from mooring.apiserver.apply.field_set import FieldSet
from mooring.apiserver.apply.managers import APPLY, UPDATE, Entry, Managers, manager_id
from mooring.apiserver.apply.shape import custom_shape
from mooring.apiserver.apply.typed import GrainError
from mooring.apiserver.apply.update import Changes, conflicts, give_up, reconcile
from tests.apiserver.apply.builders import (
    CONFIG_MAP,
    DEPLOYMENT,
    MONDAY,
    THING,
    THING_VERSION,
    config_map,
    fields,
    shown,
)

ANNA, BOB = manager_id("anna", APPLY, "v1", ""), manager_id("bob", UPDATE, "v1", "")


def managers(api_version: str = "v1") -> Managers:
    return {
        ANNA: Entry(api_version, fields("data a", "data b"), MONDAY),
        BOB: Entry(api_version, fields("data b"), MONDAY),
    }


def changes(new: dict[str, str] | None, ignored: tuple[tuple[str, ...], ...] = ()) -> Changes:
    return Changes(CONFIG_MAP, "v1", config_map({"a": "1", "b": "2"}), config_map(new), ignored)


def test_changing_a_field_takes_its_ownership() -> None:
    have = managers()
    give_up(have, changes({"a": "1", "b": "3"}), None)
    assert {key.name: shown(entry.fields) for key, entry in have.items()} == {"anna": [".data.a"]}


def test_a_removed_field_has_no_owner() -> None:
    have = managers()
    give_up(have, changes({"b": "2"}), None)
    assert {key.name: shown(entry.fields) for key, entry in have.items()} == {"anna": [".data.b"], "bob": [".data.b"]}


def test_a_manager_keeps_its_fields() -> None:
    have = managers()
    give_up(have, changes({"a": "1", "b": "3"}), BOB)
    assert {key.name: shown(entry.fields) for key, entry in have.items()} == {"anna": [".data.a"], "bob": [".data.b"]}


def test_ignored_fields_change_no_owner() -> None:
    have = managers()
    give_up(have, changes(None, (("data",),)), None)
    assert have == managers()


def test_conflicts_are_with_the_others() -> None:
    found = conflicts(managers(), changes({"a": "9", "b": "9"}), BOB)
    assert {key.name: shown(paths) for key, paths in found.items()} == {"anna": [".data.a", ".data.b"]}


def test_entries_of_versions_that_are_not_served_are_dropped() -> None:
    have = managers("v0")
    give_up(have, changes({"a": "1", "b": "2", "c": "3"}), None)
    assert have == {}


@pytest.mark.parametrize(
    ("owned", "now"),
    [
        pytest.param(fields("spec selector matchLabels a"), [".spec.selector"], id="a struct that is atomic now"),
        pytest.param(fields("spec selector"), [".spec.selector"], id="as it should be"),
        pytest.param(
            fields('spec template spec tolerations k:{"key":"x"} effect'),
            [".spec.template.spec.tolerations"],
            id="a list that is atomic now",
        ),
        pytest.param(fields("spec other x"), [".spec.other.x"], id="what the schema does not have stays"),
        pytest.param(fields("metadata labels a"), [".metadata.labels.a"], id="granular"),
    ],
)
def test_entries_are_fitted_to_the_schema(owned: FieldSet, now: list[str]) -> None:
    have = {manager_id("anna", APPLY, "apps/v1", ""): Entry("apps/v1", owned, MONDAY)}
    reconcile(have, DEPLOYMENT, "apps/v1")
    assert [shown(entry.fields) for entry in have.values()] == [now]


def test_an_unknown_version_of_a_custom_kind_is_an_error() -> None:
    have = {manager_id("anna", UPDATE, "example.com/v0", ""): Entry("example.com/v0", fields("spec text"), MONDAY)}
    with pytest.raises(GrainError, match=r"request to convert CR to an invalid group/version: example\.com/v0"):
        reconcile(have, THING, THING_VERSION)


def test_another_version_is_compared_by_its_own_schema() -> None:
    atomic = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-map-type": "atomic"}}}
    shape = custom_shape("g/v1", "Thing", {"type": "object"}, other_versions={"g/v2": atomic})
    found = Changes(shape, "g/v1", {"spec": {"a": 1}}, {"spec": {"a": 2}}, ())
    other = found.at("g/v2")
    assert other is not None
    assert (shown(found.own.written), shown(other.written)) == ([".spec.a"], [".spec"])
