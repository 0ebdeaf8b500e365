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
from mooring.controllers.context import DONE, Controller, Failed, Later, Outcome, Workshop
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
from mooring.controllers.expectations import OwnWrites
from mooring.controllers.pods import BY_CONTROLLER, add_controller_index, orphans_like
from mooring.controllers.replicas import replicas_of

FAILURES_MAX = 15
BEHIND_S = 1.0
"""When to look again if the watch of ReplicaSets has not caught up; it calls earlier, if it tells anything."""
_NO_LIMIT = 2**31 - 1

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Work:
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

    def __init__(self, workshop: Workshop) -> None:
        super().__init__(workshop)
        self.workers = workshop.settings.concurrent_deployment_syncs
        self._recorder = workshop.recorder(self.name)
        self._deployments = workshop.informers.informer(Deployment)
        self._sets = workshop.informers.informer(ReplicaSet)
        self._written = OwnWrites(workshop.client, REPLICA_SET, ReplicaSet, self._sets)
        self._tally = workshop.pod_tally()
        self._deployments.add_index(BY_NAMESPACE, namespace_of)
        add_controller_index(self._sets)
        pods = workshop.informers.informer(Pod)
        DeploymentHandlers(self.name, self.queue, self._deployments, self._sets, pods, self._tally)

    async def sync(self, key: str) -> Outcome:
        stored = self._deployments.lister.by_key(key)
        if stored is None:
            self._written.forget(key)
            return DONE
        try:
            return await self._sync(stored) if await self._written.are_seen(key) else Later(BEHIND_S)
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
            return await self._refuse_to_select_all(stored)
        new, old = generations(stored, await self._own_sets(stored))
        work = _Work(stored, stored, new, old, stored.metadata.annotations.get(REVISION, ""))
        if stored.metadata.deletion_timestamp is not None:
            await self._keep_up(work)
            return await self._write_status(work, self._counted(work))
        work.draft = replace(stored, status=paused_status(stored, self.clock.wall_s()))
        wish = rollback_revision(stored)
        if wish is not None and not stored.spec.paused:
            return await self._roll_back(work, wish)
        await self._keep_up(work)
        if stored.spec.paused or is_scaling(stored, work.sets):
            return await self._scale(work, may_clean_up=stored.spec.paused and wish is None)
        match stored.spec.strategy.type:
            case strategy if strategy == RECREATE:
                return await self._recreate(work)
            case strategy if strategy == ROLLING_UPDATE:
                return await self._roll(work)
            case strategy:
                return Failed(f"unexpected deployment strategy type: {strategy}")

    # ------------------------------------------------------------------------------------------------- the ways

    async def _scale(self, work: _Work, *, may_clean_up: bool) -> Outcome:
        await self._resize(work, plan_scaling(work.stored, work.new, work.old))
        if may_clean_up:
            await self._clean_up(work)
        return await self._write_status(work, self._counted(work))

    async def _roll(self, work: _Work) -> Outcome:
        new = work.new if work.new is not None else await self._create_new_set(work)
        resizes = rolling_up(work.stored, new, work.sets) or rolling_down(work.stored, new, work.old)
        await self._resize(work, resizes)
        if not resizes and is_complete(work.stored, work.draft.status):
            await self._clean_up(work)
        return await self._write_rollout_status(work)

    async def _recreate(self, work: _Work) -> Outcome:
        """All old pods are gone before the first new one comes."""
        down = [Resize(each, 0) for each in work.old if replicas_of(each) > 0]
        await self._resize(work, down)
        if down or self._has_old_pods(work):
            return await self._write_rollout_status(work)
        new = work.new if work.new is not None else await self._create_new_set(work)
        wanted = replicas_of(work.stored)
        if replicas_of(new) != wanted:
            await self._resize(work, [Resize(new, wanted)])
        if is_complete(work.stored, work.draft.status):
            await self._clean_up(work)
        return await self._write_rollout_status(work)

    def _has_old_pods(self, work: _Work) -> bool:
        if any(each.status.replicas > 0 for each in work.old):
            return True
        tallies = [counts for each in work.old for counts in self._tally.of(each.metadata.uid).values()]
        return any(counts.active or counts.terminating for counts in tallies)

    async def _roll_back(self, work: _Work, wish: int) -> Outcome:
        """What `kubectl rollout undo` asked for in former times: the template of an old revision, by annotation."""
        await self._keep_up(work)
        if work.new is None:
            await self._create_new_set(work)
        wish = wish or last_revision(work.sets)
        target = next((each for each in work.sets if wish and revision_of(each) == wish), None)
        stored, name = work.stored, work.stored.metadata.name
        if target is None:
            message = "Unable to find the revision to rollback to." if wish else "Unable to find last revision."
            self._recorder.event(stored, "Warning", "DeploymentRollbackRevisionNotFound", message)
            await self._update(rolled_back(stored, None))
        elif template_of(target) == template_of(stored):
            message = f'The rollback revision contains the same template as current deployment "{name}"'
            self._recorder.event(stored, "Warning", "DeploymentRollbackTemplateUnchanged", message)
            await self._update(rolled_back(stored, None))
        else:
            await self._update(rolled_back(stored, target))
            message = f'Rolled back deployment "{name}" to revision {wish}'
            self._recorder.event(stored, "Normal", "DeploymentRollback", message)
        return DONE

    async def _refuse_to_select_all(self, stored: Deployment) -> Outcome:
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
        orphans = orphans_like(lister, stored.metadata.namespace, selector)
        return await claim_objects(
            self.client, stored, [*own, *orphans], lambda each: selector.matches(each.metadata.labels)
        )

    async def _keep_up(self, work: _Work) -> None:
        """The new ReplicaSet gets the Deployment's annotations, and the Deployment its revision."""
        new, stored = work.new, work.stored
        if new is None:
            return
        annotations = new_set_annotations(stored, new.metadata.annotations, next_revision(work.old))
        min_ready_s = stored.spec.min_ready_seconds
        if annotations != new.metadata.annotations or new.spec.min_ready_seconds != min_ready_s:
            document = document_of(new)
            document["metadata"]["annotations"] = annotations
            document["spec"]["minReadySeconds"] = min_ready_s
            new = work.new = await self._update_set(stored, document)
        work.revision = new.metadata.annotations.get(REVISION, "")
        if has_deadline(stored) and find_condition(work.draft.status.conditions, PROGRESSING) is None:
            message = f'Found new replica set "{new.metadata.name}"'
            work.note(self._condition("True", "FoundNewReplicaSet", message))

    async def _create_new_set(self, work: _Work) -> ReplicaSet:
        stored = work.stored
        replicas, revision = new_set_size(stored, work.old, 0), next_revision(work.old)
        document = new_set_document(stored, stored.status.collision_count, revision, replicas)
        name = document["metadata"]["name"]
        try:
            raw = await self.client.create(REPLICA_SET, stored.metadata.namespace, document)
        except AlreadyExistsError:
            work.new = await self._found_instead(work, name)
        except ClientError as error:
            self._written.failed(stored.key, stored.metadata.namespace, name, error)
            await self._note_failed_creation(work, name, error)
            raise
        else:
            work.new = self._written.answered(stored.key, raw)
            if replicas > 0:
                message = f"Scaled up replica set {name} from 0 to {replicas}"
                self._recorder.event(stored, "Normal", "ScalingReplicaSet", message)
            if has_deadline(stored):
                work.note(self._condition("True", "NewReplicaSetCreated", f'Created new replica set "{name}"'))
        work.revision = str(revision)
        return work.new

    async def _found_instead(self, work: _Work, name: str) -> ReplicaSet:
        """The ReplicaSet that has the name already, if it is ours; else the next hash is another one."""
        stored = work.stored
        found = self._sets.lister.get(stored.metadata.namespace, name)
        if found is None:
            raise NotFoundError(f'replicaset.apps "{name}" not found')  # ours perhaps, and too new: look again
        owner = controller_of(found.metadata)
        if owner is not None and owner.uid == stored.metadata.uid and template_of(found) == template_of(stored):
            return found
        collisions = (stored.status.collision_count or 0) + 1
        work.draft = replace(work.draft, status=replace(work.draft.status, collision_count=collisions))
        await self._write_draft(work)
        raise AlreadyExistsError(f'replicasets.apps "{name}" already exists')

    async def _note_failed_creation(self, work: _Work, name: str, error: ClientError) -> None:
        if is_namespace_terminating(error):
            return
        message = f'Failed to create new replica set "{name}": {error}'
        if has_deadline(work.stored):
            work.note(self._condition("False", "ReplicaSetCreateError", message))
            try:
                await self._write_draft(work)
            except ClientError as second:
                logger.info("the failure of deployment %s could not be noted: %s", work.stored.key, second)
        self._recorder.event(work.stored, "Warning", "ReplicaSetCreateError", message)

    async def _resize(self, work: _Work, resizes: Sequence[Resize]) -> None:
        annotations = size_annotations(work.stored)
        for resize in resizes:
            target = work.resized.get(resize.target.metadata.uid, resize.target)
            before, after = replicas_of(target), resize.replicas
            have = target.metadata.annotations
            if before == after and all(have.get(key) == value for key, value in annotations.items()):
                continue
            document = document_of(target)
            document["spec"]["replicas"] = after
            document["metadata"]["annotations"] = {**have, **annotations}
            work.resized[target.metadata.uid] = await self._update_set(work.stored, document)
            if before != after:
                how = "up" if before < after else "down"
                message = f"Scaled {how} replica set {target.metadata.name} from {before} to {after}"
                self._recorder.event(work.stored, "Normal", "ScalingReplicaSet", message)

    async def _clean_up(self, work: _Work) -> None:
        """Old ReplicaSets beyond the limit go, the oldest revisions first, if nothing is left of them."""
        limit = work.stored.spec.revision_history_limit
        if limit is None or limit == _NO_LIMIT:
            return
        alive = [each for each in work.old if each.metadata.deletion_timestamp is None]
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
            self._written.failed(stored.key, namespace, name, error)
            raise
        return self._written.answered(stored.key, raw)

    # ------------------------------------------------------------------------------------------------- its status

    def _counted(self, work: _Work) -> DeploymentStatus:
        return counted_status(work.draft, work.new, work.sets, self.clock.wall_s())

    async def _write_rollout_status(self, work: _Work) -> Outcome:
        now_s = self.clock.wall_s()
        status = rollout_status(work.draft, work.new, work.sets, now_s)
        again_s = check_again_in_s(work.stored, status, now_s) if status == work.stored.status else None
        await self._write_status(work, status)
        return Later(again_s) if again_s is not None else DONE

    async def _write_status(self, work: _Work, status: DeploymentStatus) -> Outcome:
        work.draft = replace(work.draft, status=status)
        await self._write_draft(work)
        return DONE

    async def _write_draft(self, work: _Work) -> None:
        """If it says anything new. Annotations are written together with the status."""
        stored = work.stored
        is_revision_new = bool(work.revision) and work.revision != stored.metadata.annotations.get(REVISION)
        if work.draft.status == stored.status and not is_revision_new:
            return
        document = document_of(stored)
        document["status"] = status_document(work.draft.status)
        if is_revision_new:
            metadata = document["metadata"]
            metadata["annotations"] = {**(metadata.get("annotations") or {}), REVISION: work.revision}
        await self._update(document, subresource="status")

    async def _update(self, document: Document, *, subresource: str = "") -> None:
        metadata = document["metadata"]
        await self.client.update(DEPLOYMENT, metadata["namespace"], metadata["name"], document, subresource=subresource)

    def _condition(self, status: str, reason: str, message: str) -> Condition:
        return new_condition(PROGRESSING, status, reason, message, self.clock.wall_s())
