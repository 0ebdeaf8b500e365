"""Pods of the console: one pod with its timeline, and the pods of each controller by state.

1. The timeline reads the pod from the API server, because the scheduler does not hold the status of placed pods.
   Without an answer it is empty.
2. The nearest nodes and the candidates for preemption are as of now, and change nothing: they are found in a `WhatIf`,
   which also gives the random streams back that the search uses. A page requests them once per attempt, not once per
   second.
3. The states of a controller's pods come from what the scheduler watches: pods, ReplicaSets and StatefulSets. A pod of
   a ReplicaSet counts for the Deployment that owns it. The scheduler does not hold pods that have finished, Deployments
   and Jobs: the desired number of a Deployment is that of its ReplicaSets, and that of a Job is not known.
4. At most `PODS_READ_MAX` placed pods are counted; the answer says how many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from mooring.api.decode import decode_as
from mooring.api.errors import ObjectError
from mooring.api.kinds import POD
from mooring.api.views.meta import ApiObject, Condition, ObjectMeta, OwnerReference, controller_of
from mooring.api.views.pod import Pod, PodStatus
from mooring.api.views.workloads import ReplicaSet, StatefulSet
from mooring.client.errors import ClientError
from mooring.client.interface import Client
from mooring.kit.clock import Clock
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import NO_START_S, PodInfo
from mooring.scheduler.cache.resources import CPU, MEMORY
from mooring.scheduler.console.nodes import Document
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.pages import pod_page
from mooring.scheduler.plan.new_objects import RemovalOutcome, pending_view, removal_outcome, view_on
from mooring.scheduler.plan.request import PlanRequest, Question
from mooring.scheduler.plan.what_if import WhatIf
from mooring.scheduler.scheduler import Scheduler

WORKLOADS_MAX = 2_000
"""Workloads in one answer; those with pending pods come first."""

PODS_READ_MAX = 200_000

STARTED, PLACED, BINDING, PENDING, TERMINATING = "started", "placed", "binding", "pending", "terminating"
UNOWNED = "without-controller"
"""The name of the row with the pods of a namespace that no controller owns. Its kind is Pod."""

Key: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""
NEAREST_SHOWN_MAX = 8
CANDIDATES_SHOWN_MAX = 8
TYPES_MAX = 12
"""Pod types for which a page says how many more fit on a node."""
PLAN_SEED = 1
EXPLAINED = ("nodesWithoutObstacles", "obstaclesEverywhere", "nearestNodes")


@dataclass(slots=True)
class WorkloadStates:
    """The pods of one controller by state."""

    kind: str
    namespace: str
    name: str
    desired: int | None = None
    states: Counter[str] = field(default_factory=Counter)
    pending_pod: str = ""
    """The first pending pod."""

    def document(self) -> Document:
        document: Document = {
            "kind": self.kind,
            "workload": f"{self.namespace}/{self.name}",
            "states": dict(self.states),
        }
        if self.desired is not None:
            document["wanted"] = self.desired
        if self.pending_pod:
            document["pendingPod"] = self.pending_pod
        return document


def workloads(scheduler: Scheduler) -> Document:
    """All workloads; those with the most pending pods first, then by name."""
    columns = scheduler.engine.columns
    # A ReplicaSet of an earlier revision has no pods and wants none.
    shown = [workload for workload in _states(scheduler).values() if workload.states or workload.desired]
    shown.sort(key=lambda workload: (-workload.states[PENDING], workload.namespace, workload.kind, workload.name))
    return {
        "total": len(shown),
        "pods": len(columns.pods),
        "podsRead": min(len(columns.pods), PODS_READ_MAX),
        "workloads": [workload.document() for workload in shown[:WORKLOADS_MAX]],
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
        states = found.get(key)
        if states is None:
            states = found[key] = WorkloadStates(*key)
        return states

    for replica_set in columns.objects.of(ReplicaSet):
        _add_desired(workload(replica_set.metadata.namespace, _reference(replica_set)), replica_set)
    for stateful_set in columns.objects.of(StatefulSet):
        _add_desired(workload(stateful_set.metadata.namespace, _reference(stateful_set)), stateful_set)
    for pod in islice(columns.pods.values(), PODS_READ_MAX):
        states = workload(pod.namespace, pod.signature.owner).states
        states[_placed_state(pod, is_assumed=pod.uid in scheduler.assumed_pods)] += 1
    for pod in _pending(scheduler):
        pending_states = workload(pod.namespace, pod.signature.owner)
        pending_states.states[PENDING] += 1
        pending_states.pending_pod = pending_states.pending_pod or pod.key
    return found


def deployment_owners(columns: Columns) -> dict[str, OwnerReference]:
    """By uid of a ReplicaSet: the Deployment that owns it."""
    owners = (
        (replica_set.metadata.uid, controller_of(replica_set.metadata))
        for replica_set in columns.objects.of(ReplicaSet)
    )
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


def _add_desired(workload: WorkloadStates, controller: ReplicaSet | StatefulSet) -> None:
    replicas = controller.spec.replicas
    workload.desired = (workload.desired or 0) + (replicas if replicas is not None else 1)


def _reference(view: ApiObject) -> OwnerReference:
    metadata = view.metadata
    return OwnerReference(api_version=view.api_version, kind=view.kind, name=metadata.name, uid=metadata.uid)


async def pod_life(client: Client, key: str) -> Document:
    """When a pod was created, scheduled, started and ready, as the API server has it."""
    namespace, _, name = key.partition("/")
    try:
        pod = decode_as(Pod, await client.get(POD, namespace, name))
    except (ClientError, ObjectError):
        return {}
    conditions = {condition.type: condition for condition in pod.status.conditions}
    life: Document = {"created": pod.metadata.creation_timestamp, "phase": pod.status.phase}
    for moment, condition in (("scheduled", conditions.get("PodScheduled")), ("ready", conditions.get("Ready"))):
        if condition is not None and _is_true(condition):
            life[moment] = condition.last_transition_time
    if pod.status.start_time is not None:
        life["started"] = pod.status.start_time
    if pod.metadata.deletion_timestamp is not None:
        life["deleted"] = pod.metadata.deletion_timestamp
    return life


def _is_true(condition: Condition) -> bool:
    return condition.status == "True"


def explain_pod(scheduler: Scheduler, key: str, clock: Clock) -> Document:
    """What is in the way of a pending pod, and which pods it could preempt. Empty for other pods."""
    engine, queue = scheduler.engine, scheduler.queue
    parts = queue, scheduler.bindings.running, scheduler.waiting_pods, engine
    rows = pod_page(key, *parts, clock, NEAREST_SHOWN_MAX)["pods"]
    assert isinstance(rows, list), "the rows of a pod are a list"
    found: Document = next((row for row in rows if "nearestNodes" in row), {})
    pending = [entry.pod for entry in queue.entries() if entry.pod.uid == found.get("uid")]
    explained = {name: found[name] for name in EXPLAINED if name in found}
    return explained | {"candidates": _candidates(scheduler, pending[0])} if pending else {}


def _candidates(scheduler: Scheduler, pod: PodInfo) -> list[Document]:
    """Nodes on which evicting pods of lower priority makes room, the fewest victims first."""
    with WhatIf(scheduler.engine, PLAN_SEED) as what_if:
        try:
            found = what_if.engine.prepare(pod).preemption_candidates(pod)
        except PluginError:
            return []
    ranked = sorted(
        found.items(), key=lambda candidate: (candidate[1].violations, len(candidate[1].pods), candidate[0])
    )
    return [
        {
            "node": node,
            "victims": [{"pod": victim.key, "priority": victim.priority} for victim in victims.pods],
            "budgetsViolated": victims.violations,
        }
        for node, victims in ranked[:CANDIDATES_SHOWN_MAX]
    ]


def manifest_of(scheduler: Scheduler, key: str) -> Document | None:
    """A pod as a manifest, with the fields that the scheduler reads; None if there is no such pod.

    The scheduler never decodes commands and environments, so the manifest has none."""
    pod = _known_pod(scheduler, key)
    if pod is None:
        return None
    view = pod.view if pod.view is not None else pending_view(pod)
    metadata = ObjectMeta(name=pod.name, namespace=pod.namespace, labels=pod.signature.labels)
    spec = replace(view.spec, volumes=pod.volumes)
    plain = msgspec.to_builtins(replace(view, metadata=metadata, spec=spec, status=PodStatus()))
    return {"apiVersion": Pod.api_version, "kind": Pod.kind, **_without_empty(plain)}


def _known_pod(scheduler: Scheduler, key: str) -> PodInfo | None:
    queued = (entry.pod for entry in scheduler.queue.entries())
    return next((pod for pod in chain(queued, scheduler.engine.columns.pods.values()) if pod.key == key), None)


def _without_empty(value: Any) -> Any:
    """A view as a manifest: what is empty was absent."""
    if isinstance(value, dict):
        parts = {name: _without_empty(part) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part is not None and part not in ("", [], {}, False)}
    if isinstance(value, list | tuple):
        return [_without_empty(part) for part in value]
    return value


class FittingType(NamedTuple):
    """Pods of one controller with the same requests, and the question how many more of them fit on a node."""

    title: str
    """`Deployment default/web`, or the name of a pod without a controller."""
    pods: int
    requests: Document
    request: PlanRequest


def pod_types(scheduler: Scheduler, node_name: str) -> list[FittingType]:
    """The types of pods that the cluster has the most of. Pods of DaemonSets do not count: each node has its own."""
    engine, deployments = scheduler.engine, deployment_owners(scheduler.engine.columns)
    counts: Counter[tuple[str, bytes]] = Counter()
    example: dict[tuple[str, bytes], PodInfo] = {}
    queued = (entry.pod for entry in scheduler.queue.entries())
    for pod in islice(chain(queued, engine.columns.pods.values()), PODS_READ_MAX):
        if removal_outcome(pod) is not RemovalOutcome.ENDS and engine.is_responsible_for(pod):
            # Signatures of placed pods differ by zone: the API server copies labels of the node to them.
            key = (_title(pod, deployments), pod.signature.request_vector.tobytes())
            counts[key] += 1
            example.setdefault(key, pod)
    return [
        FittingType(
            key[0],
            count,
            requests_of(example[key]),
            PlanRequest(Question.CAPACITY, PLAN_SEED, (view_on(example[key], node_name),), wants_bound=False),
        )
        for key, count in counts.most_common(TYPES_MAX)
    ]


def requests_of(pod: PodInfo) -> Document:
    vector = pod.signature.request_vector
    return {"cpuMilli": int(vector[CPU]), "memory": int(vector[MEMORY])}


def _title(pod: PodInfo, deployments: Mapping[str, OwnerReference]) -> str:
    owner = pod.signature.owner
    if owner is None:
        return f"Pod {pod.key}"
    owner = deployments.get(owner.uid, owner)
    return f"{owner.kind} {pod.namespace}/{owner.name}"
