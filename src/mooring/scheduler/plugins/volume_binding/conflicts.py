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
from typing import NamedTuple

import numpy as np

from mooring.api.csi_translation import MIGRATED, TranslationError, plugin_of, translate_volume
from mooring.api.errors import LabelSelectorError
from mooring.api.storage import SELECTED_NODE, class_of_claim, storage_requested
from mooring.api.views.selectors import NodeSelector
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.framework.obstacle import Details, Obstacle, ObstacleKind
from mooring.scheduler.framework.status import Code, Reason
from mooring.scheduler.plugins.volume_binding.matching import (
    Choice,
    VolumePools,
    is_large_enough,
    mismatches,
    required_nodes,
)
from mooring.scheduler.plugins.volume_binding.provisioning import Provisioning
from mooring.scheduler.plugins.volume_binding.topology import Reach

REASONS = (
    Reason("node(s) didn't match PersistentVolume's node affinity", Code.UNRESOLVABLE),
    Reason("node(s) didn't find available persistent volumes to bind", Code.UNRESOLVABLE),
    Reason("node(s) did not have enough free storage", Code.UNRESOLVABLE),
    Reason("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", Code.UNRESOLVABLE),
)
_BIND_CONFLICT = 2
_NOT_ENOUGH_SPACE = 4
_VOLUME_MISSING = 8


class BoundClaim(NamedTuple):
    """A bound claim and its volume."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume | None
    """None if the volume does not exist."""


@dataclass(slots=True)
class PodClaims:
    """The claims of a pod, and what is known of them."""

    bound: list[BoundClaim] = field(default_factory=list)
    on_their_way: list[PersistentVolumeClaim] = field(default_factory=list)
    """Claims that have chosen a node, where a volume is being made."""
    waiting: list[PersistentVolumeClaim] = field(default_factory=list)
    """Claims without volume and node."""
    immediate: bool = False
    """Whether some claim should have been bound before the pod came."""
    errors: list[str] = field(default_factory=list)
    answer: Int64s | None = None
    choices: list[Choice] = field(default_factory=list)
    """The volumes that the waiting claims would get, once `answer` is computed."""

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
        for each in claims.bound:
            own = self.of_volume(claims, each.volume)
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
            choices = claims.choices = self._pools.match(claims.waiting)
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

    # Explain

    def explain(self, claims: PodClaims, plugin: str, row: int) -> list[Obstacle]:
        """Each claim that has something against a row, with its volume or with its class and size."""
        found = []
        for claim, volume in claims.bound:
            refusal = int(self.of_volume(claims, volume)[row])
            if refusal:
                if volume is None:
                    text = f"volume {claim.spec.volume_name} of claim {claim.key} does not exist"
                else:
                    text = f"volume {volume.metadata.name} of claim {claim.key} cannot be used from here"
                details = {"claim": claim.key, "volume": claim.spec.volume_name}
                found.append(Obstacle(plugin, ObstacleKind.VOLUME, text, details))
        for claim in claims.on_their_way:
            selected_node = claim.metadata.annotations[SELECTED_NODE]
            if selected_node != self._columns.node_names[row]:
                text = f"claim {claim.key} gets its volume on node {selected_node}"
                found.append(Obstacle(plugin, ObstacleKind.VOLUME, text, _details(claim)))
            else:
                found += self._unprovisioned(plugin, claim, row, "")
        for choice in claims.choices:
            if choice.at(row) is None:
                found += self._unprovisioned(plugin, choice.claim, row, self._why_unmatched(choice.claim, row))
        return found

    def _unprovisioned(self, plugin: str, claim: PersistentVolumeClaim, row: int, why_unmatched: str) -> list[Obstacle]:
        """The obstacle of a claim for which the row has no volume, unless a volume can be created there."""
        is_allowed, has_space = self._provisioning.of_claim(claim)
        if is_allowed[row] and has_space[row]:
            return []
        if is_allowed[row]:
            reasons = [why_unmatched, "its driver has too little capacity here to create one"]
        elif self._provisioning.is_dynamic(claim):
            reasons = [why_unmatched, "allowedTopologies of its class exclude this node"]
        else:
            reasons = [why_unmatched]
        class_name, requested = class_of_claim(claim), storage_requested(claim.spec)
        size = f"{requested} " if requested is not None else ""
        needs = f"claim {claim.key} needs a {size}volume " + (
            f"of class {class_name}" if class_name else "without class"
        )
        text = f"{needs}: {', and '.join(filter(None, reasons))}"
        return [Obstacle(plugin, ObstacleKind.VOLUME, text, _details(claim))]

    def _why_unmatched(self, claim: PersistentVolumeClaim, row: int) -> str:
        """Why no existing volume that the row reaches serves the claim."""
        reserved = self._pools.reserved_for(claim)
        if reserved:
            return f"volume {reserved[0].metadata.name} is reserved for it and cannot be used from here"
        free = self._pools.free_at(class_of_claim(claim), row)
        if not free:
            return "no volume is free here"
        large_enough = [volume for volume in free if is_large_enough(volume, claim)]
        if not large_enough:
            return f"the largest free volume here has {free[-1].spec.capacity.get('storage', 0)}"
        fields = dict.fromkeys(field for volume in large_enough for field in mismatches(volume, claim))
        if not fields:
            return "the free volumes here go to other claims of the pod"
        return f"the free volumes here do not match its {', '.join(fields)}"

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


def _details(claim: PersistentVolumeClaim) -> Details:
    requested = storage_requested(claim.spec)
    return {
        "claim": claim.key,
        "storageClass": class_of_claim(claim),
        "requested": str(requested) if requested is not None else "",
    }
