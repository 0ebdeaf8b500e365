"""Objects that are neither nodes nor pods, by kind and key: volumes, claims, classes, services, namespaces, …

1. There is one `ObjectStore` for each view class, created on first use. The key is namespace/name, or the name.
2. `ObjectStore.version` grows with every change. A reader that derived something from the objects compares it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar, cast

from mooring.api.views.meta import ApiObject

Kind = TypeVar("Kind", bound=ApiObject)


class ObjectStore(Generic[Kind]):
    """All objects of one kind."""

    def __init__(self) -> None:
        self._objects: dict[str, Kind] = {}
        self._by_namespace: dict[str, dict[str, Kind]] = {}
        self._listeners: list[Callable[[Kind | None, Kind | None], None]] = []
        self.version = 0

    def get(self, key: str) -> Kind | None:
        return self._objects.get(key)

    def in_namespace(self, namespace: str) -> Iterable[Kind]:
        return self._by_namespace.get(namespace, {}).values()

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def put(self, item: Kind) -> None:
        old = self._objects.get(item.key)
        self._objects[item.key] = item
        self._by_namespace.setdefault(item.metadata.namespace, {})[item.key] = item
        self._changed(old, item)

    def remove(self, key: str) -> Kind | None:
        item = self._objects.pop(key, None)
        if item is not None:
            siblings = self._by_namespace[item.metadata.namespace]
            del siblings[key]
            if not siblings:
                del self._by_namespace[item.metadata.namespace]
            self._changed(item, None)
        return item

    def listen(self, listener: Callable[[Kind | None, Kind | None], None]) -> None:
        """Calls `listener(old, new)` after each change."""
        self._listeners.append(listener)

    def _changed(self, old: Kind | None, new: Kind | None) -> None:
        self.version += 1
        for listener in self._listeners:
            listener(old, new)


class ObjectStores:
    """The stores of all kinds."""

    def __init__(self) -> None:
        self._stores: dict[type[ApiObject], ObjectStore[ApiObject]] = {}

    def of(self, kind: type[Kind]) -> ObjectStore[Kind]:
        store = self._stores.get(kind)
        if store is None:
            store = self._stores[kind] = ObjectStore()
        return cast("ObjectStore[Kind]", store)


class ChangeWaiters:
    """Events for tasks that wait until one of several objects changes."""

    def __init__(self) -> None:
        self._events: dict[str, list[asyncio.Event]] = {}

    @contextmanager
    def waiting_for(self, keys: Sequence[str]) -> Iterator[asyncio.Event]:
        """An event that is set when an object with one of the keys changes."""
        changed = asyncio.Event()
        for key in keys:
            self._events.setdefault(key, []).append(changed)
        try:
            yield changed
        finally:
            for key in keys:
                self._events[key].remove(changed)
                if not self._events[key]:
                    del self._events[key]

    @staticmethod
    async def wait_for_change(changed: asyncio.Event, timeout_s: float) -> None:
        """Waits for a change or the timeout. The caller then checks the objects again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await changed.wait()
        changed.clear()

    def notify(self, key: str) -> None:
        """Sets the events of the tasks that wait for this object."""
        for changed in self._events.get(key, ()):
            changed.set()

    def __len__(self) -> int:
        return len(self._events)
