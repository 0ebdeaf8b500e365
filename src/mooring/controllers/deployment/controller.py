"""The Deployment controller: one ReplicaSet for each template, and the way from the old ones to the new one.

Comes in   Deployments and ReplicaSets, from informers; pods only to know whether an old one is left
Goes out   ReplicaSets created, resized and deleted; the status and the revision of Deployments

    sizes     how many pods each ReplicaSet gets      history   which ReplicaSet is the new one, revisions
    status    counts and conditions                   this      reads, decides with those, writes

 1. One step at a time: after the new ReplicaSet has grown, or the old ones have shrunk, the next look is at what came
    of it. Every write names the state that it is meant for, so a look at an old copy changes nothing.
 2. A Deployment that was scaled or is paused is only resized; the rollout goes on afterwards.
 3. What a Deployment should say of itself is written once, at the end; before a failure, what led to it.
 4. After `FAILURES_MAX` failures in a row it is left alone until something changes.
 5. It is not looked at before its own last write to a ReplicaSet was seen (`own_writes`): who does not see the
    ReplicaSet that he made a moment ago would make another one of full size, when the template changes meanwhile. (The
    original does.)
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import DEPLOYMENT, REPLICA_SET
from mooring.api.labels import compile_selector
from mooring.api.ownership import controller_of
from mooring.api.views.meta import Condition
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Deployment, DeploymentStatus, ReplicaSet
from mooring.client.cache.lister import BY_NAMESPACE, namespace_of
from mooring.client.errors import AlreadyExistsError, ClientError, NotFoundError
from mooring.controllers.adoption import AdoptionError, claim_objects
from mooring.controllers.conditions import find_condition
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Later, Outcome
from mooring.controllers.deployment.handlers import DeploymentHandlers
from mooring.controllers.deployment.history import (
    REVISION,
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
    status_document,
    with_condition,
)
from mooring.controllers.documents import document_of, is_namespace_terminating
from mooring.controllers.expectations import WriteExpectations
from mooring.controllers.pods import BY_CONTROLLER, add_controller_index, matching_orphans
from mooring.controllers.replicas import replicas_of

FAILURES_MAX = 15
RESYNC_S = 1.0
"""When to look again if the watch of ReplicaSets has not caught up; it calls earlier, if it tells anything."""
_NO_LIMIT = 2**31 - 1

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _SyncState:
    """One look at one Deployment."""

    stored: Deployment
    """As the API has it."""
    draft: Deployment
    """With the status that it is going to have, as far as that is known."""
    new: ReplicaSet | None
    old: list[ReplicaSet]
    revision: str
    resized: dict[str, ReplicaSet] = field(default_factory=dict)
    """By uid, those that were written in this round."""

    @property
    def sets(self) -> list[ReplicaSet]:
        return [*self.old, self.new] if self.new is not None else self.old

    def note(self, condition: Condition) -> None:
        self.draft = replace(self.draft, status=with_condition(self.draft.status, condition))


class DeploymentController(Controller):
    name = "deployment-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_deployment_syncs
        self._recorder = context.recorder(self.name)
        self._deployments = context.informers.informer(Deployment)
        self._sets = context.informers.informer(ReplicaSet)
        self._write_expectations = WriteExpectations(context.client, REPLICA_SET, ReplicaSet, self._sets)
        self._pod_counts = context.pod_counts()
        self._deployments.add_index(BY_NAMESPACE, namespace_of)
        add_controller_index(self._sets)
        pods = context.informers.informer(Pod)
        DeploymentHandlers(self.name, self.queue, self._deployments, self._sets, pods, self._pod_counts)

    async def sync(self, key: str) -> Outcome:
        stored = self._deployments.lister.by_key(key)
        if stored is None:
            self._write_expectations.forget(key)
            return DONE
        try:
            return await self._sync(stored) if await self._write_expectations.are_written_seen(key) else Later(RESYNC_S)
        except (ClientError, AdoptionError, LabelSelectorError) as error:
            if is_namespace_terminating(error):
                return DONE
            if self.queue.num_requeues(key) >= FAILURES_MAX:
                logger.error("deployment %s is left alone after %d failures: %s", key, FAILURES_MAX, error)
                return DONE
            return Failed(str(error))

    async def _sync(self, stored: Deployment) -> Outcome:
        selector = stored.spec.selector
        if selector is not None and not selector.match_labels and not selector.match_expressions:
            return await self._reject_empty_selector(stored)
        new, old = generations(stored, await self._own_sets(stored))
        state = _SyncState(stored, stored, new, old, stored.metadata.annotations.get(REVISION, ""))
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

    # ------------------------------------------------------------------------------------------------- the ways

    async def _scale(self, state: _SyncState, *, may_clean_up: bool) -> Outcome:
        await self._resize(state, plan_scaling(state.stored, state.new, state.old))
        if may_clean_up:
            await self._clean_up(state)
        return await self._write_status(state, self._counted_status(state))

    async def _roll_out(self, state: _SyncState) -> Outcome:
        new = state.new if state.new is not None else await self._create_new_set(state)
        resizes = rolling_up(state.stored, new, state.sets) or rolling_down(state.stored, new, state.old)
        await self._resize(state, resizes)
        if not resizes and is_complete(state.stored, state.draft.status):
            await self._clean_up(state)
        return await self._write_rollout_status(state)

    async def _recreate(self, state: _SyncState) -> Outcome:
        """All old pods are gone before the first new one comes."""
        down = [Resize(each, 0) for each in state.old if replicas_of(each) > 0]
        await self._resize(state, down)
        if down or self._has_old_pods(state):
            return await self._write_rollout_status(state)
        new = state.new if state.new is not None else await self._create_new_set(state)
        wanted = replicas_of(state.stored)
        if replicas_of(new) != wanted:
            await self._resize(state, [Resize(new, wanted)])
        if is_complete(state.stored, state.draft.status):
            await self._clean_up(state)
        return await self._write_rollout_status(state)

    def _has_old_pods(self, state: _SyncState) -> bool:
        if any(each.status.replicas > 0 for each in state.old):
            return True
        tallies = [counts for each in state.old for counts in self._pod_counts.of(each.metadata.uid).values()]
        return any(counts.active or counts.terminating for counts in tallies)

    async def _roll_back(self, state: _SyncState, rollback_to: int) -> Outcome:
        """What `kubectl rollout undo` asked for in former times: the template of an old revision, by annotation."""
        await self._sync_revision(state)
        if state.new is None:
            await self._create_new_set(state)
        rollback_to = rollback_to or last_revision(state.sets)
        target = next((each for each in state.sets if rollback_to and revision_of(each) == rollback_to), None)
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

    # ------------------------------------------------------------------------------------------- its ReplicaSets

    async def _own_sets(self, stored: Deployment) -> Sequence[ReplicaSet]:
        selector = compile_selector(stored.spec.selector)
        lister = self._sets.lister
        own = lister.by_index(BY_CONTROLLER, stored.metadata.uid)
        orphans = matching_orphans(lister, stored.metadata.namespace, selector)
        return await claim_objects(
            self.client, stored, [*own, *orphans], lambda each: selector.matches(each.metadata.labels)
        )

    async def _sync_revision(self, state: _SyncState) -> None:
        """The new ReplicaSet gets the Deployment's annotations, and the Deployment its revision."""
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
        state.revision = new.metadata.annotations.get(REVISION, "")
        if has_deadline(stored) and find_condition(state.draft.status.conditions, PROGRESSING) is None:
            message = f'Found new replica set "{new.metadata.name}"'
            state.note(self._condition("True", "FoundNewReplicaSet", message))

    async def _create_new_set(self, state: _SyncState) -> ReplicaSet:
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

    async def _existing_set(self, state: _SyncState, name: str) -> ReplicaSet:
        """The ReplicaSet that has the name already, if it is ours; else the next hash is another one."""
        stored = state.stored
        found = self._sets.lister.get(stored.metadata.namespace, name)
        if found is None:
            raise NotFoundError(f'replicaset.apps "{name}" not found')  # ours perhaps, and too new: look again
        owner = controller_of(found.metadata)
        if owner is not None and owner.uid == stored.metadata.uid and template_of(found) == template_of(stored):
            return found
        collisions = (stored.status.collision_count or 0) + 1
        state.draft = replace(state.draft, status=replace(state.draft.status, collision_count=collisions))
        await self._write_draft(state)
        raise AlreadyExistsError(f'replicasets.apps "{name}" already exists')

    async def _record_failed_creation(self, state: _SyncState, name: str, error: ClientError) -> None:
        if is_namespace_terminating(error):
            return
        message = f'Failed to create new replica set "{name}": {error}'
        if has_deadline(state.stored):
            state.note(self._condition("False", "ReplicaSetCreateError", message))
            try:
                await self._write_draft(state)
            except ClientError as second:
                logger.info("the failure of deployment %s could not be noted: %s", state.stored.key, second)
        self._recorder.event(state.stored, "Warning", "ReplicaSetCreateError", message)

    async def _resize(self, state: _SyncState, resizes: Sequence[Resize]) -> None:
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

    async def _clean_up(self, state: _SyncState) -> None:
        """Old ReplicaSets beyond the limit go, the oldest revisions first, if nothing is left of them."""
        limit = state.stored.spec.revision_history_limit
        if limit is None or limit == _NO_LIMIT:
            return
        alive = [each for each in state.old if each.metadata.deletion_timestamp is None]
        for each in by_revision(alive)[: max(0, len(alive) - limit)]:
            is_seen = each.status.observed_generation >= each.metadata.generation
            if each.status.replicas == 0 and replicas_of(each) == 0 and is_seen:
                try:
                    await self.client.delete(REPLICA_SET, each.metadata.namespace, each.metadata.name)
                except NotFoundError:
                    continue

    async def _update_set(self, stored: Deployment, document: Document) -> ReplicaSet:
        namespace, name = document["metadata"]["namespace"], document["metadata"]["name"]
        try:
            raw = await self.client.update(REPLICA_SET, namespace, name, document)
        except ClientError as error:
            self._write_expectations.failed(stored.key, namespace, name, error)
            raise
        return self._write_expectations.answered(stored.key, raw)

    # ------------------------------------------------------------------------------------------------- its status

    def _counted_status(self, state: _SyncState) -> DeploymentStatus:
        return counted_status(state.draft, state.new, state.sets, self.clock.wall_s())

    async def _write_rollout_status(self, state: _SyncState) -> Outcome:
        now_s = self.clock.wall_s()
        status = rollout_status(state.draft, state.new, state.sets, now_s)
        again_s = check_again_in_s(state.stored, status, now_s) if status == state.stored.status else None
        await self._write_status(state, status)
        return Later(again_s) if again_s is not None else DONE

    async def _write_status(self, state: _SyncState, status: DeploymentStatus) -> Outcome:
        state.draft = replace(state.draft, status=status)
        await self._write_draft(state)
        return DONE

    async def _write_draft(self, state: _SyncState) -> None:
        """If it says anything new. Annotations are written together with the status."""
        stored = state.stored
        is_revision_new = bool(state.revision) and state.revision != stored.metadata.annotations.get(REVISION)
        if state.draft.status == stored.status and not is_revision_new:
            return
        document = document_of(stored)
        document["status"] = status_document(state.draft.status)
        if is_revision_new:
            metadata = document["metadata"]
            metadata["annotations"] = {**(metadata.get("annotations") or {}), REVISION: state.revision}
        await self._update(document, subresource="status")

    async def _update(self, document: Document, *, subresource: str = "") -> None:
        metadata = document["metadata"]
        await self.client.update(DEPLOYMENT, metadata["namespace"], metadata["name"], document, subresource=subresource)

    def _condition(self, status: str, reason: str, message: str) -> Condition:
        return new_condition(PROGRESSING, status, reason, message, self.clock.wall_s())
