"""Which node has which objects, by the pods that are bound to it.

Input: pods, volumes, volume attachments and resource slices, as they change. Output: `is_related`, which the node
authorizer asks. The relations are those of kube-apiserver:

    node <- pod <- secret, config map, service account, resource claim, volume claim
                                                volume claim <- volume <- secret
    node <- volume attachment, resource slice

1. A mirror pod relates its node to itself only: nodes create mirror pods.
2. The graph is filled when a node first sends a request. A cluster whose kubelets run in the process never fills it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME, POD, RESOURCE_SLICE, VOLUME_ATTACHMENT, Kind
from mooring.api.pod_references import (
    config_map_names,
    resource_claim_names,
    secret_names,
    volume_claim_names,
    volume_secrets,
)
from mooring.api.well_known import MIRROR_POD_ANNOTATION

GRAPH_KINDS = (POD, PERSISTENT_VOLUME, VOLUME_ATTACHMENT, RESOURCE_SLICE)

ObjectKey = tuple[str, str, str]
"""Resource, namespace and name."""

_CLAIMS = "persistentvolumeclaims"


class NodeGraph:
    """Relations between nodes and objects. `put` and `remove` follow the store."""

    def __init__(self) -> None:
        self._nodes: dict[ObjectKey, Counter[str]] = defaultdict(Counter)
        self._edges: dict[ObjectKey, tuple[str, tuple[ObjectKey, ...]]] = {}
        """By pod, attachment or slice: its node, and the objects that it relates to the node."""
        self._claim_of_volume: dict[str, ObjectKey] = {}
        self._secrets_of_volume: dict[str, tuple[ObjectKey, ...]] = {}
        self._volumes_of_secret: dict[ObjectKey, set[str]] = defaultdict(set)
        self._fill: Callable[[], Awaitable[None]] | None = None

    def fill_with(self, fill: Callable[[], Awaitable[None]]) -> None:
        """Set the function that puts all objects and then follows their changes. It may be called more than once."""
        self._fill = fill

    async def wait_filled(self) -> None:
        if self._fill is not None:
            await self._fill()

    def is_related(self, node: str, resource: str, namespace: str, name: str) -> bool:
        key = (resource, namespace, name)
        if node in self._nodes.get(key, ()):
            return True
        if resource == "persistentvolumes":
            return self._is_volume_related(node, name)
        return any(self._is_volume_related(node, volume) for volume in self._volumes_of_secret.get(key, ()))

    def _is_volume_related(self, node: str, volume: str) -> bool:
        claim = self._claim_of_volume.get(volume)
        return claim is not None and node in self._nodes.get(claim, ())

    def put(self, kind: Kind, document: Document) -> None:
        self.remove(kind, document)
        if kind is PERSISTENT_VOLUME:
            self._put_volume(document)
            return
        node = document["spec"].get("nodeName")
        if node:
            key = _key(kind, document)
            related = (key, *_pod_references(document)) if kind is POD else (key,)
            self._edges[key] = (node, related)
            for each in related:
                self._nodes[each][node] += 1

    def remove(self, kind: Kind, document: Document) -> None:
        if kind is PERSISTENT_VOLUME:
            self._remove_volume(document["metadata"]["name"])
            return
        node, related = self._edges.pop(_key(kind, document), ("", ()))
        for each in related:
            counts = self._nodes[each]
            counts[node] -= 1
            if not counts[node]:
                del counts[node]
            if not counts:
                del self._nodes[each]

    def _put_volume(self, volume: Document) -> None:
        claim = volume["spec"].get("claimRef")
        if not claim:
            return
        name = volume["metadata"]["name"]
        self._claim_of_volume[name] = (_CLAIMS, claim.get("namespace", ""), claim.get("name", ""))
        secrets = tuple(("secrets", namespace, secret) for namespace, secret in volume_secrets(volume))
        self._secrets_of_volume[name] = secrets
        for secret in secrets:
            self._volumes_of_secret[secret].add(name)

    def _remove_volume(self, name: str) -> None:
        self._claim_of_volume.pop(name, None)
        for secret in self._secrets_of_volume.pop(name, ()):
            volumes = self._volumes_of_secret[secret]
            volumes.discard(name)
            if not volumes:
                del self._volumes_of_secret[secret]


def _key(kind: Kind, document: Document) -> ObjectKey:
    metadata = document["metadata"]
    return kind.plural, metadata.get("namespace", ""), metadata["name"]


def _pod_references(pod: Document) -> tuple[ObjectKey, ...]:
    metadata, spec = pod["metadata"], pod["spec"]
    if MIRROR_POD_ANNOTATION in (metadata.get("annotations") or {}):
        return ()
    account = spec.get("serviceAccountName")
    names = {
        "secrets": secret_names(spec),
        "configmaps": config_map_names(spec),
        "serviceaccounts": (account,) if account else (),
        _CLAIMS: volume_claim_names(pod),
        "resourceclaims": resource_claim_names(pod),
    }
    namespace = metadata["namespace"]
    return tuple({(resource, namespace, name) for resource, found in names.items() for name in found})
