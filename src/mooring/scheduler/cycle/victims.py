"""Victims: per node, the fewest and least important pods whose eviction makes room for a pod.

Takes a failed attempt and the rows where removing pods could help; fills a `VictimBook` with the victims of each row
and the numbers by which candidates are ranked, or with the reason why there are none.

All rows are examined together (see `dry_run`): remove all pods of lower priority; drop the rows that still reject the
pod; add the pods back one by one, pods that a disruption budget protects first, then by importance. A pod whose return
makes the row reject is a victim.

1. What was found on a row holds until the row changes, for all pods of the signature, as long as no cluster-scoped
   filter applies. `forget` is called with the rows that changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mooring.scheduler.cache.arrays import Float64s, Int64s, UInt8s, grown
from mooring.scheduler.cache.pods import NO_START_S, PodInfo
from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.cycle.disruption import Budgets
from mooring.scheduler.cycle.dry_run import DryRun
from mooring.scheduler.cycle.result_cache import FITS
from mooring.scheduler.framework.status import Code, Status, status_of

UNKNOWN = 0
CANDIDATE = 1
HOPELESS = 2

NO_VICTIMS = Status(Code.UNRESOLVABLE, ("No preemption victims found for incoming pod",))
_PRIORITY_OFFSET = 2**31
"""Added to every priority before they are summed, so that fewer victims are better even if priorities are negative."""


class Victims(NamedTuple):
    """Who has to leave a node, most important first, and how many of them break a budget."""

    pods: tuple[PodInfo, ...]
    violations: int


class VictimBook:
    """What is known of each row."""

    def __init__(self) -> None:
        self.state: UInt8s = np.zeros(0, dtype=np.uint8)
        self.ranks: Int64s = np.zeros((4, 0), dtype=np.int64)
        """Less is better: budget violations, highest priority, sum of priorities, number of victims."""
        self.earliest_start_s: Float64s = np.zeros(0)
        """More is better: since when the most important victims have run."""
        self.victims: dict[int, Victims] = {}
        self.statuses: dict[int, Status] = {}
        self.budgets_version = -1
        self.nothing_helps: object = None
        """The answer, once it is known that no row helps; void when any row changes."""

    def make_room(self, capacity: int) -> None:
        self.state = grown(self.state, capacity)
        self.ranks = grown(self.ranks, capacity)
        self.earliest_start_s = grown(self.earliest_start_s, capacity)

    def forget(self, rows: Int64s | None) -> None:
        self.nothing_helps = None
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
        self.state[row] = HOPELESS
        self.statuses[row] = status

    def best_of(self, rows: Int64s) -> int:
        """The candidate that hurts least; the first of several that are equal."""
        for line in self.ranks:
            values = line[rows]
            rows = rows[values == values.min()]
        starts = self.earliest_start_s[rows]
        return int(rows[starts == starts.max()][0])


def examine(attempt: Attempt, rows: Int64s, budgets: Budgets, book: VictimBook) -> None:
    """Finds the victims on each of these rows, and writes them (or why there are none) into the book."""
    columns, priority = attempt.columns, attempt.pod.priority
    has_victims = columns.priority_lowest[rows] < priority
    for row in rows[~has_victims].tolist():
        book.write_status(row, NO_VICTIMS)
    rows = rows[has_victims]
    if not len(rows):
        return
    potential = [[p for p in columns.pods_on[row].values() if p.priority < priority] for row in rows.tolist()]
    with DryRun(attempt, rows, attempt.profile.filters) as experiment:
        for index, pods in enumerate(potential):
            for pod in pods:
                experiment.remove(index, pod)
        first, bits = experiment.rejections_with_nominated_pods(np.arange(len(rows)))
        for index in np.flatnonzero(first != FITS).tolist():
            use = attempt.profile.filters[first[index]]
            status = status_of(use.plugin.name, int(bits[index]), attempt.reasons_of(use))
            book.write_status(int(rows[index]), status)
        fitting = np.flatnonzero(first == FITS).tolist()
        found = _reprieve(experiment, {index: potential[index] for index in fitting}, budgets)
    names = columns.node_names
    for index, victims in found.items():
        row = int(rows[index])
        if victims.pods:
            book.write_candidate(row, victims)
        else:
            text = f'expected at least one victim pod on node "{names[row]}"'
            book.write_status(row, Status(Code.ERROR, (text,)))


def _reprieve(experiment: DryRun, potential: dict[int, list[PodInfo]], budgets: Budgets) -> dict[int, Victims]:
    """Lets back whoever may stay, row by row in lockstep; the others are the victims."""
    orders: dict[int, tuple[list[PodInfo], int]] = {}
    for index, pods in potential.items():
        violating, others = budgets.split(sorted(pods, key=importance_key))
        orders[index] = (violating + others, len(violating))
    victims: dict[int, list[PodInfo]] = {index: [] for index in potential}
    violations = dict.fromkeys(potential, 0)
    for step in range(max((len(order) for order, _ in orders.values()), default=0)):
        at = np.array([index for index, (order, _) in orders.items() if step < len(order)], dtype=np.int64)
        for index in at.tolist():
            experiment.add(index, orders[index][0][step])
        first, _ = experiment.rejections_with_nominated_pods(at)
        for index in at[first != FITS].tolist():
            order, violating_count = orders[index]
            experiment.remove(index, order[step])
            victims[index].append(order[step])
            violations[index] += step < violating_count
    return {
        index: Victims(tuple(sorted(pods, key=importance_key)), violations[index]) for index, pods in victims.items()
    }


def importance_key(pod: PodInfo) -> tuple[int, bool, float, int]:
    """Sorts the most important pod first: by priority, then by how long it has run; not started yet counts least."""
    if pod.start_s == NO_START_S:
        return (-pod.priority, True, 0.0, -pod.arrival)
    return (-pod.priority, False, pod.start_s, pod.arrival)
