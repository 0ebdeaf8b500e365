"""Where a volume can be used or provisioned: one boolean for every row.

`VolumeTopology` evaluates the node affinity of volumes, allowed topologies of classes, node topology of capacities and
zone labels. Thousands of volumes share a few topologies, and nodes rarely change: a result is computed once for each
topology and cached until a node changes.

1. Results cover all rows and are read-only.
2. The cache holds at most `CACHE_BYTES_MAX`. Then it is emptied.
3. `matchFields` of a volume's node affinity match every node, as in kube-scheduler v1.36.

`Provisioner` checks whether a class allows the node, and whether the capacity of the driver suffices there.

4. A class without a provisioner provisions nothing. Allowed topologies apply to all others.
5. Capacity is checked only if the driver reports it (`CSIDriver.spec.storageCapacity`) and the claim requests a size.
   Then one capacity object of the class, accessible from the node, must be large enough. `maximumVolumeSize`, where it
   is set, is compared instead of `capacity`.
6. The largest accessible capacity of each row and class is cached, because a driver may report one capacity for each
   node, and often.
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
from mooring.api.labels import NOTHING, LabelMatcher, Operator, Requirement, checked_requirement, compile_selector
from mooring.api.nodeselector import compile_lenient
from mooring.api.quantity import quantity_value
from mooring.api.storage import NO_PROVISIONER, class_of_claim, storage_requested
from mooring.api.views.meta import LabelSelector, NodeSelector, TopologySelectorTerm
from mooring.api.views.storage import CSIDriver, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.nodes import ABSENT

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
        return self._evaluate_any(term.labels for term in compile_lenient(selector).terms if not term.errors)

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
    if len(terms) != 1 or len(terms[0].labels) != 1 or terms[0].errors or not terms[0].labels[0].is_equality:
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
        return [
            checked_requirement(match_label_expression.key, Operator.IN, match_label_expression.values)
            for match_label_expression in term.match_label_expressions
        ]
    except LabelSelectorError:
        return []


_UNKNOWN_BYTES = -1
"""A capacity object without a size: no request fits, not even 0."""


class Provision(NamedTuple):
    """Where a volume for one claim can be provisioned, over all rows."""

    is_allowed: Bools
    has_space: Bools


class Provisioner:
    """Checks claims against classes, drivers and capacities."""

    def __init__(self, columns: Columns, topology: VolumeTopology) -> None:
        self._columns = columns
        self._topology = topology
        self._classes = columns.objects.of(StorageClass)
        self._drivers = columns.objects.of(CSIDriver)
        self._capacities_of: dict[str, _ClassCapacity] = {}
        capacities = columns.objects.of(CSIStorageCapacity)
        for capacity in capacities:
            self._capacity_changed(None, capacity)
        capacities.listen(self._capacity_changed)

    def of_claim(self, claim: PersistentVolumeClaim) -> Provision:
        everywhere = np.ones(self._columns.height, dtype=np.bool_)
        storage_class = self._classes.get(class_of_claim(claim))
        assert storage_class is not None, f"{claim.key} waits for its first consumer, but its class is gone"
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return Provision(~everywhere, everywhere)
        terms = storage_class.allowed_topologies
        is_allowed = self._topology.allowed(terms) if terms else everywhere
        requested = storage_requested(claim.spec)
        if requested is None or not self._tracks_capacity(storage_class.provisioner):
            return Provision(is_allowed, everywhere)
        space = self._capacities_of.get(storage_class.metadata.name)
        if space is None:
            return Provision(is_allowed, ~everywhere)
        return Provision(is_allowed, space.largest_bytes() >= quantity_value(requested))

    def is_dynamic(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim's class has a provisioner."""
        storage_class = self._classes.get(class_of_claim(claim))
        return storage_class is not None and storage_class.provisioner not in ("", NO_PROVISIONER)

    def allowed_topologies(self, claim: PersistentVolumeClaim) -> tuple[TopologySelectorTerm, ...]:
        """Where volumes of the claim's class may be created; empty: everywhere."""
        storage_class = self._classes.get(class_of_claim(claim))
        return storage_class.allowed_topologies if storage_class is not None else ()

    def _tracks_capacity(self, provisioner: str) -> bool:
        driver = self._drivers.get(provisioner)
        return driver is not None and bool(driver.spec.storage_capacity)

    def _capacity_changed(self, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None) -> None:
        if old is not None and (new is None or new.storage_class_name != old.storage_class_name):
            self._space_of(old).remove(old.key)
        if new is not None:
            self._space_of(new).put(new)

    def _space_of(self, capacity: CSIStorageCapacity) -> _ClassCapacity:
        space = self._capacities_of.get(capacity.storage_class_name)
        if space is None:
            space = self._capacities_of[capacity.storage_class_name] = _ClassCapacity(self._columns, self._topology)
        return space


class _Capacity(NamedTuple):
    """One CSIStorageCapacity: its topology, and the largest volume that fits."""

    topology: LabelSelector | None
    matcher: LabelMatcher
    size_bytes: int


class _ClassCapacity:
    """The capacities of one storage class."""

    def __init__(self, columns: Columns, topology: VolumeTopology) -> None:
        self._columns = columns
        self._topology = topology
        self._capacities: dict[str, _Capacity] = {}
        self._position = -1
        self._members: tuple[Int64s, Int64s] | None = None
        """All pairs of a row and the index of a capacity that is accessible from it."""
        self._largest: Int64s | None = None

    def put(self, capacity: CSIStorageCapacity) -> None:
        size_bytes, topology = _largest_volume_bytes(capacity), capacity.node_topology
        known = self._capacities.get(capacity.key)
        if known is not None and known.topology == topology:
            self._capacities[capacity.key] = known._replace(size_bytes=size_bytes)
        else:
            self._capacities[capacity.key] = _Capacity(topology, _matcher_of(topology), size_bytes)
            self._members = None
        self._largest = None

    def remove(self, key: str) -> None:
        del self._capacities[key]
        self._members = self._largest = None

    def largest_bytes(self) -> Int64s:
        """Per row: the largest volume that can be provisioned."""
        position = self._columns.fact_changes.position
        if position != self._position:
            self._members = self._largest = None
            self._position = position
        if self._largest is None:
            rows, places = self._memberships()
            sizes = np.array([capacity.size_bytes for capacity in self._capacities.values()], dtype=np.int64)
            self._largest = np.full(self._columns.height, _UNKNOWN_BYTES, dtype=np.int64)
            np.maximum.at(self._largest, rows, sizes[places])
        return self._largest

    def _memberships(self) -> tuple[Int64s, Int64s]:
        if self._members is None:
            accessible = [self._accessible_rows(capacity.matcher) for capacity in self._capacities.values()]
            rows = np.concatenate([np.zeros(0, dtype=np.int64), *accessible])
            places = np.repeat(np.arange(len(accessible)), [len(of_capacity) for of_capacity in accessible])
            self._members = (rows, places)
        return self._members

    def _accessible_rows(self, matcher: LabelMatcher) -> Int64s:
        single_label = single_label_of_matcher(matcher)
        if single_label is not None:
            return self._topology.rows_with_label(single_label)
        return np.flatnonzero(self._topology.labelled(matcher))


def _matcher_of(topology: LabelSelector | None) -> LabelMatcher:
    """The node topology of a capacity. As in kube-scheduler, an invalid or missing topology matches no node."""
    try:
        return compile_selector(topology)
    except LabelSelectorError:
        return NOTHING


def _largest_volume_bytes(capacity: CSIStorageCapacity) -> int:
    limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    return quantity_value(limit) if limit is not None else _UNKNOWN_BYTES
