"""Creates objects of any served kind, custom resources included, in a cluster of this process.

Input      documents as people write them, or as `kubectl get -o yaml` prints them
Output     the same objects in the cluster, through the API server's registry: defaulted, admitted and validated

1. Fields that only the server sets are dropped: a printed object can be created again.
2. Creating a CustomResourceDefinition returns when its kind is served, so that its custom resources may follow.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import CUSTOM_RESOURCE_DEFINITION, NODE, SERVICE_ACCOUNT, Kind, kind_named
from mooring.api.views.meta import is_true
from mooring.api.views.node import Node
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.cluster.component_client import component_client
from mooring.kubelet.node_status import SILENT_ANNOTATION

SERVER_FIELDS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
"""What the server sets in the metadata of every object."""
POLL_S = 0.05
ESTABLISHED_S_MAX = 5.0
_NOT_READY_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
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
    """Wait until the versions of a definition are served, at most `ESTABLISHED_S_MAX`: its names may be taken."""
    spec = definition["spec"]
    versions = [f"{spec['group']}/{version['name']}" for version in spec["versions"] if version.get("served")]
    for _ in range(int(ESTABLISHED_S_MAX / POLL_S)):
        if all(api_server.resources.find(api_version, spec["names"]["plural"]) for api_version in versions):
            return
        await api_server.clock.wait(POLL_S)


async def wait_default_account(api_server: ApiServer, namespace: str) -> None:
    """Until a namespace has its service account `default`, without which the API server rejects pods."""
    for _ in range(int(ACCOUNT_S_MAX / POLL_S)):
        if await api_server.lookup.get(SERVICE_ACCOUNT, namespace, "default") is not None:
            return
        await api_server.clock.wait(POLL_S)


async def wait_nodes(api_server: ApiServer, names: Collection[str], *, untainted: bool) -> None:
    """Until these nodes are registered and ready, except those that are silent on purpose.

    `untainted`: also until the node lifecycle controller has removed the taints of nodes that are not ready.
    """
    client, missing = loopback_client(api_server), set(names)
    while missing:
        for raw in (await client.list(NODE)).items:
            node = decode_as(Node, raw)
            if node.metadata.name in missing and _is_usable(node, untainted):
                missing.remove(node.metadata.name)
        if missing:
            await api_server.clock.wait(POLL_S)


def _is_usable(node: Node, untainted: bool) -> bool:
    if node.metadata.annotations.get(SILENT_ANNOTATION) == "true":
        return True
    is_ready = is_true(node.status.conditions, "Ready")
    return is_ready and not (untainted and any(taint.key in _NOT_READY_TAINTS for taint in node.spec.taints))
