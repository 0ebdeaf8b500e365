"""The process runtime: keeps the promise of `kubelet.runtime` with commands that this machine runs.

Comes in   start, stop, forget; what shims and probes tell
Goes out   to the listener: waiting, running, exited; logs; events

 1. It works while it is `opened`: before that, whatever an earlier life left is killed. Nothing is taken over: a
    container that an earlier kubelet had is told as ended (code 255, Unknown, as after a restart of the machine), and
    the worker starts it again as its policy says.
 2. At the end all containers are asked to end, and killed after `END_S_MAX`.
 3. A pod that is forgotten leaves nothing: processes, cgroups, directories.
 4. Whoever may create pods runs commands as our user. Nothing here protects from that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup, run_bounded
from mooring.kubelet.environment.references import Lookup, Place
from mooring.kubelet.full_views import WholeContainer, WholePod
from mooring.kubelet.probes.handlers import CommandError, CommandResult
from mooring.kubelet.probes.health import Health
from mooring.kubelet.probes.prober import ProbeAsker, Prober
from mooring.kubelet.processes.cgroups import Cgroups, find_cgroups
from mooring.kubelet.processes.container import Household, ProcessContainer
from mooring.kubelet.processes.directories import PodDirectories, abandoned_directories
from mooring.kubelet.processes.log_files import LogFileReader
from mooring.kubelet.processes.preparation import Preparation
from mooring.kubelet.processes.stale_processes import clear_leftovers
from mooring.kubelet.runtime import ContainerState, Exited, LogRequest, Needs, Role, Running
from mooring.kubelet.settings import HostFacts
from mooring.kubelet.views import KubeletContainer, KubeletPod
from mooring.kubelet.volumes.manager import Volumes
from mooring.kubelet.volumes.mounts import mount_ability

END_S_MAX = 3.0
"""How long containers have when mooring is ended. Their pods' graces may be longer, but somebody waits."""
LOST_CODE, LOST_REASON = 255, "Unknown"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """What this runtime is to be."""

    directory: Path | None
    """Where the pods are kept; None: in a directory that is gone at the end."""
    host: HostFacts


class ProcessRuntime:
    """Has the processes of all pods of a fleet."""

    is_real = True
    pod_view = WholePod

    def __init__(self, settings: ProcessSettings, needs: Needs) -> None:
        self._settings = settings
        self._needs = needs
        self._pods: dict[str, dict[str, ProcessContainer]] = {}
        self._is_ending = False
        self._lacking = ""

    @property
    def lacking(self) -> str:
        return self._lacking

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
            self._lacking = cgroups.lacking
            try:
                async with TaskGroup("containers") as group:
                    self._household = self._wired(directories, cgroups, group)
                    try:
                        yield
                    finally:
                        await self._end()
            finally:
                cgroups.close()
        finally:
            directories.close()

    def _wired(self, directories: PodDirectories, cgroups: Cgroups, group: TaskGroup) -> Household:
        needs, host = self._needs, self._settings.host
        place = Place(host.address, host.address, needs.allocatable)
        self._directories = directories
        self._volumes = Volumes(needs.client, needs.clock, directories.root)
        group.start_background(self._volumes.run(), name="volumes")
        self._prober = Prober(needs.clock, ProbeAsker(self), self)
        self._prober.start(group)
        lookup, ability = Lookup(needs.client), mount_ability()
        return Household(
            clock=needs.clock,
            alarms=needs.alarms,
            directories=directories,
            preparation=Preparation(directories, cgroups, lookup, self._volumes, ability, place),
            prober=self._prober,
            group=group,
            address=host.address,
            tell=self._tell,
            tell_event=needs.tell_event,
        )

    # ------------------------------------------------------------------------------------------------ for the workers

    def start(self, pod: KubeletPod, container: KubeletContainer, role: Role, attempt: int) -> None:
        if self._is_ending:
            return
        self._one(pod, container, role).start(attempt)

    def adopt(
        self, pod: KubeletPod, container: KubeletContainer, role: Role, attempt: int, state: ContainerState
    ) -> None:
        """Nobody outlives his mooring. What ran has ended, and nobody knows how."""
        if isinstance(state, Running):
            lost = Exited(LOST_CODE, state.started_s, self._needs.clock.wall_s(), LOST_REASON)
            # Not at once: whoever is just being taken over is not ready to hear of it.
            asyncio.get_running_loop().call_soon(self._tell, pod.metadata.uid, container.name, attempt, lost)

    def stop(self, pod_uid: str, container: str, grace_s: float) -> None:
        one = self._pods.get(pod_uid, {}).get(container)
        if one is not None:
            self._prober.pod_stops(pod_uid)
            one.stop(grace_s)

    def resize(self, pod_uid: str, container: KubeletContainer, attempt: int) -> str:
        return self._household.preparation.resize(pod_uid, container, attempt)

    def forget(self, pod_uid: str) -> None:
        containers = self._pods.pop(pod_uid, {})
        for one in containers.values():
            one.kill()
        self._prober.forget(pod_uid)
        if not self._is_ending:
            work = self._remove(pod_uid, list(containers.values()))
            self._household.group.start(work, name=f"remove {pod_uid}")

    def keep_only(self, pod_uids: Collection[str]) -> None:
        """These pods are still there; whatever is left of others goes."""
        for uid in self._directories.pods():
            if uid not in pod_uids and uid not in self._pods:
                self.forget(uid)

    def logs(self, pod_uid: str, container: str, attempt: int, request: LogRequest) -> AsyncIterator[bytes]:
        def is_running() -> bool:
            one = self._pods.get(pod_uid, {}).get(container)
            return one is not None and one.is_running(attempt)

        path = self._directories.log(pod_uid, container, attempt)
        return LogFileReader(path, request, self._needs.clock, is_running).read()

    # -------------------------------------------------------------------------------------------------- for the probes

    async def run_command(self, pod_uid: str, container: str, argv: Sequence[str], timeout_s: float) -> CommandResult:
        one = self._pods.get(pod_uid, {}).get(container)
        if one is None:
            raise CommandError("the container does not run")
        return await one.run_command(tuple(argv), timeout_s)

    def health_changed(self, pod_uid: str, container: str, attempt: int, health: Health) -> None:
        one = self._pods.get(pod_uid, {}).get(container)
        if one is not None:
            one.health_changed(attempt, health)

    def container_unhealthy(self, pod_uid: str, container: str, attempt: int, grace_s: float) -> None:
        one = self._pods.get(pod_uid, {}).get(container)
        if one is not None and one.is_running(attempt):
            one.stop(grace_s)

    def tell_event(self, pod: KubeletPod, is_warning: bool, reason: str, message: str) -> None:
        self._needs.tell_event(pod, is_warning, reason, message)

    # ----------------------------------------------------------------------------------------------------------- inside

    def _one(self, pod: KubeletPod, container: KubeletContainer, role: Role) -> ProcessContainer:
        assert isinstance(pod, WholePod), f"pod {pod.key} was decoded without its commands"
        assert isinstance(container, WholeContainer), f"{container.name} of {pod.key} was decoded without its command"
        containers = self._pods.setdefault(pod.metadata.uid, {})
        one = containers.get(container.name)
        if one is None:
            one = containers[container.name] = ProcessContainer(pod, container, role, self._household)
        one.pod, one.container = pod, container
        return one

    def _tell(self, pod_uid: str, container: str, attempt: int, state: ContainerState) -> None:
        if not self._is_ending:
            self._needs.listener.container_changed(pod_uid, container, attempt, state)

    async def _remove(self, pod_uid: str, containers: Sequence[ProcessContainer]) -> None:
        for one in containers:
            await one.wait_ended()
        self._volumes.forget(pod_uid)
        await asyncio.to_thread(self._directories.remove_pod, pod_uid)  # an emptyDir may be large

    async def _end(self) -> None:
        """All containers, in order as far as time allows."""
        self._is_ending = True
        everybody = [one for containers in self._pods.values() for one in containers.values()]
        for one in everybody:
            one.stop(END_S_MAX)
        await run_bounded(ProcessContainer.wait_ended, everybody, limit=max(1, len(everybody)), name="end")


async def _clear(directories: PodDirectories, clock: Clock) -> None:
    """Kill and remove what a kubelet that was killed left of these directories."""
    await clear_leftovers(directories, clock)
    find_cgroups(directories.root).close()
