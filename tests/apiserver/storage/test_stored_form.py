"""A stored object begins with its kind and has no resourceVersion; clients receive it with one.

Events have two forms, of v1 and of events.k8s.io/v1: fields have other names, and each form writes the empty fields
that its API always writes.
"""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, CORE_EVENT, DEPLOYMENT, EVENT, POD
from mooring.apiserver.storage.stored_form import (
    PlainObject,
    converted,
    decoded,
    encoded,
    partly_decoded,
    served_bytes,
    served_event,
    served_field,
    stored_event,
    stored_form,
    stored_kind,
    stored_selection,
    to_served,
    to_stored,
    with_revision,
)
from mooring.client.interface import Selection

TEXTS = st.text(max_size=20) | st.sampled_from(['"metadata":{', '{"metadata":{"a":1}}', "\\", '"', "ü"])
VALUES = st.recursive(
    TEXTS | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.dictionaries(TEXTS, VALUES, max_size=3), st.integers(2, 2**60))
def test_with_revision_adds_only_the_resource_version(
    body: PlainObject, annotations: PlainObject, revision: int
) -> None:
    metadata: PlainObject = {"name": "a", "annotations": annotations}
    stored = stored_form(CONFIG_MAP, body, metadata)
    assert stored.startswith(b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"')
    whole = {**body, "kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
    assert decoded(stored) == whole
    assert decoded(with_revision(stored, revision)) == {
        **whole,
        "metadata": {**metadata, "resourceVersion": str(revision)},
    }


def test_encoding_a_decoded_object_keeps_the_order_of_fields() -> None:
    stored = stored_form(DEPLOYMENT, {"spec": {"replicas": 1}, "metadata": {"ignored": True}}, {"name": "web"})
    assert stored == b'{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web"},"spec":{"replicas":1}}'
    assert encoded(decoded(stored)) == stored


SECTIONS = st.dictionaries(TEXTS, VALUES, max_size=4)


@given(SECTIONS, SECTIONS, st.none() | SECTIONS, st.lists(TEXTS, max_size=3))
def test_encoding_a_partly_decoded_object_gives_the_stored_bytes(
    metadata: PlainObject, spec: PlainObject, status: PlainObject | None, names: list[str]
) -> None:
    body: PlainObject = {"spec": spec} if status is None else {"spec": spec, "status": status}
    stored = stored_form(POD, body, {"name": "a", **metadata})
    fields = {"metadata": {*names, "name"}, "spec": {*names, *spec}, "status": {*names}}
    found = partly_decoded(stored, fields)
    assert encoded(found) == stored
    assert found["spec"] == spec
    for name in names:
        assert cast(PlainObject, found.get("status", {})).get(name) == (status or {}).get(name)


CORE: PlainObject = {
    "kind": "Event",
    "apiVersion": "v1",
    "metadata": {"name": "web.1"},
    "involvedObject": {"kind": "Pod"},
    "reason": "Scheduled",
    "message": "assigned",
    "source": {"component": "x"},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "count": 1,
    "type": "Normal",
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingComponent": "default-scheduler",
    "reportingInstance": "here",
}
NEWER: PlainObject = {
    "kind": "Event",
    "apiVersion": "events.k8s.io/v1",
    "metadata": {"name": "web.1"},
    "regarding": {"kind": "Pod"},
    "reason": "Scheduled",
    "note": "assigned",
    "deprecatedSource": {"component": "x"},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
    "deprecatedCount": 1,
    "type": "Normal",
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "default-scheduler",
    "reportingInstance": "here",
}


def test_the_two_forms_of_an_event_differ_in_field_names_only() -> None:
    assert to_stored(EVENT, NEWER) == CORE
    assert to_served(EVENT, CORE) == NEWER
    assert converted(EVENT, encoded(CORE)) == encoded(NEWER)
    assert served_bytes(EVENT, encoded(CORE), 7).startswith(
        b'{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"resourceVersion":"7","name":"web.1"}'
    )


def test_objects_of_other_kinds_are_stored_unchanged() -> None:
    assert (stored_kind(EVENT), stored_kind(CORE_EVENT), stored_kind(POD)) == (CORE_EVENT, CORE_EVENT, POD)
    assert to_stored(CORE_EVENT, CORE) is CORE
    assert to_served(POD, CORE) is CORE


@pytest.mark.parametrize(
    ("fields", "stored"),
    [
        pytest.param("regarding.name=web", "involvedObject.name=web", id="a path"),
        pytest.param("reportingController!=x,type=Normal", "reportingComponent!=x,type=Normal", id="one of two"),
        pytest.param("notes=1", "notes=1", id="a field with the same prefix"),
        pytest.param("", "", id="none"),
    ],
)
def test_field_selectors_of_events_are_translated_to_stored_names(fields: str, stored: str) -> None:
    assert stored_selection(EVENT, Selection("a", "b", fields)) == Selection("a", "b", stored)
    assert stored_selection(CORE_EVENT, Selection("a", "b", fields)).fields == fields


STORED: Document = {
    "kind": "Event",
    "apiVersion": "v1",
    "metadata": {"name": "web.1"},
    "involvedObject": {"kind": "Pod"},
    "message": "assigned",
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "count": 2,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
    "series": {"lastObservedTime": None},
}
SERVED: Document = {
    "kind": "Event",
    "apiVersion": "events.k8s.io/v1",
    "metadata": {"name": "web.1"},
    "regarding": {"kind": "Pod"},
    "note": "assigned",
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
    "deprecatedCount": 2,
    "eventTime": None,
    "series": {"count": 0, "lastObservedTime": None},
}


def test_served_and_stored_events_convert_into_each_other() -> None:
    assert served_event(STORED) == SERVED
    assert stored_event(SERVED) == STORED


def test_the_reporting_component_of_an_event_is_kept_if_set() -> None:
    event = {**STORED, "reportingComponent": "default-scheduler", "series": {"count": 3, "lastObservedTime": None}}
    served = served_event(event)
    assert served["reportingController"] == "default-scheduler"
    assert served["series"] == {"count": 3, "lastObservedTime": None}
    assert stored_event(served) == event


@pytest.mark.parametrize(
    ("served", "stored"),
    [
        ("regarding.name", "involvedObject.name"),
        ("reportingController", "reportingComponent"),
        ("metadata.name", "metadata.name"),
        ("reason", "reason"),
    ],
)
def test_served_field_translates_paths_of_stored_events(served: str, stored: str) -> None:
    assert served_field(stored) == served
