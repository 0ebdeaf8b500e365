"""Provisioning: could a volume be made for a claim that a node would reach, and is there room for it?

Comes in   claims without a volume, their classes, drivers and the storage capacities that drivers report
Goes out   per row: can be made, must not be made there, or does not fit there

 1. A class without a provisioner makes nothing anywhere; allowed topologies bind all others.
 2. Capacity is looked at only if the driver asks for it (`CSIDriver.spec.storageCapacity`) and the claim says how much
    it wants. Then some capacity of the class must be large enough and be reached by the node. Where a driver says how
    large a single volume may be, that counts, and not how much there is altogether.
 3. A claim fits on a row if it fits into the largest of the capacities that the row reaches. That number is kept for
    each row and class, because a driver may report one capacity for each node, and report it often.
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
from mooring.scheduler.plugins.volume_binding.topology import Reach, pin_of_matcher

_UNKNOWN_BYTES = -1
"""A capacity that does not say how large it is: nothing fits in, not even nothing."""


class Provision(NamedTuple):
    """Where a volume for one claim could be made; over all rows."""

    is_allowed: Bools
    has_space: Bools


class Provisioning:
    """Answers for claims, from classes, drivers and capacities."""

    __slots__ = ("_classes", "_columns", "_drivers", "_reach", "_spaces")

    def __init__(self, columns: Columns, reach: Reach) -> None:
        self._columns = columns
        self._reach = reach
        self._classes = columns.objects.of(StorageClass)
        self._drivers = columns.objects.of(CSIDriver)
        self._spaces: dict[str, _Space] = {}
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
        is_allowed = self._reach.allowed(terms) if terms else everywhere
        requested = storage_requested(claim.spec)
        if requested is None or not self._tracks_capacity(storage_class.provisioner):
            return Provision(is_allowed, everywhere)
        space = self._spaces.get(storage_class.metadata.name)
        if space is None:
            return Provision(is_allowed, ~everywhere)
        return Provision(is_allowed, space.largest_bytes() >= quantity_value(requested))

    def is_dynamic(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim's class creates volumes at all."""
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

    def _space_of(self, capacity: CSIStorageCapacity) -> _Space:
        space = self._spaces.get(capacity.storage_class_name)
        if space is None:
            space = self._spaces[capacity.storage_class_name] = _Space(self._columns, self._reach)
        return space


class _Capacity(NamedTuple):
    """One capacity: who reaches it, and the largest volume that can be made from it."""

    topology: LabelSelector | None
    matcher: LabelMatcher
    size_bytes: int


class _Space:
    """The capacities of one class."""

    __slots__ = ("_capacities", "_columns", "_largest", "_members", "_position", "_reach")

    def __init__(self, columns: Columns, reach: Reach) -> None:
        self._columns = columns
        self._reach = reach
        self._capacities: dict[str, _Capacity] = {}
        self._position = -1
        self._members: tuple[Int64s, Int64s] | None = None
        """All pairs of a row and the place (in order) of a capacity that it reaches."""
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
        """Per row: the largest volume that can be made where the node reaches it."""
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
            reaching = [self._rows_reaching(capacity.matcher) for capacity in self._capacities.values()]
            rows = np.concatenate([np.zeros(0, dtype=np.int64), *reaching])
            places = np.repeat(np.arange(len(reaching)), [len(each) for each in reaching])
            self._members = (rows, places)
        return self._members

    def _rows_reaching(self, matcher: LabelMatcher) -> Int64s:
        pin = pin_of_matcher(matcher)
        if pin is not None:
            return self._reach.rows_carrying(pin)
        return np.flatnonzero(self._reach.labelled(matcher))


def _matcher_of(topology: LabelSelector | None) -> LabelMatcher:
    """Which nodes reach a capacity. As in kube-scheduler, none reach one with a faulty topology or without any."""
    try:
        return compile_selector(topology)
    except LabelSelectorError:
        return NOTHING


def _largest_volume_bytes(capacity: CSIStorageCapacity) -> int:
    limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    return quantity_value(limit) if limit is not None else _UNKNOWN_BYTES
