"""Configuration, accounts, rights, quotas, classes and devices in a table."""

from __future__ import annotations

from mooring.api import kinds
from mooring.api.document import Document
from mooring.apiserver.kinds.device_class import DEVICE_CLASS_TABLE
from mooring.apiserver.kinds.priority_class import PRIORITY_CLASS_TABLE
from mooring.apiserver.kinds.resource_claim import RESOURCE_CLAIM_TABLE
from mooring.apiserver.kinds.resource_claim_template import RESOURCE_CLAIM_TEMPLATE_TABLE
from mooring.apiserver.kinds.resource_slice import RESOURCE_SLICE_TABLE
from mooring.apiserver.kinds.role_binding import CLUSTER_ROLE_BINDING_TABLE, ROLE_BINDING_TABLE
from mooring.apiserver.tables.cells import age
from mooring.apiserver.tables.columns import AGE, NAME, NAME_AND_AGE, Cell, KindTable, column


def _config_map(obj: Document, now_s: float) -> list[Cell]:
    count = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [obj["metadata"]["name"], count, age(obj, now_s)]


def _secret(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], obj.get("type", ""), len(obj.get("data") or ()), age(obj, now_s)]


def _quota(obj: Document, now_s: float) -> list[Cell]:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        text = f"{name}: {used.get(name, '0')}/{hard[name]}"
        (limits if name.startswith("limits.") else requests).append(text)
    return [obj["metadata"]["name"], ", ".join(requests), ", ".join(limits), age(obj, now_s)]


def _runtime_class(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], obj.get("handler", ""), age(obj, now_s)]


CONFIG_MAP_TABLE = KindTable((NAME, column("Data", "How many entries it has."), AGE), _config_map)

SECRET_TABLE = KindTable(
    (NAME, column("Type", "What it is for."), column("Data", "How many entries it has."), AGE), _secret
)

SERVICE_ACCOUNT_TABLE = NAME_AND_AGE

RESOURCE_QUOTA_TABLE = KindTable(
    (
        NAME,
        column("Request", "What is used and allowed, of requests and of objects."),
        column("Limit", "What is used and allowed, of limits."),
        AGE,
    ),
    _quota,
)

RUNTIME_CLASS_TABLE = KindTable((NAME, column("Handler", ""), AGE), _runtime_class)

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
