"""The wire to one endpoint of an etcd: the few calls that a store needs, in our own words.

Comes in   keys, values and conditions
Goes out   records and revisions; or an error of `errors`

 1. Only this room knows aetcd and grpc. They are imported with the first wire that is made: they are an extra, and take
    a tenth of a second.
 2. A wire connects when it is first used, and again by itself; it never repeats a call, but after logging in again,
    which etcd asks for before it does anything.
 3. What is cancelled is cancelled. What was under way when the wire was closed is told so, and not cancelled.

Why the generated stubs of aetcd, and not its client: that has no TLS, hands out events one by one through a callback
each, and does not tell the revision of the answers, on which everything here is built.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from mooring.store.etcd.address import EtcdAddress
from mooring.store.etcd.errors import EtcdNotInstalled, EtcdTokenExpired, EtcdUnreachable, in_words
from mooring.store.etcd.stream import EventStream, encoded_key, record_of
from mooring.store.interface import Record, StoreClosed, WriteConflict

COMPACTION_KEY = b"compact_rev_key"
"""Where kube-apiserver writes how far it has compacted; all servers on one etcd take turns by its version."""

_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", -1),  # what is in etcd is read, however long
    ("grpc.max_send_message_length", -1),  # etcd says what is too large
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    # A restarted etcd is found again within a second; the default waits up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # As kube-apiserver has it: a peer that vanished without a word is missed after 40 s.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)


class Extract(NamedTuple):
    """A part of a range of keys: `total` are in the whole range, at `revision`."""

    records: Sequence[Record]
    total: int
    revision: int


class Turn(NamedTuple):
    """Who compacts: `is_ours`, or else what the key holds, by which version. At `revision` of the store."""

    is_ours: bool
    version: int
    value: bytes
    revision: int


class Wire:
    """One endpoint."""

    def __init__(self, endpoint: str, address: EtcdAddress, request_s_max: float) -> None:
        self.endpoint = endpoint
        self._address = address
        self._request_s_max = request_s_max
        self._rpc = _library()
        self._usage_error: type[Exception] = importlib.import_module("grpc.aio").UsageError
        self._channel = _channel(endpoint, address)
        self._keys = self._rpc.KVStub(self._channel)
        self._metadata: tuple[tuple[str, str], ...] = ()
        self._is_closed = False
        self.cluster = 0
        """Which etcd this is: known after the first answer, and another one after it was restored from a backup."""

    async def close(self) -> None:
        self._is_closed = True
        await self._channel.close()

    # ------------------------------------------------------------------------------------------------ reading

    async def make_ready(self) -> Wire:
        """Connect, unless it is connected. Whatever fails here, nothing that matters was sent."""
        if self._channel.get_state().name != "READY":
            await self.revision()
        return self

    async def revision(self) -> int:
        """The revision of the last write that anybody was told of: a linearizable read, of next to nothing."""
        request = self._rpc.RangeRequest(key=COMPACTION_KEY, count_only=True)
        header = (await self._call(self._keys.Range, request)).header
        self.cluster = header.cluster_id
        return int(header.revision)

    async def read(self, first: bytes, end: bytes, *, limit: int = 0, at: int = 0) -> Extract:
        """The records from `first` to before `end`; just `first` if there is no end."""
        request = self._rpc.RangeRequest(key=first, range_end=end, limit=limit, revision=at)
        answer = await self._call(self._keys.Range, request)
        return Extract([record_of(each) for each in answer.kvs], answer.count, answer.header.revision)

    async def read_compacted(self) -> int:
        """How far somebody said last that it is compacted; 0 if nobody did."""
        answer = await self._call(self._keys.Range, self._rpc.RangeRequest(key=COMPACTION_KEY))
        return decimal(answer.kvs[0].value) if answer.kvs else 0

    def stream(self, first_revision: int, *, has_previous: bool = False) -> EventStream:
        """Every event of every key from a revision on."""
        return EventStream(self._rpc, self._channel, self.endpoint, self._metadata, first_revision, has_previous)

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
            raise WriteConflict(key, record_of(found[0]) if found else None)
        return answer

    # --------------------------------------------------------------------------------------------- compacting

    async def take_turn(self, version: int, value: bytes) -> Turn:
        """Write how far is going to be compacted, if nobody did since that version of the key."""
        rpc = self._rpc
        compare = rpc.Compare
        nobody_did = compare(key=COMPACTION_KEY, target=compare.VERSION, result=compare.EQUAL, version=version)
        put = rpc.RequestOp(request_put=rpc.PutRequest(key=COMPACTION_KEY, value=value))
        look = rpc.RequestOp(request_range=rpc.RangeRequest(key=COMPACTION_KEY))
        request = rpc.TxnRequest(compare=[nobody_did], success=[put], failure=[look])
        answer = await self._call(self._keys.Txn, request)
        revision = answer.header.revision
        if answer.succeeded:
            return Turn(True, version + 1, value, revision)
        found = answer.responses[0].response_range.kvs
        return Turn(False, found[0].version, found[0].value, revision) if found else Turn(False, 0, b"", revision)

    async def compact(self, revision: int) -> None:
        await self._call(self._keys.Compact, self._rpc.CompactionRequest(revision=revision))

    async def announce_compaction(self, revision: int) -> None:
        """Tell those who watch, and make the others miss this turn."""
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
            raise in_words(error.code().name, error.details() or "", self.endpoint) from None
        except asyncio.CancelledError:
            # A channel that closes cancels the calls that it has, which looks as if the caller were meant.
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
            # As etcd's own client does: a login where none is asked for does no harm.
            if "authentication is not enabled" in (error.details() or ""):
                return
            raise in_words(error.code().name, error.details() or "", self.endpoint) from None
        self._metadata = (("token", answer.token),)


def decimal(value: bytes) -> int:
    """A revision as kube-apiserver writes it; 0 if it is none."""
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
