"""Reflectors: keep a sink equal to the API server, by a list and then a watch.

Inputs: a client, a kind, a selection. Output: calls of a `Sink`: first all objects (`replace`), then one change after
the other (`apply`).

1. The sink gets each change once, in order. After a broken connection the watch continues at the last revision.
2. After a 410 all objects are listed again and delivered as one `replace`: only the sink knows the differences.
3. Changes that arrive together are delivered together, without an await in between.
4. Every error is retried after a delay that doubles from 0.8 to 30 s, with jitter, and at least the server's
   Retry-After. After two minutes without an error the delay starts again. All as in client-go.
5. A sink with pages (`PagedSink`) gets a list page by page, so that the whole list is never in memory. While the sink
   reads a page, the server prepares the next one.
6. An object that cannot be decoded is skipped, counted and logged.
7. While the server does not answer, the reflectors of a client log one line per retry together, not one each.
8. On request, and if the client supports it, a watch with initial events replaces the list. If the server rejects it,
   the reflector lists from then on.

Revisions are compared as numbers, although the client interface calls them text: Kubernetes by now guarantees ordered
numbers, and only so a repeated change can be detected. Other text is compared for equality.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar, runtime_checkable
from weakref import WeakValueDictionary

from mooring.api.decode import decode_as
from mooring.api.errors import ObjectError
from mooring.api.kinds import Kind
from mooring.api.views.meta import ApiObject, View
from mooring.client.errors import ClientError, ExpiredError, NoAnswerError, StatusError, TooManyRequestsError
from mooring.client.interface import EVERYTHING, Change, Client, Listing, Selection, Watch, WatchEvent
from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

BACKOFF = Backoff(initial_s=0.8, max_s=30.0, jitter=1.0)
BACKOFF_RESET_S = 120.0
PAGE_SIZE = 500
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark after the initial events of a watch."""
SHORT_WATCH_S = 1.0
"""A watch without events that ends sooner counts as an error, so that the reflector does not spin."""

logger = logging.getLogger(__name__)

AnyView = TypeVar("AnyView", bound=View)
SunkView = TypeVar("SunkView", bound=View, contravariant=True)


class Sink(Protocol[SunkView]):
    """The receiver of a reflector's objects. No call waits."""

    def replace(self, views: Sequence[SunkView], revision: str) -> None:
        """All objects at `revision`."""
        ...

    def apply(self, change: Change, view: SunkView) -> None:
        """One object was added, modified or deleted."""
        ...


@runtime_checkable
class PagedSink(Protocol[SunkView]):
    """A sink that gets a list page by page instead of by `replace`. A list that fails starts again."""

    def begin_list(self) -> None: ...

    def take_page(self, views: Sequence[SunkView]) -> None:
        """A part of the objects."""
        ...

    def end_list(self, revision: str) -> None:
        """The list is complete, at `revision`. Objects in no page are deleted."""
        ...


@runtime_checkable
class ViewReader(Protocol):
    """Items of a listing that can be decoded many at a time."""

    def parts(self, view: type[AnyView]) -> Iterator[list[AnyView] | Sequence[bytes]]:
        """All items in order: lists of views, and items that must be decoded one by one."""
        ...


@runtime_checkable
class WatchListClient(Protocol):
    """A client with watches that start with all objects (WatchList)."""

    def watch_all(self, kind: Kind, selection: Selection = EVERYTHING) -> Watch: ...


class _Outage:
    """The log of the reflectors of one client while the server does not answer."""

    def __init__(self, client: Client) -> None:
        self._client = client  # referenced during the outage, so that its id is not used again
        self._is_on = False
        self._quiet_until_s = 0.0

    @classmethod
    def of(cls, client: Client) -> _Outage:
        """The one of a client, shared by its reflectors."""
        known = _OUTAGES.get(id(client))
        if known is None:
            known = _OUTAGES[id(client)] = cls(client)
        return known

    def report(self, error: NoAnswerError, delay_s: float, now_s: float) -> None:
        """Log, unless another reflector has logged and its delay is not over."""
        if self._is_on and now_s < self._quiet_until_s:
            return
        self._is_on = True
        self._quiet_until_s = now_s + delay_s
        logger.warning("the API server does not answer (%s); trying again in %.1f s", error, delay_s)

    def end(self) -> None:
        if self._is_on:
            self._is_on = False
            logger.info("the API server answers again")


_OUTAGES: WeakValueDictionary[int, _Outage] = WeakValueDictionary()
"""By the id of a client, as long as one of its reflectors exists."""


class Reflector(Generic[AnyView]):
    """Lists and watches one kind until it is cancelled."""

    def __init__(
        self,
        client: Client,
        kind: Kind,
        view: type[AnyView],
        sink: Sink[AnyView],
        *,
        clock: Clock,
        entropy: Entropy,
        selection: Selection = EVERYTHING,
        page_size: int = PAGE_SIZE,
        uses_watch_list: bool = False,
        is_wanted: Callable[[WatchEvent], bool] | None = None,
    ) -> None:
        """`uses_watch_list`: use a watch with initial events, if the client and the server support it.
        `is_wanted`: whether the sink needs a change, decided before it is decoded. It always gets deletions.
        """
        self._client = client
        self._outage = _Outage.of(client)
        self._watches_all = client if uses_watch_list and isinstance(client, WatchListClient) else None
        self._kind = kind
        self._view = view
        self._sink = sink
        self._takes_pages: PagedSink[AnyView] | None = sink if isinstance(sink, PagedSink) else None
        self._clock = clock
        self._entropy = entropy
        self._selection = selection
        self._page_size = page_size
        self._is_wanted = is_wanted
        self._revision = ""
        self._synced = asyncio.Event()
        self._failures = 0
        self._failed_at_s = clock.now_s()
        self._counts = dict.fromkeys(("lists", "watches", "changes", "repeated", "unreadable", "failures"), 0)

    @property
    def kind(self) -> Kind:
        return self._kind

    @property
    def has_synced(self) -> bool:
        """Whether the sink got all objects once."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def statistics(self) -> dict[str, int]:
        return dict(self._counts)

    async def run(self) -> None:
        """List, watch until the revision has expired, and again."""
        while True:
            if not await self._fill_by_watch_list():
                await self._list_until_it_works()
            await self._watch_until_expired()

    def _fill(self, views: Sequence[AnyView], revision: str) -> None:
        self._counts["lists"] += 1
        self._outage.end()
        self._revision = revision
        if self._takes_pages is not None:
            self._takes_pages.end_list(revision)
        else:
            self._sink.replace(views, revision)
        self._synced.set()

    # -------------------------------------------------------------------------------------- watch with initial events

    async def _fill_by_watch_list(self) -> bool:
        """Fill the sink by a watch, and apply its changes until it ends. False if it is not supported."""
        lists_before = self._counts["lists"]
        while self._watches_all is not None:
            failure: ClientError | None = None
            try:
                await self._watch_all(self._watches_all)
            except ClientError as error:
                failure = error
            is_filled = self._counts["lists"] > lists_before
            is_refused = not isinstance(failure, TooManyRequestsError) and isinstance(failure, StatusError | None)
            if not is_filled and is_refused:
                logger.info("%s is listed, because a watch cannot begin with everything (%s)", self._kind, failure)
                self._watches_all = None
            elif failure is not None:
                await self._back_off(failure)
            if is_filled:
                return True
        return False

    async def _watch_all(self, client: WatchListClient) -> None:
        initial: dict[str, AnyView] | None = {}
        self._counts["watches"] += 1
        async with client.watch_all(self._kind, self._selection) as watch:
            while batch := await watch.next_batch():
                for event in batch:
                    if initial is None:
                        self._take(event)
                    elif event.change is not Change.BOOKMARK:
                        self._collect(initial, event)
                    elif _ends_initial_events(event):
                        if self._takes_pages is not None:
                            self._takes_pages.begin_list()
                            self._takes_pages.take_page(list(initial.values()))
                        self._fill(list(initial.values()), event.revision)
                        initial = None

    def _collect(self, initial: dict[str, AnyView], event: WatchEvent) -> None:
        view = self._view_of(event)
        if view is None:
            return
        assert isinstance(view, ApiObject), f"{self._view} has no metadata.name"
        if event.change is Change.DELETED:
            initial.pop(view.key, None)
        else:
            initial[view.key] = view

    # ------------------------------------------------------------------------------------------------ list

    async def _list_until_it_works(self) -> None:
        page_size = self._page_size
        while True:
            try:
                await self._list(page_size)
                return
            except ExpiredError:
                # The continue token expired: list without pages, as client-go does.
                page_size = 0
                await self._back_off(None)
            except ClientError as error:
                await self._back_off(error)

    async def _list(self, page_size: int) -> None:
        views: list[AnyView] = []
        take: Callable[[Sequence[AnyView]], None] = views.extend
        if self._takes_pages is not None:
            self._takes_pages.begin_list()
            take = self._takes_pages.take_page
        page: Listing | ClientError = await self._client.list(self._kind, self._selection, limit=page_size)
        while isinstance(page, Listing) and page.continue_token:
            async with TaskGroup(f"list of {self._kind}") as group:
                next_page = group.start(self._next_page(page_size, page.continue_token), name="next page")
                await self._clock.wait(0)  # the request is sent; the server prepares the page while we decode
                for views_read in self._views_in(page):
                    take(views_read)
            page = next_page.result()
        if isinstance(page, ClientError):
            raise page
        for views_read in self._views_in(page):
            take(views_read)
        self._fill(views, page.revision)

    async def _next_page(self, page_size: int, token: str) -> Listing | ClientError:
        try:
            return await self._client.list(self._kind, self._selection, limit=page_size, continue_token=token)
        except ClientError as error:
            return error

    def _views_in(self, page: Listing) -> Iterator[list[AnyView]]:
        """Part by part: views are used while they are in the processor's cache."""
        if not isinstance(page.items, ViewReader):
            yield self._views_one_by_one(page.items)
            return
        for part in page.items.parts(self._view):
            yield part if isinstance(part, list) else self._views_one_by_one(part)

    def _views_one_by_one(self, items: Sequence[bytes]) -> list[AnyView]:
        views = []
        for raw in items:
            try:
                views.append(decode_as(self._view, raw))
            except ObjectError as error:
                self._skip(error)
        return views

    # ----------------------------------------------------------------------------------------------- watch

    async def _watch_until_expired(self) -> None:
        while True:
            began_s = self._clock.now_s()
            changes_before = self._counts["changes"]
            self._counts["watches"] += 1
            is_expired = False
            try:
                await self._watch_once()
            except ExpiredError:
                logger.info("watch of %s: the history after %s is compacted; listing again", self._kind, self._revision)
                is_expired = True
            except ClientError as error:
                await self._back_off(error)
                continue
            is_silent = self._counts["changes"] == changes_before
            if is_silent and self._clock.now_s() - began_s < SHORT_WATCH_S:
                await self._back_off(None)
            if is_expired:
                return

    async def _watch_once(self) -> None:
        async with self._client.watch(self._kind, self._selection, since=self._revision) as watch:
            while batch := await watch.next_batch():
                self._outage.end()
                for event in batch:
                    self._take(event)

    def _take(self, event: WatchEvent) -> None:
        change = event.change
        is_change = change is not Change.BOOKMARK
        is_wanted = is_change and (self._is_wanted is None or change is Change.DELETED or self._is_wanted(event))
        # The view first: decoding the JSON also yields the revision.
        view = self._view_of(event) if is_wanted else None
        revision = event.revision
        if not revision or not _is_newer(revision, self._revision):
            self._counts["repeated"] += is_change
            return
        self._revision = revision
        if view is not None:
            self._counts["changes"] += 1
            self._sink.apply(change, view)

    def _view_of(self, event: WatchEvent) -> AnyView | None:
        try:
            return event.view(self._view)
        except ObjectError as error:
            self._skip(error)
            return None

    # ----------------------------------------------------------------------------------------------- errors

    async def _back_off(self, error: ClientError | None) -> None:
        now_s = self._clock.now_s()
        if now_s - self._failed_at_s > BACKOFF_RESET_S:
            self._failures = 0
        self._failures += 1
        self._counts["failures"] += 1
        delay_s = BACKOFF.jittered_delay_s(self._failures, self._entropy)
        if isinstance(error, StatusError) and error.retry_after_s is not None:
            delay_s = max(delay_s, error.retry_after_s)
        if isinstance(error, NoAnswerError):
            self._outage.report(error, delay_s, now_s)
        elif error is not None:
            logger.warning("%s cannot be followed (%s); trying again in %.1f s", self._kind, error, delay_s)
        await self._clock.wait(delay_s)
        self._failed_at_s = self._clock.now_s()

    def _skip(self, error: ObjectError) -> None:
        self._counts["unreadable"] += 1
        logger.error("an object of %s is left out because it cannot be read: %s", self._kind, error)


def _is_newer(revision: str, last: str) -> bool:
    if not (revision.isdecimal() and last.isdecimal()):
        return revision != last
    # Numbers of the same length have the order of their texts.
    length, length_last = len(revision), len(last)
    return revision > last if length == length_last else length > length_last


def _ends_initial_events(event: WatchEvent) -> bool:
    return event.view(ApiObject).metadata.annotations.get(INITIAL_EVENTS_END) == "true"
