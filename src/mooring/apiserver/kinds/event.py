"""Event (v1 and events.k8s.io/v1).

1. Both kinds have one strategy. Events are validated in the form of the core group
   (`mooring.apiserver.storage.stored_form`), in which they are stored. Field paths are those of the core group, except
   that of the reporting controller.
2. An event with an `eventTime` is validated by the new rules, through both APIs.
3. An update through the core group may change any field; one through events.k8s.io only the series.
4. The table converts events of events.k8s.io to the stored form first. A series has the last time and count.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import CORE_EVENT, Kind
from mooring.apiserver.call import Call
from mooring.apiserver.storage.stored_form import served_field, stored_event
from mooring.apiserver.strategy import DefaultPropagation, Strategy
from mooring.apiserver.tables import NAME, UNKNOWN, Cell, KindTable, column, since, wide
from mooring.apiserver.validation.fields import FieldError, invalid, required
from mooring.apiserver.validation.metadata import validate_immutable
from mooring.apiserver.validation.names import dns_subdomain_errors, qualified_name_errors
from mooring.apiserver.validation.schema_rules import struct_rules

SHORT_TEXT_BYTES_MAX = 128
MESSAGE_BYTES_MAX = 1024
TYPES = ("Normal", "Warning")

_EVENT = struct_rules("core", "Event")
_FIXED = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
)
"""Immutable fields in the order of validation. kube-apiserver reports a changed reason twice."""

_DISAGREES = "does not match event.namespace"
_UNSET = "needs to be unset"

_SELECTABLE_REFERENCE_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


# --- validation --------------------------------------------------------------------------------------------------


def validate_event(event: Document, kind: Kind) -> list[FieldError]:
    """The rules that every event keeps."""
    namespace = event["metadata"].get("namespace", "")
    if event.get("eventTime"):
        errors = _validate_reported(event, namespace, kind)
    else:
        errors = _validate_legacy(event, namespace)
    return errors + [invalid("namespace", namespace, text) for text in dns_subdomain_errors(namespace)]


def validate_strict_event(event: Document) -> list[FieldError]:
    """Additional rules of a new event of events.k8s.io."""
    errors = validate_series(event)
    if not event.get("eventTime"):
        errors.append(required("eventTime"))
    if event.get("type") not in TYPES:
        errors.append(invalid("type", "", f"has invalid value: {event.get('type', '')}"))
    for field in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if event.get(field):
            errors.append(invalid(field, "", _UNSET))
    return errors


def validate_event_update(event: Document, old: Document) -> list[FieldError]:
    """Immutable fields of an update through events.k8s.io: all but the series."""
    errors: list[FieldError] = []
    if event.get("series") != old.get("series"):
        errors += validate_series(event)
    errors += _EVENT.validate_update(event, old, "", *_FIXED)
    controller, old_controller = event.get("reportingComponent", ""), old.get("reportingComponent", "")
    errors += validate_immutable(controller, old_controller, "reportingController")
    return errors + _EVENT.validate_update(event, old, "", "reportingInstance")


def validate_series(event: Document) -> list[FieldError]:
    series = event.get("series")
    if series is None:
        return []
    errors = []
    if series.get("count", 0) < 2:
        errors.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(required("series.lastObservedTime"))
    return errors


def _validate_legacy(event: Document, namespace: str) -> list[FieldError]:
    regarded = event["involvedObject"].get("namespace", "")
    agrees = namespace == regarded if regarded else namespace in ("", "default")
    return [] if agrees else [invalid("involvedObject.namespace", regarded, _DISAGREES)]


def _validate_reported(event: Document, namespace: str, kind: Kind) -> list[FieldError]:
    errors = []
    regarded = event["involvedObject"].get("namespace", "")
    if not regarded and namespace not in ("default", "kube-system"):
        errors.append(invalid("involvedObject.namespace", regarded, _DISAGREES))
    path = "reportingComponent" if kind is CORE_EVENT else "reportingController"
    controller = event.get("reportingComponent", "")
    if not controller:
        errors.append(required(path))
    errors += [invalid(path, controller, text) for text in qualified_name_errors(controller)]
    for field in ("reportingInstance", "action", "reason"):
        value = event.get(field, "")
        if not value:
            errors.append(required(field))
        errors += _validate_length(value, SHORT_TEXT_BYTES_MAX, field)
    return errors + _validate_length(event.get("message", ""), MESSAGE_BYTES_MAX, "message")


def _validate_length(value: str, length_max: int, path: str) -> list[FieldError]:
    if len(value.encode()) <= length_max:
        return []
    return [invalid(path, "", f"can have at most {length_max} characters")]


# --- table -------------------------------------------------------------------------------------------------------


def _core_event_cells(event: Document, now_s: float) -> list[Cell]:
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
        _event_source_cell(event),
        event.get("message", "").strip(),
        first,
        count,
        event["metadata"]["name"],
    ]


def _served_event_cells(event: Document, now_s: float) -> list[Cell]:
    return _core_event_cells(stored_event(event), now_s)


def _event_source_cell(event: Document) -> str:
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
CORE_EVENT_TABLE = KindTable(_COLUMNS, _core_event_cells)

EVENT_TABLE = KindTable(_COLUMNS, _served_event_cells)


# --- strategy ----------------------------------------------------------------------------------------------------


class EventStrategy(Strategy):
    """Writing an event."""

    allows_create_on_update = True
    dependents = DefaultPropagation.UNSUPPORTED

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self.validates_metadata = kind is not CORE_EVENT
        self.table = CORE_EVENT_TABLE if kind is CORE_EVENT else EVENT_TABLE

    def validate(self, obj: Document, call: Call) -> list[FieldError]:
        event = _core_form(obj)
        errors = validate_event(event, self.kind)
        if self.kind is CORE_EVENT:
            return errors
        errors += self.validate_meta(obj)
        return errors + validate_strict_event(event)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        event = _core_form(obj)
        errors = validate_event(event, self.kind)
        if self.kind is CORE_EVENT:
            return errors
        errors += self.validate_meta_update(obj, old)
        return errors + validate_event_update(event, _core_form(old))

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        event = _core_form(obj)
        regarded = event["involvedObject"]
        component = event.get("reportingComponent", "")
        fields = {f"involvedObject.{field}": regarded.get(field, "") for field in _SELECTABLE_REFERENCE_FIELDS}
        fields["reason"] = event.get("reason", "")
        fields["reportingComponent"] = component
        fields["type"] = event.get("type", "")
        if self.kind is not CORE_EVENT:
            return {served_field(field): value for field, value in fields.items()}
        fields["source"] = (event.get("source") or {}).get("component") or component
        return fields


def _core_form(event: Document) -> Document:
    return event if "involvedObject" in event else stored_event(event)


STRATEGY = EventStrategy
