"""What an API server writes about itself into its own cluster.

Input: the address and port at which clients reach the server, and the authority that signs its clients. Output: the
Service `default/kubernetes` with its Endpoints and EndpointSlice, and the ConfigMap that names the authority.

 1. The server writes what is missing or wrong when it starts, and looks again every `RECONCILE_S`, as kube-apiserver.
 2. The endpoints of a server that has the store to itself are its own address. Where several servers share a store
    (etcd), each adds its address and its authority.
 3. A loopback address is never an endpoint: the API does not allow it. As in kube-apiserver, a server that listens on
    loopback or on every address advertises the address of the host. On a host without a network there are no endpoints.
 4. Ports are corrected when a server starts. Later they are left alone: a second server may listen on another one.
 5. A cluster works without all of this: no component waits for it, and a write that fails is a line in the log.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, ENDPOINT_SLICE, ENDPOINTS, SERVICE, Kind
from mooring.client.errors import AlreadyExistsError, ClientError, ConflictError, NotFoundError
from mooring.client.interface import Client
from mooring.kit.clock import Clock
from mooring.kit.host_address import host_address

AUTHORITIES = ("kube-system", "extension-apiserver-authentication")
AUTHORITY_KEY = "client-ca-file"
API_SERVER = "kube-apiserver"
SERVICE_NAME = ("default", "kubernetes")
RECONCILE_S = 10.0

Wanted = Callable[[Document | None], Document]
"""What an object should be, given what it is."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AdvertisedServer:
    """How others reach an API server."""

    address: str
    """Empty: there is none that an endpoint may name."""
    port: int
    authority_pem: str
    is_alone: bool = True
    """Whether no other server uses the store."""


def advertised_address(host: str) -> str:
    """The IPv4 address of a server that listens on `host`; empty if there is none that an endpoint may name."""
    for address in (host, host_address()):
        try:
            ip = ipaddress.IPv4Address(address)
        except ValueError:
            continue
        if not (ip.is_loopback or ip.is_unspecified or ip.is_link_local):
            return address
    return ""


async def publish(client: Client, server: AdvertisedServer, *, is_start: bool = True) -> None:
    """Write what is missing or wrong."""
    try:
        await _write(client, SERVICE, SERVICE_NAME, lambda found: api_service(server, found, is_start=is_start))
        if server.address:
            await _write(client, ENDPOINTS, SERVICE_NAME, lambda found: api_endpoints(server, found, is_start=is_start))
            await _write(
                client, ENDPOINT_SLICE, SERVICE_NAME, lambda found: api_endpoint_slice(server, found, is_start=is_start)
            )
        await _write(client, CONFIG_MAP, AUTHORITIES, lambda found: authorities(server, found))
    except ClientError as error:
        log.warning("the API server could not announce itself: %s", error)


async def keep_published(client: Client, clock: Clock, server: AdvertisedServer) -> None:
    """Announce the server now and every `RECONCILE_S`, until cancelled."""
    await publish(client, server)
    while True:
        await clock.wait(RECONCILE_S)
        await publish(client, server, is_start=False)


async def _write(client: Client, kind: Kind, key: tuple[str, str], wanted: Wanted) -> None:
    """Write an object, unless it is as wanted. If another server writes it meanwhile, look once more."""
    try:
        await _write_once(client, kind, key, wanted)
    except (AlreadyExistsError, ConflictError):
        await _write_once(client, kind, key, wanted)


async def _write_once(client: Client, kind: Kind, key: tuple[str, str], wanted: Wanted) -> None:
    try:
        found: Document = msgspec.json.decode(await client.get(kind, *key))
    except NotFoundError:
        await client.create(kind, key[0], wanted(None))
        return
    document = wanted(found)
    if document != found:
        await client.update(kind, *key, document)


# --- the objects ------------------------------------------------------------------------------------------------------


def api_service(server: AdvertisedServer, found: Document | None, *, is_start: bool) -> Document:
    """The Service of the API server; it has the first address of all."""
    namespace, name = SERVICE_NAME
    ports = [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": server.port}]
    if found is not None:
        return {**found, "spec": {**found["spec"], "ports": ports}} if is_start else found
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.96.0.1",
            "ipFamilyPolicy": "SingleStack",
            "ports": ports,
            "sessionAffinity": "None",
        },
    }


def api_endpoints(server: AdvertisedServer, found: Document | None, *, is_start: bool) -> Document:
    subsets = (found or {}).get("subsets") or []
    before = subsets[0] if len(subsets) == 1 else {}
    addresses = _addresses(server, [one["ip"] for one in before.get("addresses") or ()])
    ports = before.get("ports")
    if is_start or not ports:
        ports = [{"name": "https", "port": server.port, "protocol": "TCP"}]
    # The label keeps kube-controller-manager from mirroring the endpoints into a second slice.
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    subset = {"addresses": [{"ip": address} for address in addresses], "ports": ports}
    return _changed(ENDPOINTS, found, labels, {"subsets": [subset]})


def api_endpoint_slice(server: AdvertisedServer, found: Document | None, *, is_start: bool) -> Document:
    before = found or {}
    addresses = _addresses(server, [each for one in before.get("endpoints") or () for each in one["addresses"]])
    ports = before.get("ports")
    if is_start or not ports:
        ports = [{"name": "https", "port": server.port, "protocol": "TCP"}]
    fields = {
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
        "ports": ports,
    }
    return _changed(ENDPOINT_SLICE, found, {"kubernetes.io/service-name": SERVICE_NAME[1]}, fields)


def _addresses(server: AdvertisedServer, before: Sequence[str]) -> list[str]:
    return [server.address] if server.is_alone else sorted({*before, server.address})


def _changed(kind: Kind, found: Document | None, labels: Document, fields: Document) -> Document:
    namespace, name = SERVICE_NAME
    metadata = found["metadata"] if found is not None else {"name": name, "namespace": namespace}
    head = found or {"apiVersion": kind.api_version, "kind": kind.kind}
    return {**head, "metadata": {**metadata, "labels": labels}, **fields}


def authorities(server: AdvertisedServer, found: Document | None) -> Document:
    """The ConfigMap from which other components learn which client certificates to trust."""
    namespace, name = AUTHORITIES
    if found is None:
        found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
    data = found.get("data") or {}
    known = data.get(AUTHORITY_KEY, "")
    if server.authority_pem in known:
        return found
    return {**found, "data": {**data, AUTHORITY_KEY: known + server.authority_pem}}
