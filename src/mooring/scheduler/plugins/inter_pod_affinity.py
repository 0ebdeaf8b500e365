"""InterPodAffinity: affinity and anti-affinity between pods, in both directions.

Required terms of the pod and of placed pods reject nodes; preferred terms, and required affinity of placed pods, score
them.

1. Each term of the pending pod is a `Counter` of the pods that it matches. Required affinity terms share one counter: a
   pod counts if it matches all of them.
2. The terms of placed pods that match the pending pod are the carried terms of its label class.
3. In the pod's own terms, a namespace selector stands for the namespaces that it selects now and, as in
   kube-scheduler, for all namespaces if it would select one without labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mooring.api.views.workloads import Namespace
from mooring.api.well_known import HOSTNAME
from mooring.scheduler.cache.arrays import Bools, Int64s, ReasonBits, Rows, UInt8s, grown, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.labels import ABSENT, LabelColumn
from mooring.scheduler.cache.pods import PerSignature, PodInfo, PodSignature
from mooring.scheduler.cache.selectors import Counter, Part
from mooring.scheduler.cache.terms import AffinityTerm, CarriedTerm, PodTerms, TermKind
from mooring.scheduler.config.types import InterPodAffinityArgs
from mooring.scheduler.framework.events import ClusterEventWithHint
from mooring.scheduler.framework.normalize import by_table
from mooring.scheduler.framework.obstacle import (
    ExplainContext,
    Obstacle,
    ObstacleKind,
    domain_details,
    domain_text,
    in_domain_text,
    missing_label,
)
from mooring.scheduler.framework.plugin import (
    SCORE_MAX,
    SKIP,
    Adjustable,
    PreFilter,
    PreScore,
    Proceed,
    Scope,
    Score,
    Skip,
)
from mooring.scheduler.framework.status import Code, Reason, Status
from mooring.scheduler.plugins.inter_pod_affinity_hints import inter_pod_affinity_events

# One verdict a row. If several apply, the largest is reported, so that verdicts are combined by their maximum.
DISLIKED = 1
OWN_DISLIKE = 2
_NO_FRIEND = 4


class OwnTerm(NamedTuple):
    """A term of the pending pod: whom it counts, over which topology, with which weight."""

    counter: Counter
    column: LabelColumn
    weight: int


class OwnTerms(NamedTuple):
    """All that the pending pod says, ready to be counted."""

    affinity: OwnTerm | None
    """The counter that all required affinity terms share (the column is that of the first)."""
    affinity_columns: tuple[LabelColumn, ...]
    matches_itself: bool
    anti_affinity: tuple[OwnTerm, ...]
    preferred: tuple[OwnTerm, ...]
    error: str | None


class RequiredCounts(NamedTuple):
    """The pods that match the required terms, per domain."""

    affinity: tuple[Int64s, ...]
    """Per affinity term: the pods that match all terms, by domain of the term's topology."""
    friends: int
    """The number of (pod, term) pairs on nodes with the term's label. 0: the pod would be the first of its group."""
    disliked: Mapping[LabelColumn, Int64s]
    """Per topology: the pods that the pod's own anti-affinity terms match, by domain."""
    disliking: Mapping[LabelColumn, Int64s]
    """Per topology: the anti-affinity terms of placed pods that match the pod, by domain."""


class RequiredTerms(NamedTuple):
    """The required terms that decide where the pod fits: its own, and those of other pods that match it.

    Two values are equal if they hold the same terms, however many pods match these.
    """

    own: OwnTerms
    carried: tuple[CarriedTerm, ...]
    """Anti-affinity terms of other pods that match the pod, also those that no placed pod carries now."""
    snapshot: RequiredCounts | None = None
    """The counts at the time of a snapshot."""

    @property
    def is_node_local(self) -> bool:
        """Whether each domain is a single node. Affinity is not node-local: the first pod of a group fits anywhere."""
        return (
            self.own.affinity is None
            and all(term.column.is_unique for term in self.own.anti_affinity)
            and all(term.column.is_unique for term in self.carried)
        )


class Preferred(NamedTuple):
    """For each topology, what its domains are worth."""

    worth: Mapping[LabelColumn, Int64s]


class InterPodAffinity(PreFilter[RequiredTerms], Adjustable[RequiredTerms], PreScore[Preferred], Score[Preferred]):
    name = "InterPodAffinity"
    obstacle_kind = ObstacleKind.AFFINITY
    filter_scope = Scope.TOPOLOGY
    filter_reasons = (
        Reason("node(s) didn't satisfy existing pods anti-affinity rules"),
        Reason("node(s) didn't match pod anti-affinity rules"),
        Reason("node(s) didn't match pod affinity rules", Code.UNRESOLVABLE),
    )
    normalizes = True

    def __init__(self, columns: Columns, arguments: InterPodAffinityArgs) -> None:
        self._columns = columns
        self._hard_weight = arguments.hard_pod_affinity_weight
        self._ignores_preferences_of_placed = arguments.ignore_preferred_terms_of_existing_pods
        self._namespaces = columns.objects.of(Namespace)
        self._own_terms = PerSignature(self._compile, lambda: self._namespaces.version)

    # Filter

    def pre_filter(self, pod: PodInfo) -> Proceed[RequiredTerms] | Skip | Status:
        signature = pod.signature
        if _has_no_terms(signature):
            return SKIP
        own = self._own_terms(signature)
        if own.error is not None:
            return Status.unresolvable(f"parsing pod: {own.error}")
        carried = _anti_affinity_terms_matching(signature)
        if own.affinity is None and not own.anti_affinity and not any(term.carriers for term in carried):
            return SKIP
        terms = RequiredTerms(own, carried)
        return Proceed(terms, is_node_local=terms.is_node_local)

    def filter(self, state: RequiredTerms, rows: Rows) -> ReasonBits:
        # One verdict for each domain of each topology, gathered to the rows.
        bits: UInt8s | None = None
        for column, verdicts in _verdicts(state.own, self._counts(state)).items():
            answer = verdicts.take(column.codes[rows])
            bits = answer if bits is None else np.maximum(bits, answer)
        return bits if bits is not None else np.zeros(length_of(rows), dtype=np.uint8)

    def filter_row(self, state: RequiredTerms, row: int) -> int:
        if state.own.affinity is not None:
            return super().filter_row(state, row)
        if any(self._is_violated(term, row) for term in state.own.anti_affinity):
            return OWN_DISLIKE
        return DISLIKED if any(term.count_on(row) for term in state.carried) else 0

    def snapshot(self, state: RequiredTerms) -> RequiredTerms:
        return state._replace(snapshot=self._counts(state))

    def _counts(self, state: RequiredTerms) -> RequiredCounts:
        affinity, friends = self._count_affinity(state.own)
        carried = self._by_topology((term, 1) for term in state.carried if term.carriers)
        return RequiredCounts(affinity, friends, self._count_disliked(state.own), carried)

    def measures(self, state: RequiredTerms) -> int:
        return 3

    def contribution(self, state: RequiredTerms, pod: PodInfo, row: int) -> Sequence[int]:
        signature, own = pod.signature, state.own
        is_friend = own.affinity is not None and own.affinity.counter.matches(signature.namespace, signature.labels)
        disliked_here = sum(
            term.counter.matches(signature.namespace, signature.labels) and term.column.codes[row] != ABSENT
            for term in own.anti_affinity
        )
        # Terms are shared: a pod with the same term twice is counted twice.
        carried = list(map(id, signature.terms))
        dislikes_here = sum(carried.count(id(term)) for term in state.carried if term.column.codes[row] != ABSENT)
        return (int(is_friend), int(disliked_here), int(dislikes_here))

    def filter_adjusted(self, state: RequiredTerms, rows: Int64s, difference: Int64s) -> Int64s:
        counts = state.snapshot or self._counts(state)
        bits: Int64s = (_at_rows(counts.disliking, rows, difference[2]) > 0) * DISLIKED
        bits = np.maximum(bits, (_at_rows(counts.disliked, rows, difference[1]) > 0) * OWN_DISLIKE)
        if state.own.affinity is not None:
            bits = np.maximum(bits, _lacks_friends(state.own, counts, rows, difference[0]) * _NO_FRIEND)
        return bits

    def _count_affinity(self, own: OwnTerms) -> tuple[tuple[Int64s, ...], int]:
        if own.affinity is None:
            return (), 0
        counter = self._columns.selectors.fresh(own.affinity.counter)
        counts = tuple(counter.domains(column, self._columns.height).copy() for column in own.affinity_columns)
        return counts, sum(int(of_term[1:].sum()) for of_term in counts)

    def _count_disliked(self, own: OwnTerms) -> dict[LabelColumn, Int64s]:
        disliked: dict[LabelColumn, Int64s] = {}
        for term in own.anti_affinity:
            counts = self._columns.selectors.fresh(term.counter).domains(term.column, self._columns.height)
            _add_worth(disliked, term.column, counts, 1)
        return disliked

    # Explain

    def explain(self, state: RequiredTerms, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        """Every required term that is not met. Nominated pods are not counted: the reason's message remains."""
        namespace = context.pod.namespace
        found = [
            *self._unmet_affinity(state.own, row, namespace),
            *self._unmet_anti_affinity(state.own, row, namespace),
            *self._anti_affinity_of_placed(state, row),
        ]
        return found or super().explain(state, row, bits, context)

    def _unmet_affinity(self, own: OwnTerms, row: int, namespace: str) -> Iterator[Obstacle]:
        if own.affinity is None:
            return
        is_first_of_kind = own.matches_itself and self._count_affinity(own)[1] == 0
        for part, column in zip(own.affinity.counter.parts, own.affinity_columns):
            code = int(column.codes[row])
            if code == ABSENT:
                yield missing_label(self.name, ObstacleKind.AFFINITY, column)
            elif not self._matching_pods(own.affinity.counter, column, code) and not is_first_of_kind:
                text = f"no pod matching {_selector_text(part, namespace)} {in_domain_text(column, code)}"
                details = {**domain_details(column, code), "selector": str(part.selector)}
                yield Obstacle(self.name, ObstacleKind.AFFINITY, text, details)

    def _unmet_anti_affinity(self, own: OwnTerms, row: int, namespace: str) -> Iterator[Obstacle]:
        for term in own.anti_affinity:
            if self._is_violated(term, row):
                part, code = term.counter.parts[0], int(term.column.codes[row])
                pods = [
                    pod
                    for pod in self._pods_in_domain(term.column, row)
                    if term.counter.matches(pod.namespace, pod.signature.labels)
                ]
                text = (
                    f"keeps away from {_selector_text(part, namespace)}: {_pods_text(pods)} "
                    f"{'run' if len(pods) > 1 else 'runs'} {in_domain_text(term.column, code)}"
                )
                details = {**domain_details(term.column, code), "selector": str(part.selector)}
                yield Obstacle(self.name, ObstacleKind.ANTI_AFFINITY, text, details)

    def _anti_affinity_of_placed(self, state: RequiredTerms, row: int) -> Iterator[Obstacle]:
        # Replicas carry the same term: a topology that the pod's own terms explain is not explained again.
        explained = {term.column for term in state.own.anti_affinity if self._is_violated(term, row)}
        for term in state.carried:
            code = int(term.column.codes[row])
            if not term.count_on(row) or term.column in explained:
                continue
            carriers = [pod for pod in self._pods_in_domain(term.column, row) if term in pod.signature.terms]
            if carriers:
                domain = "" if term.column.key == HOSTNAME else f" from {domain_text(term.column, code)}"
                text = f"{_pods_text(carriers)} {'keep' if len(carriers) > 1 else 'keeps'} it away{domain}"
                details = {**domain_details(term.column, code), "pod": carriers[0].key}
                yield Obstacle(self.name, ObstacleKind.ANTI_AFFINITY, text, details)

    def _is_violated(self, term: OwnTerm, row: int) -> bool:
        code = term.column.codes.item(row)
        return code != ABSENT and self._matching_pods(term.counter, term.column, code) > 0

    def _matching_pods(self, counter: Counter, column: LabelColumn, code: int) -> int:
        return self._columns.selectors.fresh(counter).domains(column, self._columns.height).item(code)

    def _pods_in_domain(self, column: LabelColumn, row: int) -> Iterator[PodInfo]:
        """The pods of the row's domain, those on the row itself first."""
        rows = np.flatnonzero(column.codes[: self._columns.height] == column.codes[row])
        for other in sorted(rows.tolist(), key=lambda other: other != row):
            yield from self._columns.pods_on[other].values()

    # Score

    def pre_score(self, pod: PodInfo, feasible: Rows) -> Preferred | Skip:
        signature = pod.signature
        if _has_no_terms(signature):
            return SKIP
        own = self._own_terms(signature)
        if self._ignores_preferences_of_placed and not own.preferred:
            return SKIP
        weighed = [
            (term, self._weight(term)) for term in signature.label_class.terms if term.carriers and self._weight(term)
        ]
        worth = self._by_topology(weighed)
        is_anybody_counted = bool(weighed)
        for term in own.preferred:
            counts = self._columns.selectors.fresh(term.counter).domains(term.column, self._columns.height)
            is_anybody_counted = is_anybody_counted or bool(counts[1:].any())
            _add_worth(worth, term.column, counts, term.weight)
        return Preferred(worth) if is_anybody_counted else SKIP

    def score(self, state: Preferred, rows: Rows) -> Int64s:
        return _at_rows(state.worth, rows, np.zeros(length_of(rows), dtype=np.int64))

    def normalize(self, state: Preferred, scores: Int64s, rows: Rows) -> Int64s:
        lowest, highest = int(scores.min()), int(scores.max())
        if highest == lowest:
            return np.zeros(len(scores), dtype=np.int64)
        span = float(highest - lowest)
        return by_table(
            scores, lambda values: (float(SCORE_MAX) * ((values - lowest) / span)).astype(np.int64), lowest, highest
        )

    # Both

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return inter_pod_affinity_events()

    def _weight(self, term: CarriedTerm) -> int:
        """How much a term that a placed pod carries draws this pod near; 0 if it has no say in scoring."""
        match term.kind:
            case TermKind.AFFINITY_PREFERRED:
                return term.weight
            case TermKind.ANTI_AFFINITY_PREFERRED:
                return -term.weight
            case TermKind.AFFINITY_REQUIRED:
                return self._hard_weight
            case TermKind.ANTI_AFFINITY_REQUIRED:
                return 0

    def _by_topology(self, weighed: Iterable[tuple[CarriedTerm, int]]) -> dict[LabelColumn, Int64s]:
        worth: dict[LabelColumn, Int64s] = {}
        for term, weight in weighed:
            _add_worth(worth, term.column, term.domain_counts(), weight)
        return worth

    def _compile(self, signature: PodSignature) -> OwnTerms:
        terms = PodTerms(signature.view)
        required = [term for term, _ in terms.of_kind.get(TermKind.AFFINITY_REQUIRED, ())]
        affinity = self._own_term(required, 1) if required else None
        anti = terms.of_kind.get(TermKind.ANTI_AFFINITY_REQUIRED, ())
        liked = terms.of_kind.get(TermKind.AFFINITY_PREFERRED, ())
        disliked = terms.of_kind.get(TermKind.ANTI_AFFINITY_PREFERRED, ())
        return OwnTerms(
            affinity=affinity,
            affinity_columns=tuple(self._columns.labels.column(term.topology_key) for term in required),
            matches_itself=affinity is not None and affinity.counter.matches(signature.namespace, signature.labels),
            anti_affinity=tuple(self._own_term([term], 1) for term, _ in anti),
            preferred=(
                *(self._own_term([term], weight) for term, weight in liked),
                *(self._own_term([term], -weight) for term, weight in disliked),
            ),
            error=terms.error,
        )

    def _own_term(self, terms: Sequence[AffinityTerm], weight: int) -> OwnTerm:
        parts = tuple(Part(self._namespaces_of(term), term.selector) for term in terms)
        counter = self._columns.selectors.counter(parts, wants_terminating=True)
        return OwnTerm(counter, self._columns.labels.column(terms[0].topology_key), weight)

    def _namespaces_of(self, term: AffinityTerm) -> frozenset[str] | None:
        selector = term.namespace_selector
        if selector.matches({}):
            return None
        selected = [n.metadata.name for n in self._namespaces if selector.matches(n.metadata.labels)]
        return term.namespaces.union(selected)


def _anti_affinity_terms_matching(signature: PodSignature) -> tuple[CarriedTerm, ...]:
    """The required anti-affinity terms of other pods that match pods of this signature."""
    return tuple([term for term in signature.label_class.terms if term.kind is TermKind.ANTI_AFFINITY_REQUIRED])


def _has_no_terms(signature: PodSignature) -> bool:
    """Whether the pod has no affinity terms, and no term of another pod matches it."""
    affinity = signature.spec.affinity
    has_own = affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    return not has_own and not signature.label_class.terms


def _verdicts(own: OwnTerms, counts: RequiredCounts) -> dict[LabelColumn, UInt8s]:
    """Per topology: the verdict for each of its domains."""
    verdicts: dict[LabelColumn, UInt8s] = {}
    for column, by_domain in counts.disliking.items():
        _judge(verdicts, column, by_domain > 0, DISLIKED)
    for column, by_domain in counts.disliked.items():
        _judge(verdicts, column, by_domain > 0, OWN_DISLIKE)
    for verdict in verdicts.values():
        verdict[ABSENT] = 0
    is_first_of_kind = own.matches_itself and counts.friends == 0
    for column, by_domain in zip(own.affinity_columns, counts.affinity, strict=True):
        _judge(verdicts, column, by_domain <= (-1 if is_first_of_kind else 0), _NO_FRIEND)
        verdicts[column][ABSENT] = _NO_FRIEND
    return verdicts


def _lacks_friends(own: OwnTerms, counted: RequiredCounts, rows: Int64s, added: Int64s) -> Bools:
    """Per row: whether a required affinity term matches no pod in the row's domain, or the row lacks its label."""
    is_unlabelled = np.zeros(length_of(rows), dtype=np.bool_)
    finds_all = np.ones(length_of(rows), dtype=np.bool_)
    labels_here = np.zeros(length_of(rows), dtype=np.int64)
    for column, counts in zip(own.affinity_columns, counted.affinity, strict=True):
        has_label = column.codes[rows] != ABSENT
        labels_here += has_label
        is_unlabelled |= ~has_label
        finds_all &= counts[column.codes[rows]] + added > 0
    # The first pod of a group with affinity to itself fits where no pod of the group is yet.
    may_be_first = own.matches_itself & (counted.friends + labels_here * added == 0)
    lacks: Bools = is_unlabelled | ~(finds_all | may_be_first)
    return lacks


def _judge(verdicts: dict[LabelColumn, UInt8s], column: LabelColumn, is_rejected: Bools, verdict: int) -> None:
    """Add a verdict for the domains that are rejected."""
    judged = is_rejected.view(np.uint8) * np.uint8(verdict)
    known = verdicts.get(column)
    if known is not None:
        length = max(len(known), len(judged))
        judged = np.maximum(grown(known, length)[:length], grown(judged, length)[:length])
    verdicts[column] = judged


def _at_rows(counts: Mapping[LabelColumn, Int64s], rows: Rows, total: Int64s) -> Int64s:
    """Per row: the counts of its domains, added up (0 where it has none)."""
    for column, by_domain in counts.items():
        by_domain[ABSENT] = 0
        total = total + by_domain.take(column.codes[rows])
    return total


def _add_worth(worth: dict[LabelColumn, Int64s], column: LabelColumn, counts: Int64s, weight: int) -> None:
    weighed = counts * weight if weight != 1 else counts.copy()
    known = worth.get(column)
    if known is None:
        worth[column] = weighed
    else:
        longer, shorter = (known, weighed) if len(known) >= len(weighed) else (weighed, known)
        longer = longer.copy()
        longer[: len(shorter)] += shorter
        worth[column] = longer


def _selector_text(part: Part, namespace: str) -> str:
    """`app=db`, with the namespaces if they differ from the pod's own."""
    selector = str(part.selector) or ("(no labelSelector)" if part.selector.matches_nothing else "any labels")
    if part.namespaces is None:
        return f"{selector} of any namespace"
    if part.namespaces == {namespace}:
        return selector
    return f"{selector} of namespace {', '.join(sorted(part.namespaces)) or '(none)'}"


def _pods_text(pods: Sequence[PodInfo]) -> str:
    if not pods:
        return "a pod"
    others = len(pods) - 1
    return pods[0].key if not others else f"{pods[0].key} and {others} other{'s' if others > 1 else ''}"
