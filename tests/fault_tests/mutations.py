"""Mutations of the code: each removes a rule that exists because of a fault, and some seed must report a violation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from mooring.api.document import Document
from mooring.api.kinds import DAEMON_SET, JOB, STATEFUL_SET, Kind
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Job
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.job import status as job_status
from mooring.apiserver.registry import update
from mooring.apiserver.registry.object_storage import StoredObject
from mooring.apiserver.resources import Resource
from mooring.apiserver.strategy import Strategy
from mooring.client.informer import Informer
from mooring.controllers.expectations import Expectations, WriteExpectations
from mooring.controllers.job import controller as job_controller
from mooring.controllers.job.plan import PodSummary, summarize_pods
from mooring.controllers.statefulset import plan as stateful_set_plan
from mooring.scheduler.cache.arrays import ChangeLog


@dataclass(frozen=True)
class Mutation:
    """One mutation, and the text of the violation that it causes."""

    description: str
    make: Callable[[], AbstractContextManager[object]]
    violation: str
    kind: Kind | None = None
    """Only seeds with this kind can report it."""
    first_seed: int = 0
    """The first seed to try: earlier ones do not report it."""


async def _true(*_: object) -> bool:
    return True


def _summarize_without_removed(job: Job, pods: list[Pod], removed: Set[str]) -> PodSummary:
    return summarize_pods(job, pods, frozenset())


def _replaced_without_deletions(self: Informer[Any], views: Sequence[Any], revision: str) -> None:
    present = {view.key for view in views}
    _replace(self, [*views, *(view for key, view in self._views.items() if key not in present)], revision)


_replace = Informer.replace


def _accept_any_revision(
    resource: Resource, strategy: Strategy, call: Call, metadata: Document, found: StoredObject
) -> None:
    metadata["resourceVersion"] = str(found.revision)


@contextmanager
def _without_conflicts() -> Iterator[None]:
    """Three rules at once: a controller that waits for its own writes never conflicts with itself, and the API server
    rejects counts that decrease."""
    with (
        patch.object(job_status, "_validate_transition", return_value=[]),
        patch.object(update, "_check_revision", _accept_any_revision),
        patch.object(WriteExpectations, "are_met", _true),
    ):
        yield


MUTATIONS = (
    Mutation(
        "a ReplicaSet is counted before its new pods are seen",
        lambda: patch.object(Expectations, "are_met", return_value=True),
        "of a ReplicaSet that may have",
    ),
    Mutation(
        "a DaemonSet is counted before its new pods are seen",
        lambda: patch.object(Expectations, "are_met", return_value=True),
        "of a DaemonSet that may have",
        DAEMON_SET,
    ),
    Mutation(
        "a Job is counted before its new pods are seen",
        lambda: patch.object(Expectations, "are_met", return_value=True),
        "of a Job that may have",
        JOB,
        first_seed=50,
    ),
    Mutation(
        "a Deployment is rolled before its new ReplicaSets are seen",
        lambda: patch.object(WriteExpectations, "are_met", _true),
        "its Deployment may have",
        first_seed=190,
    ),
    Mutation(
        "a Job is synced before its last counts are seen",
        lambda: patch.object(WriteExpectations, "are_met", _true),
        "is created when",
        JOB,
        first_seed=1070,
    ),
    Mutation(
        "cached results of a node are kept after a pod was placed on it",
        lambda: patch.object(ChangeLog, "append"),
        "are requested when",
    ),
    Mutation(
        "a Job counts pods again whose finalizer it has just removed",
        lambda: patch.object(job_controller, "summarize_pods", _summarize_without_removed),
        "counts",
        JOB,
    ),
    Mutation(
        "a StatefulSet makes all of its pods at once",
        lambda: patch.object(stateful_set_plan, "is_parallel", return_value=True),
        "is created before",
        STATEFUL_SET,
        first_seed=40,
    ),
    Mutation(
        "an informer that lists again keeps deleted objects",
        lambda: patch.object(Informer, "replace", _replaced_without_deletions),
        "are desired",
        first_seed=20,
    ),
    Mutation(
        "updates ignore conflicts, and controllers do not wait for their own writes",
        _without_conflicts,
        "decreases its counts",
        JOB,
        first_seed=290,
    ),
)
