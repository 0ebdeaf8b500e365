"""Entries of managedFields: how they are read, sorted, written, and merged above the limit."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.apply.field_set import ElementError
from mooring.apiserver.apply.managers import (
    APPLY,
    OLD_UPDATES,
    UPDATE,
    UPDATERS_MAX,
    Entry,
    EntryError,
    ManagerId,
    Managers,
    capped,
    given_managers,
    manageable,
    manager_id,
    read_fields,
    stored_managers,
    written,
)
from tests.apiserver.apply.builders import MONDAY, TUESDAY, fields, shown


@pytest.mark.parametrize(
    ("json", "found"),
    [
        pytest.param(None, {}, id="nothing"),
        pytest.param({}, {}, id="an empty set"),
        pytest.param({"f:b": {}, "f:a": {}}, {"f:a": {}, "f:b": {}}, id="sorted"),
        pytest.param({"f:a": {".": {}}}, {"f:a": {}}, id="a dot without other fields"),
        pytest.param({"f:a": None}, {"f:a": {}}, id="null is a leaf"),
        pytest.param({"x:later": {"f:a": {}}, "f:b": {}}, {"f:b": {}}, id="unknown elements are dropped"),
        pytest.param({".": {}, "f:a": {}}, {"f:a": {}}, id="a dot at the root is dropped"),
        pytest.param({"f:a": {'k:{"y":1,"x":2}': {}}}, {"f:a": {'k:{"x":2,"y":1}': {}}}, id="keys sorted"),
    ],
)
def test_read_fields_makes_field_sets_canonical(json: object, found: object) -> None:
    assert str(read_fields(json)) == str(found)


@pytest.mark.parametrize("json", ["text", [], {"f:a": "text"}, {"data": {}}])
def test_read_fields_rejects_invalid_field_sets(json: object) -> None:
    with pytest.raises(ElementError):
        read_fields(json)


def entry(**changes: Any) -> dict[str, Any]:
    whole = {
        "manager": "anna",
        "operation": "Update",
        "apiVersion": "v1",
        "time": MONDAY,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }
    return {name: part for name, part in (whole | changes).items() if part is not None}


def test_written_entries_equal_the_stored_ones() -> None:
    entries = [entry(operation="Apply"), entry(manager="bob", time=None, subresource="status")]
    found = written(stored_managers({"metadata": {"managedFields": entries}}))
    assert found == [entries[0], entries[1]]
    assert found[0] is entries[0]


def test_an_entry_is_written_in_the_order_of_its_fields() -> None:
    key = manager_id("anna", UPDATE, "v1", "status")
    assert list(written({key: Entry("v1", fields("data"), MONDAY)})[0]) == [
        "manager",
        "operation",
        "apiVersion",
        "time",
        "fieldsType",
        "fieldsV1",
        "subresource",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"operation": "Apply", "time": TUESDAY}, {"time": MONDAY}, id="appliers before updaters"),
        pytest.param({"manager": "z"}, {"time": TUESDAY}, id="older ones first"),
        pytest.param({"time": None, "manager": "z"}, {}, id="entries without a time first"),
        pytest.param({}, {"manager": "bob"}, id="then by name"),
        pytest.param({}, {"apiVersion": "v2"}, id="then by version"),
        pytest.param({}, {"subresource": "status"}, id="then by subresource"),
    ],
)
def test_entries_are_sorted(one: dict[str, Any], other: dict[str, Any]) -> None:
    entries = [entry(**other), entry(**one)]
    assert written(stored_managers({"metadata": {"managedFields": entries}})) == [entry(**one), entry(**other)]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"operation": "Foo"}, "operation must be `Apply` or `Update`"),
        ({"apiVersion": ""}, "apiVersion must not be empty"),
        ({"fieldsType": None}, "missing fieldsType in managed fields entry 0"),
        ({"fieldsType": "V2"}, 'invalid fieldsType "V2" in managed fields entry 0'),
        ({"fieldsV1": {"data": {}}}, "error decoding set: missing colon: data"),
    ],
)
def test_invalid_managed_fields_are_rejected(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(EntryError, match=problem):
        given_managers([entry(**changes)])


def test_the_id_of_an_applier_is_the_same_in_every_version() -> None:
    assert manager_id("anna", APPLY, "v1", "") == manager_id("anna", APPLY, "v2", "")
    assert manager_id("anna", UPDATE, "v1", "") != manager_id("anna", UPDATE, "v2", "")
    assert manager_id("", UPDATE, "v1", "").name == "unknown"


def many(count: int, api_version: str = "v1") -> Managers:
    return {
        ManagerId(f"m{number:02}", UPDATE, api_version, ""): Entry(
            api_version, fields(f"data k{number:02}"), f"2026-01-01T00:00:{number:02}Z"
        )
        for number in range(count)
    }


def test_the_oldest_updates_above_the_limit_are_merged() -> None:
    found = capped(many(UPDATERS_MAX + 2))
    assert len(found) == UPDATERS_MAX
    oldest = found[ManagerId(OLD_UPDATES, UPDATE, "v1", "")]
    assert shown(oldest.fields) == [".data.k00", ".data.k01", ".data.k02"]
    assert oldest.time == "2026-01-01T00:00:02Z"


def test_updates_of_different_versions_are_merged_separately() -> None:
    managers = {**many(1, "v2"), **many(UPDATERS_MAX)}
    found = capped(managers)
    assert len(found) == UPDATERS_MAX
    assert ManagerId("m00", UPDATE, "v2", "") in found
    assert shown(found[ManagerId(OLD_UPDATES, UPDATE, "v1", "")].fields) == [".data.k00", ".data.k01"]


def test_appliers_do_not_count_for_the_limit() -> None:
    managers = many(UPDATERS_MAX)
    managers[manager_id("anna", APPLY, "v1", "")] = Entry("v1", fields("data"), MONDAY)
    assert len(capped(managers)) == UPDATERS_MAX + 1


def test_fields_of_the_server_have_no_manager() -> None:
    owned = fields("apiVersion", "kind", "metadata", "metadata name", "metadata uid", "metadata labels a", "data")
    assert shown(manageable(owned)) == [".data", ".metadata.labels.a"]
