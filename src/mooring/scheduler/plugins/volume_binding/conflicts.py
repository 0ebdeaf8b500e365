"""Which nodes the claims of a pod rule out, and why.

Input: the claims of a pod, by state. Output: for every row a bit set of `REASONS`.

1. A bound claim is checked by the node affinity of its volume. An unbound claim needs a volume that matches on the
   node, or one that can be provisioned there. Of several bound claims, the first with a conflict is reported.
2. An error (of a selector, of the translation to CSI) takes precedence over a conflict.
3. An in-tree volume is checked as a CSI volume on nodes whose kubelet has migrated its plugin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mooring.api.csi_translation import MIGRATED, TranslationError, plugin_of, translate_volume
from mooring.api.errors import LabelSelectorError
from mooring.api.storage import NO_PROVISIONER, SELECTED_NODE, class_of_claim, storage_requested
from mooring.api.views.meta import NodeSelector
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.framework.obstacle import Details, Obstacle, ObstacleKind, selected_nodes_text, topologies_text
from mooring.scheduler.framework.status import Code, Reason
from mooring.scheduler.plugins.volume_binding.matching import (
    VolumeMatch,
    VolumeMatcher,
    is_large_enough,
    mismatches,
    required_nodes,
)
from mooring.scheduler.plugins.volume_binding.topology import Provisioner, VolumeTopology

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
class PodVolumeClaims:
    """The claims of a pod by state, and the result of the filter."""

    bound: list[BoundClaim] = field(default_factory=list)
    provisioning: list[PersistentVolumeClaim] = field(default_factory=list)
    """Unbound claims with a selected node, where a volume is being provisioned."""
    delayed: list[PersistentVolumeClaim] = field(default_factory=list)
    """Unbound claims of a class with WaitForFirstConsumer, without a selected node."""
    immediate: bool = False
    """Whether the pod has an unbound claim with immediate binding."""
    errors: list[str] = field(default_factory=list)
    conflicts: Int64s | None = None
    matches: list[VolumeMatch] = field(default_factory=list)
    """The volumes for the delayed claims, once `conflicts` is computed."""

    def error_bit(self, text: str) -> int:
        if text not in self.errors:
            self.errors.append(text)
        return 1 << (len(REASONS) + self.errors.index(text))


class VolumeConflicts:
    """Checks all rows for conflicts with the claims of a pod."""

    def __init__(
        self, columns: Columns, topology: VolumeTopology, matcher: VolumeMatcher, provisioner: Provisioner
    ) -> None:
        self._columns = columns
        self._topology = topology
        self._matcher = matcher
        self._provisioner = provisioner
        self._csi_nodes = columns.volumes.csi_nodes()

    def find(self, claims: PodVolumeClaims) -> Int64s:
        """Per row: the conflicts of all claims."""
        conflicts = self._check_bound_claims(claims)
        if claims.delayed or claims.provisioning:
            unbound = self._check_unbound_claims(claims)
            is_error = conflicts >= 1 << len(REASONS)
            is_unbound_error = unbound >= 1 << len(REASONS)
            conflicts = np.where(is_error, conflicts, np.where(is_unbound_error, unbound, conflicts | unbound))
        return conflicts

    def _check_bound_claims(self, claims: PodVolumeClaims) -> Int64s:
        """Per row: the conflict of the first bound claim that has one."""
        conflicts: Int64s | None = None
        for bound_claim in claims.bound:
            own = self.of_volume(claims, bound_claim.volume)
            conflicts = own if conflicts is None else np.where(conflicts != 0, conflicts, own)
        return conflicts if conflicts is not None else np.zeros(self._columns.height, dtype=np.int64)

    def of_volume(self, claims: PodVolumeClaims, volume: PersistentVolume | None) -> Int64s:
        if volume is None:
            return np.full(self._columns.height, _VOLUME_MISSING, dtype=np.int64)
        conflicts = self._node_conflicts(required_nodes(volume))
        migrated = self._migrated_rows(volume)
        if migrated is None:
            return conflicts
        try:
            of_driver = self._node_conflicts(translate_volume(volume).node_selector)
        except TranslationError as error:
            error_bit = claims.error_bit(f"could not translate pv: {error}")
            of_driver = np.full(self._columns.height, error_bit, dtype=np.int64)
        return np.where(migrated, of_driver, conflicts)

    def _check_unbound_claims(self, claims: PodVolumeClaims) -> Int64s:
        """Per row: the conflict of the first unbound claim that gets no volume there."""
        conflicts = np.zeros(self._columns.height, dtype=np.int64)
        for claim in claims.provisioning:
            is_elsewhere = np.ones(self._columns.height, dtype=np.bool_)
            row = self._columns.row_of.get(claim.metadata.annotations[SELECTED_NODE])
            if row is not None:
                is_elsewhere[row] = False
            conflicts[is_elsewhere] = _BIND_CONFLICT
        try:
            matches = claims.matches = self._matcher.match(claims.delayed)
        except LabelSelectorError as error:
            return np.where(conflicts == 0, claims.error_bit(str(error)), conflicts)
        everywhere = np.ones(self._columns.height, dtype=np.bool_)
        for claim in claims.provisioning:
            self._check_provision(claim, everywhere, conflicts)
        for match in matches:
            self._check_provision(match.claim, ~match.is_found, conflicts)
        return conflicts

    def _check_provision(self, claim: PersistentVolumeClaim, is_needed: Bools, conflicts: Int64s) -> None:
        """Adds a conflict to rows without one where the claim needs a volume that cannot be provisioned."""
        is_needed = is_needed & (conflicts == 0)
        if not is_needed.any():
            return
        is_allowed, has_space = self._provisioner.of_claim(claim)
        conflicts[is_needed & ~is_allowed] = _BIND_CONFLICT
        conflicts[is_needed & is_allowed & ~has_space] = _NOT_ENOUGH_SPACE

    # Explain

    def explain(self, claims: PodVolumeClaims, plugin: str, row: int) -> list[Obstacle]:
        """Each claim that rules out a row, with its volume, or with its class and size."""
        found = []
        for claim, volume in claims.bound:
            conflict = int(self.of_volume(claims, volume)[row])
            if conflict:
                if volume is None:
                    text = f"volume {claim.spec.volume_name} of claim {claim.key} does not exist"
                else:
                    text = f"volume {volume.metadata.name} of claim {claim.key} {_only_where(volume)}"
                details = {"claim": claim.key, "volume": claim.spec.volume_name}
                found.append(Obstacle(plugin, ObstacleKind.VOLUME, text, details))
        for claim in claims.provisioning:
            selected_node = claim.metadata.annotations[SELECTED_NODE]
            if selected_node != self._columns.node_names[row]:
                text = f"claim {claim.key} gets its volume on node {selected_node}"
                found.append(Obstacle(plugin, ObstacleKind.VOLUME, text, _details(claim)))
            else:
                found += self._unprovisioned(plugin, claim, row, "")
        for match in claims.matches:
            if match.at(row) is None:
                found += self._unprovisioned(plugin, match.claim, row, self._why_unmatched(match.claim, row))
        return found

    def _unprovisioned(self, plugin: str, claim: PersistentVolumeClaim, row: int, why_unmatched: str) -> list[Obstacle]:
        """The obstacle of a claim for which the row has no volume, unless a volume can be created there."""
        is_allowed, has_space = self._provisioner.of_claim(claim)
        if is_allowed[row] and has_space[row]:
            return []
        if is_allowed[row]:
            reasons = [why_unmatched, "its driver has too little capacity here to create one"]
        elif self._provisioner.is_dynamic(claim):
            where = topologies_text(self._provisioner.allowed_topologies(claim))
            reasons = [why_unmatched, f"its class allows to create one only {where}"]
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
        """Why no existing volume that is accessible from the row matches the claim."""
        reserved = self._matcher.reserved_for(claim)
        if reserved:
            return f"volume {reserved[0].metadata.name} is reserved for it and {_only_where(reserved[0])}"
        free = self._matcher.free_at(class_of_claim(claim), row)
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
        """Per row: whether the in-tree plugin is migrated to CSI; None if it is migrated nowhere."""
        plugin = plugin_of(volume.spec)
        if plugin is None or plugin not in MIGRATED:
            return None
        self._csi_nodes.sync()
        migrated = self._csi_nodes.migrated(plugin)
        return migrated[: self._columns.height] if migrated is not None else None

    def _node_conflicts(self, selector: NodeSelector | None) -> Int64s:
        if selector is None:
            return np.zeros(self._columns.height, dtype=np.int64)
        return (~self._topology.selected(selector)).astype(np.int64)  # the first bit is the node conflict


def unbound_obstacle(plugin: str, claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> Obstacle:
    """What a claim with immediate binding waits for, on whatever node its pod will be."""
    class_name, requested = class_of_claim(claim), storage_requested(claim.spec)
    size = f"{requested} " if requested is not None else ""
    if claim.spec.volume_name:
        waits = f"waits to be bound to volume {claim.spec.volume_name}"
    elif not class_name:
        waits = f"waits for a {size}volume without class"
    elif storage_class is None:
        waits = f"waits for a {size}volume of class {class_name}, and there is no such StorageClass"
    elif storage_class.provisioner in ("", NO_PROVISIONER):
        waits = f"waits for a {size}volume of class {class_name}, which has no provisioner"
    else:
        waits = f"waits for a {size}volume of class {class_name} from provisioner {storage_class.provisioner}"
    return Obstacle(plugin, ObstacleKind.VOLUME, f"claim {claim.key} {waits}", _details(claim))


def _only_where(volume: PersistentVolume) -> str:
    selector = required_nodes(volume)
    if selector is None:
        return "cannot be used from here"
    return f"can only be used {selected_nodes_text(selector)}"


def _details(claim: PersistentVolumeClaim) -> Details:
    requested = storage_requested(claim.spec)
    return {
        "claim": claim.key,
        "storageClass": class_of_claim(claim),
        "requested": str(requested) if requested is not None else "",
    }
