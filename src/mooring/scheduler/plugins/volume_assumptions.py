"""Assumed volumes and claims: what the scheduler has decided, before the API server has heard of it.

Comes in   volumes and claims as the watch brings them; decisions of `volume_binding`
Goes out   each object as it is believed to be, to whoever places the next pod

A pod that was given a volume has it, although nothing was written yet: the next pod must not get it too.

 1. An assumption is about one version of an object. Any other version that the watch brings beats it, and so does the
    object's end; the same version again (a resync) does not.
 2. Whoever listens is told of every change of belief, with what is believed now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from mooring.api.views.meta import ApiObject
from mooring.scheduler.cache.objects import ObjectStore

Kind = TypeVar("Kind", bound=ApiObject)
Listener = Callable[[str, "Kind | None"], None]


class AssumedObjects(Generic[Kind]):
    """The objects of one kind as they are believed to be."""

    __slots__ = ("_assumed", "_listeners", "_store")

    def __init__(self, store: ObjectStore[Kind]) -> None:
        self._store = store
        self._assumed: dict[str, Kind] = {}
        self._listeners: list[Listener[Kind]] = []
        store.listen(self._observed)

    def get(self, key: str) -> Kind | None:
        return self._assumed.get(key) or self._store.get(key)

    def assume(self, item: Kind) -> None:
        """Believes this from now on, until a newer version is seen or the assumption is taken back."""
        stored = self._store.get(item.key)
        assert stored is not None, f"{item.kind} {item.key} is assumed, but does not exist"
        assert stored.metadata.resource_version == item.metadata.resource_version, (
            f"{item.key!r} is out of sync (stored: {stored.metadata.resource_version}, "
            f"assume: {item.metadata.resource_version})"
        )
        self._assumed[item.key] = item
        self._tell(item.key, item)

    def restore(self, item: Kind) -> None:
        """Takes back an assumption, if it still is the one that is believed."""
        if self._assumed.get(item.key) is item:
            del self._assumed[item.key]
            self._tell(item.key, self._store.get(item.key))

    def listen(self, listener: Listener[Kind]) -> None:
        """Calls `listener(key, believed)` for every object there is, and after every change of belief."""
        self._listeners.append(listener)
        for item in self._store:
            listener(item.key, self._assumed.get(item.key, item))

    def _observed(self, old: Kind | None, new: Kind | None) -> None:
        changed = new if new is not None else old
        assert changed is not None, "a change without an object"
        key = changed.key
        assumed = self._assumed.get(key)
        if assumed is not None:
            if new is not None and new.metadata.resource_version == assumed.metadata.resource_version:
                return
            del self._assumed[key]
        self._tell(key, new)

    def _tell(self, key: str, believed: Kind | None) -> None:
        for listener in self._listeners:
            listener(key, believed)
