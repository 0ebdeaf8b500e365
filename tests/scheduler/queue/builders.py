"""A lobby for tests: a queue whose pods are called by name, with plugins that do what they are told.

lobby = Lobby(refuser("Fit", Wake(Subject.NODE, Action.ADD)))
lobby.sleep("p", by="Fit")
lobby.queue.wake(NODE_ADD)
assert lobby.room("p") is Room.BACKOFF

After every step the lobby checks all invariants of the queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mooring.api.views.pod import Pod
from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.pods import PodInfo, PodSignature, signature_key
from mooring.scheduler.framework.events import Action, ClusterEvent, Subject, Wake
from mooring.scheduler.framework.plugin import Filter, Plugin, PreEnqueue, QueueSort
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Status
from mooring.scheduler.plugins.priority_sort import PrioritySort
from mooring.scheduler.queue.entry import QueuedPod
from mooring.scheduler.queue.moves import Room
from mooring.scheduler.queue.queue import SchedulingQueue
from tests.builders import pod as pod_view

NODE_ADD = ClusterEvent(Subject.NODE, Action.ADD)
NODE_LABEL = ClusterEvent(Subject.NODE, Action.UPDATE_NODE_LABEL)
CLAIM_ADD = ClusterEvent(Subject.PERSISTENT_VOLUME_CLAIM, Action.ADD)
POD_LABEL = ClusterEvent(Subject.PENDING_POD, Action.UPDATE_POD_LABEL)
GATES_GONE = ClusterEvent(Subject.PENDING_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)

_signatures: dict[bytes, PodSignature] = {}


def record(view: Pod) -> PodInfo:
    """A pod as the cache would remember it: pods that are alike share their shape."""
    key = signature_key(view)
    return PodInfo(view, _signatures.setdefault(key, PodSignature(key, view)))


class Refuser(Filter[None]):
    """A plugin that pods can be refused by."""

    def __init__(self, wakes: Sequence[Wake]) -> None:
        self._wakes = wakes

    def filter(self, state: None, rows: Rows) -> Int64s:
        raise AssertionError("nobody filters here")

    def wakes(self) -> Sequence[Wake]:
        return self._wakes


class Gate(PreEnqueue):
    """Lets nobody in while it is shut, except those who are named."""

    def __init__(self, wakes: Sequence[Wake]) -> None:
        self._wakes = wakes
        self.is_shut = False
        self.guests: set[str] = set()
        self.opens_after = 1_000_000
        self.asked: list[str] = []
        self.error: Exception | None = None

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        self.asked.append(pod.name)
        if self.error is not None:
            raise self.error
        if len(self.asked) >= self.opens_after:
            self.is_shut = False
        return Status.unresolvable("it is shut") if self.is_shut and pod.name not in self.guests else None

    def wakes(self) -> Sequence[Wake]:
        return self._wakes


def refuser(name: str, *wakes: Wake) -> Refuser:
    plugin = type(name, (Refuser,), {"name": name})(wakes)
    assert isinstance(plugin, Refuser)
    return plugin


def gate(name: str = "Gate", *wakes: Wake, is_shut: bool = False) -> Gate:
    plugin = type(name, (Gate,), {"name": name})(wakes)
    assert isinstance(plugin, Gate)
    plugin.is_shut = is_shut
    return plugin


class HintLog:
    """A hint that says what it is told, and remembers whom it was asked about."""

    def __init__(self, answer: bool | Exception = True) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.changes: list[tuple[Any, Any]] = []

    def __call__(self, pod: PodInfo, old: Any, new: Any) -> bool:
        self.asked.append(pod.name)
        self.changes.append((old, new))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def profile(*plugins: Plugin, scheduler_name: str = "default-scheduler", sort: QueueSort | None = None) -> Profile:
    queue_sort = sort or PrioritySort()
    return Profile(
        scheduler_name=scheduler_name,
        plugins={plugin.name: plugin for plugin in (*plugins, queue_sort)},
        pre_enqueue=tuple(plugin for plugin in plugins if isinstance(plugin, PreEnqueue)),
        queue_sort=queue_sort,
        pre_filters=(),
        filters=(),
        post_filters=(),
        scores=(),
        reserves=(),
        permits=(),
        pre_binds=(),
        binds=(),
        post_binds=(),
    )


class Lobby:
    """A queue, its clock, and its pods by name."""

    def __init__(self, *plugins: Plugin, profiles: Iterable[Profile] = (), **options: Any) -> None:
        self.clock = VirtualClock()
        self.moves: list[tuple[str, str]] = []
        served = {one.scheduler_name: one for one in (profiles or (profile(*plugins),))}
        self.queue = SchedulingQueue(
            served, clock=self.clock, moved=lambda queue, label: self.moves.append((queue, label)), **options
        )
        self.in_flight: dict[str, QueuedPod] = {}
        self._plugins = plugins

    @property
    def gate(self) -> Gate:
        return next(plugin for plugin in self._plugins if isinstance(plugin, Gate))

    def add(self, *names: str, **what: Any) -> None:
        for name in names:
            self.queue.add(self.pod(name, **what))
            self.queue.check()

    def pod(self, name: str, **what: Any) -> PodInfo:
        return record(pod_view(name, uid=name, **what))

    def pop(self) -> str | None:
        entry = self.queue.pop()
        self.queue.check()
        if entry is None:
            return None
        self.in_flight[entry.pod.name] = entry
        return entry.pod.name

    def pop_all(self) -> list[str]:
        names = []
        while (name := self.pop()) is not None:
            names.append(name)
        return names

    def refuse(self, name: str, by: str | Iterable[str] = "Fit", pending: Iterable[str] = ()) -> Room:
        plugins = frozenset((by,) if isinstance(by, str) else by)
        room = self.queue.give_back(self.in_flight.pop(name), plugins, frozenset(pending))
        self.queue.check()
        return room

    def fail(self, name: str) -> Room:
        room = self.queue.give_back(self.in_flight.pop(name), is_error=True)
        self.queue.check()
        return room

    def sleep(self, *names: str, by: str | Iterable[str] = "Fit", pending: Iterable[str] = (), **what: Any) -> None:
        """Adds pods and lets them be refused."""
        for name in names:
            self.add(name, **what)
            while self.pop() != name:
                pass
            assert self.refuse(name, by, pending) is Room.UNSCHEDULABLE

    def wake(self, event: ClusterEvent, old: Any = None, new: Any = None) -> int:
        woken = self.queue.wake(event, old, new)
        self.queue.check()
        return woken

    def update(self, name: str, *events: ClusterEvent, **what: Any) -> None:
        entry = self.queue.get(name)
        old = entry.pod if entry is not None else self.pod(name)
        self.queue.update(old, self.pod(name, **what), events)
        self.queue.check()

    def wait_s(self, seconds: float) -> None:
        self.clock.advance_to(self.clock.now_s() + seconds)
        self.queue.tick()
        self.queue.check()

    def room(self, name: str) -> Room:
        entry = self.queue.get(name)
        return Room.OUTSIDE if entry is None else entry.room

    def entry(self, name: str) -> QueuedPod:
        entry = self.queue.get(name)
        assert entry is not None, f"{name} is not in the queue"
        return entry

    def _came_in(self, queue: str, label: str) -> None:
        self.moves.append((queue, label))

    def counted(self) -> list[tuple[str, str]]:
        """What `queue_incoming_pods_total` counts: (queue, event)."""
        return self.moves
