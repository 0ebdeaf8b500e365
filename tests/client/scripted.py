"""A client with scripted responses, for tests of code that uses the client interface.

    client = ScriptedClient()
    client.lists = [pages_of([pod("a", 1)], revision="1")]
    client.watches = [stream(added("b", 2), NoAnswerError("cut")), stream(modified("b", 3))]

Each `list` returns the next listing and each `watch` the next stream; `requests` has the requests. After its last step
a stream stays open, unless it ends with an error or with `END`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self, TypeAlias

from mooring.api.decode import decode_as
from mooring.api.kinds import Kind
from mooring.client.errors import ClientError
from mooring.client.interface import EVERYTHING, AnyView, Change, Deletion, JsonObject, Listing, PatchForm, Selection
from mooring.kit.clock import Clock


@dataclass(frozen=True, slots=True)
class ScriptedEvent:
    change: Change
    raw: bytes
    revision: str

    def view(self, kind: type[AnyView]) -> AnyView:
        return decode_as(kind, self.raw)


@dataclass(frozen=True, slots=True)
class After:
    """A delay."""

    delay_s: float


END: Final = "the server ends the watch"

Step: TypeAlias = "ScriptedEvent | list[ScriptedEvent] | ClientError | After | str"


def pod_bytes(name: str, revision: int, *, uid: str = "", labels: str = "{}", node: str = "") -> bytes:
    uid = uid or f"uid-{name}"
    return (
        f'{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"default","uid":"{uid}",'
        f'"resourceVersion":"{revision}","labels":{labels}}},"spec":{{"nodeName":"{node}"}}}}'
    ).encode()


def added(name: str, revision: int, *, uid: str = "") -> ScriptedEvent:
    return ScriptedEvent(Change.ADDED, pod_bytes(name, revision, uid=uid), str(revision))


def modified(name: str, revision: int, *, uid: str = "") -> ScriptedEvent:
    return ScriptedEvent(Change.MODIFIED, pod_bytes(name, revision, uid=uid), str(revision))


def deleted(name: str, revision: int) -> ScriptedEvent:
    return ScriptedEvent(Change.DELETED, pod_bytes(name, revision), str(revision))


def bookmark(revision: int) -> ScriptedEvent:
    return ScriptedEvent(Change.BOOKMARK, b"{}", str(revision))


def listing(revision: int, *names: str, token: str = "") -> Listing:
    return Listing([pod_bytes(name, revision) for name in names], str(revision), token)


@dataclass
class ScriptedClient:
    """Implements the methods that a reflector or an event writer needs."""

    clock: Clock
    lists: list[Listing | ClientError] = field(default_factory=list)
    watches: list[Sequence[Step]] = field(default_factory=list)
    writes: list[ClientError | None] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    requested_at_s: list[float] = field(default_factory=list)
    written: list[tuple[str, object]] = field(default_factory=list)

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        self._note(f"list {limit} {continue_token}".strip())
        answer = self.lists.pop(0)
        if isinstance(answer, ClientError):
            raise answer
        return answer

    def watch(
        self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True
    ) -> ScriptedWatch:
        self._note(f"watch {since}")
        return ScriptedWatch(self.clock, list(self.watches.pop(0)) if self.watches else [])

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        return self._write(f"create {kind.plural} {namespace}", body)

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes:
        return self._write(f"patch {kind.plural} {namespace}/{name}", patch)

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        raise NotImplementedError

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        raise NotImplementedError

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None:
        raise NotImplementedError

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        raise NotImplementedError

    def _write(self, what: str, body: object) -> bytes:
        self._note(what)
        self.written.append((what, body))
        error = self.writes.pop(0) if self.writes else None
        if error is not None:
            raise error
        return b"{}"

    def _note(self, what: str) -> None:
        self.requests.append(what)
        self.requested_at_s.append(self.clock.now_s())


class ScriptedWatch:
    def __init__(self, clock: Clock, steps: list[Step]) -> None:
        self._clock = clock
        self._steps = steps

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def next_batch(self) -> Sequence[ScriptedEvent]:
        while self._steps:
            match self._steps.pop(0):
                case ScriptedEvent() as event:
                    return [event]
                case list() as events:
                    return events
                case After(delay_s):
                    await self._clock.wait(delay_s)
                case ClientError() as error:
                    raise error
                case _:
                    return []
        await asyncio.Event().wait()
        return []
