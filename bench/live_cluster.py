"""A live cluster: an API server and a running scheduler in one process, and pods that are created in it.

Input: the objects of a scenario. Output: a scheduler with all of its parts: queue, hints, conditions, events, metrics,
watches.

1. Objects and pods are written to the store directly, in stored form: what it costs an API server to create a pod is
   measured by `bench.apiserver`. Their creation yields after each `CREATES_IN_A_ROW` pods, because the store in memory
   never waits.
2. The scheduler's requests (bindings, conditions, events) go through the registry of the API server (`LoopbackClient`).
3. Time is real, and the event loop is asyncio's own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from time import perf_counter_ns
from typing import NamedTuple

import msgspec

from bench.live_witness import Witness
from bench.scenario import Item, PodItem
from bench.templates import Manifest
from bench.workload import Outcome
from mooring.api.kinds import NAMESPACE, POD, Kind, kind_of_view
from mooring.apiserver.access.certificates import new_key
from mooring.apiserver.access.users import MASTERS_GROUP, User
from mooring.apiserver.assembly import Settings, open_api_server
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.apiserver.storage.stored_form import inward, stored_form, stored_kind
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.config import load_configuration
from mooring.scheduler.queue.queued_pod import QueueState
from mooring.scheduler.scheduler import Scheduler
from mooring.store.memory import MemoryStore

CREATES_IN_A_ROW = 50
POLL_S = 0.002
POD_NAMESPACE = "shop"
"""The namespace of the pods in `bench/workloads/templates`."""
CREATED = "2026-01-12T08:00:00Z"
SEED = 1

_decoder: msgspec.json.Decoder[Manifest] = msgspec.json.Decoder(dict[str, object])


class ComingPod(NamedTuple):
    """A pod that is ready to be created, and what must become of it."""

    key: str
    namespace: str
    manifest: Manifest
    outcome: Outcome


class LiveCluster:
    """One API server on a store in memory, one scheduler."""

    def __init__(self, api_server: ApiServer, store: MemoryStore, clock: SystemClock, entropy: Entropy) -> None:
        self.clock = clock
        self.store = store
        user = User("system:kube-scheduler", groups=(MASTERS_GROUP,))
        self.client = LoopbackClient(api_server, user, "kube-scheduler")
        self.witness = Witness(store)
        self.scheduler = Scheduler(self.client, load_configuration(None), clock=clock, entropy=entropy)

    async def put(self, item: Item) -> None:
        """Store an object that exists before the scheduler starts."""
        await self._store(kind_of_view(item.kind), creatable(item.raw))

    async def place(self, pod: PodItem) -> None:
        """Store a pod that exists before the scheduler starts, with a node or without one."""
        await self._store(POD, creatable(pod.raw))

    async def _store(self, kind: Kind, manifest: Manifest) -> None:
        metadata = manifest["metadata"]
        assert isinstance(metadata, dict), "an object has metadata"
        metadata.setdefault("uid", f"{kind.plural}-{metadata['name']}")
        metadata.setdefault("creationTimestamp", CREATED)
        value = stored_form(stored_kind(kind), inward(kind, manifest), metadata)
        await self.store.put(kind.key(_namespace(kind, manifest), str(metadata["name"])), value)

    async def start(self, group: TaskGroup) -> None:
        """Start the scheduler and the witness. Returns when the scheduler's caches are filled."""
        group.start_background(self.scheduler.run(), name="scheduler")
        group.start_background(self.witness.run(), name="witness")
        await self.witness.watches.wait()
        while not self.scheduler.has_synced:
            await self.clock.wait(POLL_S)

    async def create(self, pods: Sequence[ComingPod]) -> list[int]:
        """Create pods one after the other. Returns the time of each creation in nanoseconds."""
        created_ns: list[int] = []
        for number, pod in enumerate(pods, start=1):
            created_ns.append(perf_counter_ns())
            await self._store(POD, pod.manifest)
            if number % CREATES_IN_A_ROW == 0:
                await self.clock.wait(0)
        return created_ns

    async def decide(self, pods: Sequence[ComingPod], seconds_max: float) -> int:
        """Create pods and wait until all are decided. Returns the number of undecided pods."""
        self.witness.expect(*expected(pods))
        await self.create(pods)
        return await self.witness.wait_until_decided(seconds_max)

    async def wait_until_quiet(self, seconds_max: float) -> bool:
        """Wait until the scheduler has nothing left to do or to write. Returns False after `seconds_max`."""
        end_s = self.clock.now_s() + seconds_max
        while not self._is_quiet():
            if self.clock.now_s() > end_s:
                return False
            await self.clock.wait(POLL_S)
        return True

    def _is_quiet(self) -> bool:
        scheduler = self.scheduler
        queue = scheduler.queue.statistics()
        return not (
            queue.active
            or queue.backoff
            or queue.in_flight
            or scheduler.bindings.running
            or len(scheduler.assumed_pods)
            or len(scheduler.status_writer)
            or scheduler.events.statistics()["pending"]
        )


@asynccontextmanager
async def live_cluster() -> AsyncIterator[LiveCluster]:
    """A cluster without objects, whose scheduler has not started."""
    clock, store, entropy = SystemClock(), MemoryStore(), Entropy(SEED)
    # Without controllers no service accounts exist, and ServiceAccount would reject every pod.
    settings = Settings(new_key(), disabled_admission_plugins=frozenset(("ServiceAccount",)))
    async with open_api_server(store, clock, entropy.fork("apiserver"), settings) as api_server:
        cluster = LiveCluster(api_server, store, clock, entropy.fork("scheduler"))
        await cluster.client.create(NAMESPACE, "", {"metadata": {"name": POD_NAMESPACE}}, is_answer_wanted=False)
        yield cluster


def coming(items: Iterable[PodItem]) -> list[ComingPod]:
    """Pods as dictionaries, so that the clock need not run over what their owners would do."""
    pods = []
    for item in items:
        manifest = creatable(item.raw)
        metadata = manifest["metadata"]
        assert isinstance(metadata, dict), "a pod has metadata"
        namespace = str(metadata["namespace"])
        pods.append(ComingPod(POD.key(namespace, str(metadata["name"])), namespace, manifest, item.outcome))
    return pods


def expected(pods: Sequence[ComingPod]) -> tuple[list[str], list[str]]:
    """The keys of those that will be placed, and of those that will be refused."""
    placed = [pod.key for pod in pods if pod.outcome == "placed"]
    return placed, [pod.key for pod in pods if pod.outcome == "refused"]


def creatable(raw: bytes) -> Manifest:
    """An object as somebody would send it to be created: only the API server says its resourceVersion."""
    manifest = _decoder.decode(raw)
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict), "an object has metadata"
    metadata.pop("resourceVersion", None)
    return manifest


STATE_OF: dict[Outcome, QueueState | None] = {
    "placed": None,
    "refused": QueueState.UNSCHEDULABLE,
    "gated": QueueState.GATED,
    "preempts": None,
}
"""Where a pod must be found in the queue in the end."""


def _namespace(kind: Kind, manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict), "an object has metadata"
    return str(metadata["namespace"]) if kind.is_namespaced else ""
