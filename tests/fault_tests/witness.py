"""The witness: sees every write of the store, and reports broken invariants at once.

Input: every write, in order. Output: broken invariants, with their revision; a hash of the whole history; the current
state.

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
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TypeVar

from mooring.api.kinds import DAEMON_SET, DEPLOYMENT, JOB, NODE, POD, REPLICA_SET, STATEFUL_SET, Kind
from mooring.store.memory import MemoryStore
from tests.fault_tests.forms import SeenNode, SeenPod, SeenWorkload, read_node, read_pod, read_workload

Seen = TypeVar("Seen")

WORKLOADS = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, JOB)


class Witness:
    """Knows what there is, and what was promised of it."""

    def __init__(self, lost_pod_answers: Callable[[str], int]) -> None:
        """`lost_pod_answers` says of an owner's uid how many of its pods its controller may not know of."""
        self.broken: list[str] = []
        self.pods: dict[str, SeenPod] = {}
        self.nodes: dict[str, SeenNode] = {}
        self.workloads: dict[Kind, dict[str, SeenWorkload]] = {kind: {} for kind in WORKLOADS}
        self._by_uid: dict[str, SeenWorkload] = {}
        self._limits: dict[str, dict[int, int]] = {}
        self._made: dict[str, dict[str, None]] = {}
        """By owner: the uids of all pods that it ever had."""
        self._succeeded: dict[str, dict[str, None]] = {}
        self._succeeded_in_peace: dict[str, dict[str, None]] = {}
        """Of those, who was not going when it did: nobody had replaced it."""
        self._ready_once: dict[tuple[str, str], None] = {}
        self._lost_pod_answers = lost_pod_answers
        self._hash = blake2b(digest_size=16)

    def saw(self, key: str, revision: int, value: bytes | None) -> None:
        """One write, which has just happened."""
        self._hash.update(f"{revision} {key} ".encode())
        self._hash.update(value if value is not None else b"gone")
        if key.startswith(POD.key_prefix):
            self._saw_pod(key, revision, value)
            return
        if key.startswith(NODE.key_prefix):
            _keep(self.nodes, key, None if value is None else read_node(value))
            return
        for kind in WORKLOADS:
            if key.startswith(kind.key_prefix):
                self._saw_workload(kind, key, revision, value)

    def history_hash(self) -> str:
        return self._hash.hexdigest()

    # ---------------------------------------------------------------------------------------------------- pods

    def _saw_pod(self, key: str, revision: int, value: bytes | None) -> None:
        before, now = self.pods.get(key), None if value is None else read_pod(value)
        _keep(self.pods, key, now)
        if now is None:
            return
        was_there = before is not None and before.metadata.uid == now.metadata.uid
        node_before = before.spec.node_name if before is not None and was_there else ""
        if node_before and now.spec.node_name != node_before:
            self._break(revision, f"{key} was on {node_before} and is on {now.spec.node_name!r}")
        if now.spec.node_name and not node_before:
            self._check_node(revision, now)
        owner = self._by_uid.get(now.metadata.owner_uid())
        if owner is not None and not was_there:
            self._check_new_pod(revision, owner, now)
        self._remember_pod(now)

    def _remember_pod(self, pod: SeenPod) -> None:
        owner, uid = pod.metadata.owner_uid(), pod.metadata.uid
        self._made.setdefault(owner, {})[uid] = None
        if pod.is_ready:
            self._ready_once[owner, pod.metadata.name] = None
        if pod.status.phase == "Succeeded" and uid not in self._succeeded.setdefault(owner, {}):
            self._succeeded[owner][uid] = None
            if not pod.is_going:
                self._succeeded_in_peace.setdefault(owner, {})[uid] = None

    def _check_node(self, revision: int, bound: SeenPod) -> None:
        name = bound.spec.node_name
        node = self.nodes.get(NODE.key("", name))
        if node is None:
            return  # deleted while the binding was under way
        asked = sum(pod.cpu_milli() for pod in self.pods.values() if pod.spec.node_name == name and not pod.is_over)
        if asked > node.cpu_milli():
            has = f"{name} has {node.cpu_milli()}m and is asked for {asked}m"
            self._break(revision, f"{has} when {bound.metadata.name} comes")

    def _check_new_pod(self, revision: int, owner: SeenWorkload, made: SeenPod) -> None:
        if owner.kind == "StatefulSet":
            self._check_ordinal(revision, owner, made)
            return
        uid, name = owner.metadata.uid, made.metadata.name
        alive = [pod for pod in self.pods.values() if pod.is_alive and pod.metadata.owner_uid() == uid]
        if owner.kind == "DaemonSet":
            alive = [pod for pod in alive if pod.pinned_to() == made.pinned_to()]
        lost = self._lost_pod_answers(uid)
        allowed = max(self._limits[uid].values()) + lost
        if len(alive) > allowed:
            self._break(revision, f"{name} is one of {len(alive)} pods of a {owner.kind} that may have {allowed}")
        if owner.kind == "Job":
            succeeded, needed = len(self._succeeded_in_peace.get(uid, {})), owner.spec.completions
            if succeeded + len(alive) > needed + lost:
                self._break(revision, f"{name} is made when {succeeded} of {needed} succeeded, {len(alive)} run")

    def _check_ordinal(self, revision: int, owner: SeenWorkload, made: SeenPod) -> None:
        uid, name, ordinal = owner.metadata.uid, made.metadata.name, made.ordinal()
        if ordinal >= max(self._limits[uid].values()):
            self._break(revision, f"{name} is made for a StatefulSet of {max(self._limits[uid].values())}")
        before = f"{owner.metadata.name}-{ordinal - 1}"
        is_in_order = owner.spec.pod_management_policy == "OrderedReady"
        if is_in_order and ordinal and (uid, before) not in self._ready_once:
            self._break(revision, f"{name} is made before {before} was ready")

    # ----------------------------------------------------------------------------------------------- workloads

    def _saw_workload(self, kind: Kind, key: str, revision: int, value: bytes | None) -> None:
        seen = self.workloads[kind]
        before, now = seen.get(key), None if value is None else read_workload(value)
        _keep(seen, key, now)
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
        """Versions that its controller has left behind count no more."""
        limits = self._limits.setdefault(seen.metadata.uid, {})
        limits[seen.metadata.generation] = seen.pods_max()
        for generation in [each for each in limits if each < seen.status.observed_generation]:
            del limits[generation]

    def _check_growth(self, revision: int, size_before: int, now: SeenWorkload) -> None:
        limits = self._limits.get(owner := now.metadata.owner_uid())
        if now.spec.replicas <= size_before or limits is None:
            return
        sets = self.workloads[REPLICA_SET].values()
        asked = sum(each.spec.replicas for each in sets if each.metadata.owner_uid() == owner)
        if asked > max(limits.values()):
            grown = f"{now.metadata.name} grows from {size_before} to {now.spec.replicas}"
            self._break(revision, f"{grown}: its Deployment asks for {asked} pods and may for {max(limits.values())}")

    def _check_counts(self, revision: int, before: SeenWorkload | None, now: SeenWorkload) -> None:
        name, uid, status = now.metadata.name, now.metadata.uid, now.status
        succeeded, made = len(self._succeeded.get(uid, {})), len(self._made.get(uid, {}))
        if status.succeeded > succeeded:
            self._break(revision, f"{name} counts {status.succeeded} successes, {succeeded} pods succeeded")
        if status.succeeded + status.failed > made:
            self._break(revision, f"{name} counts {status.succeeded + status.failed} ends of {made} pods")
        if before is not None and (status.succeeded < before.status.succeeded or status.failed < before.status.failed):
            self._break(revision, f"{name} takes back what it counted")

    def _break(self, revision: int, what: str) -> None:
        self.broken.append(f"revision {revision}: {what}")


class WitnessedStore(MemoryStore):
    """A store whose every write is seen before anybody else hears of it."""

    def __init__(self, witness: Witness) -> None:
        super().__init__()
        self._witness = witness

    async def put(self, key: str, value: bytes, *, if_revision: int | None = None) -> int:
        revision = await super().put(key, value, if_revision=if_revision)
        self._witness.saw(key, revision, value)
        return revision

    async def delete(self, key: str, *, if_revision: int | None = None) -> int:
        revision = await super().delete(key, if_revision=if_revision)
        self._witness.saw(key, revision, None)
        return revision


def _keep(seen: dict[str, Seen], key: str, now: Seen | None) -> None:
    if now is None:
        seen.pop(key, None)
    else:
        seen[key] = now
