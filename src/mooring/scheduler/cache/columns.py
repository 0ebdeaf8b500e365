"""The columns: the believed cluster as a table, one row for each node, one array for each fact.

Comes in   nodes and pods as they appear, change and vanish; assumptions of the scheduling cycle
Goes out   arrays to the plugins, changed rows to whoever keeps answers per row

There is one writer (the scheduler's own loop) and everything happens in one thread, so that a cycle reads the live
table and nothing is copied for it.

 1. A row belongs to one node from the node's arrival to its removal; then it is free for another one. Rows below
    `height` that belong to nobody are not `alive` and are left out of every decision.
 2. What a pod adds when it is placed is exactly what is taken away when it is displaced: every count is a sum over
    the pods of the row. Placing and displacing cost the same whatever the size of the cluster.
 3. Pods bound to a node that nobody knows (yet, or any more) are kept aside and counted nowhere, until it appears.
 4. Inside of a transaction (`transaction`) nothing is logged as changed, and nobody may keep what he computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, cast

import numpy as np

from mooring.api.resources import node_allocatable
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Namespace
from mooring.scheduler.cache.arrays import CAPACITY_MIN, Bools, ChangeLog, Int64s, Rows, capacity_for, grown
from mooring.scheduler.cache.labels import LabelColumns
from mooring.scheduler.cache.nodes import ImageColumns, NodeSelection, TaintColumns
from mooring.scheduler.cache.objects import Objects
from mooring.scheduler.cache.pods import Nominations, PodInfo, PodSignature, SignatureRegistry, signature_key
from mooring.scheduler.cache.ports import PortColumns
from mooring.scheduler.cache.resources import ResourceColumns
from mooring.scheduler.cache.selectors import SelectorColumns
from mooring.scheduler.cache.terms import TermColumns
from mooring.scheduler.cache.volumes import VolumeColumns

Derived = TypeVar("Derived")

PRIORITY_NONE = np.iinfo(np.int64).max
"""The lowest priority of a row without pods: higher than any pod's, so that nobody can preempt there."""


class Columns:
    """The table. Other rooms read its parts; only its methods write."""

    def __init__(self) -> None:
        self.capacity = CAPACITY_MIN
        self.height = 0
        """Rows below this may be in use; arrays are read up to here."""
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
        self.volumes = VolumeColumns()
        self.nominations = Nominations()
        self.objects = Objects()
        self.signatures = SignatureRegistry(self.resources, self.selectors, self.terms)

        self.usage_changes = ChangeLog()
        """Rows whose pods or nominations changed."""
        self.fact_changes = ChangeLog()
        """Rows whose node changed."""
        self.pods: dict[str, PodInfo] = {}
        """All pods with a node, by uid, also those whose node is unknown."""
        self.in_transaction = False
        self._shared: dict[object, object] = {}
        self._homeless: dict[str, dict[str, PodInfo]] = {}
        self._free_rows: list[int] = []
        self._live_rows: Rows | None = None
        self._arrivals = 0
        self.objects.of(Namespace).listen(self._namespace_changed)

    # Nodes

    def put_node(self, node: Node) -> int:
        """Adds a node, or takes over its new facts. Returns its row."""
        row = self.row_of.get(node.metadata.name)
        if row is None:
            return self._add_node(node)
        old = self.nodes[row]
        assert old is not None, f"row {row} belongs to {node.metadata.name} but has no node"
        self.nodes[row] = node
        if _same_facts(old, node):
            return row
        moving = self.labels.changed_columns(row, node.metadata.labels)
        self.selectors.moving(moving, row, -1)
        for pod in self.pods_on[row].values():
            self._carry_terms(pod, row, -1)
        self._set_facts(row, node)
        self.selectors.moving(moving, row, +1)
        for pod in self.pods_on[row].values():
            self._carry_terms(pod, row, +1)
        self.fact_changes.append(row)
        return row

    def remove_node(self, name: str) -> None:
        """Forgets a node. Its pods are kept aside: they may outlive it, or it may come back."""
        row = self.row_of[name]
        for pod in list(self.pods_on[row].values()):
            self.displace(pod)
            self.place(pod, name, homeless=True)
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
        """All rows that belong to a node: a slice while there are no gaps."""
        if self._live_rows is None:
            if self.node_count == self.height:
                self._live_rows = slice(0, self.height)
            else:
                self._live_rows = np.flatnonzero(self.alive[: self.height])
        return self._live_rows

    # Pods

    def record(self, view: Pod) -> PodInfo:
        """A pod as the scheduler remembers it, with the signature that it shares with others of its template."""
        return PodInfo(view, self.signatures.intern(signature_key(view), view))

    def place(self, pod: PodInfo, node_name: str, *, homeless: bool = False) -> None:
        """Counts a pod on a node (or keeps it aside, if nobody knows the node)."""
        assert pod.row < 0, f"{pod} is placed already"
        pod.node_name = node_name
        self.pods[pod.uid] = pod
        row = None if homeless else self.row_of.get(node_name)
        if row is None:
            self._homeless.setdefault(node_name, {})[pod.uid] = pod
            return
        if not pod.arrival:
            self._arrivals += 1
            pod.arrival = self._arrivals
        self.add_to_row(pod, row)
        self.usage_changes.append(row)

    def place_all(self, pods: Iterable[PodInfo]) -> None:
        """Counts many pods, as `place` would one after the other. Those that only add numbers are added by
        signature."""
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
        """Takes a pod off its node."""
        del self.pods[pod.uid]
        if pod.row < 0:
            pods = self._homeless[pod.node_name]
            del pods[pod.uid]
            if not pods:
                del self._homeless[pod.node_name]
            return
        self.usage_changes.append(pod.row)
        self.take_from_row(pod)

    def relabel(self, known: PodInfo, pod: PodInfo) -> None:
        """A placed pod with other labels, or another owner. It takes the same of its node: only who counts pods by
        their labels hears of it, and whoever asks what changed."""
        assert known.row >= 0, f"{known} is on no row"
        assert known.signature.family == pod.signature.family, f"{pod} differs from {known} in more"
        row, before, after = known.row, known.signature, pod.signature
        before.pods_placed -= 1
        after.pods_placed += 1
        self.selectors.place(before.label_class, row, -1, known.terminating)
        self.selectors.place(after.label_class, row, 1, pod.terminating)
        self._carry_terms(known, row, -1)
        self._carry_terms(pod, row, 1)
        pod.node_name, pod.arrival, pod.row, known.row = known.node_name, known.arrival, row, -1
        self.pods[pod.uid] = self.pods_on[row][pod.uid] = pod
        self.usage_changes.append(row)

    def add_to_row(self, pod: PodInfo, row: int) -> None:
        """The sums of one row with one pod more. For `place` and transactions."""
        signature = pod.signature
        if not signature.registered:
            signature = pod.signature = self.signatures.current(signature)
        pod.row = row
        signature.pods_placed += 1
        self.pods_on[row][pod.uid] = pod
        self.resources.add(row, signature.request_vector)
        self.selectors.place(signature.label_class, row, 1, pod.terminating)
        if signature.terms:
            self._carry_terms(pod, row, 1)
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
            self._carry_terms(pod, row, -1)
        if signature.host_ports:
            self.ports.free(row, signature.host_ports)
        if pod.volumes:
            self.volumes.displace(pod, row)
        if signature.priority == self.priority_lowest[row]:
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
        """What several plugins derive from the table: one `kind(columns)`, made when it is first asked for."""
        if kind not in self._shared:
            self._shared[kind] = kind(self)
        return cast("Derived", self._shared[kind])

    def rows_named(self, names: Iterable[str]) -> Int64s:
        """The rows of the nodes with these names that exist, ascending."""
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
        for pod in self._homeless.pop(name, {}).values():
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

    def _carry_terms(self, pod: PodInfo, row: int, count: int) -> None:
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


def _same_facts(old: Node, new: Node) -> bool:
    """Whether nothing changed that a plugin could see: most updates of a node are heartbeats."""
    return (
        old.metadata.labels == new.metadata.labels
        and old.metadata.annotations == new.metadata.annotations
        and old.spec == new.spec
        and old.status.allocatable == new.status.allocatable
        and old.status.images == new.status.images
        and old.status.declared_features == new.status.declared_features
        and old.status.volumes_attached == new.status.volumes_attached
    )
