"""Matching claims with volumes that exist already: for each node the smallest free volume that it reaches.

Comes in   volumes as they are believed to be; claims that wait for their first consumer
Goes out   for each claim and each row the volume that it would get there

The candidates of a claim are the same for all nodes but for one thing: whether the node reaches them. So candidates are
sifted once, volumes with the same reach are a group, and the best of each group is handed to all rows of the group.

 1. The smallest volume that is large enough wins; of equals, the first by name.
 2. A volume that names the claim wins before all free ones, the first by name. If the node does not reach that one, no
    other is looked at.
 3. A volume serves one claim. Of the claims of one pod, the later ones find taken what the earlier ones got on that
    row; with so many earlier claims, looking at as many volumes more of each group is enough.
 4. Only free volumes stand in the table of candidates. It is built when it is first needed after a volume became free,
    and volumes that are taken are merely struck out.
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
from mooring.api.views.selectors import NodeSelector
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.plugins.volume_binding.topology import Pin, Reach, pin_of

_NOBODY = int(np.iinfo(np.int64).max)
"""In a choice: no volume. Larger than any place in the table, so that a minimum is a choice."""
_AVAILABLE = "Available"


class Choice(NamedTuple):
    """What one claim would get, for each row of the table."""

    claim: PersistentVolumeClaim
    numbers: Int64s
    volumes: Sequence[PersistentVolume]
    """What the numbers stand for."""

    def at(self, row: int) -> PersistentVolume | None:
        number = int(self.numbers[row])
        return None if number == _NOBODY else self.volumes[number]

    @property
    def is_found(self) -> Bools:
        """Per row: whether there is a volume for the claim."""
        is_found: Bools = self.numbers != _NOBODY
        return is_found


class VolumePools:
    """The volumes of all classes."""

    __slots__ = ("_class_of", "_columns", "_pools", "_reach")

    def __init__(self, columns: Columns, reach: Reach) -> None:
        self._columns = columns
        self._reach = reach
        self._pools: dict[str, _Pool] = {}
        self._class_of: dict[str, str] = {}

    def observe(self, name: str, volume: PersistentVolume | None) -> None:
        """This is what is believed of a volume from now on."""
        old_class = self._class_of.pop(name, None)
        new_class = class_of_volume(volume) if volume is not None else None
        if old_class is not None and old_class != new_class:
            self._pools[old_class].put(name, None)
        if volume is not None and new_class is not None:
            self._class_of[name] = new_class
            pool = self._pools.get(new_class)
            if pool is None:
                pool = self._pools[new_class] = _Pool(self._columns, self._reach)
            pool.put(name, volume)

    def match(self, claims: Sequence[PersistentVolumeClaim]) -> list[Choice]:
        """What the claims of one pod would get, smallest claim first. Raises `LabelSelectorError`."""
        choices: list[Choice] = []
        earlier_by_class: dict[str, list[Choice]] = {}
        for claim in sorted(claims, key=requested_nano):
            class_name = class_of_claim(claim)
            earlier = earlier_by_class.setdefault(class_name, [])
            selector = _selector_of(claim)
            pool = self._pools.get(class_name)
            if pool is None:
                nobody = np.full(self._columns.height, _NOBODY, dtype=np.int64)
                choices.append(Choice(claim, nobody, ()))
            else:
                choices.append(pool.choose(claim, selector, earlier))
            earlier.append(choices[-1])
        return choices

    def free_at(self, class_name: str, row: int) -> list[PersistentVolume]:
        """The free volumes of a class that the row's node reaches, smallest first."""
        pool = self._pools.get(class_name)
        return pool.free_at(row) if pool is not None else []

    def reserved_for(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """The volumes that name the claim (`claimRef`) and match it."""
        pool = self._pools.get(class_of_claim(claim))
        return pool.reserved_for(claim) if pool is not None else []


class _Traits(NamedTuple):
    """What must fit besides size and reach."""

    mode: str
    attributes_class: str
    access_modes: frozenset[str]


class _Table(NamedTuple):
    """The free volumes of a class, smallest first, then by name."""

    volumes: list[PersistentVolume]
    place_of: dict[str, int]
    sizes_nano: list[int]
    is_free: Bools
    traits: list[_Traits]
    traits_of: Int64s
    reaches: list[NodeSelector | None]
    pins: list[Pin | None]
    """For each reach the label value to which it comes down, if it does: most local volumes have one of their own."""
    group_of: Int64s

    def take_back(self, name: str, volume: PersistentVolume) -> bool:
        """Whether a volume that was struck out is free again, and fits where it stood."""
        place = self.place_of.get(name)
        if place is None:
            return False
        known = self.volumes[place]
        if known.spec != volume.spec or known.metadata.labels != volume.metadata.labels:
            return False
        self.volumes[place] = volume
        self.is_free[place] = True
        return True


class _Pool:
    """The volumes of one class."""

    __slots__ = ("_claim_of", "_columns", "_free", "_members", "_reach", "_reserved", "_table")

    def __init__(self, columns: Columns, reach: Reach) -> None:
        self._columns = columns
        self._reach = reach
        self._free: dict[str, PersistentVolume] = {}
        self._reserved: dict[str, dict[str, PersistentVolume]] = {}
        """Volumes that name a claim, by claim and by their own name."""
        self._claim_of: dict[str, str] = {}
        self._table: _Table | None = None
        self._members: tuple[int, Int64s, Int64s] = (-1, _NO_PLACES, _NO_PLACES)
        """Since which position of the change log, and pairs of row and group: who reaches what."""

    def put(self, name: str, volume: PersistentVolume | None) -> None:
        self._strike(name)
        if volume is None:
            return
        reference = volume.spec.claim_ref
        if reference is not None:
            claim = self._claim_of[name] = f"{reference.namespace}/{reference.name}"
            self._reserved.setdefault(claim, {})[name] = volume
        elif volume.status.phase == _AVAILABLE and volume.metadata.deletion_timestamp is None:
            self._free[name] = volume
            if self._table is not None and not self._table.take_back(name, volume):
                self._table = None

    def choose(self, claim: PersistentVolumeClaim, selector: LabelMatcher | None, earlier: Sequence[Choice]) -> Choice:
        """The best volume for the claim on each row; `earlier` is what other claims of the pod got here."""
        table = self._current_table()
        reserved = self.reserved_for(claim)
        numbers = np.full(self._columns.height, _NOBODY, dtype=np.int64)
        decided = np.zeros(self._columns.height, dtype=np.bool_)
        same_claim = [choice for choice in earlier if choice.claim.key == claim.key]
        for number, volume in enumerate(reserved, start=len(table.volumes)):
            decides = ~decided
            for choice in same_claim:
                decides &= choice.numbers != number
            numbers[decides & self._reached_by(volume)] = number
            decided |= decides
        if not decided.all():
            numbers = np.where(decided, numbers, self._best_free(table, claim, selector, earlier))
        return Choice(claim, numbers, (*table.volumes, *reserved) if reserved else table.volumes)

    def free_at(self, row: int) -> list[PersistentVolume]:
        table = self._current_table()
        rows, groups = self._memberships(table)
        is_reached = np.isin(table.group_of, groups[rows == row])
        return [table.volumes[place] for place in np.flatnonzero(table.is_free & is_reached).tolist()]

    def _current_table(self) -> _Table:
        table = self._table
        if table is None:
            table = self._table = _table_of(self._free)
            self._members = (-1, _NO_PLACES, _NO_PLACES)
        return table

    def _best_free(
        self, table: _Table, claim: PersistentVolumeClaim, selector: LabelMatcher | None, earlier: Sequence[Choice]
    ) -> Int64s:
        best = np.full(self._columns.height, _NOBODY, dtype=np.int64)
        candidates = _candidates(table, claim, selector)
        if not len(candidates):
            return best
        rows, groups = self._memberships(table)
        for offered in _best_of_groups(candidates, table.group_of[candidates], len(table.reaches), len(earlier) + 1):
            offers = offered[groups]
            is_open = offers != _NOBODY
            for taken in earlier:
                is_open &= taken.numbers[rows] != offers
            np.minimum.at(best, rows[is_open], offers[is_open])
        return best

    def _memberships(self, table: _Table) -> tuple[Int64s, Int64s]:
        """All pairs of a row and a group of volumes that it reaches."""
        position = self._columns.fact_changes.position
        known_position, rows, groups = self._members
        if known_position != position:
            reaching = [self._rows_reaching(selector, pin) for selector, pin in zip(table.reaches, table.pins)]
            rows = np.concatenate(reaching) if reaching else _NO_PLACES
            groups = np.repeat(np.arange(len(reaching)), [len(each) for each in reaching])
            self._members = (position, rows, groups)
        return rows, groups

    def _rows_reaching(self, selector: NodeSelector | None, pin: Pin | None) -> Int64s:
        if pin is not None:
            return self._reach.rows_carrying(pin)
        if selector is None:
            return np.arange(self._columns.height)
        return np.flatnonzero(self._reach.selected(selector))

    def _reached_by(self, volume: PersistentVolume) -> Bools:
        selector = required_nodes(volume)
        if selector is None:
            return np.ones(self._columns.height, dtype=np.bool_)
        return self._reach.selected(selector)

    def reserved_for(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """The volumes that name the claim and match it, by name."""
        named = self._reserved.get(claim.key)
        if named is None:
            return []
        mode, attributes_class = _wishes(claim)
        return [
            volume
            for _, volume in sorted(named.items())
            if is_bound_to(volume, claim)
            and _size_nano(volume) >= requested_nano(claim)
            and _traits_of(volume)[:2] == (mode, attributes_class)
            and volume.metadata.deletion_timestamp is None
        ]

    def _strike(self, name: str) -> None:
        if self._free.pop(name, None) is not None and self._table is not None:
            self._table.is_free[self._table.place_of[name]] = False
        claim = self._claim_of.pop(name, None)
        if claim is not None:
            del self._reserved[claim][name]
            if not self._reserved[claim]:
                del self._reserved[claim]


_NO_PLACES: Int64s = np.zeros(0, dtype=np.int64)


def requested_nano(claim: PersistentVolumeClaim) -> int:
    requested = storage_requested(claim.spec)
    return quantity_nano(requested) if requested is not None else 0


def is_large_enough(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return _size_nano(volume) >= requested_nano(claim)


def mismatches(volume: PersistentVolume, claim: PersistentVolumeClaim) -> list[str]:
    """The fields, apart from size and node affinity, in which a volume is not what the claim asks for."""
    traits, (mode, attributes_class), selector = _traits_of(volume), _wishes(claim), _selector_of(claim)
    checks = {
        "accessModes": traits.access_modes.issuperset(claim.spec.access_modes),
        "volumeMode": traits.mode == mode,
        "volumeAttributesClassName": traits.attributes_class == attributes_class,
        "selector": selector is None or selector.matches(volume.metadata.labels),
    }
    return [field for field, is_match in checks.items() if not is_match]


def required_nodes(volume: PersistentVolume) -> NodeSelector | None:
    """The nodes that reach a volume; None if all do."""
    affinity = volume.spec.node_affinity
    return affinity.required if affinity is not None else None


def _table_of(free: dict[str, PersistentVolume]) -> _Table:
    sized = sorted((_size_nano(volume), name, volume) for name, volume in free.items())
    volumes = [volume for _, _, volume in sized]
    traits: dict[_Traits, int] = {}
    reaches: dict[NodeSelector | None, int] = {}
    return _Table(
        volumes=volumes,
        place_of={name: place for place, (_, name, _) in enumerate(sized)},
        sizes_nano=[size for size, _, _ in sized],
        is_free=np.ones(len(volumes), dtype=np.bool_),
        traits_of=np.array([traits.setdefault(_traits_of(v), len(traits)) for v in volumes], dtype=np.int64),
        traits=list(traits),
        group_of=np.array([reaches.setdefault(required_nodes(v), len(reaches)) for v in volumes], dtype=np.int64),
        reaches=list(reaches),
        pins=[pin_of(selector) for selector in reaches],
    )


def _candidates(table: _Table, claim: PersistentVolumeClaim, selector: LabelMatcher | None) -> Int64s:
    """The places of the free volumes that the claim could have, best first."""
    first = bisect_left(table.sizes_nano, requested_nano(claim))
    mode, attributes_class = _wishes(claim)
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
    """Per group: its best candidate, then its second, … down to `depth`; `_NOBODY` where a group has no more."""
    if depth == 1:
        best = np.full(group_count, _NOBODY, dtype=np.int64)
        best[groups[::-1]] = candidates[::-1]  # of several, the one written last stays: the best
        return [best]
    order = np.argsort(groups, kind="stable")
    by_group, of_group = candidates[order], groups[order]
    starts = np.searchsorted(of_group, np.arange(group_count))
    rank = np.arange(len(order)) - starts[of_group]
    levels = np.full((depth, group_count), _NOBODY, dtype=np.int64)
    is_near_the_top = rank < depth
    levels[rank[is_near_the_top], of_group[is_near_the_top]] = by_group[is_near_the_top]
    return list(levels)


def _traits_of(volume: PersistentVolume) -> _Traits:
    spec = volume.spec
    return _Traits(
        volume_mode_of(spec.volume_mode), spec.volume_attributes_class_name or "", frozenset(spec.access_modes)
    )


def _wishes(claim: PersistentVolumeClaim) -> tuple[str, str]:
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
