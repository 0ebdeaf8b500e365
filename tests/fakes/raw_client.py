"""A client that writes objects straight into storage, for tests of components that need only a store.

It neither defaults nor admits nor validates: tests can store objects that the API server would reject. Reads are the
API server's (`apiserver.storage`). Production code has no such client; tests of the write path use the loopback client.

    raw_write   create, update and patch       raw_delete   delete       raw_pods   bind

 1. A write that meets another one is tried again on what that one left behind, unless the request names the state that
    it is meant for; at most `WRITE_TRIES_MAX` times.
 2. What would change nothing writes nothing: the object keeps its resourceVersion and no watch hears of it.
"""

from __future__ import annotations

from collections.abc import Callable

from mooring.api.kinds import POD, Kind
from mooring.apiserver.kinds.pod.prepare import FIELDS_READ_BY_BINDING
from mooring.apiserver.storage.errors import already_exists, conflict, not_found
from mooring.apiserver.storage.kind_forms import inward, outward, outward_plain, stored_kind
from mooring.apiserver.storage.storage import BOOKMARK_S, Storage
from mooring.apiserver.storage.stored_form import (
    PlainObject,
    decoded,
    encoded,
    partly_decoded,
    stored_form,
    with_revision,
)
from mooring.apiserver.worker import Worker
from mooring.client.interface import Deletion, JsonObject, PatchForm
from mooring.kit.clock import Clock, format_rfc3339
from mooring.kit.entropy import SUFFIX_LENGTH, Entropy
from mooring.store.interface import MUST_NOT_EXIST, Record, Store, WriteConflict
from tests.fakes.raw_delete import fate_of
from tests.fakes.raw_pods import bound
from tests.fakes.raw_write import check_kind, is_finished, new_metadata, patched, updated

WRITE_TRIES_MAX = 16
GENERATED_NAME_TRIES_MAX = 8
GENERATED_NAME_LENGTH_MAX = 63

JUST_DELETE = Deletion()


class RawClient(Storage):
    """Implements the client interface on a store."""

    def __init__(self, store: Store, clock: Clock, entropy: Entropy, *, bookmark_s: float = BOOKMARK_S) -> None:
        super().__init__(store, Worker(), bookmark_s=bookmark_s)
        self._clock = clock
        self._entropy = entropy
        self._stamped_s = -1
        self._stamp = ""

    # ------------------------------------------------------------------------------------------------ writing

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        check_kind(kind, body)
        metadata = new_metadata(kind, namespace, body, uid=self._entropy.uuid(), now=self._now())
        is_named = bool(metadata["name"])
        for _ in range(1 if is_named else GENERATED_NAME_TRIES_MAX):
            if not is_named:
                metadata["name"] = self._generated_name(str(metadata["generateName"]))
            value = stored_form(stored_kind(kind), inward(kind, body), metadata)
            try:
                key = kind.key(namespace, str(metadata["name"]))
                revision = await self._store.put(key, value, if_revision=MUST_NOT_EXIST)
            except WriteConflict:
                continue
            if not is_answer_wanted:
                return b""
            return with_revision(value if stored_kind(kind) is kind else stored_form(kind, body, metadata), revision)
        raise already_exists(kind, str(metadata["name"]))

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        def change(current: PlainObject, record: Record) -> PlainObject:
            return updated(kind, current, record.revision, body, key=record.key, subresource=subresource)

        return await self._rewrite(kind, namespace, name, change)

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes:
        def change(current: PlainObject, record: Record) -> PlainObject:
            return patched(kind, current, record.revision, patch, form, subresource=subresource)

        return await self._rewrite(kind, namespace, name, change)

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        key = POD.key(namespace, name)
        for _ in range(WRITE_TRIES_MAX):
            record = await self._store.get(key)
            if record is None:
                raise not_found(POD, name)
            pod = partly_decoded(record.value, FIELDS_READ_BY_BINDING)
            pod = bound(pod, key, uid=uid, node_name=node_name, now=self._now())
            try:
                await self._store.put(key, encoded(pod), if_revision=record.revision)
            except WriteConflict:
                continue
            return
        raise conflict(POD, name)

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None:
        key, deletion = kind.key(namespace, name), deletion or JUST_DELETE
        for _ in range(WRITE_TRIES_MAX):
            record = await self._store.get(key)
            if record is None:
                raise not_found(kind, name)
            fate = fate_of(kind, decoded(record.value), record.revision, deletion, self._clock.wall_s())
            try:
                revision = record.revision
                if fate.ending is not None:
                    revision = await self._store.put(key, encoded(fate.ending), if_revision=revision)
                if fate.is_gone:
                    await self._store.delete(key, if_revision=revision)
                return
            except WriteConflict:
                continue
        raise conflict(kind, name)

    async def _rewrite(
        self, kind: Kind, namespace: str, name: str, change: Callable[[PlainObject, Record], PlainObject]
    ) -> bytes:
        key = kind.key(namespace, name)
        for _ in range(WRITE_TRIES_MAX):
            record = await self._store.get(key)
            if record is None:
                raise not_found(kind, name)
            current = outward_plain(kind, decoded(record.value))
            result = change(current, record)
            try:
                return await self._written(kind, record, current, result)
            except WriteConflict:
                continue
        raise conflict(kind, name)

    async def _written(self, kind: Kind, record: Record, current: PlainObject, result: PlainObject) -> bytes:
        value = encoded(inward(kind, result))
        if is_finished(current, result):
            return outward(kind, value, await self._store.delete(record.key, if_revision=record.revision))
        if result == current:
            return outward(kind, record.value, record.revision)
        return outward(kind, value, await self._store.put(record.key, value, if_revision=record.revision))

    # ----------------------------------------------------------------------------------------- time and names

    def _now(self) -> str:
        """The time as text. Made once a second: thousands of objects are stamped in one."""
        now_s = int(self._clock.wall_s())
        if now_s != self._stamped_s:
            self._stamped_s, self._stamp = now_s, format_rfc3339(now_s)
        return self._stamp

    def _generated_name(self, base: str) -> str:
        return base[: GENERATED_NAME_LENGTH_MAX - SUFFIX_LENGTH] + self._entropy.suffix()
