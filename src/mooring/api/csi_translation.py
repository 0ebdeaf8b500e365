"""Translate in-tree volumes to CSI: the driver that replaces a volume plugin, and the handle of a volume there.

Input: persistent volumes and volumes of pods with a source of a cloud provider. Output: the name of the in-tree plugin,
the name of the driver, and a `CsiVolume`: driver, handle, and the nodes that can reach the volume.

The scheduler needs this for two questions: how many volumes of a driver are attached to a node (driver and handle), and
which nodes can reach a volume (node affinity, with the zone label of the cloud replaced by that of the driver). Access
modes, secrets, attributes and classes are not translated.

 1. Seven plugins have a CSI driver (`DRIVERS`). Only the volumes of those in `MIGRATED` are translated; of the others
    only the name of the driver is known.
 2. Topology comes from the node affinity of the volume, otherwise from its labels; current labels precede beta labels.
 3. A volume that cannot be translated raises `TranslationError` with the text of Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from mooring.api.errors import ObjectError
from mooring.api.views.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.api.views.storage import PersistentVolume, PersistentVolumeSpec, Volume

AWS_EBS = "kubernetes.io/aws-ebs"
AZURE_DISK = "kubernetes.io/azure-disk"
AZURE_FILE = "kubernetes.io/azure-file"
CINDER = "kubernetes.io/cinder"
GCE_PD = "kubernetes.io/gce-pd"
PORTWORX = "kubernetes.io/portworx-volume"
VSPHERE = "kubernetes.io/vsphere-volume"

DRIVERS = {
    AWS_EBS: "ebs.csi.aws.com",
    AZURE_DISK: "disk.csi.azure.com",
    AZURE_FILE: "file.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    GCE_PD: "pd.csi.storage.gke.io",
    PORTWORX: "pxd.portworx.com",
    VSPHERE: "csi.vsphere.vmware.com",
}
"""The driver that superseded each in-tree plugin."""

MIGRATED = frozenset({AWS_EBS, AZURE_DISK, CINDER, GCE_PD, PORTWORX})
"""The plugins whose volumes kube-scheduler v1.36 reads as their driver's."""

ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
BETA_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION_LABEL = "failure-domain.beta.kubernetes.io/region"
ZONES_SEPARATOR = "__"
"""Between the zones of a volume that several zones reach, in one label."""


class TranslationError(ObjectError):
    """The volume cannot be translated."""


@dataclass(frozen=True, slots=True)
class CsiVolume:
    """A volume in the form of its CSI driver."""

    driver: str
    handle: str
    node_selector: NodeSelector | None = None
    """The nodes that can reach it; None if all can (and for volumes of pods, which have no node affinity)."""


def plugin_of(source: PersistentVolumeSpec | Volume) -> str | None:
    """The in-tree plugin with a successor that a volume, persistent or of a pod, belongs to; None if there is none."""
    if source.gce_persistent_disk is not None:
        return GCE_PD
    if source.aws_elastic_block_store is not None:
        return AWS_EBS
    if source.cinder is not None:
        return CINDER
    if source.azure_disk is not None:
        return AZURE_DISK
    if source.azure_file is not None:
        return AZURE_FILE
    if source.vsphere_volume is not None:
        return VSPHERE
    if source.portworx_volume is not None:
        return PORTWORX
    return None


def translate_volume(volume: PersistentVolume) -> CsiVolume:
    """A persistent volume of one of the `MIGRATED` plugins as its driver's. Raises `TranslationError`."""
    plugin = _migrated_plugin_of(volume.spec, volume.metadata.name)
    handle = _gce_handle(volume) if plugin == GCE_PD else _HANDLES[plugin](volume.spec)
    affinity = volume.spec.node_affinity
    selector = affinity.required if affinity is not None else None
    zone_key = _ZONE_KEYS.get(plugin)
    if zone_key is not None:
        selector = _with_driver_topology(selector, volume.metadata.labels, zone_key)
    return CsiVolume(DRIVERS[plugin], handle, selector)


def translate_inline(volume: Volume) -> CsiVolume:
    """A volume written into a pod, of one of the `MIGRATED` plugins, as its driver's. Raises `TranslationError`."""
    plugin = _migrated_plugin_of(volume, volume.name)
    return CsiVolume(DRIVERS[plugin], _HANDLES[plugin](volume))


def _migrated_plugin_of(source: PersistentVolumeSpec | Volume, name: str) -> str:
    plugin = plugin_of(source)
    if plugin is None or plugin not in MIGRATED:
        raise TranslationError(f'could not find in-tree plugin translation logic for "{name}"')
    return plugin


# --- handles ----------------------------------------------------------------------------------------------------

_UNSPECIFIED = "UNSPECIFIED"
_AWS_SCHEME = "aws://"
_AWS_VOLUME_ID = re.compile(r"vol-[^/]*")


def _aws_handle(source: PersistentVolumeSpec | Volume) -> str:
    """The volume id of "aws://zone/vol-1", which is "vol-1". Any other text is an id already."""
    assert source.aws_elastic_block_store is not None
    written = source.aws_elastic_block_store.volume_id
    if not written.startswith(_AWS_SCHEME):
        return written
    problem = "failed to translate Kubernetes ID to EBS Volume ID"
    try:
        path = unquote(urlsplit(written).path)
    except ValueError as error:
        raise TranslationError(f"{problem} Invalid disk name ({written}): {error}") from None
    volume_id = path.strip("/")
    if not _AWS_VOLUME_ID.fullmatch(volume_id):
        raise TranslationError(f"{problem} Invalid format for AWS volume ({written})")
    return volume_id


def _azure_disk_handle(source: PersistentVolumeSpec | Volume) -> str:
    assert source.azure_disk is not None
    kind = source.azure_disk.kind
    if kind is not None and kind.lower() != "managed":
        raise TranslationError(f"kind({kind}) is not supported in csi migration")
    return source.azure_disk.disk_uri


def _cinder_handle(source: PersistentVolumeSpec | Volume) -> str:
    assert source.cinder is not None
    return source.cinder.volume_id


def _portworx_handle(source: PersistentVolumeSpec | Volume) -> str:
    assert source.portworx_volume is not None
    return source.portworx_volume.volume_id


def _gce_inline_handle(source: PersistentVolumeSpec | Volume) -> str:
    assert source.gce_persistent_disk is not None
    return f"projects/{_UNSPECIFIED}/zones/{_UNSPECIFIED}/disks/{source.gce_persistent_disk.pd_name}"


def _gce_handle(volume: PersistentVolume) -> str:
    """The handle of a disk contains its zone, or the region that its zones have in common."""
    assert volume.spec.gce_persistent_disk is not None
    disk = volume.spec.gce_persistent_disk.pd_name
    labels = volume.metadata.labels
    zones = (labels.get(BETA_ZONE_LABEL) or labels.get(ZONE_LABEL, "")).split(ZONES_SEPARATOR)
    if len(zones) > 1:
        return f"projects/{_UNSPECIFIED}/regions/{_gce_region(zones)}/disks/{disk}"
    return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{disk}"


def _gce_region(zones: Sequence[str]) -> str:
    """The region of zones such as "europe-west1-b"."""
    problem = "failed to get region from zones"
    regions: dict[str, None] = {}
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                f"{problem}: zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions["-".join(parts[:2])] = None
    if len(regions) != 1:
        found = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(f"{problem}: multiple or no regions gotten from zones, got: map[{found}]")
    return next(iter(regions))


_HANDLES: dict[str, Callable[[PersistentVolumeSpec | Volume], str]] = {
    AWS_EBS: _aws_handle,
    AZURE_DISK: _azure_disk_handle,
    CINDER: _cinder_handle,
    GCE_PD: _gce_inline_handle,
    PORTWORX: _portworx_handle,
}

# --- topology ---------------------------------------------------------------------------------------------------

_ZONE_KEYS = {
    AWS_EBS: "topology.ebs.csi.aws.com/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
    GCE_PD: "topology.gke.io/zone",
}
"""The label with the zone of a driver's nodes. The topology of volumes of other drivers is not changed."""


def _with_driver_topology(
    selector: NodeSelector | None, labels: Mapping[str, str], zone_key: str
) -> NodeSelector | None:
    zone_label, region_label = _topology_labels(selector, labels)
    if _has_values(selector, zone_label):
        selector = _renamed(selector, zone_label, zone_key)
    elif zone_label in labels:
        selector = _narrowed(selector, zone_key, labels[zone_label].split(ZONES_SEPARATOR))
    if region_label == BETA_REGION_LABEL and _has_values(selector, region_label):
        selector = _renamed(selector, region_label, REGION_LABEL)
    return selector


def _topology_labels(selector: NodeSelector | None, labels: Mapping[str, str]) -> tuple[str, str]:
    """The generation of topology labels that a volume uses: that of its node affinity, or else of its own labels."""
    mentioned = {requirement.key for term in _terms(selector) for requirement in term.match_expressions}
    for keys in (mentioned, labels):
        if ZONE_LABEL in keys:
            return ZONE_LABEL, REGION_LABEL
        if BETA_ZONE_LABEL in keys:
            return BETA_ZONE_LABEL, BETA_REGION_LABEL
    return ZONE_LABEL, REGION_LABEL


def _has_values(selector: NodeSelector | None, key: str) -> bool:
    return any(
        requirement.key == key and requirement.values
        for term in _terms(selector)
        for requirement in term.match_expressions
    )


def _renamed(selector: NodeSelector | None, old_key: str, new_key: str) -> NodeSelector:
    return NodeSelector(
        node_selector_terms=tuple(
            replace(
                term,
                match_expressions=tuple(
                    replace(match_expression, key=new_key) if match_expression.key == old_key else match_expression
                    for match_expression in term.match_expressions
                ),
            )
            for term in _terms(selector)
        )
    )


def _narrowed(selector: NodeSelector | None, key: str, zones: Sequence[str]) -> NodeSelector | None:
    """Each term with the zones added; a volume without terms gets one."""
    named = tuple(sorted({zone.strip() for zone in zones if zone.strip()}))
    if not named:
        return selector
    requirement = NodeSelectorRequirement(key=key, operator="In", values=named)
    return NodeSelector(
        node_selector_terms=tuple(
            replace(term, match_expressions=(*term.match_expressions, requirement))
            for term in _terms(selector) or (NodeSelectorTerm(),)
        )
    )


def _terms(selector: NodeSelector | None) -> tuple[NodeSelectorTerm, ...]:
    return selector.node_selector_terms if selector is not None else ()
