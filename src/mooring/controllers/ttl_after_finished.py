"""The TTL-after-finished controller deletes Jobs some time after they have finished.

Inputs: Jobs, from an informer. Outputs: Jobs deleted in the foreground, after their pods.

1. A Job is read from the API before it is deleted: its TTL may have changed.
"""

from __future__ import annotations

from typing import ClassVar

from mooring.api.decode import decode_as
from mooring.api.kinds import JOB
from mooring.api.views.workloads import Job
from mooring.client.interface import Deletion, Propagation
from mooring.controllers.context import DONE, Controller, ControllerContext, Later, Outcome, split_key
from mooring.controllers.documents import finished_condition
from mooring.kit.clock import parse_rfc3339


class TtlAfterFinishedController(Controller):
    """Keys are finished Jobs with a TTL."""

    name: ClassVar[str] = "ttl-after-finished-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_ttl_after_finished_syncs
        self._jobs = context.informers.informer(Job)
        self.handle_changes(self._jobs, self._on_job)

    async def sync(self, key: str) -> Outcome:
        job = self._jobs.lister.by_key(key)
        left_s = left_s_of(job, self.clock.wall_s()) if job is not None else None
        if left_s is None:
            return DONE
        if left_s > 0:
            return Later(left_s)
        namespace, name = split_key(key)
        fresh = decode_as(Job, await self.client.get(JOB, namespace, name))
        left_s = left_s_of(fresh, self.clock.wall_s())
        if left_s is None:
            return DONE
        if left_s > 0:
            return Later(left_s)
        deletion = Deletion(uid=fresh.metadata.uid, propagation=Propagation.FOREGROUND)
        await self.client.delete(JOB, namespace, name, deletion)
        return DONE

    def _on_job(self, job: Job) -> None:
        if finished_s_of(job) is not None:
            self.queue.add(job.key)


def left_s_of(job: Job, now_s: float) -> float | None:
    """Seconds until a Job is deleted. None if it has no TTL or is not finished."""
    ttl_s, finished_s = job.spec.ttl_seconds_after_finished, finished_s_of(job)
    return finished_s + ttl_s - now_s if ttl_s is not None and finished_s is not None else None


def finished_s_of(job: Job) -> float | None:
    """When a Job with a TTL finished. None if it is not finished, or being deleted."""
    if job.spec.ttl_seconds_after_finished is None or job.metadata.deletion_timestamp is not None:
        return None
    condition = finished_condition(job)
    since = condition.last_transition_time if condition is not None else None
    return parse_rfc3339(since) if since is not None else None
