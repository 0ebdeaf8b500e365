"""An event is the same in both forms, and nothing but the names of fields changes between them."""

from __future__ import annotations

import pytest

from mooring.api.kinds import CORE_EVENT, EVENT, POD
from mooring.apiserver.storage.stored_form import (
    PlainObject,
    encoded,
    inward,
    inward_selection,
    outward,
    outward_plain,
    stored_kind,
    translated,
)
from mooring.client.interface import Selection

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


def test_the_forms_differ_in_names_only() -> None:
    assert inward(EVENT, NEWER) == CORE
    assert outward_plain(EVENT, CORE) == NEWER
    assert translated(EVENT, encoded(CORE)) == encoded(NEWER)
    assert outward(EVENT, encoded(CORE), 7).startswith(
        b'{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"resourceVersion":"7","name":"web.1"}'
    )


def test_all_other_kinds_are_stored_as_they_are() -> None:
    assert (stored_kind(EVENT), stored_kind(CORE_EVENT), stored_kind(POD)) == (CORE_EVENT, CORE_EVENT, POD)
    assert inward(CORE_EVENT, CORE) is CORE
    assert outward_plain(POD, CORE) is CORE


@pytest.mark.parametrize(
    ("fields", "stored"),
    [
        pytest.param("regarding.name=web", "involvedObject.name=web", id="a path"),
        pytest.param("reportingController!=x,type=Normal", "reportingComponent!=x,type=Normal", id="one of two"),
        pytest.param("notes=1", "notes=1", id="a field that only begins so"),
        pytest.param("", "", id="none"),
    ],
)
def test_a_selection_goes_by_the_stored_names(fields: str, stored: str) -> None:
    assert inward_selection(EVENT, Selection("a", "b", fields)) == Selection("a", "b", stored)
    assert inward_selection(CORE_EVENT, Selection("a", "b", fields)).fields == fields
