"""An incoming request, and the limits of requests.

1. A body is read on demand, completely, and never beyond the limit.
2. Without a field manager, the first part of the user agent is the manager.
3. Each limit has a name, a default, and a defined response when it is reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from mooring.apiserver.http.address import Address
from mooring.apiserver.http.query import Query
from mooring.client.errors import StatusError
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
    """How long a watch lasts at least if its client does not say; at most twice that. It just ends."""
    stalled_s_max: float = 60.0
    """How long a client of a watch or a followed log may read nothing before it is disconnected."""
    gzip_bytes_min: int = 128 * 1024
    """Answers from this size on are compressed for clients who can read that."""
    retry_after_s: int = 1


MANAGER_BYTES_MAX = 128
MANAGERS_CACHED_MAX = 256


class Incoming:
    """One request."""

    __slots__ = ("_limits", "_request", "address", "query")

    def __init__(self, request: Request, limits: RequestLimits) -> None:
        self._request = request
        self._limits = limits
        self.query = Query(request.query)
        self.address: Address | None = None
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
        """Raises a `StatusError` of 431 if the headers are too long together."""
        if self._request.header_bytes > self._limits.header_bytes_max:
            raise StatusError(
                f"Request headers too large: limit is {self._limits.header_bytes_max}",
                code=431,
                reason="RequestHeaderFieldsTooLarge",
            )

    async def body(self) -> bytes:
        """The whole body. Raises a `StatusError` of 413 if it is too long."""
        limit = self._limits.body_bytes_max
        try:
            return await self._request.read(limit)
        except BodyTooLargeError:
            raise StatusError(
                f"Request entity too large: limit is {limit}", code=413, reason="RequestEntityTooLarge"
            ) from None


@lru_cache(maxsize=MANAGERS_CACHED_MAX)
def _manager(agent: str) -> str:
    printable = "".join(character for character in agent.partition("/")[0] if character.isprintable())
    return printable.encode()[:MANAGER_BYTES_MAX].decode(errors="ignore")
