"""One seed, one history: a whole cluster in bad weather, then in calm weather until everything is as it was wished.

    simulate(7) -> Outcome(seed=7, hash="…", broken=[], …)

Comes in   a seed
Goes out   `Outcome`: whether anything was broken, and the hash of everything that was ever written

 1. Nothing but the seed decides: two runs of one seed write the same bytes in the same order.
 2. A tenth of the seeds goes through the whole API server; the others through the client on the store, which is cheaper
    and so leaves time for more of them.
 3. Deployments play in each seed, and one other kind in three of four (`wishes`).
 4. What must never be is looked at with every revision (`witness`); what must come about, when the storm is over.
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

from mooring.api.kinds import kind_named
from mooring.apiserver.access.users import User as Identity
from mooring.apiserver.assembly import open_api_server
from mooring.apiserver.bootstrap import bootstrap
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.registry.object_storage import ObjectStorage
from mooring.apiserver.storage.stored_form import decoded
from mooring.apiserver.worker import Worker
from mooring.client.interface import Client
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
from mooring.store.interface import Record
from mooring.store.memory import MemoryStore
from tests.apiserver.servers import WITHOUT_CONTROLLERS
from tests.fakes.raw_client import RawClient
from tests.simulation.faults import Weather
from tests.simulation.plane import COMPONENTS, CONFIGURATION, ClientFor, Plane, fate_by_chance
from tests.simulation.user import User
from tests.simulation.wishes import CASTS, Cast
from tests.simulation.witness import Witness, WitnessedStore

Result = TypeVar("Result")

API_SERVER_EVERY = 10
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
            [head, *(f"  {each}" for each in self.broken), f"replay: python -m tests.simulation {self.seed}"]
        )


def simulate(seed: int) -> Outcome:
    """Play a seed to its end."""
    clock, cast = VirtualClock(), cast_of(seed)
    return play(_play(seed, cast, clock), cast, clock)


def play(story: Coroutine[Any, Any, Result], cast: Cast, clock: VirtualClock) -> Result:
    furniture()
    with _shared(cast), _quiet():
        return run(story, clock)


def cast_of(seed: int) -> Cast:
    """Each in turn, also of those seeds that go through the API server."""
    return CASTS[(seed + seed // API_SERVER_EVERY) % len(CASTS)]


def simulate_all(seeds: Iterable[int]) -> Iterator[Outcome]:
    """One after the other."""
    with collecting_between():
        for seed in seeds:
            yield simulate(seed)
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
    async with _ways_in(seed, store, clock, entropy) as client_for, TaskGroup("simulation") as group:
        fleet = fleet_of(nodes)
        fate = fate_by_chance(life_requests_max=60 + chance.integer_below(300))
        plane = Plane(client_for, clock, entropy.fork("plane"), weather, fleet, cast.controllers, fate)
        planes.append(plane)
        client = client_for("user", entropy.fork("user client"))
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


def fleet_of(nodes: int) -> KubeletSettings:
    return KubeletSettings(
        count=nodes,
        shape=NodeCapacity(cpu=f"{CPU_OF_NODE}500m"),
        lease_s=16,
        pod_writes_in_flight_max=4,
        node_writes_in_flight_max=2,
    )


@asynccontextmanager
async def _ways_in(seed: int, store: WitnessedStore, clock: VirtualClock, entropy: Entropy) -> AsyncIterator[ClientFor]:
    if seed % API_SERVER_EVERY:
        yield lambda name, chance: RawClient(store, clock, chance)
        return

    def inside(name: str, chance: Entropy) -> Client:
        return LoopbackClient(api_server, Identity(f"system:{name}"), name)

    async with open_api_server(store, clock, entropy.fork("desk"), WITHOUT_CONTROLLERS) as api_server:
        yield inside


async def _storm(plane: Plane, user: User, chance: Entropy) -> None:
    """Wishes, deaths and silence, one after the other, in bad weather."""
    nodes = [f"node-{number}" for number in range(plane.fleet_settings.count)]
    while plane.clock.now_s() < STORM_S:
        match chance.integer_below(10):
            case 0:
                plane.kill(chance.choose(COMPONENTS))
            case 1:
                plane.silence(chance.choose(nodes))
            case 2:
                plane.wake(chance.choose(nodes))
            case _:
                await user.act()
        await plane.clock.wait(chance.uniform(0.0, STEP_S_MAX))
    plane.weather.is_calm = True
    for node in nodes:
        plane.wake(node)
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
    watch sixty kinds of which a simulation has none.
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
    """What every cluster has from its beginning. Made once: it takes longer than a short seed."""

    async def make() -> Sequence[Record]:
        store = MemoryStore()
        await bootstrap(ObjectStorage(store, Worker()), VirtualClock(), Entropy(0, "furniture"))
        return (await store.list("/")).records

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
