"""Everything else that plugins read: objects that are neither nodes nor pods, by kind and key.

Comes in   views of namespaces, volumes, claims, classes, services, budgets, …
Goes out   `ObjectStore` for one kind: get by key, list, list in a namespace, and a version that tells of changes

 1. One store for each view class, made when it is first asked for; the key is namespace/name, or the name.
 2. `version` grows with every change, so that whoever derived something from the objects knows when it is stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar, cast

from mooring.api.views.meta import ApiObject

Kind = TypeVar("Kind", bound=ApiObject)


class ObjectStore(Generic[Kind]):
    """All objects of one kind."""

    __slots__ = ("_by_namespace", "_listeners", "_objects", "version")

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


class Objects:
    """The stores of all kinds."""

    __slots__ = ("_stores",)

    def __init__(self) -> None:
        self._stores: dict[type[ApiObject], ObjectStore[ApiObject]] = {}

    def of(self, kind: type[Kind]) -> ObjectStore[Kind]:
        store = self._stores.get(kind)
        if store is None:
            store = self._stores[kind] = ObjectStore()
        return cast("ObjectStore[Kind]", store)
