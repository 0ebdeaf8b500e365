"""The nodes of the console: columns of all nodes for the map, and one node in detail.

    4 bytes     the length of the head, little endian
    head        JSON: {"facts": …, "rows": 5, "columns": ["cpu", …], "names": […], "labels": […], "groups": […]}
    columns     one after the other, one byte for each node

1. Shares are percent of the allocatable amount, at most 255. Names and groups are sent only if the client does not
   have them: `facts` identifies a set of nodes with the label by which they are grouped.
2. Names and groups need a pass over all nodes in Python. They are computed after a node has changed, and then used
   again for `REUSED_TIMES` the time that it took. Until then a row of the map may show a node that was replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TypeAlias

import numpy as np

from mooring.api.views.devices import ResourceClaim, ResourceSlice
from mooring.api.views.node import Node
from mooring.api.views.storage import CSINode
from mooring.api.well_known import ZONE, ZONE_BETA
from mooring.kit.clock import Clock
from mooring.scheduler.cache.arrays import Int64s, UInt8s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import CPU, CPU_NON_ZERO, MEMORY, MEMORY_NON_ZERO, PODS
from mooring.scheduler.console.reuse import REUSED_TIMES
from mooring.scheduler.scheduler import Scheduler

PODS_SHOWN_MAX = 500
"""Pods of a node."""
DEVICES_SHOWN_MAX = 500
GROUPS_MAX = 200
"""A label with more values is not offered for grouping, and the nodes beyond are one group."""
LABELS_HELD_MAX = 4
"""Labels whose groups are held."""
CORDONED, TAINTED = 1, 2

Document: TypeAlias = dict[str, object]


@dataclass(frozen=True)
class NodeTable:
    """All nodes at one time."""

    facts: str
    """Identifies names, labels and groups."""
    head: Document
    """Names, labels and groups."""
    group: bytes
    """The place of each node's group in the list of groups."""
    columns: Mapping[str, bytes]
    """By name: the shares of resources, and flags."""

    @cached_property
    def version(self) -> str:
        """Changes with every byte of the table."""
        return f"{self.facts}-{blake2b(b''.join(self.columns.values()), digest_size=12).hexdigest()}"

    def encoded(self, known_facts: str) -> bytes:
        """The table as sent; without names and groups if the client has those of `known_facts`."""
        head: Document = {"facts": self.facts, "rows": len(self.group)}
        columns = self.columns
        if known_facts != self.facts:
            head, columns = head | self.head, {**columns, "group": self.group}
        written = json.dumps(head | {"columns": list(columns)}, ensure_ascii=False).encode()
        return b"".join((len(written).to_bytes(4, "little"), written, *columns.values()))


@dataclass(frozen=True, slots=True)
class _Groups:
    names: list[str]
    group: bytes


class NodeColumns:
    """The columns of the map."""

    def __init__(self, scheduler: Scheduler, clock: Clock) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._started = f"{clock.wall_s():.6f}"
        self._position = -1
        self._until_s = 0.0
        self._rows: Int64s = np.zeros(0, dtype=np.int64)
        self._nodes: list[Node] = []
        self._head: Document = {"names": [], "labels": []}
        self._flags = b""
        self._groups: dict[str, _Groups] = {}
        """By label; those of no label are the zones."""

    def table(self, label: str) -> NodeTable:
        """All nodes, grouped by a label."""
        self._renew()
        if label not in self._groups:
            while len(self._groups) >= LABELS_HELD_MAX:
                del self._groups[next(iter(self._groups))]
            self._groups[label] = _groups([_group(node, label) for node in self._nodes])
        rows, amounts, groups = self._rows, self._scheduler.engine.columns.resources, self._groups[label]
        columns = {
            name: shares(amounts.used[index, rows], amounts.allocatable[index, rows]).tobytes()
            for name, index in (("cpu", CPU), ("memory", MEMORY), ("pods", PODS))
        }
        return NodeTable(
            f"{self._started}-{self._position}-{label}",
            {**self._head, "groups": groups.names},
            groups.group,
            {**columns, "flags": self._flags},
        )

    def _renew(self) -> None:
        columns, now_s = self._scheduler.engine.columns, self._clock.now_s()
        position = columns.fact_changes.position
        if position == self._position or now_s < self._until_s:
            return
        rows = np.flatnonzero(columns.alive[: columns.height])
        self._nodes = [node for row in rows.tolist() if (node := columns.nodes[row]) is not None]
        self._rows, self._position = rows, position
        self._flags = bytes(
            (CORDONED if node.spec.unschedulable else 0) | (TAINTED if node.spec.taints else 0) for node in self._nodes
        )
        self._head = {
            "names": [node.metadata.name for node in self._nodes],
            "labels": _grouping_labels(self._nodes),
        }
        self._groups.clear()
        self._until_s = self._clock.now_s() + REUSED_TIMES * (self._clock.now_s() - now_s)


def node_page(scheduler: Scheduler, name: str) -> Document | None:
    """One node with its pods; None if there is no such node."""
    columns = scheduler.engine.columns
    row = columns.row_of.get(name)
    node = columns.nodes[row] if row is not None else None
    if row is None or node is None:
        return None
    offered, used = columns.resources.at(row)
    resources = [
        {"name": resource, "allocatable": offered[index], "requested": used[index]}
        for index, resource in enumerate(columns.resources.names)
        if index not in (CPU_NON_ZERO, MEMORY_NON_ZERO) and (offered[index] or used[index])
    ]
    pods = sorted(columns.pods_on[row].values(), key=lambda pod: pod.key)
    return {
        "node": name,
        "zone": zone_of(node),
        "unschedulable": bool(columns.unschedulable[row]),
        "resources": resources,
        "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.spec.taints],
        "labels": dict(sorted(node.metadata.labels.items())),
        "podCount": len(pods),
        "pods": [_placed(scheduler, pod) for pod in pods[:PODS_SHOWN_MAX]],
        "volumes": _volumes(columns, name, pods),
        "devices": _devices(columns, name),
    }


def _placed(scheduler: Scheduler, pod: PodInfo) -> Document:
    vector = pod.signature.request_vector
    return {
        "pod": pod.key,
        "priority": pod.priority,
        "cpuMilli": int(vector[CPU]),
        "memory": int(vector[MEMORY]),
        "terminating": pod.terminating,
        "assumed": pod.uid in scheduler.assumed_pods,
    }


def _volumes(columns: Columns, name: str, pods: list[PodInfo]) -> Document:
    """The claims that pods of the node use, and how many volumes of each CSI driver can be attached."""
    csi_node = columns.objects.of(CSINode).get(name)
    drivers = csi_node.spec.drivers if csi_node is not None else ()
    return {
        "claims": [{"claim": claim, "pod": pod.key} for pod in pods for claim in pod.claims][:PODS_SHOWN_MAX],
        "drivers": [
            {"driver": driver.name, "limit": driver.allocatable.count if driver.allocatable is not None else None}
            for driver in drivers
        ],
    }


def _devices(columns: Columns, name: str) -> list[Document]:
    """The devices that drivers publish for the node, and the claims that have them."""
    slices = [
        resource_slice.spec
        for resource_slice in columns.objects.of(ResourceSlice)
        if resource_slice.spec.node_name == name
    ]
    if not slices:
        return []
    claimed: dict[tuple[str, str, str], str] = {}
    for claim in columns.objects.of(ResourceClaim):
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            claimed[result.driver, result.pool, result.device] = claim.key
    devices: list[Document] = [
        {
            "driver": spec.driver,
            "device": device.name,
            "claim": claimed.get((spec.driver, spec.pool.name, device.name), ""),
        }
        for spec in slices
        for device in spec.devices
    ]
    return devices[:DEVICES_SHOWN_MAX]


def _grouping_labels(nodes: list[Node]) -> list[str]:
    """The labels that divide the nodes into groups: more than one value, and at most `GROUPS_MAX`."""
    values: dict[str, set[str]] = {}
    many: set[str] = set()
    for node in nodes:
        for key, value in node.metadata.labels.items():
            if key not in many:
                found = values.setdefault(key, set())
                found.add(value)
                if len(found) > GROUPS_MAX:
                    many.add(key)
    return sorted(key for key, found in values.items() if key not in many and len(found) > 1)


def _groups(group_of: list[str]) -> _Groups:
    names = sorted(set(group_of))[:GROUPS_MAX]
    codes = {group: code for code, group in enumerate(names)}
    other = len(names)
    code_of = [codes.get(group, other) for group in group_of]
    return _Groups([*names, "other values"] if other in code_of else names, bytes(code_of))


def _group(node: Node, label: str) -> str:
    return node.metadata.labels.get(label, "") if label else zone_of(node)


def zone_of(node: Node) -> str:
    labels = node.metadata.labels
    return labels.get(ZONE) or labels.get(ZONE_BETA) or ""


def shares(used: Int64s, allocatable: Int64s) -> UInt8s:
    """Per row: min(255, 100 * used / allocatable); 255 if something is used of nothing."""
    percent = np.where(allocatable > 0, used * 100.0 / np.maximum(allocatable, 1), np.where(used > 0, 255.0, 0.0))
    return np.clip(percent, 0, 255).astype(np.uint8)
