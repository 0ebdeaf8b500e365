"""Prepares a run: volumes, environment, command, mounts, limits.

Input: a pod and a container. Output: the configuration of its shim; or `NotReadyError`.

 1. The order is the kubelet's: volumes, environment, command, mounts.
 2. A container without a command cannot run: there are no images.
 3. A container that must run as another user is rejected: every container runs as the user of this process. To run it
    with more rights than its pod allows would be worse.
 4. Preparing twice is safe: the second attempt finds what the first one created.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mooring.client.errors import ClientError
from mooring.kubelet.environment.references import ContainerConfigError, NodeFacts, ReferenceLookup
from mooring.kubelet.environment.variables import argv_of, environment_of
from mooring.kubelet.full_views import FullContainer, FullPod
from mooring.kubelet.processes.cgroups import Cgroups
from mooring.kubelet.processes.directories import PodDirectories
from mooring.kubelet.processes.shim.client import ERROR_DESCRIPTOR, ShimConfig, shim_config
from mooring.kubelet.processes.stale_processes import OWNER_VARIABLE
from mooring.kubelet.runtime import Waiting
from mooring.kubelet.views import KubeletContainer
from mooring.kubelet.volumes.manager import VolumeManager
from mooring.kubelet.volumes.mounts import Mount, MountAbility, entry_command, unmountable_message, volume_variables
from mooring.kubelet.volumes.projected_files import VolumeError

ROOT = 0
TERMINATION_VARIABLE = "MOORING_TERMINATION_LOG"
"""The path of the termination log, for containers where nothing can be mounted."""
DEFAULT_TERMINATION_PATH = "/dev/termination-log"
_HANDED_DOWN = ("PATH", "HOME", "LANG", "TZ")
"""Variables that containers inherit from this process. No others: they may be secrets."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def identity_error(user: int, pod: FullPod, container: FullContainer) -> str:
    """Why the container cannot run as this user; empty if it can. The container overrides the pod."""
    own, whole = container.security_context, pod.spec.security_context
    wanted = own.run_as_user if own.run_as_user is not None else whole.run_as_user
    is_root_forbidden = own.run_as_non_root if own.run_as_non_root is not None else whole.run_as_non_root
    if wanted is not None and wanted != user:
        return f"container {container.name} has runAsUser {wanted}, and the process runtime runs as user {user}"
    if is_root_forbidden and user == ROOT:
        return f"container {container.name} has runAsNonRoot, and the process runtime runs as root"
    return ""


class NotReadyError(Exception):
    """A container cannot be started now: the waiting state to report, an event, and whether a retry may help."""

    def __init__(self, waiting: Waiting | None, event: str, message: str, *, can_help_to_retry: bool = True) -> None:
        super().__init__(message)
        self.waiting = waiting
        self.event = event
        self.can_help_to_retry = can_help_to_retry


@dataclass(frozen=True, slots=True)
class Prepared:
    """A container that can be started."""

    wanted: ShimConfig
    directory: str
    """The working directory."""
    warning: str = ""
    """Set if the volumes cannot be mounted at their paths."""


class Preparation:
    """Prepares all containers of a kubelet."""

    def __init__(
        self,
        directories: PodDirectories,
        cgroups: Cgroups,
        lookup: ReferenceLookup,
        volumes: VolumeManager,
        ability: MountAbility,
        place: NodeFacts,
    ) -> None:
        self._directories = directories
        self._cgroups = cgroups
        self._lookup = lookup
        self._volumes = volumes
        self._ability = ability
        self._place = place

    async def prepare(self, pod: FullPod, container: FullContainer, attempt: int) -> Prepared:
        """Raises `NotReadyError`."""
        problem = identity_error(os.getuid(), pod, container)
        if problem:
            waiting = Waiting("CreateContainerConfigError", problem)
            raise NotReadyError(waiting, "Failed", f"Error: {problem}", can_help_to_retry=False)
        try:
            await self._volumes.set_up(pod, self._place)
            found = await self._lookup.look_up(pod, container)
            environment = environment_of(pod, container, found, self._place, _base())
            argv = argv_of(container, environment)
            mounts = self._volumes.mounts_of(pod, container, environment)
        except VolumeError as error:
            raise NotReadyError(None, "FailedMount", str(error)) from None
        except ContainerConfigError as error:
            waiting = Waiting("CreateContainerConfigError", str(error))
            raise NotReadyError(waiting, "Failed", f"Error: {error}") from None
        except ClientError as error:
            raise NotReadyError(None, "", f"the API server does not answer: {error}") from None
        if not argv:
            raise _no_command(container)
        uid, name = pod.metadata.uid, container.name
        self._directories.make_container(uid, name, attempt)
        termination_log = self._directories.termination_log(uid, name)
        directory = container.working_dir or str(self._directories.work(uid, name))
        environment |= volume_variables(mounts)
        environment |= {
            OWNER_VARIABLE: str(self._directories.container(uid, name)),
            TERMINATION_VARIABLE: str(termination_log),
        }
        command = entry_command(
            argv,
            mounts=(*mounts, *self._termination_log_mount(container, str(termination_log), mounts)),
            ability=self._ability,
            directory=directory,
            error_fd=ERROR_DESCRIPTOR,
        )
        cgroup = self._cgroups.make(_run_name(uid, name, attempt), container.resources)
        log, record = self._directories.log(uid, name, attempt), self._directories.record(uid, name)
        warning = unmountable_message(mounts) if mounts and self._ability is MountAbility.NONE else ""
        return Prepared(shim_config(command, environment, log, record, cgroup), directory, warning)

    def resize(self, pod_uid: str, container: KubeletContainer, attempt: int) -> str:
        """Set other limits for a run. Returns why that failed."""
        return self._cgroups.change(_run_name(pod_uid, container.name, attempt), container.resources)

    def _termination_log_mount(self, container: FullContainer, file: str, mounts: Sequence[Mount]) -> Sequence[Mount]:
        """The mount of the termination log; not if that alone would take a user namespace."""
        if self._ability is MountAbility.ROOT or (mounts and self._ability is not MountAbility.NONE):
            return (Mount("", file, container.termination_message_path or DEFAULT_TERMINATION_PATH),)
        return ()

    def entry_argv(self, argv: tuple[str, ...], directory: str, pid: int) -> list[str]:
        """A command in the namespaces of process `pid`: a probe or a hook."""
        return entry_command(argv, ability=self._ability, directory=directory, error_fd=ERROR_DESCRIPTOR, joins_pid=pid)


def _run_name(pod_uid: str, container: str, attempt: int) -> str:
    """The name of the cgroup of a run."""
    return f"{pod_uid}_{container}_{attempt}"


def _no_command(container: FullContainer) -> NotReadyError:
    text = (
        f"container {container.name} has no command: the process runtime runs commands of this machine and has no "
        f"images ({container.image}) that could define one"
    )
    waiting = Waiting("CreateContainerError", text)
    return NotReadyError(waiting, "Failed", f"Error: {text}", can_help_to_retry=False)


def _base() -> Mapping[str, str]:
    own = {name: value for name in _HANDED_DOWN if (value := os.environ.get(name))}
    return {"PATH": _PATH, **own}
