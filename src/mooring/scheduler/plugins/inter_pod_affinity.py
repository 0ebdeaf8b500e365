"""InterPodAffinity: affinity and anti-affinity between pods, in both directions.

Required terms of the pod and of placed pods reject nodes; preferred terms, and required affinity of placed pods, score
them.

1. Each term of the pending pod is a `MatchCounter` of the pods that it matches. Required affinity terms share one
   counter: a pod counts if it matches all of them.
2. The terms of placed pods that match the pending pod are the terms of its label class.
3. In the pod's own terms, a namespace selector stands for the namespaces that it selects now and, as in
   kube-scheduler, for all namespaces if it would select one without labels.

kube-scheduler v1.36 skips some events that would help, and so do the queueing hints:

4. A namespace selector is not looked up: it stands for all namespaces if it would select one without labels, and for
   none otherwise.
5. The last pod that matches a pod's affinity to its own group is deleted, so that the pod could be the first of the
   group.
6. A node is added, or leaves a domain, and only terms of other pods reject the pod elsewhere.
7. A pod is deleted, or changes labels, that matches some but not all anti-affinity terms of the rejected pod: the terms
   are read as one. The same holds for the terms of a deleted pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mooring.api.views.node import Node
from mooring.api.views.workloads import Namespace
from mooring.api.well_known import HOSTNAME
from mooring.scheduler.cache.arrays import Bools, Int64s, ReasonBits, Rows, UInt8s, grown, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.nodes import ABSENT, LabelColumn
from mooring.scheduler.cache.pods import PerSignature, PodInfo, PodSignature
from mooring.scheduler.cache.selectors import AffinityTerm, ExistingTerm, MatchCounter, PodSelector, PodTerms, TermKind
from mooring.scheduler.config.types import InterPodAffinityArgs
from mooring.scheduler.framework.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    has_node_or_nomination,
    queue_if,
    queue_on_own_update,
)
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
    by_table,
)
from mooring.scheduler.framework.status import Code, Reason, Status

# The reason bits. If several apply to a row, the largest is reported: bits are combined by their maximum.
EXISTING_ANTI_AFFINITY = 1
ANTI_AFFINITY = 2
_AFFINITY = 4


class OwnTerm(NamedTuple):
    """A term of the pending pod: the pods that it counts, its topology and its weight."""

    counter: MatchCounter
    column: LabelColumn
    weight: int


class OwnTerms(NamedTuple):
    """All terms of the pending pod, compiled."""

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
    matching_pairs: int
    """The number of (pod, term) pairs on nodes with the term's label. 0: the pod would be the first of its group."""
    anti_affinity: Mapping[LabelColumn, Int64s]
    """Per topology: the pods that the pod's own anti-affinity terms match, by domain."""
    existing_anti_affinity: Mapping[LabelColumn, Int64s]
    """Per topology: the anti-affinity terms of placed pods that match the pod, by domain."""


class RequiredTerms(NamedTuple):
    """The required terms that decide where the pod fits: its own, and those of other pods that match it.

    Two values are equal if they hold the same terms, however many pods match these.
    """

    own: OwnTerms
    existing: tuple[ExistingTerm, ...]
    """Anti-affinity terms of other pods that match the pod, also those that no placed pod has now."""
    snapshot: RequiredCounts | None = None
    """The counts at the time of a snapshot."""

    @property
    def is_node_local(self) -> bool:
        """Whether each domain is a single node. Affinity is not node-local: the first pod of a group fits anywhere."""
        return (
            self.own.affinity is None
            and all(term.column.is_unique for term in self.own.anti_affinity)
            and all(term.column.is_unique for term in self.existing)
        )


class Preferred(NamedTuple):
    """The preferred terms, counted: for each topology, the score of each domain."""

    topology_scores: Mapping[LabelColumn, Int64s]


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
        existing = _anti_affinity_terms_matching(signature)
        if own.affinity is None and not own.anti_affinity and not any(term.pod_count for term in existing):
            return SKIP
        terms = RequiredTerms(own, existing)
        return Proceed(terms, is_node_local=terms.is_node_local)

    def filter(self, state: RequiredTerms, rows: Rows) -> ReasonBits:
        # Computed once for each domain of each topology, and gathered to the rows.
        bits: UInt8s | None = None
        for column, by_domain in _domain_bits(state.own, self._counts(state)).items():
            of_topology = by_domain.take(column.codes[rows])
            bits = of_topology if bits is None else np.maximum(bits, of_topology)
        return bits if bits is not None else np.zeros(length_of(rows), dtype=np.uint8)

    def filter_row(self, state: RequiredTerms, row: int) -> int:
        if state.own.affinity is not None:
            return super().filter_row(state, row)
        if any(self._is_violated(term, row) for term in state.own.anti_affinity):
            return ANTI_AFFINITY
        return EXISTING_ANTI_AFFINITY if any(term.count_on(row) for term in state.existing) else 0

    def snapshot(self, state: RequiredTerms) -> RequiredTerms:
        return state._replace(snapshot=self._counts(state))

    def _counts(self, state: RequiredTerms) -> RequiredCounts:
        affinity, matching_pairs = self._count_affinity(state.own)
        existing = self._by_topology((term, 1) for term in state.existing if term.pod_count)
        return RequiredCounts(affinity, matching_pairs, self._count_anti_affinity(state.own), existing)

    def measures(self, state: RequiredTerms) -> int:
        return 3

    def contribution(self, state: RequiredTerms, pod: PodInfo, row: int) -> Sequence[int]:
        signature, own = pod.signature, state.own
        namespace, labels = signature.namespace, signature.labels
        matches_affinity = own.affinity is not None and own.affinity.counter.matches(namespace, labels)
        anti_affinity_here = sum(
            term.counter.matches(namespace, labels) and term.column.codes[row] != ABSENT for term in own.anti_affinity
        )
        # Terms are shared: a pod with the same term twice is counted twice.
        terms = list(map(id, signature.terms))
        existing_here = sum(terms.count(id(term)) for term in state.existing if term.column.codes[row] != ABSENT)
        return (int(matches_affinity), int(anti_affinity_here), int(existing_here))

    def filter_adjusted(self, state: RequiredTerms, rows: Int64s, difference: Int64s) -> Int64s:
        counts = state.snapshot or self._counts(state)
        bits: Int64s = (_at_rows(counts.existing_anti_affinity, rows, difference[2]) > 0) * EXISTING_ANTI_AFFINITY
        bits = np.maximum(bits, (_at_rows(counts.anti_affinity, rows, difference[1]) > 0) * ANTI_AFFINITY)
        if state.own.affinity is not None:
            bits = np.maximum(bits, _lacks_affinity(state.own, counts, rows, difference[0]) * _AFFINITY)
        return bits

    def _count_affinity(self, own: OwnTerms) -> tuple[tuple[Int64s, ...], int]:
        if own.affinity is None:
            return (), 0
        counter = self._columns.selectors.fresh(own.affinity.counter)
        counts = tuple(counter.domains(column, self._columns.height).copy() for column in own.affinity_columns)
        return counts, sum(int(of_term[1:].sum()) for of_term in counts)

    def _count_anti_affinity(self, own: OwnTerms) -> dict[LabelColumn, Int64s]:
        counted: dict[LabelColumn, Int64s] = {}
        for term in own.anti_affinity:
            counts = self._columns.selectors.fresh(term.counter).domains(term.column, self._columns.height)
            _add_counts(counted, term.column, counts, 1)
        return counted

    # Explain

    def explain(self, state: RequiredTerms, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        """Every required term that is not met. Nominated pods are not counted: the reason's message remains."""
        namespace = context.pod.namespace
        found = [
            *self._unmet_affinity(state.own, row, namespace),
            *self._unmet_anti_affinity(state.own, row, namespace),
            *self._existing_anti_affinity(state, row),
        ]
        return found or super().explain(state, row, bits, context)

    def _unmet_affinity(self, own: OwnTerms, row: int, namespace: str) -> Iterator[Obstacle]:
        if own.affinity is None:
            return
        is_first_of_kind = own.matches_itself and self._count_affinity(own)[1] == 0
        for pod_selector, column in zip(own.affinity.counter.selectors, own.affinity_columns):
            code = int(column.codes[row])
            if code == ABSENT:
                yield missing_label(self.name, ObstacleKind.AFFINITY, column)
            elif not self._matching_pods(own.affinity.counter, column, code) and not is_first_of_kind:
                text = f"no pod matching {_selector_text(pod_selector, namespace)} {in_domain_text(column, code)}"
                details = {**domain_details(column, code), "selector": str(pod_selector.selector)}
                yield Obstacle(self.name, ObstacleKind.AFFINITY, text, details)

    def _unmet_anti_affinity(self, own: OwnTerms, row: int, namespace: str) -> Iterator[Obstacle]:
        for term in own.anti_affinity:
            if self._is_violated(term, row):
                pod_selector, code = term.counter.selectors[0], int(term.column.codes[row])
                pods = [
                    pod
                    for pod in self._pods_in_domain(term.column, row)
                    if term.counter.matches(pod.namespace, pod.signature.labels)
                ]
                text = (
                    f"keeps away from {_selector_text(pod_selector, namespace)}: {_pods_text(pods)} "
                    f"{'run' if len(pods) > 1 else 'runs'} {in_domain_text(term.column, code)}"
                )
                details = {**domain_details(term.column, code), "selector": str(pod_selector.selector)}
                yield Obstacle(self.name, ObstacleKind.ANTI_AFFINITY, text, details)

    def _existing_anti_affinity(self, state: RequiredTerms, row: int) -> Iterator[Obstacle]:
        # Replicas have the same term: a topology that the pod's own terms explain is not explained again.
        explained = {term.column for term in state.own.anti_affinity if self._is_violated(term, row)}
        for term in state.existing:
            code = int(term.column.codes[row])
            if not term.count_on(row) or term.column in explained:
                continue
            pods = [pod for pod in self._pods_in_domain(term.column, row) if term in pod.signature.terms]
            if pods:
                domain = "" if term.column.key == HOSTNAME else f" from {domain_text(term.column, code)}"
                text = f"{_pods_text(pods)} {'keep' if len(pods) > 1 else 'keeps'} it away{domain}"
                details = {**domain_details(term.column, code), "pod": pods[0].key}
                yield Obstacle(self.name, ObstacleKind.ANTI_AFFINITY, text, details)

    def _is_violated(self, term: OwnTerm, row: int) -> bool:
        code = term.column.codes.item(row)
        return code != ABSENT and self._matching_pods(term.counter, term.column, code) > 0

    def _matching_pods(self, counter: MatchCounter, column: LabelColumn, code: int) -> int:
        return self._columns.selectors.fresh(counter).domains(column, self._columns.height).item(code)

    def _pods_in_domain(self, column: LabelColumn, row: int) -> Iterator[PodInfo]:
        """The pods of the row's domain, those on the row itself first."""
        rows = np.flatnonzero(column.codes[: self._columns.height] == column.codes[row])
        for other in sorted(rows.tolist(), key=lambda other: other != row):
            yield from self._columns.pods_on[other].values()

    # Score

    def has_score(self, pod: PodInfo) -> bool:
        return not _has_no_terms(pod.signature)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> Preferred | Skip:
        signature = pod.signature
        own = self._own_terms(signature)
        if self._ignores_preferences_of_placed and not own.preferred:
            return SKIP
        weighed = [
            (term, self._weight(term)) for term in signature.label_class.terms if term.pod_count and self._weight(term)
        ]
        topology_scores = self._by_topology(weighed)
        has_matching_pods = bool(weighed)
        for term in own.preferred:
            counts = self._columns.selectors.fresh(term.counter).domains(term.column, self._columns.height)
            has_matching_pods = has_matching_pods or bool(counts[1:].any())
            _add_counts(topology_scores, term.column, counts, term.weight)
        return Preferred(topology_scores) if has_matching_pods else SKIP

    def score(self, state: Preferred, rows: Rows) -> Int64s:
        return _at_rows(state.topology_scores, rows, np.zeros(length_of(rows), dtype=np.int64))

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
        return (
            ClusterEventWithHint(
                EventResource.ASSIGNED_POD,
                ActionType.ADD,
                _matches_affinity,
                per_signature=True,
                per_signature_pair=True,
            ),
            ClusterEventWithHint(
                EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL, _changes_matches, per_signature=True
            ),
            ClusterEventWithHint(
                EventResource.ASSIGNED_POD, ActionType.DELETE, _matched_anti_affinity, per_signature=True
            ),
            ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL, queue_on_own_update),
            ClusterEventWithHint(
                EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL, _changes_domain, per_signature=True
            ),
        )

    def _weight(self, term: ExistingTerm) -> int:
        """The weight of a placed pod's term in the score; 0 if the term does not score."""
        match term.kind:
            case TermKind.AFFINITY_PREFERRED:
                return term.weight
            case TermKind.ANTI_AFFINITY_PREFERRED:
                return -term.weight
            case TermKind.AFFINITY_REQUIRED:
                return self._hard_weight
            case TermKind.ANTI_AFFINITY_REQUIRED:
                return 0

    def _by_topology(self, weighed: Iterable[tuple[ExistingTerm, int]]) -> dict[LabelColumn, Int64s]:
        topology_scores: dict[LabelColumn, Int64s] = {}
        for term, weight in weighed:
            _add_counts(topology_scores, term.column, term.domain_counts(), weight)
        return topology_scores

    def _compile(self, signature: PodSignature) -> OwnTerms:
        terms = PodTerms(signature.view)
        required = [term for term, _ in terms.of_kind.get(TermKind.AFFINITY_REQUIRED, ())]
        affinity = self._own_term(required, 1) if required else None
        anti = terms.of_kind.get(TermKind.ANTI_AFFINITY_REQUIRED, ())
        attracted = terms.of_kind.get(TermKind.AFFINITY_PREFERRED, ())
        avoided = terms.of_kind.get(TermKind.ANTI_AFFINITY_PREFERRED, ())
        return OwnTerms(
            affinity=affinity,
            affinity_columns=tuple(self._columns.labels.column(term.topology_key) for term in required),
            matches_itself=affinity is not None and affinity.counter.matches(signature.namespace, signature.labels),
            anti_affinity=tuple(self._own_term([term], 1) for term, _ in anti),
            preferred=(
                *(self._own_term([term], weight) for term, weight in attracted),
                *(self._own_term([term], -weight) for term, weight in avoided),
            ),
            error=terms.error,
        )

    def _own_term(self, terms: Sequence[AffinityTerm], weight: int) -> OwnTerm:
        selectors = tuple(PodSelector(self._namespaces_of(term), term.selector) for term in terms)
        counter = self._columns.selectors.counter(selectors, counts_terminating=True)
        return OwnTerm(counter, self._columns.labels.column(terms[0].topology_key), weight)

    def _namespaces_of(self, term: AffinityTerm) -> frozenset[str] | None:
        selector = term.namespace_selector
        if selector.matches({}):
            return None
        selected = [n.metadata.name for n in self._namespaces if selector.matches(n.metadata.labels)]
        return term.namespaces.union(selected)


def _anti_affinity_terms_matching(signature: PodSignature) -> tuple[ExistingTerm, ...]:
    """The required anti-affinity terms of other pods that match pods of this signature."""
    return tuple([term for term in signature.label_class.terms if term.kind is TermKind.ANTI_AFFINITY_REQUIRED])


def _has_no_terms(signature: PodSignature) -> bool:
    """Whether the pod has no affinity terms, and no term of another pod matches it."""
    affinity = signature.spec.affinity
    has_own = affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    return not has_own and not signature.label_class.terms


def _domain_bits(own: OwnTerms, counts: RequiredCounts) -> dict[LabelColumn, UInt8s]:
    """Per topology: the reason bits of each of its domains."""
    bits: dict[LabelColumn, UInt8s] = {}
    for column, by_domain in counts.existing_anti_affinity.items():
        _add_bit(bits, column, by_domain > 0, EXISTING_ANTI_AFFINITY)
    for column, by_domain in counts.anti_affinity.items():
        _add_bit(bits, column, by_domain > 0, ANTI_AFFINITY)
    for of_topology in bits.values():
        of_topology[ABSENT] = 0
    is_first_of_kind = own.matches_itself and counts.matching_pairs == 0
    for column, by_domain in zip(own.affinity_columns, counts.affinity, strict=True):
        _add_bit(bits, column, by_domain <= (-1 if is_first_of_kind else 0), _AFFINITY)
        bits[column][ABSENT] = _AFFINITY
    return bits


def _lacks_affinity(own: OwnTerms, counted: RequiredCounts, rows: Int64s, added: Int64s) -> Bools:
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
    may_be_first = own.matches_itself & (counted.matching_pairs + labels_here * added == 0)
    lacks: Bools = is_unlabelled | ~(finds_all | may_be_first)
    return lacks


def _add_bit(bits: dict[LabelColumn, UInt8s], column: LabelColumn, is_rejected: Bools, bit: int) -> None:
    """Set a bit for the domains that are rejected."""
    added = is_rejected.view(np.uint8) * np.uint8(bit)
    known = bits.get(column)
    if known is not None:
        length = max(len(known), len(added))
        added = np.maximum(grown(known, length)[:length], grown(added, length)[:length])
    bits[column] = added


def _at_rows(counts: Mapping[LabelColumn, Int64s], rows: Rows, total: Int64s) -> Int64s:
    """Per row: the counts of its domains, added up (0 where it has none)."""
    for column, by_domain in counts.items():
        by_domain[ABSENT] = 0
        total = total + by_domain.take(column.codes[rows])
    return total


def _add_counts(totals: dict[LabelColumn, Int64s], column: LabelColumn, counts: Int64s, weight: int) -> None:
    weighed = counts * weight if weight != 1 else counts.copy()
    known = totals.get(column)
    if known is None:
        totals[column] = weighed
    else:
        longer, shorter = (known, weighed) if len(known) >= len(weighed) else (weighed, known)
        longer = longer.copy()
        longer[: len(shorter)] += shorter
        totals[column] = longer


def _selector_text(pod_selector: PodSelector, namespace: str) -> str:
    """`app=db`, with the namespaces if they differ from the pod's own."""
    selector = str(pod_selector.selector) or (
        "(no labelSelector)" if pod_selector.selector.matches_nothing else "any labels"
    )
    if pod_selector.namespaces is None:
        return f"{selector} of any namespace"
    if pod_selector.namespaces == {namespace}:
        return selector
    return f"{selector} of namespace {', '.join(sorted(pod_selector.namespaces)) or '(none)'}"


def _pods_text(pods: Sequence[PodInfo]) -> str:
    if not pods:
        return "a pod"
    others = len(pods) - 1
    return pods[0].key if not others else f"{pods[0].key} and {others} other{'s' if others > 1 else ''}"


Terms = tuple[AffinityTerm, ...]


class HintTerms(NamedTuple):
    """The required terms of a pod; None if they cannot be parsed."""

    affinity: Terms | None
    anti_affinity: Terms | None


def _matches_affinity(pod: PodInfo, old: None, new: PodInfo) -> QueueingHint:
    if not has_node_or_nomination(new):
        return QueueingHint.SKIP
    terms = _required_terms(pod.signature)
    if terms.affinity is None or terms.anti_affinity is None:
        return QueueingHint.QUEUE
    return queue_if(_all_match(terms.affinity, new.signature))


def _changes_matches(pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
    """Whether a placed pod with other labels matches affinity now, or no longer matches anti-affinity."""
    if not has_node_or_nomination(old) or not has_node_or_nomination(new):
        return QueueingHint.SKIP
    terms = _required_terms(pod.signature)
    if terms.affinity is None or terms.anti_affinity is None:
        return QueueingHint.QUEUE
    before, after = old.signature, new.signature
    matches_affinity_now = not _all_match(terms.affinity, before) and _all_match(terms.affinity, after)
    matched_anti_affinity = _all_match(terms.anti_affinity, before) and not _all_match(terms.anti_affinity, after)
    return queue_if(matches_affinity_now or matched_anti_affinity)


def _matched_anti_affinity(pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    """Whether the anti-affinity of the pod matched a deleted pod, or the other way round."""
    if not has_node_or_nomination(old):
        return QueueingHint.SKIP
    terms = _required_terms(pod.signature)
    if terms.affinity is None or terms.anti_affinity is None or _all_match(terms.anti_affinity, old.signature):
        return QueueingHint.QUEUE
    of_other = _required_terms(old.signature).anti_affinity
    return queue_if(of_other is None or _all_match(of_other, pod.signature))


def _changes_domain(pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
    """Whether an added or relabelled node is in a domain where other pods match the terms."""
    terms = _required_terms(pod.signature)
    if terms.affinity is None or terms.anti_affinity is None:
        return QueueingHint.QUEUE
    after = new.metadata.labels
    if old is None:
        # Without the topology label of a term, anti-affinity always allows the node; with it, the attempt decides.
        return queue_if(bool(terms.anti_affinity) or any(term.topology_key in after for term in terms.affinity))
    before = old.metadata.labels
    return queue_if(
        any(_enters(term.topology_key, before, after) for term in terms.affinity)
        or any(_leaves(term.topology_key, before, after) for term in terms.anti_affinity)
    )


def _enters(key: str, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether a node has entered a domain of the topology."""
    return key in after and before.get(key) != after[key]


def _leaves(key: str, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    return key in before and after.get(key) != before[key]


def _all_match(terms: Terms, signature: PodSignature) -> bool:
    """Whether there are terms, and a pod of the signature matches each of them."""
    return bool(terms) and all(_matches(term, signature) for term in terms)


def _matches(term: AffinityTerm, signature: PodSignature) -> bool:
    is_in_namespace = signature.namespace in term.namespaces or term.namespace_selector.matches({})
    return is_in_namespace and term.selector.matches(signature.labels)


@PerSignature
def _required_terms(signature: PodSignature) -> HintTerms:
    terms = PodTerms(signature.view)

    def of_kind(kind: TermKind) -> Terms | None:
        return None if kind in terms.errors else tuple(term for term, _ in terms.of_kind.get(kind, ()))

    return HintTerms(of_kind(TermKind.AFFINITY_REQUIRED), of_kind(TermKind.ANTI_AFFINITY_REQUIRED))
