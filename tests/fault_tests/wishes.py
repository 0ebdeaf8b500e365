"""Workloads that the simulated user creates, and what is missing until they are complete.

Input: a kind, sizes, an image. Output: documents for the API; the unfinished parts.

A cast is the set of kinds of one seed. Deployments are in each, and one other kind in most: watching all kinds would
take three times as long.
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
from tests.fault_tests.forms import SeenWorkload
from tests.fault_tests.witness import Witness

NAMESPACE = "default"
IMAGES = ("app:1", "app:2", "app:3")
_AWAY = (
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2},
)


@dataclass(frozen=True)
class Cast:
    """Who plays."""

    other: Kind | None
    """Besides Deployments."""
    controllers: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()

    def watched_kinds(self) -> Sequence[Kind]:
        """All that can own something or be owned."""
        return (DEPLOYMENT, REPLICA_SET, POD, NODE, LEASE, *self.kinds)


CASTS = (
    Cast(None),
    Cast(STATEFUL_SET, ("statefulset-controller",), (STATEFUL_SET, CONTROLLER_REVISION)),
    Cast(DAEMON_SET, ("daemonset-controller",), (DAEMON_SET, CONTROLLER_REVISION)),
    Cast(JOB, ("job-controller",), (JOB,)),
)


@dataclass
class Wish:
    """One workload."""

    kind: Kind
    name: str
    replicas: int
    """Of a Job: completions; of a DaemonSet: of how many nodes."""
    image: str = IMAGES[0]
    is_paused: bool = False

    @property
    def cpu_cores(self) -> int:
        """That are to be kept free for it. Pods of DaemonSets fit into the fraction of a core that each node has."""
        return 0 if self.kind is DAEMON_SET else self.replicas


def document(
    wish: Wish, *, surge: int = 0, unavailable: int = 1, is_in_order: bool = True, at_once: int = 1
) -> Document:
    """As the API server completes it."""
    labels = {"app": wish.name}
    selector = {"matchLabels": labels}
    template = {"metadata": {"labels": labels}, "spec": _pod_spec(wish)}
    spec: Document = {"selector": selector, "template": template, "revisionHistoryLimit": 2}
    if wish.kind is DEPLOYMENT:
        spec["replicas"] = wish.replicas
        spec["progressDeadlineSeconds"] = 600
        rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    elif wish.kind is STATEFUL_SET:
        spec["replicas"] = wish.replicas
        spec["serviceName"] = wish.name
        spec["podManagementPolicy"] = "OrderedReady" if is_in_order else "Parallel"
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    elif wish.kind is DAEMON_SET:
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    else:
        spec = {"selector": selector, "template": template, "manualSelector": True, "suspend": False}
        spec |= {"completions": wish.replicas, "parallelism": at_once, "backoffLimit": 1_000}
        spec |= {"completionMode": "NonIndexed", "podReplacementPolicy": "TerminatingOrFailed"}
    return {
        "apiVersion": wish.kind.api_version,
        "kind": wish.kind.kind,
        "metadata": {"name": wish.name},
        "spec": spec,
    }


def container(wish: Wish) -> Document:
    cpu = "100m" if wish.kind is DAEMON_SET else "1000m"
    return {"name": "c", "image": wish.image, "resources": {"requests": {"cpu": cpu}}}


def _pod_spec(wish: Wish) -> Document:
    return {
        "terminationGracePeriodSeconds": 2,
        "restartPolicy": "Never" if wish.kind is JOB else "Always",
        "tolerations": [*_AWAY],
        "containers": [container(wish)],
    }


# ------------------------------------------------------------------------------------------------ is it as wished?


def unfinished(wishes: Sequence[Wish], witness: Witness) -> list[str]:
    """What is not yet as it was wished."""
    found = [each for wish in wishes for each in _missing(wish, witness.workloads[wish.kind])]
    for kind in (DEPLOYMENT, STATEFUL_SET, DAEMON_SET, JOB):
        wished, there = sum(wish.kind is kind for wish in wishes), len(witness.workloads[kind])
        if there != wished:
            found.append(f"there are {there} {kind.plural}, {wished} are wished for")
    known = {each.metadata.uid for seen in witness.workloads.values() for each in seen.values()}
    for kind_name, things in (("set", witness.workloads[REPLICA_SET]), ("pod", witness.pods)):
        for thing in things.values():
            if thing.metadata.owner_uid() not in known:
                found.append(f"{kind_name} {thing.metadata.name} has lost its owner and is there")
    pods = [pod for pod in witness.pods.values() if not pod.is_over]
    for pod in pods:
        if pod.is_going or not pod.is_ready or not pod.spec.node_name:
            found.append(f"pod {pod.metadata.name} on {pod.spec.node_name!r} is not ready")
    replicas = sum(wish.replicas for wish in wishes if wish.kind is not JOB)
    if len(pods) != replicas:
        found.append(f"there are {len(pods)} pods, {replicas} are wished for")
    return found


def _missing(wish: Wish, seen: dict[str, SeenWorkload]) -> list[str]:
    workload = seen.get(wish.kind.key(NAMESPACE, wish.name))
    if workload is None:
        return [f"{wish.name} is not there"]
    status = workload.status
    if wish.kind is JOB:
        is_complete = any(each.type == "Complete" and each.status == "True" for each in status.conditions)
        if is_complete and status.succeeded == wish.replicas:
            return []
        return [f"{wish.name}: {status.succeeded} of {wish.replicas} are counted, complete: {is_complete}"]
    found = []
    if status.observed_generation != workload.metadata.generation:
        seen_of = f"{status.observed_generation} of {workload.metadata.generation}"
        found.append(f"{wish.name}: generation {seen_of} is observed")
    if wish.kind is DAEMON_SET:
        counts = (status.current_number_scheduled, status.updated_number_scheduled, status.number_available)
    else:
        counts = (status.replicas, status.updated_replicas, status.available_replicas)
    if counts != (wish.replicas,) * 3:
        found.append(f"{wish.name}: {wish.replicas} are wished for; all, updated, available are {counts}")
    return found
