"""The columns: nodes and pods as a table, with one row for each node and one array for each property.

Input: nodes, pods and other objects as they change; assumed pods. Output: arrays for plugins, changed rows for caches.

The scheduler's loop is the only writer, in one thread. So a scheduling cycle reads the live columns without a copy.

1. A row belongs to one node until the node is removed. Then another node may use it. Rows below `height` without a node
   are not `alive`, and no decision reads them.
2. Every count is a sum over the pods of a row: `displace` subtracts exactly what `place` has added. Both have a cost
   that does not depend on the size of the cluster.
3. Pods whose node does not exist are stored without a row, and counted when it is created.

A `Transaction` places and displaces pods for preemption, dry runs and explanations, and rolls back by an undo log.

4. There is one transaction at a time, and nothing else writes to the columns while it is open.
5. The pods of a row are copied when the transaction first changes the row, to restore their order.
6. Inside a transaction changes are not logged, and results must not be cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TypeVar, cast

import numpy as np

from mooring.api.resources import node_allocatable
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Namespace
from mooring.scheduler.cache.arrays import CAPACITY_MIN, Bools, ChangeLog, Int64s, Rows, capacity_for, grown
from mooring.scheduler.cache.nodes import ImageColumns, LabelColumns, NodeSelection, TaintColumns
from mooring.scheduler.cache.objects import ObjectStores
from mooring.scheduler.cache.pods import Nominations, PodInfo, PodSignature, SignatureRegistry, signature_key
from mooring.scheduler.cache.resources import HostPort, PortColumns, ResourceColumns
from mooring.scheduler.cache.selectors import SelectorColumns, TermColumns
from mooring.scheduler.cache.volumes import VolumeColumns

Derived = TypeVar("Derived")

PRIORITY_NONE = np.iinfo(np.int64).max
"""Lowest priority of a row without pods: higher than any pod's, so that no pod can preempt there."""


class Columns:
    """The columns. Other packages read them; only these methods write."""

    def __init__(self) -> None:
        self.capacity = CAPACITY_MIN
        self.height = 0
        """Rows below `height` may be in use. Arrays are read up to it."""
        self.node_count = 0
        self.row_of: dict[str, int] = {}
        self.node_names: list[str] = []
        self.nodes: list[Node | None] = []
        self.pods_on: list[dict[str, PodInfo]] = []
        self.alive: Bools = np.zeros(self.capacity, dtype=np.bool_)
        self.unschedulable: Bools = np.zeros(self.capacity, dtype=np.bool_)
        self.priority_lowest: Int64s = np.full(self.capacity, PRIORITY_NONE, dtype=np.int64)

        self.resources = ResourceColumns(self.capacity)
        self.labels = LabelColumns(self.capacity)
        self.node_selection = NodeSelection(self.labels, self.row_of)
        self.taints = TaintColumns(self.capacity)
        self.images = ImageColumns()
        self.ports = PortColumns()
        self.selectors = SelectorColumns(self.capacity)
        self.terms = TermColumns(self.labels, self.selectors, self.namespace_labels)
        self.volumes = VolumeColumns(self)
        self.nominations = Nominations()
        self.objects = ObjectStores()
        self.signatures = SignatureRegistry(self.resources, self.selectors, self.terms)

        self.usage_changes = ChangeLog()
        """Rows whose pods or nominated pods changed."""
        self.fact_changes = ChangeLog()
        """Rows whose node changed."""
        self.pods: dict[str, PodInfo] = {}
        """All pods with a node name, by uid, also those whose node does not exist."""
        self.in_transaction = False
        self._shared: dict[object, object] = {}
        self._pods_without_node: dict[str, dict[str, PodInfo]] = {}
        self._free_rows: list[int] = []
        self._live_rows: Rows | None = None
        self._arrivals = 0
        self.objects.of(Namespace).listen(self._namespace_changed)

    # Nodes

    def put_node(self, node: Node) -> int:
        """Adds or updates a node. Returns its row."""
        row = self.row_of.get(node.metadata.name)
        if row is None:
            return self._add_node(node)
        old = self.nodes[row]
        assert old is not None, f"row {row} belongs to {node.metadata.name} but has no node"
        self.nodes[row] = node
        if _same_facts(old, node):
            return row
        changed = self.labels.changed_columns(row, node.metadata.labels)
        self.selectors.move_row(changed, row, -1)
        for pod in self.pods_on[row].values():
            self._count_terms(pod, row, -1)
        self._set_facts(row, node)
        self.selectors.move_row(changed, row, +1)
        for pod in self.pods_on[row].values():
            self._count_terms(pod, row, +1)
        self.fact_changes.append(row)
        return row

    def remove_node(self, name: str) -> None:
        """Removes a node. Its pods are stored without a row, since the node may be created again."""
        row = self.row_of[name]
        for pod in list(self.pods_on[row].values()):
            self.displace(pod)
            self.place(pod, name, without_node=True)
        del self.row_of[name]
        self.nodes[row] = None
        self.node_names[row] = ""
        self.alive[row] = False
        self.unschedulable[row] = False
        self.labels.clear(row)
        self.taints.clear(row)
        self.images.clear(row)
        self.resources.clear(row)
        self.node_count -= 1
        self._free_rows.append(row)
        self._live_rows = None
        self.fact_changes.append(row)

    @property
    def live_rows(self) -> Rows:
        """All rows with a node: a slice while there are no gaps."""
        if self._live_rows is None:
            if self.node_count == self.height:
                self._live_rows = slice(0, self.height)
            else:
                self._live_rows = np.flatnonzero(self.alive[: self.height])
        return self._live_rows

    # Pods

    def record(self, view: Pod) -> PodInfo:
        """The `PodInfo` of a pod, with the signature that it shares with other pods of its template."""
        return PodInfo(view, self.signatures.intern(signature_key(view), view))

    def place(self, pod: PodInfo, node_name: str, *, without_node: bool = False) -> None:
        """Adds a pod to its node's row, or stores it without a row if the node does not exist."""
        assert pod.row < 0, f"{pod} is placed already"
        pod.node_name = node_name
        self.pods[pod.uid] = pod
        row = None if without_node else self.row_of.get(node_name)
        if row is None:
            self._pods_without_node.setdefault(node_name, {})[pod.uid] = pod
            return
        if not pod.arrival:
            self._arrivals += 1
            pod.arrival = self._arrivals
        self.add_to_row(pod, row)
        self.usage_changes.append(row)

    def place_all(self, pods: Iterable[PodInfo]) -> None:
        """Adds many pods, with the result of `place` for each. Pods that only change sums are added by signature."""
        rows_by_signature: dict[PodSignature, list[int]] = {}
        for pod in pods:
            row, signature = self.row_of.get(pod.node_name), pod.signature
            is_plain = signature.registered and not (
                signature.terms or signature.host_ports or pod.volumes or pod.terminating
            )
            if row is None or not is_plain or pod.arrival:
                self.place(pod, pod.node_name)
                continue
            self._arrivals += 1
            pod.arrival, pod.row = self._arrivals, row
            self.pods[pod.uid] = self.pods_on[row][pod.uid] = pod
            rows_by_signature.setdefault(signature, []).append(row)
        for signature, rows in rows_by_signature.items():
            signature.pods_placed += len(rows)
            self.resources.add_all(rows, signature.request_vector)
            self.selectors.place_all(signature.label_class, rows)
            np.minimum.at(self.priority_lowest, rows, signature.priority)
            self.usage_changes.extend(rows)

    def displace(self, pod: PodInfo) -> None:
        """Removes a pod from its node."""
        del self.pods[pod.uid]
        if pod.row < 0:
            pods = self._pods_without_node[pod.node_name]
            del pods[pod.uid]
            if not pods:
                del self._pods_without_node[pod.node_name]
            return
        self.usage_changes.append(pod.row)
        self.take_from_row(pod)

    def relabel(self, known: PodInfo, pod: PodInfo) -> None:
        """Replaces a placed pod by one with other labels or another owner. Only counts by labels change."""
        assert known.row >= 0, f"{known} is on no row"
        assert known.signature.spec_key == pod.signature.spec_key, f"{pod} differs from {known} in more"
        row, before, after = known.row, known.signature, pod.signature
        before.pods_placed -= 1
        after.pods_placed += 1
        self.selectors.place(before.label_class, row, -1, known.terminating)
        self.selectors.place(after.label_class, row, 1, pod.terminating)
        self._count_terms(known, row, -1)
        self._count_terms(pod, row, 1)
        pod.node_name, pod.arrival, pod.row, known.row = known.node_name, known.arrival, row, -1
        self.pods[pod.uid] = self.pods_on[row][pod.uid] = pod
        self.usage_changes.append(row)

    def add_to_row(self, pod: PodInfo, row: int) -> None:
        """Adds a pod to the sums of a row. For `place` and transactions."""
        signature = pod.signature
        if not signature.registered:
            signature = pod.signature = self.signatures.current(signature)
        pod.row = row
        signature.pods_placed += 1
        self.pods_on[row][pod.uid] = pod
        self.resources.add(row, signature.request_vector)
        self.selectors.place(signature.label_class, row, 1, pod.terminating)
        if signature.terms:
            self._count_terms(pod, row, 1)
        if signature.host_ports:
            self.ports.take(row, signature.host_ports)
        if pod.volumes:
            self.volumes.place(pod, row)
        if signature.priority < self.priority_lowest[row]:
            self.priority_lowest[row] = signature.priority

    def take_from_row(self, pod: PodInfo) -> None:
        """The exact reverse of `add_to_row`."""
        signature, row = pod.signature, pod.row
        pods = self.pods_on[row]
        del pods[pod.uid]
        signature.pods_placed -= 1
        self.resources.take(row, signature.request_vector)
        self.selectors.place(signature.label_class, row, -1, pod.terminating)
        if signature.terms:
            self._count_terms(pod, row, -1)
        if signature.host_ports:
            self.ports.free(row, signature.host_ports)
        if pod.volumes:
            self.volumes.displace(pod, row)
        if signature.priority == self.priority_lowest[row] and not _has_priority(pods.values(), signature.priority):
            self.priority_lowest[row] = min((p.signature.priority for p in pods.values()), default=PRIORITY_NONE)
        pod.row = -1

    # Nominations

    def nominate(self, pod: PodInfo, node_name: str) -> None:
        self.withdraw(pod)
        self.nominations.add(pod, node_name)
        self._nominations_changed(node_name)

    def withdraw(self, pod: PodInfo) -> None:
        node_name = self.nominations.remove(pod)
        if node_name is not None:
            self._nominations_changed(node_name)

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        found = self.objects.of(Namespace).get(namespace)
        return found.metadata.labels if found is not None else {}

    def shared(self, kind: Callable[[Columns], Derived]) -> Derived:
        """An object that several plugins share: one `kind(columns)`, created on first use."""
        if kind not in self._shared:
            self._shared[kind] = kind(self)
        return cast("Derived", self._shared[kind])

    def rows_named(self, names: Iterable[str]) -> Int64s:
        """The rows of the existing nodes with these names, ascending."""
        rows = (self.row_of.get(name) for name in names)
        return np.array(sorted({row for row in rows if row is not None}), dtype=np.int64)

    def _add_node(self, node: Node) -> int:
        name = node.metadata.name
        row = self._free_rows.pop() if self._free_rows else self._new_row()
        self.row_of[name] = row
        self.node_names[row] = name
        self.nodes[row] = node
        self.alive[row] = True
        self.node_count += 1
        self._live_rows = None
        self._set_facts(row, node)
        self.fact_changes.append(row)
        for pod in self._pods_without_node.pop(name, {}).values():
            self.place(pod, name)
        return row

    def _new_row(self) -> int:
        row = self.height
        if row == self.capacity:
            self._grow(capacity_for(row + 1))
        self.height += 1
        self.node_names.append("")
        self.nodes.append(None)
        self.pods_on.append({})
        return row

    def _set_facts(self, row: int, node: Node) -> None:
        self.labels.set(row, node.metadata.labels)
        self.taints.set(row, node.spec.taints)
        self.images.set(row, node.status.images)
        self.unschedulable[row] = node.spec.unschedulable
        self.resources.set_allocatable(row, node_allocatable(node))

    def _count_terms(self, pod: PodInfo, row: int, count: int) -> None:
        for term in pod.signature.terms:
            term.place(row, count)

    def _nominations_changed(self, node_name: str) -> None:
        row = self.row_of.get(node_name)
        if row is not None:
            self.usage_changes.append(row)

    def _namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        before = old.metadata.labels if old is not None else {}
        after = new.metadata.labels if new is not None else {}
        changed = new or old
        if before != after and changed is not None:
            self.selectors.rematch_namespace(changed.metadata.name)

    def _grow(self, capacity: int) -> None:
        self.capacity = capacity
        self.alive = grown(self.alive, capacity)
        self.unschedulable = grown(self.unschedulable, capacity)
        self.priority_lowest = grown(self.priority_lowest, capacity, fill=PRIORITY_NONE)
        self.resources.grow(capacity)
        self.labels.grow(capacity)
        self.taints.grow(capacity)
        self.selectors.grow(capacity)


def _has_priority(pods: Iterable[PodInfo], priority: int) -> bool:
    """Whether any of the pods has this priority: usually the first one does."""
    for pod in pods:  # noqa: SIM110 - a generator costs more than the test
        if pod.signature.priority == priority:
            return True
    return False


def _same_facts(old: Node, new: Node) -> bool:
    """Whether nothing changed that plugins read. Most updates of a node are heartbeats."""
    return (
        old.metadata.labels == new.metadata.labels
        and old.metadata.annotations == new.metadata.annotations
        and old.spec == new.spec
        and old.status.allocatable == new.status.allocatable
        and old.status.images == new.status.images
        and old.status.declared_features == new.status.declared_features
        and old.status.volumes_attached == new.status.volumes_attached
    )


class Transaction:
    """An open transaction. A context manager: leaving it rolls back."""

    __slots__ = ("_columns", "_steps", "_touched")

    def __init__(self, columns: Columns) -> None:
        assert not columns.in_transaction, "one transaction at a time: another one is still open"
        columns.in_transaction = True
        self._columns = columns
        self._steps: list[tuple[PodInfo, int, bool, tuple[HostPort, ...], str]] = []
        self._touched: dict[int, dict[str, PodInfo]] = {}

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.rollback()

    def place(self, pod: PodInfo, row: int) -> None:
        columns = self._columns
        self._touch(row)
        self._steps.append((pod, row, True, self._taken_ports(pod, row), pod.node_name))
        pod.node_name = columns.node_names[row]
        columns.add_to_row(pod, row)

    def displace(self, pod: PodInfo) -> None:
        row = pod.row
        self._touch(row)
        self._steps.append((pod, row, False, self._taken_ports(pod, row), pod.node_name))
        self._columns.take_from_row(pod)

    def rollback(self) -> None:
        columns = self._columns
        while self._steps:
            pod, row, placed, taken_before, node_name = self._steps.pop()
            if placed:
                columns.take_from_row(pod)
            else:
                columns.add_to_row(pod, row)
            pod.node_name = node_name
            columns.ports.free(row, pod.signature.host_ports)
            columns.ports.take(row, taken_before)
        for row, pods in self._touched.items():
            columns.pods_on[row] = pods
        self._touched.clear()
        columns.in_transaction = False

    def _touch(self, row: int) -> None:
        if row not in self._touched:
            self._touched[row] = self._columns.pods_on[row]
            self._columns.pods_on[row] = dict(self._columns.pods_on[row])

    def _taken_ports(self, pod: PodInfo, row: int) -> tuple[HostPort, ...]:
        ports = pod.signature.host_ports
        return self._columns.ports.taken_of(row, ports) if ports else ()
