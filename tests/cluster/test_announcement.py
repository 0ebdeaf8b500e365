"""What an API server writes about itself."""

from __future__ import annotations

import msgspec
import pytest

from mooring.api.kinds import CONFIG_MAP, SERVICE, Kind
from mooring.apiserver.desk import Desk
from mooring.apiserver.loopback import LoopbackClient
from mooring.client.errors import NoAnswerError
from mooring.cluster.announcement import announce
from tests.apiserver.desks import with_desk

OURS = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n"
THEIRS = "-----BEGIN CERTIFICATE-----\ntheirs\n-----END CERTIFICATE-----\n"


def test_the_service_has_the_first_address_and_the_port_of_the_server() -> None:
    async def play(desk: Desk, client: LoopbackClient) -> None:
        await announce(client, 6443, OURS)
        spec = msgspec.json.decode(await client.get(SERVICE, "default", "kubernetes"))["spec"]
        assert spec["clusterIP"] == "10.96.0.1"
        assert spec["ports"] == [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}]

    with_desk(play)


@pytest.mark.parametrize(
    ("announced", "told"),
    [
        pytest.param([OURS], OURS, id="one server tells its authority"),
        pytest.param([OURS, OURS], OURS, id="a server that starts again tells nothing new"),
        pytest.param([THEIRS, OURS], THEIRS + OURS, id="two servers on one store tell both"),
    ],
)
def test_who_signs_clients_is_told_once(announced: list[str], told: str) -> None:
    async def play(desk: Desk, client: LoopbackClient) -> None:
        for authority_pem in announced:
            await announce(client, 6443, authority_pem)
        found = await client.get(CONFIG_MAP, "kube-system", "extension-apiserver-authentication")
        assert msgspec.json.decode(found)["data"] == {"client-ca-file": told}

    with_desk(play)


def test_a_write_that_fails_is_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(self: LoopbackClient, kind: Kind, namespace: str, body: object) -> bytes:
        raise NoAnswerError("the store is away")

    async def play(desk: Desk, client: LoopbackClient) -> None:
        monkeypatch.setattr(LoopbackClient, "create", fails)
        await announce(client, 6443, OURS)

    with_desk(play)
    assert "the API server could not announce itself: the store is away" in caplog.text
