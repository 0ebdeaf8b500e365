"""Who manages the replicas, seen through the Scale."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.apply.managers import APPLY, UPDATE, manager_id
from mooring.apiserver.apply.patch import apply_as
from mooring.apiserver.apply.scale import REPLICAS, SCALE_VERSION, parent_entries, scale_entries
from mooring.apiserver.apply.update import stamp
from tests.apiserver.apply.builders import MONDAY, TUESDAY, owners, shape_of

SCALE = shape_of(SCALE_VERSION, "Scale")
PATHS = {"apps/v1": REPLICAS}


def entry(manager: str, operation: str, fields: Document, **more: str) -> Document:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "apps/v1",
        "time": MONDAY,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


CREATOR = entry("anna", UPDATE, {"f:spec": {"f:paused": {}, "f:replicas": {}}})
APPLIER = entry("hpa", APPLY, {"f:spec": {"f:replicas": {}}}, subresource="scale")


def scale(replicas: int, entries: list[Document]) -> Document:
    metadata = {"name": "d", "uid": "u-1", "managedFields": entries}
    document = {"apiVersion": SCALE_VERSION, "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}}
    return {**document, "status": {"replicas": 0}}


def scaled(parent: list[Document], manager: str) -> list[Document]:
    """The entries of an object after somebody updated its Scale."""
    live = scale(1, scale_entries(parent, PATHS))
    new = scale(2, [])
    stamp(SCALE, live, new, manager_id(manager, UPDATE, SCALE_VERSION, "scale"), TUESDAY, ())
    return parent_entries(parent, new["metadata"].get("managedFields", []), "apps/v1", PATHS)


def test_the_scale_shows_the_managers_of_the_replicas() -> None:
    other = entry("bob", UPDATE, {"f:spec": {"f:paused": {}}})
    assert scale_entries([APPLIER, CREATOR, other], PATHS) == [
        {**APPLIER, "apiVersion": SCALE_VERSION},
        {**CREATOR, "apiVersion": SCALE_VERSION, "fieldsV1": {"f:spec": {"f:replicas": {}}}},
    ]


def test_a_scale_takes_ownership_of_the_replicas() -> None:
    found = {"metadata": {"managedFields": scaled([CREATOR], "bob")}}
    assert owners(found) == {"anna Update": [".spec.paused"], "bob Update scale": [".spec.replicas"]}


def test_the_entry_has_no_time() -> None:
    assert [("time" in found, found["manager"]) for found in scaled([CREATOR], "bob")] == [
        (False, "bob"),
        (True, "anna"),
    ]


def test_an_applier_of_the_scale_keeps_its_entry() -> None:
    live = scale(1, scale_entries([APPLIER], PATHS))
    wanted = {"apiVersion": SCALE_VERSION, "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 3}}
    new = apply_as(
        SCALE,
        live,
        wanted,
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


def test_entries_of_other_versions_go() -> None:
    assert parent_entries([{**CREATOR, "apiVersion": "apps/v0"}], [], "apps/v1", PATHS) == []
