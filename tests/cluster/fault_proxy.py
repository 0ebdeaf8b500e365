"""A proxy between a component and an API server, with faults on demand.

    async with FaultProxy(server.url, TOKEN) as proxy:
        proxy.delay_s = 0.2              # every answer comes late
        proxy.spoil = Spoil.RESET        # every third request loses its connection, after it was carried out
        proxy.is_cut_off = True          # nothing goes through any more, without an error
        proxy.kept_back = {"PATCH /…"}   # these requests are not carried out, and never answered

Input: plain HTTP from a component, without authentication. Output: HTTPS to the API server, with the administrator's
token.
"""

from __future__ import annotations

import asyncio
import ssl
from enum import Enum, auto
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp import web
from yarl import URL

from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy


class Spoil(Enum):
    NOTHING = auto()
    RESET = auto()
    """Carried out, and the connection breaks before the answer."""
    RESET_BEFORE = auto()
    """Not carried out."""
    TOO_MANY = auto()
    """429, in a second."""
    FAILURE = auto()
    """500, and not carried out."""
    PAGE = auto()
    """200 with an HTML page, and not carried out."""


class FaultProxy:
    """Listens on loopback inside of an `async with`."""

    def __init__(self, target: str, token: str) -> None:
        self._target = target
        self._token = token
        self._clock = SystemClock()
        self._die = Entropy(1)
        self._never = asyncio.Event()
        self.delay_s = 0.0
        self.spoil = Spoil.NOTHING
        self.share = 1 / 3
        """How many of the requests that are no watches are spoilt, after the first. By chance: in a fixed order, a
        binding that is tried again after two other requests would be spoilt for ever."""
        self.is_cut_off = False
        self.kept_back: frozenset[str] = frozenset()
        """Method and path."""
        self.has_kept_back: set[str] = set()
        self.spoilt = 0
        self.writes: list[str] = []
        """Method and path of each request that is not a read, in the order in which they came."""
        self.url = ""

    async def __aenter__(self) -> Self:
        unverified = ssl.create_default_context()
        unverified.check_hostname = False
        unverified.verify_mode = ssl.CERT_NONE
        connector = aiohttp.TCPConnector(ssl=unverified, limit=0)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        self._runner = web.ServerRunner(web.Server(self._serve, access_log=None), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._never.set()
        await self._session.close()
        await self._runner.cleanup()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.is_cut_off:
            await self._never.wait()
        asked = f"{request.method} {request.path}"
        if request.method != "GET":
            self.writes.append(asked)
        if asked in self.kept_back:
            self.has_kept_back.add(asked)
            await self._never.wait()
            return _reset(request)
        is_watch = request.query.get("watch") == "true"
        spoil = self._next_spoil() if not is_watch else Spoil.NOTHING
        await self._clock.wait(self.delay_s)
        match spoil:
            case Spoil.TOO_MANY:
                return web.Response(status=429, headers={"Retry-After": "1"}, text="later")
            case Spoil.FAILURE:
                return web.Response(status=500, text="broken")
            case Spoil.PAGE:
                return web.Response(text="<html>Please log in.</html>", content_type="text/html")
            case Spoil.RESET_BEFORE:
                return _reset(request)
        try:
            return await self._forward(request, is_reset=spoil is Spoil.RESET)
        except (aiohttp.ClientError, ConnectionError):
            return _reset(request)  # either side went away

    def _next_spoil(self) -> Spoil:
        if self.spoil is Spoil.NOTHING or (self.spoilt and self._die.uniform() > self.share):
            return Spoil.NOTHING
        self.spoilt += 1
        return self.spoil

    async def _forward(self, request: web.BaseRequest, *, is_reset: bool) -> web.StreamResponse:
        headers = {"Authorization": f"Bearer {self._token}", "Accept-Encoding": "identity"}
        for name in ("Content-Type", "Accept", "User-Agent"):
            if name in request.headers:
                headers[name] = request.headers[name]
        url = URL(self._target + request.raw_path, encoded=True)
        async with self._session.request(request.method, url, data=await request.read(), headers=headers) as answer:
            if is_reset:
                await answer.read()
                return _reset(request)
            response = web.StreamResponse(status=answer.status)
            for name in ("Content-Type", "Retry-After"):
                if name in answer.headers:
                    response.headers[name] = answer.headers[name]
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                if self.is_cut_off:
                    await self._never.wait()
                await response.write(chunk)
            await response.write_eof()
            return response


def _reset(request: web.BaseRequest) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
