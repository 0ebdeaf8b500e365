"""The client promise: everything that any part of Mooring may ask of an API server.

Comes in   requests about kinds of objects (rows of `mooring.api.kinds`)
Goes out   objects as JSON bytes, which callers decode into the views that they need; or a `ClientError`

Three clients implement it: the loopback client of the API server's process, one over HTTP, and one over a pipe to
another process of the same cluster. The contract suite in `tests/client` holds for all.

 1. Objects come as the bytes that are stored, with their resourceVersion. Whoever reads decodes what he uses; whoever
    writes sends a whole object or a patch, never a view: a view has lost what it does not know.
 2. A resourceVersion is text without meaning, except that a watch may start from one.
 3. A watch tells every change of its selection after its start, in order, once. If it cannot, it says so
    (`ExpiredError`), and its reader lists again.
 4. An object that a change moves into the selection is told as ADDED, one that it moves out as DELETED.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Protocol, Self, TypeAlias, TypeVar

from mooring.api.kinds import Kind
from mooring.api.views.base import View

JsonObject: TypeAlias = Mapping[str, object]
AnyView = TypeVar("AnyView", bound=View)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind: of one namespace or all, by labels, by fields (both as Kubernetes writes them)."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""


EVERYTHING = Selection()


class PatchForm(Enum):
    """How a patch is written; the value is its content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Propagation(Enum):
    """What becomes of the objects that a deleted object owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True)
class Deletion:
    """How an object is to be deleted. Only the very object with `uid`, at `revision`, if they are given."""

    grace_s: int | None = None
    uid: str = ""
    revision: str = ""
    propagation: Propagation | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects as they were at one moment; `continue_token` is empty on the last page."""

    items: Sequence[bytes]
    revision: str
    continue_token: str = ""
    remaining: int | None = None


class Change(Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """Nothing happened up to `revision`: where a new watch may start."""


class WatchEvent(Protocol):
    """One change. A deleted object comes as it was last, with the resourceVersion of its deletion."""

    @property
    def change(self) -> Change: ...

    @property
    def raw(self) -> bytes: ...

    @property
    def revision(self) -> str: ...

    def view(self, kind: type[AnyView]) -> AnyView:
        """The object as a view; several readers of one change may share it."""
        ...


class Watch(Protocol):
    """A stream of changes, open inside of an `async with`."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def next_batch(self) -> Sequence[WatchEvent]:
        """All changes that are there, at least one; none when the server has ended the watch. Raises `ClientError`."""
        ...


class Client(Protocol):
    """The way to the API."""

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
        """The changes after the revision `since`, which a listing or an earlier event told."""
        ...

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        """Returns the object as it is now; nothing, if nobody wants to read it."""
        ...

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        """Replaces an object, if it still has the resourceVersion that `body` carries (or if it carries none)."""
        ...

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes: ...

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None: ...

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Gives a pod its node. A pod that has one already, or is another one than `uid`, is a `ConflictError`."""
        ...
