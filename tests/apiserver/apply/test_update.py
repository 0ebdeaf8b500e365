"""managedFields after a create, an update or a patch."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.apply.update import settle_times, stamp_update
from tests.apiserver.apply.builders import (
    CONFIG_MAP,
    MONDAY,
    POD,
    THING,
    TUESDAY,
    call,
    config_map,
    created,
    owners,
    thing,
    times,
    updated,
)


def test_a_create_owns_its_fields() -> None:
    new = config_map({"a": "1"}, labels={"l": "1"})
    stamp_update(CONFIG_MAP, None, new, call("anna"), ())
    assert new["metadata"]["managedFields"] == [
        {
            "manager": "anna",
            "operation": "Update",
            "apiVersion": "v1",
            "time": TUESDAY,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}},
        }
    ]


def test_an_update_owns_the_changed_fields() -> None:
    live = created(CONFIG_MAP, config_map({"a": "1", "b": "2"}), "anna")
    new = updated(CONFIG_MAP, live, config_map({"a": "1", "b": "3", "c": "4"}), "bob")
    assert owners(new) == {"anna Update": [".data", ".data.a"], "bob Update": [".data.b", ".data.c"]}
    assert times(new) == {"anna": MONDAY, "bob": TUESDAY}


def test_the_same_writer_has_one_entry() -> None:
    live = created(CONFIG_MAP, config_map({"a": "1"}), "anna")
    new = updated(CONFIG_MAP, live, config_map({"a": "1", "b": "2"}), "anna")
    assert owners(new) == {"anna Update": [".data", ".data.a", ".data.b"]}
    assert times(new) == {"anna": TUESDAY}


def test_an_update_without_changes_owns_nothing() -> None:
    live = created(CONFIG_MAP, config_map({"a": "1"}), "anna")
    new = updated(CONFIG_MAP, live, config_map({"a": "1"}), "bob")
    assert new["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_a_manager_without_fields_has_no_entry() -> None:
    live = created(CONFIG_MAP, config_map({"a": "1"}), "anna")
    assert owners(updated(CONFIG_MAP, live, config_map(), "bob")) == {}


def test_a_subresource_has_entries_of_its_own() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}, "status": {}}
    live = created(POD, pod, "anna")
    changed = {**pod, "spec": {"containers": [], "nodeName": "n"}, "status": {"phase": "Running"}}
    new = updated(POD, live, changed, "anna", subresource="status")
    assert owners(new) == {"anna Update": [".spec.containers"], "anna Update status": [".status.phase"]}


def entry(**changes: Any) -> Document:
    whole = {"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    return {**whole, "fieldsV1": {"f:data": {"f:a": {}}}, **changes}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param([entry()], {"x Apply": [".data.a"], "bob Update": [".data.b"]}, id="they count"),
        pytest.param([], {}, id="an empty list clears them"),
        pytest.param([{}], {}, id="and so does one empty entry"),
        pytest.param(
            [entry(operation="Foo")],
            {"anna Update": [".data", ".data.a"], "bob Update": [".data.b"]},
            id="unreadable ones are ignored",
        ),
        pytest.param([entry(apiVersion="v0")], {"bob Update": [".data.b"]}, id="of a version that nobody serves"),
        pytest.param(
            [entry(fieldsV1={"f:metadata": {"f:ownerReferences": {'k:{"uid":"a"}': {"f:name": {}}}}})],
            {"x Apply": ['.metadata.ownerReferences[uid="a"]'], "bob Update": [".data.b"]},
            id="they are fitted to the schema",
        ),
    ],
)
def test_managed_fields_of_a_client(given: list[Document], expected: dict[str, list[str]]) -> None:
    live = created(CONFIG_MAP, config_map({"a": "1"}), "anna")
    new = updated(CONFIG_MAP, live, config_map({"a": "1", "b": "2"}, managedFields=given), "bob")
    assert owners(new) == expected


def test_through_a_subresource_they_do_not_count() -> None:
    live = created(CONFIG_MAP, config_map({"a": "1"}), "anna")
    new = updated(CONFIG_MAP, live, config_map({"a": "1"}, managedFields=[]), "bob", subresource="status")
    assert owners(new) == {"anna Update": [".data", ".data.a"]}


def test_an_object_without_managers_stays_without() -> None:
    live = config_map({"a": "1"}, uid="u-1")
    assert owners(updated(CONFIG_MAP, live, config_map({"a": "2"}), "bob")) == {}


def test_an_object_that_does_not_fit_loses_its_record() -> None:
    live = created(THING, thing(text="a"))
    assert owners(live)
    assert owners(updated(THING, live, thing(text="a", ports=[None]), "bob")) == {}


def test_times_alone_are_no_change() -> None:
    old = created(CONFIG_MAP, config_map({"a": "1"}), "anna", MONDAY)
    new = created(CONFIG_MAP, config_map({"a": "1"}), "anna", TUESDAY)
    settle_times(new, old)
    assert new == old


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(created(CONFIG_MAP, config_map({"a": "2"}), "anna", TUESDAY), id="another value"),
        pytest.param(created(CONFIG_MAP, config_map({"a": "1"}), "bob", TUESDAY), id="another manager"),
        pytest.param(created(CONFIG_MAP, config_map({"b": "1"}), "anna", TUESDAY), id="other fields"),
    ],
)
def test_times_stay_if_something_is_new(new: Document) -> None:
    settle_times(new, created(CONFIG_MAP, config_map({"a": "1"}), "anna", MONDAY))
    assert set(times(new).values()) == {TUESDAY}
