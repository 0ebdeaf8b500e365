"""What is wrong with an event: the old rules for everybody, the new ones for events.k8s.io.

Comes in   an event in core's form, and the API through which it came
Goes out   faults

 1. An event with an `eventTime` is a new one, whichever API it came through, and must say who reports what.
 2. Paths are core's, except that of the reporting controller, which each API calls by its own name.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import CORE_EVENT, Kind
from mooring.apiserver.validation.fields import Fault, invalid, required
from mooring.apiserver.validation.metadata import immutable_faults
from mooring.apiserver.validation.names import dns_subdomain_faults, qualified_name_faults
from mooring.apiserver.validation.values import internal_value

SHORT_TEXT_BYTES_MAX = 128
MESSAGE_BYTES_MAX = 1024
TYPES = ("Normal", "Warning")

_DISAGREES = "does not match event.namespace"
_UNSET = "needs to be unset"


def event_faults(event: Document, kind: Kind) -> list[Fault]:
    """The rules that every event keeps."""
    namespace = event["metadata"].get("namespace", "")
    if event.get("eventTime"):
        faults = _reported_faults(event, namespace, kind)
    else:
        faults = _legacy_faults(event, namespace)
    return faults + [invalid("namespace", namespace, text) for text in dns_subdomain_faults(namespace)]


def strict_event_faults(event: Document) -> list[Fault]:
    """What a new event of events.k8s.io must have besides."""
    faults = series_faults(event)
    if not event.get("eventTime"):
        faults.append(required("eventTime"))
    if event.get("type") not in TYPES:
        faults.append(invalid("type", "", f"has invalid value: {event.get('type', '')}"))
    for field in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if event.get(field):
            faults.append(invalid(field, "", _UNSET))
    return faults


def event_update_faults(event: Document, old: Document) -> list[Fault]:
    """What an update through events.k8s.io may not change: everything but the series."""
    faults: list[Fault] = []
    if event.get("series") != old.get("series"):
        faults += series_faults(event)
    if event["involvedObject"] != old["involvedObject"]:
        faults += _changed(internal_value(event["involvedObject"], "ObjectReference"), "involvedObject")
    for field in ("reason", "message"):
        faults += immutable_faults(event.get(field, ""), old.get(field, ""), field)
    if event.get("source") != old.get("source"):
        faults += _changed(internal_value(event.get("source") or {}, "EventSource"), "source")
    for field in ("firstTimestamp", "lastTimestamp"):
        faults += immutable_faults(event.get(field), old.get(field), field)
    faults += immutable_faults(event.get("count", 0), old.get("count", 0), "count")
    for field in ("reason", "type"):
        faults += immutable_faults(event.get(field, ""), old.get(field, ""), field)
    faults += immutable_faults(event.get("eventTime"), old.get("eventTime"), "eventTime")
    faults += immutable_faults(event.get("action", ""), old.get("action", ""), "action")
    if event.get("related") != old.get("related"):
        related = event.get("related")
        faults += _changed(internal_value(related, "ObjectReference") if related is not None else None, "related")
    for field, path in (("reportingComponent", "reportingController"), ("reportingInstance", "reportingInstance")):
        faults += immutable_faults(event.get(field, ""), old.get(field, ""), path)
    return faults


def series_faults(event: Document) -> list[Fault]:
    series = event.get("series")
    if series is None:
        return []
    faults = []
    if series.get("count", 0) < 2:
        faults.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        faults.append(required("series.lastObservedTime"))
    return faults


def _legacy_faults(event: Document, namespace: str) -> list[Fault]:
    regarded = event["involvedObject"].get("namespace", "")
    agrees = namespace == regarded if regarded else namespace in ("", "default")
    return [] if agrees else [invalid("involvedObject.namespace", regarded, _DISAGREES)]


def _reported_faults(event: Document, namespace: str, kind: Kind) -> list[Fault]:
    faults = []
    regarded = event["involvedObject"].get("namespace", "")
    if not regarded and namespace not in ("default", "kube-system"):
        faults.append(invalid("involvedObject.namespace", regarded, _DISAGREES))
    path = "reportingComponent" if kind is CORE_EVENT else "reportingController"
    controller = event.get("reportingComponent", "")
    if not controller:
        faults.append(required(path))
    faults += [invalid(path, controller, text) for text in qualified_name_faults(controller)]
    for field in ("reportingInstance", "action", "reason"):
        value = event.get(field, "")
        if not value:
            faults.append(required(field))
        faults += _length_faults(value, SHORT_TEXT_BYTES_MAX, field)
    return faults + _length_faults(event.get("message", ""), MESSAGE_BYTES_MAX, "message")


def _length_faults(value: str, length_max: int, path: str) -> list[Fault]:
    if len(value.encode()) <= length_max:
        return []
    return [invalid(path, "", f"can have at most {length_max} characters")]


def _changed(value: object, path: str) -> list[Fault]:
    return immutable_faults(value, ..., path)
