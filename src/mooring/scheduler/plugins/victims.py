"""Victims of preemption: per node, the fewest and least important pods whose eviction makes a pod fit.

Takes a failed attempt and the rows where removing pods could help. Fills a `VictimTable` with the victims of each row
and the numbers by which candidates are ranked, or with the status of the rows where preemption does not help.

All rows are examined together in one dry run: remove all pods of lower priority; drop the rows that still reject the
pod; add the pods back one by one, first those that a disruption budget protects, then by importance. A pod whose
return makes the filters reject the row is a victim.

1. What was found on a row holds until the row changes, for all pods of the signature, as long as no cluster-scoped
   filter applies. `forget` is called with the rows that changed.
2. A disruption budget with an empty or invalid selector protects no pod. A pod that the API server is already
   disrupting is not counted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mooring.api.errors import LabelSelectorError
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.views.workloads import PodDisruptionBudget
from mooring.scheduler.cache.arrays import Float64s, Int64s, UInt8s, grown
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.cache.pods import NO_START_S, PodInfo
from mooring.scheduler.framework.failed_attempt import DryRunOfFilters, FailedAttempt
from mooring.scheduler.framework.plugin import PostFilterResult
from mooring.scheduler.framework.preemption import Victims
from mooring.scheduler.framework.status import Status


class _Budget(NamedTuple):
    namespace: str
    matcher: LabelMatcher
    allowed: int
    disrupted: frozenset[str]


class Budgets:
    """All PodDisruptionBudgets, compiled once for each version of the store."""

    def __init__(self, store: ObjectStore[PodDisruptionBudget]) -> None:
        self._store = store
        self._version = -1
        self._by_namespace: dict[str, list[_Budget]] = {}

    @property
    def version(self) -> int:
        return self._store.version

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """The pods whose eviction violates a budget, if all before them are evicted too, and the others."""
        self._compile()
        left: dict[int, int] = {}
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            violates = False
            for budget in self._by_namespace.get(pod.namespace, ()) if pod.signature.labels else ():
                if pod.name in budget.disrupted or not budget.matcher.matches(pod.signature.labels):
                    continue
                left[id(budget)] = left.get(id(budget), budget.allowed) - 1
                violates = violates or left[id(budget)] < 0
            (violating if violates else others).append(pod)
        return violating, others

    def _compile(self) -> None:
        if self._version == self._store.version:
            return
        self._version = self._store.version
        self._by_namespace = {}
        for budget in self._store:
            try:
                matcher = compile_selector(budget.spec.selector)
            except LabelSelectorError:
                continue
            if not matcher.matches_everything:
                compiled = _Budget(
                    budget.metadata.namespace,
                    matcher,
                    budget.status.disruptions_allowed,
                    frozenset(budget.status.disrupted_pods),
                )
                self._by_namespace.setdefault(compiled.namespace, []).append(compiled)


UNKNOWN = 0
CANDIDATE = 1
NOT_HELPFUL = 2
"""States of a row in the table."""

NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming pod")
_PRIORITY_OFFSET = 2**31
"""Added to every priority before they are summed, so that fewer victims are better even if priorities are negative."""


class VictimTable:
    """The victims of each row, as far as they are known."""

    def __init__(self) -> None:
        self.state: UInt8s = np.zeros(0, dtype=np.uint8)
        self.ranks: Int64s = np.zeros((4, 0), dtype=np.int64)
        """Lower is better: budget violations, highest priority, sum of priorities, number of victims."""
        self.earliest_start_s: Float64s = np.zeros(0)
        """Higher is better: the earliest start of the most important victims."""
        self.victims: dict[int, Victims] = {}
        self.statuses: dict[int, Status] = {}
        self.budgets_version = -1
        self.no_candidates: PostFilterResult | None = None
        """The result if preemption helps on no row; dropped when a row changes."""

    def make_room(self, capacity: int) -> None:
        self.state = grown(self.state, capacity)
        self.ranks = grown(self.ranks, capacity)
        self.earliest_start_s = grown(self.earliest_start_s, capacity)

    def forget(self, rows: Int64s | None) -> None:
        self.no_candidates = None
        if rows is None:
            self.state[:] = UNKNOWN
            self.victims.clear()
            self.statuses.clear()
        else:
            self.state[rows[rows < len(self.state)]] = UNKNOWN

    def write_candidate(self, row: int, victims: Victims) -> None:
        pods = victims.pods
        highest = max(pod.priority for pod in pods)
        self.state[row] = CANDIDATE
        self.victims[row] = victims
        self.ranks[:, row] = (
            victims.violations,
            pods[0].priority,
            sum(pod.priority + _PRIORITY_OFFSET for pod in pods),
            len(pods),
        )
        self.earliest_start_s[row] = min(pod.start_s for pod in pods if pod.priority == highest)

    def write_status(self, row: int, status: Status) -> None:
        self.state[row] = NOT_HELPFUL
        self.statuses[row] = status

    def best(self, rows: Int64s) -> int:
        """The best candidate; the first of several that are equal."""
        for line in self.ranks:
            values = line[rows]
            rows = rows[values == values.min()]
        starts = self.earliest_start_s[rows]
        return int(rows[starts == starts.max()][0])


def find_victims(attempt: FailedAttempt, rows: Int64s, budgets: Budgets, table: VictimTable) -> None:
    """Find the victims on each of these rows, and write them, or the status of the row, into the table."""
    columns, priority = attempt.columns, attempt.pod.priority
    has_victims = columns.priority_lowest[rows] < priority
    for row in rows[~has_victims].tolist():
        table.write_status(row, NO_VICTIMS)
    rows = rows[has_victims]
    if not len(rows):
        return
    potential = [[p for p in columns.pods_on[row].values() if p.priority < priority] for row in rows.tolist()]
    with attempt.dry_run(rows) as dry_run:
        for index, pods in enumerate(potential):
            for pod in pods:
                dry_run.remove(index, pod)
        statuses = dry_run.statuses(np.arange(len(rows)))
        for index, status in statuses.items():
            table.write_status(int(rows[index]), status)
        fitting = {index: pods for index, pods in enumerate(potential) if index not in statuses}
        found = _reprieve(dry_run, fitting, budgets)
    for index, victims in found.items():
        row = int(rows[index])
        if victims.pods:
            table.write_candidate(row, victims)
        else:
            text = f'expected at least one victim pod on node "{columns.node_names[row]}"'
            table.write_status(row, Status.error(text))


def _reprieve(dry_run: DryRunOfFilters, potential: dict[int, list[PodInfo]], budgets: Budgets) -> dict[int, Victims]:
    """Add the pods back one by one, on all rows at the same time. Those that the filters reject are the victims."""
    orders: dict[int, tuple[list[PodInfo], int]] = {}
    for index, pods in potential.items():
        violating, others = budgets.split(sorted(pods, key=importance_key))
        orders[index] = (violating + others, len(violating))
    victims: dict[int, list[PodInfo]] = {index: [] for index in potential}
    violations = dict.fromkeys(potential, 0)
    for step in range(max((len(order) for order, _ in orders.values()), default=0)):
        at = np.array([index for index, (order, _) in orders.items() if step < len(order)], dtype=np.int64)
        for index in at.tolist():
            dry_run.add(index, orders[index][0][step])
        for index in at[dry_run.is_rejected(at)].tolist():
            order, violating_count = orders[index]
            dry_run.remove(index, order[step])
            victims[index].append(order[step])
            violations[index] += step < violating_count
    return {
        index: Victims(tuple(sorted(pods, key=importance_key)), violations[index]) for index, pods in victims.items()
    }


def importance_key(pod: PodInfo) -> tuple[int, bool, float, int]:
    """Sorts the most important pod first: by priority, then by start time; a pod that has not started comes last."""
    if pod.start_s == NO_START_S:
        return (-pod.priority, True, 0.0, -pod.arrival)
    return (-pod.priority, False, pod.start_s, pod.arrival)
