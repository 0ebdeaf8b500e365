"""Dry runs on many nodes at once: what would the filters answer if some pods were there and others were not?

Takes an attempt, rows, and pods to add to and remove from each of them; returns the filters' answers for those rows,
each row as if only it had changed. Preemption tries one node at a time in kube-scheduler; here all candidate rows
change in one transaction and are filtered together. The result is the same:

1. A filter that reads its row alone sees the changes of that row.
2. A filter that counts beyond the row (`Adjustable`) uses its counts from before the transaction, plus what the
   row's own changes add to them. For a pod whose domains are single nodes such a filter reads its row alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, ReasonBits, UInt8s
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.transaction import Transaction
from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.cycle.result_cache import FITS
from mooring.scheduler.framework.plugin import Adjustable, Scope
from mooring.scheduler.framework.profile import FilterUse


class DryRun:
    """A transaction on some rows. Leaving the context rolls it back."""

    def __init__(self, attempt: Attempt, rows: Int64s, filters: Sequence[FilterUse]) -> None:
        self._attempt = attempt
        self._rows = rows
        self._transaction = Transaction(attempt.columns)
        # The answers of filters that read the node alone are cached.
        self._uses = [
            use for use in filters if use.plugin.name in attempt.states and use.plugin.filter_scope is not Scope.NODE
        ]
        self._differences: dict[str, Int64s] = {}
        self._snapshots: dict[str, Any] = {}
        self._adjustables: list[tuple[Adjustable[Any], Any]] = []
        for use in self._uses:
            plugin = use.plugin
            if isinstance(plugin, Adjustable) and plugin.name not in attempt.results.states.filters:
                state = self._snapshots[plugin.name] = plugin.snapshot(attempt.states[plugin.name])
                self._adjustables.append((plugin, state))
                self._differences[plugin.name] = np.zeros((plugin.measures(state), len(rows)), dtype=np.int64)

    def __enter__(self) -> DryRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transaction.rollback()

    def add(self, index: int, pod: PodInfo) -> None:
        """Add a pod to `rows[index]`."""
        self._transaction.place(pod, int(self._rows[index]))
        self._adjust(index, pod, 1)

    def remove(self, index: int, pod: PodInfo) -> None:
        self._transaction.displace(pod)
        self._adjust(index, pod, -1)

    def rejections(self, at: Int64s) -> tuple[UInt8s, Int64s]:
        """Per row: the number of the first filter that rejects it, and its reason bits. `at` indexes the rows."""
        rows, arrays = self._rows[at], self._attempt.results.arrays
        if len(rows) == 1 and not self._adjustables:
            return self._rejection_of_row(int(rows[0]))
        first, bits = arrays.node_first[rows], arrays.node_bits[rows]
        for use in self._uses:
            plugin, asked = use.plugin, (first > use.number).nonzero()[0]
            if not len(asked):
                continue
            if isinstance(plugin, Adjustable) and plugin.name in self._snapshots:
                difference = self._differences[plugin.name][:, at[asked]]
                answer: ReasonBits = plugin.filter_adjusted(self._snapshots[plugin.name], rows[asked], difference)
            else:
                answer = plugin.filter(self._attempt.states[plugin.name], rows[asked])
            is_rejected = answer != 0
            first[asked[is_rejected]] = use.number
            bits[asked[is_rejected]] = answer[is_rejected]
        return first, bits

    def _rejection_of_row(self, row: int) -> tuple[UInt8s, Int64s]:
        arrays = self._attempt.results.arrays
        number, bits = int(arrays.node_first[row]), int(arrays.node_bits[row])
        for use in self._uses:
            if use.number < number:
                answer = use.plugin.filter_row(self._attempt.states[use.plugin.name], row)
                if answer:
                    number, bits = use.number, answer
        return np.array([number], dtype=np.uint8), np.array([bits], dtype=np.int64)

    def rejections_with_nominated_pods(self, at: Int64s) -> tuple[UInt8s, Int64s]:
        """As `rejections`, where each row must take the pod with its nominated pods and without them."""
        added: list[tuple[int, PodInfo]] = []
        columns, pod = self._attempt.columns, self._attempt.pod
        if len(columns.nominations):
            for index in at.tolist():
                for nominated in columns.nominations.on(columns.node_names[self._rows[index]]):
                    if nominated.priority >= pod.priority and nominated.uid != pod.uid:
                        self.add(index, nominated)
                        added.append((index, nominated))
        first, bits = self.rejections(at)
        if not added:
            return first, bits
        for index, nominated in reversed(added):
            self.remove(index, nominated)
        plain_first, plain_bits = self.rejections(at)
        is_rejected = first != FITS
        return np.where(is_rejected, first, plain_first), np.where(is_rejected, bits, plain_bits)

    def _adjust(self, index: int, pod: PodInfo, count: int) -> None:
        row = int(self._rows[index])
        for plugin, state in self._adjustables:
            contribution = plugin.contribution(state, pod, row)
            difference = self._differences[plugin.name]
            for measure, amount in enumerate(contribution):
                if amount:
                    difference[measure, index] += count * amount
