"""Events as kube-controller-manager tells them: v1 Events, counted and combined.

Comes in   from controllers: what happened to whom (`CoreEventRecorder.event`, which never waits and never fails)
Goes out   to the writer: Events to be created, or to be patched because they happened again

 1. The same sentence about the same object is one event with a count. Different sentences are different events.
 2. The tenth different sentence of one reason about one object within `SIMILAR_S` is combined with all that follow into
    one event, whose message is the last one.
 3. One source may have `SPAM_BURST` events of one object written and then one each `SPAM_REFILL_S`; others are counted
    but not written.

Why not the recorder of `events`: kube-scheduler tells events.k8s.io/v1 Events, whose series leave out the sentence.
Controllers never changed over; a Deployment that is scaled twice says two sentences, and both are wanted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from mooring.api.views.meta import ApiObject, ObjectReference
from mooring.client.events import (
    NAMESPACE_OF_CLUSTER_EVENTS,
    SPAM_BURST,
    SPAM_REFILL_S,
    SPAM_SOURCES_MAX,
    EventType,
    event_name,
    reference_to,
    shortened,
)
from mooring.kit.clock import Clock, format_rfc3339
from mooring.kit.entropy import Entropy

SIMILAR_MAX = 10
SIMILAR_S = 600.0
REMEMBERED_MAX = 4096
COMBINED = "(combined from similar events): "

_NANOS_PER_S = 1_000_000_000

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

AboutKey: TypeAlias = tuple[str, str, str, str, str]
"""Kind, namespace, name, uid and apiVersion of the object that an event is about."""


@dataclass(frozen=True, slots=True)
class EventWrite:
    """One request: an Event to be created, or one to be told that it happened again."""

    namespace: str
    name: str
    body: dict[str, object]
    is_repeated: bool

    def patch(self) -> dict[str, object]:
        """What changed since the last time."""
        return {field: self.body[field] for field in ("count", "lastTimestamp", "message")}


class CoreEventRecorder:
    """Speaks for one controller."""

    __slots__ = ("_tell", "component")

    def __init__(self, tell: Callable[[ObjectReference, str, str, str], None], component: str) -> None:
        self._tell = tell
        self.component = component

    def event(self, regarding: ApiObject | ObjectReference, type: EventType, reason: str, message: str) -> None:
        """Something happened to an object."""
        reference = regarding if isinstance(regarding, ObjectReference) else reference_to(regarding)
        self._tell(reference, type, reason, message)


class Correlator:
    """Remembers what one source said, and decides what is worth a request."""

    def __init__(self, component: str, clock: Clock, entropy: Entropy) -> None:
        self._component = component
        self._clock = clock
        self._entropy = entropy
        # An OrderedDict finds its oldest at once, however many went before it; a dict does not.
        self._similar: OrderedDict[tuple[object, ...], tuple[float, dict[str, None]]] = OrderedDict()
        self._seen: OrderedDict[tuple[object, ...], tuple[int, str, str]] = OrderedDict()  # count, name, first stamp
        self._tokens: OrderedDict[AboutKey, tuple[float, float]] = OrderedDict()
        self._last_nanos = 0

    def observe(self, about: ObjectReference, type: str, reason: str, message: str) -> EventWrite | None:
        """The request that this event is worth; None if its object had too many."""
        now_s = self._clock.wall_s()
        about_key = (about.kind, about.namespace, about.name, about.uid, about.api_version)
        message = shortened(message)
        similar_key = (about_key, type, reason)
        key: tuple[object, ...] = (*similar_key, message)
        if self._is_one_of_many(similar_key, message, now_s):
            key, message = similar_key, shortened(COMBINED + message)
        stamp = format_rfc3339(now_s)
        count, name, first = self._seen.pop(key, (0, "", stamp))
        if not name:
            name = self._new_name(about.name, now_s)
        _keep(self._seen, key, (count + 1, name, first), REMEMBERED_MAX)
        if not self._has_token(about_key, now_s):
            return None
        namespace = about.namespace or NAMESPACE_OF_CLUSTER_EVENTS
        body: dict[str, object] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": _plain(about),
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": first,
            "lastTimestamp": stamp,
            "count": count + 1,
            "type": type,
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
        return EventWrite(namespace, name, body, is_repeated=count > 0)

    def _is_one_of_many(self, key: tuple[object, ...], message: str, now_s: float) -> bool:
        last_s, messages = self._similar.pop(key, (now_s, {}))
        if now_s - last_s > SIMILAR_S:
            messages = {}
        messages[message] = None
        is_one_of_many = len(messages) >= SIMILAR_MAX
        if is_one_of_many:
            del messages[next(iter(messages))]
        _keep(self._similar, key, (now_s, messages), REMEMBERED_MAX)
        return is_one_of_many

    def _has_token(self, key: AboutKey, now_s: float) -> bool:
        tokens, since_s = self._tokens.pop(key, (float(SPAM_BURST), now_s))
        tokens = min(float(SPAM_BURST), tokens + (now_s - since_s) / SPAM_REFILL_S)
        has_token = tokens >= 1.0
        _keep(self._tokens, key, (tokens - 1.0 if has_token else tokens, now_s), SPAM_SOURCES_MAX)
        return has_token

    def _new_name(self, object_name: str, now_s: float) -> str:
        self._last_nanos = max(int(now_s * _NANOS_PER_S), self._last_nanos + 1)
        return event_name(object_name, self._last_nanos) or self._entropy.uuid()


def _keep(memory: OrderedDict[_Key, _Value], key: _Key, value: _Value, limit: int) -> None:
    """At the young end; the oldest makes room."""
    if len(memory) >= limit:
        memory.popitem(last=False)
    memory[key] = value


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
