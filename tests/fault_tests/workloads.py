"""Workloads that the simulated user creates, and what is missing until they are complete.

Input: a kind, sizes, an image. Output: documents for the API; the unfinished parts.

Each seed has Deployments, and most have one other kind (`SEED_KINDS`): watching all kinds would take three times as
long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mooring.api.document import Document
from mooring.api.kinds import (
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    LEASE,
    NODE,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
    Kind,
)
from tests.fault_tests.checker import InvariantChecker, SeenWorkload

NAMESPACE = "default"
IMAGES = ("app:1", "app:2", "app:3")
_TOLERATIONS = (
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2},
)


@dataclass(frozen=True)
class SeedKinds:
    """The kinds of workloads of one seed."""

    other: Kind | None
    """Besides Deployments."""
    controllers: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()

    def watched_kinds(self) -> Sequence[Kind]:
        """All kinds of owners and dependents."""
        return (DEPLOYMENT, REPLICA_SET, POD, NODE, LEASE, *self.kinds)


SEED_KINDS = (
    SeedKinds(None),
    SeedKinds(STATEFUL_SET, ("statefulset-controller",), (STATEFUL_SET, CONTROLLER_REVISION)),
    SeedKinds(DAEMON_SET, ("daemonset-controller",), (DAEMON_SET, CONTROLLER_REVISION)),
    SeedKinds(JOB, ("job-controller",), (JOB,)),
)


@dataclass
class DesiredWorkload:
    """One workload."""

    kind: Kind
    name: str
    replicas: int
    """Of a Job: completions; of a DaemonSet: nodes."""
    image: str = IMAGES[0]
    is_paused: bool = False

    @property
    def cpu_cores(self) -> int:
        """The cores that its pods request. Pods of DaemonSets fit into the fraction of a core that each node has."""
        return 0 if self.kind is DAEMON_SET else self.replicas


def document(
    workload: DesiredWorkload, *, surge: int = 0, unavailable: int = 1, is_ordered: bool = True, parallelism: int = 1
) -> Document:
    """The object to create, with all defaults."""
    labels = {"app": workload.name}
    selector = {"matchLabels": labels}
    template = {"metadata": {"labels": labels}, "spec": _pod_spec(workload)}
    spec: Document = {"selector": selector, "template": template, "revisionHistoryLimit": 2}
    if workload.kind is DEPLOYMENT:
        spec["replicas"] = workload.replicas
        spec["progressDeadlineSeconds"] = 600
        rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    elif workload.kind is STATEFUL_SET:
        spec["replicas"] = workload.replicas
        spec["serviceName"] = workload.name
        spec["podManagementPolicy"] = "OrderedReady" if is_ordered else "Parallel"
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    elif workload.kind is DAEMON_SET:
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    else:
        spec = {"selector": selector, "template": template, "manualSelector": True, "suspend": False}
        spec |= {"completions": workload.replicas, "parallelism": parallelism, "backoffLimit": 1_000}
        spec |= {"completionMode": "NonIndexed", "podReplacementPolicy": "TerminatingOrFailed"}
    return {
        "apiVersion": workload.kind.api_version,
        "kind": workload.kind.kind,
        "metadata": {"name": workload.name},
        "spec": spec,
    }


def container(workload: DesiredWorkload) -> Document:
    cpu = "100m" if workload.kind is DAEMON_SET else "1000m"
    return {"name": "c", "image": workload.image, "resources": {"requests": {"cpu": cpu}}}


def _pod_spec(workload: DesiredWorkload) -> Document:
    return {
        "terminationGracePeriodSeconds": 2,
        "restartPolicy": "Never" if workload.kind is JOB else "Always",
        "tolerations": [*_TOLERATIONS],
        "containers": [container(workload)],
    }


# ------------------------------------------------------------------------------------------------ unfinished parts


def unfinished(workloads: Sequence[DesiredWorkload], checker: InvariantChecker) -> list[str]:
    """The differences from the desired workloads; empty if all are complete."""
    found = [
        unfinished_part
        for workload in workloads
        for unfinished_part in _unfinished_parts(workload, checker.workloads[workload.kind])
    ]
    for kind in (DEPLOYMENT, STATEFUL_SET, DAEMON_SET, JOB):
        desired, found_count = sum(workload.kind is kind for workload in workloads), len(checker.workloads[kind])
        if found_count != desired:
            found.append(f"there are {found_count} {kind.plural}, {desired} are desired")
    known = {each.metadata.uid for seen in checker.workloads.values() for each in seen.values()}
    for kind_name, dependents in (("set", checker.workloads[REPLICA_SET]), ("pod", checker.pods)):
        for dependent in dependents.values():
            if dependent.metadata.owner_uid() not in known:
                found.append(f"{kind_name} {dependent.metadata.name} exists without its owner")
    pods = [pod for pod in checker.pods.values() if not pod.is_finished]
    for pod in pods:
        if pod.is_terminating or not pod.is_ready or not pod.spec.node_name:
            found.append(f"pod {pod.metadata.name} on {pod.spec.node_name!r} is not ready")
    replicas = sum(workload.replicas for workload in workloads if workload.kind is not JOB)
    if len(pods) != replicas:
        found.append(f"there are {len(pods)} pods, {replicas} are desired")
    return found


def _unfinished_parts(desired: DesiredWorkload, seen: dict[str, SeenWorkload]) -> list[str]:
    workload = seen.get(desired.kind.key(NAMESPACE, desired.name))
    if workload is None:
        return [f"{desired.name} does not exist"]
    status = workload.status
    if desired.kind is JOB:
        is_complete = any(
            condition.type == "Complete" and condition.status == "True" for condition in status.conditions
        )
        if is_complete and status.succeeded == desired.replicas:
            return []
        return [f"{desired.name}: {status.succeeded} of {desired.replicas} are counted, complete: {is_complete}"]
    found = []
    if status.observed_generation != workload.metadata.generation:
        generations = f"{status.observed_generation} of {workload.metadata.generation}"
        found.append(f"{desired.name}: generation {generations} is observed")
    if desired.kind is DAEMON_SET:
        counts = (status.current_number_scheduled, status.updated_number_scheduled, status.number_available)
    else:
        counts = (status.replicas, status.updated_replicas, status.available_replicas)
    if counts != (desired.replicas,) * 3:
        found.append(f"{desired.name}: {desired.replicas} are desired; all, updated, available are {counts}")
    return found
