"""Where storage can be reached from: which nodes satisfy the topology of a volume, a class or a pool of capacity.

Comes in   node affinities of volumes, allowed topologies of classes, node topologies of capacities, zone labels
Goes out   for each, one truth value for every row of the table

Thousands of volumes share a handful of topologies, and nodes seldom change: an answer is computed once for each
topology and kept until some node's facts change.

 1. Answers are over all rows of the table and are read-only: who wants some rows gathers them.
 2. At most `KEPT_BYTES_MAX` are kept; then the memory starts anew.
 3. A volume knows nodes by their labels only: what its affinity says about node names (`matchFields`) holds
    everywhere, as in kube-scheduler v1.36.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

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

KEPT_BYTES_MAX = 16 << 20
KEPT_MIN = 64
"""So many answers are kept in a cluster of any size."""

_FEW_VALUES = 8

TOPOLOGY_LABELS = (BETA_ZONE_LABEL, BETA_REGION_LABEL, ZONE_LABEL, REGION_LABEL)
_SUCCESSORS = {BETA_ZONE_LABEL: ZONE_LABEL, BETA_REGION_LABEL: REGION_LABEL}


class LabelledZones(NamedTuple):
    """The zones or regions that a volume's label lists."""

    key: str
    values: tuple[str, ...]


class Pin(NamedTuple):
    """The one label value that a volume's nodes carry: for a local volume, the name of its host."""

    key: str
    value: str


class Reach:
    """Answers "which nodes reach this?", and remembers."""

    __slots__ = ("_columns", "_kept", "_position", "_rows_by_code")

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._kept: dict[Hashable, Bools] = {}
        self._rows_by_code: dict[str, tuple[Int64s, Int64s]] = {}
        """For a label: all rows ordered by its code, and where each code begins among them."""
        self._position = -1

    def selected(self, selector: NodeSelector) -> Bools:
        """The nodes that a volume's node affinity selects."""
        answer = self._known(selector)
        return answer if answer is not None else self._keep(selector, self._evaluate_selector(selector))

    def rows_carrying(self, pin: Pin) -> Int64s:
        """The rows whose label has the value. Good for a great many values: rows are put in order once for all."""
        self._forget_if_stale()
        ordered = self._rows_by_code.get(pin.key)
        if ordered is None:
            codes = self._codes(pin.key)
            rows = np.argsort(codes, kind="stable")
            begins = np.searchsorted(codes[rows], np.arange(self._columns.labels.column(pin.key).codes_max + 1))
            ordered = self._rows_by_code[pin.key] = (rows, begins)
        code = self._columns.labels.column(pin.key).code_for(pin.value)
        return ordered[0][:0] if code is None else ordered[0][ordered[1][code] : ordered[1][code + 1]]

    def allowed(self, terms: tuple[TopologySelectorTerm, ...]) -> Bools:
        """The nodes that a class's allowed topologies admit. No terms admit all nodes, an empty or faulty term none."""
        answer = self._known(terms)
        return answer if answer is not None else self._keep(terms, self._evaluate_terms(terms))

    def labelled(self, matcher: LabelMatcher) -> Bools:
        """The nodes whose labels match."""
        answer = self._known(matcher)
        return answer if answer is not None else self._keep(matcher, self._evaluate_matcher(matcher))

    def zoned(self, zones: tuple[LabelledZones, ...]) -> Bools:
        """The nodes that lie in all of these zones, and those without any zone or region label: one big zone."""
        answer = self._known(zones)
        return answer if answer is not None else self._keep(zones, self._evaluate_zones(zones))

    def _known(self, topology: Hashable) -> Bools | None:
        self._forget_if_stale()
        return self._kept.get(topology)

    def _forget_if_stale(self) -> None:
        position = self._columns.fact_changes.position
        if position != self._position:
            self._kept.clear()
            self._rows_by_code.clear()
            self._position = position

    def _keep(self, topology: Hashable, answer: Bools) -> Bools:
        if len(self._kept) >= max(KEPT_MIN, KEPT_BYTES_MAX // (len(answer) + 1)):
            self._kept.clear()
        answer.flags.writeable = False
        self._kept[topology] = answer
        return answer

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
        reached: Bools | None = None
        for requirements in terms:
            holds = self._evaluate_labels(requirements)
            reached = holds if reached is None else reached | holds
        return reached if reached is not None else np.zeros(self._columns.height, dtype=np.bool_)

    def _evaluate_labels(self, requirements: Iterable[Requirement]) -> Bools:
        reached: Bools | None = None
        for requirement in requirements:
            if requirement.operator is Operator.IN and len(requirement.values) <= _FEW_VALUES:
                holds = self._carries(requirement.key, requirement.values)
            else:
                holds = self._columns.node_selection.labelled((requirement,), slice(0, self._columns.height))
            reached = holds if reached is None else reached & holds
        return reached if reached is not None else np.ones(self._columns.height, dtype=np.bool_)

    def _evaluate_zones(self, zones: tuple[LabelledZones, ...]) -> Bools:
        is_zoned = np.zeros(self._columns.height, dtype=np.bool_)
        for key in TOPOLOGY_LABELS:
            is_zoned |= self._codes(key) != ABSENT
        lies_inside = np.ones(self._columns.height, dtype=np.bool_)
        for key, values in zones:
            carries = self._carries(key, values)
            if key in _SUCCESSORS:
                # A node that lacks the beta label is asked for the label that replaced it.
                carries = np.where(self._codes(key) == ABSENT, self._carries(_SUCCESSORS[key], values), carries)
            lies_inside &= carries
        return lies_inside | ~is_zoned

    def _carries(self, key: str, values: tuple[str, ...]) -> Bools:
        """Per row: whether the label has one of a few values. Comparing codes is cheaper than gathering answers."""
        codes, column = self._codes(key), self._columns.labels.column(key)
        carries: Bools | None = None
        for value in values:
            code = column.code_for(value)
            if code is not None:
                has_value: Bools = codes == code
                carries = has_value if carries is None else carries | has_value
        return carries if carries is not None else np.zeros(len(codes), dtype=np.bool_)

    def _codes(self, key: str) -> Int64s:
        return self._columns.labels.column(key).codes[: self._columns.height]


def pin_of(selector: NodeSelector | None) -> Pin | None:
    """The label value to which a selector comes down, if it is as simple as that."""
    terms = compile_lenient(selector).terms if selector is not None else ()
    if len(terms) != 1 or len(terms[0].labels) != 1 or terms[0].faults or not terms[0].labels[0].is_equality:
        return None
    requirement = terms[0].labels[0]
    return Pin(requirement.key, requirement.values[0])


def pin_of_matcher(matcher: LabelMatcher) -> Pin | None:
    """As `pin_of`, for a label selector."""
    requirements = matcher.requirements
    if matcher.matches_nothing or len(requirements) != 1 or not requirements[0].is_equality:
        return None
    return Pin(requirements[0].key, requirements[0].values[0])


def _requirements_of(term: TopologySelectorTerm) -> list[Requirement]:
    try:
        return [checked_requirement(each.key, Operator.IN, each.values) for each in term.match_label_expressions]
    except LabelSelectorError:
        return []
