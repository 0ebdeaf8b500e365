"""The Deployment controller keeps one ReplicaSet per template, and rolls out from the old ones to the new one.

Inputs: Deployments and ReplicaSets, from informers; pods only to notice that an old one is gone. Outputs:
ReplicaSets created, resized and deleted; the status and the revision of Deployments.

1. A sync does one step: it scales the new ReplicaSet up or the old ones down. Every write carries the
   resourceVersion that it is based on, so a stale sync changes nothing.
2. A Deployment that was scaled or is paused is only resized. The rollout continues afterwards.
3. The status is written once, at the end, or before a failure.
4. Conflicts are retried without limit. After `FAILURES_MAX` other failures in a row the key is dropped until the
   next event.
5. A Deployment is not synced before the informer shows its last write to a ReplicaSet (`WriteExpectations`).
   Otherwise a change of the template could create a second ReplicaSet of full size. (kube-controller-manager has
   this race.)
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar

from msgspec.structs import replace

from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import DEPLOYMENT, REPLICA_SET, place_of
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.views.meta import Condition, controller_of, find_condition
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Deployment, DeploymentStatus, ReplicaSet
from mooring.api.well_known import DEPLOYMENT_REVISION
from mooring.client.errors import AlreadyExistsError, ClientError, ConflictError, NotFoundError
from mooring.controllers.context import DONE, ControllerContext, Failed, Later, Outcome
from mooring.controllers.deployment.history import (
    by_revision,
    generations,
    last_revision,
    new_set_annotations,
    new_set_document,
    next_revision,
    revision_of,
    rollback_revision,
    rolled_back,
    template_of,
)
from mooring.controllers.deployment.sizes import (
    RECREATE,
    ROLLING_UPDATE,
    Resize,
    is_scaling,
    new_set_size,
    plan_scaling,
    rolling_down,
    rolling_up,
    size_annotations,
)
from mooring.controllers.deployment.status import (
    PROGRESSING,
    check_again_in_s,
    counted_status,
    has_deadline,
    is_complete,
    new_condition,
    paused_status,
    rollout_status,
    with_condition,
)
from mooring.controllers.documents import document_of, is_namespace_terminating, view_document
from mooring.controllers.expectations import WriteExpectations
from mooring.controllers.owner_controller import AdoptionError, OwnerController, claim_objects
from mooring.controllers.pods import BY_CONTROLLER, add_controller_index, matching_orphans, replicas_of

FAILURES_MAX = 15
RESYNC_S = 1.0
"""When to sync again if the informer of ReplicaSets is behind. An event may enqueue earlier."""
_NO_LIMIT = 2**31 - 1

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _DeploymentSync:
    """One sync of one Deployment."""

    stored: Deployment
    """The Deployment as the API has it."""
    draft: Deployment
    """The Deployment with the status to be written."""
    new: ReplicaSet | None
    old: list[ReplicaSet]
    revision: str
    resized: dict[str, ReplicaSet] = field(default_factory=dict)
    """ReplicaSets that this sync wrote, by uid."""

    @property
    def sets(self) -> list[ReplicaSet]:
        return [*self.old, self.new] if self.new is not None else self.old

    def note(self, condition: Condition) -> None:
        self.draft = replace(self.draft, status=with_condition(self.draft.status, condition))


class DeploymentController(OwnerController[Deployment]):
    """Keys are Deployments."""

    name: ClassVar[str] = "deployment-controller"
    view = Deployment

    def __init__(self, context: ControllerContext) -> None:
        self._pod_counts = context.pod_counts()  # first: its handler runs before those of the controller
        super().__init__(context)
        self.workers = context.settings.concurrent_deployment_syncs
        self._recorder = context.recorder(self.name)
        self._sets = context.informers.informer(ReplicaSet)
        self._write_expectations = WriteExpectations(context.client, REPLICA_SET, ReplicaSet, self._sets)
        add_controller_index(self._sets)
        self.handle_dependents(self._sets)
        context.informers.informer(Pod).add_handler(self.name, on_delete=self._on_pod_deleted)

    def selector(self, owner: Deployment) -> LabelMatcher:
        return compile_selector(owner.spec.selector)

    async def sync(self, key: str) -> Outcome:
        stored = self._owners.lister.by_key(key)
        if stored is None:
            self._write_expectations.forget(key)
            return DONE
        try:
            return await self._sync(stored) if await self._write_expectations.are_met(key) else Later(RESYNC_S)
        except ConflictError as error:
            # Normal while others write: the next sync reads the newer version. Conflicts do not count as failures.
            return Failed(str(error), logging.DEBUG)
        except (ClientError, AdoptionError, LabelSelectorError) as error:
            if is_namespace_terminating(error):
                return DONE
            if self.queue.num_requeues(key) >= FAILURES_MAX:
                logger.error("deployment %s failed %d times, no retry until it changes: %s", key, FAILURES_MAX, error)
                return DONE
            return Failed(str(error))

    async def _sync(self, stored: Deployment) -> Outcome:
        selector = stored.spec.selector
        if selector is not None and not selector.match_labels and not selector.match_expressions:
            return await self._reject_empty_selector(stored)
        new, old = generations(stored, await self._own_sets(stored))
        state = _DeploymentSync(stored, stored, new, old, stored.metadata.annotations.get(DEPLOYMENT_REVISION, ""))
        if stored.metadata.deletion_timestamp is not None:
            await self._sync_revision(state)
            return await self._write_status(state, self._counted_status(state))
        state.draft = replace(stored, status=paused_status(stored, self.clock.wall_s()))
        rollback_to = rollback_revision(stored)
        if rollback_to is not None and not stored.spec.paused:
            return await self._roll_back(state, rollback_to)
        await self._sync_revision(state)
        if stored.spec.paused or is_scaling(stored, state.sets):
            return await self._scale(state, may_clean_up=stored.spec.paused and rollback_to is None)
        match stored.spec.strategy.type:
            case strategy if strategy == RECREATE:
                return await self._recreate(state)
            case strategy if strategy == ROLLING_UPDATE:
                return await self._roll_out(state)
            case strategy:
                return Failed(f"unexpected deployment strategy type: {strategy}")

    # ------------------------------------------------------------------------------------------- strategies

    async def _scale(self, state: _DeploymentSync, *, may_clean_up: bool) -> Outcome:
        await self._resize(state, plan_scaling(state.stored, state.new, state.old))
        if may_clean_up:
            await self._clean_up(state)
        return await self._write_status(state, self._counted_status(state))

    async def _roll_out(self, state: _DeploymentSync) -> Outcome:
        new = state.new if state.new is not None else await self._create_new_set(state)
        resizes = rolling_up(state.stored, new, state.sets) or rolling_down(state.stored, new, state.old)
        await self._resize(state, resizes)
        if not resizes and is_complete(state.stored, state.draft.status):
            await self._clean_up(state)
        return await self._write_rollout_status(state)

    async def _recreate(self, state: _DeploymentSync) -> Outcome:
        """Delete all old pods before the first new one is created."""
        down = [Resize(replica_set, 0) for replica_set in state.old if replicas_of(replica_set) > 0]
        await self._resize(state, down)
        if down or self._has_old_pods(state):
            return await self._write_rollout_status(state)
        new = state.new if state.new is not None else await self._create_new_set(state)
        replicas = replicas_of(state.stored)
        if replicas_of(new) != replicas:
            await self._resize(state, [Resize(new, replicas)])
        if is_complete(state.stored, state.draft.status):
            await self._clean_up(state)
        return await self._write_rollout_status(state)

    def _has_old_pods(self, state: _DeploymentSync) -> bool:
        if any(replica_set.status.replicas > 0 for replica_set in state.old):
            return True
        tallies = [
            counts for replica_set in state.old for counts in self._pod_counts.of(replica_set.metadata.uid).values()
        ]
        return any(counts.active or counts.terminating for counts in tallies)

    async def _roll_back(self, state: _DeploymentSync, rollback_to: int) -> Outcome:
        """Roll back to the template of an old revision, which an annotation of the former API names."""
        await self._sync_revision(state)
        if state.new is None:
            await self._create_new_set(state)
        rollback_to = rollback_to or last_revision(state.sets)
        target = next(
            (replica_set for replica_set in state.sets if rollback_to and revision_of(replica_set) == rollback_to), None
        )
        stored, name = state.stored, state.stored.metadata.name
        if target is None:
            message = "Unable to find the revision to rollback to." if rollback_to else "Unable to find last revision."
            self._recorder.event(stored, "Warning", "DeploymentRollbackRevisionNotFound", message)
            await self._update(rolled_back(stored, None))
        elif template_of(target) == template_of(stored):
            message = f'The rollback revision contains the same template as current deployment "{name}"'
            self._recorder.event(stored, "Warning", "DeploymentRollbackTemplateUnchanged", message)
            await self._update(rolled_back(stored, None))
        else:
            await self._update(rolled_back(stored, target))
            message = f'Rolled back deployment "{name}" to revision {rollback_to}'
            self._recorder.event(stored, "Normal", "DeploymentRollback", message)
        return DONE

    async def _reject_empty_selector(self, stored: Deployment) -> Outcome:
        message = "This deployment is selecting all pods. A non-empty selector is required."
        self._recorder.event(stored, "Warning", "SelectingAll", message)
        if stored.status.observed_generation < stored.metadata.generation:
            document = document_of(stored)
            document["status"] = {**(document.get("status") or {}), "observedGeneration": stored.metadata.generation}
            await self._update(document, subresource="status")
        return DONE

    # ------------------------------------------------------------------------------------------ ReplicaSets

    async def _own_sets(self, stored: Deployment) -> Sequence[ReplicaSet]:
        selector = compile_selector(stored.spec.selector)
        lister = self._sets.lister
        own = lister.by_index(BY_CONTROLLER, stored.metadata.uid)
        orphans = matching_orphans(lister, stored.metadata.namespace, selector)
        return await claim_objects(
            self.client, stored, [*own, *orphans], lambda replica_set: selector.matches(replica_set.metadata.labels)
        )

    async def _sync_revision(self, state: _DeploymentSync) -> None:
        """Copy the Deployment's annotations to the new ReplicaSet, and its revision to the Deployment."""
        new, stored = state.new, state.stored
        if new is None:
            return
        annotations = new_set_annotations(stored, new.metadata.annotations, next_revision(state.old))
        min_ready_s = stored.spec.min_ready_seconds
        if annotations != new.metadata.annotations or new.spec.min_ready_seconds != min_ready_s:
            document = document_of(new)
            document["metadata"]["annotations"] = annotations
            document["spec"]["minReadySeconds"] = min_ready_s
            new = state.new = await self._update_set(stored, document)
        state.revision = new.metadata.annotations.get(DEPLOYMENT_REVISION, "")
        if has_deadline(stored) and find_condition(state.draft.status.conditions, PROGRESSING) is None:
            message = f'Found new replica set "{new.metadata.name}"'
            state.note(self._condition("True", "FoundNewReplicaSet", message))

    async def _create_new_set(self, state: _DeploymentSync) -> ReplicaSet:
        stored = state.stored
        replicas, revision = new_set_size(stored, state.old, 0), next_revision(state.old)
        document = new_set_document(stored, stored.status.collision_count, revision, replicas)
        name = document["metadata"]["name"]
        try:
            raw = await self.client.create(REPLICA_SET, stored.metadata.namespace, document)
        except AlreadyExistsError:
            state.new = await self._existing_set(state, name)
        except ClientError as error:
            self._write_expectations.failed(stored.key, stored.metadata.namespace, name, error)
            await self._record_failed_creation(state, name, error)
            raise
        else:
            state.new = self._write_expectations.answered(stored.key, raw)
            if replicas > 0:
                message = f"Scaled up replica set {name} from 0 to {replicas}"
                self._recorder.event(stored, "Normal", "ScalingReplicaSet", message)
            if has_deadline(stored):
                state.note(self._condition("True", "NewReplicaSetCreated", f'Created new replica set "{name}"'))
        state.revision = str(revision)
        return state.new

    async def _existing_set(self, state: _DeploymentSync, name: str) -> ReplicaSet:
        """The ReplicaSet that has the name, if the Deployment controls it. Otherwise count a collision and raise."""
        stored = state.stored
        found = self._sets.lister.get(stored.metadata.namespace, name)
        if found is None:
            raise NotFoundError(f'replicaset.apps "{name}" not found')  # perhaps ours, and not in the informer yet
        owner = controller_of(found.metadata)
        if owner is not None and owner.uid == stored.metadata.uid and template_of(found) == template_of(stored):
            return found
        collisions = (stored.status.collision_count or 0) + 1
        state.draft = replace(state.draft, status=replace(state.draft.status, collision_count=collisions))
        await self._write_draft(state)
        raise AlreadyExistsError(f'replicasets.apps "{name}" already exists')

    async def _record_failed_creation(self, state: _DeploymentSync, name: str, error: ClientError) -> None:
        if is_namespace_terminating(error):
            return
        message = f'Failed to create new replica set "{name}": {error}'
        if has_deadline(state.stored):
            state.note(self._condition("False", "ReplicaSetCreateError", message))
            try:
                await self._write_draft(state)
            except ClientError as second:
                logger.info("failed to write the condition of deployment %s: %s", state.stored.key, second)
        self._recorder.event(state.stored, "Warning", "ReplicaSetCreateError", message)

    async def _resize(self, state: _DeploymentSync, resizes: Sequence[Resize]) -> None:
        annotations = size_annotations(state.stored)
        for resize in resizes:
            target = state.resized.get(resize.target.metadata.uid, resize.target)
            before, after = replicas_of(target), resize.replicas
            have = target.metadata.annotations
            if before == after and all(have.get(key) == value for key, value in annotations.items()):
                continue
            document = document_of(target)
            document["spec"]["replicas"] = after
            document["metadata"]["annotations"] = {**have, **annotations}
            state.resized[target.metadata.uid] = await self._update_set(state.stored, document)
            if before != after:
                how = "up" if before < after else "down"
                message = f"Scaled {how} replica set {target.metadata.name} from {before} to {after}"
                self._recorder.event(state.stored, "Normal", "ScalingReplicaSet", message)

    async def _clean_up(self, state: _DeploymentSync) -> None:
        """Delete old ReplicaSets without pods beyond the history limit, the oldest revisions first."""
        limit = state.stored.spec.revision_history_limit
        if limit is None or limit == _NO_LIMIT:
            return
        remaining = [replica_set for replica_set in state.old if replica_set.metadata.deletion_timestamp is None]
        for replica_set in by_revision(remaining)[: max(0, len(remaining) - limit)]:
            is_seen = replica_set.status.observed_generation >= replica_set.metadata.generation
            if replica_set.status.replicas == 0 and replicas_of(replica_set) == 0 and is_seen:
                with suppress(NotFoundError):
                    await self.client.delete(*place_of(replica_set))

    async def _update_set(self, stored: Deployment, document: Document) -> ReplicaSet:
        namespace, name = document["metadata"]["namespace"], document["metadata"]["name"]
        try:
            raw = await self.client.update(REPLICA_SET, namespace, name, document)
        except ClientError as error:
            self._write_expectations.failed(stored.key, namespace, name, error)
            raise
        return self._write_expectations.answered(stored.key, raw)

    # ----------------------------------------------------------------------------------------------- status

    def _counted_status(self, state: _DeploymentSync) -> DeploymentStatus:
        return counted_status(state.draft, state.new, state.sets, self.clock.wall_s())

    async def _write_rollout_status(self, state: _DeploymentSync) -> Outcome:
        now_s = self.clock.wall_s()
        status = rollout_status(state.draft, state.new, state.sets, now_s)
        again_s = check_again_in_s(state.stored, status, now_s) if status == state.stored.status else None
        await self._write_status(state, status)
        return Later(again_s) if again_s is not None else DONE

    async def _write_status(self, state: _DeploymentSync, status: DeploymentStatus) -> Outcome:
        state.draft = replace(state.draft, status=status)
        await self._write_draft(state)
        return DONE

    async def _write_draft(self, state: _DeploymentSync) -> None:
        """Write status and annotations if they changed."""
        stored = state.stored
        is_revision_new = bool(state.revision) and state.revision != stored.metadata.annotations.get(
            DEPLOYMENT_REVISION
        )
        if state.draft.status == stored.status and not is_revision_new:
            return
        document = document_of(stored)
        document["status"] = view_document(state.draft.status)
        if is_revision_new:
            metadata = document["metadata"]
            metadata["annotations"] = {**(metadata.get("annotations") or {}), DEPLOYMENT_REVISION: state.revision}
        await self._update(document, subresource="status")

    async def _update(self, document: Document, *, subresource: str = "") -> None:
        metadata = document["metadata"]
        await self.client.update(DEPLOYMENT, metadata["namespace"], metadata["name"], document, subresource=subresource)

    def _condition(self, status: str, reason: str, message: str) -> Condition:
        return new_condition(PROGRESSING, status, reason, message, self.clock.wall_s())

    # ----------------------------------------------------------------------------------------------- events

    def _on_pod_deleted(self, pod: Pod) -> None:
        """The last pod of a Deployment with the strategy Recreate is gone: the new ReplicaSet may be created."""
        namespace, reference = pod.metadata.namespace, controller_of(pod.metadata)
        if reference is None or reference.kind != ReplicaSet.kind:
            return
        replica_set = self._sets.lister.get(namespace, reference.name)
        if replica_set is None or replica_set.metadata.uid != reference.uid:
            return
        deployment = self.find_owner(namespace, controller_of(replica_set.metadata))
        if deployment is None or deployment.spec.strategy.type != RECREATE:
            return
        sets = self._sets.lister.by_index(BY_CONTROLLER, deployment.metadata.uid)
        if not any(self._pod_counts.of(replica_set.metadata.uid) for replica_set in sets):
            self.queue.add(deployment.key)
