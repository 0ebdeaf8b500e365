"""DefaultPreemption: when no node can take a pod, find one where evicting less important pods would help.

Comes in   an attempt without feasible nodes
Goes out   the node and its victims, or why preemption does not help, node by node

 1. Only nodes that refused with "unschedulable" come into question: where the refusal is for good, evicting pods
    changes nothing.
 2. The search starts at a random node and stops when enough candidates are known: a tenth of the nodes, at least a
    hundred (both can be configured), but never before one that violates no disruption budget is among them.
 3. The best candidate violates the fewest budgets; then its most important victim is the least important; then the
    sum of priorities is smallest; then the victims are fewest; then they have run for the shortest time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from mooring.api.views.workloads import PodDisruptionBudget
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.types import DefaultPreemptionArgs
from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.cycle.diagnosis import unavailable_text
from mooring.scheduler.cycle.disruption import Budgets
from mooring.scheduler.cycle.victims import CANDIDATE, HOPELESS, UNKNOWN, VictimBook, examine
from mooring.scheduler.extenders.extender import Extender, ExtenderFailure
from mooring.scheduler.extenders.questions import Consultation, consult_about_victims
from mooring.scheduler.framework.events import Action, Subject, Wake
from mooring.scheduler.framework.hints import never
from mooring.scheduler.framework.plugin import FailedAttempt, PostFilter, PostFilterResult, PreEnqueue
from mooring.scheduler.framework.status import Code, Status

WINDOW_MIN = 64
"""At least so many rows are looked at in one go."""
NOT_HELPFUL = "Preemption is not helpful for scheduling"


class Die(Protocol):
    """The chance that the search needs."""

    def integer_below(self, limit: int) -> int: ...


class Evictions(Protocol):
    """For whom preemption is making room."""

    def is_running_for(self, uid: str) -> bool: ...


class DefaultPreemption(PreEnqueue, PostFilter):
    name = "DefaultPreemption"

    def __init__(self, columns: Columns, arguments: DefaultPreemptionArgs, entropy: Die, evictions: Evictions) -> None:
        self._columns = columns
        self._arguments = arguments
        self._die = entropy
        self._evictions = evictions
        self._budgets = Budgets(columns.objects.of(PodDisruptionBudget))
        self._rows_by_name: Int64s = np.zeros(0, dtype=np.int64)
        self._ordered_at = -1

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """While its victims are being evicted, the pod would find them still there, and preempt again."""
        if self._evictions.is_running_for(pod.uid):
            return Status.unresolvable("waiting for the preemption for this pod to be finished")
        return None

    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult:
        assert isinstance(attempt, Attempt), f"preemption needs an attempt of the cycle, not {attempt!r}"
        found = self._candidates(attempt)
        if isinstance(found, PostFilterResult):
            return found
        candidates, book = found
        best = book.best_of(candidates)
        return PostFilterResult(self._columns.node_names[best], book.victims[best].pods)

    def post_filter_with_questions(
        self, attempt: Attempt, extenders: Sequence[Extender]
    ) -> Consultation[PostFilterResult]:
        """The same, where extenders may strike candidates off or want other victims."""
        found = self._candidates(attempt)
        if isinstance(found, PostFilterResult):
            return found
        candidates, book = found
        names, row_of = self._columns.node_names, self._columns.row_of
        victims = {names[row]: book.victims[row] for row in candidates.tolist()}
        left = yield from consult_about_victims(attempt.pod, victims, extenders, self._columns)
        if isinstance(left, ExtenderFailure):
            return _unschedulable(Code.ERROR, left.text)
        if not left:
            return _unschedulable(Code.UNSCHEDULABLE, "no candidate node for preemption")
        agreed = VictimBook()
        agreed.make_room(self._columns.capacity)
        for name, wanted in left.items():
            agreed.write_candidate(row_of[name], wanted)
        best = agreed.best_of(np.array([row_of[name] for name in left], dtype=np.int64))
        return PostFilterResult(names[best], agreed.victims[best].pods)

    def _candidates(self, attempt: Attempt) -> tuple[Int64s, VictimBook] | PostFilterResult:
        """The rows where evicting pods helps, and what is known of them; or why there are none."""
        why_not = self._why_not_eligible(attempt)
        if why_not is not None:
            return _unschedulable(Code.UNSCHEDULABLE, why_not)
        book = self._book(attempt)
        if isinstance(book.nothing_helps, PostFilterResult):
            return book.nothing_helps
        rows = self._potential_rows(attempt)
        candidates, examined = self._search(attempt, rows, book)
        if not len(candidates):
            book.nothing_helps = self._not_helpful(examined, book)
            return book.nothing_helps
        return candidates, book

    def wakes(self) -> tuple[Wake, ...]:
        # A pod that waits for its victims is woken by the plugins that refused it: they know what it lacks.
        return (Wake(Subject.ASSIGNED_POD, Action.DELETE, never, by_signature=True),)

    def _why_not_eligible(self, attempt: Attempt) -> str | None:
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

    def _potential_rows(self, attempt: Attempt) -> Int64s:
        """The rows where evicting pods might help, in the order of their names, from a random place on."""
        if attempt.pre_filter_status is None:
            might_help = attempt.is_refused_with(Code.UNSCHEDULABLE)
        elif attempt.pre_filter_status.code is Code.UNSCHEDULABLE:
            might_help = self._columns.alive[: self._columns.height]
        else:
            return np.zeros(0, dtype=np.int64)
        order = self._order_of_names()
        rows = order[might_help[order]]
        start = self._die.integer_below(len(rows)) if len(rows) > 1 else 0
        return np.concatenate((rows[start:], rows[:start])) if start else rows

    def _search(self, attempt: Attempt, rows: Int64s, book: VictimBook) -> tuple[Int64s, Int64s]:
        """The candidates among the first rows that suffice, and all rows that were examined for it."""
        wanted = self._candidates_wanted(len(rows))
        length = min(len(rows), max(2 * wanted, WINDOW_MIN))
        while True:
            window = rows[:length]
            state = book.state[window]
            is_candidate = state == CANDIDATE
            end = _enough(is_candidate, is_candidate & (book.ranks[0, window] == 0), wanted)
            unknown = window[:end][state[:end] == UNKNOWN]
            if len(unknown):
                examine(attempt, unknown[: max(wanted, WINDOW_MIN)], self._budgets, book)
            elif end is None and length < len(rows):
                length = min(len(rows), 2 * length)
            else:
                return _listed(window[:end][is_candidate[:end]], book, wanted), window[:end]

    def _candidates_wanted(self, count: int) -> int:
        share = count * self._arguments.min_candidate_nodes_percentage // 100
        return min(max(share, self._arguments.min_candidate_nodes_absolute), count)

    def _book(self, attempt: Attempt) -> VictimBook:
        """What is known already of the rows, if it can be kept for the pod's signature."""
        columns, pod, results = self._columns, attempt.pod, attempt.results
        if not attempt.says_as_cached or attempt.asked or columns.nominations.node_of(pod) is not None:
            book = VictimBook()
        else:
            book = results.victims if isinstance(results.victims, VictimBook) else VictimBook()
            results.victims = book
            if book.budgets_version != self._budgets.version:
                book.forget(None)
                book.budgets_version = self._budgets.version
        book.make_room(columns.capacity)
        return book

    def _not_helpful(self, examined: Int64s, book: VictimBook) -> PostFilterResult:
        statuses = [book.statuses[row] for row in examined.tolist() if book.state[row] == HOPELESS]
        errors = dict.fromkeys(r for status in statuses if status.code is Code.ERROR for r in status.reasons)
        if errors:
            text = f"[{', '.join(errors)}]" if len(errors) > 1 else next(iter(errors))
            return _unschedulable(Code.ERROR, text)
        counts: Counter[str] = Counter(reason for status in statuses for reason in status.reasons)
        elsewhere = self._columns.node_count - len(statuses)
        if elsewhere:
            counts[NOT_HELPFUL] += elsewhere
        text = unavailable_text(self._columns.node_count, counts)
        return _unschedulable(Code.UNSCHEDULABLE, text, nominated_node="")

    def _order_of_names(self) -> Int64s:
        """All rows, sorted by the names of their nodes; sorted again only when nodes came or went."""
        position = self._columns.fact_changes.position
        if self._ordered_at != position:
            names = self._columns.node_names
            self._rows_by_name = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
            self._ordered_at = position
        return self._rows_by_name


def _enough(is_candidate: Bools, is_clean: Bools, wanted: int) -> int | None:
    """How many rows must be looked at until there are enough candidates, a clean one among them; None: all of them."""
    enough = np.cumsum(is_candidate) >= wanted
    if not wanted or not is_clean.any() or not enough[-1]:
        return None
    return max(int(np.argmax(enough)), int(np.argmax(is_clean))) + 1


def _listed(candidates: Int64s, book: VictimBook, wanted: int) -> Int64s:
    """Those that kube-scheduler keeps: of the clean ones, and of those that violate a budget, so many each."""
    is_clean = book.ranks[0, candidates] == 0
    return candidates[np.where(is_clean, np.cumsum(is_clean), np.cumsum(~is_clean)) <= wanted]


def _unschedulable(code: Code, text: str, nominated_node: str | None = None) -> PostFilterResult:
    return PostFilterResult(nominated_node, status=Status(code, (f"preemption: {text}",)))
