"""core/v1 Events, as kube-controller-manager and kubelets write them: counted and combined.

1. Equal messages about an object are one event with a count. Different messages are different events.
2. From the tenth different message of a reason about an object within `SIMILAR_S` on, messages are combined into one
   event, with the last message.
3. Spam is counted in its event, but not written.
4. Each component has its own queue and one worker, so that its events are written in order. Each occurrence is a
   request.

Format and limits are those of client-go's recorder for core/v1. Controllers still use it: a Deployment that is scaled
twice has two messages, of which a series would keep one.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TypeVar

from mooring.api.kinds import CORE_EVENT
from mooring.api.views.meta import ObjectReference
from mooring.client.events.recorder import (
    SPAM_BURST,
    SPAM_REFILL_S,
    EventKey,
    EventNames,
    EventRecorder,
    SpamFilter,
    encode_reference,
    event_namespace,
    shortened,
)
from mooring.client.events.writer import EventWriter, PendingEvent
from mooring.client.interface import Client
from mooring.kit.clock import Clock, format_rfc3339
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

PENDING_MAX = 1000
SIMILAR_MAX = 10
SIMILAR_S = 600.0
REMEMBERED_MAX = 4096
COMBINED = "(combined from similar events): "

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class EventWrite:
    """One request: an Event to create, or to patch because it happened again."""

    namespace: str
    name: str
    body: dict[str, object]
    is_repeated: bool

    def patch(self) -> dict[str, object]:
        """The fields that change when the event happens again."""
        return {field: self.body[field] for field in ("count", "lastTimestamp", "message")}


class Correlator:
    """Aggregates the events of one component."""

    def __init__(self, component: str, clock: Clock, entropy: Entropy) -> None:
        self._component = component
        self._clock = clock
        self._names = EventNames(entropy)
        self._spam = SpamFilter(clock, burst=SPAM_BURST, refill_s=SPAM_REFILL_S)
        # An OrderedDict finds its oldest entry in constant time, a dict does not.
        self._similar: OrderedDict[tuple[object, ...], tuple[float, dict[str, None]]] = OrderedDict()
        self._seen: OrderedDict[tuple[object, ...], tuple[int, str, str]] = OrderedDict()  # count, name, first stamp

    def observe(self, about: ObjectReference, type: str, reason: str, message: str) -> EventWrite | None:
        """The request for an event; None for spam."""
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
            name = self._names.new(about.name, now_s)
        _keep(self._seen, key, (count + 1, name, first), REMEMBERED_MAX)
        if not self._spam.is_allowed(("", "", "", self._component, "", about, None)):
            return None
        namespace = event_namespace(about)
        body: dict[str, object] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": encode_reference(about),
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


class CoreEvent(PendingEvent):
    """An event and the requests for it that are due, in order."""

    __slots__ = ("due",)

    kind = CORE_EVENT

    def __init__(self, namespace: str, name: str) -> None:
        super().__init__(namespace, name)
        self.due: deque[EventWrite] = deque()

    @property
    def is_created(self) -> bool:
        return self.due[0].is_repeated

    def body(self) -> dict[str, object]:
        return self.due[0].body

    def patch(self) -> dict[str, object]:
        return self.due[0].patch()

    def rename(self) -> bool:
        return False

    def begin_write(self) -> bool:
        return bool(self.due)

    def end_write(self, *, is_written: bool) -> bool:
        self.due.popleft()
        return bool(self.due)


class ComponentEventWriter(EventWriter[CoreEvent]):
    """Writes the core/v1 Events of one component."""

    workers_min = workers_max = 1
    writes_in_a_row = 8

    def __init__(self, component: str, client: Client, clock: Clock, entropy: Entropy) -> None:
        super().__init__(f"events of {component}", client, clock, entropy, pending_max=PENDING_MAX)
        self._correlator = Correlator(component, clock, entropy)
        self._pending: dict[tuple[str, str], CoreEvent] = {}

    def record(self, key: EventKey, note: str) -> None:
        type_, _, reason, _, _, regarding, _ = key
        self._counts["recorded"] += 1
        if self.is_full:
            self.lose("dropped_full")
            return
        write = self._correlator.observe(regarding, type_, reason, note)
        if write is None:
            # Not logged: a ReplicaSet with a hundred pods is enough for it.
            self._counts["dropped_spam"] += 1
            return
        place = write.namespace, write.name
        event = self._pending.get(place)
        if event is None:
            event = self._pending[place] = CoreEvent(*place)
        event.due.append(write)
        self.enqueue(event)

    def finish(self, event: CoreEvent, *, is_written: bool) -> None:
        del self._pending[event.namespace, event.name]


class CoreEventWriter:
    """Writes core/v1 Events. One for a process."""

    def __init__(self, client: Client, clock: Clock, entropy: Entropy) -> None:
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._writers: dict[str, ComponentEventWriter] = {}
        self._group: TaskGroup | None = None

    def recorder(self, component: str) -> EventRecorder:
        """A recorder for a component such as `replicaset-controller`. Recorders of a component share a writer."""
        writer = self._writers.get(component)
        if writer is None:
            writer = ComponentEventWriter(component, self._client, self._clock, self._entropy.fork(component))
            self._writers[component] = writer
            if self._group is not None:
                writer.start(self._group)
        return writer.recorder(component)

    def start(self, group: TaskGroup) -> None:
        """Start to write, in background tasks of the group."""
        self._group = group
        for writer in self._writers.values():
            writer.start(group)

    async def wait_written(self) -> None:
        """Wait until all recorded events have been written, or tried once."""
        for writer in self._writers.values():
            await writer.wait_written()

    def statistics(self) -> dict[str, dict[str, int]]:
        return {component: writer.statistics() for component, writer in self._writers.items()}


def _keep(memory: OrderedDict[_Key, _Value], key: _Key, value: _Value, limit: int) -> None:
    """Add the youngest entry, and remove the oldest if there are too many."""
    if len(memory) >= limit:
        memory.popitem(last=False)
    memory[key] = value
