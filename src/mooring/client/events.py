"""The event recorder: says what happened to an object, for people to read.

Comes in   from any part: what happened, to whom, why (`EventRecorder.event`)
Goes out   to the event writer, which makes recorders: records to be written as events.k8s.io/v1 Events

 1. Recording never waits and never fails. What is too much is dropped, counted, and logged once in a while.
 2. The same thing said again of the same object is no new event but the next of a series: counted at once, written when
    the series begins, when it ends and now and then. "The same" leaves out the note, but not the resourceVersion.
 3. One source may say `SPAM_BURST` things of one object and then one each `SPAM_REFILL_S`, as the older of client-go's
    two recorders allows.
 4. A note that is longer than 1024 bytes, the API's limit, ends in " ...".

Form and intervals are those of client-go's recorder for events.k8s.io/v1, which kube-scheduler v1.36 uses.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, TypeAlias

from mooring.api.views.meta import ApiObject, ObjectReference
from mooring.kit.clock import Clock, format_rfc3339_micro

NOTE_BYTES_MAX = 1024
NAME_LENGTH_MAX = 253
SPAM_BURST = 25
SPAM_REFILL_S = 300.0
SPAM_SOURCES_MAX = 4096
NAMESPACE_OF_CLUSTER_EVENTS = "default"

EventType: TypeAlias = Literal["Normal", "Warning"]
EventKey: TypeAlias = tuple[str, str, str, str, str, ObjectReference, ObjectReference | None]

_NOTE_END = " ..."
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

logger = logging.getLogger(__name__)


def reference_to(view: ApiObject) -> ObjectReference:
    """A reference to an object, as an event carries it."""
    metadata = view.metadata
    return ObjectReference(
        api_version=view.api_version,
        kind=view.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


class EventRecorder:
    """Speaks for one controller on one host."""

    __slots__ = ("_controller", "_instance", "_record")

    def __init__(self, record: Callable[[EventKey, str], None], controller: str, instance: str) -> None:
        self._record = record
        self._controller = controller
        self._instance = instance

    def event(
        self,
        regarding: ObjectReference,
        *,
        type: EventType,
        reason: str,
        action: str,
        note: str,
        related: ObjectReference | None = None,
    ) -> None:
        """Something happened to `regarding`, perhaps because of `related`."""
        if type not in ("Normal", "Warning"):
            logger.error("no event is recorded: its type is %r, wanted Normal or Warning (%s: %s)", type, reason, note)
            return
        key = (type, action, reason, self._controller, self._instance, regarding, related)
        self._record(key, note)


class EventRecord:
    """One event and its series, as far as it has been written."""

    __slots__ = (
        "count",
        "count_written",
        "is_outcome_unknown",
        "key",
        "last_seen_s",
        "name",
        "namespace",
        "note",
        "seen_s",
        "tries",
    )

    def __init__(self, key: EventKey, name: str, note: str, seen_s: float) -> None:
        self.key = key
        self.name = name
        self.namespace = key[5].namespace or NAMESPACE_OF_CLUSTER_EVENTS
        self.note = note
        self.seen_s = seen_s
        self.last_seen_s = seen_s
        self.count = 1
        self.count_written = 0
        self.tries = 0
        self.is_outcome_unknown = False

    @property
    def is_series(self) -> bool:
        return self.count > 1

    def body(self) -> dict[str, object]:
        """The Event."""
        type_, action, reason, controller, instance, regarding, related = self.key
        event: dict[str, object] = {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "eventTime": format_rfc3339_micro(self.seen_s),
            "reportingController": controller,
            "reportingInstance": instance,
            "action": action,
            "reason": reason,
            "regarding": _plain(regarding),
            "note": self.note,
            "type": type_,
        }
        if related is not None:
            event["related"] = _plain(related)
        if self.is_series:
            event |= self.series()
        return event

    def series(self) -> dict[str, object]:
        """The part of the Event that changes."""
        return {"series": {"count": self.count, "lastObservedTime": format_rfc3339_micro(self.last_seen_s)}}


class SpamFilter:
    """Whether a source has said too much of an object lately: a bucket of tokens for each."""

    def __init__(self, clock: Clock, *, burst: int, refill_s: float, sources_max: int = SPAM_SOURCES_MAX) -> None:
        assert burst >= 1 and refill_s > 0, f"a burst of {burst}, refilled in {refill_s} s"  # noqa: PT018
        self._clock = clock
        self._burst = float(burst)
        self._rate_per_s = 1.0 / refill_s
        self._sources_max = sources_max
        # (tokens, as of when), the source that spoke longest ago first. Tuples, because nearly every event is the first
        # of its object. An OrderedDict finds its oldest at once, however many went before it; a dict does not.
        self._buckets: OrderedDict[tuple[object, ...], tuple[float, float]] = OrderedDict()

    def is_allowed(self, key: EventKey) -> bool:
        type_, _, _, controller, instance, regarding, _ = key
        source = (controller, instance, type_, regarding.kind, regarding.namespace, regarding.name, regarding.uid)
        now_s = self._clock.now_s()
        bucket = self._buckets.pop(source, None)
        if bucket is None:
            tokens = self._burst
            if len(self._buckets) >= self._sources_max:
                self._buckets.popitem(last=False)
        else:
            tokens = min(self._burst, bucket[0] + (now_s - bucket[1]) * self._rate_per_s)
        is_allowed = tokens >= 1.0
        self._buckets[source] = (tokens - 1.0 if is_allowed else tokens, now_s)
        return is_allowed


def event_name(object_name: str, nanos: int) -> str | None:
    """The name of an event about an object; None if the object's name does not make a good one."""
    name = f"{object_name}.{nanos:x}"
    return name if len(name) <= NAME_LENGTH_MAX and _SUBDOMAIN.fullmatch(name) else None


def shortened(note: str) -> str:
    """A note of at most `NOTE_BYTES_MAX` bytes."""
    if len(note) * 4 <= NOTE_BYTES_MAX:  # no character takes more than four bytes
        return note
    raw = note.encode()
    if len(raw) <= NOTE_BYTES_MAX:
        return note
    return raw[: NOTE_BYTES_MAX - len(_NOTE_END)].decode(errors="ignore") + _NOTE_END


def _plain(reference: ObjectReference) -> dict[str, str]:
    fields = {
        "kind": reference.kind,
        "namespace": reference.namespace,
        "name": reference.name,
        "uid": reference.uid,
        "apiVersion": reference.api_version,
        "resourceVersion": reference.resource_version,
    }
    return {name: value for name, value in fields.items() if value}
