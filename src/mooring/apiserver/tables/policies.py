"""Configuration, accounts, rights, quotas, classes and devices in a table."""

from __future__ import annotations

from mooring.api import kinds
from mooring.api.document import Document
from mooring.apiserver.kinds.priority_class import PRIORITY_CLASS_TABLE
from mooring.apiserver.kinds.role_binding import CLUSTER_ROLE_BINDING_TABLE, ROLE_BINDING_TABLE
from mooring.apiserver.tables.cells import age
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column


def _only_age(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], age(obj, now_s)]


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


def _resource_claim(obj: Document, now_s: float) -> list[Cell]:
    status, is_deleted = obj.get("status") or {}, bool(obj["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if is_deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return [obj["metadata"]["name"], ",".join(states), age(obj, now_s)]


def _resource_slice(obj: Document, now_s: float) -> list[Cell]:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"]["name"],
        spec.get("nodeName") or "",
        spec.get("driver", ""),
        (spec.get("pool") or {}).get("name", ""),
        age(obj, now_s),
    ]


_NAME_AND_AGE = KindTable((NAME, AGE), _only_age)

CONFIG_MAP_TABLE = KindTable((NAME, column("Data", "How many entries it has."), AGE), _config_map)

SECRET_TABLE = KindTable(
    (NAME, column("Type", "What it is for."), column("Data", "How many entries it has."), AGE), _secret
)

SERVICE_ACCOUNT_TABLE = _NAME_AND_AGE

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

RESOURCE_CLAIM_TABLE = KindTable((NAME, column("State", "Whether it has devices and users."), AGE), _resource_claim)

RESOURCE_CLAIM_TEMPLATE_TABLE = _NAME_AND_AGE

DEVICE_CLASS_TABLE = _NAME_AND_AGE

RESOURCE_SLICE_TABLE = KindTable(
    (
        NAME,
        column("Node", "Where its devices are."),
        column("Driver", "Who speaks for them."),
        column("Pool", "The pool that they are of."),
        AGE,
    ),
    _resource_slice,
)

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
