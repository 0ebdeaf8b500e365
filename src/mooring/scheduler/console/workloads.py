"""The pods of each controller by state: Deployments, StatefulSets, DaemonSets, Jobs and others.

1. Everything comes from what the scheduler watches: pods, ReplicaSets and StatefulSets. A pod of a ReplicaSet counts
   for the Deployment that owns it. The scheduler does not hold pods that have finished, Deployments and Jobs: the
   wanted number of a Deployment is that of its ReplicaSets, and that of a Job is not known.
2. At most `PODS_READ_MAX` placed pods are counted; the answer says how many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from mooring.api.views.meta import ApiObject, OwnerReference, controller_of
from mooring.api.views.workloads import ReplicaSet, StatefulSet
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import NO_START_S, PodInfo
from mooring.scheduler.scheduler import Scheduler

WORKLOADS_MAX = 2_000
"""Workloads in one answer; those with pending pods come first."""

PODS_READ_MAX = 200_000

STARTED, PLACED, BINDING, PENDING, TERMINATING = "started", "placed", "binding", "pending", "terminating"
UNOWNED = "without-controller"
"""The name of the row with the pods of a namespace that no controller owns. Its kind is Pod."""

Key: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""
Document: TypeAlias = dict[str, object]


@dataclass(slots=True)
class WorkloadStates:
    """What the scheduler knows of one controller of pods."""

    kind: str
    namespace: str
    name: str
    wanted: int | None = None
    states: Counter[str] = field(default_factory=Counter)
    pending_pod: str = ""
    """The first pending pod."""

    def document(self) -> Document:
        document: Document = {
            "kind": self.kind,
            "workload": f"{self.namespace}/{self.name}",
            "states": dict(self.states),
        }
        if self.wanted is not None:
            document["wanted"] = self.wanted
        if self.pending_pod:
            document["pendingPod"] = self.pending_pod
        return document


def workloads(scheduler: Scheduler) -> Document:
    """All workloads; those with the most pending pods first, then by name."""
    columns = scheduler.engine.columns
    # A ReplicaSet of an earlier revision has no pods and wants none.
    shown = [each for each in _states(scheduler).values() if each.states or each.wanted]
    shown.sort(key=lambda each: (-each.states[PENDING], each.namespace, each.kind, each.name))
    return {
        "total": len(shown),
        "pods": len(columns.pods),
        "podsRead": min(len(columns.pods), PODS_READ_MAX),
        "workloads": [each.document() for each in shown[:WORKLOADS_MAX]],
    }


def pods_of_workload(scheduler: Scheduler, kind: str, namespace: str, name: str) -> int:
    """How many pods a controller has that have not finished, and are not terminating."""
    found = _states(scheduler).get((kind, namespace, name))
    return found.states.total() - found.states[TERMINATING] if found is not None else 0


def _states(scheduler: Scheduler) -> dict[Key, WorkloadStates]:
    found: dict[Key, WorkloadStates] = {}
    columns = scheduler.engine.columns
    deployment_of = deployment_owners(columns)

    def workload(namespace: str, owner: OwnerReference | None) -> WorkloadStates:
        if owner is not None:
            owner = deployment_of.get(owner.uid, owner)
        key = (owner.kind, namespace, owner.name) if owner is not None else ("Pod", namespace, UNOWNED)
        each = found.get(key)
        if each is None:
            each = found[key] = WorkloadStates(*key)
        return each

    for replica_set in columns.objects.of(ReplicaSet):
        _add_wanted(workload(replica_set.metadata.namespace, _reference(replica_set)), replica_set)
    for stateful_set in columns.objects.of(StatefulSet):
        _add_wanted(workload(stateful_set.metadata.namespace, _reference(stateful_set)), stateful_set)
    for pod in islice(columns.pods.values(), PODS_READ_MAX):
        states = workload(pod.namespace, pod.signature.owner).states
        states[_placed_state(pod, is_assumed=pod.uid in scheduler.assumed_pods)] += 1
    for pod in _pending(scheduler):
        each = workload(pod.namespace, pod.signature.owner)
        each.states[PENDING] += 1
        each.pending_pod = each.pending_pod or pod.key
    return found


def deployment_owners(columns: Columns) -> dict[str, OwnerReference]:
    """By uid of a ReplicaSet: the Deployment that owns it."""
    owners = ((each.metadata.uid, controller_of(each.metadata)) for each in columns.objects.of(ReplicaSet))
    return {uid: owner for uid, owner in owners if owner is not None}


def _pending(scheduler: Scheduler) -> Iterable[PodInfo]:
    placed = scheduler.engine.columns.pods
    return (entry.pod for entry in scheduler.queue.entries() if entry.pod.uid not in placed)


def _placed_state(pod: PodInfo, *, is_assumed: bool) -> str:
    if pod.terminating:
        return TERMINATING
    if is_assumed:
        return BINDING
    return STARTED if pod.start_s < NO_START_S else PLACED


def _add_wanted(workload: WorkloadStates, controller: ReplicaSet | StatefulSet) -> None:
    replicas = controller.spec.replicas
    workload.wanted = (workload.wanted or 0) + (replicas if replicas is not None else 1)


def _reference(view: ApiObject) -> OwnerReference:
    metadata = view.metadata
    return OwnerReference(api_version=view.api_version, kind=view.kind, name=metadata.name, uid=metadata.uid)
