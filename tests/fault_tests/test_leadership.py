"""Two schedulers, one lease, and stalls that outlast it: the old leader never binds a pod.

Inputs: a seed, which decides when a scheduler stalls, for how long, and how long its requests wait. Output: the
violations of two rules:

1. When a binding is carried out, the Lease names the scheduler that sent it.
2. No node is overcommitted, and no pod moves (`InvariantChecker`).

A scheduler that stalls sends nothing; requests that wait meanwhile leave it when the stall is over, as those of a
process after SIGCONT or of a machine that was suspended. A scheduler that loses its lease ends and starts again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from mooring.api.kinds import LEASE, NODE, POD
from mooring.client.election import ElectionSettings, LeaderElector, LeadershipLostError, record_in
from mooring.client.errors import NotLeadingError
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.scheduler import Scheduler
from tests.api_servers import WITHOUT_CONTROLLERS
from tests.builders import node, pod
from tests.client.faulty import Answer, FaultyClient, Request
from tests.fault_tests.checker import CheckedStore, InvariantChecker
from tests.fault_tests.control_plane import CONFIGURATION
from tests.fault_tests.faults import WRITES
from tests.fault_tests.run import open_clients, without_logs
from tests.scheduler.world import plain

SEEDS = 15
DURATION_S = 90.0
NODES, CPU_OF_NODE = 4, 4
PODS_EACH = 3
REQUEST_WAITS_S_MAX = 4.0
"""How long a request waits for the rate limit and for a connection."""
STALL_S_MAX = 40.0


class StallingClock(VirtualClock):
    """Time as one scheduler sees it: it goes on during a stall, and no wait ends before the stall does."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self.going = asyncio.Event()
        self.going.set()

    def now_s(self) -> float:
        return self._clock.now_s()

    def wall_s(self) -> float:
        return self._clock.wall_s()

    async def wait(self, delay_s: float) -> None:
        await self._clock.wait(delay_s)
        await self.going.wait()


@dataclass
class StallingClient(FaultyClient):
    """The client of one scheduler: a request waits, then `may_write` decides whether a write is sent."""

    entropy: Entropy = field(kw_only=True)
    may_write: Callable[[], bool] = field(kw_only=True)
    on_bind: Callable[[], Awaitable[None]] = field(kw_only=True)
    waits_s_max: float = field(kw_only=True)
    dropped: int = 0

    async def _answer(self, request: Request, carry_out: Callable[[], Awaitable[Answer]]) -> Answer:
        await self.clock.wait(self.entropy.uniform(0.0, self.waits_s_max) if request.verb in WRITES else 0.0)
        if request.verb in WRITES and not self.may_write():
            self.dropped += 1
            raise NotLeadingError("this process does not lead any more: nothing was sent")
        if request.verb == "bind":
            await self.on_bind()
        return await carry_out()


@dataclass
class SeedResult:
    """What happened in one seed."""

    violations: list[str] = field(default_factory=list)
    terms: int = 0
    dropped: int = 0
    bound: int = 0


def run_seed(seed: int, *, is_checked: bool = True) -> SeedResult:
    clock, outcome = VirtualClock(), SeedResult()
    with without_logs():
        run(_play(outcome, clock, Entropy(seed, "leadership"), is_checked), clock)
    return outcome


async def _play(outcome: SeedResult, clock: VirtualClock, entropy: Entropy, is_checked: bool) -> None:
    checker = InvariantChecker(lambda owner: 0)
    store = CheckedStore(checker)
    async with open_clients(store, clock, entropy, WITHOUT_CONTROLLERS) as client_for, TaskGroup("leadership") as group:
        user = client_for("user")
        for number in range(NODES):
            await user.create(NODE, "", plain(node(f"n{number}", cpu=str(CPU_OF_NODE), others={"pods": "110"})))

        async def run_process(name: str, chance: Entropy, stalling: StallingClock) -> None:
            for lifetime in range(1_000):
                await _run_lifetime(
                    outcome, stalling, user, chance.fork(f"life {lifetime}"), f"{name}-{lifetime}", is_checked
                )

        clocks = {name: StallingClock(clock) for name in ("a", "b")}
        for name, stalling in clocks.items():
            group.start_background(run_process(name, entropy.fork(name), stalling), name=name)
        chance, number = entropy.fork("storm"), 0
        while clock.now_s() < DURATION_S:
            for _ in range(PODS_EACH):
                await user.create(POD, "default", plain(pod(f"p{number}", cpu="1")))
                number += 1
            await clock.wait(chance.uniform(0.0, 6.0))
            going = clocks[chance.choose(sorted(clocks))].going
            going.clear()
            asyncio.get_running_loop().call_later(chance.uniform(0.0, STALL_S_MAX), going.set)
            if chance.uniform() < 0.3:
                finished = [key for key, seen in checker.pods.items() if seen.spec.node_name]
                for key in finished[: NODES * CPU_OF_NODE // 2]:
                    await user.delete(POD, "default", key.rpartition("/")[2])
    outcome.violations += checker.violations


async def _run_lifetime(
    outcome: SeedResult,
    clock: StallingClock,
    api: Client,
    entropy: Entropy,
    identity: str,
    is_checked: bool,
) -> None:
    """One process: stands by, leads, loses its lease and ends."""

    async def check_bind() -> None:
        holder = record_in(await api.get(LEASE, "kube-system", "scheduler")).holder
        outcome.bound += 1
        if holder != identity:
            outcome.violations.append(f"{clock.now_s():.1f} s: {identity} binds, and {holder} holds the lease")

    def client(stream: str, waits_s_max: float, may_write: Callable[[], bool]) -> StallingClient:
        return StallingClient(
            api,
            clock,
            lambda request: None,
            entropy=entropy.fork(stream),
            waits_s_max=waits_s_max,
            may_write=may_write,
            on_bind=check_bind,
        )

    settings = ElectionSettings("kube-system", "scheduler", identity)
    electing = client("election", 0.1, lambda: True)
    elector = LeaderElector(electing, settings, clock=clock, entropy=entropy.fork("elector"))
    working = client("client", REQUEST_WAITS_S_MAX, lambda: elector.is_leading or not is_checked)

    async def lead() -> None:
        outcome.terms += 1
        await Scheduler(working, CONFIGURATION, clock=clock, entropy=entropy.fork("scheduler")).run()

    try:
        await elector.run(lead)
    except LeadershipLostError:
        outcome.dropped += working.dropped


def test_the_old_leader_binds_nothing() -> None:
    results = [run_seed(seed) for seed in range(SEEDS)]
    violations = [f"seed {seed}: {violation}" for seed, result in enumerate(results) for violation in result.violations]
    assert violations == []
    assert sum(result.dropped for result in results) > SEEDS, "requests outlasted the lease"
    assert min(result.bound for result in results) > 0
    assert sum(result.terms for result in results) > 2 * SEEDS, "the lease changed hands"


def test_without_the_check_before_sending_it_does() -> None:
    violations = [violation for seed in range(SEEDS) for violation in run_seed(seed, is_checked=False).violations]
    assert any("holds the lease" in violation for violation in violations)
