"""Followers: parts of the server that must know some kinds of objects by heart, and hear of every change.

Comes in   the objects of a kind as they are, then every change
Goes out   calls of `put` and `remove`; ready when the first state is told

Roles and bindings (who may do what), custom resource definitions (what is served) and services (which addresses are
taken) are followed so.

 1. A change is told in the order of the store, after the write was acknowledged, in the next turn of the loop.
"""

from __future__ import annotations

from typing import Protocol

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.registry.shelf import document_of
from mooring.kit.tasks import TaskGroup
from mooring.store.interface import Page, RevisionGone, Store


class Follower(Protocol):
    """Whoever wants to know the objects of a kind."""

    def put(self, kind: Kind, document: Document) -> None: ...

    def remove(self, kind: Kind, document: Document) -> None: ...


async def follow(store: Store, kinds: tuple[Kind, ...], follower: Follower, group: TaskGroup) -> None:
    """Tell a follower all objects of these kinds; when it comes back, the changes are being told."""
    for kind in kinds:
        page = await _tell_state(store, kind, follower, {})
        group.start_background(_tell_changes(store, kind, follower, page), name=f"follow {kind.plural}")


async def _tell_state(store: Store, kind: Kind, follower: Follower, known: dict[str, Document]) -> Page:
    page = await store.list(kind.key_prefix)
    found: dict[str, Document] = {}
    for record in page.records:
        found[record.key] = document_of(kind, record.value, record.revision)
        follower.put(kind, found[record.key])
    for key, document in known.items():
        if key not in found:
            follower.remove(kind, document)
    known.clear()
    known.update(found)
    return page


async def _tell_changes(store: Store, kind: Kind, follower: Follower, page: Page) -> None:
    known = {record.key: document_of(kind, record.value, record.revision) for record in page.records}
    since = page.revision
    while True:
        try:
            async with store.watch(kind.key_prefix, since=since) as watch:
                while True:
                    for change in await watch.next_batch():
                        since = change.revision
                        if change.value is None:
                            gone = known.pop(change.key, None)
                            if gone is not None:
                                follower.remove(kind, gone)
                            continue
                        known[change.key] = document_of(kind, change.value, change.revision)
                        follower.put(kind, known[change.key])
        except RevisionGone:
            since = (await _tell_state(store, kind, follower, known)).revision
