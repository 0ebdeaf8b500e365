"""Objects that a pod refers to: ConfigMaps, Secrets, Services and claimed volumes.

Input: a pod and its containers or volumes. Output: `ReferencedObjects`; or a `ClientError`.

 1. Each object is read once per lookup. Nothing is cached: a restarted container sees the current objects.
 2. An object that does not exist is None. Whether that is an error depends on `optional` of the reference.
 3. Every pod gets the Service `kubernetes` of the namespace `default`, with an address at which it reaches the API
    server. A pod with enableServiceLinks gets the Services of its namespace as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from mooring.api.decode import decode_as
from mooring.api.kinds import CONFIG_MAP, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, SECRET, SERVICE, Kind
from mooring.api.views.meta import ObjectMeta, RawQuantity, View
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, Volume
from mooring.api.views.workloads import Service, ServicePort, ServiceSpec
from mooring.api.well_known import LOCAL_PROVISIONER, PROVISIONED_BY
from mooring.client.errors import NotFoundError
from mooring.client.interface import Client, Selection
from mooring.kubelet.views import ConfigMap, FullContainer, FullPod, Secret

MASTER_NAMESPACE = "default"
MASTER_SERVICE = "kubernetes"

_AnyView = TypeVar("_AnyView", bound=View)


class ContainerConfigError(Exception):
    """A container cannot be created as specified; the text is the message of CreateContainerConfigError.

    A retry may help: a missing object may be created.
    """


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Addresses of a pod and its node, and the resources of the node."""

    pod_ip: str
    host_ip: str
    allocatable: Mapping[str, RawQuantity] = field(default_factory=dict)
    """The allocatable resources of the node: the limits of containers without limits."""


@dataclass(frozen=True, slots=True)
class ClaimDirectory:
    """The volume of a claim: a directory of this machine."""

    path: str
    is_local: bool = False
    """Whether its volume source is `local`: then fsGroup applies."""
    is_provisioned: bool = False
    """Whether it belongs to a volume of the provisioner of `mooring up`: then it is created for all users."""


@dataclass(frozen=True, slots=True)
class ReferencedObjects:
    """Objects by name."""

    config_maps: Mapping[str, ConfigMap | None] = field(default_factory=dict)
    secrets: Mapping[str, Secret | None] = field(default_factory=dict)
    services: Sequence[Service] = ()

    def config_map(self, name: str, *, is_optional: bool) -> ConfigMap | None:
        """None if it does not exist and is optional. Raises `ContainerConfigError`."""
        found = self.config_maps[name]
        if found is None and not is_optional:
            raise ContainerConfigError(f'configmap "{name}" not found')
        return found

    def secret(self, name: str, *, is_optional: bool) -> Secret | None:
        """None if it does not exist and is optional. Raises `ContainerConfigError`."""
        found = self.secrets[name]
        if found is None and not is_optional:
            raise ContainerConfigError(f'secret "{name}" not found')
        return found


class ReferenceLookup:
    """Reads the objects that pods refer to."""

    def __init__(self, client: Client, api_server_url: str = "") -> None:
        """Pods reach the API server at that URL; empty: at the address of the Service `kubernetes`."""
        self._client = client
        self._api_server = master_service(api_server_url) if api_server_url else None

    async def look_up(self, pod: FullPod, container: FullContainer) -> ReferencedObjects:
        """What the environment of a container refers to. Raises `ClientError`."""
        namespace = pod.metadata.namespace
        found = await self.objects(namespace, config_map_names(container), secret_names(container))
        services = await self._services(namespace, has_links=pod.spec.enable_service_links)
        return ReferencedObjects(found.config_maps, found.secrets, services)

    async def objects(self, namespace: str, config_maps: Iterable[str], secrets: Iterable[str]) -> ReferencedObjects:
        """ConfigMaps and Secrets by name. Raises `ClientError`."""
        return ReferencedObjects(
            {name: await self._get(CONFIG_MAP, ConfigMap, namespace, name) for name in config_maps},
            {name: await self._get(SECRET, Secret, namespace, name) for name in secrets},
        )

    async def claimed_directory(self, namespace: str, claim: str) -> ClaimDirectory:
        """The volume of a claim. Raises `ContainerConfigError` and `ClientError`."""
        found = await self._get(PERSISTENT_VOLUME_CLAIM, PersistentVolumeClaim, namespace, claim)
        if found is None:
            raise ContainerConfigError(f'persistentvolumeclaim "{claim}" not found')
        name = found.spec.volume_name
        volume = await self._get(PERSISTENT_VOLUME, PersistentVolume, "", name) if name else None
        if volume is None:
            raise ContainerConfigError(f'persistentvolumeclaim "{claim}" has no volume yet')
        source = volume.spec.host_path or volume.spec.local
        if source is None:
            raise ContainerConfigError(
                f"persistent volume {name} is not a directory of this machine (hostPath or local)"
            )
        is_provisioned = volume.metadata.annotations.get(PROVISIONED_BY) == LOCAL_PROVISIONER
        return ClaimDirectory(source.path, volume.spec.local is not None, is_provisioned)

    async def _services(self, namespace: str, *, has_links: bool) -> list[Service]:
        master = self._api_server or await self._get(SERVICE, Service, MASTER_NAMESPACE, MASTER_SERVICE)
        services = {} if master is None else {MASTER_SERVICE: master}
        if has_links:
            listing = await self._client.list(SERVICE, Selection(namespace=namespace))
            for raw in listing.items:
                service = decode_as(Service, raw)
                if self._api_server is not None and service.key == f"{MASTER_NAMESPACE}/{MASTER_SERVICE}":
                    continue
                # A Service `kubernetes` of the pod's own namespace replaces that of `default`.
                if service.spec.cluster_ip not in ("", "None"):
                    services[service.metadata.name] = service
        return list(services.values())

    async def _get(self, kind: Kind, view: type[_AnyView], namespace: str, name: str) -> _AnyView | None:
        try:
            return decode_as(view, await self._client.get(kind, namespace, name))
        except NotFoundError:
            return None


def master_service(url: str) -> Service:
    """The Service `kubernetes` with the address of a URL. Its cluster IP leads nowhere without a proxy."""
    parts = urlsplit(url)
    port = ServicePort(name="https", protocol="TCP", port=parts.port or 443)
    return Service(
        metadata=ObjectMeta(name=MASTER_SERVICE, namespace=MASTER_NAMESPACE),
        spec=ServiceSpec(cluster_ip=parts.hostname or "", ports=(port,)),
    )


def claim_name(volume: Volume, pod: FullPod) -> str:
    """The claim of a volume; empty if it has none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else ""


def config_map_names(container: FullContainer) -> list[str]:
    """The ConfigMaps that the environment of a container refers to."""
    whole = [source.config_map_ref.name for source in container.env_from if source.config_map_ref]
    keys = [v.value_from.config_map_key_ref for v in container.env if v.value_from]
    return list(dict.fromkeys([*whole, *(key.name for key in keys if key)]))


def secret_names(container: FullContainer) -> list[str]:
    """The Secrets that the environment of a container refers to."""
    whole = [source.secret_ref.name for source in container.env_from if source.secret_ref]
    keys = [v.value_from.secret_key_ref for v in container.env if v.value_from]
    return list(dict.fromkeys([*whole, *(key.name for key in keys if key)]))
