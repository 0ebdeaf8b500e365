"""The Service `kubernetes`, its EndpointSlice and the authority of client certificates."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, ENDPOINT_SLICE, ENDPOINTS, SERVICE, Kind
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.client.errors import NoAnswerError, NotFoundError
from mooring.cluster.kubernetes_service import AdvertisedServer, advertised_address, keep_published, publish
from mooring.kit.tasks import TaskGroup
from tests.api_servers import with_api_server

OURS = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n"
THEIRS = "-----BEGIN CERTIFICATE-----\ntheirs\n-----END CERTIFICATE-----\n"
SERVER = AdvertisedServer("192.0.2.7", 6443, OURS)


async def read(client: LoopbackClient, kind: Kind) -> Document:
    found: Document = msgspec.json.decode(await client.get(kind, "default", "kubernetes"))
    return found


def endpoints_of(endpoint_slice: Document) -> tuple[list[str], list[int]]:
    addresses = [address for endpoint in endpoint_slice["endpoints"] for address in endpoint["addresses"]]
    return addresses, [port["port"] for port in endpoint_slice["ports"]]


def test_the_service_has_the_first_address_and_the_port_of_the_server() -> None:
    async def play(api_server: ApiServer, client: LoopbackClient) -> None:
        await publish(client, SERVER)
        spec = msgspec.json.decode(await client.get(SERVICE, "default", "kubernetes"))["spec"]
        assert spec["clusterIP"] == "10.96.0.1"
        assert spec["ports"] == [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}]

    with_api_server(play)


@pytest.mark.parametrize(
    ("authorities", "published"),
    [
        pytest.param([OURS], OURS, id="one server publishes its authority"),
        pytest.param([OURS, OURS], OURS, id="a restarted server publishes nothing new"),
        pytest.param([THEIRS, OURS], THEIRS + OURS, id="two servers on one store tell both"),
    ],
)
def test_each_authority_is_published_once(authorities: list[str], published: str) -> None:
    async def play(api_server: ApiServer, client: LoopbackClient) -> None:
        for authority_pem in authorities:
            await publish(client, replace(SERVER, authority_pem=authority_pem))
        found = await client.get(CONFIG_MAP, "kube-system", "extension-apiserver-authentication")
        assert msgspec.json.decode(found)["data"] == {"client-ca-file": published}

    with_api_server(play)


def test_a_write_that_fails_is_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(self: LoopbackClient, kind: Kind, namespace: str, body: object) -> bytes:
        raise NoAnswerError("the store is away")

    async def play(api_server: ApiServer, client: LoopbackClient) -> None:
        monkeypatch.setattr(LoopbackClient, "create", fails)
        await publish(client, SERVER)

    with_api_server(play)
    assert "the Service kubernetes could not be written: the store is away" in caplog.text


# --- endpoints --------------------------------------------------------------------------------------------------------


def test_the_endpoints_are_the_server() -> None:
    async def play(api_server: ApiServer, client: LoopbackClient) -> None:
        await publish(client, SERVER)
        endpoint_slice, endpoints = await read(client, ENDPOINT_SLICE), await read(client, ENDPOINTS)
        assert endpoint_slice["addressType"] == "IPv4"
        assert endpoint_slice["metadata"]["labels"] == {"kubernetes.io/service-name": "kubernetes"}
        assert endpoint_slice["endpoints"] == [{"addresses": ["192.0.2.7"], "conditions": {"ready": True}}]
        assert endpoint_slice["ports"] == [{"name": "https", "port": 6443, "protocol": "TCP"}]
        assert endpoints["metadata"]["labels"] == {"endpointslice.kubernetes.io/skip-mirror": "true"}
        assert endpoints["subsets"] == [
            {"addresses": [{"ip": "192.0.2.7"}], "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]}
        ]

    with_api_server(play)


def test_an_unchanged_server_writes_nothing() -> None:
    async def play(api_server: ApiServer, client: LoopbackClient) -> None:
        await publish(client, SERVER)
        revision = await api_server.store.revision()
        await publish(client, SERVER)
        await publish(client, SERVER, is_start=False)
        assert await api_server.store.revision() == revision

    with_api_server(play)


def test_a_server_that_moved_is_found_at_its_new_address_and_port() -> None:
    async def play(api_server: ApiServer, client: LoopbackClient) -> None:
        await publish(client, SERVER)
        await publish(client, replace(SERVER, address="192.0.2.8", port=7443))
        assert endpoints_of(await read(client, ENDPOINT_SLICE)) == (["192.0.2.8"], [7443])
        assert (await read(client, ENDPOINTS))["subsets"][0]["addresses"] == [{"ip": "192.0.2.8"}]
        assert (await read(client, SERVICE))["spec"]["ports"][0]["targetPort"] == 7443

    with_api_server(play)


def test_servers_that_share_a_store_are_all_endpoints() -> None:
    async def play(api_server: ApiServer, client: LoopbackClient) -> None:
        one = replace(SERVER, is_only=False)
        await publish(client, one)
        await publish(client, replace(one, address="192.0.2.6"))
        await publish(client, one, is_start=False)
        assert endpoints_of(await read(client, ENDPOINT_SLICE)) == (["192.0.2.6", "192.0.2.7"], [6443])

    with_api_server(play)


@pytest.mark.parametrize("kind", [SERVICE, ENDPOINTS, ENDPOINT_SLICE], ids=lambda kind: kind.plural)
def test_what_is_deleted_comes_back(kind: Kind) -> None:
    async def play(api_server: ApiServer, client: LoopbackClient) -> None:
        async with TaskGroup("reconciler") as group:
            group.start_background(keep_published(client, api_server.clock, SERVER), name="reconciler")
            await api_server.clock.wait(1.0)
            await client.delete(kind, "default", "kubernetes")
            await api_server.clock.wait(10.0)
            assert (await read(client, kind))["metadata"]["name"] == "kubernetes"

    with_api_server(play)


@pytest.mark.parametrize(
    ("host", "of_machine", "advertised"),
    [
        pytest.param("192.0.2.7", "192.0.2.1", "192.0.2.7", id="the address it listens on"),
        pytest.param("127.0.0.1", "192.0.2.1", "192.0.2.1", id="loopback: the address of the host"),
        pytest.param("0.0.0.0", "192.0.2.1", "192.0.2.1", id="every address: the address of the host"),
        pytest.param("anchor.example", "192.0.2.1", "192.0.2.1", id="a name: the address of the host"),
        pytest.param("127.0.0.1", "127.0.0.1", "", id="no network"),
    ],
)
def test_which_address_is_advertised(
    host: str, of_machine: str, advertised: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mooring.cluster.kubernetes_service.host_address", lambda: of_machine)
    assert advertised_address(host) == advertised


def test_a_host_without_a_network_has_no_endpoints() -> None:
    async def play(api_server: ApiServer, client: LoopbackClient) -> None:
        await publish(client, replace(SERVER, address=""))
        assert (await read(client, SERVICE))["spec"]["clusterIP"] == "10.96.0.1"
        with pytest.raises(NotFoundError):
            await read(client, ENDPOINT_SLICE)

    with_api_server(play)
