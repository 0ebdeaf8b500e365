"""The event recorder: the interface through which components report events.

Input: `EventRecorder.event`, which never waits and never fails. Output: a key and a note for an event writer, which
makes the recorders.

1. A note has at most `NOTE_BYTES_MAX` bytes, the limit of the API. A longer one ends in " ...".
2. A source may report `SPAM_BURST` events about an object, and then one every `SPAM_REFILL_S`, as in client-go's
   recorder for core/v1.
3. No two events of a writer have the same name, even if the clock stands still.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, TypeAlias

from mooring.api.views.meta import ApiObject, ObjectReference
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy

NOTE_BYTES_MAX = 1024
NAME_LENGTH_MAX = 253
SPAM_BURST = 25
SPAM_REFILL_S = 300.0
SPAM_SOURCES_MAX = 10_000

EventType: TypeAlias = Literal["Normal", "Warning"]
EventKey: TypeAlias = tuple[str, str, str, str, str, ObjectReference, ObjectReference | None]
"""Type, action, reason, controller, instance, regarding and related: all of an event except its note and times."""

_NOTE_END = " ..."
_NANOS_PER_S = 1_000_000_000
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

logger = logging.getLogger(__name__)


class EventRecorder:
    """Records the events of one component."""

    __slots__ = ("_record", "controller", "instance")

    def __init__(self, record: Callable[[EventKey, str], None], controller: str, instance: str = "") -> None:
        self._record = record
        self.controller = controller
        self.instance = instance

    def event(
        self,
        regarding: ApiObject | ObjectReference,
        type: EventType,
        reason: str,
        note: str,
        *,
        action: str = "",
        related: ObjectReference | None = None,
    ) -> None:
        """Something happened to `regarding`. core/v1 Events have no action and no related object."""
        if type not in ("Normal", "Warning"):
            logger.error(
                "no event is recorded: its type is %r, expected Normal or Warning (%s: %s)", type, reason, note
            )
            return
        reference = regarding if isinstance(regarding, ObjectReference) else reference_to(regarding)
        self._record((type, action, reason, self.controller, self.instance, reference, related), note)


class SpamFilter:
    """Limits the events of a source about an object: a token bucket for each."""

    def __init__(self, clock: Clock, *, burst: int, refill_s: float, sources_max: int = SPAM_SOURCES_MAX) -> None:
        assert burst >= 1 and refill_s > 0, f"a burst of {burst}, refilled in {refill_s} s"  # noqa: PT018
        self._clock = clock
        self._burst = float(burst)
        self._rate_per_s = 1.0 / refill_s
        self._sources_max = sources_max
        # (tokens, as of when), the least recent source first. Tuples, because nearly every event is the first of its
        # object. An OrderedDict finds its oldest entry in constant time, a dict does not.
        self._buckets: OrderedDict[tuple[object, ...], tuple[float, float]] = OrderedDict()

    def is_allowed(self, source: tuple[object, ...]) -> bool:
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


class EventNames:
    """Makes the names of events: the object's name and a time in nanoseconds, as client-go does."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._last_nanos = 0

    def new(self, object_name: str, now_s: float) -> str:
        self._last_nanos = max(int(now_s * _NANOS_PER_S), self._last_nanos + 1)
        return event_name(object_name, self._last_nanos) or self._entropy.uuid()


def event_name(object_name: str, nanos: int) -> str | None:
    """The name of an event about an object; None if it would be invalid."""
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


def reference_to(view: ApiObject) -> ObjectReference:
    """A reference to an object, as an event has it."""
    metadata = view.metadata
    return ObjectReference(
        api_version=view.api_version,
        kind=view.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )
