"""The owners of pods and how many pods they want: what the counts of a disruption budget are made from.

Comes in   the owner that a pod names, and the informers of everything that owns pods
Goes out   its scale; of a ReplicaSet that a Deployment owns, the Deployment's

 1. A custom kind is asked through its scale subresource: the path that its definition names.
 2. Somebody who is not there, or is another one by now, has no scale. A kind that cannot have one is an error in
    words, which stand in the budget's condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec

from mooring.api.kinds import Kind
from mooring.api.ownership import controller_of
from mooring.api.views.definitions import CustomResourceDefinition
from mooring.api.views.meta import OwnerReference
from mooring.api.views.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet
from mooring.client.errors import NotFoundError
from mooring.controllers.context import Workshop
from mooring.controllers.disruption.plan import Scale
from mooring.controllers.served_kinds import ServedKinds

_APPS = ("apps", "extensions")

_decode = msgspec.json.Decoder(dict[str, object]).decode


class ScaleError(Exception):
    """It cannot be told how many pods an owner wants."""


class OwnerScales:
    """Asked for one owner after the other."""

    def __init__(self, workshop: Workshop) -> None:
        informers = workshop.informers
        self._client = workshop.client
        self._replication_controllers = informers.informer(ReplicationController).lister
        self._replica_sets = informers.informer(ReplicaSet).lister
        self._deployments = informers.informer(Deployment).lister
        self._stateful_sets = informers.informer(StatefulSet).lister
        definitions = informers.informer(CustomResourceDefinition)
        self._definitions = definitions.lister
        self._kinds = ServedKinds("disruption-controller", definitions)

    async def scale_of(self, owner: OwnerReference, namespace: str) -> Scale | None:
        """None if there is no such owner (any more). Raises `ScaleError`, `ClientError`."""
        group, slash, _ = owner.api_version.rpartition("/")
        group = group if slash else ""
        if owner.kind == "ReplicationController" and group == "":
            return _scale(self._replication_controllers.get(namespace, owner.name), owner.uid)
        if owner.kind == "ReplicaSet" and group in _APPS:
            return self._scale_of_replica_set(owner, namespace)
        if owner.kind == "StatefulSet" and group == "apps":
            return _scale(self._stateful_sets.get(namespace, owner.name), owner.uid)
        return await self._scale_of_any(owner, namespace)

    def _scale_of_replica_set(self, owner: OwnerReference, namespace: str) -> Scale | None:
        replica_set = self._replica_sets.get(namespace, owner.name)
        if replica_set is None or replica_set.metadata.uid != owner.uid:
            return None
        above = controller_of(replica_set.metadata)
        if above is None or above.kind != "Deployment":
            return _scale(replica_set, owner.uid)
        return _scale(self._deployments.get(namespace, above.name), above.uid)

    async def _scale_of_any(self, owner: OwnerReference, namespace: str) -> Scale | None:
        kind = self._kinds.find(owner.api_version, owner.kind)
        if kind is None:
            raise ScaleError(f'no matches for kind "{owner.kind}" in version "{owner.api_version}"')
        path = self._replicas_path(kind)
        if path is None:
            raise ScaleError(f"{kind.resource} does not implement the scale subresource")
        try:
            found = _decode(await self._client.get(kind, namespace, owner.name))
        except NotFoundError:
            return None
        metadata = cast(Mapping[str, object], found["metadata"])
        if metadata.get("uid") != owner.uid:
            return None
        return Scale(owner.uid, _number_at(found, path))

    def _replicas_path(self, kind: Kind) -> str | None:
        """Where a custom kind says how many replicas it wants; None if it does not say, or is not custom."""
        definition = self._definitions.get("", kind.resource)
        if definition is None:
            return None
        for version in definition.spec.versions:
            if f"{definition.spec.group}/{version.name}" == kind.api_version:
                scale = version.subresources.scale
                return scale.spec_replicas_path if scale is not None else None
        return None


def _scale(owner: ReplicationController | ReplicaSet | Deployment | StatefulSet | None, uid: str) -> Scale | None:
    if owner is None or owner.metadata.uid != uid:
        return None
    replicas = owner.spec.replicas
    return Scale(uid, replicas if replicas is not None else 1)


def _number_at(found: object, path: str) -> int:
    """The number at a path such as `.spec.replicas`; 0 if there is none."""
    for part in path.strip(".").split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found if isinstance(found, int) else 0
