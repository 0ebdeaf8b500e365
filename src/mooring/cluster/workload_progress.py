"""The progress of workloads: when they are available, and why they are not.

Input: workloads that were created. Output: lines such as

    deployment/ferry: 6 of 6 replicas are available
    deployment/ferry: 0 of 6 replicas are available: 0/3 nodes are available: 3 Insufficient cpu

1. A reason is reported `FIRST_REASON_S` after the start, and another one when it changes, at most one in
   `REASON_EACH_S` for a workload, and none twice.
2. The reason is that of most of its pods: what the scheduler or the kubelet reports. Without pods, it is what the
   controller reports.
3. A workload that is deleted is not reported any more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.client.interface import Selection

POLL_S = 0.2
FIRST_REASON_S = 3.0
"""Until then most workloads are available."""
REASON_EACH_S = 5.0
PODS_MAX = 500
"""Pods of a workload that are read for the reason."""
REASONS_MAX = 20
"""Reasons that are reported for one workload."""
_TIMES = re.compile(r"\b[0-9]+(\.[0-9]+)?(ms|s|m|h)[0-9.smh]*\b")
"""The backoff of a container grows with every failure: that is no new reason."""
NO_CONTROLLERS = "no controllers run, so nothing creates its pods"

_WORKLOADS = {
    (kind.api_version, kind.kind): kind
    for kind in (
        kinds.DAEMON_SET,
        kinds.DEPLOYMENT,
        kinds.JOB,
        kinds.POD,
        kinds.REPLICA_SET,
        kinds.STATEFUL_SET,
    )
}


@dataclass(slots=True)
class Workload:
    """One workload and what was reported of it."""

    kind: Kind
    namespace: str
    name: str
    reported: set[str] = field(default_factory=set)
    """Reasons that were reported, without times. A container that fails alternates between two of them."""
    reported_s: float = field(default=float("-inf"))

    @property
    def title(self) -> str:
        return f"{self.kind.kind.lower()}/{self.name}"

    def mark_reported(self, reason: str) -> bool:
        """Record that the reason is reported. Returns whether it was not reported before."""
        key = _TIMES.sub("", reason)
        if key in self.reported or len(self.reported) >= REASONS_MAX:
            return False
        self.reported.add(key)
        return True


def workloads_of(documents: Iterable[Document]) -> list[Workload]:
    """The workloads among these objects."""
    found = []
    for document in documents:
        kind = _WORKLOADS.get((document["apiVersion"], document["kind"]))
        metadata = document["metadata"]
        if kind is not None and metadata.get("name"):
            found.append(Workload(kind, metadata.get("namespace") or "default", metadata["name"]))
    return found


async def follow_progress(
    api_server: ApiServer, client: LoopbackClient, workloads: Iterable[Workload], *, has_controllers: bool = True
) -> AsyncIterator[str]:
    """Lines about the workloads, until all of them are available or gone."""
    clock = api_server.clock
    pending, started_s = list(workloads), clock.now_s()
    while pending:
        for workload in list(pending):
            live = await api_server.lookup.get(workload.kind, workload.namespace, workload.name)
            if live is None:
                pending.remove(workload)
                continue
            available, desired = availability(workload.kind, live)
            if available >= desired:
                pending.remove(workload)
                yield progress_line(workload, available, desired)
            elif clock.now_s() >= max(started_s + FIRST_REASON_S, workload.reported_s + REASON_EACH_S):
                reason = await _reason(client, workload, live, has_controllers)
                if reason and workload.mark_reported(reason):
                    workload.reported_s = clock.now_s()
                    yield f"{progress_line(workload, available, desired)}: {reason}"
        await clock.wait(POLL_S)


def progress_line(workload: Workload, available: int, desired: int) -> str:
    if workload.kind is kinds.POD:
        return f"{workload.title} is {'ready' if available else 'not ready'}"
    noun = "pods are" if workload.kind in (kinds.DAEMON_SET, kinds.JOB) else "replicas are"
    return f"{workload.title}: {available} of {desired} {noun} available"


def availability(kind: Kind, live: Document) -> tuple[int, int]:
    """How many pods of a workload are available, and how many should be."""
    spec, status = live["spec"], live.get("status") or {}
    is_observed = status.get("observedGeneration", 0) >= live["metadata"].get("generation", 0)
    match kind:
        case kinds.POD:
            conditions = status.get("conditions") or ()
            is_ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
            return int(is_ready or status.get("phase") == "Succeeded"), 1
        case kinds.DAEMON_SET:
            desired = status.get("desiredNumberScheduled", 0)
            return (status.get("numberAvailable", 0), desired) if is_observed else (0, max(1, desired))
        case kinds.JOB:
            desired = min(spec.get("parallelism", 1), spec.get("completions", spec.get("parallelism", 1)))
            return status.get("ready", 0) + status.get("succeeded", 0), desired
        case _:
            return status.get("availableReplicas", 0) if is_observed else 0, spec.get("replicas", 1)


async def _reason(client: LoopbackClient, workload: Workload, live: Document, has_controllers: bool) -> str:
    if workload.kind is kinds.POD:
        return pod_reason(live)
    labels = ((live["spec"].get("selector") or {}).get("matchLabels")) or {}
    selector = ",".join(f"{name}={value}" for name, value in labels.items())
    page = await client.list(kinds.POD, Selection(workload.namespace, labels=selector), limit=PODS_MAX)
    reasons = Counter(reason for raw in page.items if (reason := pod_reason(msgspec.json.decode(raw))))
    if reasons:
        return reasons.most_common(1)[0][0]
    if not page.items and not has_controllers:
        return NO_CONTROLLERS
    return _condition_message(live.get("status") or {})


def pod_reason(pod: Document) -> str:
    """Why a pod is not ready; empty if it is, or if nothing is known yet."""
    status = pod.get("status") or {}
    conditions: Mapping[str, Document] = {condition["type"]: condition for condition in status.get("conditions") or ()}
    if status.get("phase") == "Failed":
        return status.get("message") or status.get("reason") or _terminated(status) or "a pod has failed"
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return _without_preemption(scheduled.get("message") or scheduled.get("reason") or "")
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "", "ContainerCreating", "PodInitializing"):
            message = waiting.get("message")
            return f"{waiting['reason']}: {message}" if message else str(waiting["reason"])
    ready = conditions.get("Ready", {})
    if status.get("phase") == "Running" and ready.get("status") == "False":
        return ready.get("message") or ready.get("reason") or "not ready"
    return ""


def _terminated(status: Document) -> str:
    for container in status.get("containerStatuses") or ():
        ended = (container.get("state") or {}).get("terminated")
        if ended and ended.get("exitCode"):
            return f"container {container['name']} exited with code {ended['exitCode']}"
    return ""


def _without_preemption(message: str) -> str:
    """A FailedScheduling message without the second sentence, which PostFilter plugins add."""
    return message.partition(". ")[0].removesuffix(".")


def _condition_message(status: Document) -> str:
    """What a controller reports: a quota, a missing account."""
    for condition in status.get("conditions") or ():
        is_bad = condition["type"] in ("ReplicaFailure", "Failed", "FailureTarget") and condition["status"] == "True"
        if is_bad or (condition["type"] == "Progressing" and condition["status"] == "False"):
            return condition.get("message") or condition.get("reason") or ""
    return ""
