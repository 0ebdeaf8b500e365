"""VolumeBinding: place a pod where its PersistentVolumeClaims are bound or can be bound.

Input: the claims of a pod; the volumes, StorageClasses, CSIDrivers and CSIStorageCapacities of the cluster. Output:
rejected nodes; for the selected node the volume of each claim and the claims to provision (`PodVolumes`).

A claim is bound (the node affinity of its volume decides), or waits for its first consumer (the scheduler finds a
volume for it or has one provisioned), or is of a class with immediate binding: then the pod waits until another
controller has bound it.

1. The result does not depend on the pods of a node. The plugin computes it for all rows at once and caches it in the
   state.
2. A claim with a selected node is provisioned on that node only.
3. `reserve` assumes volumes and claims, so the next pod finds them taken. `unreserve` reverts what this pod assumed,
   and nothing that another pod has assumed before.
4. Scoring by free capacity (StorageCapacityScoring) is off by default in kube-scheduler v1.36. PreScore always skips.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mooring.api.errors import LabelSelectorError
from mooring.api.quantity import quantity_value
from mooring.api.storage import (
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    bound_to,
    claim_named_by,
    class_of_claim,
    is_controlled_by_pod,
    is_ephemeral,
    is_fully_bound,
    not_controlled_text,
    not_found_text,
    with_selected_node,
)
from mooring.api.views.meta import ApiObject, RawQuantity
from mooring.api.views.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Volume,
)
from mooring.client.errors import ClientError
from mooring.client.interface import Client
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.attachments import MIGRATED_PLUGINS
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.types import VolumeBindingArgs
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint, queue_if
from mooring.scheduler.framework.obstacle import ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import (
    SKIP,
    AssumesWrites,
    Filter,
    PreFilter,
    PreScore,
    Proceed,
    RecordWrite,
    Reserve,
    Scope,
    Score,
    Skip,
)
from mooring.scheduler.framework.status import Code, Reason, Status
from mooring.scheduler.plugins.volume_binding.binder import AssumeCache, VolumeBinder, VolumeBindingError
from mooring.scheduler.plugins.volume_binding.conflicts import (
    REASONS,
    BoundClaim,
    PodVolumeClaims,
    VolumeConflicts,
    unbound_obstacle,
)
from mooring.scheduler.plugins.volume_binding.matching import VolumeMatch, VolumeMatcher
from mooring.scheduler.plugins.volume_binding.topology import Provisioner, VolumeTopology

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class BindingInfo(NamedTuple):
    """A volume with its `claimRef` set, and the claim."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim


class PodVolumes(NamedTuple):
    """The volumes and claims to write for a pod on its selected node."""

    bindings: tuple[BindingInfo, ...]
    provisions: tuple[PersistentVolumeClaim, ...]
    """Claims to provision, with the selected-node annotation."""
    assumed_volumes: tuple[PersistentVolume, ...]
    assumed_claims: tuple[PersistentVolumeClaim, ...]


class VolumeBinding(
    PreFilter[PodVolumeClaims], Filter[PodVolumeClaims], PreScore[None], Score[None], Reserve, AssumesWrites
):
    name = "VolumeBinding"
    obstacle_kind = ObstacleKind.VOLUME
    only_for_volumes = True
    score_scope = Scope.NODE
    filter_reasons = REASONS

    def __init__(
        self, columns: Columns, arguments: VolumeBindingArgs, client: Client, record_write: RecordWrite
    ) -> None:
        self._columns = columns
        self._record_write = record_write
        self._bind_timeout_s = arguments.bind_timeout_seconds
        self._classes = columns.objects.of(StorageClass)
        self._stored_claims = columns.objects.of(PersistentVolumeClaim)
        self._claims = AssumeCache(self._stored_claims)
        self._volumes = AssumeCache(columns.objects.of(PersistentVolume))
        topology = VolumeTopology(columns)
        self._matcher = VolumeMatcher(columns, topology)
        self._conflicts = VolumeConflicts(columns, topology, self._matcher, Provisioner(columns, topology))
        self._reserved: dict[str, PodVolumes] = {}
        self._volumes.listen(self._matcher.observe)
        stored_volumes = columns.objects.of(PersistentVolume)
        self._binder = VolumeBinder(client, stored_volumes, self._stored_claims, self._can_use)

    # Filter

    def pre_filter(self, pod: PodInfo) -> Proceed[PodVolumeClaims] | Skip | Status:
        named = _claims_named(pod)
        if not named:
            return SKIP
        for volume, name, key in named:
            problem = self._problem_of(pod, volume, name, self._stored_claims.get(key))
            if problem is not None:
                return Status.unresolvable(problem)
        claims = self._sort_claims(named)
        if isinstance(claims, Status):
            return claims
        if claims.immediate:
            return Status.unresolvable(UNBOUND_IMMEDIATE)
        return Proceed(claims)

    def explain_rejection(self, pod: PodInfo, status: Status) -> Sequence[Obstacle]:
        """Each claim that is not bound although it does not wait for the pod, and what it waits for."""
        if status.reasons != (UNBOUND_IMMEDIATE,):
            return super().explain_rejection(pod, status)
        claims = [self._claims.get(key) for _, _, key in _claims_named(pod)]
        return [
            unbound_obstacle(self.name, claim, self._classes.get(class_of_claim(claim)))
            for claim in claims
            if claim is not None and not is_fully_bound(claim) and self._waits_for_consumer(claim) is False
        ] or super().explain_rejection(pod, status)

    def filter(self, state: PodVolumeClaims, rows: Rows) -> Int64s:
        if state.conflicts is None:
            state.conflicts = self._conflicts.find(state)
        return state.conflicts[rows]

    def reasons(self, state: PodVolumeClaims) -> tuple[Reason, ...]:
        return (*REASONS, *(Reason(text, Code.ERROR) for text in state.errors)) if state.errors else REASONS

    def explain(self, state: PodVolumeClaims, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        is_error = bits >= 1 << len(REASONS)
        found = [] if is_error else self._conflicts.explain(state, self.name, row)
        return found or super().explain(state, row, bits, context)

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        any_change = ActionType.ADD | ActionType.UPDATE
        return (
            ClusterEventWithHint(
                EventResource.STORAGE_CLASS, any_change, _changes_allowed_topologies, per_signature=True
            ),
            ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, any_change, needs_claim),
            ClusterEventWithHint(EventResource.PERSISTENT_VOLUME, any_change),
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            ClusterEventWithHint(EventResource.CSI_NODE, any_change, _changes_migration, per_signature=True),
            ClusterEventWithHint(EventResource.CSI_DRIVER, ActionType.UPDATE, _stops_tracking_capacity),
            ClusterEventWithHint(EventResource.CSI_STORAGE_CAPACITY, any_change, _raises_capacity, per_signature=True),
        )

    # Score

    def pre_score(self, pod: PodInfo, feasible: Rows) -> Skip:
        return SKIP

    def score(self, state: None, rows: Rows) -> Int64s:
        return np.zeros(length_of(rows), dtype=np.int64)

    # Reserve

    def reserve(self, pod: PodInfo, row: int) -> Status | None:
        if not pod.volumes:
            return None
        named = _claims_named(pod)
        if all((claim := self._claims.get(key)) is None or is_fully_bound(claim) for _, _, key in named):
            return None  # all claims are bound, which is the usual case
        claims = self._sort_claims(named)
        if isinstance(claims, Status):
            return claims
        if not claims.delayed and not claims.provisioning:
            return None
        try:
            matches = self._matcher.match(claims.delayed)
        except LabelSelectorError as error:
            return Status.error(str(error))
        self._reserved[pod.uid] = self._assume(claims, matches, row)
        return None

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        reserved = self._reserved.pop(pod.uid, None)
        if reserved is None:
            return
        for volume in reserved.assumed_volumes:
            self._volumes.restore(volume)
        for claim in reserved.assumed_claims:
            self._claims.restore(claim)

    def reserved_for(self, pod: PodInfo) -> PodVolumes | None:
        """The volumes and claims that `reserve` chose for a pod and that are not written yet, if any."""
        return self._reserved.get(pod.uid)

    # PreBind

    def has_work(self, pod: PodInfo, node_name: str) -> bool:
        return pod.uid in self._reserved

    async def pre_bind(self, pod: PodInfo, node_name: str) -> Status | None:
        reserved = self._reserved[pod.uid]
        bindings: list[tuple[PersistentVolume, str]] = []
        provisions: list[PersistentVolumeClaim] = []
        try:
            for volume, claim in reserved.bindings:
                bound = await self._binder.bind_volume(volume)
                bindings.append((bound, claim.key))
                self._written(pod, bound)
            for claim in reserved.provisions:
                selected = await self._binder.select_node(claim)
                provisions.append(selected)
                self._written(pod, selected)
        except ClientError as error:
            return Status.error(str(error))
        try:
            why_impossible = partial(self._why_impossible, pod, node_name)
            await self._binder.wait_bound(node_name, bindings, provisions, self._bind_timeout_s, why_impossible)
        except VolumeBindingError as error:
            return Status.error(f"binding volumes: {error}")
        self._reserved.pop(pod.uid, None)
        return None

    def _why_impossible(self, pod: PodInfo, node_name: str) -> str | None:
        if node_name not in self._columns.row_of:
            return f'failed to get node "{node_name}": {not_found_text("node", node_name)}'
        if pod.uid not in self._columns.pods:
            return f"pod does not exist any more: {not_found_text('pod', pod.name)}"
        return None

    def _written(self, pod: PodInfo, written: ApiObject) -> None:
        self._record_write(pod, self.name, written)
        self.assume_written(pod, written)

    def assume_written(self, pod: PodInfo, written: ApiObject) -> str:
        """Excludes a written object from `unreserve`."""
        reserved = self._reserved.get(pod.uid)
        if reserved is None:
            return "no volumes"
        volumes, claims = [volume for volume, _ in reserved.bindings], reserved.provisions
        if _choice(written) not in [_choice(chosen) for chosen in (*volumes, *claims)]:
            return ", ".join(_choice(chosen) for chosen in (*volumes, *claims))
        self._reserved[pod.uid] = reserved._replace(
            assumed_volumes=tuple(
                assumed_volume
                for assumed_volume in reserved.assumed_volumes
                if _choice(assumed_volume) != _choice(written)
            ),
            assumed_claims=tuple(
                assumed_claim for assumed_claim in reserved.assumed_claims if _choice(assumed_claim) != _choice(written)
            ),
        )
        return ""

    def _can_use(self, volume: PersistentVolume, node_name: str) -> bool:
        row = self._columns.row_of.get(node_name)
        return row is None or int(self._conflicts.of_volume(PodVolumeClaims(), volume)[row]) == 0

    def _assume(self, claims: PodVolumeClaims, matches: list[VolumeMatch], row: int) -> PodVolumes:
        node_name = self._columns.node_names[row]
        chosen = [(match.claim, match.at(row)) for match in matches]
        found = [(claim, volume) for claim, volume in chosen if volume is not None]
        bound = [(volume, BindingInfo(bound_to(volume, claim), claim)) for claim, volume in found]
        unmatched = [claim for claim, volume in chosen if volume is None]
        marked = [(claim, with_selected_node(claim, node_name)) for claim in (*claims.provisioning, *unmatched)]
        reserved = PodVolumes(
            bindings=tuple(binding for _, binding in bound),
            provisions=tuple(after for _, after in marked),
            assumed_volumes=tuple(binding.volume for before, binding in bound if binding.volume is not before),
            assumed_claims=tuple(after for before, after in marked if after is not before),
        )
        for assumed_volume in reserved.assumed_volumes:
            self._volumes.assume(assumed_volume)
        for assumed_claim in reserved.assumed_claims:
            self._claims.assume(assumed_claim)
        return reserved

    # The claims of a pod

    @staticmethod
    def _problem_of(pod: PodInfo, volume: Volume, name: str, claim: PersistentVolumeClaim | None) -> str | None:
        """Why a pod with this volume fits on no node for now."""
        if claim is None:
            if is_ephemeral(volume):
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return not_found_text("persistentvolumeclaim", name)
        if claim.status.phase == "Lost":
            volume_name = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume_name}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if is_ephemeral(volume) and not is_controlled_by_pod(claim, pod.namespace, pod.name, pod.uid):
            return not_controlled_text(claim, pod.namespace, pod.name)
        return None

    def _sort_claims(self, named: list[tuple[Volume, str, str]]) -> PodVolumeClaims | Status:
        claims = PodVolumeClaims()
        for _, _, key in named:
            claim = self._claims.get(key)
            if claim is None:
                continue
            if is_fully_bound(claim):
                claims.bound.append(BoundClaim(claim, self._volumes.get(claim.spec.volume_name)))
                continue
            waits = self._waits_for_consumer(claim)
            if isinstance(waits, Status):
                return waits
            if not waits or claim.spec.volume_name:
                claims.immediate = True
            elif SELECTED_NODE in claim.metadata.annotations:
                claims.provisioning.append(claim)
            else:
                claims.delayed.append(claim)
        return claims

    def _waits_for_consumer(self, claim: PersistentVolumeClaim) -> bool | Status:
        class_name = class_of_claim(claim)
        storage_class = self._classes.get(class_name) if class_name else None
        if storage_class is None:
            return False
        if storage_class.volume_binding_mode is None:
            return Status.error(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _choice(item: ApiObject) -> str:
    """What Reserve chose and PreBind writes: the claim of a volume, or the node of a claim."""
    if isinstance(item, PersistentVolume) and (reference := item.spec.claim_ref) is not None:
        return f"{item.kind} {item.key} for claim {reference.namespace}/{reference.name}"
    return f"{item.kind} {item.key} for node {item.metadata.annotations.get(SELECTED_NODE)}"


def _claims_named(pod: PodInfo) -> list[tuple[Volume, str, str]]:
    """The volumes of a pod that use a claim, with the claim's name and key."""
    named = []
    for volume in pod.volumes:
        name = claim_named_by(volume, pod.name)
        if name is not None:
            named.append((volume, name, f"{pod.namespace}/{name}"))
    return named


# --- queueing hints ---------------------------------------------------------------------------------------------


def needs_claim(pod: PodInfo, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> QueueingHint:
    """Whether the pod uses the claim that was added or updated, also for an ephemeral volume."""
    metadata = new.metadata
    return queue_if(
        metadata.namespace == pod.namespace
        and any(claim_named_by(volume, pod.name) == metadata.name for volume in pod.volumes)
    )


def _changes_allowed_topologies(pod: PodInfo, old: StorageClass | None, new: StorageClass) -> QueueingHint:
    return queue_if(old is None or old.allowed_topologies != new.allowed_topologies)


def _changes_migration(pod: PodInfo, old: CSINode | None, new: CSINode) -> QueueingHint:
    if old is None:
        return QueueingHint.QUEUE
    before, after = old.metadata.annotations, new.metadata.annotations
    return queue_if(before.get(MIGRATED_PLUGINS, "") != after.get(MIGRATED_PLUGINS, ""))


def _stops_tracking_capacity(pod: PodInfo, old: CSIDriver, new: CSIDriver) -> QueueingHint:
    """Whether a driver of the pod no longer reports capacity. As in kube-scheduler, only inline volumes count."""
    if not old.spec.storage_capacity or new.spec.storage_capacity:
        return QueueingHint.SKIP
    return queue_if(any(volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.volumes))


def _raises_capacity(pod: PodInfo, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> QueueingHint:
    if old is None:
        return QueueingHint.QUEUE
    before, after = _largest_volume(old), _largest_volume(new)
    return queue_if(after is not None and (before is None or quantity_value(after) > quantity_value(before)))


def _largest_volume(capacity: CSIStorageCapacity) -> RawQuantity | None:
    return capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
