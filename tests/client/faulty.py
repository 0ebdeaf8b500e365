"""A client that fails on purpose: late, lost or rejected requests, according to a plan.

    client = FaultyClient(inner, clock, Script(
        Fault("bind", Outcome.ANSWER_LOST),                                     # carried out, but the response is lost
        Fault("patch", Outcome.CONFLICT, kind=POD, times=2),
        Fault("get", Outcome.DONE, delay_s=5.0, where=lambda request: request.name == "web"),
    ))

Input: requests, and a plan: a function from a request to its fault. Output: the response of the inner client, or an
error; a record of requests and faults.

 1. The plan is called once for each request, in order: the same requests get the same faults.
 2. REQUEST_LOST and CONFLICT are never carried out, ANSWER_LOST always is; the caller cannot distinguish lost requests
    from lost responses.
 3. A watch is two kinds of requests: `watch` when it is opened, and `next_batch` for each batch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType
from typing import NamedTuple, Self, TypeAlias, TypeVar

from mooring.api.kinds import POD, Kind
from mooring.client.errors import (
    ClientError,
    ConflictError,
    ExpiredError,
    NoAnswerError,
    NotLeadingError,
    ServerError,
)
from mooring.client.interface import (
    EVERYTHING,
    Client,
    Deletion,
    JsonObject,
    Listing,
    PatchForm,
    Selection,
    Watch,
    WatchEvent,
)
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy

Answer = TypeVar("Answer")


class Outcome(Enum):
    """The outcome of a request."""

    DONE = auto()
    """Carried out and answered, possibly with a delay."""
    REQUEST_LOST = auto()
    """Not carried out, and no answer."""
    ANSWER_LOST = auto()
    """Carried out, and no answer."""
    CONFLICT = auto()
    """Rejected with a conflict."""
    BROKEN = auto()
    """Rejected with an internal server error."""
    EXPIRED = auto()
    """Rejected because the revision expired: for watches."""
    NOT_LEADING = auto()
    """Not sent, because the process is no longer the leader."""
    ENDED = auto()
    """The server ends a watch with a complete response: for `next_batch`."""


class Request(NamedTuple):
    """One request. `number` counts all requests of the client from 0; `subject` is a body, a patch or a node's name."""

    number: int
    verb: str
    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    subject: object = None


@dataclass(frozen=True)
class Fault:
    """A fault of matching requests of a verb; `*` is every verb."""

    verb: str
    outcome: Outcome = Outcome.DONE
    kind: Kind | None = None
    where: Callable[[Request], bool] = lambda request: True
    delay_s: float = 0.0
    """Delay before the request is carried out."""
    answer_delay_s: float = 0.0
    """Delay between execution and response."""
    after: int = 0
    """Number of matching requests that succeed before the first fault."""
    times: int | None = 1
    """Number of requests with the fault; None is all."""

    def is_about(self, request: Request) -> bool:
        return self.verb in ("*", request.verb) and self.kind in (None, request.kind) and self.where(request)


Plan: TypeAlias = Callable[[Request], Fault | None]


class Script:
    """A plan of given faults: each counts its matching requests, and the first one that is due applies."""

    def __init__(self, *faults: Fault) -> None:
        self._faults = faults
        self._seen = [0] * len(faults)

    def __call__(self, request: Request) -> Fault | None:
        met = None
        for index, fault in enumerate(self._faults):
            if not fault.is_about(request):
                continue
            self._seen[index] += 1
            turn = self._seen[index] - fault.after
            if met is None and turn > 0 and (fault.times is None or turn <= fault.times):
                met = fault
        return met


class Storm:
    """A random plan: each verb has a probability of faults, until `requests_max` requests."""

    def __init__(
        self,
        entropy: Entropy,
        likelihoods: Mapping[str, float],
        outcomes: Sequence[Outcome],
        *,
        delay_s_max: float = 0.0,
        requests_max: int = 1_000_000,
    ) -> None:
        self._entropy = entropy
        self._likelihoods = likelihoods
        self._outcomes = outcomes
        self._delay_s_max = delay_s_max
        self._requests_max = requests_max

    def __call__(self, request: Request) -> Fault | None:
        likelihood = self._likelihoods.get(request.verb, self._likelihoods.get("*", 0.0))
        if request.number >= self._requests_max or self._entropy.uniform() >= likelihood:
            return None
        delay_s, answer_delay_s = (self._entropy.uniform(0.0, self._delay_s_max) for _ in range(2))
        outcome = self._entropy.choose(self._outcomes)
        return Fault(request.verb, outcome, delay_s=delay_s, answer_delay_s=answer_delay_s)


@dataclass
class FaultyClient:
    """Implements the client interface, with the faults of the plan."""

    inner: Client
    clock: Clock
    plan: Plan
    requests: list[Request] = field(default_factory=list)
    faults: list[tuple[Request, Fault]] = field(default_factory=list)

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        request = self._request("get", kind, namespace, name)
        return await self._answer(request, lambda: self.inner.get(kind, namespace, name))

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        request = self._request("list", kind, selection.namespace, subject=selection)
        return await self._answer(
            request,
            lambda: self.inner.list(kind, selection, limit=limit, continue_token=continue_token, revision=revision),
        )

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> Watch:
        return FaultyWatch(self, kind, selection, self.inner.watch(kind, selection, since=since, bookmarks=bookmarks))

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        metadata = body.get("metadata")
        name = str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""
        request = self._request("create", kind, namespace, name, subject=body)
        return await self._answer(
            request, lambda: self.inner.create(kind, namespace, body, is_answer_wanted=is_answer_wanted)
        )

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        request = self._request("update", kind, namespace, name, subresource, body)
        return await self._answer(
            request, lambda: self.inner.update(kind, namespace, name, body, subresource=subresource)
        )

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes:
        request = self._request("patch", kind, namespace, name, subresource, patch)
        return await self._answer(
            request, lambda: self.inner.patch(kind, namespace, name, patch, form=form, subresource=subresource)
        )

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None:
        request = self._request("delete", kind, namespace, name, subject=deletion)
        await self._answer(request, lambda: self.inner.delete(kind, namespace, name, deletion))

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        request = self._request("bind", POD, namespace, name, subject=node_name)
        await self._answer(request, lambda: self.inner.bind(namespace, name, uid, node_name))

    # --------------------------------------------------------------------------------------------- faults

    def _request(
        self,
        verb: str,
        kind: Kind,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
        subject: object = None,
    ) -> Request:
        request = Request(len(self.requests), verb, kind, namespace, name, subresource, subject)
        self.requests.append(request)
        return request

    async def _answer(self, request: Request, carry_out: Callable[[], Awaitable[Answer]]) -> Answer:
        fault = self.plan(request)
        return await (carry_out() if fault is None else self._meet(fault, request, carry_out))

    async def _meet(self, fault: Fault, request: Request, carry_out: Callable[[], Awaitable[Answer]]) -> Answer:
        self.faults.append((request, fault))
        await self._delay(fault.delay_s)
        refusal = _refusal(fault.outcome, request)
        if refusal is not None and fault.outcome is not Outcome.ANSWER_LOST:
            await self._delay(fault.answer_delay_s)
            raise refusal
        try:
            answer = await carry_out()
        except ClientError as error:  # an error response may be delayed or lost, too
            await self._delay(fault.answer_delay_s)
            raise refusal or error from None
        await self._delay(fault.answer_delay_s)
        if refusal is not None:
            raise refusal
        return answer

    async def _delay(self, delay_s: float) -> None:
        if delay_s > 0:
            await self.clock.wait(delay_s)


class FaultyWatch:
    """A watch of a `FaultyClient`."""

    def __init__(self, client: FaultyClient, kind: Kind, selection: Selection, inner: Watch) -> None:
        self._client = client
        self._kind = kind
        self._selection = selection
        self._inner = inner
        self._is_open = False

    async def __aenter__(self) -> Self:
        request = self._request("watch")
        await self._client._answer(request, self._inner.__aenter__)
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_open:
            await self._inner.__aexit__(kind, error, trace)

    async def next_batch(self) -> Sequence[WatchEvent]:
        try:
            return await self._client._answer(self._request("next_batch"), self._inner.next_batch)
        except _WatchEnded:
            return ()

    def _request(self, verb: str) -> Request:
        return self._client._request(verb, self._kind, self._selection.namespace, subject=self._selection)


class _WatchEnded(Exception):
    """Not an error: the end of a watch, inside of this file."""


def _refusal(outcome: Outcome, request: Request) -> ClientError | _WatchEnded | None:
    what = f"{request.verb} {request.kind.plural}/{request.name} (request {request.number})"
    match outcome:
        case Outcome.DONE:
            return None
        case Outcome.REQUEST_LOST | Outcome.ANSWER_LOST:
            return NoAnswerError(f"no answer to {what}")
        case Outcome.CONFLICT:
            return ConflictError(f'Operation cannot be fulfilled on {request.kind.resource} "{request.name}": planned')
        case Outcome.BROKEN:
            return ServerError(f"Internal error occurred: planned for {what}")
        case Outcome.NOT_LEADING:
            return NotLeadingError(f"this process does not lead any more: {what}")
        case Outcome.EXPIRED:
            return ExpiredError(f"too old resource version: planned for {what}")
        case Outcome.ENDED:
            return _WatchEnded()


class LosesFirstBinding:
    """A client that accepts the first binding and does not send it."""

    def __init__(self, inner: Client) -> None:
        self._inner = inner
        self._is_first = True

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        if not self._is_first:
            await self._inner.bind(namespace, name, uid, node_name)
        self._is_first = False
