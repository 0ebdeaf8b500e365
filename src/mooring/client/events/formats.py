"""The two formats of events: events.k8s.io/v1 (`SeriesFormat`) and core/v1 (`CoreFormat`).

A format says which events are the same, and encodes an event. kube-scheduler writes events.k8s.io/v1, controllers and
kubelets write core/v1, each as client-go v1.36 does. The APIs differ on purpose: a series leaves out the note, but a
Deployment that is scaled twice has two messages, and both are wanted.

1. events.k8s.io/v1: the same event has an equal key. The key leaves out the note, but not the resourceVersion.
2. core/v1: the same event has an equal message too. From the tenth different message of a reason about an object within
   `SIMILAR_S` on, messages are combined into one event with the last message.
"""

from __future__ import annotations

from collections import OrderedDict

from mooring.api.kinds import CORE_EVENT, EVENT, Kind
from mooring.api.views.meta import ObjectReference
from mooring.client.events.recorder import EventKey, shortened
from mooring.client.events.writer import EventFormat, EventRecord
from mooring.kit.clock import format_rfc3339, format_rfc3339_micro

SIMILAR_MAX = 10
SIMILAR_S = 600.0
SIMILAR_KEYS_MAX = 10_000
COMBINED = "(combined from similar events): "


class SeriesFormat(EventFormat):
    """events.k8s.io/v1: repeated events form a series."""

    kind: Kind = EVENT
    is_series = True

    def aggregate(self, key: EventKey, note: str, now_s: float) -> tuple[tuple[object, ...], str]:
        return key, note

    def spam_key(self, key: EventKey) -> tuple[object, ...]:
        type_, _, _, controller, instance, about, _ = key
        return controller, instance, type_, about.kind, about.namespace, about.name, about.uid

    def body(self, record: EventRecord) -> dict[str, object]:
        type_, action, reason, controller, instance, regarding, related = record.key
        event: dict[str, object] = {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": record.name, "namespace": record.namespace},
            "eventTime": format_rfc3339_micro(record.seen_s),
            "reportingController": controller,
            "reportingInstance": instance,
            "action": action,
            "reason": reason,
            "regarding": _encode_reference(regarding),
            "note": record.note,
            "type": type_,
        }
        if related is not None:
            event["related"] = _encode_reference(related)
        if record.count > 1:
            event |= self.patch(record)
        return event

    def patch(self, record: EventRecord) -> dict[str, object]:
        return {"series": {"count": record.count, "lastObservedTime": format_rfc3339_micro(record.last_seen_s)}}


class CoreFormat(EventFormat):
    """core/v1: repeated events have a count; many similar ones are combined."""

    kind: Kind = CORE_EVENT
    is_series = False

    def __init__(self) -> None:
        # The messages of a key and when the last one came, the least recent key first.
        self._similar: OrderedDict[tuple[object, ...], tuple[float, dict[str, None]]] = OrderedDict()

    def aggregate(self, key: EventKey, note: str, now_s: float) -> tuple[tuple[object, ...], str]:
        similar_key = (*self.spam_key(key), key[0], key[2])
        last_s, messages = self._similar.pop(similar_key, (now_s, {}))
        if now_s - last_s > SIMILAR_S:
            messages = {}
        messages[note] = None
        is_combined = len(messages) >= SIMILAR_MAX
        if is_combined:
            del messages[next(iter(messages))]
        if len(self._similar) >= SIMILAR_KEYS_MAX:
            self._similar.popitem(last=False)
        self._similar[similar_key] = now_s, messages
        return (similar_key, shortened(COMBINED + note)) if is_combined else ((*similar_key, note), note)

    def spam_key(self, key: EventKey) -> tuple[object, ...]:
        about = key[5]
        return key[3], about.kind, about.namespace, about.name, about.uid, about.api_version

    def body(self, record: EventRecord) -> dict[str, object]:
        type_, _, reason, controller, _, regarding, _ = record.key
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": record.name, "namespace": record.namespace},
            "involvedObject": _encode_reference(regarding),
            "reason": reason,
            "message": record.note,
            "source": {"component": controller},
            "firstTimestamp": format_rfc3339(record.seen_s),
            "lastTimestamp": format_rfc3339(record.last_seen_s),
            "count": record.count,
            "type": type_,
            "eventTime": None,
            "reportingComponent": controller,
            "reportingInstance": "",
        }

    def patch(self, record: EventRecord) -> dict[str, object]:
        return {
            "count": record.count,
            "lastTimestamp": format_rfc3339(record.last_seen_s),
            "message": record.note,
        }


def _encode_reference(reference: ObjectReference) -> dict[str, str]:
    fields = {
        "kind": reference.kind,
        "namespace": reference.namespace,
        "name": reference.name,
        "uid": reference.uid,
        "apiVersion": reference.api_version,
        "resourceVersion": reference.resource_version,
    }
    return {name: value for name, value in fields.items() if value}
