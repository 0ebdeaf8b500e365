"""VolumeBinding: a pod goes where its volumes are, or where volumes for it can be found or made.

Comes in   the claims of a pod, the volumes, classes, drivers and capacities of the cluster
Goes out   refusals of nodes that a bound volume cannot be reached from, or where no volume can be had for a claim;
           for the chosen node, which volume each claim gets and which claims wait for one to be made (`Reserved`)

A claim is bound (its volume's node affinity decides), waits for its first consumer (the scheduler finds it a volume, or
has one made), or should have been bound by somebody else already: then the pod has to wait.

 1. The answer does not depend on the pods of a node. It is computed for all rows at once and kept in the state.
 2. A claim that has chosen a node already goes there or nowhere.
 3. What a pod was given in `reserve` is assumed: the next pod sees it as taken. `unreserve` takes back what this pod
    assumed, and nothing that another pod had assumed before it.
 4. Scoring by free capacity (StorageCapacityScoring) is off by default in kube-scheduler v1.36: it always skips here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mooring.api.errors import LabelSelectorError
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
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.api.views.volumes import Volume
from mooring.client.errors import ClientError
from mooring.client.promise import Client
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.types import VolumeBindingArgs
from mooring.scheduler.framework.events import Wake
from mooring.scheduler.framework.obstacle import ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import (
    SKIP,
    Filter,
    PreBind,
    PreFilter,
    PreScore,
    Proceed,
    Reserve,
    Scope,
    Score,
    Skip,
)
from mooring.scheduler.framework.status import Code, Reason, Status
from mooring.scheduler.plugins.volume_assumptions import AssumedObjects
from mooring.scheduler.plugins.volume_hints import volume_binding_wakes
from mooring.scheduler.plugins.volume_matching import Choice, VolumePools
from mooring.scheduler.plugins.volume_provisioning import Provisioning
from mooring.scheduler.plugins.volume_reach import Reach
from mooring.scheduler.plugins.volume_refusals import REASONS, BoundClaim, PodClaims, VolumeRefusals
from mooring.scheduler.plugins.volume_writing import VolumeBindingError, VolumeWriter


class Binding(NamedTuple):
    """A volume and the claim that it was given to."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim


class Reserved(NamedTuple):
    """What was decided for a pod on its node, as the API server is to be told."""

    bindings: tuple[Binding, ...]
    provisions: tuple[PersistentVolumeClaim, ...]
    """Claims for which a volume is to be made, marked with the node."""
    assumed_volumes: tuple[PersistentVolume, ...]
    assumed_claims: tuple[PersistentVolumeClaim, ...]


class VolumeBinding(PreFilter[PodClaims], Filter[PodClaims], PreScore[None], Score[None], Reserve, PreBind):
    name = "VolumeBinding"
    obstacle_kind = ObstacleKind.VOLUME
    only_for_volumes = True
    score_scope = Scope.NODE
    filter_reasons = REASONS

    def __init__(self, columns: Columns, arguments: VolumeBindingArgs, client: Client) -> None:
        self._columns = columns
        self._bind_timeout_s = arguments.bind_timeout_seconds
        self._classes = columns.objects.of(StorageClass)
        self._stored_claims = columns.objects.of(PersistentVolumeClaim)
        self._claims = AssumedObjects(self._stored_claims)
        self._volumes = AssumedObjects(columns.objects.of(PersistentVolume))
        reach = Reach(columns)
        self._pools = VolumePools(columns, reach)
        self._refusals = VolumeRefusals(columns, reach, self._pools, Provisioning(columns, reach))
        self._reserved: dict[str, Reserved] = {}
        self._volumes.listen(self._pools.observe)
        stored_volumes = columns.objects.of(PersistentVolume)
        self._writer = VolumeWriter(client, stored_volumes, self._stored_claims, self._can_reach)

    # Filter

    def pre_filter(self, pod: PodInfo) -> Proceed[PodClaims] | Skip | Status:
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
            return Status.unresolvable("pod has unbound immediate PersistentVolumeClaims")
        return Proceed(claims)

    def filter(self, state: PodClaims, rows: Rows) -> Int64s:
        if state.answer is None:
            state.answer = self._refusals.answer(state)
        return state.answer[rows]

    def reasons(self, state: PodClaims) -> tuple[Reason, ...]:
        return (*REASONS, *(Reason(text, Code.ERROR) for text in state.errors)) if state.errors else REASONS

    def explain(self, state: PodClaims, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        is_error = bits >= 1 << len(REASONS)
        found = [] if is_error else self._refusals.explain(state, self.name, row)
        return found or super().explain(state, row, bits, context)

    def wakes(self) -> tuple[Wake, ...]:
        return volume_binding_wakes()

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
            return None  # nothing is left to be chosen: the usual case, and quickly told
        claims = self._sort_claims(named)
        if isinstance(claims, Status):
            return claims
        if not claims.waiting and not claims.on_their_way:
            return None
        try:
            choices = self._pools.match(claims.waiting)
        except LabelSelectorError as error:
            return Status.error(str(error))
        self._reserved[pod.uid] = self._assume(claims, choices, row)
        return None

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        reserved = self._reserved.pop(pod.uid, None)
        if reserved is None:
            return
        for volume in reserved.assumed_volumes:
            self._volumes.restore(volume)
        for claim in reserved.assumed_claims:
            self._claims.restore(claim)

    def reserved_for(self, pod: PodInfo) -> Reserved | None:
        """What `reserve` decided for a pod and is not written yet; None if nothing is left to be done."""
        return self._reserved.get(pod.uid)

    # PreBind

    def has_work(self, pod: PodInfo, node_name: str) -> bool:
        return pod.uid in self._reserved

    async def pre_bind(self, pod: PodInfo, node_name: str) -> Status | None:
        reserved = self._reserved[pod.uid]
        given: list[tuple[PersistentVolume, str]] = []
        ordered: list[PersistentVolumeClaim] = []
        try:
            for volume, claim in reserved.bindings:
                given.append((await self._writer.give(volume), claim.key))
                self._keep(pod, volume)
            for claim in reserved.provisions:
                ordered.append(await self._writer.order(claim))
                self._keep(pod, claim)
        except ClientError as error:
            return Status.error(str(error))
        try:
            why_in_vain = partial(self._why_in_vain, pod, node_name)
            await self._writer.wait_bound(node_name, given, ordered, self._bind_timeout_s, why_in_vain)
        except VolumeBindingError as error:
            return Status.error(f"binding volumes: {error}")
        self._reserved.pop(pod.uid, None)
        return None

    def _why_in_vain(self, pod: PodInfo, node_name: str) -> str | None:
        if node_name not in self._columns.row_of:
            return f'failed to get node "{node_name}": {not_found_text("node", node_name)}'
        if pod.uid not in self._columns.pods:
            return f"pod does not exist any more: {not_found_text('pod', pod.name)}"
        return None

    def _keep(self, pod: PodInfo, written: PersistentVolume | PersistentVolumeClaim) -> None:
        """The API server knows: it is no assumption any more that could be taken back."""
        reserved = self._reserved.get(pod.uid)
        if reserved is not None:
            self._reserved[pod.uid] = reserved._replace(
                assumed_volumes=tuple(v for v in reserved.assumed_volumes if v is not written),
                assumed_claims=tuple(c for c in reserved.assumed_claims if c is not written),
            )

    def _can_reach(self, volume: PersistentVolume, node_name: str) -> bool:
        row = self._columns.row_of.get(node_name)
        return row is None or int(self._refusals.of_volume(PodClaims(), volume)[row]) == 0

    def _assume(self, claims: PodClaims, choices: list[Choice], row: int) -> Reserved:
        node_name = self._columns.node_names[row]
        chosen = [(choice.claim, choice.at(row)) for choice in choices]
        found = [(claim, volume) for claim, volume in chosen if volume is not None]
        bound = [(volume, Binding(bound_to(volume, claim), claim)) for claim, volume in found]
        unmatched = [claim for claim, volume in chosen if volume is None]
        marked = [(claim, with_selected_node(claim, node_name)) for claim in (*claims.on_their_way, *unmatched)]
        reserved = Reserved(
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
        """Why a pod with this volume cannot be scheduled for now, wherever."""
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

    def _sort_claims(self, named: list[tuple[Volume, str, str]]) -> PodClaims | Status:
        claims = PodClaims()
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
                claims.on_their_way.append(claim)
            else:
                claims.waiting.append(claim)
        return claims

    def _waits_for_consumer(self, claim: PersistentVolumeClaim) -> bool | Status:
        class_name = class_of_claim(claim)
        storage_class = self._classes.get(class_name) if class_name else None
        if storage_class is None:
            return False
        if storage_class.volume_binding_mode is None:
            return Status.error(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _claims_named(pod: PodInfo) -> list[tuple[Volume, str, str]]:
    """The volumes of a pod that need a claim, with the claim's name and key."""
    named = []
    for volume in pod.volumes:
        name = claim_named_by(volume, pod.name)
        if name is not None:
            named.append((volume, name, f"{pod.namespace}/{name}"))
    return named
