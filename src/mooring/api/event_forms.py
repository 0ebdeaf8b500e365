"""Convert events between their two forms: they are stored as core/v1 and also served as events.k8s.io/v1.

1. The forms differ in the names of seven fields, and in which empty fields are written. A document in canonical form
   stays in canonical form.
2. Only the top level of the event and its series are copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mooring.api.document import Document
from mooring.api.kinds import CORE_EVENT, EVENT

CORE_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""From the names of events.k8s.io to those of core."""

SERVED_NAMES = {core: served for served, core in CORE_NAMES.items()}

_REPORTERS = ("reportingComponent", "reportingInstance")


def stored_form(event: Mapping[str, Any]) -> Document:
    """An event of events.k8s.io as core has it."""
    core: Document = {CORE_NAMES.get(field, field): value for field, value in event.items()}
    core["kind"], core["apiVersion"] = CORE_EVENT.kind, CORE_EVENT.api_version
    for field in _REPORTERS:
        core.setdefault(field, "")
    series = core.get("series")
    if series is not None and not series.get("count"):
        core["series"] = {field: value for field, value in series.items() if field != "count"}
    return core


def served_form(event: Document) -> Document:
    """A stored event as events.k8s.io has it."""
    served: Document = {
        SERVED_NAMES.get(field, field): value
        for field, value in event.items()
        if value != "" or field not in _REPORTERS
    }
    served["kind"], served["apiVersion"] = EVENT.kind, EVENT.api_version
    series = served.get("series")
    if series is not None and "count" not in series:
        served["series"] = {"count": 0, **series}
    return served


def served_field(path: str) -> str:
    """The path of a field of core, as events.k8s.io has it: `involvedObject.name` is `regarding.name`."""
    first, dot, rest = path.partition(".")
    return f"{SERVED_NAMES.get(first, first)}{dot}{rest}"
