"""Creates objects of any served kind, custom resources included, in a cluster of this process.

Input      documents as people write them, or as `kubectl get -o yaml` prints them
Output     the same objects in the cluster, through the API server's registry: defaulted, admitted and validated

1. Fields that only the server sets are dropped: a printed object can be created again.
2. Creating a CustomResourceDefinition returns when its kind is served, so that its custom resources may follow.
"""

from __future__ import annotations

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import CUSTOM_RESOURCE_DEFINITION, NODE, SERVICE_ACCOUNT, Kind, kind_named
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.cluster.component_client import component_client

SERVER_FIELDS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
"""What the server sets in the metadata of every object."""
POLL_S = 0.05
ESTABLISHED_S_MAX = 5.0
ACCOUNT_S_MAX = 15.0
"""How long controllers may take to start and to create a service account."""


def loopback_client(api_server: ApiServer) -> LoopbackClient:
    """The client that writes objects from files."""
    return component_client(api_server, "mooring")


def without_server_fields(metadata: Document) -> Document:
    return {name: value for name, value in metadata.items() if name not in SERVER_FIELDS}


def served_kind(api_server: ApiServer, api_version: str, kind: str) -> Kind:
    """Raises `UnknownKindError`."""
    for resource in api_server.resources:
        if (resource.kind.api_version, resource.kind.kind) == (api_version, kind):
            return resource.kind
    return kind_named(api_version, kind)  # raises the error that names other versions


async def create_object(api_server: ApiServer, client: LoopbackClient, document: Document) -> Document:
    """Returns the object as it was stored. Raises `ClientError`, `UnknownKindError`."""
    kind = served_kind(api_server, str(document["apiVersion"]), str(document["kind"]))
    metadata = without_server_fields(document["metadata"])
    namespace = str(metadata.get("namespace") or "default")
    created: Document = msgspec.json.decode(await client.create(kind, namespace, {**document, "metadata": metadata}))
    if kind is CUSTOM_RESOURCE_DEFINITION:
        await _wait_served(api_server, created)
    return created


async def _wait_served(api_server: ApiServer, definition: Document) -> None:
    """Until the versions of a definition are served; not for ever, as its names may be taken."""
    spec = definition["spec"]
    wanted = [f"{spec['group']}/{version['name']}" for version in spec["versions"] if version.get("served")]
    for _ in range(int(ESTABLISHED_S_MAX / POLL_S)):
        if all(api_server.resources.find(api_version, spec["names"]["plural"]) for api_version in wanted):
            return
        await api_server.clock.wait(POLL_S)


async def wait_default_account(api_server: ApiServer, namespace: str) -> None:
    """Until a namespace has its service account `default`, without which the API server rejects pods."""
    for _ in range(int(ACCOUNT_S_MAX / POLL_S)):
        if await api_server.lookup.get(SERVICE_ACCOUNT, namespace, "default") is not None:
            return
        await api_server.clock.wait(POLL_S)


async def wait_nodes(api_server: ApiServer, count: int) -> None:
    """Until so many nodes are registered."""
    client = loopback_client(api_server)
    while True:
        page = await client.list(NODE, limit=1)
        if len(page.items) + (page.remaining or 0) >= count:
            return
        await api_server.clock.wait(POLL_S)
