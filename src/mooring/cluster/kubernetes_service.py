"""The Service `kubernetes` and the ConfigMap `extension-apiserver-authentication`, which an API server writes itself.

Input: the address and port at which clients reach the server, and the authority of client certificates. Output: the
Service `default/kubernetes` with its Endpoints and EndpointSlice, and the ConfigMap with the authority.

1. The server writes what is missing or wrong when it starts and every `RECONCILE_S`, as kube-apiserver.
2. A server with a store of its own is the only endpoint. Where several servers share a store (etcd), each adds its
   address and its authority.
3. The API does not allow a loopback address as endpoint. As in kube-apiserver, a server that listens on loopback or on
   every address advertises the address of the host. On a host without a network there are no endpoints.
4. Ports are corrected when a server starts. Later they are left alone: a second server may listen on another one.
5. No component waits for these objects. A write that fails is logged.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, ENDPOINT_SLICE, ENDPOINTS, SERVICE, Kind
from mooring.api.well_known import SKIP_MIRROR_LABEL
from mooring.client.errors import AlreadyExistsError, ClientError, ConflictError, NotFoundError
from mooring.client.interface import Client
from mooring.kit.clock import Clock
from mooring.kit.host_address import host_address

AUTHENTICATION = ("kube-system", "extension-apiserver-authentication")
AUTHORITY_KEY = "client-ca-file"
API_SERVER = "kube-apiserver"
SERVICE_NAME = ("default", "kubernetes")
RECONCILE_S = 10.0

Wanted = Callable[[Document | None], Document]
"""Returns the desired object for the existing one."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AdvertisedServer:
    """An API server as its clients see it."""

    address: str
    """Empty if no address of the server may be an endpoint."""
    port: int
    authority_pem: str
    is_only: bool = True
    """Whether no other server uses the store."""


def advertised_address(host: str) -> str:
    """The IPv4 address of a server that listens on `host`; empty if none may be an endpoint."""
    for address in (host, host_address()):
        try:
            ip = ipaddress.IPv4Address(address)
        except ValueError:
            continue
        if not (ip.is_loopback or ip.is_unspecified or ip.is_link_local):
            return address
    return ""


async def publish(client: Client, server: AdvertisedServer, *, is_start: bool = True) -> None:
    """Write the objects that are missing or wrong."""
    try:
        await _write(client, SERVICE, SERVICE_NAME, lambda found: api_service(server, found, is_start=is_start))
        if server.address:
            await _write(client, ENDPOINTS, SERVICE_NAME, lambda found: api_endpoints(server, found, is_start=is_start))
            await _write(
                client, ENDPOINT_SLICE, SERVICE_NAME, lambda found: api_endpoint_slice(server, found, is_start=is_start)
            )
        await _write(client, CONFIG_MAP, AUTHENTICATION, lambda found: authorities(server, found))
    except ClientError as error:
        log.warning("the Service kubernetes could not be written: %s", error)


async def keep_published(client: Client, clock: Clock, server: AdvertisedServer) -> None:
    """Write the objects now and every `RECONCILE_S`, until cancelled."""
    await publish(client, server)
    while True:
        await clock.wait(RECONCILE_S)
        await publish(client, server, is_start=False)


async def _write(client: Client, kind: Kind, key: tuple[str, str], desired: Wanted) -> None:
    """Write an object, unless it is as wanted. After a conflict with another server, try once more."""
    try:
        await _write_once(client, kind, key, desired)
    except (AlreadyExistsError, ConflictError):
        await _write_once(client, kind, key, desired)


async def _write_once(client: Client, kind: Kind, key: tuple[str, str], desired: Wanted) -> None:
    try:
        found: Document = msgspec.json.decode(await client.get(kind, *key))
    except NotFoundError:
        await client.create(kind, key[0], desired(None))
        return
    document = desired(found)
    if document != found:
        await client.update(kind, *key, document)


# --- the objects ------------------------------------------------------------------------------------------------------


def api_service(server: AdvertisedServer, found: Document | None, *, is_start: bool) -> Document:
    """The Service of the API server, with the first address of the range."""
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
    labels = {SKIP_MIRROR_LABEL: "true"}
    subset = {"addresses": [{"ip": address} for address in addresses], "ports": ports}
    return _changed(ENDPOINTS, found, labels, {"subsets": [subset]})


def api_endpoint_slice(server: AdvertisedServer, found: Document | None, *, is_start: bool) -> Document:
    before = found or {}
    addresses = _addresses(server, [address for one in before.get("endpoints") or () for address in one["addresses"]])
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
    return [server.address] if server.is_only else sorted({*before, server.address})


def _changed(kind: Kind, found: Document | None, labels: Document, fields: Document) -> Document:
    namespace, name = SERVICE_NAME
    metadata = found["metadata"] if found is not None else {"name": name, "namespace": namespace}
    head = found or {"apiVersion": kind.api_version, "kind": kind.kind}
    return {**head, "metadata": {**metadata, "labels": labels}, **fields}


def authorities(server: AdvertisedServer, found: Document | None) -> Document:
    """The ConfigMap with the authorities of client certificates, for other components."""
    namespace, name = AUTHENTICATION
    if found is None:
        found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
    data = found.get("data") or {}
    known = data.get(AUTHORITY_KEY, "")
    if server.authority_pem in known:
        return found
    return {**found, "data": {**data, AUTHORITY_KEY: known + server.authority_pem}}
