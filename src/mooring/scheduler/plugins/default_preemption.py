"""DefaultPreemption: if a pod fits on no node, find a node where evicting less important pods makes it fit.

Takes a failed attempt. Returns the node and the victims, or a status with the reason for each node.

1. Only nodes with the code Unschedulable are candidates: on nodes that are UnschedulableAndUnresolvable, evicting
   pods changes nothing.
2. The search starts at a random node and stops when enough candidates are known: a tenth of the nodes, at least a
   hundred (both can be configured), but not before one of them violates no disruption budget.
3. The best candidate violates the fewest budgets; then its most important victim is the least important; then the sum
   of priorities is smallest; then the victims are fewest; then they have run for the shortest time.

The victims of a node are the fewest and least important pods whose eviction makes the pod fit. All rows are examined
together in one dry run: remove all pods of lower priority; drop the rows that still reject the pod; add the pods back
one by one, first those that a disruption budget protects, then by importance. A pod whose return makes the filters
reject the row is a victim.

4. The victims of a row hold until the row changes, for all pods of the signature, as long as no cluster-scoped filter
   applies. `VictimTable.forget` is called with the rows that changed.
5. A disruption budget with an empty or invalid selector protects no pod. A pod that the API server is already
   disrupting is not counted again.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import numpy as np

from mooring.api.views.workloads import PodDisruptionBudget
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.arrays import Bools, Float64s, Int64s, UInt8s, grown
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.disruption_budgets import DisruptionBudgets
from mooring.scheduler.cache.pods import NO_START_S, PodInfo
from mooring.scheduler.config.types import DefaultPreemptionArgs
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, always_skip
from mooring.scheduler.framework.plugin import PostFilter, PreEnqueue
from mooring.scheduler.framework.post_filter import (
    Candidates,
    DryRunOfFilters,
    FailedAttempt,
    PostFilterResult,
    Victims,
    preemption_failed,
)
from mooring.scheduler.framework.status import Code, Diagnosis, FitError, Status

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

    def grow(self, capacity: int) -> None:
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


def find_victims(attempt: FailedAttempt, rows: Int64s, budgets: DisruptionBudgets, table: VictimTable) -> None:
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


def _reprieve(
    dry_run: DryRunOfFilters, potential: dict[int, list[PodInfo]], budgets: DisruptionBudgets
) -> dict[int, Victims]:
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


WINDOW_MIN = 64
"""The minimum number of rows examined in one dry run."""
NOT_HELPFUL_REASON = "Preemption is not helpful for scheduling"


class Evictions(Protocol):
    """The preemptions whose victims are being evicted."""

    def is_running_for(self, uid: str) -> bool: ...


class DefaultPreemption(PreEnqueue, PostFilter):
    name = "DefaultPreemption"

    def __init__(
        self, columns: Columns, arguments: DefaultPreemptionArgs, entropy: Entropy, evictions: Evictions
    ) -> None:
        self._columns = columns
        self._arguments = arguments
        self._random = entropy
        self._evictions = evictions
        self._budgets = DisruptionBudgets(columns.objects.of(PodDisruptionBudget))
        self._rows_by_name: Int64s = np.zeros(0, dtype=np.int64)
        self._ordered_at = -1

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Hold the pod back while its victims are being evicted: it would find them still there and preempt again."""
        if self._evictions.is_running_for(pod.uid):
            return Status.unresolvable("waiting for the preemption for this pod to be finished")
        return None

    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult:
        found = self._find_rows(attempt)
        if isinstance(found, PostFilterResult):
            return found
        rows, table = found
        best = table.best(rows)
        return PostFilterResult(self._columns.node_names[best], table.victims[best].pods)

    def find_candidates(self, attempt: FailedAttempt) -> Candidates | PostFilterResult:
        found = self._find_rows(attempt)
        if isinstance(found, PostFilterResult):
            return found
        rows, table = found
        return {self._columns.node_names[row]: table.victims[row] for row in rows.tolist()}

    def select_candidate(self, candidates: Candidates) -> PostFilterResult:
        rows = [self._columns.row_of[name] for name in candidates]
        table = VictimTable()
        table.grow(self._columns.capacity)
        for row, victims in zip(rows, candidates.values(), strict=True):
            table.write_candidate(row, victims)
        best = table.best(np.array(rows, dtype=np.int64))
        return PostFilterResult(self._columns.node_names[best], table.victims[best].pods)

    def _find_rows(self, attempt: FailedAttempt) -> tuple[Int64s, VictimTable] | PostFilterResult:
        """The rows of the candidates, and the table with their victims; a result with a status if there are none."""
        why_not = self._why_not_eligible(attempt)
        if why_not is not None:
            return preemption_failed(Code.UNSCHEDULABLE, why_not)
        table = self._table(attempt)
        if table.no_candidates is not None:
            return table.no_candidates
        candidates, examined = self._search(attempt, self._potential_rows(attempt), table)
        if not len(candidates):
            table.no_candidates = self._not_helpful(examined, table)
            return table.no_candidates
        return candidates, table

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        # The plugins that rejected the pod decide whether the deletion of a victim helps it.
        return (ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, always_skip, per_signature=True),)

    def _why_not_eligible(self, attempt: FailedAttempt) -> str | None:
        pod, columns = attempt.pod, self._columns
        if pod.signature.spec.preemption_policy == "Never":
            return "not eligible due to preemptionPolicy=Never."
        row = columns.row_of.get(pod.nominated_node) if pod.nominated_node else None
        if row is None:
            return None
        code = attempt.code_at(row) if attempt.pre_filter_status is None else attempt.pre_filter_status.code
        if code is Code.UNRESOLVABLE:
            return None
        if any(p.disrupted and p.priority < pod.priority for p in columns.pods_on[row].values()):
            return "not eligible due to a terminating pod on the nominated node."
        return None

    def _potential_rows(self, attempt: FailedAttempt) -> Int64s:
        """The rows where evicting pods might help, by node name, starting at a random one."""
        if attempt.pre_filter_status is None:
            may_help = attempt.is_rejected_with(Code.UNSCHEDULABLE)
        elif attempt.pre_filter_status.code is Code.UNSCHEDULABLE:
            may_help = self._columns.alive[: self._columns.height]
        else:
            return np.zeros(0, dtype=np.int64)
        order = self._order_of_names()
        rows = order[may_help[order]]
        start = self._random.integer_below(len(rows)) if len(rows) > 1 else 0
        return np.concatenate((rows[start:], rows[:start])) if start else rows

    def _search(self, attempt: FailedAttempt, rows: Int64s, table: VictimTable) -> tuple[Int64s, Int64s]:
        """The candidates among the first rows that yield enough of them, and all rows examined for that."""
        num_candidates = self._num_candidates(len(rows))
        length = min(len(rows), max(2 * num_candidates, WINDOW_MIN))
        while True:
            window = rows[:length]
            state = table.state[window]
            is_candidate = state == CANDIDATE
            end = _rows_until_enough(is_candidate, is_candidate & (table.ranks[0, window] == 0), num_candidates)
            unknown = window[:end][state[:end] == UNKNOWN]
            if len(unknown):
                find_victims(attempt, unknown[: max(num_candidates, WINDOW_MIN)], self._budgets, table)
            elif end is None and length < len(rows):
                length = min(len(rows), 2 * length)
            else:
                return _candidates_to_evaluate(window[:end][is_candidate[:end]], table, num_candidates), window[:end]

    def _num_candidates(self, count: int) -> int:
        share = count * self._arguments.min_candidate_nodes_percentage // 100
        return min(max(share, self._arguments.min_candidate_nodes_absolute), count)

    def _table(self, attempt: FailedAttempt) -> VictimTable:
        """The table of the pod's signature, without victims that were found with other disruption budgets."""
        table = attempt.row_cache(VictimTable)
        if table.budgets_version != self._budgets.version:
            table.forget(None)
            table.budgets_version = self._budgets.version
        table.grow(self._columns.capacity)
        return table

    def _not_helpful(self, examined: Int64s, table: VictimTable) -> PostFilterResult:
        statuses = [table.statuses[row] for row in examined.tolist() if table.state[row] == NOT_HELPFUL]
        errors = dict.fromkeys(r for status in statuses if status.code is Code.ERROR for r in status.reasons)
        if errors:
            text = f"[{', '.join(errors)}]" if len(errors) > 1 else next(iter(errors))
            return preemption_failed(Code.ERROR, text)
        counts: Counter[str] = Counter(reason for status in statuses for reason in status.reasons)
        elsewhere = self._columns.node_count - len(statuses)
        if elsewhere:
            counts[NOT_HELPFUL_REASON] += elsewhere
        text = FitError(self._columns.node_count, Diagnosis(counts)).message
        return preemption_failed(Code.UNSCHEDULABLE, text, nominated_node="")

    def _order_of_names(self) -> Int64s:
        """All rows sorted by node name; sorted again only after nodes were added or removed."""
        position = self._columns.fact_changes.position
        if self._ordered_at != position:
            names = self._columns.node_names
            self._rows_by_name = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
            self._ordered_at = position
        return self._rows_by_name


def _rows_until_enough(is_candidate: Bools, is_clean: Bools, num_candidates: int) -> int | None:
    """The number of rows with enough candidates, one of which violates no budget; None: all rows."""
    enough = np.cumsum(is_candidate) >= num_candidates
    if not num_candidates or not is_clean.any() or not enough[-1]:
        return None
    return max(int(np.argmax(enough)), int(np.argmax(is_clean))) + 1


def _candidates_to_evaluate(candidates: Int64s, table: VictimTable, num_candidates: int) -> Int64s:
    """The candidates that kube-scheduler keeps: up to `num_candidates` that violate no budget, and as many that do."""
    is_clean = table.ranks[0, candidates] == 0
    return candidates[np.where(is_clean, np.cumsum(is_clean), np.cumsum(~is_clean)) <= num_candidates]
