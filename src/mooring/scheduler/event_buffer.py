"""Defers changes of the columns while a decision waits for extenders.

Inputs   functions that change the columns: what an event handler does for an event, or forgetting an assumed pod
Outputs  calls of these functions, immediately, or in order after the decision

A scheduling cycle reads the live columns without a copy, which is correct because it never awaits. A decision with
extenders awaits between its steps, and its results for rows must remain valid. Changes are therefore deferred: the
decision uses the cluster as it was at the start, as kube-scheduler's uses its snapshot.

 1. Functions run in the order in which they were passed, deferred or not.
 2. A function that raises does not stop the following ones. The first error is raised at the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Generic, TypeVar

from mooring.api.views.meta import ApiObject
from mooring.client.interface import Change
from mooring.client.reflector import PagedSink, Sink

AnyKind = TypeVar("AnyKind", bound=ApiObject)


class EventBuffer:
    """Runs functions immediately, or defers them while a decision is paused."""

    def __init__(self) -> None:
        self._deferred: deque[Callable[[], None]] = deque()
        self._is_held = False

    @property
    def is_held(self) -> bool:
        return self._is_held

    @property
    def is_empty(self) -> bool:
        """Whether `run` would call a function immediately."""
        return not self._is_held and not self._deferred

    def __len__(self) -> int:
        """Number of deferred functions. It grows while a decision takes long."""
        return len(self._deferred)

    def run(self, function: Callable[[], None]) -> None:
        """Calls the function now, or after the current decision."""
        if self.is_empty:
            function()
        else:
            self._deferred.append(function)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Defers all functions inside this block."""
        assert not self._is_held, "the event buffer is held by another decision"
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self._run_deferred()

    def _run_deferred(self) -> None:
        error: Exception | None = None
        while self._deferred:
            try:
                self._deferred[0]()
            except Exception as raised:
                error = error or raised
            self._deferred.popleft()  # after the call: what the function passes to `run` is appended at the end
        if error is not None:
            raise error


class BufferedSink(Generic[AnyKind]):
    """Passes the events of a reflector to its sink through an event buffer."""

    def __init__(self, sink: Sink[AnyKind], event_buffer: EventBuffer) -> None:
        self._sink = sink
        self._event_buffer = event_buffer

    def replace(self, views: Sequence[AnyKind], revision: str) -> None:
        self._event_buffer.run(partial(self._sink.replace, views, revision))

    def apply(self, change: Change, view: AnyKind) -> None:
        if self._event_buffer.is_empty:
            self._sink.apply(change, view)
        else:
            self._event_buffer.run(partial(self._sink.apply, change, view))


class BufferedPagedSink(BufferedSink[AnyKind]):
    """A buffered sink that receives lists page by page."""

    def __init__(self, sink: Sink[AnyKind], pages: PagedSink[AnyKind], event_buffer: EventBuffer) -> None:
        super().__init__(sink, event_buffer)
        self._pages = pages

    def begin_list(self) -> None:
        self._event_buffer.run(self._pages.begin_list)

    def take_page(self, views: Sequence[AnyKind]) -> None:
        self._event_buffer.run(partial(self._pages.take_page, views))

    def end_list(self, revision: str) -> None:
        self._event_buffer.run(partial(self._pages.end_list, revision))
