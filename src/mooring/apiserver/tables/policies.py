"""Configuration, accounts, rights, quotas, classes and devices in a table."""

from __future__ import annotations

from mooring.api import kinds
from mooring.apiserver.kinds.config_map import CONFIG_MAP_TABLE
from mooring.apiserver.kinds.device_class import DEVICE_CLASS_TABLE
from mooring.apiserver.kinds.priority_class import PRIORITY_CLASS_TABLE
from mooring.apiserver.kinds.resource_claim import RESOURCE_CLAIM_TABLE
from mooring.apiserver.kinds.resource_claim_template import RESOURCE_CLAIM_TEMPLATE_TABLE
from mooring.apiserver.kinds.resource_quota import RESOURCE_QUOTA_TABLE
from mooring.apiserver.kinds.resource_slice import RESOURCE_SLICE_TABLE
from mooring.apiserver.kinds.role_binding import CLUSTER_ROLE_BINDING_TABLE, ROLE_BINDING_TABLE
from mooring.apiserver.kinds.runtime_class import RUNTIME_CLASS_TABLE
from mooring.apiserver.kinds.secret import SECRET_TABLE
from mooring.apiserver.kinds.service_account import SERVICE_ACCOUNT_TABLE

TABLES = {
    kinds.CONFIG_MAP: CONFIG_MAP_TABLE,
    kinds.SECRET: SECRET_TABLE,
    kinds.SERVICE_ACCOUNT: SERVICE_ACCOUNT_TABLE,
    kinds.RESOURCE_QUOTA: RESOURCE_QUOTA_TABLE,
    kinds.ROLE_BINDING: ROLE_BINDING_TABLE,
    kinds.CLUSTER_ROLE_BINDING: CLUSTER_ROLE_BINDING_TABLE,
    kinds.PRIORITY_CLASS: PRIORITY_CLASS_TABLE,
    kinds.RUNTIME_CLASS: RUNTIME_CLASS_TABLE,
    kinds.RESOURCE_CLAIM: RESOURCE_CLAIM_TABLE,
    kinds.RESOURCE_CLAIM_TEMPLATE: RESOURCE_CLAIM_TEMPLATE_TABLE,
    kinds.DEVICE_CLASS: DEVICE_CLASS_TABLE,
    kinds.RESOURCE_SLICE: RESOURCE_SLICE_TABLE,
}
