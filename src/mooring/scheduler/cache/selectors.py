"""Pods counted by label selector, and the affinity terms of placed pods.

Pods with the same namespace and labels form a label class. A selector is matched once against each class, not against
pods; then a pod that is placed adds one at its row for each counter of its class. So a constraint over 5,000 nodes is a
gather, and placing a pod costs the same whatever the size of the cluster.

A `MatchCounter` counts the pods that match selectors of spread constraints and of a pending pod's affinity terms. An
`ExistingTerm` is an affinity or anti-affinity term of placed pods, counted by domain: it rejects or attracts the pods
that it matches. Pods of one template have the same terms, so a term is stored once.

 1. `counter.rows[row]` equals the number of pods on the row whose class matches (terminating ones only with
    `counts_terminating`); `counter.domains(column)[code]` equals the sum of `rows` over the rows with that code.
 2. A class has the counters and the terms that match it; both are found through one of their required label pairs, so
    that a new class is not compared with every selector in the cluster.
 3. Counters that were not used for long are dropped when all counters take more than `COUNTERS_BYTES_MAX`. A dropped
    counter is counted again from the classes when it is used again.
 4. `domain_counts()[code]` is the number of placed pods with the term on rows whose topology label has that code;
    `pod_count` is their sum. Pods on rows without the label are not counted: their term matches no domain.
 5. A pod whose terms of one kind cannot be parsed has none of that kind: kube-scheduler ignores invalid terms of pods
    that already run, and rejects new ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias, TypeVar

import numpy as np

from mooring.api.errors import ObjectError
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.views.pod import Affinity, Pod, PodAffinityTerm, WeightedPodAffinityTerm
from mooring.scheduler.cache.arrays import Int64s, grown
from mooring.scheduler.cache.nodes import LabelColumn, LabelColumns

COUNTERS_BYTES_MAX = 128 << 20
PodMatcher: TypeAlias = "MatchCounter | ExistingTerm"
"""What is matched against label classes."""
Pair: TypeAlias = tuple[str, str]
Key = TypeVar("Key")
Item = TypeVar("Item")


class LabelClass:
    """All pods with one namespace and one set of labels."""

    __slots__ = ("counters", "labels", "namespace", "rows", "rows_terminating", "terms")

    def __init__(self, namespace: str, labels: Mapping[str, str]) -> None:
        self.namespace = namespace
        self.labels = labels
        self.rows: dict[int, int] = {}
        self.rows_terminating: dict[int, int] = {}
        self.counters: list[MatchCounter] = []
        self.terms: list[ExistingTerm] = []

    def add(self, matcher: PodMatcher) -> None:
        """Register a counter or a term that matches the class."""
        if isinstance(matcher, MatchCounter):
            self.counters.append(matcher)
        else:
            self.terms.append(matcher)

    def remove(self, matcher: PodMatcher) -> None:
        matchers: list[Any] = self.counters if isinstance(matcher, MatchCounter) else self.terms
        if matcher in matchers:
            matchers.remove(matcher)


class PodSelector:
    """Selects pods that are in one of these namespaces (None: any) and whose labels match."""

    __slots__ = ("key", "namespaces", "selector")

    def __init__(self, namespaces: frozenset[str] | None, selector: LabelMatcher) -> None:
        self.namespaces = namespaces
        self.selector = selector
        self.key = (tuple(sorted(namespaces)) if namespaces is not None else None, selector)

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


class MatchCounter:
    """The number of pods that all selectors match, by row and by domain of the topologies that were read."""

    __slots__ = ("_domains", "counts_terminating", "key", "registered", "required_pair", "rows", "selectors", "used_at")

    def __init__(self, selectors: tuple[PodSelector, ...], counts_terminating: bool) -> None:
        self.selectors = selectors
        self.counts_terminating = counts_terminating
        self.key = (tuple(selector.key for selector in selectors), counts_terminating)
        self.required_pair: Pair | None = next(
            (pair for selector in selectors for pair in selector.selector.equality_pairs), None
        )
        self.rows: Int64s = np.zeros(0, dtype=np.int64)
        self._domains: dict[LabelColumn, Int64s] = {}
        self.registered = False
        self.used_at = 0

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return all(selector.matches(namespace, labels) for selector in self.selectors)

    def domains(self, column: LabelColumn, height: int) -> Int64s:
        """Matching pods for each code of a label column (place 0: rows without the label)."""
        counts = self._domains.get(column)
        if counts is None or len(counts) < column.codes_max:
            summed = np.bincount(column.codes[:height], weights=self.rows[:height], minlength=column.codes_max)
            counts = self._domains[column] = grown(summed.astype(np.int64), column.codes_max)
        return counts

    def add(self, row: int, count: int) -> None:
        self.rows[row] += count
        for column, counts in self._domains.items():
            code = column.codes[row]
            if code < len(counts):
                counts[code] += count

    def move(self, column: LabelColumn, row: int, sign: int) -> None:
        """Removes the row's pods from their domain (-1) before its label changes, and adds them (+1) after."""
        counts = self._domains.get(column)
        if counts is not None and column.codes[row] < len(counts):
            counts[column.codes[row]] += sign * int(self.rows[row])

    def reset(self, capacity: int) -> None:
        self.rows = np.zeros(capacity, dtype=np.int64)
        self._domains = {}

    def forget(self) -> None:
        self.rows = np.zeros(0, dtype=np.int64)
        self._domains = {}

    @property
    def size_bytes(self) -> int:
        return self.rows.nbytes + sum(counts.nbytes for counts in self._domains.values())


class SelectorColumns:
    """Label classes, the counters of their pods, and the index between the two."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._clock = 0
        self._classes: dict[tuple[str, frozenset[Pair]], LabelClass] = {}
        self._by_pair: dict[Pair, dict[LabelClass, None]] = {}
        self._by_namespace: dict[str, dict[LabelClass, None]] = {}
        self._counters: dict[object, MatchCounter] = {}
        self._matchers: dict[Pair | None, dict[PodMatcher, None]] = {}

    def label_class(self, namespace: str, labels: Mapping[str, str]) -> LabelClass:
        key = (namespace, frozenset(labels.items()))
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = LabelClass(namespace, labels)
            self._by_namespace.setdefault(namespace, {})[found] = None
            for pair in labels.items():
                self._by_pair.setdefault(pair, {})[found] = None
            for matcher in self._candidates_for(labels):
                if matcher.matches(namespace, labels):
                    found.add(matcher)
        return found

    def forget_class(self, label_class: LabelClass) -> None:
        """Removes a class without pods and signatures."""
        key = (label_class.namespace, frozenset(label_class.labels.items()))
        if label_class.rows or self._classes.get(key) is not label_class:
            return
        del self._classes[key]
        _drop(self._by_namespace, label_class.namespace, label_class)
        for pair in label_class.labels.items():
            _drop(self._by_pair, pair, label_class)

    def counter(self, selectors: tuple[PodSelector, ...], counts_terminating: bool) -> MatchCounter:
        """The counter for these conditions. Equal conditions share one counter."""
        new = MatchCounter(selectors, counts_terminating)
        return self.fresh(self._counters.setdefault(new.key, new))

    def fresh(self, counter: MatchCounter) -> MatchCounter:
        """The counter with current counts; counted again if it was dropped."""
        self._clock += 1
        counter.used_at = self._clock
        if not counter.registered:
            counter = self._counters.setdefault(counter.key, counter)
            if not counter.registered:
                self._register_counter(counter)
        return counter

    def add_matcher(self, matcher: PodMatcher) -> None:
        """Adds a counter or term to every class that it matches, also to later ones."""
        self._matchers.setdefault(matcher.required_pair, {})[matcher] = None
        for label_class in self._classes_for(matcher):
            if matcher.matches(label_class.namespace, label_class.labels):
                label_class.add(matcher)

    def remove_matcher(self, matcher: PodMatcher) -> None:
        _drop(self._matchers, matcher.required_pair, matcher)
        for label_class in self._classes_for(matcher):
            label_class.remove(matcher)

    def rematch_namespace(self, namespace: str) -> None:
        """The labels of a namespace changed: matches its classes again with terms that select namespaces."""
        for label_class in self._by_namespace.get(namespace, ()):
            label_class.terms = [
                matcher
                for matcher in self._candidates_for(label_class.labels)
                if not isinstance(matcher, MatchCounter) and matcher.matches(namespace, label_class.labels)
            ]

    def place(self, label_class: LabelClass, row: int, count: int, terminating: bool) -> None:
        """Adds (+1) or removes (-1) one pod of a class on a row."""
        _tally(label_class.rows, row, count)
        if terminating:
            _tally(label_class.rows_terminating, row, count)
        for counter in label_class.counters:
            if counter.counts_terminating or not terminating:
                counter.add(row, count)

    def place_all(self, label_class: LabelClass, rows: Iterable[int]) -> None:
        """Adds one pod of a class, which is not being deleted, on each of the rows."""
        for row, count in Counter(rows).items():
            _tally(label_class.rows, row, count)
            for counter in label_class.counters:
                counter.add(row, count)

    def move_row(self, columns: Iterable[LabelColumn], row: int, sign: int) -> None:
        """The labels of a node change: removes its pods (-1) from its domains before, and adds them (+1) after."""
        for column in columns:
            for counter in self._counters.values():
                counter.move(column, row, sign)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for counter in self._counters.values():
            counter.rows = grown(counter.rows, capacity)

    @property
    def counters(self) -> Iterable[MatchCounter]:
        return self._counters.values()

    @property
    def classes(self) -> Iterable[LabelClass]:
        return self._classes.values()

    def _register_counter(self, counter: MatchCounter) -> None:
        self._drop_stale()
        counter.reset(self._capacity)
        counter.registered = True
        self.add_matcher(counter)
        for label_class in self._classes_for(counter):
            if counter in label_class.counters:
                _count_class(counter, label_class)

    def _drop_stale(self) -> None:
        if self._capacity * 4 * len(self._counters) < COUNTERS_BYTES_MAX:
            return
        live = sorted((c for c in self._counters.values() if c.registered), key=lambda c: c.used_at)
        size_bytes = sum(counter.size_bytes for counter in live)
        for counter in live:
            if size_bytes < COUNTERS_BYTES_MAX // 2:
                break
            size_bytes -= counter.size_bytes
            self.remove_matcher(counter)
            counter.registered = False
            counter.forget()
            del self._counters[counter.key]

    def _candidates_for(self, labels: Mapping[str, str]) -> Iterator[PodMatcher]:
        yield from self._matchers.get(None, ())
        for pair in labels.items():
            yield from self._matchers.get(pair, ())

    def _classes_for(self, matcher: PodMatcher) -> list[LabelClass]:
        if matcher.required_pair is not None:
            return list(self._by_pair.get(matcher.required_pair, ()))
        return list(self._classes.values())


def _count_class(counter: MatchCounter, label_class: LabelClass) -> None:
    for row, count in label_class.rows.items():
        counter.rows[row] += count
    if not counter.counts_terminating:
        for row, count in label_class.rows_terminating.items():
            counter.rows[row] -= count


def _tally(counts: dict[int, int], row: int, count: int) -> None:
    left = counts.get(row, 0) + count
    if left:
        counts[row] = left
    else:
        counts.pop(row, None)


def _drop(index: dict[Key, dict[Item, None]], key: Key, item: Item) -> None:
    items = index.get(key)
    if items is not None:
        items.pop(item, None)
        if not items:
            del index[key]


FEW_DOMAINS = 32
"""Up to this many domains are counted in a dictionary: there may be as many terms as pods, and domains as nodes."""


class TermKind(Enum):
    AFFINITY_REQUIRED = "requiredAffinityTerms"
    ANTI_AFFINITY_REQUIRED = "requiredAntiAffinityTerms"
    AFFINITY_PREFERRED = "preferredAffinityTerms"
    ANTI_AFFINITY_PREFERRED = "preferredAntiAffinityTerms"


class AffinityTerm:
    """A compiled term: the pods in these namespaces (by name, or by the namespace's labels) with these labels."""

    __slots__ = ("key", "namespace_selector", "namespaces", "selector", "topology_key")

    def __init__(self, term: PodAffinityTerm, own_namespace: str) -> None:
        self.selector: LabelMatcher = compile_selector(term.label_selector)
        own = not term.namespaces and term.namespace_selector is None
        self.namespaces = frozenset((own_namespace,) if own else term.namespaces)
        self.namespace_selector: LabelMatcher = compile_selector(term.namespace_selector)
        self.topology_key = term.topology_key
        self.key = (tuple(sorted(self.namespaces)), self.namespace_selector, self.selector, self.topology_key)


class PodTerms:
    """All terms of one pod, and the errors of those that cannot be parsed."""

    def __init__(self, view: Pod) -> None:
        self.of_kind: dict[TermKind, tuple[tuple[AffinityTerm, int], ...]] = {}
        """The terms of each kind with their weights (1 for required ones)."""
        self.errors: dict[TermKind, str] = {}
        namespace = view.metadata.namespace
        for kind, terms in _terms_by_kind(view.spec.affinity):
            try:
                self.of_kind[kind] = tuple((AffinityTerm(term, namespace), weight) for term, weight in terms)
            except ObjectError as error:
                self.of_kind[kind] = ()
                self.errors[kind] = f"{kind.value}: {error}"

    @property
    def error(self) -> str | None:
        texts = tuple(self.errors.values())
        return f"[{', '.join(texts)}]" if len(texts) > 1 else "".join(texts) or None


class ExistingTerm:
    """A term of placed pods: its kind, its weight and the number of these pods by domain."""

    __slots__ = (
        "_few",
        "_many",
        "_namespace_labels",
        "column",
        "kind",
        "pod_count",
        "required_pair",
        "signatures",
        "term",
        "weight",
    )

    def __init__(
        self,
        term: AffinityTerm,
        kind: TermKind,
        weight: int,
        column: LabelColumn,
        namespace_labels: Callable[[str], Mapping[str, str]],
    ) -> None:
        self.term = term
        self.kind = kind
        self.weight = weight
        self.column = column
        self._few: dict[int, int] = {}
        self._many: Int64s | None = None
        self.pod_count = 0
        self.signatures = 0
        self.required_pair: Pair | None = next(iter(term.selector.equality_pairs), None)
        self._namespace_labels = namespace_labels

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        term = self.term
        in_reach = namespace in term.namespaces or term.namespace_selector.matches(self._namespace_labels(namespace))
        return in_reach and term.selector.matches(labels)

    def place(self, row: int, count: int) -> None:
        code = int(self.column.codes[row])
        if not code:
            return
        self.pod_count += count
        if self._many is None:
            self._few[code] = self._few.get(code, 0) + count
            if not self._few[code]:
                del self._few[code]
            return
        if code >= len(self._many):
            self._many = grown(self._many, self.column.codes_max)
        self._many[code] += count

    def count_on(self, row: int) -> int:
        """Pods with the term in the row's domain; 0 if the row has none."""
        code = self.column.codes.item(row)
        if self._many is None:
            return self._few.get(code, 0)
        return self._many.item(code) if code < len(self._many) else 0

    def domain_counts(self) -> Int64s:
        """Pods with the term for each code of the topology's column."""
        if self._many is not None:
            if len(self._many) < self.column.codes_max:
                self._many = grown(self._many, self.column.codes_max)
            return self._many
        counts = np.zeros(self.column.codes_max, dtype=np.int64)
        for code, count in self._few.items():
            counts[code] = count
        if len(self._few) > FEW_DOMAINS:
            self._few, self._many = {}, counts
        return counts


class TermColumns:
    """The terms of all signatures. Equal terms are shared."""

    def __init__(
        self,
        labels: LabelColumns,
        selectors: SelectorColumns,
        namespace_labels: Callable[[str], Mapping[str, str]],
    ) -> None:
        self._labels = labels
        self._selectors = selectors
        self._namespace_labels = namespace_labels
        self._terms: dict[object, ExistingTerm] = {}

    def register(self, terms: PodTerms) -> tuple[ExistingTerm, ...]:
        """The terms of a new signature, each added to the label classes that it matches."""
        return tuple(
            self._register_one(term, kind, weight)
            for kind, weighted in terms.of_kind.items()
            for term, weight in weighted
        )

    def release(self, terms: Sequence[ExistingTerm]) -> None:
        """Removes the terms of a dropped signature that no other signature has."""
        for existing in terms:
            existing.signatures -= 1
            if existing.signatures == 0:
                self._selectors.remove_matcher(existing)
                del self._terms[existing.kind, existing.weight, existing.term.key]

    def __iter__(self) -> Iterator[ExistingTerm]:
        return iter(self._terms.values())

    def _register_one(self, term: AffinityTerm, kind: TermKind, weight: int) -> ExistingTerm:
        key = (kind, weight, term.key)
        existing = self._terms.get(key)
        if existing is None:
            column = self._labels.column(term.topology_key)
            existing = self._terms[key] = ExistingTerm(term, kind, weight, column, self._namespace_labels)
            self._selectors.add_matcher(existing)
        existing.signatures += 1
        return existing


def _terms_by_kind(
    affinity: Affinity | None,
) -> list[tuple[TermKind, list[tuple[PodAffinityTerm, int]]]]:
    if affinity is None:
        return []
    terms_of_kind = []
    for side, required_kind, preferred_kind in (
        (affinity.pod_affinity, TermKind.AFFINITY_REQUIRED, TermKind.AFFINITY_PREFERRED),
        (affinity.pod_anti_affinity, TermKind.ANTI_AFFINITY_REQUIRED, TermKind.ANTI_AFFINITY_PREFERRED),
    ):
        if side is not None:
            required = side.required_during_scheduling_ignored_during_execution
            preferred = side.preferred_during_scheduling_ignored_during_execution
            terms_of_kind.append((required_kind, [(term, 1) for term in required]))
            terms_of_kind.append((preferred_kind, _weighted(preferred)))
    # Kubernetes reports parse errors of required terms before those of preferred ones.
    return sorted(terms_of_kind, key=lambda entry: list(TermKind).index(entry[0]))


def _weighted(terms: Sequence[WeightedPodAffinityTerm]) -> list[tuple[PodAffinityTerm, int]]:
    return [(term.pod_affinity_term, term.weight) for term in terms]
