"""Storage: get, list and watch objects of a kind, straight from the store.

1. A call never suspends where the store does not: on the memory store each call is one step.
2. Objects are returned as bytes, with their resourceVersion, in the form of the requested kind.
3. All pages of a list have the same revision. Its continue token is that of kube-apiserver: the revision, and the
   next key relative to its folder, so that no token reads outside of the folder.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence

import msgspec

from mooring.api.kinds import Kind
from mooring.apiserver.errors import ahead, list_gone, not_found
from mooring.apiserver.storage.selection import ObjectMatcher, matcher_of_selection
from mooring.apiserver.storage.stored_form import inward_selection, outward
from mooring.apiserver.storage.watch import StorageWatch
from mooring.apiserver.worker import WorkerThread
from mooring.client.errors import BadRequestError
from mooring.client.interface import EVERYTHING, Listing, Selection
from mooring.store.interface import Page, Record, RevisionAhead, RevisionGone, Store

BOOKMARK_S = 60.0
PAGE_RECORDS = 1_000
"""Records read at a time when a list with a selection and a limit searches for its objects."""


class Storage:
    """Reads objects from a store."""

    def __init__(self, store: Store, worker: WorkerThread, *, bookmark_s: float = BOOKMARK_S) -> None:
        self._store = store
        self._worker = worker
        self._bookmark_s = bookmark_s

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

    def watch(
        self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True
    ) -> StorageWatch:
        since_revision = _revision_number(since)
        if not since_revision:
            raise BadRequestError(f"a watch starts from the resourceVersion of a list or an event, not from {since!r}")
        return StorageWatch(
            kind,
            self._store.watch(kind.keys_prefix(selection.namespace), since=since_revision),
            _matcher(kind, selection),
            since=since_revision,
            bookmark_s=self._bookmark_s if bookmarks else None,
        )

    async def check_reached(self, revision: int) -> None:
        """Raises a `ServerError` if the store has not reached the revision."""
        current = await self._store.revision()
        if revision > current:
            raise ahead(RevisionAhead(revision, current))

    async def _listing(
        self, kind: Kind, folder: str, matcher: ObjectMatcher | None, start: str, limit: int, at: int | None
    ) -> Listing:
        if matcher is None or not limit:
            page = await self._store.list(folder, start=start, limit=limit, at=at)
            found, remaining = page.records, page.remaining if page.next_start else None
        else:
            page, found = await self._search(folder, matcher, start, limit, at)
            matcher = remaining = (
                None  # how many of the others match is not known, and Kubernetes does not count either
            )
        items = await self._worker.run(_size_bytes(found), _outward_items, kind, found, matcher)
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
            for index in await self._worker.run(_size_bytes(page.records), _matching, page.records, matcher):
                found.append(page.records[index])
                if len(found) == limit:
                    following = page.records[index + 1].key if index + 1 < len(page.records) else page.next_start
                    return Page((), page.revision, following), found
            if not page.next_start:
                return page, found
            start, at = page.next_start, page.revision


def _matcher(kind: Kind, selection: Selection) -> ObjectMatcher | None:
    return matcher_of_selection(inward_selection(kind, selection))


def _size_bytes(records: Sequence[Record]) -> int:
    return sum(len(record.value) for record in records)


def _matching(records: Sequence[Record], matcher: ObjectMatcher) -> Sequence[int]:
    """The positions of the records that match."""
    return [index for index, record in enumerate(records) if matcher.matches(record.value)]


def _outward_items(kind: Kind, records: Sequence[Record], matcher: ObjectMatcher | None) -> list[bytes]:
    """The records that match, as clients get them."""
    if matcher is not None:
        records = [records[index] for index in _matching(records, matcher)]
    return [outward(kind, record.value, record.revision) for record in records]


def _revision_number(text: str) -> int:
    """What a resourceVersion counts; 0 for none. Raises `BadRequestError`."""
    if text and not (text.isascii() and text.isdecimal()):
        raise BadRequestError(f'invalid resource version: strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text or 0)


# --- pages ----------------------------------------------------------------------------------------------------


_VERSION = "meta.k8s.io/v1"
INCONSISTENT = -1
"""As the revision of a token: go on as of now, whatever has changed since the list began."""


class _Token(msgspec.Struct, frozen=True):
    v: str
    rv: int
    start: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Token).decode


def continue_token(folder: str, next_key: str, revision: int) -> str:
    token = _Token(_VERSION, revision, next_key.removeprefix(folder))
    return urlsafe_b64encode(_encode(token)).rstrip(b"=").decode()


def read_continue_token(folder: str, text: str) -> tuple[str, int]:
    """The key to go on with and the revision to list at. Raises `BadRequestError`."""
    try:
        token = _decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, msgspec.DecodeError):
        raise BadRequestError("continue key is not valid") from None
    if token.v != _VERSION:
        raise BadRequestError(f"continue key is not valid: server does not recognize this encoded version {token.v}")
    if token.rv <= 0 and token.rv != INCONSISTENT:
        raise BadRequestError(
            f"continue key is not valid: incorrect encoded start resourceVersion (version {_VERSION})"
        )
    if not token.start:
        raise BadRequestError(f"continue key is not valid: encoded start key empty (version {_VERSION})")
    if ".." in token.start.split("/") or "//" in token.start:
        raise BadRequestError(f"continue key is not valid: {token.start}")
    return folder + token.start, token.rv
