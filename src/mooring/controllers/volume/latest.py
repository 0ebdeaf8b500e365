"""The latest: what a controller knows of its objects, its own writes included.

Comes in   an informer, and the answers to the controller's own writes
Goes out   each object as it was last seen or last written, whichever is newer

A lister is as new as the watch behind it. Whoever gave a volume away a moment ago and asks the lister finds it free
still, and would give it away again: the API server refuses that, at the price of a conflict and a wait. Expectations
solve it for pods, which are counted; this is for objects that are looked at one by one.

 1. Versions of one object are compared as numbers, which Kubernetes promises since v1.35.
 2. An object that the informer does not hold is not held here either: it was deleted, or will be told soon.
"""

from __future__ import annotations

from typing import Generic

from mooring.client.cache.informer import Informer
from mooring.client.cache.lister import AnyObject


class Latest(Generic[AnyObject]):
    """To be made before the controller's own handlers are registered."""

    def __init__(self, name: str, informer: Informer[AnyObject]) -> None:
        self._lister = informer.lister
        self._written: dict[str, AnyObject] = {}
        informer.add_handler(f"{name}, its own writes", on_update=self._on_updated, on_delete=self._on_deleted)

    def get(self, key: str) -> AnyObject | None:
        """One object by `namespace/name`, or by its name alone if its kind has no namespace."""
        written = self._written.get(key)
        return written if written is not None else self._lister.by_key(key)

    def of(self, seen: AnyObject) -> AnyObject:
        """An object that the lister told, as it is."""
        return self._written.get(seen.key, seen)

    def remember(self, written: AnyObject) -> None:
        """This is what the API answered to a write."""
        key = written.key
        seen = self._lister.by_key(key)
        if seen is None or seen.metadata.uid != written.metadata.uid:
            return
        if _version(written) > _version(seen):
            self._written[key] = written

    def _on_updated(self, old: AnyObject, new: AnyObject) -> None:
        written = self._written.get(new.key)
        if written is not None and _version(new) >= _version(written):
            del self._written[new.key]

    def _on_deleted(self, gone: AnyObject) -> None:
        self._written.pop(gone.key, None)


def _version(view: AnyObject) -> int:
    return int(view.metadata.resource_version)
