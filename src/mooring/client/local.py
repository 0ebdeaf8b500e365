"""The local client: the client promise kept in the process, on a store.

Comes in   requests, as from any part of Mooring
Goes out   objects as the store has them, without HTTP, without copies, without waiting for anybody but the store

    local_form        how an object is stored, and handed out with its resourceVersion
    local_selection   which objects are meant             local_pages   listings in parts
    local_write       creating, updating, patching        local_delete  deleting
    local_pods        binding                             local_watch   watching
    local_events      events under both of their names    local_refusals  what can go wrong, in Kubernetes' words

 1. A request never suspends where the store does not: on the memory store each is one step, seen by nobody half done.
 2. A write that meets another one is tried again on what that one left behind, unless the request names the state that
    it is meant for; at most `WRITE_TRIES_MAX` times.
 3. What would change nothing writes nothing: the object keeps its resourceVersion and no watch hears of it.

It serves who is in the process already and trusts it: nobody is authenticated, nothing is defaulted or validated. That
is the API server's job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mooring.api.kinds import POD, Kind
from mooring.client.errors import BadRequestError
from mooring.client.interface import EVERYTHING, Deletion, JsonObject, Listing, PatchForm, Selection
from mooring.client.local_delete import fate_of
from mooring.client.local_events import inward, inward_selection, outward, outward_plain, stored_kind
from mooring.client.local_form import PlainObject, decoded, encoded, stored_form, with_revision
from mooring.client.local_pages import INCONSISTENT, continue_token, read_continue_token
from mooring.client.local_pods import bound
from mooring.client.local_refusals import ahead, already_exists, conflict, list_gone, not_found
from mooring.client.local_selection import ObjectMatcher, matcher_of_selection
from mooring.client.local_watch import LocalWatch
from mooring.client.local_write import check_kind, is_finished, new_metadata, patched, updated
from mooring.kit.clock import Clock, format_rfc3339
from mooring.kit.entropy import SUFFIX_LENGTH, Entropy
from mooring.store.interface import (
    MUST_NOT_EXIST,
    Page,
    Record,
    RevisionAhead,
    RevisionGone,
    Store,
    WriteConflict,
)

WRITE_TRIES_MAX = 16
GENERATED_NAME_TRIES_MAX = 8
GENERATED_NAME_LENGTH_MAX = 63
BOOKMARK_S = 60.0
PAGE_RECORDS = 1_000  # looked at together when a selection with a limit searches for its objects

JUST_DELETE = Deletion()


class LocalClient:
    """Keeps the client promise on a store."""

    def __init__(self, store: Store, clock: Clock, entropy: Entropy, *, bookmark_s: float = BOOKMARK_S) -> None:
        self._store = store
        self._clock = clock
        self._entropy = entropy
        self._bookmark_s = bookmark_s
        self._stamped_s = -1
        self._stamp = ""

    # ------------------------------------------------------------------------------------------------ reading

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        record = await self._store.get(kind.key(namespace, name))
        if record is None:
            raise not_found(kind, name)
        return outward(kind, record.value, record.revision)

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        """As kube-apiserver: `revision` alone means "not older than", together with a limit exactly that one."""
        at = _revision_number(revision) or None
        if at is not None and not limit and not continue_token:
            await self.check_reached(at)
            at = None
        return await self.list_at(kind, selection, limit=limit, continue_token=continue_token, at=at)

    async def list_at(
        self,
        kind: Kind,
        selection: Selection,
        *,
        limit: int = 0,
        continue_token: str = "",
        at: int | None = None,
    ) -> Listing:
        """A listing of exactly that revision; of the last one if it is None."""
        folder, matcher = kind.keys_prefix(selection.namespace), _matcher(kind, selection)
        start = ""
        if continue_token:
            start, at = read_continue_token(folder, continue_token)
            at = None if at == INCONSISTENT else at
        try:
            return await self._listing(kind, folder, matcher, start, limit, at)
        except RevisionGone as error:
            raise list_gone(error, is_continued=bool(continue_token)) from None
        except RevisionAhead as error:
            raise ahead(error, is_exact=True) from None

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> LocalWatch:
        since_revision = _revision_number(since)
        if not since_revision:
            raise BadRequestError(f"a watch starts from a revision that a listing or an event told, not from {since!r}")
        return LocalWatch(
            kind,
            self._store.watch(kind.keys_prefix(selection.namespace), since=since_revision),
            _matcher(kind, selection),
            since=since_revision,
            bookmark_s=self._bookmark_s if bookmarks else None,
        )

    async def check_reached(self, revision: int) -> None:
        """Raises a `ServerError` if the store has not come so far."""
        current = await self._store.revision()
        if revision > current:
            raise ahead(RevisionAhead(revision, current))

    async def _listing(
        self, kind: Kind, folder: str, matcher: ObjectMatcher | None, start: str, limit: int, at: int | None
    ) -> Listing:
        if matcher is None or not limit:
            page = await self._store.list(folder, start=start, limit=limit, at=at)
            found, remaining = _selected(page, matcher), page.remaining if page.next_start else None
        else:
            page, found = await self._search(folder, matcher, start, limit, at)
            remaining = None  # how many of the others match is not known, and Kubernetes does not count either
        items = [outward(kind, record.value, record.revision) for record in found]
        if not page.next_start:
            return Listing(items, str(page.revision))
        token = continue_token(folder, page.next_start, page.revision)
        return Listing(items, str(page.revision), token, remaining)

    async def _search(
        self, folder: str, matcher: ObjectMatcher, start: str, limit: int, at: int | None
    ) -> tuple[Page, Sequence[Record]]:
        """The first `limit` objects that match, and the page on which the last of them was."""
        found: list[Record] = []
        while True:
            page = await self._store.list(folder, start=start, limit=PAGE_RECORDS, at=at)
            for index, record in enumerate(page.records):
                if not matcher.matches(record.value):
                    continue
                found.append(record)
                if len(found) == limit:
                    following = page.records[index + 1].key if index + 1 < len(page.records) else page.next_start
                    return Page((), page.revision, following), found
            if not page.next_start:
                return page, found
            start, at = page.next_start, page.revision

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
            pod = bound(decoded(record.value), key, uid=uid, node_name=node_name, now=self._now())
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


def _matcher(kind: Kind, selection: Selection) -> ObjectMatcher | None:
    return matcher_of_selection(inward_selection(kind, selection))


def _selected(page: Page, matcher: ObjectMatcher | None) -> Sequence[Record]:
    if matcher is None:
        return page.records
    return [record for record in page.records if matcher.matches(record.value)]


def _revision_number(text: str) -> int:
    """What a resourceVersion counts; 0 for none. Raises `BadRequestError`."""
    if text and not (text.isascii() and text.isdecimal()):
        raise BadRequestError(f'invalid resource version: strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text or 0)
