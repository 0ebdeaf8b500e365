"""Events in a table.

1. Both forms of an event are printed alike: the served form is turned into the stored one first.
2. A series knows better when it was last seen, and how often.
"""

from __future__ import annotations

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.event_forms import stored_form
from mooring.apiserver.tables.cells import UNKNOWN, since
from mooring.apiserver.tables.columns import NAME, Cell, KindTable, column, wide


def _core_event(event: Document, now_s: float) -> list[Cell]:
    first = since(event.get("firstTimestamp") or event.get("eventTime"), now_s)
    last, count = event.get("lastTimestamp"), event.get("count") or 1
    seen = since(last, now_s) if last else first
    series = event.get("series")
    if series is not None:
        observed = series.get("lastObservedTime")
        seen, count = since(observed, now_s) if observed else UNKNOWN, series.get("count", 0)
    about = event.get("involvedObject") or {}
    target = about.get("kind", "").lower()
    return [
        seen,
        event.get("type", ""),
        event.get("reason", ""),
        f"{target}/{about['name']}" if about.get("name") else target,
        about.get("fieldPath", ""),
        _source(event),
        event.get("message", "").strip(),
        first,
        count,
        event["metadata"]["name"],
    ]


def _served_event(event: Document, now_s: float) -> list[Cell]:
    return _core_event(stored_form(event), now_s)


def _source(event: Document) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent", "")
    instance = source.get("host") or event.get("reportingInstance", "")
    return f"{component}, {instance}" if instance else component


_COLUMNS = (
    column("Last Seen", "How long ago it happened the last time."),
    column("Type", "Whether it is normal or a warning."),
    column("Reason", "Why it happened, in one word."),
    column("Object", "What it happened to."),
    wide("Subobject", "Which part of that."),
    wide("Source", "Who says so."),
    column("Message", "What happened."),
    wide("First Seen", "How long ago it happened the first time."),
    wide("Count", "How often it happened."),
    {**NAME, "priority": 1},
)
CORE_EVENT_TABLE = KindTable(_COLUMNS, _core_event)

EVENT_TABLE = KindTable(_COLUMNS, _served_event)

TABLES = {
    kinds.CORE_EVENT: CORE_EVENT_TABLE,
    kinds.EVENT: EVENT_TABLE,
}
