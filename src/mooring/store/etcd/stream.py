"""A stream of events from one endpoint of an etcd: everything that changes, from a revision on.

Comes in   a channel, and the revision of the first event that is wanted
Goes out   changes in order, in the portions in which etcd sends them

 1. A portion holds whole revisions: etcd splits no transaction.
 2. All keys are watched, and each revision of an etcd changes a key: so the revision of the last event says how far the
    stream has come, and nobody needs etcd's notes of progress, which before etcd 3.4.25 may overtake events.
 3. A stream that etcd ends is an error: `EtcdCompacted` if what was asked for is gone, `EtcdUnreachable` if another
    stream may do better.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from mooring.store.etcd.errors import EtcdCompacted, EtcdUnreachable, in_words
from mooring.store.interface import Record, StoreChange

_ALL_KEYS = b"\0"
# etcd then ends the stream when its member is cut off from the others, and would not hear of anything new.
_HAS_LEADER = ("hasleader", "true")
_DELETE = 1


class EventStream:
    """While inside of an `async with`. One reader."""

    def __init__(
        self,
        rpc: Any,
        channel: Any,
        endpoint: str,
        metadata: tuple[tuple[str, str], ...],
        first_revision: int,
        has_previous: bool,
    ) -> None:
        self._rpc = rpc
        self._endpoint = endpoint
        self._first_revision = first_revision
        self._has_previous = has_previous
        self._call: Any = rpc.WatchStub(channel).Watch(metadata=(*metadata, _HAS_LEADER))

    async def __aenter__(self) -> Self:
        create = self._rpc.WatchCreateRequest(
            key=_ALL_KEYS, range_end=_ALL_KEYS, start_revision=self._first_revision, prev_kv=self._has_previous
        )
        # If it fails, reading says better why.
        with suppress(self._rpc.AioRpcError, asyncio.InvalidStateError):
            await self._call.write(self._rpc.WatchRequest(create_request=create))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    def cancel(self) -> None:
        """Whoever reads is told that the stream ended."""
        self._call.cancel()

    async def next_changes(self) -> Sequence[StoreChange]:
        """The next portion; empty when the stream begins."""
        try:
            answer = await self._call.read()
        except self._rpc.AioRpcError as error:
            raise in_words(error.code().name, error.details() or "", self._endpoint) from None
        except asyncio.CancelledError:
            # Whoever cancels the stream, or closes its channel, does not mean its reader.
            task = asyncio.current_task()
            if task is not None and not task.cancelling():
                raise EtcdUnreachable(f"the watch of etcd at {self._endpoint} was broken off here") from None
            raise
        if not isinstance(answer, self._rpc.WatchResponse):
            raise EtcdUnreachable(f"etcd at {self._endpoint} ended the watch")
        if answer.compact_revision:
            raise EtcdCompacted(
                f"etcd at {self._endpoint}: revision {self._first_revision} is compacted", answer.compact_revision
            )
        if answer.canceled:
            raise in_words("UNAVAILABLE", answer.cancel_reason or "it ended the watch", self._endpoint)
        return [self._change_of(event) for event in answer.events]

    def _change_of(self, event: Any) -> StoreChange:
        kv = event.kv
        previous = record_of(event.prev_kv) if self._has_previous and event.HasField("prev_kv") else None
        return StoreChange(
            kv.key.decode(errors="surrogateescape"),
            kv.mod_revision,
            None if event.type == _DELETE else kv.value,
            previous,
        )


def record_of(kv: Any) -> Record:
    return Record(kv.key.decode(errors="surrogateescape"), kv.value, kv.mod_revision)


def encoded_key(key: str) -> bytes:
    return key.encode(errors="surrogateescape")
