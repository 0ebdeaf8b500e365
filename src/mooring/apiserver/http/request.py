"""An incoming request: what came over the network, read as far as everybody needs it.

1. A body is read when somebody asks for it, whole, and never beyond the limit.
2. Whoever writes without naming a field manager is called by the first part of his user agent.
"""

from __future__ import annotations

from functools import lru_cache

from aiohttp import web

from mooring.apiserver.http.address import Address
from mooring.apiserver.http.limits import DoorLimits
from mooring.apiserver.http.query import Query
from mooring.client.errors import StatusError

MANAGER_BYTES_MAX = 128
MANAGERS_KEPT_MAX = 256


class Incoming:
    """One request."""

    __slots__ = ("_limits", "_request", "address", "query")

    def __init__(self, request: web.BaseRequest, limits: DoorLimits) -> None:
        self._request = request
        self._limits = limits
        self.query = Query(request.query)
        self.address: Address | None = None
        """What it is about; None until somebody has read that."""

    @property
    def method(self) -> str:
        return self._request.method

    @property
    def path(self) -> str:
        return self._request.rel_url.raw_path

    @property
    def is_dry_run(self) -> bool:
        return bool(self.query.text("dryRun"))

    def header(self, name: str) -> str:
        return self._request.headers.get(name, "")

    @property
    def content_type(self) -> str:
        """The type of the body without its parameters; empty if none is given."""
        return self._request.headers.get("Content-Type", "").partition(";")[0].strip()

    @property
    def manager(self) -> str:
        """Who writes, as far as the user agent tells."""
        return _manager(self._request.headers.get("User-Agent", ""))

    def check_headers(self) -> None:
        """Raises a `StatusError` of 431 if the headers are too long together."""
        headers = self._request.raw_headers
        if sum([len(name) + len(value) for name, value in headers]) > self._limits.header_bytes_max:
            raise StatusError(
                f"Request headers too large: limit is {self._limits.header_bytes_max}",
                code=431,
                reason="RequestHeaderFieldsTooLarge",
            )

    async def body(self) -> bytes:
        """The whole body. Raises a `StatusError` of 413 if it is too long."""
        limit = self._limits.body_bytes_max
        if (self._request.content_length or 0) > limit:
            raise _too_large(limit)
        try:
            return await self._request.read()
        except web.HTTPRequestEntityTooLarge:
            raise _too_large(limit) from None


@lru_cache(maxsize=MANAGERS_KEPT_MAX)
def _manager(agent: str) -> str:
    printable = "".join(character for character in agent.partition("/")[0] if character.isprintable())
    return printable.encode()[:MANAGER_BYTES_MAX].decode(errors="ignore")


def _too_large(limit: int) -> StatusError:
    return StatusError(f"Request entity too large: limit is {limit}", code=413, reason="RequestEntityTooLarge")
