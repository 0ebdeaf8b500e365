"""Tokens of service accounts: who can be asked for them."""

from __future__ import annotations

import pytest

from mooring.client.election.fence import FencedClient, OutsideFenceError
from mooring.client.errors import BadRequestError, ClientError
from mooring.client.interface import JsonObject
from mooring.client.tokens import request_token
from mooring.client.unavailable import UnavailableClient
from mooring.kit.loop import run
from tests.client.http.play import Scene, play_over_http

REQUEST: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}


class Signing(UnavailableClient):
    """A client that issues tokens."""

    async def request_token(self, namespace: str, name: str, request: JsonObject) -> bytes:
        return f"{namespace}/{name} {request['kind']}".encode()


def test_a_client_with_tokens_is_asked() -> None:
    assert run(request_token(Signing(), "default", "robot", REQUEST)) == b"default/robot TokenRequest"


def test_a_client_without_tokens_is_an_error() -> None:
    with pytest.raises(
        BadRequestError, match="tokens for default/robot are given by API servers, not by UnavailableClient"
    ):
        run(request_token(UnavailableClient(), "default", "robot", REQUEST))


def test_a_fence_is_passed_only_while_it_is_open() -> None:
    assert run(request_token(FencedClient(Signing(), lambda: True), "default", "robot", REQUEST))

    with pytest.raises(OutsideFenceError):
        run(request_token(FencedClient(Signing(), lambda: False), "default", "robot", REQUEST))


def test_over_http_the_account_is_asked() -> None:
    async def scenario(scene: Scene) -> None:
        with pytest.raises(ClientError):  # the server of these tests serves no tokens
            await request_token(scene.client, "default", "robot", REQUEST)
        assert scene.server.asked[-1] == "POST /api/v1/namespaces/default/serviceaccounts/robot/token"

    play_over_http(scenario)
