"""The scheduler's client for extenders: sends the requests of a decision over HTTP, and binds pods through extenders.

1. While a decision waits for responses the columns do not change (see `event_buffer`).
2. A request that cannot be sent, or whose response cannot be read, has the response `ExtenderFailure`. The decision
   decides what that means.
3. The first extender that binds and is interested in the pod binds it, instead of the Bind plugins. If it fails and
   is ignorable, the next one is called, and then the plugins.
4. Extenders that are not `nodeCacheCapable` are sent whole objects. `RawObjectCache` holds the JSON of nodes and
   pending pods for them, from a watch of its own; of pods with a node only if an extender gets whole victims.

`ExtenderTransport` sends the requests over HTTP. An `ExtenderError` has the text of kube-scheduler.

5. Each request has the time limit of its extender (`httpTimeout`, default 5 s), from connecting to the last byte.
6. Connections are reused, at most `CONNECTIONS_MAX` to one extender.
7. With `enableHTTPS` and no certificate authority the server is not verified, as in kube-scheduler. Otherwise it is
   verified, unless `insecure` is set.
8. A response has at most `ANSWER_BYTES_MAX`.
9. `may_write` is checked immediately before each request is sent: a process that does not lead sends none.
10. Redirects are followed as Go follows them, at most `REDIRECTS_MAX`.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType

from mooring.api.decode import UntypedObject
from mooring.client.http.dial import exchange_error_text, load_certificate
from mooring.client.http.exchange import REDIRECT_CODES, HttpUrl, connect_to, encode_request
from mooring.client.http.http_connection import HttpConnection, HttpResponse, ResponseTooLongError
from mooring.client.http.transport import ConnectionPool
from mooring.client.interface import Change
from mooring.kit.logs import fields
from mooring.kit.tasks import run_bounded
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.types import ExtenderTLSConfig
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_buffer import EventBuffer
from mooring.scheduler.extenders.cycle import (
    Exchange,
    ExtenderRequest,
    ExtenderResponse,
    RawObjects,
    decide_with_extenders,
)
from mooring.scheduler.extenders.extender import (
    Extender,
    ExtenderBindingArgs,
    ExtenderError,
    ExtenderFailure,
    InvalidResponseError,
    Transport,
    encode,
    extenders_of,
    read_binding_result,
)
from mooring.scheduler.framework.plugin import SKIP, Skip
from mooring.scheduler.framework.status import Status

logger = logging.getLogger(__name__)

CONNECTIONS_MAX = 100
REDIRECTS_MAX = 10
ANSWER_BYTES_MAX = 64 << 20
"""An extender without a node cache of its own returns whole nodes: 5,000 of them take about 50 MB."""
REQUESTS_AT_ONCE_MAX = 16
"""Limit of the extenders that are called at the same time."""

_HEADERS = (("Accept", "*/*"), ("Content-Type", "application/json"))
_SAME_METHOD_CODES = (307, 308)


class ExtenderClient:
    """Decides about pods and binds pods with the extenders of a configuration."""

    def __init__(self, engine: Engine, transport: Transport, event_buffer: EventBuffer) -> None:
        self._engine = engine
        self._transport = transport
        self._event_buffer = event_buffer
        self._extenders = extenders_of(engine.configuration)
        sends_victims = any(
            extender.settings.preempt_verb and not extender.settings.node_cache_capable for extender in self._extenders
        )
        self.objects = RawObjectCache(holds_assigned_pods=sends_victims)

    async def decide(self, pod: PodInfo) -> Decision:
        return await run_exchange(self._engine, pod, self._transport, self.objects, self._event_buffer)

    async def bind(self, pod: PodInfo, node_name: str) -> Skip | Status | None:
        """None if an extender has bound the pod; SKIP if no extender binds it; a status if the extender failed."""
        try:
            is_bound = await bind_with_extenders(self._extenders, pod, node_name, self._transport)
        except ExtenderError as error:
            return Status.error(str(error))
        return None if is_bound else SKIP

    async def close(self) -> None:
        await self._transport.close()


async def run_exchange(
    engine: Engine,
    pod: PodInfo,
    transport: Transport,
    objects: RawObjects,
    event_buffer: EventBuffer,
) -> Decision:
    """Decide about a pod: send the requests of the decision, and return the responses to it until it has ended."""

    async def send(request: ExtenderRequest) -> ExtenderResponse:
        return await _send(request, transport, objects)

    with event_buffer.held():
        exchange = decide_with_extenders(engine, pod)
        position = _position(engine.columns)
        step = _advance(exchange, None)
        while not isinstance(step, Decision):
            responses = await run_bounded(send, step, limit=REQUESTS_AT_ONCE_MAX, name="extenders")
            assert _position(engine.columns) == position, (
                "the columns changed during a decision with extenders: every change must go through the event buffer"
            )
            step = _advance(exchange, tuple(responses))
        return step


async def bind_with_extenders(
    extenders: Sequence[Extender], pod: PodInfo, node_name: str, transport: Transport
) -> bool:
    """Whether an extender has bound the pod; if not, the Bind plugins do. Raises `ExtenderError` if it failed."""
    for extender in extenders:
        if not extender.settings.bind_verb or not extender.is_interested(pod):
            continue
        try:
            await _bind(extender, pod, node_name, transport)
        except ExtenderError as error:
            if not extender.settings.ignorable:
                raise
            logger.info(
                "ignorable extender %s failed to bind pod %s: %s",
                extender.name,
                pod.key,
                error,
                extra=fields(pod=pod.key, node=node_name, reason=error),
            )
            continue
        return True
    return False


async def _bind(extender: Extender, pod: PodInfo, node_name: str, transport: Transport) -> None:
    verb = extender.settings.bind_verb
    raw = await transport.send(extender, verb, encode(ExtenderBindingArgs(pod.name, pod.namespace, pod.uid, node_name)))
    try:
        result = read_binding_result(raw)
    except InvalidResponseError as error:
        raise ExtenderError(_invalid_response(extender, verb, error)) from error
    if result.error:
        raise ExtenderError(result.error)


async def _send(request: ExtenderRequest, transport: Transport, objects: RawObjects) -> ExtenderResponse:
    extender, verb = request.extender, request.verb
    try:
        return request.read(await transport.send(extender, verb, request.body(objects)))
    except InvalidResponseError as error:
        return ExtenderFailure(_invalid_response(extender, verb, error))
    except ExtenderError as error:
        return ExtenderFailure(str(error))
    except LookupError as error:
        return ExtenderFailure(f"extender {extender.name} was not called to {verb}: {error.args[0]}")


def _invalid_response(extender: Extender, verb: str, error: InvalidResponseError) -> str:
    return f"extender at URL {extender.url(verb)} returned a response that cannot be read: {error}"


def _advance(
    exchange: Exchange[Decision], responses: tuple[ExtenderResponse, ...] | None
) -> tuple[ExtenderRequest, ...] | Decision:
    """The next requests, or the decision at the end. The first call has no responses."""
    try:
        return next(exchange) if responses is None else exchange.send(responses)
    except StopIteration as end:
        decision: Decision = end.value
        return decision


def _position(columns: Columns) -> tuple[int, int]:
    return columns.usage_changes.position, columns.fact_changes.position


class RawObjectCache:
    """The JSON of nodes by name and of pods by uid, from two reflectors. Implements `RawObjects`."""

    def __init__(self, *, holds_assigned_pods: bool) -> None:
        self.nodes = RawSink(lambda node: node.metadata.name, lambda node: True)
        self.pods = RawSink(lambda pod: pod.metadata.uid, lambda pod: holds_assigned_pods or not pod.node_name)

    def node(self, name: str) -> bytes:
        found = self.nodes.raw.get(name)
        if found is None:
            raise LookupError(f"node {name} is gone")
        return found

    def pod(self, pod: PodInfo) -> bytes:
        found = self.pods.raw.get(pod.uid)
        if found is None:
            raise LookupError(f"pod {pod.key} is gone")
        return found


class RawSink:
    """The sink of a reflector: the JSON of the objects that it holds, by key."""

    def __init__(self, key: Callable[[UntypedObject], str], holds: Callable[[UntypedObject], bool]) -> None:
        self.raw: dict[str, bytes] = {}
        self._key = key
        self._holds = holds

    def replace(self, views: Sequence[UntypedObject], revision: str) -> None:
        self.raw = {self._key(view): view.raw for view in views if self._holds(view)}

    def apply(self, change: Change, view: UntypedObject) -> None:
        if change is Change.DELETED or not self._holds(view):
            self.raw.pop(self._key(view), None)
        else:
            self.raw[self._key(view)] = view.raw


class ExtenderTLSError(ValueError):
    """The TLS settings of an extender cannot work. Raised when the scheduler starts."""

    def __init__(self, extender: Extender, text: str) -> None:
        super().__init__(f"extender {extender.name}: tlsConfig: {text}")


class ExtenderTransport:
    """Sends requests to extenders over HTTP. A context manager: leaving it closes the connections."""

    def __init__(self, extenders: Iterable[Extender], may_write: Callable[[], bool] | None = None) -> None:
        self._may_write = may_write
        self._tls = {extender.name: tls_of(extender) for extender in extenders}
        self._pools: dict[tuple[str, bool, str], ConnectionPool] = {}

    async def __aenter__(self) -> ExtenderTransport:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    async def send(self, extender: Extender, verb: str, body: bytes) -> bytes:
        """The response of an extender. Raises `ExtenderError`."""
        text = extender.url(verb)
        try:
            url = HttpUrl.parse(text)
        except ValueError as error:
            raise ExtenderError(f'Post "{text}": {error}') from error
        try:
            async with asyncio.timeout(extender.settings.http_timeout_s or None):
                response = await self._post(extender, url, body)
        except ExtenderError:
            raise
        except ResponseTooLongError as error:
            raise ExtenderError(
                f"extender at URL {text} returned more than {ANSWER_BYTES_MAX} bytes for {verb}"
            ) from error
        except TimeoutError as error:
            raise ExtenderError(
                f'Post "{text}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
            ) from error
        except OSError as error:
            raise ExtenderError(f'Post "{text}": {exchange_error_text(error, url.address)}') from error
        except ValueError as error:
            raise ExtenderError(f'Post "{text}": {error}') from error
        if response.code != 200:
            raise ExtenderError(f"failed {verb} with extender at URL {text}, code {response.code}")
        return response.body

    async def _post(self, extender: Extender, url: HttpUrl, body: bytes) -> HttpResponse:
        request = encode_request("POST", url, _HEADERS, body)
        for _ in range(REDIRECTS_MAX):
            response = await self._exchange(extender, url, request)
            location = response.headers.get("Location") if response.code in REDIRECT_CODES else None
            if not location:
                return response
            url = url.join(location)
            if response.code in _SAME_METHOD_CODES:
                request = encode_request("POST", url, _HEADERS, body)
            else:
                request = encode_request("GET", url, _HEADERS[:1])
        raise ValueError(f"stopped after {REDIRECTS_MAX} redirects")

    async def _exchange(self, extender: Extender, url: HttpUrl, request: bytes) -> HttpResponse:
        pool = self._pool(extender, url)
        wire = pool.take_nowait() or await pool.take()
        try:
            if self._may_write is not None and not self._may_write():
                raise ExtenderError("this process does not lead any more: nothing was sent")
            return await wire.send(request, body_bytes_max=ANSWER_BYTES_MAX)
        finally:
            pool.give_back(wire)

    def _pool(self, extender: Extender, url: HttpUrl) -> ConnectionPool:
        key = extender.name, url.is_secure, url.address
        if key not in self._pools:
            tls_config = extender.settings.tls_config
            server_name = tls_config.server_name if tls_config is not None else ""
            tls = self._tls.get(extender.name) if url.is_secure else None
            if url.is_secure and tls is None:
                tls = ssl.create_default_context()

            async def dial() -> HttpConnection:
                return await connect_to(url, tls, server_name or "")

            # `send` has the time limit.
            self._pools[key] = ConnectionPool(dial, wires_max=CONNECTIONS_MAX, request_s_max=None)
        return self._pools[key]


def tls_of(extender: Extender) -> ssl.SSLContext | None:
    """The TLS context of an extender; None: the default one, which trusts the authorities of the system."""
    settings = extender.settings
    tls = settings.tls_config or ExtenderTLSConfig()
    has_authority = bool(tls.ca_data or tls.ca_file)
    is_insecure = tls.insecure or (settings.enable_https and not has_authority)
    if is_insecure and has_authority:
        raise ExtenderTLSError(extender, "specifying a root certificates file with the insecure flag is not allowed")
    if not (has_authority or is_insecure or _has_certificate(extender, tls)):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if has_authority else ssl.create_default_context()
    try:
        if tls.ca_data:
            context.load_verify_locations(cadata=tls.ca_data.decode())
        elif tls.ca_file:
            context.load_verify_locations(cafile=tls.ca_file)
        if _has_certificate(extender, tls):
            chain = tls.cert_data or Path(tls.cert_file).read_bytes()
            load_certificate(context, chain, tls.key_data or Path(tls.key_file).read_bytes())
    except (OSError, ValueError) as error:
        raise ExtenderTLSError(extender, f"a certificate or key cannot be read: {error}") from error
    if is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _has_certificate(extender: Extender, tls: ExtenderTLSConfig) -> bool:
    has_certificate, has_key = bool(tls.cert_data or tls.cert_file), bool(tls.key_data or tls.key_file)
    if has_certificate and not has_key:
        raise ExtenderTLSError(extender, "there is a client certificate but no key: set keyFile or keyData")
    if has_key and not has_certificate:
        raise ExtenderTLSError(extender, "there is a client key but no certificate: set certFile or certData")
    return has_certificate
