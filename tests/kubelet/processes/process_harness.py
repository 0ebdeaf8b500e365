"""A small cluster whose pods are real processes: an API server and kubelets, on real time.

async def story(play: RealPlay) -> None:
    await play.create(shell_pod("web", "echo hello; exec sleep 600"))
    await play.wait_line("web", "Running ready main=running")

played_for_real(story, tmp_path)

Each look is bounded, and everything has ended when the story has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.kubelets import Kubelets
from mooring.kubelet.processes.runtime import ProcessRuntime, ProcessSettings
from mooring.kubelet.settings import HostFacts, host_settings
from mooring.store.memory import MemoryStore
from tests.api_servers import open_loopback_client
from tests.kubelet.harness import Body, Play, container, pod
from tests.kubelet.simulated.test_runtime import Asked
from tests.waiting import LIMIT_S

LOOK_S = 0.05
HOST = HostFacts("here", "127.0.0.1", 4, 1 << 20, 1 << 20, "amd64", "6.1", "Linux", "machine", "boot", "uuid")


class RealPlay(Play):
    """What a story can do and see, and wait for."""

    async def wait_line(self, name: str, wanted: str) -> None:
        """Until a pod is so; the pattern is that of file names."""
        end_s = self.clock.now_s() + LIMIT_S
        while not fnmatchcase(line := await self.line(name), wanted):
            assert self.clock.now_s() < end_s, f"{name} is {line!r}, not {wanted!r}"
            await self.wait(LOOK_S)

    async def log(self, name: str, **asked: Any) -> str:
        parts = await self.kubelets.logs(await self.pod(name), "main", Asked(**asked))
        return b"".join([part async for part in parts]).decode()

    async def wait_log(self, name: str, wanted: str) -> None:
        """Until a pod has said so."""
        while wanted not in await self.log(name):
            await self.wait(LOOK_S)


RealStory = Callable[[RealPlay], Awaitable[None]]


def shell_pod(name: str, script: str, *, fields: Body | None = None, **changes: Any) -> Body:
    """A pod whose container runs a script; `fields` are further ones of the container."""
    # Kubernetes takes two dollars for one.
    main = container(command=["/bin/sh", "-c", script.replace("$", "$$")], **(fields or {}))
    return pod(name, on=HOST.name, **{"containers": [main], "terminationGracePeriodSeconds": 60, **changes})


def container_pid(directory: Path, pod_uid: str = "*", container: str = "main") -> int:
    """The process of a container, as the host sees it: the first one of its PID namespace."""
    (record,) = directory.glob(f"{pod_uid}/containers/{container}/run.json")
    return int(msgspec.json.decode(record.read_bytes())["pid"])


def played_for_real(story: RealStory, directory: Path, store: MemoryStore | None = None, pod_users: str = "") -> None:
    """Play a story to its end. With a `store` that had another story, it goes on from there."""
    clock = SystemClock()

    async def main() -> None:
        settings = ProcessSettings(directory, HOST, pod_users)
        async with (
            open_loopback_client(clock, store=store) as client,
            TaskGroup("play") as group,
            asyncio.timeout(2 * LIMIT_S),
        ):
            kubelets = Kubelets(
                client, clock, Entropy(1), host_settings(HOST, 1), lambda needs: ProcessRuntime(settings, needs)
            )
            running = group.start(kubelets.run(), name="kubelets")
            await story(RealPlay(client, clock, kubelets))
            running.cancel()

    run_real(main())
