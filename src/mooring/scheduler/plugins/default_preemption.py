"""DefaultPreemption: if a pod fits on no node, find a node where evicting less important pods makes it fit.

Takes a failed attempt. Returns the node and the victims, or a status with the reason for each node.

1. Only nodes with the code Unschedulable are candidates: on nodes that are UnschedulableAndUnresolvable, evicting
   pods changes nothing.
2. The search starts at a random node and stops when enough candidates are known: a tenth of the nodes, at least a
   hundred (both can be configured), but not before one of them violates no disruption budget.
3. The best candidate violates the fewest budgets; then its most important victim is the least important; then the sum
   of priorities is smallest; then the victims are fewest; then they have run for the shortest time.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import numpy as np

from mooring.api.views.workloads import PodDisruptionBudget
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.types import DefaultPreemptionArgs
from mooring.scheduler.framework.diagnosis import Diagnosis, FitError
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, always_skip
from mooring.scheduler.framework.failed_attempt import FailedAttempt
from mooring.scheduler.framework.plugin import PostFilter, PostFilterResult, PreEnqueue
from mooring.scheduler.framework.preemption import Candidates, preemption_failed
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.plugins.victims import CANDIDATE, NOT_HELPFUL, UNKNOWN, Budgets, VictimTable, find_victims

WINDOW_MIN = 64
"""The minimum number of rows examined in one dry run."""
NOT_HELPFUL_REASON = "Preemption is not helpful for scheduling"


class Random(Protocol):
    """The random number generator of the search."""

    def integer_below(self, limit: int) -> int: ...


class Evictions(Protocol):
    """The preemptions whose victims are being evicted."""

    def is_running_for(self, uid: str) -> bool: ...


class DefaultPreemption(PreEnqueue, PostFilter):
    name = "DefaultPreemption"

    def __init__(
        self, columns: Columns, arguments: DefaultPreemptionArgs, entropy: Random, evictions: Evictions
    ) -> None:
        self._columns = columns
        self._arguments = arguments
        self._random = entropy
        self._evictions = evictions
        self._budgets = Budgets(columns.objects.of(PodDisruptionBudget))
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
        table.make_room(self._columns.capacity)
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
        wanted = self._candidates_wanted(len(rows))
        length = min(len(rows), max(2 * wanted, WINDOW_MIN))
        while True:
            window = rows[:length]
            state = table.state[window]
            is_candidate = state == CANDIDATE
            end = _enough(is_candidate, is_candidate & (table.ranks[0, window] == 0), wanted)
            unknown = window[:end][state[:end] == UNKNOWN]
            if len(unknown):
                find_victims(attempt, unknown[: max(wanted, WINDOW_MIN)], self._budgets, table)
            elif end is None and length < len(rows):
                length = min(len(rows), 2 * length)
            else:
                return _listed(window[:end][is_candidate[:end]], table, wanted), window[:end]

    def _candidates_wanted(self, count: int) -> int:
        share = count * self._arguments.min_candidate_nodes_percentage // 100
        return min(max(share, self._arguments.min_candidate_nodes_absolute), count)

    def _table(self, attempt: FailedAttempt) -> VictimTable:
        """The table of the pod's signature, without victims that were found with other disruption budgets."""
        table = attempt.row_cache(VictimTable)
        if table.budgets_version != self._budgets.version:
            table.forget(None)
            table.budgets_version = self._budgets.version
        table.make_room(self._columns.capacity)
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


def _enough(is_candidate: Bools, is_clean: Bools, wanted: int) -> int | None:
    """The number of rows with enough candidates, one of which violates no budget; None: all rows."""
    enough = np.cumsum(is_candidate) >= wanted
    if not wanted or not is_clean.any() or not enough[-1]:
        return None
    return max(int(np.argmax(enough)), int(np.argmax(is_clean))) + 1


def _listed(candidates: Int64s, table: VictimTable, wanted: int) -> Int64s:
    """The candidates that kube-scheduler keeps: up to `wanted` that violate no budget, and as many that do."""
    is_clean = table.ranks[0, candidates] == 0
    return candidates[np.where(is_clean, np.cumsum(is_clean), np.cumsum(~is_clean)) <= wanted]
