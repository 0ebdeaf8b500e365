"""A sink whose news wait while the believed cluster has to stand still."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Generic, TypeVar

from mooring.api.views.meta import ApiObject
from mooring.client.cache.reflector import Sink, TakesPages
from mooring.client.interface import Change
from mooring.scheduler.standstill import Standstill

AnyKind = TypeVar("AnyKind", bound=ApiObject)


class PutOff(Generic[AnyKind]):
    """Hands on what a reflector tells: now, or in order when nobody minds any more."""

    def __init__(self, sink: Sink[AnyKind], standstill: Standstill) -> None:
        self._sink = sink
        self._standstill = standstill

    def replace(self, views: Sequence[AnyKind], revision: str) -> None:
        self._standstill.run(partial(self._sink.replace, views, revision))

    def apply(self, change: Change, view: AnyKind) -> None:
        if self._standstill.is_quiet:
            self._sink.apply(change, view)
        else:
            self._standstill.run(partial(self._sink.apply, change, view))


class PutOffPages(PutOff[AnyKind]):
    """The same for a sink that is told a list page by page."""

    def __init__(self, sink: Sink[AnyKind], pages: TakesPages[AnyKind], standstill: Standstill) -> None:
        super().__init__(sink, standstill)
        self._pages = pages

    def begin_list(self) -> None:
        self._standstill.run(self._pages.begin_list)

    def take_page(self, views: Sequence[AnyKind]) -> None:
        self._standstill.run(partial(self._pages.take_page, views))

    def end_list(self, revision: str) -> None:
        self._standstill.run(partial(self._pages.end_list, revision))
