"""One seed, one history: a whole cluster with faults, then without faults until all workloads are complete.

    run_seed(7) -> Outcome(seed=7, hash="…", broken=[], …)

Input: a seed. Output: an `Outcome`: broken invariants, and the hash of everything that was written.

 1. Only the seed decides: two runs of one seed write the same bytes in the same order.
 2. Every request goes through the API server.
 3. Each seed has Deployments, and three of four have one other kind (`wishes`).
 4. Invariants are checked at every revision (`witness`), completeness when the faults are over.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar
from unittest.mock import patch

from mooring.api.kinds import NAMESPACE, PRIORITY_CLASS, kind_named
from mooring.apiserver.assembly import Settings, open_api_server
from mooring.apiserver.bootstrap import bootstrap
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.registry.object_storage import ObjectStorage
from mooring.apiserver.storage.stored_form import decoded
from mooring.apiserver.worker import WorkerThread
from mooring.controllers.served_kinds import ServedKinds
from mooring.kit.clock import Clock, VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.kubelets import Kubelets
from mooring.kubelet.settings import KubeletSettings, NodeCapacity
from mooring.kubelet.simulated.stage_file import load_stage_sets
from mooring.scheduler.catalogue import default_registry
from mooring.scheduler.config.profiles import expand_profiles
from mooring.scheduler.engine import Engine
from mooring.scheduler.scheduler import Scheduler
from mooring.serving.users import User as Identity
from mooring.store.interface import Record
from mooring.store.memory import MemoryStore
from tests.api_servers import TOKEN_KEY
from tests.fault_tests.faults import Weather
from tests.fault_tests.plane import COMPONENTS, CONFIGURATION, ClientFor, Plane, fate_by_chance
from tests.fault_tests.user import User
from tests.fault_tests.wishes import CASTS, Cast
from tests.fault_tests.witness import Witness, WitnessedStore

Result = TypeVar("Result")

SETTINGS = Settings(TOKEN_KEY, disabled_admission_plugins=frozenset(("ServiceAccount",)))
"""No controller makes service accounts."""
STORM_S = 12.0
STEP_S_MAX = 1.6
CONVERGED_S_MAX = 300.0
LOOK_S = 1.0
STAYS_S = 8.0
"""What has converged must stay so, when the last requests of the storm have come in."""
CPU_OF_NODE = 2
"""Whole cores, for pods that ask for one. And a half, for those of DaemonSets."""

_STAGES = cache(load_stage_sets)
_REGISTRY = default_registry()
_PLANS = expand_profiles(CONFIGURATION, _REGISTRY.implements)


@dataclass
class Outcome:
    """What came of a seed."""

    seed: int
    hash: str = ""
    broken: list[str] = field(default_factory=list)
    converged_s: float = 0.0
    """How long it took, after the storm."""
    deaths: int = 0
    faults: int = 0
    revisions: int = 0
    wishes: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not self.broken

    def __str__(self) -> str:
        head = (
            f"seed {self.seed}: {self.revisions} revisions, {self.faults} faults, {self.deaths} deaths, "
            f"converged after {self.converged_s:.0f} s, history {self.hash}"
        )
        if self.is_good:
            return head
        return "\n".join(
            [head, *(f"  {each}" for each in self.broken), f"replay: python -m tests.fault_tests {self.seed}"]
        )


def run_seed(seed: int) -> Outcome:
    """Play a seed to its end."""
    clock, cast = VirtualClock(), cast_of(seed)
    return play(_play(seed, cast, clock), cast, clock)


def play(story: Coroutine[Any, Any, Result], cast: Cast, clock: VirtualClock) -> Result:
    furniture()
    with _shared(cast), _quiet():
        return run(story, clock)


def cast_of(seed: int) -> Cast:
    """Each in turn."""
    return CASTS[seed % len(CASTS)]


def run_seeds(seeds: Iterable[int]) -> Iterator[Outcome]:
    """One after the other."""
    with collecting_between():
        for seed in seeds:
            yield run_seed(seed)
            gc.collect()


@contextmanager
def collecting_between() -> Iterator[None]:
    """A cluster is full of cycles: whoever plays looks for them when it is over.

    Walking the whole process for them at all times costs a third of the time.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


async def _play(seed: int, cast: Cast, clock: VirtualClock) -> Outcome:
    entropy = Entropy(seed, "simulation")
    chance = entropy.fork("shape")
    nodes = 3 + chance.integer_below(3)
    planes: list[Plane] = []
    witness = Witness(lambda owner: planes[0].lost_pod_answers(owner))
    store = WitnessedStore(witness)
    weather = Weather(likelihood=chance.uniform(0.0, 0.15))
    async with open_clients(store, clock, entropy) as client_for, TaskGroup("fault test") as group:
        kubelets = kubelets_of(nodes)
        fate = fate_by_chance(lifetime_requests_max=60 + chance.integer_below(300))
        plane = Plane(client_for, clock, entropy.fork("plane"), weather, kubelets, cast.controllers, fate)
        planes.append(plane)
        client = client_for("user")
        user = User(client, entropy.fork("user"), witness, cast, nodes, nodes * CPU_OF_NODE - 2)
        plane.start(group)
        await _storm(plane, user, entropy.fork("storm"))
        outcome = Outcome(seed)
        outcome.converged_s = await converge(plane, user)
        outcome.broken = [*witness.broken, *user.unfinished()]
        outcome.hash = witness.history_hash()
        outcome.deaths = plane.deaths
        outcome.faults = sum(weather.faults_met.values())
        outcome.revisions = await store.revision()
        outcome.wishes = user.done
        return outcome


def kubelets_of(nodes: int) -> KubeletSettings:
    return KubeletSettings(
        count=nodes,
        shape=NodeCapacity(cpu=f"{CPU_OF_NODE}500m"),
        lease_s=16,
        pod_writes_in_flight_max=4,
        node_writes_in_flight_max=2,
    )


@asynccontextmanager
async def open_clients(
    store: WitnessedStore, clock: VirtualClock, entropy: Entropy, settings: Settings = SETTINGS
) -> AsyncIterator[ClientFor]:
    """A client of the same API server for each component."""
    async with open_api_server(store, clock, entropy.fork("apiserver"), settings) as api_server:
        yield lambda name: LoopbackClient(api_server, Identity(f"system:{name}"), name)


async def _storm(plane: Plane, user: User, chance: Entropy) -> None:
    """Wishes, deaths and silence, one after the other, in bad weather."""
    nodes = [f"node-{number}" for number in range(plane.kubelet_settings.count)]
    while plane.clock.now_s() < STORM_S:
        match chance.integer_below(10):
            case 0:
                plane.kill(chance.choose(COMPONENTS))
            case 1:
                plane.silence(chance.choose(nodes))
            case 2:
                plane.resume(chance.choose(nodes))
            case _:
                await user.act()
        await plane.clock.wait(chance.uniform(0.0, STEP_S_MAX))
    plane.weather.is_calm = True
    for node in nodes:
        plane.resume(node)
    await user.resume_all()


async def converge(plane: Plane, user: User) -> float:
    began_s = plane.clock.now_s()
    while plane.clock.now_s() - began_s < CONVERGED_S_MAX:
        await plane.clock.wait(LOOK_S)
        if not user.unfinished():
            break
    converged_s = plane.clock.now_s() - began_s
    await plane.clock.wait(STAYS_S)
    return converged_s


@contextmanager
def _shared(cast: Cast) -> Iterator[None]:
    """What is the same in every life of every seed is made once; and what is for a process, not for a thousand, is not.

    The scheduler would tell the garbage collector to forget what is there. The garbage collector of the cluster would
    watch sixty kinds of which a fault test has none.
    """
    with ExitStack() as patches:
        patches.enter_context(patch(f"{Scheduler.__module__}.settle_memory", lambda: None))
        patches.enter_context(patch(f"{Engine.__module__}.default_registry", lambda: _REGISTRY))
        patches.enter_context(patch(f"{Engine.__module__}.expand_profiles", lambda *_: dict(_PLANS)))
        patches.enter_context(patch(f"{open_api_server.__module__}.bootstrap", furnish))
        patches.enter_context(patch(f"{Kubelets.__module__}.load_stage_sets", _STAGES))
        patches.enter_context(patch(f"{ServedKinds.__module__}.all_kinds", lambda: iter(cast.watched_kinds())))
        yield


@cache
def furniture() -> Sequence[Record]:
    """What every cluster has from its beginning, made once; but for the roles, because no request is authorized."""

    async def make() -> Sequence[Record]:
        store = MemoryStore()
        await bootstrap(ObjectStorage(store, WorkerThread()), VirtualClock(), Entropy(0, "furniture"))
        return [
            record for kind in (NAMESPACE, PRIORITY_CLASS) for record in (await store.list(kind.key_prefix)).records
        ]

    return run(make())


async def furnish(object_storage: ObjectStorage, clock: Clock, entropy: Entropy) -> None:
    """In the place of `bootstrap`."""
    for record in furniture():
        document = decoded(record.value)
        await object_storage.create(kind_named(str(document["apiVersion"]), str(document["kind"])), document)


@contextmanager
def _quiet() -> Iterator[None]:
    """Components complain of every fault, which is the point; a thousand seeds would complain for a long time."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
