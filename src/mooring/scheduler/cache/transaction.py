"""A transaction on the columns: change them, look, and undo everything.

Preemption, dry runs, explanations and plans place and displace pods in a transaction. `rollback` restores the columns
exactly, by an undo log.

1. One transaction at a time, and nothing else writes to the columns while it is open.
2. Nothing is copied for a node until the transaction changes it; then its list of pods is, to restore its order.
3. Nothing is logged as changed, so nothing that is computed inside may be cached.
"""

from __future__ import annotations

from types import TracebackType

from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.ports import HostPort


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
