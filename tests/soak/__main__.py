"""`make soak`: a cluster of real processes under load and faults, for a bounded time, checked from outside.

    python -m tests.soak [--seed N] [--seconds N] [--store sqlite|etcd|both]

Output: a progress line every ten seconds, a summary for each store; exit code 1 with the seed and the first violation.

 1. The time is shared by the stores. On each of them, the first part (`FAULTS_SHARE`) has all faults. In the rest no
    process ends: after a warm-up its memory and file descriptors are compared with those at the end.
 2. The seed decides what clients do and which faults come. When they meet is up to the machine, so a run with the same
    seed is similar, not equal.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy, system_entropy
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from tests.soak.faults import Faults
from tests.soak.history import Sample, check_level
from tests.soak.load import WRITERS, Clients
from tests.soak.servers import DISK_MIB, ControlPlane, Disk
from tests.store.etcd.builders import PROGRAM

SECONDS = 600
FAULTS_SHARE = 0.6
WARM_UP_SHARE = 0.1
PROGRESS_S = 10.0
VERIFY_EACH_S = 5.0
SAMPLES = 4
VIOLATIONS_SHOWN = 20
LOGS = Path("build/soak")


class Soak:
    """One run on one store."""

    def __init__(self, clients: Clients, disk: Disk, seconds: float) -> None:
        self._clients = clients
        self._clock = clients.clock
        self._faults = Faults(clients, disk, clients.entropy.fork("faults"))
        self._began_s = self._clock.now_s()
        self._seconds = seconds

    async def run(self) -> None:
        clients = self._clients
        async with clients.connected():
            async with clients.fault("first start"):
                pass  # not ready before there are nodes
            await clients.create_workloads()
            async with TaskGroup("soak") as group:
                for number in range(WRITERS):
                    group.start(clients.write(number), name=f"writer-{number}")
                group.start(clients.use_pods(), name="pods")
                group.start(clients.attack(), name="hostile clients")
                group.start(clients.probe(), name="probe")
                group.start(clients.measure_lateness(), name="lateness")
                group.start_background(clients.watch_pods(), name="watch")
                group.start_background(self._verify(), name="verify")
                group.start_background(self._report(), name="report")
                try:
                    await self._play()
                finally:
                    clients.is_over = True
            await clients.verify()
            await clients.check_scheduling()

    async def _play(self) -> None:
        faults_until_s = self._began_s + self._seconds * FAULTS_SHARE
        await self._faults.run(faults_until_s, may_end_processes=True)
        level_from_s = self._clock.now_s() + self._seconds * WARM_UP_SHARE
        await self._faults.run(level_from_s, may_end_processes=False)
        await self._clients.send_all_hostile()  # each kind has had its largest effect on memory by then
        before = await self._samples()
        await self._faults.run(self._began_s + self._seconds, may_end_processes=False)
        after = await self._samples()
        for name, sample in after.items():
            if name in before and before[name].pid == sample.pid:
                check_level(name, before[name], sample, self._clients.violations)
                self._clients.counts["processes compared"] += 1

    async def _samples(self) -> Mapping[str, Sample]:
        """The smallest sizes of the processes within a moment in which no large request is handled."""
        plane, smallest = self._clients.plane, dict[str, Sample]()
        self._clients.are_hostile_clients_paused = True
        for _ in range(SAMPLES):
            await self._clock.wait(1.0)
            for program in (plane.server, *plane.schedulers):
                if program.is_alive:
                    sample, known = program.sample(), smallest.get(program.name)
                    if known is None or known.pid != sample.pid or sample.resident_bytes < known.resident_bytes:
                        smallest[program.name] = sample
        self._clients.are_hostile_clients_paused = False
        return smallest

    async def _verify(self) -> None:
        while True:
            await self._clock.wait(VERIFY_EACH_S)
            if not self._clients.faults_active:
                await self._clients.verify()
            if not self._clients.plane.server.is_alive and not self._clients.faults_active:
                self._clients.violations.add("the server keeps running", self._clients.plane.server.log_tail())

    async def _report(self) -> None:
        while True:
            await self._clock.wait(PROGRESS_S)
            clients = self._clients
            faults = sum(count for name, count in clients.counts.items() if name in self._fault_names())
            print(
                f"soak: {clients.plane.store} {self._clock.now_s() - self._began_s:4.0f} s: "
                f"{clients.writes.acknowledged} writes, {clients.writes.lost} lost answers, {clients.pods.bindings} "
                f"bindings, {faults} faults, {len(clients.violations)} violations",
                flush=True,
            )

    def _fault_names(self) -> set[str]:
        return {fault.name for fault in self._faults.table()}


def soak(store: str, seed: int, seconds: float) -> Clients:
    """Run on one store."""
    with (
        tempfile.TemporaryDirectory(prefix="soak-") as folder,
        Disk(Path(folder), DISK_MIB) as disk,
        ControlPlane(store, Path(folder), disk) as plane,
    ):
        if not disk.can_be_filled:
            print("soak: no full disks: this user may not mount a tmpfs. Try: unshare -Urm make soak", flush=True)

        clients = Clients(plane, Entropy(seed, store))
        try:
            run_real(Soak(clients, disk, seconds).run())
        finally:
            print(summary(clients), flush=True)  # also of a run that was interrupted
            plane.keep_logs(LOGS)
        return clients


def summary(clients: Clients) -> str:
    samples = [
        f"{program.name} was started {program.starts} times" for program in clients.plane.programs if program.starts > 1
    ]
    writes = clients.writes
    return "\n".join(
        [
            f"soak: {clients.plane.store}: {len(clients.violations)} violations",
            f"    {writes.acknowledged} writes acknowledged, {writes.lost} answers lost, {writes.rejected} rejected; "
            f"{clients.pods.bindings} bindings; worst /readyz {clients.ready_s_worst:.2f} s",
            "    " + ", ".join(f"{name}: {count}" for name, count in sorted(clients.counts.items())),
            f"    answers: {dict(sorted(clients.codes.items()))}",
            f"    {'; '.join(samples) or 'no process was started again'}",
            *(f"    {violation}" for violation in clients.violations[:VIOLATIONS_SHOWN]),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--store", choices=("sqlite", "etcd", "both"), default="both")
    given = parser.parse_args()
    seed = system_entropy().seed % (1 << 31) if given.seed is None else given.seed
    stores = ("sqlite", "etcd") if given.store == "both" else (given.store,)
    if "etcd" in stores and PROGRAM is None:
        print("soak: there is no etcd here, so only SQLite is tested (tools/ensure_etcd.sh installs etcd)")
        stores = ("sqlite",)
        if given.store == "etcd":
            return 1
    clock = SystemClock()
    began_s = clock.now_s()
    print(f"soak: seed {seed}, {given.seconds:g} s on {' and '.join(stores)}", flush=True)
    first = ""
    for store in stores:
        clients = soak(store, seed, given.seconds / len(stores))
        first = first or (f"{store}: {clients.violations[0]}" if clients.violations else "")
    took = f"{clock.now_s() - began_s:.0f} s"
    if first:
        print(f"soak: seed {seed}, {took}: FAILED, first violation on {first}\nsoak: logs are in {LOGS}")
        return 1
    print(f"soak: seed {seed}, {took}: no violation")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("soak: interrupted; all processes have ended")
