"""Matches claims with free PersistentVolumes: for each node the smallest volume that is accessible from it.

Input: the volumes, assumed or stored; the delayed claims of a pod. Output: for each claim and row a volume, or none.

Nodes differ only in which volumes are accessible from them. So the candidates of a claim are selected once, volumes
with the same node affinity form a group, and the best volume of a group is a candidate on all rows of the group.

1. The smallest volume that is large enough matches; of equal ones, the first by name.
2. A volume whose `claimRef` names the claim takes precedence, the first by name. If it is not accessible from the node,
   the claim has no match there.
3. A volume matches one claim. Claims of the same pod are matched in order of size, each without the volumes that
   earlier claims got on that row. With n earlier claims, n more volumes of each group suffice.
4. The table of candidates holds free volumes only. It is built on first use after a volume becomes free. A volume that
   is bound is marked in the table.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mooring.api.errors import LabelSelectorError
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.quantity import quantity_nano
from mooring.api.storage import class_of_claim, class_of_volume, is_bound_to, storage_requested, volume_mode_of
from mooring.api.views.meta import NodeSelector
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.plugins.volume_binding.topology import SingleLabel, VolumeTopology, single_label_of

_NO_VOLUME = int(np.iinfo(np.int64).max)
"""In `VolumeMatch.numbers`: no volume. Larger than any index, so that a minimum selects a volume."""
_AVAILABLE = "Available"


class VolumeMatch(NamedTuple):
    """The volume of one claim on each row."""

    claim: PersistentVolumeClaim
    numbers: Int64s
    volumes: Sequence[PersistentVolume]
    """The volumes by number."""

    def at(self, row: int) -> PersistentVolume | None:
        number = int(self.numbers[row])
        return None if number == _NO_VOLUME else self.volumes[number]

    @property
    def is_found(self) -> Bools:
        """Per row: whether the claim has a match."""
        is_found: Bools = self.numbers != _NO_VOLUME
        return is_found


class VolumeMatcher:
    """The volumes of all storage classes."""

    def __init__(self, columns: Columns, topology: VolumeTopology) -> None:
        self._columns = columns
        self._topology = topology
        self._by_class: dict[str, _ClassVolumes] = {}
        self._class_of: dict[str, str] = {}

    def observe(self, name: str, volume: PersistentVolume | None) -> None:
        """Applies a change of a volume."""
        old_class = self._class_of.pop(name, None)
        new_class = class_of_volume(volume) if volume is not None else None
        if old_class is not None and old_class != new_class:
            self._by_class[old_class].put(name, None)
        if volume is not None and new_class is not None:
            self._class_of[name] = new_class
            volumes_of_class = self._by_class.get(new_class)
            if volumes_of_class is None:
                volumes_of_class = self._by_class[new_class] = _ClassVolumes(self._columns, self._topology)
            volumes_of_class.put(name, volume)

    def match(self, claims: Sequence[PersistentVolumeClaim]) -> list[VolumeMatch]:
        """The matches of a pod's claims, smallest claim first. Raises `LabelSelectorError`."""
        matches: list[VolumeMatch] = []
        earlier_by_class: dict[str, list[VolumeMatch]] = {}
        for claim in sorted(claims, key=requested_nano):
            class_name = class_of_claim(claim)
            earlier = earlier_by_class.setdefault(class_name, [])
            selector = _selector_of(claim)
            volumes_of_class = self._by_class.get(class_name)
            if volumes_of_class is None:
                no_volume = np.full(self._columns.height, _NO_VOLUME, dtype=np.int64)
                matches.append(VolumeMatch(claim, no_volume, ()))
            else:
                matches.append(volumes_of_class.choose(claim, selector, earlier))
            earlier.append(matches[-1])
        return matches

    def free_at(self, class_name: str, row: int) -> list[PersistentVolume]:
        """The free volumes of a class that are accessible from the row's node, smallest first."""
        volumes_of_class = self._by_class.get(class_name)
        return volumes_of_class.free_at(row) if volumes_of_class is not None else []

    def reserved_for(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """The volumes whose `claimRef` names the claim and that match it."""
        volumes_of_class = self._by_class.get(class_of_claim(claim))
        return volumes_of_class.reserved_for(claim) if volumes_of_class is not None else []


class _VolumeTraits(NamedTuple):
    """What must match besides size and node affinity."""

    mode: str
    attributes_class: str
    access_modes: frozenset[str]


class _Table(NamedTuple):
    """The free volumes of a class, smallest first, then by name."""

    volumes: list[PersistentVolume]
    index_of: dict[str, int]
    sizes_nano: list[int]
    is_free: Bools
    traits: list[_VolumeTraits]
    traits_of: Int64s
    selectors: list[NodeSelector | None]
    single_labels: list[SingleLabel | None]
    """For each selector the only label that it requires, if it is that simple. Most local volumes have their own."""
    group_of: Int64s

    def free(self, name: str, volume: PersistentVolume) -> bool:
        """Marks a volume as free again; False if the table has no such volume, or an older version of it."""
        place = self.index_of.get(name)
        if place is None:
            return False
        known = self.volumes[place]
        if known.spec != volume.spec or known.metadata.labels != volume.metadata.labels:
            return False
        self.volumes[place] = volume
        self.is_free[place] = True
        return True


class _ClassVolumes:
    """The volumes of one storage class."""

    def __init__(self, columns: Columns, topology: VolumeTopology) -> None:
        self._columns = columns
        self._topology = topology
        self._free: dict[str, PersistentVolume] = {}
        self._reserved: dict[str, dict[str, PersistentVolume]] = {}
        """Volumes with a `claimRef`, by claim and by name."""
        self._claim_of: dict[str, str] = {}
        self._table: _Table | None = None
        self._members: tuple[int, Int64s, Int64s] = (-1, _NO_ROWS, _NO_ROWS)
        """Position in the change log; pairs of a row and a group that is accessible from it."""

    def put(self, name: str, volume: PersistentVolume | None) -> None:
        self._remove(name)
        if volume is None:
            return
        reference = volume.spec.claim_ref
        if reference is not None:
            claim = self._claim_of[name] = f"{reference.namespace}/{reference.name}"
            self._reserved.setdefault(claim, {})[name] = volume
        elif volume.status.phase == _AVAILABLE and volume.metadata.deletion_timestamp is None:
            self._free[name] = volume
            if self._table is not None and not self._table.free(name, volume):
                self._table = None

    def choose(
        self, claim: PersistentVolumeClaim, selector: LabelMatcher | None, earlier: Sequence[VolumeMatch]
    ) -> VolumeMatch:
        """The best volume for the claim on each row; `earlier` has the matches of the pod's earlier claims."""
        table = self._current_table()
        reserved = self.reserved_for(claim)
        numbers = np.full(self._columns.height, _NO_VOLUME, dtype=np.int64)
        decided = np.zeros(self._columns.height, dtype=np.bool_)
        same_claim = [match for match in earlier if match.claim.key == claim.key]
        for number, volume in enumerate(reserved, start=len(table.volumes)):
            decides = ~decided
            for match in same_claim:
                decides &= match.numbers != number
            numbers[decides & self._is_accessible(volume)] = number
            decided |= decides
        if not decided.all():
            numbers = np.where(decided, numbers, self._best_free(table, claim, selector, earlier))
        return VolumeMatch(claim, numbers, (*table.volumes, *reserved) if reserved else table.volumes)

    def free_at(self, row: int) -> list[PersistentVolume]:
        table = self._current_table()
        rows, groups = self._memberships(table)
        is_reached = np.isin(table.group_of, groups[rows == row])
        return [table.volumes[place] for place in np.flatnonzero(table.is_free & is_reached).tolist()]

    def _current_table(self) -> _Table:
        table = self._table
        if table is None:
            table = self._table = _table_of(self._free)
            self._members = (-1, _NO_ROWS, _NO_ROWS)
        return table

    def _best_free(
        self, table: _Table, claim: PersistentVolumeClaim, selector: LabelMatcher | None, earlier: Sequence[VolumeMatch]
    ) -> Int64s:
        best = np.full(self._columns.height, _NO_VOLUME, dtype=np.int64)
        candidates = _candidates(table, claim, selector)
        if not len(candidates):
            return best
        rows, groups = self._memberships(table)
        for offered in _best_of_groups(candidates, table.group_of[candidates], len(table.selectors), len(earlier) + 1):
            offers = offered[groups]
            is_open = offers != _NO_VOLUME
            for taken in earlier:
                is_open &= taken.numbers[rows] != offers
            np.minimum.at(best, rows[is_open], offers[is_open])
        return best

    def _memberships(self, table: _Table) -> tuple[Int64s, Int64s]:
        """All pairs of a row and a group of volumes that is accessible from it."""
        position = self._columns.fact_changes.position
        known_position, rows, groups = self._members
        if known_position != position:
            accessible = [
                self._accessible_rows(selector, single_label)
                for selector, single_label in zip(table.selectors, table.single_labels)
            ]
            rows = np.concatenate(accessible) if accessible else _NO_ROWS
            groups = np.repeat(np.arange(len(accessible)), [len(volume) for volume in accessible])
            self._members = (position, rows, groups)
        return rows, groups

    def _accessible_rows(self, selector: NodeSelector | None, single_label: SingleLabel | None) -> Int64s:
        if single_label is not None:
            return self._topology.rows_with_label(single_label)
        if selector is None:
            return np.arange(self._columns.height)
        return np.flatnonzero(self._topology.selected(selector))

    def _is_accessible(self, volume: PersistentVolume) -> Bools:
        selector = required_nodes(volume)
        if selector is None:
            return np.ones(self._columns.height, dtype=np.bool_)
        return self._topology.selected(selector)

    def reserved_for(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """The volumes whose `claimRef` names the claim and that match it, by name."""
        named = self._reserved.get(claim.key)
        if named is None:
            return []
        mode, attributes_class = _requested_traits(claim)
        return [
            volume
            for _, volume in sorted(named.items())
            if is_bound_to(volume, claim)
            and _size_nano(volume) >= requested_nano(claim)
            and _traits_of(volume)[:2] == (mode, attributes_class)
            and volume.metadata.deletion_timestamp is None
        ]

    def _remove(self, name: str) -> None:
        if self._free.pop(name, None) is not None and self._table is not None:
            self._table.is_free[self._table.index_of[name]] = False
        claim = self._claim_of.pop(name, None)
        if claim is not None:
            del self._reserved[claim][name]
            if not self._reserved[claim]:
                del self._reserved[claim]


_NO_ROWS: Int64s = np.zeros(0, dtype=np.int64)


def requested_nano(claim: PersistentVolumeClaim) -> int:
    requested = storage_requested(claim.spec)
    return quantity_nano(requested) if requested is not None else 0


def is_large_enough(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return _size_nano(volume) >= requested_nano(claim)


def mismatches(volume: PersistentVolume, claim: PersistentVolumeClaim) -> list[str]:
    """The fields, apart from size and node affinity, in which the volume does not match the claim."""
    traits, (mode, attributes_class), selector = _traits_of(volume), _requested_traits(claim), _selector_of(claim)
    checks = {
        "accessModes": traits.access_modes.issuperset(claim.spec.access_modes),
        "volumeMode": traits.mode == mode,
        "volumeAttributesClassName": traits.attributes_class == attributes_class,
        "selector": selector is None or selector.matches(volume.metadata.labels),
    }
    return [field for field, is_match in checks.items() if not is_match]


def required_nodes(volume: PersistentVolume) -> NodeSelector | None:
    """The required node affinity of a volume; None if it is accessible from all nodes."""
    affinity = volume.spec.node_affinity
    return affinity.required if affinity is not None else None


def _table_of(free: dict[str, PersistentVolume]) -> _Table:
    sized = sorted((_size_nano(volume), name, volume) for name, volume in free.items())
    volumes = [volume for _, _, volume in sized]
    traits: dict[_VolumeTraits, int] = {}
    selectors: dict[NodeSelector | None, int] = {}
    return _Table(
        volumes=volumes,
        index_of={name: place for place, (_, name, _) in enumerate(sized)},
        sizes_nano=[size for size, _, _ in sized],
        is_free=np.ones(len(volumes), dtype=np.bool_),
        traits_of=np.array([traits.setdefault(_traits_of(v), len(traits)) for v in volumes], dtype=np.int64),
        traits=list(traits),
        group_of=np.array([selectors.setdefault(required_nodes(v), len(selectors)) for v in volumes], dtype=np.int64),
        selectors=list(selectors),
        single_labels=[single_label_of(selector) for selector in selectors],
    )


def _candidates(table: _Table, claim: PersistentVolumeClaim, selector: LabelMatcher | None) -> Int64s:
    """The indexes of the free volumes that match the claim, best first."""
    first = bisect_left(table.sizes_nano, requested_nano(claim))
    mode, attributes_class = _requested_traits(claim)
    wanted_modes = frozenset(claim.spec.access_modes)
    suits = np.array(
        [
            t.mode == mode and t.attributes_class == attributes_class and wanted_modes <= t.access_modes
            for t in table.traits
        ],
        dtype=np.bool_,
    )
    candidates = first + np.flatnonzero(table.is_free[first:] & suits[table.traits_of[first:]])
    if selector is None:
        return candidates
    return np.array([c for c in candidates if selector.matches(table.volumes[c].metadata.labels)], dtype=np.int64)


def _best_of_groups(candidates: Int64s, groups: Int64s, group_count: int, depth: int) -> list[Int64s]:
    """Per group: its best candidate, then its second, … down to `depth`; `_NO_VOLUME` where a group has no more."""
    if depth == 1:
        best = np.full(group_count, _NO_VOLUME, dtype=np.int64)
        best[groups[::-1]] = candidates[::-1]  # of several candidates, the last one written remains: the best
        return [best]
    order = np.argsort(groups, kind="stable")
    by_group, of_group = candidates[order], groups[order]
    starts = np.searchsorted(of_group, np.arange(group_count))
    rank = np.arange(len(order)) - starts[of_group]
    ranked = np.full((depth, group_count), _NO_VOLUME, dtype=np.int64)
    is_wanted = rank < depth
    ranked[rank[is_wanted], of_group[is_wanted]] = by_group[is_wanted]
    return list(ranked)


def _traits_of(volume: PersistentVolume) -> _VolumeTraits:
    spec = volume.spec
    return _VolumeTraits(
        volume_mode_of(spec.volume_mode), spec.volume_attributes_class_name or "", frozenset(spec.access_modes)
    )


def _requested_traits(claim: PersistentVolumeClaim) -> tuple[str, str]:
    return volume_mode_of(claim.spec.volume_mode), claim.spec.volume_attributes_class_name or ""


def _size_nano(volume: PersistentVolume) -> int:
    capacity = volume.spec.capacity.get("storage")
    return quantity_nano(capacity) if capacity is not None else 0


def _selector_of(claim: PersistentVolumeClaim) -> LabelMatcher | None:
    if claim.spec.selector is None:
        return None
    try:
        return compile_selector(claim.spec.selector)
    except LabelSelectorError as error:
        raise LabelSelectorError(f"error creating internal label selector for claim: {claim.key}: {error}") from None
