"""The client interface: all requests to an API server that components make.

Inputs: requests about kinds (rows of `mooring.api.kinds`). Outputs: objects as JSON bytes, which callers decode into
the views that they need; or a `ClientError`.

Two clients implement it: the loopback client of the API server's process, and one over HTTP, to any address or to a
Unix socket. The contract suite in `tests/client` holds for both.

1. Objects come as the stored bytes, with their resourceVersion. A reader decodes the fields that it uses. A writer
   sends a whole object or a patch, never a view: a view has lost its unknown fields.
2. A resourceVersion is opaque text, except that a watch may start from it.
3. A watch delivers every change of its selection after its start, in order, once. If it cannot, it raises
   `ExpiredError`, and the reader lists again.
4. A change that moves an object into the selection is ADDED, one that moves it out is DELETED.

Token requests of service accounts are an interface of their own (`TokenRequests`): only kubelets make them. So are dry
runs (`DryRuns`), which only the console makes, and batch writes (`mooring.client.batch_writes`).

`UnavailableClient` serves scheduling engines that only decide. Decisions need no requests; a plugin that writes makes
one, which fails with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import NoReturn, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.api.views.meta import View
from mooring.client.errors import BadRequestError, NoAnswerError

JsonObject: TypeAlias = Mapping[str, object]
AnyView = TypeVar("AnyView", bound=View)


@dataclass(frozen=True, slots=True)
class Selection:
    """Objects of a kind: of one namespace or all, by label selector and field selector."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""


EVERYTHING = Selection()


class PatchForm(Enum):
    """The type of a patch; the value is its content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Propagation(Enum):
    """The deletion propagation policy."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True)
class Deletion:
    """Delete options. `uid` and `revision` are preconditions, if they are given."""

    grace_s: int | None = None
    uid: str = ""
    revision: str = ""
    propagation: Propagation | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects at one revision. `continue_token` is empty on the last page."""

    items: Sequence[bytes]
    revision: str
    continue_token: str = ""
    remaining: int | None = None


class Change(Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """No change up to `revision`: a new watch may start there."""


class WatchEvent(Protocol):
    """One change. A deleted object has its last state, with the resourceVersion of the deletion."""

    @property
    def change(self) -> Change: ...

    @property
    def raw(self) -> bytes: ...

    @property
    def revision(self) -> str: ...

    def view(self, kind: type[AnyView]) -> AnyView:
        """The object as a view. Readers of one change may share it."""
        ...


class Watch(Protocol):
    """A stream of changes, inside of an `async with`."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def next_batch(self) -> Sequence[WatchEvent]:
        """All pending changes, at least one; none when the server has ended the watch. Raises `ClientError`."""
        ...


class Client(Protocol):
    """A client of the Kubernetes API."""

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes: ...

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing: ...

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> Watch:
        """The changes after the revision `since` of a listing or an event."""
        ...

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        """Returns the stored object; empty if `is_answer_wanted` is False."""
        ...

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        """Replace an object, if it has the resourceVersion in `body` (or if `body` has none)."""
        ...

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes: ...

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None: ...

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Bind a pod to a node. `ConflictError` if the pod is bound, or has another uid."""
        ...


@runtime_checkable
class TokenRequests(Protocol):
    """A client that supports token requests."""

    async def request_token(self, namespace: str, name: str, request: JsonObject) -> bytes: ...


async def request_token(client: Client, namespace: str, name: str, request: JsonObject) -> bytes:
    """Request a token for a service account. Raises `ClientError`."""
    if not isinstance(client, TokenRequests):
        raise BadRequestError(f"tokens for {namespace}/{name} are given by API servers, not by {type(client).__name__}")
    return await client.request_token(namespace, name, request)


@runtime_checkable
class DryRuns(Protocol):
    """A client that supports dry runs."""

    async def dry_run_create(self, kind: Kind, namespace: str, body: JsonObject) -> Document: ...


async def dry_run_create(client: Client, kind: Kind, namespace: str, body: JsonObject) -> Document:
    """The object that `create` would store. Nothing is stored. Raises `ClientError`."""
    if not isinstance(client, DryRuns):
        raise BadRequestError(f"{type(client).__name__} makes no dry runs")
    return await client.dry_run_create(kind, namespace, body)


class UnavailableClient:
    """Implements `Client` by rejecting every request."""

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        _reject(f"get {kind.plural} {namespace}/{name}")

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        _reject(f"list {kind.plural}")

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> Watch:
        _reject(f"watch {kind.plural}")

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        _reject(f"create {kind.plural} in {namespace}")

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        _reject(f"update {kind.plural} {namespace}/{name}")

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes:
        _reject(f"patch {kind.plural} {namespace}/{name}")

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None:
        _reject(f"delete {kind.plural} {namespace}/{name}")

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        _reject(f"bind {namespace}/{name} to {node_name}")


def _reject(what: str) -> NoReturn:
    raise NoAnswerError(f"cannot {what}: there is no API server here")
