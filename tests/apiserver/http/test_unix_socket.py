"""The API server on a Unix socket, and the HTTP client over it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest

from mooring.api.kinds import POD
from mooring.apiserver.assembly import Settings, open_api_server
from mooring.apiserver.http.handler import RequestHandler
from mooring.apiserver.http.request import RequestLimits
from mooring.apiserver.http.server import unix_listener
from mooring.client.errors import NoAnswerError, UnauthorizedError
from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.http.connection import UNIX, Connection, Identity, StaticCredentials, bearer
from mooring.client.interface import Client
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from mooring.serving.users import MASTERS_GROUP, User
from mooring.store.memory import MemoryStore
from tests.api_servers import TOKEN_KEY
from tests.client.contract import ClientContract
from tests.client.contract_play import NS, Play, Scenario
from tests.client.objects import at, pod, read
from tests.waiting import LIMIT_S

TOKEN = "right"
PROXIES = {"HTTP_PROXY": "http://nowhere.invalid:1", "ALL_PROXY": "http://nowhere.invalid:1"}


def play_over_socket(scenario: Scenario, token: str = TOKEN) -> None:
    users = {TOKEN: User("system:kube-scheduler", groups=(MASTERS_GROUP,))}
    settings = Settings(TOKEN_KEY, users, disabled_admission_plugins=frozenset(("ServiceAccount",)))

    async def play() -> None:
        clock, limits = SystemClock(), RequestLimits()
        with TemporaryDirectory() as folder:
            path = Path(folder) / "api.sock"
            async with (
                open_api_server(MemoryStore(), clock, Entropy(1), settings) as api_server,
                unix_listener(RequestHandler(api_server, limits), limits, path),
                HttpClient(
                    Connection(f"{UNIX}{path}", credentials=StaticCredentials(Identity(bearer(token)))),
                    clock,
                    Entropy(2),
                    limits=HttpLimits(requests_per_s=0.0),
                    product="kube-scheduler",
                    environment=PROXIES,
                ) as client,
                asyncio.timeout(LIMIT_S),
            ):
                await scenario(client)

    run_real(play())


class TestTheContract(ClientContract):
    @pytest.fixture
    def play(self) -> Play:
        return play_over_socket


def test_the_product_of_the_client_is_the_field_manager() -> None:
    async def scenario(client: Client) -> None:
        created = await client.create(POD, NS, pod("web"))
        (entry,) = cast("list[dict[str, str]]", at(read(created), "metadata.managedFields"))
        assert entry["manager"] == "kube-scheduler"

    play_over_socket(scenario)


def test_a_wrong_token_is_rejected() -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(UnauthorizedError):
            await client.list(POD)

    play_over_socket(scenario, "wrong")


def test_a_missing_socket_is_a_connection_error_with_the_reason() -> None:
    async def play() -> None:
        connection = Connection(f"{UNIX}/nowhere/api.sock")
        async with HttpClient(connection, SystemClock(), Entropy(1), environment={}) as client:
            with pytest.raises(NoAnswerError, match="cannot connect: No such file or directory"):
                await client.list(POD)

    run_real(play())
