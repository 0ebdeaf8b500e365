"""The witness: sees every revision of the store as it is written, and says at once what must never be.

Comes in   every write, in order
Goes out   what was broken, with the revision at which it was; a hash of the whole history; what there is now

 1. A pod that has a node keeps it until it is gone.
 2. Whenever a pod is bound, the pods of its node that are not over ask for no more than the node has.
 3. Nobody raises a ReplicaSet so that those of its Deployment ask for more than replicas + maxSurge together. What
    counts is any version of the Deployment that its controller may have before it: none older than the one that its
    status says it has observed.
 4. Nobody makes a pod for a ReplicaSet that has as many as it asks for; its versions count as above. A request for a
    pod whose answer got lost excuses one pod more: its maker cannot know of it.

Views of its own, not those of the project: who checks should not share the mistakes of who is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TypeVar

import msgspec

from mooring.api.kinds import DEPLOYMENT, NODE, POD, REPLICA_SET
from mooring.store.memory import MemoryStore

Seen = TypeVar("Seen")

FINISHED = ("Succeeded", "Failed")


class _Form(msgspec.Struct, rename="camel", frozen=True):
    """Reads what it names and nothing else."""


class Owner(_Form, frozen=True):
    uid: str
    kind: str
    controller: bool = False


class Metadata(_Form, frozen=True):
    name: str
    uid: str
    generation: int = 0
    deletion_timestamp: str | None = None
    owner_references: tuple[Owner, ...] = ()

    def owner_uid(self) -> str:
        return next((owner.uid for owner in self.owner_references if owner.controller), "")


class Resources(_Form, frozen=True):
    requests: dict[str, str] = {}


class Container(_Form, frozen=True):
    resources: Resources = Resources()
    image: str = ""


class Condition(_Form, frozen=True):
    type: str
    status: str


class PodSpec(_Form, frozen=True):
    containers: tuple[Container, ...] = ()
    node_name: str = ""


class PodStatus(_Form, frozen=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class SeenPod(_Form, frozen=True):
    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_over(self) -> bool:
        return self.status.phase in FINISHED

    @property
    def is_going(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)

    def cpu_milli(self) -> int:
        return sum(cpu_milli_of(each.resources.requests.get("cpu", "0")) for each in self.spec.containers)


class NodeStatus(_Form, frozen=True):
    allocatable: dict[str, str] = {}


class SeenNode(_Form, frozen=True):
    metadata: Metadata
    status: NodeStatus = NodeStatus()


class RollingUpdate(_Form, frozen=True):
    max_surge: int = 0


class Strategy(_Form, frozen=True):
    rolling_update: RollingUpdate | None = None


class WorkloadSpec(_Form, frozen=True):
    replicas: int = 0
    strategy: Strategy | None = None


class WorkloadStatus(_Form, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0


class SeenWorkload(_Form, frozen=True):
    """A Deployment or a ReplicaSet."""

    metadata: Metadata
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    def pods_max(self) -> int:
        rolling = self.spec.strategy.rolling_update if self.spec.strategy is not None else None
        return self.spec.replicas + (rolling.max_surge if rolling is not None else 0)


class Witness:
    """Knows what there is, and what was promised of it."""

    def __init__(self, lost_pod_answers: Callable[[], int]) -> None:
        self.broken: list[str] = []
        self.pods: dict[str, SeenPod] = {}
        self.nodes: dict[str, SeenNode] = {}
        self.deployments: dict[str, SeenWorkload] = {}
        self.sets: dict[str, SeenWorkload] = {}
        self._limits: dict[str, dict[int, int]] = {}
        self._lost_pod_answers = lost_pod_answers
        self._hash = blake2b(digest_size=16)

    def saw(self, key: str, revision: int, value: bytes | None) -> None:
        """One write, which has just happened."""
        self._hash.update(f"{revision} {key} ".encode())
        self._hash.update(value if value is not None else b"gone")
        if key.startswith(POD.key_prefix):
            self._saw_pod(key, revision, value)
        elif key.startswith(REPLICA_SET.key_prefix):
            self._saw_set(key, revision, value)
        elif key.startswith(DEPLOYMENT.key_prefix):
            self._saw_deployment(key, value)
        elif key.startswith(NODE.key_prefix):
            _keep(self.nodes, key, None if value is None else _read_node(value))

    def history_hash(self) -> str:
        return self._hash.hexdigest()

    # ---------------------------------------------------------------------------------------------------- pods

    def _saw_pod(self, key: str, revision: int, value: bytes | None) -> None:
        before, now = self.pods.get(key), None if value is None else _read_pod(value)
        _keep(self.pods, key, now)
        if now is None:
            return
        was_there = before is not None and before.metadata.uid == now.metadata.uid
        node_before = before.spec.node_name if before is not None and was_there else ""
        if node_before and now.spec.node_name != node_before:
            self._break(revision, f"{key} was on {node_before} and is on {now.spec.node_name!r}")
        if now.spec.node_name and not node_before:
            self._check_node(revision, now)
        if not was_there:
            self._check_number_of_pods(revision, now)

    def _check_node(self, revision: int, bound: SeenPod) -> None:
        name = bound.spec.node_name
        node = self.nodes.get(NODE.key("", name))
        if node is None:
            return  # deleted while the binding was under way
        asked = sum(pod.cpu_milli() for pod in self.pods.values() if pod.spec.node_name == name and not pod.is_over)
        has = cpu_milli_of(node.status.allocatable.get("cpu", "0"))
        if asked > has:
            self._break(revision, f"{name} has {has}m and is asked for {asked}m when {bound.metadata.name} comes")

    def _check_number_of_pods(self, revision: int, made: SeenPod) -> None:
        owner = made.metadata.owner_uid()
        limits = self._limits.get(owner)
        if limits is None:
            return
        alive = sum(
            not (pod.is_going or pod.is_over) for pod in self.pods.values() if pod.metadata.owner_uid() == owner
        )
        allowed = max(limits.values()) + self._lost_pod_answers()
        if alive > allowed:
            self._break(revision, f"{made.metadata.name} is one of {alive} pods of a set that may have {allowed}")

    # ----------------------------------------------------------------------------------------------- workloads

    def _saw_deployment(self, key: str, value: bytes | None) -> None:
        now = None if value is None else _read_workload(value)
        _keep(self.deployments, key, now)
        if now is not None:
            self._remember_limit(now, now.pods_max())

    def _saw_set(self, key: str, revision: int, value: bytes | None) -> None:
        before, now = self.sets.get(key), None if value is None else _read_workload(value)
        _keep(self.sets, key, now)
        if now is None:
            return
        self._remember_limit(now, now.spec.replicas)
        size_before = before.spec.replicas if before is not None and before.metadata.uid == now.metadata.uid else 0
        limits = self._limits.get(owner := now.metadata.owner_uid())
        if now.spec.replicas <= size_before or limits is None:
            return
        asked = sum(each.spec.replicas for each in self.sets.values() if each.metadata.owner_uid() == owner)
        if asked > max(limits.values()):
            grown = f"{now.metadata.name} grows from {size_before} to {now.spec.replicas}"
            self._break(revision, f"{grown}: its Deployment asks for {asked} pods and may for {max(limits.values())}")

    def _remember_limit(self, seen: SeenWorkload, limit: int) -> None:
        """Versions that its controller has left behind count no more."""
        limits = self._limits.setdefault(seen.metadata.uid, {})
        limits[seen.metadata.generation] = limit
        for generation in [each for each in limits if each < seen.status.observed_generation]:
            del limits[generation]

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


_read_pod = msgspec.json.Decoder(SeenPod).decode
_read_node = msgspec.json.Decoder(SeenNode).decode
_read_workload = msgspec.json.Decoder(SeenWorkload).decode


def cpu_milli_of(text: str) -> int:
    """Simulations write only whole cores and milli-cores."""
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def _keep(seen: dict[str, Seen], key: str, now: Seen | None) -> None:
    if now is None:
        seen.pop(key, None)
    else:
        seen[key] = now
