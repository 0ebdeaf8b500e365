"""Logs: what the containers of a pod have written.

Input: a call and PodLogOptions.
Output: the bytes; None for a pod that has no node yet; or a `StatusError`.

 1. The order of checks: options, pod, container, node.
 2. Logs of nodes in this process are read directly (`Logs`), all others from their kubelets (`RemoteLogs`).

Requests to kubelets of other processes are those of kube-apiserver:

1. A node is addressed by its host name first, then by its addresses, as by default in kube-apiserver
   (`--kubelet-preferred-address-types`). Parameters are sorted by name, so that error messages are equal.
2. A client that stops reading ends the connection to the kubelet: a followed log may be silent for days.
3. A connection that breaks ends the log, as in kube-apiserver: the client has the first bytes already.
4. Each log has a connection of its own, with the current certificate. Logs are rare, and a kept connection may be
   dead when it is needed.
5. The text of a network error is Go's, because people search for it. It does not name the DNS server, which the
   system's resolver does not report.

The kubelet's certificate is not verified: most kubelets sign their own, and kube-apiserver does not verify them
either without `--kubelet-certificate-authority`.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import urlencode

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD
from mooring.apiserver.admission.interface import Lookup
from mooring.apiserver.call import Call
from mooring.apiserver.errors import internal, invalid_object, not_found, plain_error
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid
from mooring.client.errors import BadRequestError, StatusError
from mooring.client.http.dial import exchange_error_text
from mooring.client.http.errors import error_of_answer
from mooring.client.http.exchange import HttpUrl, open_get
from mooring.client.http.transport import HttpStream


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The parameters of a log request."""

    container: str = ""
    follows: bool = False
    is_previous: bool = False
    since_s: int | None = None
    since_time: str | None = None
    has_timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str = ""


class Logs(Protocol):
    """The logs of pods on nodes of this process."""

    def has_node(self, name: str) -> bool: ...

    async def logs(self, pod: Document, container: str, options: LogOptions) -> AsyncGenerator[bytes, None]: ...


class RemoteLogs(Protocol):
    """Reads logs from the kubelets of other nodes."""

    async def logs(
        self, node: Document, pod: Document, container: str, options: LogOptions
    ) -> AsyncGenerator[bytes, None]: ...


async def open_log(
    lookup: Lookup, call: Call, options: LogOptions, own: Logs | None, remote: RemoteLogs
) -> AsyncGenerator[bytes, None] | None:
    """The log of a container; None if there can be none yet."""
    errors = _errors(options)
    if errors:
        raise invalid_object("PodLogOptions", "", call.name, errors)
    pod = await lookup.get(POD, call.namespace, call.name)
    if pod is None:
        raise not_found(POD, call.name)
    container = _container(pod, options.container)
    node_name = pod["spec"].get("nodeName")
    if not node_name:
        return None
    node = await lookup.get(NODE, "", node_name)
    if node is None:
        # As in kube-apiserver, which reports any missing object here as a missing pod.
        raise not_found(POD, node_name)
    if own is not None and own.has_node(node_name):
        return await own.logs(pod, container, options)
    return await remote.logs(node, pod, container, options)


def _errors(options: LogOptions) -> list[FieldError]:
    errors = []
    if options.tail_lines is not None and options.tail_lines < 0:
        errors.append(invalid("tailLines", options.tail_lines, "must be greater than or equal to 0"))
    if options.limit_bytes is not None and options.limit_bytes < 1:
        errors.append(invalid("limitBytes", options.limit_bytes, "must be greater than 0"))
    if options.since_s is not None and options.since_time is not None:
        errors.append(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif options.since_s is not None and options.since_s < 1:
        errors.append(invalid("sinceSeconds", options.since_s, "must be greater than 0"))
    if options.stream:
        errors.append(forbidden("stream", "may not be specified"))
    return errors


def _container(pod: Document, requested: str) -> str:
    name, spec = pod["metadata"]["name"], pod["spec"]
    own = [container["name"] for container in spec.get("containers") or []]
    if not requested and len(own) == 1:
        return str(own[0])
    # The default is one of the pod's containers; a request may name init and ephemeral containers, too.
    others = {
        field: [container["name"] for container in spec.get(field) or []]
        for field in ("initContainers", "ephemeralContainers")
    }
    all_names = [*others["initContainers"], *own, *others["ephemeralContainers"]]
    if not requested:
        choices = f", choose one of: [{' '.join(all_names)}]" if own else ""
        raise BadRequestError(f"a container name must be specified for pod {name}{choices}")
    if requested not in all_names:
        raise BadRequestError(f"container {requested} is not valid for pod {name}")
    return requested


# --- logs of other kubelets -----------------------------------------------------------------------------------


PREFERRED_ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
DEFAULT_PORT = 10_250


def log_location(node: Document, pod: Document, container: str, options: LogOptions) -> str:
    """The address of the log of a container."""
    metadata = pod["metadata"]
    path = f"/containerLogs/{metadata['namespace']}/{metadata['name']}/{container}"
    query = urlencode(_parameters(options))
    return f"https://{_authority(node)}{path}{'?' if query else ''}{query}"


def _authority(node: Document) -> str:
    try:
        host, port = kubelet_address(node)
    except BadRequestError as error:
        raise plain_error(error.message) from None
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def kubelet_address(node: Document) -> tuple[str, int]:
    """The host and the port of a node's kubelet. Raises `BadRequestError`."""
    status = node.get("status") or {}
    addresses = status.get("addresses") or []
    found = {
        type: [address["address"] for address in addresses if address["type"] == type]
        for type in PREFERRED_ADDRESS_TYPES
    }
    preferred = [address for type in PREFERRED_ADDRESS_TYPES for address in found[type]]
    if not preferred:
        known = " ".join(f"{{{address['type']} {address['address']}}}" for address in addresses)
        raise BadRequestError(f"no preferred addresses found; known addresses: [{known}]")
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    return preferred[0], endpoint.get("Port") or DEFAULT_PORT


def _parameters(options: LogOptions) -> list[tuple[str, str]]:
    requested = {
        "follow": "true" if options.follows else "",
        "limitBytes": _number(options.limit_bytes),
        "previous": "true" if options.is_previous else "",
        "sinceSeconds": _number(options.since_s),
        "sinceTime": options.since_time or "",
        "tailLines": _number(options.tail_lines),
        "timestamps": "true" if options.has_timestamps else "",
    }
    return [(name, value) for name, value in requested.items() if value]


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def unreachable(location: str, text: str) -> StatusError:
    return plain_error(f'Get "{location}": {text}')


def redirected(location: str) -> StatusError:
    return plain_error(f'Get "{location}": redirects forbidden')


def error_of_response(code: int, body: bytes, pod: str) -> StatusError:
    """The error for a kubelet's answer that is not a log."""
    text = body.decode(errors="replace")
    if code == 500:
        return internal(text)
    if code == 400:
        return BadRequestError(text)
    error = error_of_answer(code, {}, body, method="", about=f"pods/log {pod}")
    # A client does not get the kubelet's own text.
    error.causes = ()
    error.details, error.has_details = {"name": pod, "kind": "pods/log"}, True
    return error


CONNECT_S_MAX = 30.0
ERROR_BYTES_MAX = 50_000

_HEADERS = (("Accept", "*/*"), ("Connection", "close"))

logger = logging.getLogger(__name__)


class KubeletLogs:
    """Reads logs from kubelets. A context manager: leaving it ends the connections."""

    def __init__(self, make_tls: Callable[[], ssl.SSLContext]) -> None:
        self._make_tls = make_tls
        self._streams: set[HttpStream] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in self._streams:
            stream.close()

    async def logs(
        self, node: Document, pod: Document, container: str, options: LogOptions
    ) -> AsyncGenerator[bytes, None]:
        """The log, piece by piece. Raises `StatusError` before the first piece."""
        location = log_location(node, pod, container, options)
        stream = await self._open(location)
        if 200 <= stream.code <= 206:
            return self._pieces(stream, location)
        try:
            if 300 <= stream.code < 400:
                raise redirected(location)
            raise error_of_response(stream.code, await stream.read_first(ERROR_BYTES_MAX), pod["metadata"]["name"])
        finally:
            stream.close()

    async def _open(self, location: str) -> HttpStream:
        try:
            url = HttpUrl.parse(location)
        except ValueError as error:
            raise unreachable(location, str(error)) from error
        try:
            return await open_get(url, _HEADERS, self._make_tls(), connect_s_max=CONNECT_S_MAX)
        except OSError as error:
            raise unreachable(location, exchange_error_text(error, url.address)) from error

    async def _pieces(self, stream: HttpStream, location: str) -> AsyncGenerator[bytes, None]:
        self._streams.add(stream)
        try:
            while piece := await stream.read_any():
                yield piece
        except OSError as error:
            logger.info("%s broke off: %s", location, error)
        finally:
            self._streams.discard(stream)
            stream.close()
