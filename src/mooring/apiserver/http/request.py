"""An incoming request: its path and method, its parameters, and the limits of requests.

1. A body is read on demand, completely, and never beyond the limit.
2. Without a field manager, the first part of the user agent is the manager.
3. Each limit has a name, a default, and a defined response when it is reached.

The path and the method of a request mean an `RequestInfo`: an object, a collection, or no resource.

    /api/v1/namespaces/default/pods/web/log       core, one object, a subresource
    /apis/apps/v1/deployments                     a group, a collection over all namespaces
    /api/v1/watch/namespaces/default/pods         the deprecated path of watches
    /healthz                                      no resource

4. Authorization and the handlers use the same `RequestInfo`, so that both mean the same resource.
5. Escapes are decoded before the path is split: `%2F` is a slash.
6. Paths of custom objects are rejected in other cases than those of built-in kinds, as in kube-apiserver.

The query gives the options of a list, a write or a delete; or a `StatusError` with kube-apiserver's message.

7. Unknown parameters are ignored.
8. A flag is false if it is absent, `false` in any case (Python writes `False`) or `0`; every other text is true.
9. A watch without a resourceVersion begins with the state, as with `sendInitialEvents`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from urllib.parse import unquote

from mooring.api.caches import BoundedCache
from mooring.api.document import Document
from mooring.api.durations import parse_duration
from mooring.api.kinds import ALL_VERBS
from mooring.apiserver.call import FieldValidation
from mooring.apiserver.errors import invalid_object, method_not_supported, not_found
from mooring.apiserver.registry.delete import META_GROUP, validate_dry_run
from mooring.apiserver.registry.pod_log import LogOptions
from mooring.apiserver.resources import Resource
from mooring.apiserver.storage.selection import check_selectors
from mooring.apiserver.validation.fields import FieldError, forbidden, not_supported, required
from mooring.apiserver.validation.metadata import validate_field_manager
from mooring.apiserver.wire.scalars import TimeFormatError, canonical_time
from mooring.client.errors import BadRequestError, StatusError
from mooring.serving.http.request import BodyTooLargeError, Request

EXACT = "Exact"
NOT_OLDER_THAN = "NotOlderThan"
_INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The parameters of a list or a watch."""

    labels: str = ""
    fields: str = ""
    is_watch: bool = False
    bookmarks: bool = False
    revision: str = ""
    match: str = ""
    timeout_s: int | None = None
    limit: int = 0
    continue_token: str = ""
    initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The parameters of a create, an update or a patch."""

    is_dry_run: bool = False
    field_manager: str = ""
    field_validation: FieldValidation = FieldValidation.WARN
    is_forced: bool = False


class Query:
    """The parameters of one request."""

    def __init__(self, parameters: Mapping[str, Sequence[str]]) -> None:
        self._parameters = parameters

    def everything(self) -> dict[str, list[str]]:
        return {name: list(values) for name, values in self._parameters.items()}

    def text(self, name: str) -> str:
        found = self._parameters.get(name)
        return found[0] if found else ""

    def texts(self, name: str) -> list[str]:
        return list(self._parameters.get(name, ()))

    def flag(self, name: str) -> bool:
        found = self._parameters.get(name)
        return found is not None and found[0] != "0" and found[0].lower() != "false"

    def optional_flag(self, name: str) -> bool | None:
        return self.flag(name) if name in self._parameters else None

    def has(self, name: str) -> bool:
        return name in self._parameters

    def integer(self, name: str) -> int | None:
        found = self._parameters.get(name)
        return None if found is None else _integer(found[0])

    def check_timeout(self) -> None:
        """Raises `BadRequestError` for an invalid `timeout`. A valid one has no effect."""
        try:
            if text := self.text("timeout"):
                parse_duration(text)
        except ValueError as error:
            raise BadRequestError(f"invalid timeout specified in the request URL - {error}") from None

    def check_export(self) -> None:
        """Raises `BadRequestError` for parameters of a get that older servers had."""
        if self.flag("export"):
            raise BadRequestError("the export parameter, deprecated since v1.14, is no longer supported")

    # ---------------------------------------------------------------------------------------------- options

    def list_options(self) -> ListOptions:
        options = ListOptions(
            labels=self.text("labelSelector"),
            fields=self.text("fieldSelector"),
            is_watch=self.flag("watch"),
            bookmarks=self.flag("allowWatchBookmarks"),
            revision=self.text("resourceVersion"),
            match=self.text("resourceVersionMatch"),
            timeout_s=self.integer("timeoutSeconds"),
            limit=max(0, self.integer("limit") or 0),
            continue_token=self.text("continue"),
            initial_events=self.optional_flag("sendInitialEvents"),
        )
        has_initial_state_options = options.initial_events is not None or options.match
        if options.is_watch and options.revision in ("", "0") and not has_initial_state_options:
            return replace(options, initial_events=True, match=NOT_OLDER_THAN)
        return options

    def write_options(self, options_kind: str, *, is_apply: bool = False) -> WriteOptions:
        """`options_kind` is `CreateOptions`, `UpdateOptions` or `PatchOptions`."""
        manager, validation, dry_runs = self.text("fieldManager"), self.text("fieldValidation"), self.texts("dryRun")
        force = self.optional_flag("force") if options_kind == "PatchOptions" else None
        errors: list[FieldError] = []
        if options_kind == "PatchOptions":
            if is_apply and not manager:
                errors.append(required("fieldManager", "is required for apply patch"))
            if not is_apply and force is not None:
                errors.append(forbidden("force", "may not be specified for non-apply patch"))
        errors += validate_field_manager(manager, "fieldManager")
        errors += validate_dry_run(dry_runs)
        if validation not in ("", "Ignore", "Strict", "Warn"):
            errors.append(not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
        if errors:
            raise invalid_object(options_kind, META_GROUP, "", errors)
        chosen = FieldValidation(validation) if validation else FieldValidation.WARN
        return WriteOptions(bool(dry_runs), manager, chosen, bool(force))

    def delete_options(self) -> Document:
        """The parameters as a DeleteOptions document."""
        options: Document = {}
        if (grace_s := self.integer("gracePeriodSeconds")) is not None:
            options["gracePeriodSeconds"] = grace_s
        if (orphans := self.optional_flag("orphanDependents")) is not None:
            options["orphanDependents"] = orphans
        if "propagationPolicy" in self._parameters:
            options["propagationPolicy"] = self.text("propagationPolicy")
        if dry_runs := self.texts("dryRun"):
            options["dryRun"] = dry_runs
        return options

    def log_options(self) -> LogOptions:
        since_time = self.text("sinceTime") or None
        if since_time is not None:
            try:
                since_time = canonical_time(since_time)
            except TimeFormatError as error:
                raise BadRequestError(str(error)) from None
        return LogOptions(
            container=self.text("container"),
            follows=self.flag("follow"),
            is_previous=self.flag("previous"),
            since_s=self.integer("sinceSeconds"),
            since_time=since_time,
            has_timestamps=self.flag("timestamps"),
            tail_lines=self.integer("tailLines"),
            limit_bytes=self.integer("limitBytes"),
            stream=self.text("stream"),
        )


def check_list_options(options: ListOptions) -> None:
    """Raises `BadRequestError` if a selector cannot be read, and `InvalidError` if the options do not go together."""
    check_selectors(options.labels, options.fields)
    errors = _validate_watch(options) if options.is_watch else _validate_list(options)
    if errors:
        raise invalid_object("ListOptions", META_GROUP, "", errors)


def _validate_list(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if options.match:
        if not options.revision:
            detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            errors.append(forbidden("resourceVersionMatch", detail))
        if options.continue_token:
            detail = "resourceVersionMatch is forbidden when continue is provided"
            errors.append(forbidden("resourceVersionMatch", detail))
        if options.match not in (EXACT, NOT_OLDER_THAN):
            errors.append(not_supported("resourceVersionMatch", options.match, (EXACT, NOT_OLDER_THAN, "")))
        if options.match == EXACT and options.revision == "0":
            detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(forbidden("resourceVersionMatch", detail))
    if options.initial_events is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _validate_watch(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if options.initial_events is not None and options.match != NOT_OLDER_THAN:
        detail = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER_THAN}"
        errors.append(forbidden("resourceVersionMatch", detail))
    if options.match:
        if options.initial_events is None:
            detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors.append(forbidden("resourceVersionMatch", detail))
        if options.match != NOT_OLDER_THAN:
            errors.append(not_supported("resourceVersionMatch", options.match, (NOT_OLDER_THAN,)))
        if options.continue_token:
            detail = "resourceVersionMatch is forbidden when continue is provided"
            errors.append(forbidden("resourceVersionMatch", detail))
    return errors


def _integer(text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdecimal()):
        raise BadRequestError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    number = int(text)
    if not -_INT64_MAX - 1 <= number <= _INT64_MAX:
        raise BadRequestError(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number


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

    __slots__ = ("_limits", "_request", "info", "query")

    def __init__(self, request: Request, limits: RequestLimits) -> None:
        self._request = request
        self._limits = limits
        self.query = Query(request.query)
        self.info: RequestInfo | None = None
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


REQUEST_INFOS_CACHED_MAX = 1_024

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
    """The `RequestInfo` of a method and a path."""
    question = (method, path, is_watch)
    return _read.get(question) or _read.put(question, _request_info(method, path, is_watch))


_read: BoundedCache[tuple[str, str, bool], RequestInfo] = BoundedCache(REQUEST_INFOS_CACHED_MAX)


def _request_info(method: str, path: str, is_watch: bool) -> RequestInfo:
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


def is_served_path(resource: Resource, info: RequestInfo) -> bool:
    """Whether a path of a custom resource is served. Raises `StatusError` for a subresource or verb that it lacks."""
    kind = resource.kind
    if info.is_below_namespace and not kind.is_namespaced:
        return False
    if kind.is_namespaced and not info.namespace and info.verb not in _ACROSS_NAMESPACES:
        return False
    if info.subresource and info.subresource not in resource.subresources:
        raise not_found(kind, info.name)
    allowed = resource.subresources[info.subresource].verbs if info.subresource else ALL_VERBS
    if info.verb not in allowed:
        raise method_not_supported(kind, info.verb)
    if info.verb in ("update", "patch") and not info.name:
        raise BadRequestError("name must be provided")
    return True
