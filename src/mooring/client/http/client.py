"""The client interface over HTTP, for any Kubernetes API server.

Inputs: calls of the client interface. Outputs: objects as the bytes that the server sent; or a `ClientError`.

1. A binding is never sent twice, except after a 429, which the server did not process. If its outcome is unknown, the
   caller gets a `NoAnswerError` and reads the pod.
2. A list without a limit is read in pages of `PAGE_SIZE`. If the pages expire meanwhile (410), everything is read again
   in one request, as in client-go.
3. A watch has a random timeout of five to ten minutes, so that a thousand watches do not end together.
4. `may_write` is checked immediately before each write is sent; if it returns false, the write is a `NotLeadingError`.
   Reads are always allowed: a standby process keeps its caches up to date.
5. A name in a path is never empty, because that would be the path of the collection, and it is always one segment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import POD, SERVICE_ACCOUNT, Kind
from mooring.client.errors import BadRequestError, ExpiredError
from mooring.client.http.connection import Connection
from mooring.client.http.list_watch import HttpWatch, listing_of
from mooring.client.http.requests import HttpRequests, RequestStatistics, RetryPolicy
from mooring.client.http.transport import DRY_RUN, HttpTransport
from mooring.client.interface import EVERYTHING, Deletion, JsonObject, Listing, PatchForm, Selection
from mooring.client.ratelimit import TokenBucket
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy

_SEGMENT_SAFE = ":@!$&'()*+,;=~"
_UNQUOTED = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
"""Names that need no quoting: nearly all."""
_roots: dict[Kind, str] = {}


def collection_path(kind: Kind, namespace: str) -> str:
    """The path of a kind in a namespace; in all namespaces if `namespace` is empty."""
    root = _roots.get(kind)
    if root is None:
        root = _roots[kind] = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    if namespace and kind.is_namespaced:
        return f"{root}/namespaces/{_segment(namespace, 'namespace')}/{kind.plural}"
    return f"{root}/{kind.plural}"


def object_path(kind: Kind, namespace: str, name: str, subresource: str = "") -> str:
    """The path of an object or of its subresource. Raises `BadRequestError`."""
    if not name:
        raise BadRequestError("resource name may not be empty")
    if kind.is_namespaced and not namespace:
        raise BadRequestError("an empty namespace may not be set when a resource name is provided")
    path = f"{collection_path(kind, namespace)}/{_segment(name, 'resource name')}"
    return f"{path}/{subresource}" if subresource else path


def creation_path(kind: Kind, namespace: str) -> str:
    """The path for a create. Raises `BadRequestError`."""
    if kind.is_namespaced and not namespace:
        raise BadRequestError("an empty namespace may not be set during creation")
    return collection_path(kind, namespace)


def binding_path(namespace: str, name: str) -> str:
    """The path of the binding subresource of a pod."""
    return object_path(POD, namespace, name, "binding")


def with_query(path: str, selection: Selection, parameters: Mapping[str, str | int]) -> str:
    """A path with a selection and other parameters. Parameters that are empty or 0 are left out."""
    all_parameters = {"labelSelector": selection.labels, "fieldSelector": selection.fields, **parameters}
    query = urlencode({name: value for name, value in all_parameters.items() if value})
    return f"{path}?{query}" if query else path


def _segment(text: str, what: str) -> str:
    if _UNQUOTED.fullmatch(text):
        return text
    if text in (".", "..") or "/" in text or "%" in text:
        raise BadRequestError(f"invalid {what} {text!r}: may not be '.' or '..', or contain '/' or '%'")
    return quote(text, safe=_SEGMENT_SAFE)


PAGE_SIZE = 500
WATCH_S_MIN = 300.0
WATCH_GRACE_S = 30.0
"""How much later than its timeout a server may end a watch before the client does."""
FIELD_MANAGER = "mooring"

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits of a client. The defaults are kube-scheduler's, except for the number of connections."""

    requests_per_s: float = 50.0
    """Zero or less: no limit."""
    burst: int = 100
    in_flight_max: int = 100
    """Concurrent requests, each on its own connection. Further requests wait. Watches do not count."""
    request_s_max: float = 65.0
    """A server gives up after 60 s."""


class HttpClient:
    """Implements `Client` over HTTP. A context manager: leaving it closes the connections."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        entropy: Entropy,
        *,
        limits: HttpLimits | None = None,
        component: str = "",
        product: str = "mooring",
        environment: Mapping[str, str] | None = None,
        may_write: Callable[[], bool] | None = None,
    ) -> None:
        """`product` is the first part of the user agent, which API servers use as field manager. `may_write` is
        `LeaderElector.is_leading` of a process that writes only while it leads."""
        limits = limits if limits is not None else HttpLimits()
        bucket = None
        if limits.requests_per_s > 0:
            bucket = TokenBucket(clock, rate_per_s=limits.requests_per_s, burst=limits.burst)
        self.connection = connection
        self._entropy = entropy
        self._transport = HttpTransport(
            connection,
            in_flight_max=limits.in_flight_max,
            request_s_max=limits.request_s_max,
            component=component,
            product=product,
            environment=os.environ if environment is None else environment,
            may_write=may_write,
        )
        self._requests = HttpRequests(connection, self._transport, clock, bucket)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    def statistics(self) -> dict[str, int]:
        return self._requests.statistics()

    @property
    def request_statistics(self) -> RequestStatistics:
        """Request metrics."""
        return self._requests.request_statistics

    # ------------------------------------------------------------------------------------------------ reads

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        target = object_path(kind, namespace, name)
        answer = await self._requests.send(
            "GET", target, about=f"{kind.resource} {name}", answers=(kind.kind,), repeat=RetryPolicy.AFTER_LOSS
        )
        return _object(answer)

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        """As in kube-apiserver, `revision` means "not older than" without a limit, and "exactly" with a limit."""
        if not limit and not continue_token:
            return await self._list_everything(kind, selection, revision)
        # A continue token includes the revision; the server rejects a request with both.
        since = "" if continue_token else revision
        return await self._page(kind, selection, {"limit": limit, "continue": continue_token, "resourceVersion": since})

    async def _list_everything(self, kind: Kind, selection: Selection, revision: str) -> Listing:
        since = {"resourceVersion": revision, "resourceVersionMatch": "NotOlderThan"} if revision else {}
        page = await self._page(kind, selection, {"limit": PAGE_SIZE, **since})
        items = list(page.items)
        try:
            while page.continue_token:
                page = await self._page(kind, selection, {"limit": PAGE_SIZE, "continue": page.continue_token})
                items += page.items
        except ExpiredError:
            return await self._page(kind, selection, since)
        return Listing(items, page.revision)

    async def _page(self, kind: Kind, selection: Selection, parameters: Mapping[str, str | int]) -> Listing:
        target = with_query(collection_path(kind, selection.namespace), selection, parameters)
        answer = await self._requests.send(
            "GET", target, about=kind.resource, answers=(f"{kind.kind}List",), repeat=RetryPolicy.AFTER_LOSS
        )
        return listing_of(kind, answer)

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> HttpWatch:
        # Without a revision the server would start "now"; to an invalid one it answers with a 5xx.
        if not (since.isascii() and since.isdecimal() and int(since)):
            raise BadRequestError(f"a watch starts from the revision of a list or an event, not from {since!r}")
        return self._watch(
            kind, selection, {"resourceVersion": since, "allowWatchBookmarks": "true" if bookmarks else ""}
        )

    def watch_all(self, kind: Kind, selection: Selection = EVERYTHING) -> HttpWatch:
        """All objects as ADDED, then a bookmark, then the changes (WatchList). Not every server supports it."""
        parameters = {
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
        }
        return self._watch(kind, selection, parameters)

    def _watch(self, kind: Kind, selection: Selection, parameters: Mapping[str, str]) -> HttpWatch:
        watch_s = int(WATCH_S_MIN * (1.0 + self._entropy.uniform()))
        query: dict[str, str | int] = {"watch": "true", **parameters, "timeoutSeconds": watch_s}
        target = with_query(collection_path(kind, selection.namespace), selection, query)
        opening = self._requests.stream(target, about=kind.resource, s_max=watch_s + WATCH_GRACE_S)
        return HttpWatch(opening, kind.resource)

    async def read_page(self, target: str, s_max: float) -> bytes:
        """The body of a page that is no resource, such as /debug/queue."""
        async with self._requests.stream(target, about=target.partition("?")[0], s_max=s_max) as stream:
            return await stream.read_all()

    # ------------------------------------------------------------------------------------------------ writes

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        target = creation_path(kind, namespace)
        answer = await self._requests.send("POST", target, _encode(body), about=kind.resource, answers=(kind.kind,))
        return _object(answer) if is_answer_wanted else b""

    async def dry_run_create(self, kind: Kind, namespace: str, body: JsonObject) -> Document:
        """The object that `create` would store. Nothing is stored, so it is sent although nothing may be written."""
        target = f"{creation_path(kind, namespace)}{DRY_RUN}"
        answer = await self._requests.send("POST", target, _encode(body), about=kind.resource, answers=(kind.kind,))
        document: Document = msgspec.json.decode(_object(answer))
        return document

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        target = object_path(kind, namespace, name, subresource)
        answers = _kinds_of(kind, subresource)
        answer = await self._requests.send(
            "PUT", target, _encode(body), about=f"{kind.resource} {name}", answers=answers
        )
        return _object(answer)

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes:
        target = object_path(kind, namespace, name, subresource)
        if form is PatchForm.APPLY:
            # As controllers do: conflicts with other field managers are overwritten.
            target = f"{target}?fieldManager={FIELD_MANAGER}&force=true"
        answer = await self._requests.send(
            "PATCH",
            target,
            _encode(patch),
            about=f"{kind.resource} {name}",
            answers=_kinds_of(kind, subresource),
            content_type=form.value,
        )
        return _object(answer)

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None:
        body = _encode(_delete_options(deletion if deletion is not None else Deletion()))
        target = object_path(kind, namespace, name)
        await self._requests.send(
            "DELETE", target, body, about=f"{kind.resource} {name}", answers=("Status", kind.kind)
        )

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        metadata = {"name": name, "namespace": namespace}
        if uid:
            metadata["uid"] = uid
        binding = {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": metadata,
            "target": {"kind": "Node", "name": node_name},
        }
        await self._requests.send(
            "POST",
            binding_path(namespace, name),
            _encode(binding),
            about=f"pods {name}",
            answers=("Status", "Binding"),
            repeat=RetryPolicy.NEVER_AFTER_FAILURE,
        )

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        """Evict a pod. `TooManyRequestsError` if a disruption budget forbids it."""
        eviction = {
            "kind": "Eviction",
            "apiVersion": "policy/v1",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        await self._requests.send(
            "POST",
            object_path(POD, namespace, name, "eviction"),
            _encode(eviction),
            about=f"pods {name}",
            answers=("Status", "Eviction"),
            repeat=RetryPolicy.NEVER_AFTER_FAILURE,
        )

    async def request_token(self, namespace: str, name: str, request: JsonObject) -> bytes:
        target = object_path(SERVICE_ACCOUNT, namespace, name, "token")
        answer = await self._requests.send(
            "POST", target, _encode(request), about=f"serviceaccounts {name}", answers=("TokenRequest",)
        )
        return _object(answer)


def _object(answer: bytes) -> bytes:
    """An object without the whitespace around it."""
    # Go's JSON encoder ends its output with a line break.
    return answer.rstrip(b"\n")


def _kinds_of(kind: Kind, subresource: str) -> tuple[str, ...]:
    return ("Scale",) if subresource == "scale" else (kind.kind,)


def _delete_options(deletion: Deletion) -> dict[str, Any]:
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if deletion.grace_s is not None:
        options["gracePeriodSeconds"] = deletion.grace_s
    preconditions = {"uid": deletion.uid, "resourceVersion": deletion.revision}
    if given := {name: value for name, value in preconditions.items() if value}:
        options["preconditions"] = given
    if deletion.propagation is not None:
        options["propagationPolicy"] = deletion.propagation.value
    return options
