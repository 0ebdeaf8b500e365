"""A live cluster: an API server and a running scheduler in one process, and pods that are created in it.

Input: the objects of a scenario. Output: a scheduler with all of its parts: queue, hints, conditions, events, metrics,
watches.

1. Objects and pods are written to the store directly, in stored form: what it costs an API server to create a pod is
   measured by `bench.apiserver`. Their creation yields after each `CREATES_IN_A_ROW` pods, because the store in memory
   never waits.
2. The scheduler's requests (bindings, conditions, events) go through the registry of the API server (`LoopbackClient`).
3. Time is real, and the event loop is asyncio's own.
4. A `StoreObserver` watches the store, and records when each pod is bound or rejected. The scheduler is not asked. It
   costs the measured process two searches in the bytes of each change, a hundredth of the cost of a pod. Times are
   those at which it runs: a few milliseconds late, never early.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from time import perf_counter_ns
from typing import NamedTuple

import msgspec

from bench.scenario import Item, PodItem
from bench.templates import Manifest
from bench.workload import Outcome
from mooring.api.kinds import NAMESPACE, POD, Kind, kind_of_view
from mooring.apiserver.access.certificates import new_key
from mooring.apiserver.assembly import Settings, open_api_server
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.apiserver.storage.stored_form import stored_form, stored_kind, to_stored
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.config import load_configuration
from mooring.scheduler.queue.queued_pod import QueueState
from mooring.scheduler.scheduler import Scheduler
from mooring.serving.users import MASTERS_GROUP, User
from mooring.store.interface import Store, StoreChange
from mooring.store.memory import MemoryStore

CREATES_IN_A_ROW = 50
POLL_S = 0.002
POD_NAMESPACE = "shop"
"""The namespace of the pods in `bench/workloads/templates`."""
CREATED = "2026-01-12T08:00:00Z"
SEED = 1

_decoder: msgspec.json.Decoder[Manifest] = msgspec.json.Decoder(dict[str, object])


class PodToCreate(NamedTuple):
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
        self.observer = StoreObserver(store)
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
        value = stored_form(stored_kind(kind), to_stored(kind, manifest), metadata)
        await self.store.put(kind.key(_namespace(kind, manifest), str(metadata["name"])), value)

    async def start(self, group: TaskGroup) -> None:
        """Start the scheduler and the observer. Returns when the scheduler's caches are filled."""
        group.start_background(self.scheduler.run(), name="scheduler")
        group.start_background(self.observer.run(), name="observer")
        await self.observer.watches.wait()
        while not self.scheduler.has_synced:
            await self.clock.wait(POLL_S)

    async def create(self, pods: Sequence[PodToCreate]) -> list[int]:
        """Create pods one after the other. Returns the time of each creation in nanoseconds."""
        created_ns: list[int] = []
        for number, pod in enumerate(pods, start=1):
            created_ns.append(perf_counter_ns())
            await self._store(POD, pod.manifest)
            if number % CREATES_IN_A_ROW == 0:
                await self.clock.wait(0)
        return created_ns

    async def decide(self, pods: Sequence[PodToCreate], seconds_max: float) -> int:
        """Create pods and wait until all are decided. Returns the number of undecided pods."""
        self.observer.expect(*expected(pods))
        await self.create(pods)
        return await self.observer.wait_until_decided(seconds_max)

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


def pods_to_create(items: Iterable[PodItem]) -> list[PodToCreate]:
    """Pods as dictionaries, so that the clock need not run over what their owners would do."""
    pods = []
    for item in items:
        manifest = creatable(item.raw)
        metadata = manifest["metadata"]
        assert isinstance(metadata, dict), "a pod has metadata"
        namespace = str(metadata["namespace"])
        pods.append(PodToCreate(POD.key(namespace, str(metadata["name"])), namespace, manifest, item.outcome))
    return pods


def expected(pods: Sequence[PodToCreate]) -> tuple[list[str], list[str]]:
    """The keys of those that will be placed, and of those that will be refused."""
    placed = [pod.key for pod in pods if pod.outcome == "placed"]
    return placed, [pod.key for pod in pods if pod.outcome == "refused"]


def creatable(raw: bytes) -> Manifest:
    """An object as a client creates it: without a resourceVersion."""
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


_HAS_NODE = b'"nodeName":"'
_IS_REFUSED = b'"reason":"Unschedulable"'


class StoreObserver:
    """Records when and how often each pod of a store is bound, and when all expected pods are decided."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unbound: set[str] = set()
        self._unrejected: set[str] = set()
        self._all_decided = asyncio.Event()
        self.watches = asyncio.Event()
        """Set when the watch has begun."""
        self.bindings: dict[str, int] = {}
        """How often each pod was bound, by key."""
        self.bound_ns: dict[str, int] = {}

    async def run(self) -> None:
        async with self._store.watch(POD.key_prefix, since=await self._store.revision()) as watch:
            self.watches.set()
            while True:
                changes = await watch.next_batch()
                now_ns = perf_counter_ns()
                for change in changes:
                    self._record(change, now_ns)
                self._set_if_all_decided()

    def expect(self, placed: Iterable[str], refused: Iterable[str]) -> None:
        """The keys of pods that will be created."""
        self._unbound.update(placed)
        self._unrejected.update(refused)
        self._all_decided.clear()
        self._set_if_all_decided()

    async def wait_until_decided(self, seconds_max: float) -> int:
        """Wait until all expected pods are decided, or for a time. Returns how many are undecided, and forgets them."""
        try:
            async with asyncio.timeout(seconds_max):
                await self._all_decided.wait()
        except TimeoutError:
            pass
        left = len(self._unbound) + len(self._unrejected)
        self._unbound.clear()
        self._unrejected.clear()
        return left

    def _record(self, change: StoreChange, now_ns: int) -> None:
        value, previous = change.value, change.previous
        if value is None or previous is None:
            return
        if _HAS_NODE in value:
            if change.key in self._unbound or _HAS_NODE not in previous.value:
                self.bindings[change.key] = self.bindings.get(change.key, 0) + 1
                self.bound_ns[change.key] = now_ns
                self._unbound.discard(change.key)
        elif _IS_REFUSED in value:
            self._unrejected.discard(change.key)

    def _set_if_all_decided(self) -> None:
        if not self._unbound and not self._unrejected:
            self._all_decided.set()
