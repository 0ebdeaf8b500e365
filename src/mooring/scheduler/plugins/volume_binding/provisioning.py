"""Where a volume can be provisioned for a claim, and whether there is enough capacity.

Input: claims, their StorageClasses, CSIDrivers and CSIStorageCapacities. Output: per row, whether the class allows the
node and whether the capacity suffices.

1. A class without a provisioner provisions nothing. Allowed topologies apply to all others.
2. Capacity is checked only if the driver reports it (`CSIDriver.spec.storageCapacity`) and the claim requests a size.
   Then one capacity object of the class, accessible from the node, must be large enough. `maximumVolumeSize`, where it
   is set, is compared instead of `capacity`.
3. The largest accessible capacity of each row and class is cached, because a driver may report one capacity for each
   node, and often.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mooring.api.errors import LabelSelectorError
from mooring.api.labels import NOTHING, LabelMatcher, compile_selector
from mooring.api.quantity import quantity_value
from mooring.api.storage import NO_PROVISIONER, class_of_claim, storage_requested
from mooring.api.views.selectors import LabelSelector
from mooring.api.views.storage import CSIDriver, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.plugins.volume_binding.topology import VolumeTopology, single_label_of_matcher

_UNKNOWN_BYTES = -1
"""A capacity object without a size: no request fits, not even 0."""


class Provision(NamedTuple):
    """Where a volume for one claim can be provisioned, over all rows."""

    is_allowed: Bools
    has_space: Bools


class Provisioner:
    """Checks claims against classes, drivers and capacities."""

    __slots__ = ("_capacities_of", "_classes", "_columns", "_drivers", "_topology")

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

    __slots__ = ("_capacities", "_columns", "_largest", "_members", "_position", "_topology")

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
            places = np.repeat(np.arange(len(accessible)), [len(each) for each in accessible])
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
