"""Which nodes the volumes of a pod rule out, and why.

Comes in   the claims of a pod, sorted; where volumes reach, which are free, where new ones can be made
Goes out   for all rows at once a bit set of reasons

 1. A bound claim's volume decides by its node affinity; a claim without one needs a volume there, or one that can be
    made there. Of several bound claims the first that has something against the node is told.
 2. What went wrong while somebody looked overrules what was found: such a node is in error, not refused.
 3. An in-tree volume counts as its driver's on nodes whose driver has taken it over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mooring.api.csi_translation import MIGRATED, TranslationError, plugin_of, translate_volume
from mooring.api.errors import LabelSelectorError
from mooring.api.storage import SELECTED_NODE
from mooring.api.views.selectors import NodeSelector
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.framework.status import Code, Reason
from mooring.scheduler.plugins.volume_matching import VolumePools, required_nodes
from mooring.scheduler.plugins.volume_provisioning import Provisioning
from mooring.scheduler.plugins.volume_reach import Reach

REASONS = (
    Reason("node(s) didn't match PersistentVolume's node affinity", Code.UNRESOLVABLE),
    Reason("node(s) didn't find available persistent volumes to bind", Code.UNRESOLVABLE),
    Reason("node(s) did not have enough free storage", Code.UNRESOLVABLE),
    Reason("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", Code.UNRESOLVABLE),
)
_BIND_CONFLICT = 2
_NOT_ENOUGH_SPACE = 4
_VOLUME_MISSING = 8


@dataclass(slots=True)
class PodClaims:
    """The claims of a pod, and what is known of them."""

    bound: list[PersistentVolume | None] = field(default_factory=list)
    """The volume of each bound claim; None for one that does not exist."""
    on_their_way: list[PersistentVolumeClaim] = field(default_factory=list)
    """Claims that have chosen a node, where a volume is being made."""
    waiting: list[PersistentVolumeClaim] = field(default_factory=list)
    """Claims without volume and node."""
    immediate: bool = False
    """Whether some claim should have been bound before the pod came."""
    errors: list[str] = field(default_factory=list)
    answer: Int64s | None = None

    def error_bit(self, text: str) -> int:
        if text not in self.errors:
            self.errors.append(text)
        return 1 << (len(REASONS) + self.errors.index(text))


class VolumeRefusals:
    """Judges the rows of the table."""

    def __init__(self, columns: Columns, reach: Reach, pools: VolumePools, provisioning: Provisioning) -> None:
        self._columns = columns
        self._reach = reach
        self._pools = pools
        self._provisioning = provisioning
        self._csi_nodes = columns.volumes.csi_nodes(columns)

    def answer(self, claims: PodClaims) -> Int64s:
        """Per row of the table: what the claims have against the node."""
        refusals = self._of_bound(claims)
        if claims.waiting or claims.on_their_way:
            unbound = self._of_unbound(claims)
            is_error = refusals >= 1 << len(REASONS)
            is_unbound_error = unbound >= 1 << len(REASONS)
            refusals = np.where(is_error, refusals, np.where(is_unbound_error, unbound, refusals | unbound))
        return refusals

    def _of_bound(self, claims: PodClaims) -> Int64s:
        """Per row: what the first bound claim that has something against the node says."""
        refusals: Int64s | None = None
        for volume in claims.bound:
            own = self.of_volume(claims, volume)
            refusals = own if refusals is None else np.where(refusals != 0, refusals, own)
        return refusals if refusals is not None else np.zeros(self._columns.height, dtype=np.int64)

    def of_volume(self, claims: PodClaims, volume: PersistentVolume | None) -> Int64s:
        if volume is None:
            return np.full(self._columns.height, _VOLUME_MISSING, dtype=np.int64)
        refusals = self._conflicts(required_nodes(volume))
        migrated = self._migrated_rows(volume)
        if migrated is None:
            return refusals
        try:
            of_driver = self._conflicts(translate_volume(volume).node_selector)
        except TranslationError as error:
            fault = claims.error_bit(f"could not translate pv: {error}")
            of_driver = np.full(self._columns.height, fault, dtype=np.int64)
        return np.where(migrated, of_driver, refusals)

    def _of_unbound(self, claims: PodClaims) -> Int64s:
        """Per row: whether each claim without a volume gets one there."""
        refusals = np.zeros(self._columns.height, dtype=np.int64)
        for claim in claims.on_their_way:
            is_elsewhere = np.ones(self._columns.height, dtype=np.bool_)
            row = self._columns.row_of.get(claim.metadata.annotations[SELECTED_NODE])
            if row is not None:
                is_elsewhere[row] = False
            refusals[is_elsewhere] = _BIND_CONFLICT
        try:
            choices = self._pools.match(claims.waiting)
        except LabelSelectorError as error:
            return np.where(refusals == 0, claims.error_bit(str(error)), refusals)
        everywhere = np.ones(self._columns.height, dtype=np.bool_)
        for claim in claims.on_their_way:
            self._refuse_provision(claim, everywhere, refusals)
        for choice in choices:
            self._refuse_provision(choice.claim, ~choice.is_found, refusals)
        return refusals

    def _refuse_provision(self, claim: PersistentVolumeClaim, is_needed: Bools, refusals: Int64s) -> None:
        """Refuses rows, of those that nothing refused yet, that need a new volume which cannot be made for them."""
        is_needed = is_needed & (refusals == 0)
        if not is_needed.any():
            return
        is_allowed, has_space = self._provisioning.of_claim(claim)
        refusals[is_needed & ~is_allowed] = _BIND_CONFLICT
        refusals[is_needed & is_allowed & ~has_space] = _NOT_ENOUGH_SPACE

    def _migrated_rows(self, volume: PersistentVolume) -> Bools | None:
        """Per row: whether the node's driver took over the in-tree volume; None if that is so nowhere."""
        plugin = plugin_of(volume.spec)
        if plugin is None or plugin not in MIGRATED:
            return None
        self._csi_nodes.sync()
        migrated = self._csi_nodes.migrated(plugin)
        return migrated[: self._columns.height] if migrated is not None else None

    def _conflicts(self, selector: NodeSelector | None) -> Int64s:
        if selector is None:
            return np.zeros(self._columns.height, dtype=np.int64)
        return (~self._reach.selected(selector)).astype(np.int64)  # the bit of a node conflict is the first one
