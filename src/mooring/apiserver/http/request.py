"""An incoming request: its path and method, and the limits of requests.

1. A body is read on demand, completely, and never beyond the limit.
2. Without a field manager, the first part of the user agent is the manager.
3. Each limit has a name, a default, and a defined response when it is reached.

The path and the method of a request mean an `RequestInfo`: an object, a collection, or no resource.

    /api/v1/namespaces/default/pods/web/log       core, one object, a subresource
    /apis/apps/v1/deployments                     a group, a collection over all namespaces
    /api/v1/watch/namespaces/default/pods         the deprecated path of watches
    /healthz                                      no resource

1. Authorization and the handlers use the same `RequestInfo`, so that both mean the same resource.
2. Escapes are decoded before the path is split: `%2F` is a slash.
3. Paths of custom objects are rejected in other cases than those of built-in kinds, as in kube-apiserver.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from urllib.parse import unquote

from mooring.api.caches import BoundedCache
from mooring.api.kinds import ALL_VERBS
from mooring.apiserver.errors import method_not_supported, not_found
from mooring.apiserver.http.query import Query
from mooring.apiserver.resources import Resource
from mooring.client.errors import BadRequestError, StatusError
from mooring.serving.http.body import BodyTooLargeError
from mooring.serving.http.request import Request


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The limits of the handler."""

    body_bytes_max: int = 3 * 1024 * 1024
    """Answer beyond it: 413, as kube-apiserver's limit for a body."""
    header_bytes_max: int = 64 * 1024
    """All headers together. Answer beyond it: 431."""
    requests_max: int = 400
    """Requests in progress, watches apart. Answer beyond it: 429 with Retry-After."""
    watches_max: int = 10_000
    """Watches open. Answer beyond it: 429 with Retry-After."""
    request_s_max: float = 60.0
    """How long a request may take, watches apart. Answer beyond it: 504."""
    watch_s_min: float = 1_800.0
    """The minimum duration of a watch without a timeout; the maximum is twice that. It ends without an error."""
    stalled_s_max: float = 60.0
    """How long a client of a watch or a followed log may read nothing before it is disconnected."""
    gzip_bytes_min: int = 128 * 1024
    """Responses from this size on are compressed for clients that accept it."""
    retry_after_s: int = 1


MANAGER_BYTES_MAX = 128
MANAGERS_CACHED_MAX = 256


class IncomingRequest:
    """One request."""

    __slots__ = ("_limits", "_request", "address", "query")

    def __init__(self, request: Request, limits: RequestLimits) -> None:
        self._request = request
        self._limits = limits
        self.query = Query(request.query)
        self.address: RequestInfo | None = None
        """The parsed path; None before it is parsed."""

    @property
    def method(self) -> str:
        return self._request.method

    @property
    def path(self) -> str:
        return self._request.path

    @property
    def is_dry_run(self) -> bool:
        return bool(self.query.text("dryRun"))

    def header(self, name: bytes) -> str:
        """By its name in lower case; empty if there is none."""
        return self._request.header(name)

    @property
    def content_type(self) -> str:
        """The type of the body without its parameters; empty if none is given."""
        return self._request.header(b"content-type").partition(";")[0].strip()

    @property
    def manager(self) -> str:
        """The field manager by the user agent."""
        return _manager(self._request.header(b"user-agent"))

    def check_headers(self) -> None:
        """Raises a `StatusError` of 431 if the headers exceed the limit in total."""
        if self._request.header_bytes > self._limits.header_bytes_max:
            raise StatusError(
                f"Request headers too large: limit is {self._limits.header_bytes_max}",
                code=431,
                reason="RequestHeaderFieldsTooLarge",
            )

    @contextmanager
    def ends_with_client(self) -> Iterator[None]:
        """A block whose task is cancelled when the client disconnects: for expensive answers that change nothing."""
        connection, task = self._request.connection, asyncio.current_task()
        assert task is not None, "only a task can be cancelled"
        connection.on_lost = partial(_cancel, task)
        try:
            yield
        finally:
            connection.on_lost = None

    async def body(self) -> bytes:
        """The whole body. Raises a `StatusError` of 413 if it is too long."""
        limit = self._limits.body_bytes_max
        try:
            return await self._request.read(limit)
        except BodyTooLargeError:
            raise StatusError(
                f"Request entity too large: limit is {limit}", code=413, reason="RequestEntityTooLarge"
            ) from None


def _cancel(task: asyncio.Task[object]) -> None:
    task.cancel()


@lru_cache(maxsize=MANAGERS_CACHED_MAX)
def _manager(agent: str) -> str:
    printable = "".join(character for character in agent.partition("/")[0] if character.isprintable())
    return printable.encode()[:MANAGER_BYTES_MAX].decode(errors="ignore")


# --- path and method ------------------------------------------------------------------------------------------


ADDRESSES_CACHED_MAX = 1_024

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The resource that a path addresses."""

    path: str
    verb: str
    """As authorization calls it; empty for a method that is no verb."""
    is_resource: bool = False
    api_prefix: str = ""
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    rest: tuple[str, ...] = ()
    """What follows the subresource: the path of a proxied request."""
    is_old_watch: bool = False
    is_below_namespace: bool = False
    """Whether the path has a namespace, which is an error for a cluster-scoped resource."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


def read_request_info(method: str, path: str, *, is_watch: bool) -> RequestInfo:
    """What a request is about."""
    question = (method, path, is_watch)
    return _read.get(question) or _read.put(question, _address(method, path, is_watch))


_read: BoundedCache[tuple[str, str, bool], RequestInfo] = BoundedCache(ADDRESSES_CACHED_MAX)


def _address(method: str, path: str, is_watch: bool) -> RequestInfo:
    verb = _VERBS.get(method, method.lower())
    path = unquote(path)
    parts = path.strip("/").split("/")
    is_core = parts[0] == "api"
    if parts[0] not in ("api", "apis") or len(parts) < (3 if is_core else 4):
        return RequestInfo(path, method.lower())  # only requests for resources have verbs such as create
    group, version, parts = ("", parts[1], parts[2:]) if is_core else (parts[1], parts[2], parts[3:])
    prefix = "api" if is_core else "apis"
    is_old_watch = parts[0] in ("watch", "proxy") and len(parts) > 1
    if is_old_watch:
        verb, parts = parts[0], parts[1:]
    namespace, is_below_namespace = "", False
    if parts[0] == "namespaces":
        namespace = parts[1] if len(parts) > 1 else ""
        if len(parts) > 2 and not (parts[2] in _NAMESPACE_SUBRESOURCES and len(parts) == 3):
            parts, is_below_namespace = parts[2:], True
    resource, name, subresource = (*parts[:3], "", "")[:3]
    if not name and verb == "get":
        verb = "watch" if is_watch else "list"
    elif not name and verb == "delete":
        verb = "deletecollection"
    return RequestInfo(
        path=path,
        verb=verb,
        is_resource=True,
        api_prefix=prefix,
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        name=name,
        subresource=subresource,
        rest=tuple(parts[3:]),
        is_old_watch=is_old_watch,
        is_below_namespace=is_below_namespace,
    )


_ACROSS_NAMESPACES = ("list", "watch")


def is_custom_address(resource: Resource, address: RequestInfo) -> bool:
    """Whether the address leads anywhere."""
    kind = resource.kind
    if address.is_below_namespace and not kind.is_namespaced:
        return False
    if kind.is_namespaced and not address.namespace and address.verb not in _ACROSS_NAMESPACES:
        return False
    if address.subresource and address.subresource not in resource.subresources:
        raise not_found(kind, address.name)
    allowed = resource.subresources[address.subresource].verbs if address.subresource else ALL_VERBS
    if address.verb not in allowed:
        raise method_not_supported(kind, address.verb)
    if address.verb in ("update", "patch") and not address.name:
        raise BadRequestError("name must be provided")
    return True
