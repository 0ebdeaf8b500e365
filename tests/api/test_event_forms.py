"""An event says the same in both forms, and each form writes the empty fields that its API always writes."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.storage.stored_form import served_event, served_field, stored_event

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


def test_each_form_becomes_the_other() -> None:
    assert served_event(STORED) == SERVED
    assert stored_event(SERVED) == STORED


def test_who_reported_is_kept_when_somebody_did() -> None:
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
def test_paths_have_two_names(served: str, stored: str) -> None:
    assert served_field(stored) == served
