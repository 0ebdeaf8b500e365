"""Which nodes match the topology of a volume, a storage class or a storage capacity.

Input: node affinity of volumes, allowed topologies of classes, node topology of capacities, zone labels. Output: for
each, one boolean for every row.

Thousands of volumes share a few topologies, and nodes rarely change: a result is computed once for each topology and
cached until a node changes.

1. Results cover all rows and are read-only.
2. The cache holds at most `CACHE_BYTES_MAX`. Then it is emptied.
3. `matchFields` of a volume's node affinity match every node, as in kube-scheduler v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeVar

import numpy as np

from mooring.api.csi_translation import (
    BETA_REGION_LABEL,
    BETA_ZONE_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
)
from mooring.api.errors import LabelSelectorError
from mooring.api.labels import LabelMatcher, Operator, Requirement, checked_requirement
from mooring.api.nodeselector import compile_lenient
from mooring.api.views.selectors import NodeSelector, TopologySelectorTerm
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.labels import ABSENT

Topology = TypeVar("Topology", bound=Hashable)

CACHE_BYTES_MAX = 16 << 20
CACHE_ENTRIES_MIN = 64
"""Minimum number of cached results in a cluster of any size."""

TOPOLOGY_LABELS = (BETA_ZONE_LABEL, BETA_REGION_LABEL, ZONE_LABEL, REGION_LABEL)
_SUCCESSORS = {BETA_ZONE_LABEL: ZONE_LABEL, BETA_REGION_LABEL: REGION_LABEL}


class LabelledZones(NamedTuple):
    """The zones or regions that a volume's label lists."""

    key: str
    values: tuple[str, ...]


class SingleLabel(NamedTuple):
    """The only label that a topology requires: for a local volume, the name of its host."""

    key: str
    value: str


class VolumeTopology:
    """Evaluates topologies on all rows, and caches the results."""

    __slots__ = ("_cache", "_columns", "_position", "_rows_by_code")

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._cache: dict[Hashable, Bools] = {}
        self._rows_by_code: dict[str, tuple[Int64s, Int64s]] = {}
        """For a label: all rows ordered by its code, and where each code begins among them."""
        self._position = -1

    def selected(self, selector: NodeSelector) -> Bools:
        """The nodes that a volume's node affinity selects."""
        return self._cached(selector, self._evaluate_selector)

    def rows_with_label(self, single_label: SingleLabel) -> Int64s:
        """The rows whose label has the value. Rows are sorted by value once, so many values are cheap."""
        self._drop_if_stale()
        ordered = self._rows_by_code.get(single_label.key)
        if ordered is None:
            codes = self._codes(single_label.key)
            rows = np.argsort(codes, kind="stable")
            begins = np.searchsorted(
                codes[rows], np.arange(self._columns.labels.column(single_label.key).codes_max + 1)
            )
            ordered = self._rows_by_code[single_label.key] = (rows, begins)
        code = self._columns.labels.column(single_label.key).code_for(single_label.value)
        return ordered[0][:0] if code is None else ordered[0][ordered[1][code] : ordered[1][code + 1]]

    def allowed(self, terms: tuple[TopologySelectorTerm, ...]) -> Bools:
        """The nodes that match allowed topologies. No terms match all nodes, an empty or invalid term none."""
        return self._cached(terms, self._evaluate_terms)

    def labelled(self, matcher: LabelMatcher) -> Bools:
        """The nodes whose labels match."""
        return self._cached(matcher, self._evaluate_matcher)

    def zoned(self, zones: tuple[LabelledZones, ...]) -> Bools:
        """The nodes in all of these zones, and the nodes without any zone or region label."""
        return self._cached(zones, self._evaluate_zones)

    def _cached(self, topology: Topology, evaluate: Callable[[Topology], Bools]) -> Bools:
        self._drop_if_stale()
        result = self._cache.get(topology)
        if result is None:
            result = evaluate(topology)
            result.flags.writeable = False
            if len(self._cache) >= max(CACHE_ENTRIES_MIN, CACHE_BYTES_MAX // (len(result) + 1)):
                self._cache.clear()
            self._cache[topology] = result
        return result

    def _drop_if_stale(self) -> None:
        position = self._columns.fact_changes.position
        if position != self._position:
            self._cache.clear()
            self._rows_by_code.clear()
            self._position = position

    def _evaluate_selector(self, selector: NodeSelector) -> Bools:
        return self._evaluate_any(term.labels for term in compile_lenient(selector).terms if not term.faults)

    def _evaluate_matcher(self, matcher: LabelMatcher) -> Bools:
        if matcher.matches_nothing:
            return np.zeros(self._columns.height, dtype=np.bool_)
        return self._evaluate_labels(matcher.requirements)

    def _evaluate_terms(self, terms: tuple[TopologySelectorTerm, ...]) -> Bools:
        if not terms:
            return np.ones(self._columns.height, dtype=np.bool_)
        return self._evaluate_any(filter(None, map(_requirements_of, terms)))

    def _evaluate_any(self, terms: Iterable[Iterable[Requirement]]) -> Bools:
        matching: Bools | None = None
        for requirements in terms:
            holds = self._evaluate_labels(requirements)
            matching = holds if matching is None else matching | holds
        return matching if matching is not None else np.zeros(self._columns.height, dtype=np.bool_)

    def _evaluate_labels(self, requirements: Iterable[Requirement]) -> Bools:
        return self._columns.node_selection.labelled(requirements, slice(0, self._columns.height))

    def _evaluate_zones(self, zones: tuple[LabelledZones, ...]) -> Bools:
        labels, everywhere = self._columns.labels, slice(0, self._columns.height)
        is_zoned = np.zeros(self._columns.height, dtype=np.bool_)
        for key in TOPOLOGY_LABELS:
            is_zoned |= self._codes(key) != ABSENT
        lies_inside = np.ones(self._columns.height, dtype=np.bool_)
        for key, values in zones:
            has_value = labels.column(key).has_any(values, everywhere)
            if key in _SUCCESSORS:
                # On a node without the beta label, the label that replaced it counts.
                has_new_value = labels.column(_SUCCESSORS[key]).has_any(values, everywhere)
                has_value = np.where(self._codes(key) == ABSENT, has_new_value, has_value)
            lies_inside &= has_value
        return lies_inside | ~is_zoned

    def _codes(self, key: str) -> Int64s:
        return self._columns.labels.column(key).codes[: self._columns.height]


def single_label_of(selector: NodeSelector | None) -> SingleLabel | None:
    """The only label that a selector requires, if it is that simple."""
    terms = compile_lenient(selector).terms if selector is not None else ()
    if len(terms) != 1 or len(terms[0].labels) != 1 or terms[0].faults or not terms[0].labels[0].is_equality:
        return None
    requirement = terms[0].labels[0]
    return SingleLabel(requirement.key, requirement.values[0])


def single_label_of_matcher(matcher: LabelMatcher) -> SingleLabel | None:
    """As `single_label_of`, for a label selector."""
    requirements = matcher.requirements
    if matcher.matches_nothing or len(requirements) != 1 or not requirements[0].is_equality:
        return None
    return SingleLabel(requirements[0].key, requirements[0].values[0])


def _requirements_of(term: TopologySelectorTerm) -> list[Requirement]:
    try:
        return [checked_requirement(each.key, Operator.IN, each.values) for each in term.match_label_expressions]
    except LabelSelectorError:
        return []
