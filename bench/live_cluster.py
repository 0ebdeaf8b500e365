"""The live cluster: a store, a client and a running scheduler in one process, and pods that come to it.

Comes in   the objects of a scenario
Goes out   a scheduler that has seen them, everything on: queue, hints, conditions, events, metrics, watches

 1. What was there before is in the store before the scheduler starts, and reaches it by its first lists.
 2. Whoever creates pods lets others have a turn after each `CREATES_IN_A_ROW`, as the API server does between two
    requests: the local client itself never waits.
 3. Time is real, the loop is asyncio's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter_ns
from typing import NamedTuple

import msgspec

from bench.live_witness import Witness
from bench.scenario import Item, PodItem
from bench.templates import Manifest
from bench.workload import Outcome
from mooring.api.kinds import POD, Kind, kind_of_view
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.config import load_configuration
from mooring.scheduler.queue.states import QueueState
from mooring.scheduler.scheduler import Scheduler
from mooring.store.memory import MemoryStore
from tests.fakes.raw_client import RawClient

CREATES_IN_A_ROW = 50
POLL_S = 0.002
SEED = 1

_decoder: msgspec.json.Decoder[Manifest] = msgspec.json.Decoder(dict[str, object])


class ComingPod(NamedTuple):
    """A pod that is ready to be created, and what must become of it."""

    key: str
    namespace: str
    manifest: Manifest
    outcome: Outcome


class LiveCluster:
    """One store, one scheduler."""

    def __init__(self) -> None:
        entropy = Entropy(SEED)
        self.clock = SystemClock()
        self.store = MemoryStore()
        self.client = RawClient(self.store, self.clock, entropy.fork("client"))
        self.witness = Witness(self.store)
        self.scheduler = Scheduler(
            self.client, load_configuration(None), clock=self.clock, entropy=entropy.fork("scheduler")
        )

    async def put(self, item: Item) -> None:
        """An object that is there before."""
        manifest = creatable(item.raw)
        await self.client.create(kind_of_view(item.kind), _namespace(kind_of_view(item.kind), manifest), manifest)

    async def place(self, pod: PodItem) -> None:
        """A pod that has its node already, or none yet."""
        manifest = creatable(pod.raw)
        await self.client.create(POD, _namespace(POD, manifest), manifest)

    async def start(self, group: TaskGroup) -> None:
        """Comes back when the scheduler has seen everything, and the witness watches."""
        group.start_background(self.scheduler.run(), name="scheduler")
        group.start_background(self.witness.run(), name="witness")
        await self.witness.watches.wait()
        while not self.scheduler.has_synced:
            await self.clock.wait(POLL_S)

    async def create(self, pods: Sequence[ComingPod]) -> list[int]:
        """Creates pods as fast as it can. Returns when each one was created, in nanoseconds."""
        created_ns: list[int] = []
        for number, pod in enumerate(pods, start=1):
            created_ns.append(perf_counter_ns())
            await self.client.create(POD, pod.namespace, pod.manifest)
            if number % CREATES_IN_A_ROW == 0:
                await self.clock.wait(0)
        return created_ns

    async def decide(self, pods: Sequence[ComingPod], seconds_max: float) -> int:
        """Creates pods and waits until all are decided. Returns how many were not in time."""
        self.witness.expect(*expected(pods))
        await self.create(pods)
        return await self.witness.wait_until_decided(seconds_max)

    async def wait_until_quiet(self, seconds_max: float) -> bool:
        """Until nothing is under way or unwritten any more. False if that does not happen in time."""
        end_s = self.clock.now_s() + seconds_max
        while not self._is_quiet():
            if self.clock.now_s() > end_s:
                return False
            await self.clock.wait(POLL_S)
        return True

    def _is_quiet(self) -> bool:
        scheduler = self.scheduler
        rooms = scheduler.queue.statistics()
        return not (
            rooms.active
            or rooms.backoff
            or rooms.in_flight
            or scheduler.bindings.running
            or len(scheduler.assumed_pods)
            or len(scheduler.status_writer)
            or scheduler.events.statistics()["pending"]
        )


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


ROOM_OF: dict[Outcome, QueueState | None] = {
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
