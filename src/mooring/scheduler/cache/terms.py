"""Affinity terms: what a pod says about the pods beside it, compiled, and counted while placed pods carry them.

Comes in   the pod affinity and anti-affinity of pods
Goes out   `AffinityTerm` (whom a term speaks of) and `CarriedTerm` (how many placed pods say it, for each domain)

A placed pod speaks too: its anti-affinity keeps others away, its preferences draw them near. Pods of one template
say the same thing, so a term is kept once, with a count for each domain of its topology.

 1. `domain_counts()[code]` is the number of placed pods that carry the term on rows whose topology label has that
    code; `carriers` is their sum. Pods on rows without the label carry a term that reaches no pod.
 2. A pod whose terms cannot be parsed carries none of that sort: kube-scheduler ignores what it cannot read on pods
    that already run, and refuses to schedule new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum

import numpy as np

from mooring.api.errors import ObjectError
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.views.pod import Affinity, Pod, PodAffinityTerm, WeightedPodAffinityTerm
from mooring.scheduler.cache.arrays import Int64s, grown
from mooring.scheduler.cache.labels import LabelColumn, LabelColumns
from mooring.scheduler.cache.selectors import Pair, SelectorColumns

FEW_DOMAINS = 32
"""Up to so many domains are counted in a dictionary: there may be as many terms as pods, and domains as nodes."""


class TermKind(Enum):
    AFFINITY_REQUIRED = "requiredAffinityTerms"
    ANTI_AFFINITY_REQUIRED = "requiredAntiAffinityTerms"
    AFFINITY_PREFERRED = "preferredAffinityTerms"
    ANTI_AFFINITY_PREFERRED = "preferredAntiAffinityTerms"


class AffinityTerm:
    """Whom a term speaks of: pods in these namespaces (by name, or by the namespace's labels) with these labels."""

    __slots__ = ("key", "namespace_selector", "namespaces", "selector", "topology_key")

    def __init__(self, term: PodAffinityTerm, own_namespace: str) -> None:
        self.selector: LabelMatcher = compile_selector(term.label_selector)
        own = not term.namespaces and term.namespace_selector is None
        self.namespaces = frozenset((own_namespace,) if own else term.namespaces)
        self.namespace_selector: LabelMatcher = compile_selector(term.namespace_selector)
        self.topology_key = term.topology_key
        self.key = (tuple(sorted(self.namespaces)), self.namespace_selector, self.selector, self.topology_key)


class PodTerms:
    """All terms of one pod, and what could not be read of them."""

    __slots__ = ("error", "of_kind")

    def __init__(self, view: Pod) -> None:
        self.of_kind: dict[TermKind, tuple[tuple[AffinityTerm, int], ...]] = {}
        """The terms of each kind with their weights (1 for required ones)."""
        errors: list[str] = []
        for kind, written in _written_terms(view.spec.affinity):
            try:
                self.of_kind[kind] = tuple((AffinityTerm(t, view.metadata.namespace), weight) for t, weight in written)
            except ObjectError as error:
                self.of_kind[kind] = ()
                errors.append(f"{kind.value}: {error}")
        self.error = f"[{', '.join(errors)}]" if len(errors) > 1 else "".join(errors) or None


class CarriedTerm:
    """A term as placed pods carry it: with its kind, its weight and the domains that it reaches."""

    __slots__ = (
        "_few",
        "_many",
        "_namespace_labels",
        "carriers",
        "column",
        "kind",
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
        self.carriers = 0
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
        self.carriers += count
        if self._many is None:
            self._few[code] = self._few.get(code, 0) + count
            if not self._few[code]:
                del self._few[code]
            return
        if code >= len(self._many):
            self._many = grown(self._many, self.column.codes_max)
        self._many[code] += count

    def count_on(self, row: int) -> int:
        """Carriers in the row's domain; 0 if the row has none."""
        code = self.column.codes.item(row)
        if self._many is None:
            return self._few.get(code, 0)
        return self._many.item(code) if code < len(self._many) else 0

    def domain_counts(self) -> Int64s:
        """Carriers for each code of the topology's column, with a place for every code that exists now."""
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
    """The carried terms, shared between all signatures that say the same."""

    __slots__ = ("_labels", "_namespace_labels", "_selectors", "_terms")

    def __init__(
        self,
        labels: LabelColumns,
        selectors: SelectorColumns,
        namespace_labels: Callable[[str], Mapping[str, str]],
    ) -> None:
        self._labels = labels
        self._selectors = selectors
        self._namespace_labels = namespace_labels
        self._terms: dict[object, CarriedTerm] = {}

    def adopt(self, terms: PodTerms) -> tuple[CarriedTerm, ...]:
        """The carried terms of a signature that becomes known; each is watched by the label classes that it matches."""
        return tuple(
            self._adopt_one(term, kind, weight) for kind, written in terms.of_kind.items() for term, weight in written
        )

    def release(self, terms: Sequence[CarriedTerm]) -> None:
        """A signature is forgotten: terms that no other signature says are forgotten with it."""
        for carried in terms:
            carried.signatures -= 1
            if carried.signatures == 0:
                self._selectors.unwatch(carried)
                del self._terms[carried.kind, carried.weight, carried.term.key]

    def __iter__(self) -> Iterator[CarriedTerm]:
        return iter(self._terms.values())

    def _adopt_one(self, term: AffinityTerm, kind: TermKind, weight: int) -> CarriedTerm:
        key = (kind, weight, term.key)
        carried = self._terms.get(key)
        if carried is None:
            column = self._labels.column(term.topology_key)
            carried = self._terms[key] = CarriedTerm(term, kind, weight, column, self._namespace_labels)
            self._selectors.watch(carried)
        carried.signatures += 1
        return carried


def _written_terms(
    affinity: Affinity | None,
) -> list[tuple[TermKind, list[tuple[PodAffinityTerm, int]]]]:
    if affinity is None:
        return []
    written = []
    for side, required_kind, preferred_kind in (
        (affinity.pod_affinity, TermKind.AFFINITY_REQUIRED, TermKind.AFFINITY_PREFERRED),
        (affinity.pod_anti_affinity, TermKind.ANTI_AFFINITY_REQUIRED, TermKind.ANTI_AFFINITY_PREFERRED),
    ):
        if side is not None:
            required = side.required_during_scheduling_ignored_during_execution
            preferred = side.preferred_during_scheduling_ignored_during_execution
            written.append((required_kind, [(term, 1) for term in required]))
            written.append((preferred_kind, _weighted(preferred)))
    # Kubernetes reports parse errors of required terms before those of preferred ones.
    return sorted(written, key=lambda entry: list(TermKind).index(entry[0]))


def _weighted(terms: Sequence[WeightedPodAffinityTerm]) -> list[tuple[PodAffinityTerm, int]]:
    return [(term.pod_affinity_term, term.weight) for term in terms]
