"""Our API server and our schedulers as processes of their own, over TLS, with an optional proxy that injects faults.

    async with api_server(folder) as server:
        proxy = await stack.enter_async_context(FaultProxy(server))
        scheduler = await start_scheduler(server, "a", through=proxy)
        scheduler.signal(signal.SIGSTOP)

Everything listens on loopback, on ports that the system chooses, and ends with the block.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bench.machine import free_port
from mooring.api.kinds import LEASE, NODE, POD
from mooring.client.election import ElectionRecord, record_in
from mooring.client.errors import ClientError
from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.interface import PatchForm
from mooring.client.kubeconfig.load import load_connection
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from tests.waiting import LIMIT_S

TOKEN = "of-a-test"
LOOK_EACH_S = 0.05
PATIENT_ELECTION = (
    "--leader-elect-lease-duration=60s",
    "--leader-elect-renew-deadline=20s",
    "--leader-elect-retry-period=500ms",
)
"""On a busy machine, too, a leader renews its lease in time. A test does not wait for a lease to expire: see
`expire_lease`."""


@dataclass
class ApiServer:
    """A running API server, and a client of its administrator."""

    url: str
    folder: Path
    client: HttpClient
    clock: SystemClock = field(default_factory=SystemClock)

    def kubeconfig(self, name: str, url: str, *, user: str = "") -> Path:
        """A kubeconfig for this server at another address, for a `user` if one is given."""
        file = self.folder / f"{name}.kubeconfig"
        credentials = {"token": TOKEN, **({"as": user} if user else {})}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "u", "user": credentials}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        file.write_bytes(msgspec.json.encode(document))
        return file

    async def add_node(self, name: str, cpu: str = "8") -> None:
        amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
        ready = [{"type": "Ready", "status": "True"}]
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": ready},
        }
        await self.client.create(NODE, "", node)
        # As a node's own controller would: admission marks every new node as not ready.
        await self.client.patch(NODE, "", name, {"spec": {"taints": None}}, form=PatchForm.MERGE)

    async def add_pod(
        self, name: str, scheduler: str, cpu: str = "10m", *, claims: Sequence[str] = (), node: str = ""
    ) -> None:
        """One that waits, or that is on a node already."""
        container = {"name": "main", "image": "pause:3.9", "resources": {"requests": {"cpu": cpu}}}
        volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
        spec = {"schedulerName": scheduler, "containers": [container], "volumes": volumes, "nodeName": node}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        await self.client.create(POD, "default", pod)

    async def nodes_of(self, prefix: str) -> dict[str, str]:
        """Where pods are: by name; empty for those that wait."""
        found = {}
        for raw in (await self.client.list(POD)).items:
            pod = msgspec.json.decode(raw)
            if pod["metadata"]["name"].startswith(prefix):
                found[pod["metadata"]["name"]] = pod["spec"].get("nodeName", "")
        return found

    async def wait_bound(self, prefix: str, count: int, s_max: float = LIMIT_S, *, at_least: bool = False) -> None:
        """All pods of that name; or at least so many of them."""

        async def are_bound() -> bool:
            nodes = (await self.nodes_of(prefix)).values()
            bound = sum(node != "" for node in nodes)
            return bound >= count if at_least else bound == count == len(nodes)

        await self.wait_until(are_bound, f"{count} pods {prefix}* are bound", s_max)

    async def wait_scheduling(self, scheduler: SchedulerProcess) -> None:
        async def schedules() -> bool:
            assert scheduler.process.returncode is None, scheduler.log
            return "scheduling on" in scheduler.log

        await self.wait_until(schedules, f"{scheduler.log_file.stem} schedules")

    async def lease(self, name: str) -> ElectionRecord:
        try:
            return record_in(await self.client.get(LEASE, "kube-system", name))
        except ClientError:
            return ElectionRecord()

    async def expire_lease(self, name: str) -> None:
        """Make a lease that is not renewed expire in a second."""
        short = {"spec": {"leaseDurationSeconds": 1}}
        await self.client.patch(LEASE, "kube-system", name, short, form=PatchForm.MERGE)

    async def wait_holder(self, lease: str, is_right: Callable[[str], bool], s_max: float = LIMIT_S) -> str:
        """Wait until the holder of a lease satisfies a condition. Returns the holder."""

        async def has_changed() -> bool:
            return is_right((await self.lease(lease)).holder)

        await self.wait_until(has_changed, f"the lease {lease} changes hands", s_max)
        return (await self.lease(lease)).holder

    async def wait_until(self, is_so: Callable[[], Awaitable[bool]], what: str, s_max: float = LIMIT_S) -> None:
        end_s = self.clock.now_s() + s_max
        while not await is_so():
            assert self.clock.now_s() < end_s, f"not within {s_max} s: {what}"
            await self.clock.wait(LOOK_EACH_S)


@asynccontextmanager
async def api_server(folder: Path, *arguments: str) -> AsyncIterator[ApiServer]:
    """Ours, in memory, without anything else."""
    kubeconfig = folder / "admin.kubeconfig"
    with (folder / "apiserver.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mooring", "up", "--without", "scheduler,controllers,nodes", "--ephemeral"),
            *("--port", "0", "--token", TOKEN, "--kubeconfig", str(kubeconfig), *arguments),
            stdout=log,
            stderr=log,
        )
        clock = SystemClock()
        try:
            end_s = clock.now_s() + LIMIT_S
            while not kubeconfig.exists():
                said = (folder / "apiserver.log").read_text()
                is_hopeful = process.returncode is None and clock.now_s() < end_s
                assert is_hopeful, f"the API server does not come up: {said}"
                await clock.wait(LOOK_EACH_S)
            connection = load_connection(clock, kubeconfig=str(kubeconfig))
            limits = HttpLimits(requests_per_s=0)
            async with HttpClient(connection, clock, Entropy(1), limits=limits) as client:
                yield ApiServer(connection.server, folder, client)
        finally:
            process.kill()
            await process.wait()


@dataclass
class SchedulerProcess:
    """A `mooring scheduler` that runs."""

    process: asyncio.subprocess.Process
    log_file: Path
    port: int

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def wait_end(self, s_max: float = LIMIT_S) -> int:
        """Its exit code."""
        async with asyncio.timeout(s_max):
            return await self.process.wait()


@asynccontextmanager
async def scheduler_process(
    server: ApiServer, name: str, *flags: str, kubeconfig: Path | None = None, profile: str = "", qps: int = 5_000
) -> AsyncIterator[SchedulerProcess]:
    """A scheduler of the profile `profile` (its own name, if none is given) that fights for a lease of that name."""
    profile = profile or name
    log_file, port = server.folder / f"{name}.log", free_port()
    file = kubeconfig if kubeconfig is not None else server.kubeconfig(name, server.url)
    configuration = server.folder / f"{name}.yaml"
    configuration.write_bytes(
        msgspec.json.encode(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": {"kubeconfig": str(file), "qps": qps, "burst": qps},
                "leaderElection": {"resourceName": profile},
                "profiles": [{"schedulerName": profile}],
            }
        )
    )
    with log_file.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mooring", "scheduler", "--config", str(configuration)),
            *("--bind-address", "127.0.0.1", "--secure-port", str(port), *flags),
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            yield SchedulerProcess(process, log_file, port)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
