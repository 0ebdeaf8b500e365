"""The HTTP client: the client promise kept over the network, for any Kubernetes API server.

Comes in   requests, as from any part of Mooring
Goes out   objects as the server has them; or a `ClientError`

    client.kubeconfig                   where the server is, and who we are
    connection, credentials             ... as a value, and as something that is renewed
    paths           addresses                    lists      listings
    requests        pacing and trying again      watch      watches
    transport       sockets                      errors     what can go wrong

 1. Nothing is bound twice: a binding is sent once more only after the server refused to look at it (429). If its
    outcome is not known the caller gets a `NoAnswerError` and looks the pod up.
 2. A listing without a limit is fetched in pages of `PAGE_SIZE`. If the pages become too old in between (410), what was
    fetched is forgotten and everything is asked for at once, as client-go does.
 3. A watch asks for an end after five to ten minutes, by chance, so that a thousand of them do not end together.
 4. Objects are passed on as the bytes that came.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import msgspec

from mooring.api.kinds import SERVICE_ACCOUNT, Kind
from mooring.client.errors import BadRequestError, ExpiredError, ServerError
from mooring.client.http.connection import Connection
from mooring.client.http.lists import listing_of
from mooring.client.http.paths import binding_path, collection_path, creation_path, object_path, with_query
from mooring.client.http.requests import Asked, HttpRequests, Repeat
from mooring.client.http.transport import HttpTransport
from mooring.client.http.watch import HttpWatch
from mooring.client.interface import EVERYTHING, Deletion, JsonObject, Listing, PatchForm, Selection
from mooring.client.ratelimit import TokenBucket
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy

PAGE_SIZE = 500
WATCH_S_MIN = 300.0
WATCH_GRACE_S = 30.0
"""How much later than asked for a server may end a watch before we do."""
FIELD_MANAGER = "mooring"

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """How hard a client may press a server. The numbers are those of kube-scheduler, but for the connections."""

    requests_per_s: float = 50.0
    """Zero or less: no limit."""
    burst: int = 100
    in_flight_max: int = 100
    """Requests that are under way together, each on its own connection; more wait for their turn. Watches are not
    counted."""
    request_s_max: float = 65.0
    """A server gives up after 60 s; a little later so do we."""


class HttpClient:
    """Keeps the client promise over HTTP. A context manager: leaving it closes the connections."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        entropy: Entropy,
        *,
        limits: HttpLimits | None = None,
        component: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
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
            environment=os.environ if environment is None else environment,
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
    def asked(self) -> Asked:
        """What was asked of the server, and how long it took."""
        return self._requests.asked

    # ------------------------------------------------------------------------------------------------ reading

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        target = object_path(kind, namespace, name)
        return _object(
            await self._requests.ask("GET", target, about=f"{kind.resource} {name}", repeat=Repeat.AFTER_LOSS)
        )

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        """As kube-apiserver: `revision` alone means "not older than", together with a limit exactly that one."""
        if not limit and not continue_token:
            return await self._list_everything(kind, selection, revision)
        # A token says of which moment it is; a server refuses to be told twice.
        since = "" if continue_token else revision
        asked: dict[str, str | int] = {"limit": limit, "continue": continue_token, "resourceVersion": since}
        return await self._page(kind, selection, asked)

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
        answer = await self._requests.ask("GET", target, about=kind.resource, repeat=Repeat.AFTER_LOSS)
        return listing_of(kind, answer)

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> HttpWatch:
        # A server would take none for "now" and answers to a made-up one as if it were ill itself.
        if not (since.isascii() and since.isdecimal() and int(since)):
            raise BadRequestError(f"a watch starts from a revision that a listing or an event told, not from {since!r}")
        return self._watch(kind, selection, {"resourceVersion": since, "allowWatchBookmarks": _true(bookmarks)})

    def watch_all(self, kind: Kind, selection: Selection = EVERYTHING) -> HttpWatch:
        """First everything as ADDED, then a bookmark that says so, then the changes. Not every server can do it."""
        parameters = {
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
        }
        return self._watch(kind, selection, parameters)

    def _watch(self, kind: Kind, selection: Selection, parameters: Mapping[str, str]) -> HttpWatch:
        watch_s = int(WATCH_S_MIN * (1.0 + self._entropy.uniform()))
        asked: dict[str, str | int] = {"watch": "true", **parameters, "timeoutSeconds": watch_s}
        target = with_query(collection_path(kind, selection.namespace), selection, asked)
        opening = self._requests.stream(target, about=kind.resource, s_max=watch_s + WATCH_GRACE_S)
        return HttpWatch(opening, kind.resource)

    # ------------------------------------------------------------------------------------------------ writing

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        target = creation_path(kind, namespace)
        answer = await self._requests.ask("POST", target, _encode(body), about=kind.resource)
        return _object(answer) if is_answer_wanted else b""

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        target = object_path(kind, namespace, name, subresource)
        return _object(await self._requests.ask("PUT", target, _encode(body), about=f"{kind.resource} {name}"))

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes:
        target = object_path(kind, namespace, name, subresource)
        if form is PatchForm.APPLY:
            # We are a controller: what we apply is ours, whoever wrote it before.
            target = f"{target}?fieldManager={FIELD_MANAGER}&force=true"
        answer = await self._requests.ask(
            "PATCH", target, _encode(patch), about=f"{kind.resource} {name}", content_type=form.value
        )
        return _object(answer)

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None:
        body = _encode(_delete_options(deletion if deletion is not None else Deletion()))
        target = object_path(kind, namespace, name)
        await self._requests.ask("DELETE", target, body, about=f"{kind.resource} {name}")

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
        await self._requests.ask(
            "POST",
            binding_path(namespace, name),
            _encode(binding),
            about=f"pods {name}",
            repeat=Repeat.NEVER_AFTER_FAILURE,
        )

    async def request_token(self, namespace: str, name: str, request: JsonObject) -> bytes:
        target = object_path(SERVICE_ACCOUNT, namespace, name, "token")
        return _object(await self._requests.ask("POST", target, _encode(request), about=f"serviceaccounts {name}"))


def _object(answer: bytes) -> bytes:
    """The body of an answer, which must at least look like an object: something in between may answer with a page."""
    if not answer.startswith(b"{"):
        raise ServerError(f"the server answered with something else than an object: {answer[:80]!r}")
    # Go ends what it writes with a line break.
    return answer.rstrip(b"\n")


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


def _true(is_wanted: bool) -> str:
    return "true" if is_wanted else ""
