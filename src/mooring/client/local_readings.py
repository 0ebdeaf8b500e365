"""Readings: what is known of a change before anybody reads it.

Comes in   changes that watches tell; bindings that the client writes
Goes out   the event of each change, one for all watches; where it can be, with its view made already

A pod is read by the scheduler when it comes, and once more when it has been bound: the same 4 KB, with a node. Whoever
wrote the binding knows what changed, and makes the new view out of the one that was read: decoding it again would be a
twentieth of what a pod costs.

 1. A view that is made is equal to the one that decoding would give. Tests hold it.
 2. Only pods in which no node is named are remembered, not even an empty one; at most `REMEMBERED_MAX`.
"""

from __future__ import annotations

from typing import cast

from msgspec.structs import force_setattr, replace

from mooring.api.decode import decode_as
from mooring.api.views.base import View
from mooring.api.views.meta import ApiObject, KeptWhole
from mooring.api.views.pod import Pod, PodStatus
from mooring.client.interface import AnyView, Change
from mooring.client.local_form import with_revision
from mooring.store.interface import StoreChange

REMEMBERED_MAX = 20_000
FORESEEN_MAX = 1_000
"""Bindings that no watch has told yet; without a watch nobody ever takes them away."""

_POD_FOLDER = "/registry/pods/"


class LocalEvent:
    """One change of one object."""

    __slots__ = ("_value", "_view", "_view_kind", "change", "number", "revision")

    def __init__(self, change: Change, value: bytes, number: int, view: View | None = None) -> None:
        self.change = change
        self.number = number
        self.revision = str(number)
        self._value = value
        self._view = view
        self._view_kind: type[View] | None = type(view) if view is not None else None

    @property
    def raw(self) -> bytes:
        return with_revision(self._value, self.number)

    def view(self, kind: type[AnyView]) -> AnyView:
        # One place is enough: the readers of a kind nearly always use the same view of it.
        if self._view_kind is not kind:
            self._view = self._read_as(kind)
            self._view_kind = kind
        return cast(AnyView, self._view)

    def _read_as(self, kind: type[AnyView]) -> AnyView:
        if not issubclass(kind, ApiObject) or issubclass(kind, KeptWhole):
            return decode_as(kind, self.raw)
        # Read as it is stored, and stamped then: a copy of the bytes with a stamp in them costs more than the stamp.
        view = decode_as(kind, self._value)
        force_setattr(view.metadata, "resource_version", self.revision)  # nobody else has seen it yet
        return view

    def read_as_pod(self) -> Pod | None:
        """The view, if somebody has asked for it already."""
        return cast(Pod, self._view) if self._view_kind is Pod else None


class Readings:
    """Events of changes, and what helps to read the next one."""

    def __init__(self) -> None:
        self._waiting: dict[str, LocalEvent] = {}
        self._foreseen: dict[int, LocalEvent] = {}

    def event_of(self, change: StoreChange) -> LocalEvent:
        """The event of a change, made by the first watch that tells it and kept for the others."""
        if change.reading is not None:
            return cast(LocalEvent, change.reading)
        event = self._foreseen.pop(change.revision, None) if self._foreseen else None
        if event is None:
            event = _new_event(change)
            if change.key.startswith(_POD_FOLDER):
                self._remember(change, event)
        change.reading = event
        return event

    def is_free(self, key: str, number: int, uid: str) -> bool:
        """Whether a pod at this revision was read, and is the one with the uid, neither gated nor on its way out."""
        event = self._waiting.get(key)
        pod = event.read_as_pod() if event is not None and event.number == number else None
        if pod is None:
            return False
        metadata, spec = pod.metadata, pod.spec
        is_itself = metadata.deletion_timestamp is None and uid in ("", metadata.uid)
        return is_itself and not spec.node_name and not spec.scheduling_gates

    def foresee_binding(
        self, key: str, before: int, value: bytes, number: int, node_name: str, status: PodStatus
    ) -> None:
        """A pod that was at revision `before` has been bound: the view of it, if the old one was read."""
        event = self._waiting.pop(key, None)
        pod = event.read_as_pod() if event is not None and event.number == before else None
        if pod is None:
            return
        view = Pod(
            metadata=replace(pod.metadata, resource_version=str(number)),
            spec=replace(pod.spec, node_name=node_name),
            status=status,
        )
        if len(self._foreseen) >= FORESEEN_MAX:
            self._foreseen.clear()
        self._foreseen[number] = LocalEvent(Change.MODIFIED, value, number, view)

    def _remember(self, change: StoreChange, event: LocalEvent) -> None:
        if change.value is None or b'"nodeName"' in change.value:
            self._waiting.pop(change.key, None)
        elif change.key in self._waiting or (event.change is Change.ADDED and len(self._waiting) < REMEMBERED_MAX):
            self._waiting[change.key] = event


def _new_event(change: StoreChange) -> LocalEvent:
    if change.value is None:
        assert change.previous is not None, f"{change.key} was deleted without having been there"
        return LocalEvent(Change.DELETED, change.previous.value, change.revision)
    kind = Change.ADDED if change.previous is None else Change.MODIFIED
    return LocalEvent(kind, change.value, change.revision)
