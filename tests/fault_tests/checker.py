"""Checks invariants at every write of the store.

Input: every write, in order. Output: violations, with their revision; a hash of the whole history; the current state.

 1. A bound pod keeps its node until it is gone.
 2. When a pod is bound, the requests of the unfinished pods of its node do not exceed the node.
 3. No ReplicaSet is scaled up so that those of its Deployment exceed replicas + maxSurge. Any version of the Deployment
    counts that its controller may have read: none older than observedGeneration.
 4. No pod is created for a ReplicaSet that has enough pods (versions count as above), for a Job that has as many as
    parallelism or the remaining completions allow, for a node that has its pod of a DaemonSet. A create request whose
    response was lost allows one more pod of the same owner, because its creator cannot know of it.
 5. A StatefulSet creates no pod with an ordinal beyond its size; with OrderedReady, none before its predecessor was
    ready once. The number of pods is not limited: a missing pod is replaced before one too many is deleted.
 6. A Job counts each pod once: never more successes than pods that succeeded, never more finished pods than pods, and
    counts never decrease.

Objects are decoded into types of this module, not into the views of the project, whose mistakes it would share.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TypeVar

import msgspec

from mooring.api.kinds import DAEMON_SET, DEPLOYMENT, JOB, NODE, POD, REPLICA_SET, STATEFUL_SET, Kind
from mooring.store.memory import MemoryStore

FINISHED = ("Succeeded", "Failed")


class _View(msgspec.Struct, rename="camel", frozen=True):
    """Decodes only its own fields."""


class Owner(_View, frozen=True):
    uid: str
    kind: str
    controller: bool = False


class Metadata(_View, frozen=True):
    name: str
    uid: str
    generation: int = 0
    deletion_timestamp: str | None = None
    owner_references: tuple[Owner, ...] = ()

    def owner_uid(self) -> str:
        return next((owner.uid for owner in self.owner_references if owner.controller), "")


class Resources(_View, frozen=True):
    requests: dict[str, str] = {}


class Container(_View, frozen=True):
    resources: Resources = Resources()
    image: str = ""


class Condition(_View, frozen=True):
    type: str
    status: str


class FieldMatch(_View, frozen=True):
    key: str
    values: tuple[str, ...] = ()


class NodeTerm(_View, frozen=True):
    match_fields: tuple[FieldMatch, ...] = ()


class NodeTerms(_View, frozen=True):
    node_selector_terms: tuple[NodeTerm, ...] = ()


class NodeAffinity(_View, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeTerms = NodeTerms()


class Affinity(_View, frozen=True):
    node_affinity: NodeAffinity = NodeAffinity()


class PodSpec(_View, frozen=True):
    containers: tuple[Container, ...] = ()
    node_name: str = ""
    affinity: Affinity = Affinity()


class PodStatus(_View, frozen=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class SeenPod(_View, frozen=True):
    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_finished(self) -> bool:
        return self.status.phase in FINISHED

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_active(self) -> bool:
        return not (self.is_terminating or self.is_finished)

    @property
    def is_ready(self) -> bool:
        return any(condition.type == "Ready" and condition.status == "True" for condition in self.status.conditions)

    def ordinal(self) -> int:
        """Of a pod of a StatefulSet."""
        return int(self.metadata.name.rpartition("-")[2])

    def pinned_to(self) -> str:
        """The node that a DaemonSet created it for."""
        terms = self.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        names = [match.values for term in terms.node_selector_terms for match in term.match_fields]
        return names[0][0] if names else ""

    def cpu_milli(self) -> int:
        return sum(cpu_milli_of(container.resources.requests.get("cpu", "0")) for container in self.spec.containers)


class NodeStatus(_View, frozen=True):
    allocatable: dict[str, str] = {}


class SeenNode(_View, frozen=True):
    metadata: Metadata
    status: NodeStatus = NodeStatus()

    def cpu_milli(self) -> int:
        return cpu_milli_of(self.status.allocatable.get("cpu", "0"))


class RollingUpdate(_View, frozen=True):
    max_surge: int = 0


class Strategy(_View, frozen=True):
    rolling_update: RollingUpdate | None = None


class WorkloadSpec(_View, frozen=True):
    replicas: int = 0
    strategy: Strategy | None = None
    pod_management_policy: str = ""
    parallelism: int = 0
    completions: int = 0


class WorkloadStatus(_View, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_number_scheduled: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_misscheduled: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[Condition, ...] = ()


class SeenWorkload(_View, frozen=True):
    """An owner of pods, or of ReplicaSets."""

    kind: str
    metadata: Metadata
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    def pods_max(self) -> int:
        """How many pods it may have; of a DaemonSet, on one node; of a Job, at a time."""
        match self.kind:
            case "Deployment":
                rolling = self.spec.strategy.rolling_update if self.spec.strategy is not None else None
                return self.spec.replicas + (rolling.max_surge if rolling is not None else 0)
            case "Job":
                return self.spec.parallelism
            case "DaemonSet":
                return 1
            case _:
                return self.spec.replicas


read_pod = msgspec.json.Decoder(SeenPod).decode
read_node = msgspec.json.Decoder(SeenNode).decode
read_workload = msgspec.json.Decoder(SeenWorkload).decode


def cpu_milli_of(text: str) -> int:
    """Fault tests write only whole cores and milli-cores."""
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


Seen = TypeVar("Seen")

WORKLOADS = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, JOB)


class InvariantChecker:
    """The current objects, and the violations so far."""

    def __init__(self, lost_pod_answers: Callable[[str], int]) -> None:
        """`lost_pod_answers` says of an owner's uid how many of its pods its controller may not know of."""
        self.violations: list[str] = []
        self.pods: dict[str, SeenPod] = {}
        self.nodes: dict[str, SeenNode] = {}
        self.workloads: dict[Kind, dict[str, SeenWorkload]] = {kind: {} for kind in WORKLOADS}
        self._by_uid: dict[str, SeenWorkload] = {}
        self._limits: dict[str, dict[int, int]] = {}
        self._created: dict[str, dict[str, None]] = {}
        """By owner: the uids of all pods that it ever had."""
        self._succeeded: dict[str, dict[str, None]] = {}
        self._succeeded_not_terminating: dict[str, dict[str, None]] = {}
        """Of these, the pods that were not terminating when they succeeded, so that they were not replaced before."""
        self._ready_once: dict[tuple[str, str], None] = {}
        self._lost_pod_answers = lost_pod_answers
        self._hash = blake2b(digest_size=16)

    def observe(self, key: str, revision: int, value: bytes | None) -> None:
        """Check one write, immediately after it."""
        self._hash.update(f"{revision} {key} ".encode())
        self._hash.update(value if value is not None else b"gone")
        if key.startswith(POD.key_prefix):
            self._observe_pod(key, revision, value)
            return
        if key.startswith(NODE.key_prefix):
            _store(self.nodes, key, None if value is None else read_node(value))
            return
        for kind in WORKLOADS:
            if key.startswith(kind.key_prefix):
                self._observe_workload(kind, key, revision, value)

    def history_hash(self) -> str:
        return self._hash.hexdigest()

    # ---------------------------------------------------------------------------------------------------- pods

    def _observe_pod(self, key: str, revision: int, value: bytes | None) -> None:
        before, now = self.pods.get(key), None if value is None else read_pod(value)
        _store(self.pods, key, now)
        if now is None:
            return
        existed = before is not None and before.metadata.uid == now.metadata.uid
        node_before = before.spec.node_name if before is not None and existed else ""
        if node_before and now.spec.node_name != node_before:
            self._report(revision, f"{key} was on {node_before} and is on {now.spec.node_name!r}")
        if now.spec.node_name and not node_before:
            self._check_node(revision, now)
        owner = self._by_uid.get(now.metadata.owner_uid())
        if owner is not None and not existed:
            self._check_new_pod(revision, owner, now)
        self._remember_pod(now)

    def _remember_pod(self, pod: SeenPod) -> None:
        owner, uid = pod.metadata.owner_uid(), pod.metadata.uid
        self._created.setdefault(owner, {})[uid] = None
        if pod.is_ready:
            self._ready_once[owner, pod.metadata.name] = None
        if pod.status.phase == "Succeeded" and uid not in self._succeeded.setdefault(owner, {}):
            self._succeeded[owner][uid] = None
            if not pod.is_terminating:
                self._succeeded_not_terminating.setdefault(owner, {})[uid] = None

    def _check_node(self, revision: int, bound: SeenPod) -> None:
        name = bound.spec.node_name
        node = self.nodes.get(NODE.key("", name))
        if node is None:
            return  # deleted while the binding was under way
        requested = sum(
            pod.cpu_milli() for pod in self.pods.values() if pod.spec.node_name == name and not pod.is_finished
        )
        if requested > node.cpu_milli():
            text = f"{name} has {node.cpu_milli()}m and {requested}m are requested"
            self._report(revision, f"{text} when {bound.metadata.name} is bound")

    def _check_new_pod(self, revision: int, owner: SeenWorkload, created: SeenPod) -> None:
        if owner.kind == "StatefulSet":
            self._check_ordinal(revision, owner, created)
            return
        uid, name = owner.metadata.uid, created.metadata.name
        alive = [pod for pod in self.pods.values() if pod.is_active and pod.metadata.owner_uid() == uid]
        if owner.kind == "DaemonSet":
            alive = [pod for pod in alive if pod.pinned_to() == created.pinned_to()]
        lost = self._lost_pod_answers(uid)
        allowed = max(self._limits[uid].values()) + lost
        if len(alive) > allowed:
            self._report(revision, f"{name} is one of {len(alive)} pods of a {owner.kind} that may have {allowed}")
        if owner.kind == "Job":
            succeeded, needed = len(self._succeeded_not_terminating.get(uid, {})), owner.spec.completions
            if succeeded + len(alive) > needed + lost:
                self._report(revision, f"{name} is created when {succeeded} of {needed} succeeded, {len(alive)} run")

    def _check_ordinal(self, revision: int, owner: SeenWorkload, created: SeenPod) -> None:
        uid, name, ordinal = owner.metadata.uid, created.metadata.name, created.ordinal()
        if ordinal >= max(self._limits[uid].values()):
            self._report(revision, f"{name} is created for a StatefulSet of {max(self._limits[uid].values())}")
        before = f"{owner.metadata.name}-{ordinal - 1}"
        is_ordered = owner.spec.pod_management_policy == "OrderedReady"
        if is_ordered and ordinal and (uid, before) not in self._ready_once:
            self._report(revision, f"{name} is created before {before} was ready")

    # ----------------------------------------------------------------------------------------------- workloads

    def _observe_workload(self, kind: Kind, key: str, revision: int, value: bytes | None) -> None:
        seen = self.workloads[kind]
        before, now = seen.get(key), None if value is None else read_workload(value)
        _store(seen, key, now)
        if now is None:
            return
        self._by_uid[now.metadata.uid] = now
        self._remember_limit(now)
        if before is not None and before.metadata.uid != now.metadata.uid:
            before = None
        if kind is REPLICA_SET:
            self._check_growth(revision, before.spec.replicas if before is not None else 0, now)
        if kind is JOB:
            self._check_counts(revision, before, now)

    def _remember_limit(self, seen: SeenWorkload) -> None:
        """Only generations that the controller may still act on count."""
        limits = self._limits.setdefault(seen.metadata.uid, {})
        limits[seen.metadata.generation] = seen.pods_max()
        for generation in [limit for limit in limits if limit < seen.status.observed_generation]:
            del limits[generation]

    def _check_growth(self, revision: int, size_before: int, now: SeenWorkload) -> None:
        limits = self._limits.get(owner := now.metadata.owner_uid())
        if now.spec.replicas <= size_before or limits is None:
            return
        sets = self.workloads[REPLICA_SET].values()
        requested = sum(each.spec.replicas for each in sets if each.metadata.owner_uid() == owner)
        if requested > max(limits.values()):
            grown = f"{now.metadata.name} grows from {size_before} to {now.spec.replicas}"
            allowed = f"its Deployment may have {max(limits.values())} pods and requests {requested}"
            self._report(revision, f"{grown}: {allowed}")

    def _check_counts(self, revision: int, before: SeenWorkload | None, now: SeenWorkload) -> None:
        name, uid, status = now.metadata.name, now.metadata.uid, now.status
        succeeded, created = len(self._succeeded.get(uid, {})), len(self._created.get(uid, {}))
        if status.succeeded > succeeded:
            self._report(revision, f"{name} counts {status.succeeded} successes, {succeeded} pods succeeded")
        if status.succeeded + status.failed > created:
            self._report(revision, f"{name} counts {status.succeeded + status.failed} ends of {created} pods")
        if before is not None and (status.succeeded < before.status.succeeded or status.failed < before.status.failed):
            self._report(revision, f"{name} decreases its counts")

    def _report(self, revision: int, text: str) -> None:
        self.violations.append(f"revision {revision}: {text}")


class CheckedStore(MemoryStore):
    """A store whose writes are checked before any watch delivers them."""

    def __init__(self, checker: InvariantChecker) -> None:
        super().__init__()
        self._checker = checker

    async def put(self, key: str, value: bytes, *, if_revision: int | None = None) -> int:
        revision = await super().put(key, value, if_revision=if_revision)
        self._checker.observe(key, revision, value)
        return revision

    async def delete(self, key: str, *, if_revision: int | None = None) -> int:
        revision = await super().delete(key, if_revision=if_revision)
        self._checker.observe(key, revision, None)
        return revision


def _store(seen: dict[str, Seen], key: str, now: Seen | None) -> None:
    if now is None:
        seen.pop(key, None)
    else:
        seen[key] = now
