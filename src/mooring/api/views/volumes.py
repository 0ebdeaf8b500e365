"""Volume sources of pods and persistent volumes, and the spec of claims.

1. A source is here if a scheduling rule reads it, or if the translation from in-tree volumes to CSI needs it. Config
   maps, secrets, projected and host path volumes restrict no node, so they have no class.
"""

from collections.abc import Mapping

from msgspec import field

from mooring.api.views.base import Int32, ResourceList, View
from mooring.api.views.meta import NO_METADATA, ObjectMeta
from mooring.api.views.selectors import LabelSelector


class VolumeResourceRequirements(View):
    requests: ResourceList = field(default_factory=dict)
    limits: ResourceList = field(default_factory=dict)


class TypedObjectReference(View):
    """The data source of a claim: a snapshot, another claim, or a custom object."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None


class PersistentVolumeClaimSpec(View):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    data_source: TypedObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None


class PersistentVolumeClaimTemplate(View):
    metadata: ObjectMeta = NO_METADATA
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(View):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class PersistentVolumeClaimVolumeSource(View):
    claim_name: str = ""
    read_only: bool = False


class GCEPersistentDiskVolumeSource(View):
    pd_name: str = ""
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(View):
    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AzureDiskVolumeSource(View):
    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    caching_mode: str | None = None
    fs_type: str | None = None
    read_only: bool | None = None
    kind: str | None = None


class AzureFileVolumeSource(View):
    """Of a pod or of a volume: only the latter may name the secret's namespace."""

    secret_name: str = ""
    secret_namespace: str | None = None
    share_name: str = ""
    read_only: bool = False


class CinderVolumeSource(View):
    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class PortworxVolumeSource(View):
    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class VsphereVirtualDiskVolumeSource(View):
    volume_path: str = ""
    fs_type: str = ""
    storage_policy_name: str = ""
    storage_policy_id: str = field(default="", name="storagePolicyID")


class RBDVolumeSource(View):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class ISCSIVolumeSource(View):
    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class CSIVolumeSource(View):
    """An inline CSI volume of a pod."""

    driver: str = ""
    read_only: bool | None = None
    fs_type: str | None = None


class CSIPersistentVolumeSource(View):
    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: Mapping[str, str] = field(default_factory=dict)


class ImageVolumeSource(View):
    reference: str = ""


class LocalVolumeSource(View):
    path: str = ""
    fs_type: str | None = None


class NFSVolumeSource(View):
    server: str = ""
    path: str = ""
    read_only: bool = False


class HostPathVolumeSource(View):
    path: str = ""
    type: str | None = None


class Volume(View):
    """A volume of a pod: a name and at most one source (none of those below: one that binds to no node)."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    image: ImageVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
