"""The request handler: one request, from the parsed head to the response.

    authenticate (401) · authorize (403) · limit (429) · route (404, 405) · handle · respond

1. A request learns nothing, not even that something does not exist, before it is authenticated and authorized.
2. Every error is a Status with kube-apiserver's message. An unexpected exception is a 500 without its text, which goes
   to the log. `failures` counts them: each one is a bug.
3. A request is cancelled after `request_s_max`. One timer checks all requests `CHECKS` times in that period, because a
   timer for each request cost as much as reading its object.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mooring.api.field_errors import quoted
from mooring.api.kinds import ENDPOINTS
from mooring.apiserver.access.authorization import Attributes, path_attributes, require
from mooring.apiserver.access.impersonation import Impersonation, requested_user
from mooring.apiserver.access.reviews import FieldSelectorError, parse_field_equalities
from mooring.apiserver.call import Call
from mooring.apiserver.errors import method_not_allowed, no_such_thing, store_error_status
from mooring.apiserver.http.metrics import CurrentRequests, RequestMetrics
from mooring.apiserver.http.non_resource_paths import NonResourcePaths
from mooring.apiserver.http.objects import ObjectRequests, SubresourceRequests
from mooring.apiserver.http.rendering import (
    NOT_CACHED,
    Reply,
    error_reply,
    negotiated,
    negotiated_error,
    page_not_found,
    page_reply,
    with_warnings,
)
from mooring.apiserver.http.request import (
    IncomingRequest,
    RequestInfo,
    RequestLimits,
    is_served_path,
    read_request_info,
)
from mooring.apiserver.http.virtual import VirtualResources
from mooring.apiserver.http.watches import WatchRequests
from mooring.apiserver.resources import Resource
from mooring.apiserver.server import ApiServer
from mooring.apiserver.validation.names import path_segment_errors
from mooring.client.errors import (
    BadRequestError,
    ClientError,
    ServerError,
    StatusError,
    TooManyRequestsError,
    UnauthorizedError,
)
from mooring.kit.clock import Clock, format_rfc3339
from mooring.serving.console import DATA, DO, LIVE, ROOT, ConsolePaths, LiveStreams, headers_below
from mooring.serving.http.long_running import LongRunningRequests, Pieces
from mooring.serving.http.request import Request
from mooring.serving.http.response import Headers, Response, Stream
from mooring.serving.pages import PageRequest, PageResponse, unauthorized
from mooring.serving.users import NODES_GROUP, User, anonymous
from mooring.store.interface import StoreError

CHECKS = 8
GZIP_LEVEL = 1
NEW_LINK = "kubectl get --raw /console/link"


class Deadlines:
    """The deadlines of all requests in progress."""

    def __init__(self, seconds_max: float) -> None:
        self._pause_s = seconds_max / CHECKS
        self._checks: dict[asyncio.Task[object], int] = {}
        self._alarm: asyncio.TimerHandle | None = None

    def begin(self) -> asyncio.Task[object]:
        """Start the deadline of the current task."""
        task: asyncio.Task[object] | None = asyncio.current_task()
        assert task is not None, "only a task can be cancelled"
        self._checks[task] = 0
        if self._alarm is None:
            self._set_alarm()
        return task

    def is_over(self, task: asyncio.Task[object]) -> bool:
        """Whether a cancellation was caused by the deadline alone."""
        return self._checks[task] > CHECKS and task.cancelling() == 1

    def end(self, task: asyncio.Task[object]) -> None:
        """End the deadline of the current task."""
        if self._checks.pop(task) > CHECKS:
            task.uncancel()

    def _set_alarm(self) -> None:
        self._alarm = asyncio.get_running_loop().call_later(self._pause_s, self._check)

    def _check(self) -> None:
        self._alarm = None
        for task, checks in self._checks.items():
            # The first check may happen immediately, so one more than fit into the time.
            if checks == CHECKS:
                task.cancel()
            self._checks[task] = checks + 1
        if self._checks:
            self._set_alarm()


log = logging.getLogger(__name__)

ENDPOINTS_DEPRECATED = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"


class RequestHandler:
    """Answers requests."""

    def __init__(self, api_server: ApiServer, limits: RequestLimits) -> None:
        self._api_server = api_server
        self._limits = limits
        self._worker = api_server.context.worker
        self._objects = ObjectRequests(api_server)
        self._subresources = SubresourceRequests(api_server)
        self._deadlines = Deadlines(limits.request_s_max)
        self._long_running = LongRunningRequests(limits.stalled_s_max)
        self._streams = WatchRequests(api_server, limits, self._long_running, api_server.entropy.fork("watches"))
        self.metrics = RequestMetrics(api_server.resources.serves)
        self.metrics.registry.register(
            CurrentRequests(self._requests_open_by_kind, lambda: self.failures, api_server.store.statistics)
        )
        self._plain = NonResourcePaths(api_server, self.metrics)
        self._console = ConsolePaths(api_server.console_sessions, NEW_LINK)
        self._live = LiveStreams(api_server.clock)
        self._virtual = VirtualResources(api_server)
        self._impersonation = Impersonation(api_server.authorizer)
        self.requests_open = 0
        self.changes_open = 0
        """The number of open requests that write."""
        self.watches_open = 0
        self.failures = 0

    @property
    def clock(self) -> Clock:
        return self._api_server.clock

    async def answer(self, request: Request) -> Response | Stream:
        """The answer to a request; for a watch, after it has ended."""
        incoming = IncomingRequest(request, self._limits)
        began_s = self._api_server.clock.now_s()
        response = await self._answered_or_error(request, incoming)
        duration_s = self._api_server.clock.now_s() - began_s
        self.metrics.answered(incoming.info, incoming.is_dry_run, response.code, duration_s)
        return response

    def end_long_running(self) -> None:
        """End all watches and followed logs, because the server stops."""
        self._long_running.end()

    def on_failure(self) -> None:
        """Count an unexpected exception."""
        self.failures += 1

    async def _answered_or_error(self, request: Request, incoming: IncomingRequest) -> Response | Stream:
        try:
            return await self._answered(request, incoming)
        except StatusError as error:
            reply = await self._error_reply(incoming, error)
        except StoreError as error:
            log.error("the store failed during %s %s: %s", incoming.method, incoming.path, error)
            reply = negotiated_error(incoming, store_error_status(error))
        except ClientError as error:
            reply = negotiated_error(incoming, ServerError(str(error)))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except RecursionError:
            # Bodies are limited when they are read; a patched object may still be too deep.
            reply = negotiated_error(incoming, BadRequestError("exceeded max depth"))
        except Exception:
            self.on_failure()
            log.exception("%s %s failed", incoming.method, incoming.path)
            reply = negotiated_error(incoming, ServerError("Internal error occurred: see the log of the server"))
        return await self._response(request, reply)

    async def _error_reply(self, incoming: IncomingRequest, error: StatusError) -> Reply:
        """The message of a large object may name a hundred thousand errors."""
        return await self._worker.run(len(error.message), negotiated_error, incoming, error)

    async def _answered(self, request: Request, incoming: IncomingRequest) -> Response | Stream:
        incoming.check_headers()
        if incoming.path == "*":
            return Response(200, b"", "")  # as every Go server answers, before authentication
        open_response = self._console.open_response(request)
        if open_response is not None:
            return await self._response(request, page_reply(open_response))
        try:
            user = self._user(request, incoming)
        except UnauthorizedError:
            if not incoming.path.startswith(ROOT) or incoming.path.startswith(DATA):
                raise
            return await self._response(request, page_reply(self._console.unauthorized()))
        info = incoming.info = self._request_info(incoming)
        if not _is_long_running(info):
            incoming.query.check_timeout()
        attributes = _attributes(user, info, incoming)
        requested = requested_user(request.headers(b"impersonate-"))
        if requested is not None:
            user = self._impersonation.impersonated(requested, attributes)
            attributes = replace(attributes, user=user)
        if NODES_GROUP in user.groups:
            await self._api_server.node_graph.wait_filled()
        require(self._api_server.authorizer, attributes)
        if info.path.startswith("//"):
            return await self._response(request, page_not_found())
        if not info.is_resource:
            plain = await self._plain_reply(info, request, incoming, user)
            if plain.stream is not None:
                return await self._streamed(request, plain, plain.stream)
            return await self._response(request, plain)
        if info.verb == "watch":
            return await self._watched(request, incoming, info, user)
        reply = await self._timed(self._resource_reply(incoming, info, user), incoming.method)
        if reply.stream is not None:
            return await self._streamed(request, reply, reply.stream)
        return await self._response(request, reply)

    async def _plain_reply(self, info: RequestInfo, request: Request, incoming: IncomingRequest, user: User) -> Reply:
        path = info.path
        if path == LIVE and incoming.method == "GET":
            requested = PageRequest("GET", path, incoming.query.everything())
            answer = partial(self._live_page, request, incoming, user)
            return page_reply(self._live.response(requested, answer, user.name))
        if path.startswith(ROOT) and not path.startswith((DATA, DO)):
            return page_reply(self._console.response(path, request, user))
        return await self._plain.answer(info, incoming, user)

    async def _live_page(
        self, request: Request, incoming: IncomingRequest, user: User, requested: PageRequest
    ) -> PageResponse:
        """One page of a live stream, authenticated and authorized again."""
        try:
            self._user(request, incoming)  # raises when the session is over
            require(self._api_server.authorizer, path_attributes(user, "get", requested.path))
        except UnauthorizedError:
            return unauthorized()
        except StatusError as error:
            return PageResponse(error_reply(error).body, error.code)
        return await self._plain.component_response(requested, user)

    def _user(self, request: Request, incoming: IncomingRequest) -> User:
        authorization = request.header(b"authorization")
        if not authorization and not request.certificate:
            user = self._console.session_user(request)
            if user is not None:
                return user
        try:
            return self._api_server.authenticator.authenticate(request.certificate, authorization)
        except UnauthorizedError:
            # Health and version are open to anonymous users, as in the default roles.
            if not authorization and incoming.path.split("/")[1] in _OPEN_TO_ALL:
                return anonymous()
            raise

    def _request_info(self, incoming: IncomingRequest) -> RequestInfo:
        method = incoming.method
        is_watch = method == "GET" and incoming.query.flag("watch")
        return read_request_info(method, incoming.path, is_watch=is_watch)

    # ------------------------------------------------------------------------------------------------ resources

    async def _resource_reply(self, incoming: IncomingRequest, info: RequestInfo, user: User) -> Reply:
        virtual = self._virtual.answering(info)
        if virtual is not None:
            return await virtual(info, incoming, user)
        resource = self._resource(info, incoming.method)
        if resource is None:
            return self._nothing_there(info, incoming)
        _check_name(info)
        call = self._call(resource, info, user)
        try:
            reply = await self._object_reply(resource, call, info, incoming)
        except StatusError as error:
            reply = await self._error_reply(incoming, error)
        return with_warnings(reply, call.warnings)

    def _nothing_there(self, info: RequestInfo, incoming: IncomingRequest) -> Reply:
        is_built_in = self._api_server.discovery.is_built_in_group(info.group)
        return negotiated_error(incoming, no_such_thing()) if is_built_in else page_not_found()

    async def _object_reply(
        self, resource: Resource, call: Call, info: RequestInfo, incoming: IncomingRequest
    ) -> Reply:
        rendering = negotiated(self._api_server, incoming, is_list=info.verb == "list")
        if info.subresource and not self._is_changed_through(resource, info):
            return await self._subresources.answer(resource, call, info, incoming, rendering)
        match incoming.method, bool(info.name):
            case "POST", _:
                return await self._objects.create(resource, call, incoming, rendering)
            case "GET", True:
                return await self._objects.get(resource, call, incoming, rendering)
            case "GET", False:
                return await self._objects.list(resource, call, incoming, rendering)
            case "PUT", True:
                return await self._objects.update(resource, call, incoming, rendering)
            case "PATCH", True:
                return await self._objects.patch(resource, call, incoming, rendering)
            case "DELETE", True:
                return await self._objects.delete(resource, call, incoming, rendering)
            case _:
                return await self._objects.delete_collection(resource, call, incoming, rendering)

    def _resource(self, info: RequestInfo, method: str) -> Resource | None:
        """The resource of an address, if the address is one that it has. Raises if the method is not."""
        resource = self._api_server.resources.find(info.api_version, info.resource)
        if resource is None:
            return None
        if resource.struct is None:
            return resource if is_served_path(resource, info) else None
        kind = resource.kind
        if info.is_below_namespace and not kind.is_namespaced:
            raise no_such_thing()
        if kind.is_namespaced and not info.namespace and (info.name and info.verb not in _COLLECTION_VERBS):
            raise no_such_thing()
        if (info.rest and info.subresource != "proxy") or (info.is_old_watch and info.verb != "watch"):
            raise no_such_thing()
        allowed = resource.verbs
        if info.subresource:
            subresource = resource.subresources.get(info.subresource)
            if subresource is None:
                raise no_such_thing()
            allowed = subresource.verbs
        is_nowhere = kind.is_namespaced and not info.namespace and info.verb in ("create", "deletecollection")
        is_misplaced = not info.subresource and info.verb in ("update", "patch") and not info.name
        is_misplaced = is_misplaced or (info.verb == "create" and bool(info.name) and not info.subresource)
        is_misread = method == "HEAD" or (info.verb == "watch" and method != "GET")
        if info.verb not in allowed or is_nowhere or is_misplaced or is_misread:
            raise method_not_allowed()
        return resource

    def _is_changed_through(self, resource: Resource, info: RequestInfo) -> bool:
        return info.subresource in resource.strategies or info.subresource == "scale"

    def _call(self, resource: Resource, info: RequestInfo, user: User) -> Call:
        now_s = self._api_server.clock.wall_s()
        namespace = info.namespace if resource.kind.is_namespaced else ""
        warnings = [ENDPOINTS_DEPRECATED] if resource.kind is ENDPOINTS else list(resource.warnings)
        return Call(
            verb=info.verb,
            kind=resource.kind,
            user=user,
            now_s=now_s,
            now=format_rfc3339(int(now_s)),
            namespace=namespace,
            name=info.name,
            subresource=info.subresource,
            warnings=warnings,
        )

    # -------------------------------------------------------------------------------------------------- watches

    async def _watched(
        self, request: Request, incoming: IncomingRequest, info: RequestInfo, user: User
    ) -> Response | Stream:
        resource = self._resource(replace(info, verb="watch"), incoming.method)
        if resource is None:
            return await self._response(request, self._nothing_there(info, incoming))
        if self.watches_open >= self._limits.watches_max:
            raise _too_many_requests(self._limits)
        call = self._call(resource, info, user)
        options = incoming.query.list_options()
        if info.is_old_watch:
            options = replace(options, is_watch=True)
            if info.name:
                options = replace(options, fields=f"metadata.name={info.name}")
        rendering = negotiated(self._api_server, incoming, is_watch=True)
        counted = self.metrics.watches_of(info)
        self.watches_open += 1
        counted.inc()
        try:
            return await self._streams.watch(resource, call, options, rendering, request)
        finally:
            self.watches_open -= 1
            counted.dec()

    async def _streamed(self, request: Request, reply: Reply, pieces: Pieces) -> Stream:
        headers = _with_cache_rule((*reply.headers, *headers_below(request.path)))
        stream = request.stream(reply.code, reply.content_type, headers)
        await self._long_running.send(request, stream, pieces)
        stream.finish()
        return stream

    # ------------------------------------------------------------------------------------------------- answers

    async def _timed(self, work: Coroutine[Any, Any, Reply], method: str) -> Reply:
        if self.requests_open >= self._limits.requests_max:
            work.close()
            raise _too_many_requests(self._limits)
        is_change = method not in ("GET", "HEAD")
        self.requests_open += 1
        self.changes_open += is_change
        task = self._deadlines.begin()
        try:
            return await work
        except asyncio.CancelledError:
            if not self._deadlines.is_over(task):
                raise
            raise StatusError(
                "Timeout: request did not complete within the allotted timeout", code=504, reason="Timeout"
            ) from None
        finally:
            self._deadlines.end(task)
            self.requests_open -= 1
            self.changes_open -= is_change

    def _requests_open_by_kind(self) -> dict[str, int]:
        return {"mutating": self.changes_open, "readOnly": self.requests_open - self.changes_open}

    async def _response(self, request: Request, reply: Reply) -> Response:
        body = reply.body
        headers = _with_cache_rule((*reply.headers, *headers_below(request.path)))
        if len(body) >= self._limits.gzip_bytes_min and _takes_gzip(request.header(b"accept-encoding")):
            body = await self._worker.run(len(body), gzip.compress, body, GZIP_LEVEL)
            headers = (*headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
        return Response(reply.code, body, "" if reply.code == 204 else reply.content_type, headers)


_OPEN_TO_ALL = ("healthz", "livez", "readyz", "version")
_COLLECTION_VERBS = ("list", "watch", "deletecollection")
_LONG_RUNNING_SUBRESOURCES = ("attach", "exec", "log", "portforward", "proxy")


def _is_long_running(info: RequestInfo) -> bool:
    """Whether a request is long-running: then its timeout parameter is not checked."""
    return info.verb in ("watch", "proxy") or info.subresource in _LONG_RUNNING_SUBRESOURCES


def _check_name(info: RequestInfo) -> None:
    """Raises `BadRequestError` for the name of an object that could not be a part of a path."""
    is_new = info.verb == "create" and not info.subresource
    errors = path_segment_errors(info.name) if info.name and not is_new else ()
    if errors:
        raise BadRequestError(f"Name parameter invalid: {quoted(info.name)}: {';'.join(errors)}")


def _with_cache_rule(headers: Sequence[tuple[str, str]]) -> Headers:
    if not headers:
        return NOT_CACHED
    return tuple(headers) if any(name == "Cache-Control" for name, _ in headers) else (*headers, *NOT_CACHED)


def _takes_gzip(encodings: str) -> bool:
    """As in kube-apiserver, `gzip;q=1` does not count."""
    return any(encoding.strip() == "gzip" for encoding in encodings.split(","))


def _attributes(user: User, info: RequestInfo, incoming: IncomingRequest) -> Attributes:
    if not info.is_resource:
        return path_attributes(user, info.verb, info.path)
    is_collection = info.verb in _COLLECTION_VERBS
    return Attributes(
        user=user,
        verb=info.verb,
        namespace=info.namespace,
        api_group=info.group,
        api_version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        # A user with permission to get one object may list and watch it by its name.
        name=info.name or (_named_by_field(incoming) if is_collection else ""),
        path=info.path,
        fields_equal=_fields_equal(incoming) if is_collection else (),
    )


def _fields_equal(incoming: IncomingRequest) -> tuple[tuple[str, str], ...]:
    try:
        return parse_field_equalities(incoming.query.text("fieldSelector"))
    except FieldSelectorError:
        return ()  # the list handler reports the error


def _named_by_field(incoming: IncomingRequest) -> str:
    """The name in a field selector that has no other requirement."""
    text = incoming.query.text("fieldSelector")
    name = text.removeprefix("metadata.name=") if text.startswith("metadata.name=") else ""
    return name if name and "," not in name and not name.startswith("=") else ""


def _too_many_requests(limits: RequestLimits) -> TooManyRequestsError:
    return TooManyRequestsError("Too many requests, please try again later.", retry_after_s=float(limits.retry_after_s))
