"""PodTopologySpread: spread matching pods evenly over the domains of a topology.

Hard constraints (see `spread_constraints`) reject nodes where the skew would grow too large; soft ones prefer emptier
domains.

Counting a constraint is a sum of the counter's rows over the domains of a label column, over the nodes that count:
those that have all topology labels and satisfy the inclusion policies. If all nodes count, the counter has the sums
already.

Queueing hints: an added pod can help as well as a deleted one, because it fills the domain with the fewest pods.

1. A hint checks whether a pod matches a constraint. How much it changes the skew is left to the next attempt.
2. As in kube-scheduler v1.36, a pod that starts to terminate, and no longer counts, causes no retry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mooring.api.errors import LabelSelectorError
from mooring.api.views.node import Node
from mooring.scheduler.cache.arrays import Bools, Float64s, Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.nodes import ABSENT
from mooring.scheduler.cache.pods import PerSignature, PodInfo, PodSignature
from mooring.scheduler.config.types import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from mooring.scheduler.framework.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    has_node_or_nomination,
    queue_if,
)
from mooring.scheduler.framework.obstacle import (
    ExplainContext,
    Obstacle,
    ObstacleKind,
    domain_details,
    domain_text,
    missing_label,
)
from mooring.scheduler.framework.plugin import (
    SCORE_MAX,
    SKIP,
    Adjustable,
    PreFilter,
    PreScore,
    Proceed,
    Score,
    Skip,
    by_table,
)
from mooring.scheduler.framework.status import Code, Reason, Status
from mooring.scheduler.plugins.spread_constraints import (
    HARD,
    SOFT,
    SYSTEM_DEFAULTS,
    Constraint,
    EligibleNodes,
    PodEligibleNodes,
    SelectorChanges,
    SpreadDomains,
    default_constraints,
    eligibility_key,
    own_constraints,
)

_UNEVEN = 1
_UNLABELLED = 2
COMBINATIONS_MAX = 2048
_NO_DOMAIN = np.iinfo(np.int32).max
"""The fewest pods of a domain if there is no domain."""


class HardConstraint(NamedTuple):
    """One hard constraint, counted: matching pods of each domain, and which domains count."""

    constraint: Constraint
    domain_counts: Int64s
    fewest: int
    """The fewest pods of a domain; 0 if there are fewer domains than the constraint demands."""
    fewest_elsewhere: int
    """The fewest pods of a domain but one of those with the fewest."""
    lone_fewest: bool
    """Whether only one domain has the fewest."""
    has_min_domains: bool
    is_eligible: Bools


class SoftConstraints(NamedTuple):
    """The soft constraints of a pod, counted for the nodes that can take it."""

    constraints: tuple[tuple[Constraint, Int64s, float], ...]
    """Each with the pods of each domain (per host: of each row) and its weight."""
    ignored: Bools | None
    """Rows that lack a topology label, where that matters; over all rows."""
    all_labelled: bool
    """Every node has the labels of all constraints."""


class _Compiled:
    """The hard or the soft constraints of a signature."""

    def __init__(self, signature: PodSignature, constraints: tuple[Constraint, ...], requires_all: bool) -> None:
        self.constraints = constraints
        self.requires_all = requires_all
        """Whether a node without one of the labels counts for none of them."""
        self.eligibility_key = eligibility_key(signature, constraints, requires_all)


class PodTopologySpread(
    PreFilter[tuple[HardConstraint, ...]],
    Adjustable[tuple[HardConstraint, ...]],
    PreScore[SoftConstraints],
    Score[SoftConstraints],
):
    name = "PodTopologySpread"
    obstacle_kind = ObstacleKind.SPREAD
    filter_reasons = (
        Reason("node(s) didn't match pod topology spread constraints"),
        Reason("node(s) didn't match pod topology spread constraints (missing required label)", Code.UNRESOLVABLE),
    )
    normalizes = True

    def __init__(self, columns: Columns, arguments: PodTopologySpreadArgs) -> None:
        self._columns = columns
        self._system_defaults = arguments.defaulting_type == SYSTEM_DEFAULTING
        self._defaults = SYSTEM_DEFAULTS if self._system_defaults else arguments.default_constraints
        self._domains = SpreadDomains(columns)
        selectors = SelectorChanges(columns.objects)
        self._hard = PerSignature(lambda signature: self._compile(signature, HARD), lambda: selectors.version)
        """The hard constraints of a signature. Raises `LabelSelectorError`."""
        self._soft = PerSignature(lambda signature: self._compile(signature, SOFT), lambda: selectors.version)

    # Filter

    def pre_filter(self, pod: PodInfo) -> Proceed[tuple[HardConstraint, ...]] | Skip | Status:
        try:
            compiled = self._hard(pod.signature)
        except LabelSelectorError as error:
            return Status.error(f"get constraints from pod: obtaining pod's hard topology spread constraints: {error}")
        if not compiled.constraints:
            return SKIP
        eligible = self._eligible_nodes(pod.signature, compiled)
        counted = [
            self._count_hard(c, nodes) for c, nodes in zip(compiled.constraints, eligible.of_constraint, strict=True)
        ]
        return Proceed(tuple(counted))

    def filter(self, state: tuple[HardConstraint, ...], rows: Rows) -> Int64s:
        bits: Int64s | None = None
        for hard in state:
            # Computed once for each domain, and gathered to the rows.
            skew = hard.domain_counts + (int(hard.constraint.matches_itself) - hard.fewest)
            by_domain = np.where(skew > hard.constraint.max_skew, _UNEVEN, 0)
            by_domain[ABSENT] = _UNLABELLED
            of_constraint = by_domain.take(hard.constraint.column.codes[rows])
            # The first constraint that rejects a row is reported.
            bits = of_constraint if bits is None else np.where(bits != 0, bits, of_constraint)
        assert bits is not None, "a pod without hard constraints is skipped"
        return bits

    def measures(self, state: tuple[HardConstraint, ...]) -> int:
        return len(state)

    def contribution(self, state: tuple[HardConstraint, ...], pod: PodInfo, row: int) -> list[int]:
        # As in kube-scheduler, a terminating pod counts here although it was not counted before.
        signature = pod.signature
        return [int(h.is_eligible[row] and h.constraint.selects(signature.namespace, signature.labels)) for h in state]

    def filter_adjusted(self, state: tuple[HardConstraint, ...], rows: Int64s, difference: Int64s) -> Int64s:
        bits = np.zeros(len(rows), dtype=np.int64)
        for hard, more in zip(state, difference, strict=True):
            codes = hard.constraint.column.codes[rows]
            here = hard.domain_counts[codes]
            skew = here + more + int(hard.constraint.matches_itself) - _fewest_with(hard, here, more)
            of_constraint = np.where(
                codes == ABSENT, _UNLABELLED, np.where(skew > hard.constraint.max_skew, _UNEVEN, 0)
            )
            bits = np.where(bits != 0, bits, of_constraint)
        return bits

    def explain(
        self, state: tuple[HardConstraint, ...], row: int, bits: int, context: ExplainContext
    ) -> Sequence[Obstacle]:
        """Every constraint that the pod would break. Nominated pods are not counted: the reason's message remains."""
        found = [obstacle for hard in state if (obstacle := _obstacle(hard, row)) is not None]
        return found or super().explain(state, row, bits, context)

    def _count_hard(self, constraint: Constraint, nodes: EligibleNodes) -> HardConstraint:
        counts = self._domain_counts(constraint, nodes)
        fewest, elsewhere, lone = _two_smallest(counts[nodes.domains])
        has_min_domains = len(nodes.domains) >= constraint.min_domains
        return HardConstraint(
            constraint, counts, fewest if has_min_domains else 0, elsewhere, lone, has_min_domains, nodes.is_eligible
        )

    def _domain_counts(self, constraint: Constraint, nodes: EligibleNodes) -> Int64s:
        column, height = constraint.column, self._columns.height
        if constraint.counter is None:
            return np.zeros(column.codes_max, dtype=np.int64)
        counter = self._columns.selectors.fresh(constraint.counter)
        if nodes.includes_all:
            return counter.domains(column, height).copy()  # a what-if changes the counter's own
        weights = np.where(nodes.is_eligible, counter.rows[:height], 0)
        return np.bincount(column.codes[:height], weights=weights, minlength=column.codes_max).astype(np.int64)

    # Score

    def has_score(self, pod: PodInfo) -> bool:
        try:
            return bool(self._soft(pod.signature).constraints)
        except LabelSelectorError:
            return True  # `pre_score` reports it

    def pre_score(self, pod: PodInfo, feasible: Rows) -> SoftConstraints | Skip | Status:
        try:
            compiled = self._soft(pod.signature)
        except LabelSelectorError as error:
            return Status.error(f"calculating preScoreState: obtaining pod's soft topology spread constraints: {error}")
        if not compiled.constraints:
            return SKIP
        eligible = self._eligible_nodes(pod.signature, compiled)
        ignored = ~eligible.labelled if compiled.requires_all and not eligible.all_labelled else None
        scored = feasible if ignored is None else _only(feasible, eligible.labelled)
        counted = [
            self._count_soft(c, nodes, scored)
            for c, nodes in zip(compiled.constraints, eligible.of_constraint, strict=True)
        ]
        return SoftConstraints(tuple(counted), ignored, eligible.all_labelled)

    def score(self, state: SoftConstraints, rows: Rows) -> Int64s:
        parts: list[tuple[Float64s, Int64s]] = []
        for constraint, counts, weight in state.constraints:
            bonus = float(constraint.max_skew - 1)
            if constraint.is_per_host:
                codes = counts[rows] + 1
                if not state.all_labelled:
                    codes[constraint.column.codes[rows] == ABSENT] = ABSENT
                per_count: Float64s = np.arange(-1, int(codes.max(initial=0)), dtype=np.float64)
                points = per_count * weight + bonus
            else:
                codes = constraint.column.codes[rows]
                points = counts.astype(np.float64) * weight + bonus
            points[ABSENT] = 0.0
            parts.append((points, codes))
        scores = rounded_sum(parts)
        return scores if state.ignored is None else np.where(state.ignored[rows], 0, scores)

    def normalize(self, state: SoftConstraints, scores: Int64s, rows: Rows) -> Int64s:
        ignored = None if state.ignored is None else state.ignored[rows]
        scored = scores if ignored is None else scores[~ignored]
        lowest, highest = (int(scored.min()), int(scored.max())) if len(scored) else (0, 0)
        if highest == 0:
            normalized = np.full(len(scores), SCORE_MAX, dtype=np.int64)
        else:
            normalized = by_table(
                scores, lambda values: SCORE_MAX * (highest + lowest - values) // highest, min(lowest, 0), highest
            )
        return normalized if ignored is None else np.where(ignored, 0, normalized)

    def _count_soft(
        self, constraint: Constraint, nodes: EligibleNodes, scored: Rows
    ) -> tuple[Constraint, Int64s, float]:
        column, height = constraint.column, self._columns.height
        if constraint.is_per_host:
            here = np.zeros(height, dtype=np.int64)
            if constraint.counter is not None:
                here = self._columns.selectors.fresh(constraint.counter).rows[:height]
            return constraint, here, math.log(length_of(scored) + 2)
        counts = self._domain_counts(constraint, nodes)
        is_everywhere = nodes.includes_all and length_of(scored) == self._columns.node_count
        domains = nodes.domains if is_everywhere else np.flatnonzero(np.bincount(column.codes[scored]))
        domain_count = len(domains)
        empty_value = column.code_for("")
        if empty_value is not None:
            # kube-scheduler reads an absent label as an empty value here, and so counts the two as one domain,
            # also where only nodes that cannot take the pod lack the label.
            counts[empty_value] += counts[ABSENT]
            domain_count -= int(ABSENT in domains and empty_value in domains)
        return constraint, counts, math.log(domain_count + 2)

    # Both

    def _compile(self, signature: PodSignature, action: str) -> _Compiled:
        if signature.spec.topology_spread_constraints:
            constraints = own_constraints(self._columns, signature, action)
        else:
            constraints = default_constraints(self._columns, signature, self._defaults, action)
        # The system's soft defaults count every node, whatever labels it lacks.
        requires_all = action == HARD or bool(signature.spec.topology_spread_constraints) or not self._system_defaults
        return _Compiled(signature, constraints, requires_all)

    def _eligible_nodes(self, signature: PodSignature, compiled: _Compiled) -> PodEligibleNodes:
        """Which nodes count for the constraints."""
        return self._domains.eligible_nodes(
            compiled.eligibility_key, signature, compiled.constraints, compiled.requires_all
        )

    # Queueing hints

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        # Default constraints also depend on services, not only on the signature.
        has_hard_defaults = any(default.when_unsatisfiable == HARD for default in self._defaults)
        changes_of_node = (
            ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        )
        return (
            ClusterEventWithHint(
                EventResource.ASSIGNED_POD,
                ActionType.ADD,
                self._counts_now,
                True,
                per_signature_pair=not has_hard_defaults,
            ),
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, self._counted, per_signature=True),
            ClusterEventWithHint(
                EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL, self._changes_matches, per_signature=True
            ),
            ClusterEventWithHint(
                EventResource.UNSCHEDULABLE_POD,
                ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION,
                self._changes_itself,
            ),
            ClusterEventWithHint(EventResource.NODE, changes_of_node, self._changes_domains, per_signature=True),
        )

    def _counts_now(self, pod: PodInfo, old: None, new: PodInfo) -> QueueingHint:
        return queue_if(self._counts(pod, new))

    def _counted(self, pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
        return queue_if(self._counts(pod, old))

    def _counts(self, pod: PodInfo, other: PodInfo) -> bool:
        if other.namespace != pod.namespace or not has_node_or_nomination(other):
            return False
        constraints, labels = self._constraints_or_none(pod), other.signature.labels
        return constraints is None or any(constraint.selector.matches(labels) for constraint in constraints)

    def _changes_matches(self, pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
        if new.namespace != pod.namespace or not has_node_or_nomination(old) or not has_node_or_nomination(new):
            return QueueingHint.SKIP
        constraints = self._constraints_or_none(pod)
        return queue_if(constraints is None or _matches_differ(constraints, old.signature.labels, new.signature.labels))

    def _changes_itself(self, pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
        """Whether other labels or tolerations of the pod change what its constraints count."""
        if new.uid != pod.uid:
            return QueueingHint.SKIP
        constraints = self._constraints_or_none(pod)
        if constraints is None:
            return QueueingHint.QUEUE
        tolerations_differ = old.signature.spec.tolerations != new.signature.spec.tolerations
        if tolerations_differ and any(constraint.honours_taints for constraint in constraints):
            return QueueingHint.QUEUE
        return queue_if(_matches_differ(constraints, old.signature.labels, new.signature.labels))

    def _changes_domains(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        """Whether an added, deleted or changed node counts for the constraints, or counts in another domain."""
        constraints = self._constraints_or_none(pod)
        if constraints is None:
            return QueueingHint.QUEUE
        did_count, does_count = _has_keys(old, constraints), _has_keys(new, constraints)
        if old is None or new is None or did_count != does_count:
            return queue_if(did_count or does_count)
        if not does_count:
            return QueueingHint.SKIP
        before, after = old.metadata.labels, new.metadata.labels
        return queue_if(
            old.spec.taints != new.spec.taints
            or any(before.get(constraint.column.key) != after.get(constraint.column.key) for constraint in constraints)
        )

    def _constraints_or_none(self, pod: PodInfo) -> Constraints | None:
        """The pod's hard constraints; None if they cannot be read."""
        try:
            return self._hard(pod.signature).constraints
        except LabelSelectorError:
            return None


def rounded_sum(parts: Sequence[tuple[Float64s, Int64s]]) -> Int64s:
    """Per row: points[codes[row]] of each part, added from left to right and rounded, halves up. No sum is negative.

    Many rows have the same codes: while there are few combinations, each is computed once and gathered to the rows.
    """
    (points, key), *others = parts
    sums = 0.5 + points
    for points, codes in others:
        if len(sums) * len(points) <= COMBINATIONS_MAX:
            sums = np.add.outer(sums, points).ravel()
            key = key * len(points) + codes
        else:
            sums = sums.take(key) + points.take(codes)
            key = np.arange(len(codes))
    return sums.astype(np.int64).take(key)


def _fewest_with(hard: HardConstraint, here: Int64s, difference: Int64s) -> Int64s | int:
    """Per row: the fewest pods of any domain, if the row's own domain had `difference` more."""
    if not hard.has_min_domains:
        return 0
    elsewhere = np.where(hard.lone_fewest & (here == hard.fewest), hard.fewest_elsewhere, hard.fewest)
    return np.where(difference == 0, hard.fewest, np.minimum(elsewhere, here + difference))


def _two_smallest(counts: Int64s) -> tuple[int, int, bool]:
    """The smallest count, the smallest but one place that holds it, and whether only one place holds it."""
    if len(counts) == 0:
        return _NO_DOMAIN, _NO_DOMAIN, True
    if len(counts) == 1:
        return int(counts[0]), _NO_DOMAIN, True
    smallest, second = sorted(counts.tolist())[:2] if len(counts) <= 16 else np.partition(counts, 1)[:2].tolist()
    return smallest, second, smallest != second


def _only(rows: Rows, selected: Bools) -> Int64s:
    if isinstance(rows, slice):
        return np.flatnonzero(selected[rows])
    return rows[selected[rows]]


def _obstacle(hard: HardConstraint, row: int) -> Obstacle | None:
    constraint = hard.constraint
    code = int(constraint.column.codes[row])
    if code == ABSENT:
        return missing_label(PodTopologySpread.name, ObstacleKind.SPREAD, constraint.column)
    matching = int(hard.domain_counts[code]) + int(constraint.matches_itself)
    allowed = constraint.max_skew + hard.fewest
    if matching <= allowed:
        return None
    selector = str(constraint.selector) or "its selector"
    text = (
        f"{domain_text(constraint.column, code)} {'would have' if constraint.matches_itself else 'has'} "
        f"{matching} pod{'' if matching == 1 else 's'} matching {selector}, "
        f"at most {allowed} {'is' if allowed == 1 else 'are'} allowed"
    )
    details = {
        **domain_details(constraint.column, code),
        "selector": selector,
        "matching": matching,
        "allowed": allowed,
    }
    return Obstacle(PodTopologySpread.name, ObstacleKind.SPREAD, text, details)


Constraints = Sequence[Constraint]


def _has_keys(node: Node | None, constraints: Constraints) -> bool:
    """Whether the node has the topology labels of all constraints, without which it counts for none."""
    return node is not None and all(constraint.column.key in node.metadata.labels for constraint in constraints)


def _matches_differ(constraints: Constraints, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    return before != after and any(
        constraint.selector.matches(before) != constraint.selector.matches(after) for constraint in constraints
    )
