"""Nodes, namespaces and leases in a table."""

from __future__ import annotations

from mooring.api import kinds
from mooring.api.document import Document
from mooring.apiserver.kinds.lease import LEASE_TABLE
from mooring.apiserver.kinds.namespace import NAMESPACE_TABLE
from mooring.apiserver.tables.cells import NONE, UNKNOWN, age
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column, wide

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _node(node: Document, now_s: float) -> list[Cell]:
    status = node.get("status") or {}
    system: Document = status.get("nodeInfo") or {}
    architecture = system.get("architecture")
    kernel = system.get("kernelVersion") or UNKNOWN
    return [
        node["metadata"]["name"],
        _status(node, status),
        _roles(node) or NONE,
        age(node, now_s),
        system.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        system.get("osImage") or UNKNOWN,
        f"{kernel} ({architecture})" if architecture else kernel,
        system.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _status(node: Document, status: Document) -> str:
    ready = [each for each in status.get("conditions") or () if each["type"] == "Ready"]
    text = "Unknown"
    if ready:
        text = "Ready" if ready[-1].get("status") == "True" else "NotReady"
    return f"{text},SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else text


def _roles(node: Document) -> str:
    roles = set()
    for key, value in (node["metadata"].get("labels") or {}).items():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == _ROLE_LABEL:
            roles.add(value)
    return ",".join(sorted(role for role in roles if role))


def _address(status: Document, type_name: str) -> str:
    for address in status.get("addresses") or ():
        if address["type"] == type_name:
            return str(address["address"])
    return NONE


NODE_TABLE = KindTable(
    (
        NAME,
        column("Status", "Whether it can take pods."),
        column("Roles", "What it is there for."),
        AGE,
        column("Version", "Of its kubelet."),
        wide("Internal-IP", "Its first address inside the cluster."),
        wide("External-IP", "Its first address outside of it."),
        wide("OS-Image", "Its operating system."),
        wide("Kernel-Version", "Its kernel."),
        wide("Container-Runtime", "What runs its containers."),
    ),
    _node,
)

TABLES = {
    kinds.NODE: NODE_TABLE,
    kinds.NAMESPACE: NAMESPACE_TABLE,
    kinds.LEASE: LEASE_TABLE,
}
