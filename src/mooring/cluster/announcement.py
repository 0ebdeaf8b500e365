"""The announcement: what an API server writes about itself into its own cluster.

Comes in   the port that it listens on, and the authority that signs its clients
Goes out   the Service `default/kubernetes`, and the ConfigMap from which others learn which clients to trust

 1. What is there already stays: of several servers on one store each adds its authority, and the first makes the
    Service.
 2. A cluster is up without it, so nobody waits for it, and a write that fails is one line in the log.

The Service has no endpoints: Mooring listens on loopback unless told otherwise, and an endpoint may not name that.
"""

from __future__ import annotations

import logging

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, SERVICE
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import Client

AUTHORITIES = ("kube-system", "extension-apiserver-authentication")
AUTHORITY_KEY = "client-ca-file"
ANNOUNCER = "kube-apiserver"

log = logging.getLogger(__name__)


async def announce(client: Client, port: int, authority_pem: str) -> None:
    """Write what is missing."""
    try:
        await _make_service(client, port)
        await _tell_authority(client, authority_pem)
    except ClientError as error:
        log.warning("the API server could not announce itself: %s", error)


async def _make_service(client: Client, port: int) -> None:
    try:
        await client.get(SERVICE, "default", "kubernetes")
    except NotFoundError:
        await client.create(SERVICE, "default", api_service(port))


async def _tell_authority(client: Client, authority_pem: str) -> None:
    namespace, name = AUTHORITIES
    try:
        found = msgspec.json.decode(await client.get(CONFIG_MAP, namespace, name))
    except NotFoundError:
        await client.create(CONFIG_MAP, namespace, authorities(name, authority_pem))
        return
    known = (found.get("data") or {}).get(AUTHORITY_KEY, "")
    if authority_pem not in known:
        found["data"] = {**(found.get("data") or {}), AUTHORITY_KEY: known + authority_pem}
        await client.update(CONFIG_MAP, namespace, name, found)


def api_service(port: int) -> Document:
    """The service that stands for the API server; it gets the first address of all."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.96.0.1",
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
            "sessionAffinity": "None",
        },
    }


def authorities(name: str, authority_pem: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "kube-system"},
        "data": {AUTHORITY_KEY: authority_pem},
    }
