"""A client that rejects writes while its process does not lead.

Inputs: a client, and a function that says whether the process leads (`LeaderElector.is_leading`). A write while it does
not is an `OutsideFenceError` and is not sent.

1. Reads are always allowed: a process that stands by keeps its caches up to date.
2. Each write is checked, not only the beginning and the end of leading: a process that was suspended for minutes is
   fenced before any of its tasks knows.
"""

from __future__ import annotations

from collections.abc import Callable

from mooring.api.kinds import Kind
from mooring.client.errors import ClientError
from mooring.client.interface import (
    EVERYTHING,
    Client,
    Deletion,
    JsonObject,
    Listing,
    PatchForm,
    Selection,
    Watch,
)
from mooring.client.tokens import request_token


class OutsideFenceError(ClientError):
    """The process does not lead, so nothing was sent."""


class FencedClient:
    """Implements `Client`, with checked writes."""

    def __init__(self, inner: Client, may_write: Callable[[], bool]) -> None:
        self._inner = inner
        self._may_write = may_write

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        return await self._inner.get(kind, namespace, name)

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        return await self._inner.list(kind, selection, limit=limit, continue_token=continue_token, revision=revision)

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> Watch:
        return self._inner.watch(kind, selection, since=since, bookmarks=bookmarks)

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        self._check()
        return await self._inner.create(kind, namespace, body, is_answer_wanted=is_answer_wanted)

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        self._check()
        return await self._inner.update(kind, namespace, name, body, subresource=subresource)

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes:
        self._check()
        return await self._inner.patch(kind, namespace, name, patch, form=form, subresource=subresource)

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None:
        self._check()
        await self._inner.delete(kind, namespace, name, deletion)

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        self._check()
        await self._inner.bind(namespace, name, uid, node_name)

    async def request_token(self, namespace: str, name: str, request: JsonObject) -> bytes:
        self._check()
        return await request_token(self._inner, namespace, name, request)

    def _check(self) -> None:
        if not self._may_write():
            raise OutsideFenceError("this process does not lead any more: nothing was sent")
