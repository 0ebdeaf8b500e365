"""Calls of an etcd: the connection to one endpoint, streams of events, and the choice of an endpoint.

1. Only this module uses aetcd and grpc. They are imported with the first connection: they are an extra, and take a
   tenth of a second.
2. A connection is made on first use, and again when it breaks. A call is never repeated, except after a login that etcd
   asks for before it does anything.
3. When the connection is closed, calls in progress fail; they are not cancelled.
4. A stream delivers all keys, in whole revisions: etcd splits no transaction. So the last event shows how far the
   stream is, and etcd's progress notifications are not needed. (Before etcd 3.4.25 they may overtake events.)
5. Every value that is read passes through the `ValueReader` of the store, which may convert it or raise a `StoreError`.
6. A stream that etcd ends raises `EtcdCompacted` if the revision is compacted, or `EtcdUnreachable` if another stream
   may work.

Why aetcd's generated stubs instead of its client: the client has no TLS, calls back for each event, and does not return
the revision of an answer.

`EtcdEndpoints` uses one endpoint until it does not answer, then the next.

1. A read (`call`) is repeated on every endpoint in turn, until `unreachable_s_max` has passed (`EtcdUnreachable`).
2. A write is sent at most once. It may go to any endpoint that is connected. Without an answer the outcome is unknown
   (`OutcomeUnknown`).
3. All tasks use the same endpoint. The first task without an answer moves all tasks to the next.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock
from mooring.store.etcd.errors import EtcdCompacted, EtcdNotInstalled, EtcdTokenExpired, EtcdUnreachable, error_of_call
from mooring.store.etcd.settings import EtcdAddress, EtcdLimits
from mooring.store.interface import OutcomeUnknown, Record, StoreChange, StoreClosed, WriteConflict

ValueReader = Callable[[str, bytes], bytes]
"""Converts the value of a key as etcd has it. Raises a `StoreError` if the value cannot be read."""

_ALL_KEYS = b"\0"
# With this, etcd ends the stream when its member is partitioned from the others.
_HAS_LEADER = ("hasleader", "true")
_DELETE = 1


class EventStream:
    """Events of all keys, inside of an `async with`. For one reader."""

    def __init__(
        self,
        rpc: Any,
        channel: Any,
        endpoint: str,
        metadata: tuple[tuple[str, str], ...],
        first_revision: int,
        has_previous: bool,
        read_value: ValueReader,
    ) -> None:
        self._rpc = rpc
        self._endpoint = endpoint
        self._first_revision = first_revision
        self._has_previous = has_previous
        self._read_value = read_value
        self._call: Any = rpc.WatchStub(channel).Watch(metadata=(*metadata, _HAS_LEADER))

    async def __aenter__(self) -> Self:
        create = self._rpc.WatchCreateRequest(
            key=_ALL_KEYS, range_end=_ALL_KEYS, start_revision=self._first_revision, prev_kv=self._has_previous
        )
        # If it fails, the read raises a better error.
        with suppress(self._rpc.AioRpcError, asyncio.InvalidStateError):
            await self._call.write(self._rpc.WatchRequest(create_request=create))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    def cancel(self) -> None:
        """End the stream. Its reader gets `EtcdUnreachable`."""
        self._call.cancel()

    async def next_changes(self) -> Sequence[StoreChange]:
        """The next changes; empty at the start of the stream."""
        try:
            answer = await self._call.read()
        except self._rpc.AioRpcError as error:
            raise error_of_call(error.code().name, error.details() or "", self._endpoint) from None
        except asyncio.CancelledError:
            # The stream or its channel was cancelled, not the reading task.
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
            raise error_of_call("UNAVAILABLE", answer.cancel_reason or "it ended the watch", self._endpoint)
        return [self._change_of(event) for event in answer.events]

    def _change_of(self, event: Any) -> StoreChange:
        kv = event.kv
        read = self._read_value
        previous = record_of(event.prev_kv, read) if self._has_previous and event.HasField("prev_kv") else None
        key = kv.key.decode(errors="surrogateescape")
        return StoreChange(key, kv.mod_revision, None if event.type == _DELETE else read(key, kv.value), previous)


def record_of(kv: Any, read_value: ValueReader) -> Record:
    key = kv.key.decode(errors="surrogateescape")
    return Record(key, read_value(key, kv.value), kv.mod_revision)


def as_it_is(key: str, value: bytes) -> bytes:
    """The `ValueReader` that converts nothing."""
    return value


def encoded_key(key: str) -> bytes:
    return key.encode(errors="surrogateescape")


COMPACTION_KEY = b"compact_rev_key"
"""The key with the revision of kube-apiserver's last compaction. Its version decides the turns."""

_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", -1),  # read any value
    ("grpc.max_send_message_length", -1),  # etcd has the limit
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    # Reconnect to a restarted etcd within a second; the default is up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # As kube-apiserver: a peer that disappears is detected after 40 s.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)


class KeyRange(NamedTuple):
    """A part of a range of keys. `total` is the number of keys in the range, at `revision`."""

    records: Sequence[Record]
    total: int
    revision: int


class CompactionTurn(NamedTuple):
    """The result of a try to take a compaction turn: whether it is ours, and the key at `revision` of the store."""

    is_ours: bool
    version: int
    value: bytes
    revision: int


class EtcdWire:
    """One endpoint."""

    def __init__(
        self, endpoint: str, address: EtcdAddress, request_s_max: float, read_value: ValueReader = as_it_is
    ) -> None:
        self.endpoint = endpoint
        self._address = address
        self._request_s_max = request_s_max
        self._read_value = read_value
        self._rpc = _library()
        self._usage_error: type[Exception] = importlib.import_module("grpc.aio").UsageError
        self._channel = _channel(endpoint, address)
        self._keys = self._rpc.KVStub(self._channel)
        self._metadata: tuple[tuple[str, str], ...] = ()
        self._is_closed = False
        self.cluster = 0
        """The cluster id, known after the first answer. It changes when etcd is restored from a backup."""

    async def close(self) -> None:
        self._is_closed = True
        await self._channel.close()

    # ------------------------------------------------------------------------------------------------ reading

    async def make_ready(self) -> EtcdWire:
        """Connect if necessary. Nothing is written."""
        if self._channel.get_state().name != "READY":
            await self.revision()
        return self

    async def revision(self) -> int:
        """The revision of the last confirmed write, by a linearizable read."""
        request = self._rpc.RangeRequest(key=COMPACTION_KEY, count_only=True)
        header = (await self._call(self._keys.Range, request)).header
        self.cluster = header.cluster_id
        return int(header.revision)

    async def read(self, first: bytes, end: bytes, *, limit: int = 0, at: int = 0) -> KeyRange:
        """The records from `first` up to, but not including, `end`; only `first` without an end."""
        request = self._rpc.RangeRequest(key=first, range_end=end, limit=limit, revision=at)
        answer = await self._call(self._keys.Range, request)
        return KeyRange(
            [record_of(key_value, self._read_value) for key_value in answer.kvs], answer.count, answer.header.revision
        )

    async def read_compacted(self) -> int:
        """The last announced compaction; 0: none."""
        answer = await self._call(self._keys.Range, self._rpc.RangeRequest(key=COMPACTION_KEY))
        return decimal(answer.kvs[0].value) if answer.kvs else 0

    def stream(self, first_revision: int, *, has_previous: bool = False) -> EventStream:
        """The events of all keys from a revision on."""
        return EventStream(
            self._rpc, self._channel, self.endpoint, self._metadata, first_revision, has_previous, self._read_value
        )

    # ------------------------------------------------------------------------------------------------ writing

    async def put(self, key: str, value: bytes, if_revision: int | None) -> int:
        name = encoded_key(key)
        put = self._rpc.PutRequest(key=name, value=value)
        if if_revision is None:
            return int((await self._call(self._keys.Put, put)).header.revision)
        answer = await self._write_if(key, name, if_revision, self._rpc.RequestOp(request_put=put))
        return int(answer.header.revision)

    async def delete(self, key: str, if_revision: int | None) -> int:
        name = encoded_key(key)
        delete = self._rpc.DeleteRangeRequest(key=name)
        if if_revision is None:
            answer = await self._call(self._keys.DeleteRange, delete)
            deleted = answer.deleted
        else:
            operation = self._rpc.RequestOp(request_delete_range=delete)
            answer = await self._write_if(key, name, if_revision, operation)
            deleted = answer.responses[0].response_delete_range.deleted
        if not deleted:
            raise WriteConflict(key, None)
        return int(answer.header.revision)

    async def _write_if(self, key: str, name: bytes, revision: int, operation: Any) -> Any:
        rpc = self._rpc
        compare = rpc.Compare
        unchanged = compare(key=name, target=compare.MOD, result=compare.EQUAL, mod_revision=revision)
        look = rpc.RequestOp(request_range=rpc.RangeRequest(key=name))
        request = rpc.TxnRequest(compare=[unchanged], success=[operation], failure=[look])
        answer = await self._call(self._keys.Txn, request)
        if not answer.succeeded:
            found = answer.responses[0].response_range.kvs
            raise WriteConflict(key, record_of(found[0], self._read_value) if found else None)
        return answer

    # --------------------------------------------------------------------------------------------- compacting

    async def take_turn(self, version: int, value: bytes) -> CompactionTurn:
        """Write the revision of the next compaction, if the key still has that version."""
        rpc = self._rpc
        compare = rpc.Compare
        is_unchanged = compare(key=COMPACTION_KEY, target=compare.VERSION, result=compare.EQUAL, version=version)
        put = rpc.RequestOp(request_put=rpc.PutRequest(key=COMPACTION_KEY, value=value))
        look = rpc.RequestOp(request_range=rpc.RangeRequest(key=COMPACTION_KEY))
        request = rpc.TxnRequest(compare=[is_unchanged], success=[put], failure=[look])
        answer = await self._call(self._keys.Txn, request)
        revision = answer.header.revision
        if answer.succeeded:
            return CompactionTurn(True, version + 1, value, revision)
        found = answer.responses[0].response_range.kvs
        return (
            CompactionTurn(False, found[0].version, found[0].value, revision)
            if found
            else CompactionTurn(False, 0, b"", revision)
        )

    async def compact(self, revision: int) -> None:
        await self._call(self._keys.Compact, self._rpc.CompactionRequest(revision=revision))

    async def announce_compaction(self, revision: int) -> None:
        """Announce a compaction to the other servers, which then skip this turn."""
        await self._call(self._keys.Put, self._rpc.PutRequest(key=COMPACTION_KEY, value=b"%d" % revision))

    # ------------------------------------------------------------------------------------------------ calling

    async def _call(self, method: Any, request: Any) -> Any:
        if self._address.user and not self._metadata:
            await self._log_in()
        try:
            return await self._call_once(method, request)
        except EtcdTokenExpired:
            await self._log_in()
            return await self._call_once(method, request)

    async def _call_once(self, method: Any, request: Any) -> Any:
        try:
            return await method(request, timeout=self._request_s_max, metadata=self._metadata)
        except self._rpc.AioRpcError as error:
            raise error_of_call(error.code().name, error.details() or "", self.endpoint) from None
        except asyncio.CancelledError:
            # A closing channel cancels its calls, which looks like a cancellation of the caller.
            task = asyncio.current_task()
            if self._is_closed and task is not None and not task.cancelling():
                raise EtcdUnreachable("the store was closed during this call") from None
            raise
        except self._usage_error:
            raise StoreClosed("the store is closed") from None

    async def _log_in(self) -> None:
        address = self._address
        request = self._rpc.AuthenticateRequest(name=address.user, password=address.password)
        try:
            answer = await self._rpc.AuthStub(self._channel).Authenticate(request, timeout=self._request_s_max)
        except self._rpc.AioRpcError as error:
            # As etcd's own client: etcd does not require a login.
            if "authentication is not enabled" in (error.details() or ""):
                return
            raise error_of_call(error.code().name, error.details() or "", self.endpoint) from None
        self._metadata = (("token", answer.token),)


def decimal(value: bytes) -> int:
    """A revision as kube-apiserver writes it; 0 if it is invalid."""
    return int(value) if value.isdigit() else 0


@cache
def _library() -> Any:
    # grpc writes lines of its own to standard error, for example for each failed handshake. The errors raised here say
    # the same. It reads the variable once, when it is loaded.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        rpc = importlib.import_module("aetcd.rpc")
    except ModuleNotFoundError as error:
        raise EtcdNotInstalled(f"a store on etcd needs {error.name}: pip install 'mooring[etcd]'") from None
    return rpc


def _channel(endpoint: str, address: EtcdAddress) -> Any:
    rpc, tls = _library(), address.tls
    if tls is None:
        return rpc.insecure_channel(endpoint, options=_CHANNEL_OPTIONS)
    credentials = importlib.import_module("grpc").ssl_channel_credentials(
        tls.authorities or None, tls.key or None, tls.certificate or None
    )
    name = (("grpc.ssl_target_name_override", tls.server_name),) if tls.server_name else ()
    return rpc.secure_channel(endpoint, credentials, options=(*_CHANNEL_OPTIONS, *name))


# --- endpoints ------------------------------------------------------------------------------------------------


Answer = TypeVar("Answer")

logger = logging.getLogger(__name__)


class EtcdEndpoints:
    """The endpoints of one etcd."""

    def __init__(
        self, address: EtcdAddress, clock: Clock, limits: EtcdLimits, read_value: ValueReader = as_it_is
    ) -> None:
        self._clock = clock
        self._limits = limits
        self._backoff = Backoff(limits.retry_s, limits.retry_s_max)
        self._wires = [EtcdWire(endpoint, address, limits.request_s_max, read_value) for endpoint in address.endpoints]
        self._current = 0
        self._is_closed = False
        self._moves = 0
        self._outcomes_unknown = 0

    async def close(self) -> None:
        self._is_closed = True
        for wire in self._wires:
            await wire.close()

    async def call(self, question: Callable[[EtcdWire], Awaitable[Answer]]) -> Answer:
        """The result from the first endpoint that answers."""
        began_s, failures = self._clock.now_s(), 0
        while True:
            wire = self._use()
            try:
                return await question(wire)
            except EtcdUnreachable as error:
                failures += 1
                self._move_on(wire, error)
                if failures % len(self._wires) == 0:
                    await self._wait(failures // len(self._wires), began_s, error)

    async def write(self, write: Callable[[EtcdWire], Awaitable[Answer]]) -> Answer:
        """Send a write once. Raises `OutcomeUnknown` if there is no answer."""
        wire = await self.call(EtcdWire.make_ready)
        try:
            return await write(wire)
        except EtcdUnreachable as error:
            self._move_on(wire, error)
            self._outcomes_unknown += 1
            raise OutcomeUnknown(
                f"the connection was lost during a write, which may have been carried out: {error}"
            ) from None

    def _use(self) -> EtcdWire:
        if self._is_closed:
            raise StoreClosed("the store is closed")
        return self._wires[self._current]

    def _move_on(self, wire: EtcdWire, error: EtcdUnreachable) -> None:
        # Another task may have moved already.
        if wire is self._wires[self._current] and len(self._wires) > 1:
            self._current = (self._current + 1) % len(self._wires)
            self._moves += 1
            logger.warning("%s; going on with %s", error, self._wires[self._current].endpoint)

    async def _wait(self, rounds: int, began_s: float, error: EtcdUnreachable) -> None:
        waited_s = self._clock.now_s() - began_s
        delay_s = self._backoff.delay_s(rounds)
        if waited_s + delay_s <= self._limits.unreachable_s_max:
            await self._clock.wait(delay_s)
        elif len(self._wires) == 1:
            raise error
        else:
            raise type(error)(f"none of {len(self._wires)} endpoints answers; the last was: {error}") from None

    def statistics(self) -> dict[str, int]:
        return {
            "endpoints": len(self._wires),
            "endpoint_changes": self._moves,
            "writes_outcome_unknown": self._outcomes_unknown,
        }
