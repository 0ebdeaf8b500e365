"""The special kinds of storage and of devices."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api import kinds
from mooring.api.kinds import Kind
from mooring.apiserver.kinds.csi_driver import CSIDriverStrategy
from mooring.apiserver.kinds.csi_node import CSINodeStrategy
from mooring.apiserver.kinds.csi_storage_capacity import CSIStorageCapacityStrategy
from mooring.apiserver.kinds.device_class import DeviceClassStrategy
from mooring.apiserver.kinds.resource_claim import ResourceClaimStrategy
from mooring.apiserver.kinds.resource_claim_template import ResourceClaimTemplateStrategy
from mooring.apiserver.kinds.resource_slice import ResourceSliceStrategy
from mooring.apiserver.kinds.storage_class import StorageClassStrategy
from mooring.apiserver.kinds.volume_attachment import VolumeAttachmentStrategy
from mooring.apiserver.kinds.volume_attributes_class import VolumeAttributesClassStrategy
from mooring.apiserver.strategy import Strategy

STRATEGIES: Mapping[Kind, type[Strategy]] = {
    kinds.CSI_DRIVER: CSIDriverStrategy,
    kinds.CSI_NODE: CSINodeStrategy,
    kinds.CSI_STORAGE_CAPACITY: CSIStorageCapacityStrategy,
    kinds.DEVICE_CLASS: DeviceClassStrategy,
    kinds.RESOURCE_CLAIM: ResourceClaimStrategy,
    kinds.RESOURCE_CLAIM_TEMPLATE: ResourceClaimTemplateStrategy,
    kinds.RESOURCE_SLICE: ResourceSliceStrategy,
    kinds.STORAGE_CLASS: StorageClassStrategy,
    kinds.VOLUME_ATTACHMENT: VolumeAttachmentStrategy,
    kinds.VOLUME_ATTRIBUTES_CLASS: VolumeAttributesClassStrategy,
}
