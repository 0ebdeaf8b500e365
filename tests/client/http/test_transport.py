"""One request out, one answer back: headers, connections that are kept, proxies."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest

from mooring.api.kinds import CONFIG_MAP, POD
from mooring.client.errors import NotFoundError
from mooring.client.http.client import HttpClient
from mooring.client.http.transport import user_agent
from mooring.kit.entropy import Entropy
from tests.client.contract_play import NS, create_all
from tests.client.http.play import Scene, play_over_http
from tests.client.objects import config_map


def test_who_we_are_called() -> None:
    assert re.fullmatch(r"mooring/[\d.]+ \(\w+/\w+\) scheduler", user_agent("scheduler"))
    assert user_agent().endswith(")")


def test_what_every_request_says() -> None:
    async def scenario(scene: Scene) -> None:
        impersonation = [("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")]
        connection = replace(scene.client.connection, impersonation=impersonation)
        async with HttpClient(connection, scene.clock, Entropy(1), component="scheduler", environment={}) as client:
            await client.create(CONFIG_MAP, NS, config_map())
        headers = scene.server.headers
        assert headers["User-Agent"] == user_agent("scheduler")
        assert (headers["Accept"], headers["Content-Type"]) == ("application/json", "application/json")
        assert "Accept-Encoding" not in headers
        assert headers["Impersonate-User"] == "jane"
        assert headers.getall("Impersonate-Group") == ["a", "b"]  # type: ignore[attr-defined]

    play_over_http(scenario)


def test_a_connection_is_used_again_and_watches_have_their_own() -> None:
    async def scenario(scene: Scene) -> None:
        since = await create_all(scene.local, config_map("a"))
        async with scene.client.watch(CONFIG_MAP, since=since) as watch:
            for number in range(5):
                await scene.client.create(CONFIG_MAP, NS, config_map(f"b{number}"))
            assert await watch.next_batch()
        assert scene.server.connections == 2

    play_over_http(scenario)


def test_a_proxy_is_asked_in_the_servers_place() -> None:
    asked: list[str] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readline()).decode().strip())
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async def scenario(scene: Scene) -> None:
        async with await asyncio.start_server(proxy, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            connection = replace(
                scene.client.connection, server="http://far.away.example:8080", proxy=f"http://127.0.0.1:{port}"
            )
            async with HttpClient(connection, scene.clock, Entropy(1), environment={}) as client:
                with pytest.raises(NotFoundError):
                    await client.get(POD, NS, "web")
        assert asked == ["GET http://far.away.example:8080/api/v1/namespaces/default/pods/web HTTP/1.1"]

    play_over_http(scenario)
