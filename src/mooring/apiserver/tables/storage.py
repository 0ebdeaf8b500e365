"""Volumes, claims and storage classes in a table."""

from __future__ import annotations

from mooring.api import kinds
from mooring.apiserver.kinds.csi_driver import CSI_DRIVER_TABLE
from mooring.apiserver.kinds.csi_node import CSI_NODE_TABLE
from mooring.apiserver.kinds.persistent_volume import PERSISTENT_VOLUME_TABLE
from mooring.apiserver.kinds.persistent_volume_claim import PERSISTENT_VOLUME_CLAIM_TABLE
from mooring.apiserver.kinds.storage_class import STORAGE_CLASS_TABLE
from mooring.apiserver.kinds.volume_attachment import VOLUME_ATTACHMENT_TABLE
from mooring.apiserver.kinds.volume_attributes_class import VOLUME_ATTRIBUTES_CLASS_TABLE

TABLES = {
    kinds.PERSISTENT_VOLUME: PERSISTENT_VOLUME_TABLE,
    kinds.PERSISTENT_VOLUME_CLAIM: PERSISTENT_VOLUME_CLAIM_TABLE,
    kinds.STORAGE_CLASS: STORAGE_CLASS_TABLE,
    kinds.VOLUME_ATTRIBUTES_CLASS: VOLUME_ATTRIBUTES_CLASS_TABLE,
    kinds.VOLUME_ATTACHMENT: VOLUME_ATTACHMENT_TABLE,
    kinds.CSI_NODE: CSI_NODE_TABLE,
    kinds.CSI_DRIVER: CSI_DRIVER_TABLE,
}
