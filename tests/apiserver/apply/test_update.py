"""managedFields after a create, an update or a patch, and the ownership of other managers after a change."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP as CONFIG_MAP_KIND
from mooring.api.kinds import EVENT, JOB, SERVICE, Kind
from mooring.api.kinds import POD as POD_KIND
from mooring.api.schema.types import struct_of_kind
from mooring.apiserver.apply.field_set import FieldSet
from mooring.apiserver.apply.kind_schema import KindSchema, custom_kind_schemas, kind_schema_of_struct
from mooring.apiserver.apply.managers import APPLY, UPDATE, Entry, Managers, manager_id
from mooring.apiserver.apply.patch import apply_as
from mooring.apiserver.apply.typed import SchemaMismatchError
from mooring.apiserver.apply.update import (
    REPLICAS,
    SCALE_VERSION,
    VersionedChanges,
    cached_ownership_of,
    conflicts,
    keep_unchanged_times,
    parent_entries,
    reconcile,
    scale_entries,
    take_from_other_managers,
    update_managed_fields,
    write_managed_fields,
)
from mooring.apiserver.call import Call
from mooring.serving.users import User
from tests.apiserver.apply.builders import (
    CONFIG_MAP,
    DEPLOYMENT,
    MONDAY,
    POD,
    THING,
    THING_VERSION,
    TUESDAY,
    call,
    config_map,
    created,
    fields,
    owners,
    shown,
    thing,
    times,
    updated,
)
from tests.apiserver.apply.builders import kind_schema_of as kind_schema_of_version

NOW = "2026-01-01T00:00:00Z"
IGNORED = (("status",),)


def kind_schema_of(kind: Kind) -> KindSchema:
    struct = struct_of_kind(kind.api_version, kind.kind)
    assert struct is not None
    return kind_schema_of_struct(struct, kind.api_version, kind.kind)


def an(kind: Kind, metadata: Document | None = None, **parts: object) -> tuple[Kind, Document]:
    named = {"name": "n", "namespace": "s", **(metadata or {})}
    return kind, {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": named, **parts}


def with_variable(**parts: object) -> tuple[Kind, Document]:
    return an(POD_KIND, spec={"containers": [{"name": "c", "env": [{"name": "A", **parts}]}]})


PORTS = [{"port": 80, "protocol": "TCP"}, {"port": 443, "protocol": "TCP", "targetPort": 8443}]


@pytest.mark.parametrize(
    ("first", "second", "is_same_pattern"),
    [
        pytest.param(
            an(CONFIG_MAP_KIND, data={"a": "1"}), an(CONFIG_MAP_KIND, data={"a": "2"}), True, id="other values"
        ),
        pytest.param(
            an(CONFIG_MAP_KIND, data={"a": "1"}), an(CONFIG_MAP_KIND, data={"b": "1"}), False, id="another key"
        ),
        pytest.param(
            an(CONFIG_MAP_KIND, data={"a": "1"}),
            an(CONFIG_MAP_KIND, {"labels": {"x": "y"}}),
            False,
            id="labels",
        ),
        pytest.param(
            an(CONFIG_MAP_KIND, data={"a": "1"}),
            an(CONFIG_MAP_KIND, data={"a": ""}),
            False,
            id="an empty value",
        ),
        pytest.param(an(CONFIG_MAP_KIND, data={"a": "1"}), an(CONFIG_MAP_KIND, data={}), False, id="an empty map"),
        pytest.param(
            an(SERVICE, spec={"ports": PORTS}), an(SERVICE, spec={"ports": PORTS[:1]}), False, id="fewer items"
        ),
        pytest.param(an(SERVICE, spec={"ports": PORTS}), an(SERVICE, spec={"ports": []}), False, id="an empty list"),
        pytest.param(
            an(SERVICE, spec={"ports": PORTS[:1]}),
            an(SERVICE, spec={"ports": PORTS[:1] * 2}),
            False,
            id="duplicate items",
        ),
        pytest.param(
            an(SERVICE, spec={"clusterIPs": ["10.0.0.1"]}),
            an(SERVICE, spec={"clusterIPs": ["10.0.0.2", "10.0.0.3"]}),
            True,
            id="a list that is owned as a whole",
        ),
        pytest.param(
            an(EVENT, regarding={"name": "a"}, note="x"),
            an(EVENT, regarding={"name": "b"}, note="y"),
            True,
            id="events",
        ),
        pytest.param(
            an(POD_KIND, spec={"containers": None}),
            an(POD_KIND, spec={"containers": [{"name": "c"}]}),
            False,
            id="a null",
        ),
        pytest.param(with_variable(value="1"), with_variable(value="2"), True, id="a struct of single values"),
        pytest.param(with_variable(value="1"), with_variable(value=""), False, id="an empty value in a struct"),
        pytest.param(with_variable(value="1"), with_variable(), False, id="an absent value in a struct"),
        pytest.param(
            an(JOB, spec={"parallelism": 0}), an(JOB, spec={"parallelism": 3}, status={"active": 1}), False, id="a zero"
        ),
    ],
)
def test_cached_ownership_on_create_equals_computed_ownership(
    first: tuple[Kind, Document], second: tuple[Kind, Document], is_same_pattern: bool
) -> None:
    kind = first[0]
    kind_schema = kind_schema_of(kind)
    call = Call("create", kind, User("u"), 0.0, NOW, field_manager="m")
    for _, made in (first, second, first, second):
        computed, found = deepcopy(made), deepcopy(made)
        write_managed_fields(kind_schema, None, computed, manager_id("m", UPDATE, kind.api_version, ""), NOW, IGNORED)
        update_managed_fields(kind_schema, None, found, call, IGNORED)
        assert found == computed
    places = [cached_ownership_of(kind_schema, made, IGNORED) for _, made in (first, second)]
    assert (places[0] == places[1]) is is_same_pattern


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(an(CONFIG_MAP_KIND, {"managedFields": []}), id="with managedFields"),
        pytest.param(an(CONFIG_MAP_KIND, data={f"k{number}": "" for number in range(600)}), id="very many fields"),
        pytest.param(an(POD_KIND, spec={"containers": [1]}), id="an item of the wrong type"),
    ],
)
def test_ownership_of_unusual_objects_is_not_cached(made: tuple[Kind, Document]) -> None:
    assert cached_ownership_of(kind_schema_of(made[0]), made[1], IGNORED) is None


def test_a_create_owns_its_fields() -> None:
    new = config_map({"a": "1"}, labels={"l": "1"})
    update_managed_fields(CONFIG_MAP, None, new, call("anna"), ())
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


def test_repeated_updates_of_a_manager_have_one_entry() -> None:
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


def test_updates_of_a_subresource_have_separate_entries() -> None:
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
        pytest.param(
            [entry()], {"x Apply": [".data.a"], "bob Update": [".data.b"]}, id="entries replace the stored ones"
        ),
        pytest.param([], {}, id="an empty list clears them"),
        pytest.param([{}], {}, id="one empty entry clears them"),
        pytest.param(
            [entry(operation="Foo")],
            {"anna Update": [".data", ".data.a"], "bob Update": [".data.b"]},
            id="unreadable ones are ignored",
        ),
        pytest.param(
            [entry(apiVersion="v0")], {"bob Update": [".data.b"]}, id="an entry of an unknown version is dropped"
        ),
        pytest.param(
            [entry(fieldsV1={"f:metadata": {"f:ownerReferences": {'k:{"uid":"a"}': {"f:name": {}}}}})],
            {"x Apply": ['.metadata.ownerReferences[uid="a"]'], "bob Update": [".data.b"]},
            id="entries are adapted to the schema",
        ),
    ],
)
def test_managed_fields_sent_by_a_client_replace_the_stored_ones(
    given: list[Document], expected: dict[str, list[str]]
) -> None:
    live = created(CONFIG_MAP, config_map({"a": "1"}), "anna")
    new = updated(CONFIG_MAP, live, config_map({"a": "1", "b": "2"}, managedFields=given), "bob")
    assert owners(new) == expected


def test_managed_fields_sent_to_a_subresource_are_ignored() -> None:
    live = created(CONFIG_MAP, config_map({"a": "1"}), "anna")
    new = updated(CONFIG_MAP, live, config_map({"a": "1"}, managedFields=[]), "bob", subresource="status")
    assert owners(new) == {"anna Update": [".data", ".data.a"]}


def test_an_update_of_an_object_without_managers_adds_none() -> None:
    live = config_map({"a": "1"}, uid="u-1")
    assert owners(updated(CONFIG_MAP, live, config_map({"a": "2"}), "bob")) == {}


def test_an_object_that_does_not_match_its_schema_loses_its_managed_fields() -> None:
    live = created(THING, thing(text="a"))
    assert owners(live)
    assert owners(updated(THING, live, thing(text="a", ports=[None]), "bob")) == {}


def test_keep_unchanged_times_restores_times_if_nothing_else_changed() -> None:
    old = created(CONFIG_MAP, config_map({"a": "1"}), "anna", MONDAY)
    new = created(CONFIG_MAP, config_map({"a": "1"}), "anna", TUESDAY)
    keep_unchanged_times(new, old)
    assert new == old


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(created(CONFIG_MAP, config_map({"a": "2"}), "anna", TUESDAY), id="another value"),
        pytest.param(created(CONFIG_MAP, config_map({"a": "1"}), "bob", TUESDAY), id="another manager"),
        pytest.param(created(CONFIG_MAP, config_map({"b": "1"}), "anna", TUESDAY), id="other fields"),
    ],
)
def test_keep_unchanged_times_keeps_new_times_of_a_changed_object(new: Document) -> None:
    keep_unchanged_times(new, created(CONFIG_MAP, config_map({"a": "1"}), "anna", MONDAY))
    assert set(times(new).values()) == {TUESDAY}


SCALE = kind_schema_of_version(SCALE_VERSION, "Scale")
PATHS = {"apps/v1": REPLICAS}


def scale_entry(manager: str, operation: str, fields: Document, **more: str) -> Document:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "apps/v1",
        "time": MONDAY,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


CREATOR = scale_entry("anna", UPDATE, {"f:spec": {"f:paused": {}, "f:replicas": {}}})
APPLIER = scale_entry("hpa", APPLY, {"f:spec": {"f:replicas": {}}}, subresource="scale")


def scale(replicas: int, entries: list[Document]) -> Document:
    metadata = {"name": "d", "uid": "u-1", "managedFields": entries}
    document = {"apiVersion": SCALE_VERSION, "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}}
    return {**document, "status": {"replicas": 0}}


def scaled(parent: list[Document], manager: str) -> list[Document]:
    """The entries of an object after this manager updated its Scale."""
    live = scale(1, scale_entries(parent, PATHS))
    new = scale(2, [])
    write_managed_fields(SCALE, live, new, manager_id(manager, UPDATE, SCALE_VERSION, "scale"), TUESDAY, ())
    return parent_entries(parent, new["metadata"].get("managedFields", []), "apps/v1", PATHS)


def test_scale_entries_has_only_the_managers_of_the_replicas() -> None:
    other = scale_entry("bob", UPDATE, {"f:spec": {"f:paused": {}}})
    assert scale_entries([APPLIER, CREATOR, other], PATHS) == [
        {**APPLIER, "apiVersion": SCALE_VERSION},
        {**CREATOR, "apiVersion": SCALE_VERSION, "fieldsV1": {"f:spec": {"f:replicas": {}}}},
    ]


def test_updating_a_scale_takes_ownership_of_the_replicas() -> None:
    found = {"metadata": {"managedFields": scaled([CREATOR], "bob")}}
    assert owners(found) == {"anna Update": [".spec.paused"], "bob Update scale": [".spec.replicas"]}


def test_the_entry_of_a_scale_update_has_no_time() -> None:
    assert [("time" in found, found["manager"]) for found in scaled([CREATOR], "bob")] == [
        (False, "bob"),
        (True, "anna"),
    ]


def test_an_applier_of_the_scale_keeps_its_entry() -> None:
    live = scale(1, scale_entries([APPLIER], PATHS))
    scale_document = {"apiVersion": SCALE_VERSION, "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 3}}
    new = apply_as(
        SCALE,
        live,
        scale_document,
        manager="hpa",
        api_version=SCALE_VERSION,
        kind="Scale",
        subresource="scale",
        now=TUESDAY,
        ignored=(),
        is_forced=False,
    )
    assert new["spec"] == {"replicas": 3}
    assert parent_entries([APPLIER], new["metadata"]["managedFields"], "apps/v1", PATHS) == [APPLIER]


def test_parent_entries_drops_entries_of_other_versions() -> None:
    assert parent_entries([{**CREATOR, "apiVersion": "apps/v0"}], [], "apps/v1", PATHS) == []


ANNA, BOB = manager_id("anna", APPLY, "v1", ""), manager_id("bob", UPDATE, "v1", "")


def managers(api_version: str = "v1") -> Managers:
    return {
        ANNA: Entry(api_version, fields("data a", "data b"), MONDAY),
        BOB: Entry(api_version, fields("data b"), MONDAY),
    }


def changes(new: dict[str, str] | None, ignored: tuple[tuple[str, ...], ...] = ()) -> VersionedChanges:
    return VersionedChanges(CONFIG_MAP, "v1", config_map({"a": "1", "b": "2"}), config_map(new), ignored)


def test_changing_a_field_takes_it_from_its_managers() -> None:
    have = managers()
    take_from_other_managers(have, changes({"a": "1", "b": "3"}), None)
    assert {key.name: shown(entry.fields) for key, entry in have.items()} == {"anna": [".data.a"]}


def test_a_removed_field_has_no_owner() -> None:
    have = managers()
    take_from_other_managers(have, changes({"b": "2"}), None)
    assert {key.name: shown(entry.fields) for key, entry in have.items()} == {"anna": [".data.b"], "bob": [".data.b"]}


def test_a_manager_keeps_the_fields_it_changes() -> None:
    have = managers()
    take_from_other_managers(have, changes({"a": "1", "b": "3"}), BOB)
    assert {key.name: shown(entry.fields) for key, entry in have.items()} == {"anna": [".data.a"], "bob": [".data.b"]}


def test_ignored_fields_change_no_owner() -> None:
    have = managers()
    take_from_other_managers(have, changes(None, (("data",),)), None)
    assert have == managers()


def test_conflicts_are_only_with_other_managers() -> None:
    found = conflicts(managers(), changes({"a": "9", "b": "9"}), BOB)
    assert {key.name: shown(paths) for key, paths in found.items()} == {"anna": [".data.a", ".data.b"]}


def test_entries_of_versions_that_are_not_served_are_dropped() -> None:
    have = managers("v0")
    take_from_other_managers(have, changes({"a": "1", "b": "2", "c": "3"}), None)
    assert have == {}


@pytest.mark.parametrize(
    ("owned", "now"),
    [
        pytest.param(fields("spec selector matchLabels a"), [".spec.selector"], id="a struct that is atomic now"),
        pytest.param(fields("spec selector"), [".spec.selector"], id="already atomic"),
        pytest.param(
            fields('spec template spec tolerations k:{"key":"x"} effect'),
            [".spec.template.spec.tolerations"],
            id="a list that is atomic now",
        ),
        pytest.param(fields("spec other x"), [".spec.other.x"], id="unknown fields are kept"),
        pytest.param(fields("metadata labels a"), [".metadata.labels.a"], id="granular"),
    ],
)
def test_reconcile_adapts_entries_to_the_schema(owned: FieldSet, now: list[str]) -> None:
    have = {manager_id("anna", APPLY, "apps/v1", ""): Entry("apps/v1", owned, MONDAY)}
    reconcile(have, DEPLOYMENT, "apps/v1")
    assert [shown(entry.fields) for entry in have.values()] == [now]


def test_reconcile_rejects_an_unknown_version_of_a_custom_kind() -> None:
    have = {manager_id("anna", UPDATE, "example.com/v0", ""): Entry("example.com/v0", fields("spec text"), MONDAY)}
    with pytest.raises(
        SchemaMismatchError, match=r"request to convert CR to an invalid group/version: example\.com/v0"
    ):
        reconcile(have, THING, THING_VERSION)


def test_another_version_is_compared_by_its_own_schema() -> None:
    atomic = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-map-type": "atomic"}}}
    kind_schema = custom_kind_schemas("Thing", {"g/v1": {"type": "object"}, "g/v2": atomic})["g/v1"]
    found = VersionedChanges(kind_schema, "g/v1", {"spec": {"a": 1}}, {"spec": {"a": 2}}, ())
    other = found.at("g/v2")
    assert other is not None
    assert (shown(found.own.written), shown(other.written)) == ([".spec.a"], [".spec"])
