"""One seed, one history: a whole cluster with faults, then without faults until all workloads are complete.

    run_seed(7) -> Outcome(seed=7, hash="…", violations=[], …)

Input: a seed. Output: an `Outcome`: violations, and the hash of everything that was written.

 1. Only the seed decides: two runs of one seed write the same bytes in the same order.
 2. Every request goes through the API server.
 3. Each seed has Deployments, and three of four have one other kind (`workloads`).
 4. Invariants are checked at every revision (`checker`), completeness when the faults are over.
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
from mooring.serving.users import User as Identity
from mooring.store.interface import Record
from mooring.store.memory import MemoryStore
from tests.api_servers import TOKEN_KEY
from tests.fault_tests.checker import CheckedStore, InvariantChecker
from tests.fault_tests.control_plane import COMPONENTS, CONFIGURATION, ClientFor, ControlPlane, random_crash_plan
from tests.fault_tests.faults import FaultInjection
from tests.fault_tests.user import User
from tests.fault_tests.workloads import SEED_KINDS, SeedKinds

Result = TypeVar("Result")

SETTINGS = Settings(TOKEN_KEY, disabled_admission_plugins=frozenset(("ServiceAccount",)))
"""No controller makes service accounts."""
FAULTS_S = 12.0
STEP_S_MAX = 1.6
CONVERGED_S_MAX = 300.0
CHECK_S = 1.0
STABLE_S = 8.0
"""Converged workloads must stay so for this time: delayed requests may still arrive."""
CPU_OF_NODE = 2
"""Whole cores, for pods that ask for one. And a half, for those of DaemonSets."""

_STAGES = cache(load_stage_sets)
_REGISTRY = default_registry()
_PLANS = expand_profiles(CONFIGURATION, _REGISTRY.implements)


@dataclass
class Outcome:
    """The outcome of a seed."""

    seed: int
    hash: str = ""
    violations: list[str] = field(default_factory=list)
    converged_s: float = 0.0
    """The time from the end of the faults."""
    crashes: int = 0
    faults: int = 0
    revisions: int = 0
    actions: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        head = (
            f"seed {self.seed}: {self.revisions} revisions, {self.faults} faults, {self.crashes} crashes, "
            f"converged after {self.converged_s:.0f} s, history {self.hash}"
        )
        if self.is_good:
            return head
        return "\n".join(
            [
                head,
                *(f"  {violation}" for violation in self.violations),
                f"replay: python -m tests.fault_tests {self.seed}",
            ]
        )


def run_seed(seed: int) -> Outcome:
    """Run a seed to its end."""
    clock, seed_kinds = VirtualClock(), kinds_of_seed(seed)
    return play(_play(seed, seed_kinds, clock), seed_kinds, clock)


def play(story: Coroutine[Any, Any, Result], seed_kinds: SeedKinds, clock: VirtualClock) -> Result:
    initial_records()
    with _shared(seed_kinds), without_logs():
        return run(story, clock)


def kinds_of_seed(seed: int) -> SeedKinds:
    """The kinds of a seed, in turn."""
    return SEED_KINDS[seed % len(SEED_KINDS)]


def run_seeds(seeds: Iterable[int]) -> Iterator[Outcome]:
    """Run seeds one after the other."""
    with collect_between():
        for seed in seeds:
            yield run_seed(seed)
            gc.collect()


@contextmanager
def collect_between() -> Iterator[None]:
    """Disable the garbage collector during the block; the caller collects between clusters, which are full of cycles.

    Otherwise the collector takes a third of the time.
    """
    gc.collect()
    gc.freeze()  # for good: what other tests left is in no cycle of these clusters
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def _play(seed: int, seed_kinds: SeedKinds, clock: VirtualClock) -> Outcome:
    entropy = Entropy(seed, "simulation")
    chance = entropy.fork("shape")
    nodes = 3 + chance.integer_below(3)
    control_planes: list[ControlPlane] = []
    checker = InvariantChecker(lambda owner: control_planes[0].lost_pod_answers(owner))
    store = CheckedStore(checker)
    injection = FaultInjection(probability=chance.uniform(0.0, 0.15))
    async with open_clients(store, clock, entropy) as client_for, TaskGroup("fault test") as group:
        kubelets = kubelets_of(nodes)
        crash_plan = random_crash_plan(lifetime_requests_max=60 + chance.integer_below(300))
        control_plane = ControlPlane(
            client_for, clock, entropy.fork("plane"), injection, kubelets, seed_kinds.controllers, crash_plan
        )
        control_planes.append(control_plane)
        client = client_for("user")
        user = User(client, entropy.fork("user"), checker, seed_kinds, nodes, nodes * CPU_OF_NODE - 2)
        control_plane.start(group)
        await _inject_faults(control_plane, user, entropy.fork("storm"))
        outcome = Outcome(seed)
        outcome.converged_s = await converge(control_plane, user)
        outcome.violations = [*checker.violations, *user.unfinished()]
        outcome.hash = checker.history_hash()
        outcome.crashes = control_plane.crashes
        outcome.faults = sum(injection.counts.values())
        outcome.revisions = await store.revision()
        outcome.actions = user.actions
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
    store: CheckedStore, clock: VirtualClock, entropy: Entropy, settings: Settings = SETTINGS
) -> AsyncIterator[ClientFor]:
    """A client of the same API server for each component."""
    async with open_api_server(store, clock, entropy.fork("apiserver"), settings) as api_server:
        yield lambda name: LoopbackClient(api_server, Identity(f"system:{name}"), name)


async def _inject_faults(control_plane: ControlPlane, user: User, chance: Entropy) -> None:
    """Change workloads, crash components and silence nodes, one after the other, while requests fail."""
    nodes = [f"node-{number}" for number in range(control_plane.kubelet_settings.count)]
    while control_plane.clock.now_s() < FAULTS_S:
        match chance.integer_below(10):
            case 0:
                control_plane.crash(chance.choose(COMPONENTS))
            case 1:
                control_plane.silence(chance.choose(nodes))
            case 2:
                control_plane.resume(chance.choose(nodes))
            case _:
                await user.act()
        await control_plane.clock.wait(chance.uniform(0.0, STEP_S_MAX))
    control_plane.injection.is_off = True
    for node in nodes:
        control_plane.resume(node)
    await user.resume_all()


async def converge(control_plane: ControlPlane, user: User) -> float:
    began_s = control_plane.clock.now_s()
    while control_plane.clock.now_s() - began_s < CONVERGED_S_MAX:
        await control_plane.clock.wait(CHECK_S)
        if not user.unfinished():
            break
    converged_s = control_plane.clock.now_s() - began_s
    await control_plane.clock.wait(STABLE_S)
    return converged_s


@contextmanager
def _shared(seed_kinds: SeedKinds) -> Iterator[None]:
    """Share what is equal in all lifetimes of all seeds, and leave out what is meant for a single process.

    The garbage collector of the cluster would watch sixty kinds of which a fault test has none.
    """
    with ExitStack() as patches:
        patches.enter_context(patch(f"{Engine.__module__}.default_registry", lambda: _REGISTRY))
        patches.enter_context(patch(f"{Engine.__module__}.expand_profiles", lambda *_: dict(_PLANS)))
        patches.enter_context(patch(f"{open_api_server.__module__}.bootstrap", create_initial_records))
        patches.enter_context(patch(f"{Kubelets.__module__}.load_stage_sets", _STAGES))
        patches.enter_context(patch(f"{ServedKinds.__module__}.all_kinds", lambda: iter(seed_kinds.watched_kinds())))
        yield


@cache
def initial_records() -> Sequence[Record]:
    """The first objects of every cluster, made once; without roles, because no request is authorized."""

    async def make() -> Sequence[Record]:
        store = MemoryStore()
        await bootstrap(ObjectStorage(store, WorkerThread()), VirtualClock(), Entropy(0, "furniture"))
        return [
            record for kind in (NAMESPACE, PRIORITY_CLASS) for record in (await store.list(kind.key_prefix)).records
        ]

    return run(make())


async def create_initial_records(object_storage: ObjectStorage, clock: Clock, entropy: Entropy) -> None:
    """Replaces `bootstrap`."""
    for record in initial_records():
        document = decoded(record.value)
        await object_storage.create(kind_named(str(document["apiVersion"]), str(document["kind"])), document)


@contextmanager
def without_logs() -> Iterator[None]:
    """Components log every fault: a thousand seeds would log too much."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
