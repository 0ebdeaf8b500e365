"""Nodes, namespaces and leases in a table."""

from __future__ import annotations

from mooring.api import kinds
from mooring.apiserver.kinds.lease import LEASE_TABLE
from mooring.apiserver.kinds.namespace import NAMESPACE_TABLE
from mooring.apiserver.kinds.node import NODE_TABLE

TABLES = {
    kinds.NODE: NODE_TABLE,
    kinds.NAMESPACE: NAMESPACE_TABLE,
    kinds.LEASE: LEASE_TABLE,
}
