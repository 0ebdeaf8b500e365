"""The faults of the soak test: each begins, lasts for a while, and is healed.

All choices come from the seed. A fault ends when the server is ready again; then nothing happens for a while, so that
the checks have a time without faults.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from mooring.kit.entropy import Entropy
from tests.soak.load import Clients
from tests.soak.servers import LEASE_S, RENEW_S, Disk, Program

QUIET_S_MIN, QUIET_S_MAX = 3.0, 6.0
"""Between two faults."""
VIOLATIONS_MAX = 200
"""Beyond it the run ends early: what is broken stays broken."""


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    run: Callable[[], Awaitable[None]]
    ends_processes: bool = True
    """Whether a process may end by it. In the last part of a run none ends, so that their sizes can be compared."""


class Faults:
    """The faults of one control plane."""

    def __init__(self, clients: Clients, disk: Disk, entropy: Entropy) -> None:
        self._clients = clients
        self._plane = clients.plane
        self._clock = clients.clock
        self._disk = disk
        self._entropy = entropy

    async def run(self, until_s: float, *, may_end_processes: bool) -> None:
        """One fault after the other, until the time is over: each once, in an order of the seed, and again."""
        left: list[Fault] = []
        while True:
            await self._clock.wait(self._entropy.uniform(QUIET_S_MIN, QUIET_S_MAX))
            if self._clock.now_s() >= until_s or len(self._clients.violations) >= VIOLATIONS_MAX:
                return
            left = left or [each for each in self.table() if may_end_processes or not each.ends_processes]
            fault = left.pop(self._entropy.integer_below(len(left)))
            async with self._clients.fault(fault.name):
                await fault.run()
                self._restart_ended()

    def table(self) -> Sequence[Fault]:
        server, etcd = self._plane.server, self._plane.etcd
        faults = [
            Fault("server killed", lambda: self._killed(server)),
            Fault("server stopped", lambda: self._stopped(server, 1.0, 7.0)),
            Fault("server stopped briefly", lambda: self._stopped(server, 0.2, 1.5), ends_processes=False),
            Fault("scheduler killed", lambda: self._killed(self._some_scheduler())),
            Fault(
                "scheduler stopped past its lease", lambda: self._stopped(self._some_scheduler(), LEASE_S, 2 * LEASE_S)
            ),
            Fault("scheduler stopped briefly", lambda: self._stopped(self._some_scheduler(), 0.2, RENEW_S / 2), False),
            Fault("connections cut", self._cut, ends_processes=False),
        ]
        if self._disk.can_be_filled:
            faults.append(Fault("disk full", self._disk_full))
        if etcd is not None:
            faults.append(Fault("etcd killed", lambda: self._killed(etcd)))
            faults.append(Fault("etcd stopped", lambda: self._stopped(etcd, 0.5, 5.0)))
        return faults

    def _some_scheduler(self) -> Program:
        return self._entropy.choose(self._plane.schedulers)

    async def _killed(self, program: Program) -> None:
        program.kill()
        await self._clock.wait(self._entropy.uniform(0.0, 1.5))
        program.start()

    async def _stopped(self, program: Program, s_min: float, s_max: float) -> None:
        program.pause()
        await self._clock.wait(self._entropy.uniform(s_min, s_max))
        program.resume()

    async def _cut(self) -> None:
        for _ in range(3):
            self._plane.relay.cut()
            await self._clock.wait(self._entropy.uniform(0.0, 0.5))

    async def _disk_full(self) -> None:
        self._disk.fill()
        try:
            await self._clock.wait(self._entropy.uniform(1.0, 5.0))
        finally:
            self._disk.free()

    def _restart_ended(self) -> None:
        """A scheduler that lost its lease ends; so does an etcd that cannot write. They are started again."""
        for program in (*self._plane.schedulers, *([self._plane.etcd] if self._plane.etcd is not None else [])):
            if not program.is_alive:
                program.start()
                self._clients.counts[f"{program.name} started again"] += 1
