"""The process runtime: implements `kubelet.runtime.Runtime` with processes of this machine.

Input: start, stop and forget; reports of shims; probe results. Output: container states; logs; events.

 1. Before it opens, processes of an earlier kubelet are killed. Containers are not adopted: a container that an earlier
    kubelet started is reported as ended (exit code 255, Unknown, as after a reboot), and restarts by its policy.
 2. At the end all containers are stopped, and killed after `END_S_MAX`.
 3. A forgotten pod leaves no processes, cgroups or directories.
 4. As root, pods run as users of their own unless the settings say otherwise; else users who may create pods run
    commands as the user of this process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mooring.client.events import EventType
from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup, run_bounded
from mooring.kubelet.probes.handlers import CommandError, CommandResult
from mooring.kubelet.probes.prober import ContainerHealth, Prober, run_probe
from mooring.kubelet.processes.cgroups import Cgroups, find_cgroups
from mooring.kubelet.processes.container import ContainerContext, ProcessContainer
from mooring.kubelet.processes.directories import PodDirectories, abandoned_directories
from mooring.kubelet.processes.log_files import LogFileReader
from mooring.kubelet.processes.preparation import ContainerPreparer
from mooring.kubelet.processes.sandboxes import Sandboxes
from mooring.kubelet.processes.stale_processes import kill_stale_processes
from mooring.kubelet.references import NodeFacts, ReferenceLookup
from mooring.kubelet.runtime import ContainerState, Exited, LogRequest, Role, Running, RuntimeContext
from mooring.kubelet.settings import HostFacts
from mooring.kubelet.views import FullContainer, FullPod, KubeletContainer, KubeletPod
from mooring.kubelet.volumes.manager import VolumeManager

END_S_MAX = 3.0
"""The grace period when mooring is stopped. Grace periods of pods may be longer, but the user waits."""
UNKNOWN_EXIT_CODE, UNKNOWN_REASON = 255, "Unknown"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """Settings of the runtime."""

    directory: Path | None
    """The directory of the pods; None: a temporary one."""
    host: HostFacts
    pod_users: str = ""
    """SEPARATE or HOST; empty: SEPARATE for root."""
    api_server_url: str = ""
    """Where pods reach the API server; empty: at the address of the Service `kubernetes`."""


class ProcessRuntime:
    """Runs the processes of all pods of the kubelets."""

    is_real = True
    pod_view = FullPod

    def __init__(self, settings: ProcessSettings, needs: RuntimeContext) -> None:
        self._settings = settings
        self._needs = needs
        self._pods: dict[str, dict[str, ProcessContainer]] = {}
        self._is_ending = False
        self._limitations = ""

    @property
    def limitations(self) -> str:
        return self._limitations

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        settings, clock = self._settings, self._needs.clock
        for abandoned in abandoned_directories():
            await _clear(abandoned, clock)
            abandoned.close()
        directories = PodDirectories.open(settings.directory) if settings.directory else PodDirectories.temporary()
        try:
            await _clear(directories, clock)
            cgroups = find_cgroups(directories.root)
            self._limitations = cgroups.limitations
            try:
                self._sandboxes = await Sandboxes.open(settings.pod_users, directories.root)
                try:
                    async with TaskGroup("containers") as group:
                        self._context = self._wired(directories, cgroups, group)
                        try:
                            yield
                        finally:
                            await self._end()
                finally:
                    self._sandboxes.close()
            finally:
                cgroups.close()
        finally:
            directories.close()

    def _wired(self, directories: PodDirectories, cgroups: Cgroups, group: TaskGroup) -> ContainerContext:
        needs, host = self._needs, self._settings.host
        place = NodeFacts(host.address, host.address, needs.allocatable)
        self._directories = directories
        ability = self._sandboxes.ability
        self._volumes = VolumeManager(
            needs.client,
            needs.clock,
            directories.root,
            sets_groups=ability.is_root,
            has_separate_users=ability.has_separate_users,
        )
        group.start_background(self._volumes.run(), name="volumes")
        self._prober = Prober(needs.clock, partial(run_probe, self), self)
        self._prober.start(group)
        lookup = ReferenceLookup(needs.client, self._settings.api_server_url)
        return ContainerContext(
            clock=needs.clock,
            timers=needs.timers,
            directories=directories,
            preparation=ContainerPreparer(directories, cgroups, lookup, self._volumes, self._sandboxes, place),
            prober=self._prober,
            group=group,
            address=host.address,
            report_state=self._report_state,
            record_event=needs.record_event,
        )

    # Runtime

    def start(self, pod: KubeletPod, container: KubeletContainer, role: Role, attempt: int) -> None:
        if self._is_ending:
            return
        self._container_of(pod, container, role).start(attempt)

    def adopt(
        self, pod: KubeletPod, container: KubeletContainer, role: Role, attempt: int, state: ContainerState
    ) -> None:
        """Containers do not survive their kubelet: a running one is reported as ended, cause unknown."""
        if isinstance(state, Running):
            lost = Exited(UNKNOWN_EXIT_CODE, state.started_s, self._needs.clock.wall_s(), UNKNOWN_REASON)
            # Later: the caller is still adopting the pod.
            asyncio.get_running_loop().call_soon(self._report_state, pod.metadata.uid, container.name, attempt, lost)

    def stop(self, pod_uid: str, container: str, grace_s: float) -> None:
        process = self._find(pod_uid, container)
        if process is not None:
            self._prober.pod_stops(pod_uid)
            process.stop(grace_s)

    def resize(self, pod_uid: str, container: KubeletContainer, attempt: int) -> str:
        return self._context.preparation.resize(pod_uid, container, attempt)

    def forget(self, pod_uid: str) -> None:
        containers = self._pods.pop(pod_uid, {})
        for process in containers.values():
            process.kill()
        self._prober.forget(pod_uid)
        if not self._is_ending:
            work = self._remove(pod_uid, list(containers.values()))
            self._context.group.start(work, name=f"remove {pod_uid}")

    def remove_all_except(self, pod_uids: Collection[str]) -> None:
        """Remove what is left of other pods."""
        for uid in self._directories.pods():
            if uid not in pod_uids and uid not in self._pods:
                self.forget(uid)

    def logs(self, pod_uid: str, container: str, attempt: int, request: LogRequest) -> AsyncGenerator[bytes, None]:
        def is_running() -> bool:
            process = self._find(pod_uid, container)
            return process is not None and process.is_running(attempt)

        path = self._directories.log(pod_uid, container, attempt)
        return LogFileReader(path, request, self._needs.clock, is_running).read()

    # Probes

    async def run_command(self, pod_uid: str, container: str, argv: Sequence[str], timeout_s: float) -> CommandResult:
        process = self._find(pod_uid, container)
        if process is None:
            raise CommandError("the container does not run")
        return await process.run_command(tuple(argv), timeout_s)

    def health_changed(self, pod_uid: str, container: str, attempt: int, health: ContainerHealth) -> None:
        process = self._find(pod_uid, container)
        if process is not None:
            process.health_changed(attempt, health)

    def container_unhealthy(self, pod_uid: str, container: str, attempt: int, grace_s: float) -> None:
        process = self._find(pod_uid, container)
        if process is not None and process.is_running(attempt):
            process.stop(grace_s)

    def record_event(self, pod: KubeletPod, type: EventType, reason: str, message: str) -> None:
        self._needs.record_event(pod, type, reason, message)

    # Containers

    def _find(self, pod_uid: str, container: str) -> ProcessContainer | None:
        return self._pods.get(pod_uid, {}).get(container)

    def _container_of(self, pod: KubeletPod, container: KubeletContainer, role: Role) -> ProcessContainer:
        assert isinstance(pod, FullPod), f"pod {pod.key} was decoded without its commands"
        assert isinstance(container, FullContainer), f"{container.name} of {pod.key} was decoded without its command"
        containers = self._pods.setdefault(pod.metadata.uid, {})
        process = containers.get(container.name)
        if process is None:
            process = containers[container.name] = ProcessContainer(pod, container, role, self._context)
        process.pod, process.container = pod, container
        return process

    def _report_state(self, pod_uid: str, container: str, attempt: int, state: ContainerState) -> None:
        if not self._is_ending:
            self._needs.listener.container_changed(pod_uid, container, attempt, state)

    async def _remove(self, pod_uid: str, containers: Sequence[ProcessContainer]) -> None:
        for process in containers:
            await process.wait_ended()
        self._volumes.forget(pod_uid)
        self._sandboxes.forget(pod_uid)
        await asyncio.to_thread(self._directories.remove_pod, pod_uid)  # an emptyDir may be large

    async def _end(self) -> None:
        """Stop all containers."""
        self._is_ending = True
        all_containers = [process for containers in self._pods.values() for process in containers.values()]
        for process in all_containers:
            process.stop(END_S_MAX)
        await run_bounded(ProcessContainer.wait_ended, all_containers, limit=max(1, len(all_containers)), name="end")


async def _clear(directories: PodDirectories, clock: Clock) -> None:
    """Kill and remove what a killed kubelet left."""
    await kill_stale_processes(directories, clock)
    find_cgroups(directories.root).close()
