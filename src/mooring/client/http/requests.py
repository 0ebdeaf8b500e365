"""Requests to an API server: rate limit, retries, renewal of credentials, errors, metrics.

Input: a request. Output: the body of a successful answer; or a `ClientError`.

1. Every attempt takes a token from one bucket per client.
2. A 429 or 5xx with a Retry-After is repeated after that time, at most `TRIES_MAX` times, as in client-go.
3. Only reads are repeated after a broken connection. A write without an answer is a `NoAnswerError`: the server may
   have carried it out.
4. `RetryPolicy.NEVER_AFTER_FAILURE` is for requests that must not be carried out twice (a binding): there a 5xx is a
   `NoAnswerError` too, because the outcome is unknown.
5. A successful answer is the API's only if its body is an object of one of the kinds that the caller expects
   (`answers`). Anything else, such as the HTML page of a proxy, is an error: for a read a `ServerError`; for a write a
   `NoAnswerError`, because the server may have carried it out or may never have seen it.
6. A 401 renews the identity once, if possible.
7. Requests are counted and timed (`RequestStatistics`) as in client-go, for the same dashboards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import Enum, auto
from functools import partial

from mooring.client.errors import ClientError, NoAnswerError, ServerError
from mooring.client.http.connection import ANONYMOUS, Connection, Identity
from mooring.client.http.errors import error_of_answer, kind_in, retry_after_s, unexpected_answer
from mooring.client.http.transport import ConnectionLostError, HttpStream, HttpTransport
from mooring.client.ratelimit import TokenBucket
from mooring.kit.clock import Clock
from mooring.kit.histogram import HistogramValue

TRIES_MAX = 10
"""How often a request is repeated."""
LOST_CONNECTION_WAIT_S = 1.0
JSON = "application/json"
NO_ANSWER = "<error>"
"""The code of a request without an answer, in metrics."""
DURATION_BOUNDS_S = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


SIZE_BOUNDS_BYTES = (64, 256, 512, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216)


class RequestStatistics:
    """Request metrics, by method."""

    __slots__ = ("durations", "outcomes", "received", "sent", "turns")

    def __init__(self) -> None:
        self.outcomes: defaultdict[tuple[str, int | str], int] = defaultdict(int)
        """The number of requests, by method and code."""
        self.durations: defaultdict[str, HistogramValue] = defaultdict(partial(HistogramValue, DURATION_BOUNDS_S))
        """The time to an answer. Watches are not timed."""
        self.turns: defaultdict[str, HistogramValue] = defaultdict(partial(HistogramValue, DURATION_BOUNDS_S))
        """The time that a request waited for the rate limit."""
        self.sent: defaultdict[str, HistogramValue] = defaultdict(partial(HistogramValue, SIZE_BOUNDS_BYTES))
        """The sizes of the bodies of requests. Requests without an answer, and watches, are not counted."""
        self.received: defaultdict[str, HistogramValue] = defaultdict(partial(HistogramValue, SIZE_BOUNDS_BYTES))
        """The sizes of the bodies of answers."""

    def answered(self, method: str, code: int | str, took_s: float) -> None:
        self.outcomes[method, code] += 1
        self.durations[method].observe(took_s)

    def transferred(self, method: str, sent_bytes: int, received_bytes: int) -> None:
        self.sent[method].observe(sent_bytes)
        self.received[method].observe(received_bytes)


class RetryPolicy(Enum):
    """When a request may be repeated."""

    AFTER_LOSS = auto()
    """Also after a broken connection: the request only reads."""
    WHEN_REQUESTED = auto()
    """When the server requests it (`Retry-After`)."""
    NEVER_AFTER_FAILURE = auto()
    """Only when the server did not process the request (429)."""


class HttpRequests:
    """Sends requests of one client."""

    def __init__(
        self, connection: Connection, transport: HttpTransport, clock: Clock, bucket: TokenBucket | None
    ) -> None:
        self._credentials = connection.credentials
        self._is_private = connection.is_private
        self._transport = transport
        self._clock = clock
        self._bucket = bucket
        self.request_statistics = RequestStatistics()
        self._counts = dict.fromkeys(("requests", "failures", "refusals", "retries", "throttled", "renewals"), 0)

    def statistics(self) -> dict[str, int]:
        return dict(self._counts)

    async def send(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        *,
        about: str,
        answers: Sequence[str],
        repeat: RetryPolicy = RetryPolicy.WHEN_REQUESTED,
        content_type: str = JSON,
    ) -> bytes:
        """The body of a successful answer, an object of one of the kinds `answers`. `about` names the object in errors.
        Raises `ClientError`."""
        attempts: _Attempts | None = None  # nearly always the first attempt succeeds
        while True:
            identity = self._next_identity_nowait() or await self._next_identity(method)
            started_s = self._clock.now_s()
            try:
                answer = await self._transport.send(
                    method, target, identity, content_type if body is not None else "", body
                )
            except NoAnswerError as error:
                self.request_statistics.answered(method, NO_ANSWER, self._clock.now_s() - started_s)
                attempts = attempts or _Attempts(self, method, about, repeat)
                await attempts.after_loss(error)
                continue
            self.request_statistics.answered(method, answer.code, self._clock.now_s() - started_s)
            self.request_statistics.transferred(method, len(body) if body is not None else 0, len(answer.body))
            if answer.code < 300:
                if kind_in(answer.body) not in answers:
                    self.count("failures")
                    raise unexpected_answer(method, about, answers, answer.headers, answer.body)
                return answer.body
            attempts = attempts or _Attempts(self, method, about, repeat)
            await attempts.after_refusal(answer.code, answer.headers, answer.body, identity)

    @asynccontextmanager
    async def stream(self, target: str, *, about: str, s_max: float) -> AsyncIterator[HttpStream]:
        """An answer that is read as it arrives. Raises as `send`, before the first byte."""
        attempts = _Attempts(self, "GET", about, RetryPolicy.AFTER_LOSS)
        while True:
            identity = await self._next_identity("GET")
            try:
                opened = self._transport.stream(target, identity, s_max)
                stream = await opened.__aenter__()
            except NoAnswerError as error:
                self.request_statistics.outcomes["GET", NO_ANSWER] += 1
                await attempts.after_loss(error)
                continue
            self.request_statistics.outcomes["GET", stream.code] += 1
            try:
                if stream.code < 300:
                    yield stream
                    return
                headers, answer = stream.headers, await self._refusal_body(target, stream)
            finally:
                await opened.__aexit__(None, None, None)
            await attempts.after_refusal(stream.code, headers, answer, identity)

    async def _refusal_body(self, target: str, stream: HttpStream) -> bytes:
        try:
            return await stream.read_all()
        except OSError as error:
            raise self._transport.cut(target, error) from error

    # ------------------------------------------------------------------------------------------- taking turns

    def _next_identity_nowait(self) -> Identity | None:
        """The credentials of a request, without waiting; None if a wait is needed."""
        if self._bucket is not None or not self._is_private:
            return None
        identity = self._credentials.identity_nowait()
        if identity is not None:
            self._counts["requests"] += 1
        return identity

    async def _next_identity(self, method: str) -> Identity:
        """The identity of the next attempt, after waiting for the rate limit."""
        counts = self._counts
        counts["requests"] += 1
        if self._bucket is not None:
            delay_s = self._bucket.reserve_s()
            self.request_statistics.turns[method].observe(max(delay_s, 0.0))
            if delay_s > 0:
                counts["throttled"] += 1
                await self._clock.wait(delay_s)
        if not self._is_private:
            return ANONYMOUS
        return self._credentials.identity_nowait() or await self._credentials.wait_identity()

    def count(self, what: str) -> None:
        self._counts[what] += 1

    def renew(self, identity: Identity) -> bool:
        return self._is_private and self._credentials.reject(identity)

    async def wait(self, delay_s: float) -> None:
        await self._clock.wait(delay_s)


class _Attempts:
    """The attempts of one request, and whether it may be repeated."""

    def __init__(self, requests: HttpRequests, method: str, about: str, repeat: RetryPolicy) -> None:
        self._requests = requests
        self._method = method
        self._about = about
        self._repeat = repeat
        self._tries = 0
        self._is_renewed = False

    async def after_loss(self, error: NoAnswerError) -> None:
        """Wait until the next attempt, or raise."""
        self._requests.count("failures")
        is_safe = self._repeat is RetryPolicy.AFTER_LOSS and isinstance(error, ConnectionLostError)
        if not is_safe or self._tries >= TRIES_MAX:
            raise error
        # The first time at once: a server may close an idle connection at any time.
        await self._again_in(LOST_CONNECTION_WAIT_S if self._tries else 0.0)

    async def after_refusal(self, code: int, headers: Mapping[str, str], answer: bytes, identity: Identity) -> None:
        """Wait until the next attempt, or raise."""
        self._requests.count("refusals")
        if code == 401 and not self._is_renewed and self._requests.renew(identity):
            self._is_renewed = True
            self._requests.count("renewals")
            return
        delay_s = retry_after_s(headers)
        if delay_s is not None and self._tries < TRIES_MAX and self._may_repeat(code):
            await self._again_in(delay_s)
            return
        raise self._error(code, headers, answer)

    def _may_repeat(self, code: int) -> bool:
        return code == 429 or (code >= 500 and self._repeat is not RetryPolicy.NEVER_AFTER_FAILURE)

    def _error(self, code: int, headers: Mapping[str, str], answer: bytes) -> ClientError:
        error = error_of_answer(code, headers, answer, method=self._method, about=self._about)
        if isinstance(error, ServerError) and self._repeat is RetryPolicy.NEVER_AFTER_FAILURE:
            return NoAnswerError(f"the server failed, and the outcome is unknown: {error}")
        return error

    async def _again_in(self, delay_s: float) -> None:
        self._tries += 1
        self._requests.count("retries")
        await self._requests.wait(delay_s)
