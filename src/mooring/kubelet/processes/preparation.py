"""Preparation: everything that a container needs before it can be started.

Comes in   a pod and one of its containers
Goes out   `Wanted`: the command with its environment, its directories and limits; or `NotReadyError`

 1. In the kubelet's order: volumes, environment, command, mounts.
 2. A container without a command cannot run here: there are no images that could name one.
 3. Nothing is made twice: a second attempt finds what the first one made.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mooring.client.errors import ClientError
from mooring.kubelet.environment.references import ContainerConfigError, Lookup, Place
from mooring.kubelet.environment.variables import argv_of, environment_of
from mooring.kubelet.full_views import WholeContainer, WholePod
from mooring.kubelet.processes.cgroups import Cgroups
from mooring.kubelet.processes.directories import PodDirectories
from mooring.kubelet.processes.shim.client import ERROR_DESCRIPTOR, Wanted, wanted_of
from mooring.kubelet.processes.stale_processes import OWNER_VARIABLE
from mooring.kubelet.runtime import Waiting
from mooring.kubelet.views import KubeletContainer
from mooring.kubelet.volumes.manager import Volumes
from mooring.kubelet.volumes.mounts import Mount, MountAbility, entry_command, unmountable_message, volume_variables
from mooring.kubelet.volumes.projected_files import VolumeError

ROOT = 0
TERMINATION_VARIABLE = "MOORING_TERMINATION_LOG"
"""Where a container can write its last words, also where nothing can be mounted at the path that the pod names."""
DEFAULT_TERMINATION_PATH = "/dev/termination-log"
_HANDED_DOWN = ("PATH", "HOME", "LANG", "TZ")
"""What containers have of mooring's own environment. The rest is nobody's business: tokens, for instance."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def why_not_as(user: int, pod: WholePod, container: WholeContainer) -> str:
    """Empty if it may run as that user. What the container says counts before what the pod says."""
    own, whole = container.security_context, pod.spec.security_context
    wanted = own.run_as_user if own.run_as_user is not None else whole.run_as_user
    is_root_forbidden = own.run_as_non_root if own.run_as_non_root is not None else whole.run_as_non_root
    if wanted is not None and wanted != user:
        return f"container {container.name} wants to run as user {wanted}, and the process runtime runs as user {user}"
    if is_root_forbidden and user == ROOT:
        return f"container {container.name} has runAsNonRoot, and the process runtime runs as root"
    return ""


class NotReadyError(Exception):
    """It cannot be started now; what is told of it, and whether trying again can help."""

    def __init__(self, shown: Waiting | None, event: str, message: str, *, can_help_to_retry: bool = True) -> None:
        super().__init__(message)
        self.shown = shown
        self.event = event
        self.can_help_to_retry = can_help_to_retry


@dataclass(frozen=True, slots=True)
class Prepared:
    """A container that can be started."""

    wanted: Wanted
    directory: str
    """Where it starts."""
    warning: str = ""
    """Of its volumes, if they cannot be seen where the pod wants them."""


class Preparation:
    """For all containers of a kubelet."""

    def __init__(
        self,
        directories: PodDirectories,
        cgroups: Cgroups,
        lookup: Lookup,
        volumes: Volumes,
        ability: MountAbility,
        place: Place,
    ) -> None:
        self._directories = directories
        self._cgroups = cgroups
        self._lookup = lookup
        self._volumes = volumes
        self._ability = ability
        self._place = place

    async def prepare(self, pod: WholePod, container: WholeContainer, attempt: int) -> Prepared:
        """Raises `NotReadyError`."""
        refusal = why_not_as(os.getuid(), pod, container)
        if refusal:
            shown = Waiting("CreateContainerConfigError", refusal)
            raise NotReadyError(shown, "Failed", f"Error: {refusal}", can_help_to_retry=False)
        try:
            await self._volumes.set_up(pod, self._place)
            found = await self._lookup.look_up(pod, container)
            environment = environment_of(pod, container, found, self._place, _base())
            argv = argv_of(container, environment)
            mounts = self._volumes.mounts_of(pod, container, environment)
        except VolumeError as error:
            raise NotReadyError(None, "FailedMount", str(error)) from None
        except ContainerConfigError as error:
            shown = Waiting("CreateContainerConfigError", str(error))
            raise NotReadyError(shown, "Failed", f"Error: {error}") from None
        except ClientError as error:
            raise NotReadyError(None, "", f"the API server does not answer: {error}") from None
        if not argv:
            raise _no_command(container)
        uid, name = pod.metadata.uid, container.name
        self._directories.make_container(uid, name, attempt)
        words = self._directories.termination_log(uid, name)
        directory = container.working_dir or str(self._directories.work(uid, name))
        environment |= volume_variables(mounts)
        environment |= {
            OWNER_VARIABLE: str(self._directories.container(uid, name)),
            TERMINATION_VARIABLE: str(words),
        }
        command = entry_command(
            argv,
            mounts=(*mounts, *self._words_mount(container, str(words), mounts)),
            ability=self._ability,
            directory=directory,
            error_fd=ERROR_DESCRIPTOR,
        )
        cgroup = self._cgroups.make(_run_name(uid, name, attempt), container.resources)
        log, record = self._directories.log(uid, name, attempt), self._directories.record(uid, name)
        warning = unmountable_message(mounts) if mounts and self._ability is MountAbility.NONE else ""
        return Prepared(wanted_of(command, environment, log, record, cgroup), directory, warning)

    def resize(self, pod_uid: str, container: KubeletContainer, attempt: int) -> str:
        """Other limits for a run. Says why they cannot be set."""
        return self._cgroups.change(_run_name(pod_uid, container.name, attempt), container.resources)

    def _words_mount(self, container: WholeContainer, file: str, mounts: Sequence[Mount]) -> Sequence[Mount]:
        """The file for its last words, where the pod says; not at the price of a user namespace for that alone."""
        if self._ability is MountAbility.ROOT or (mounts and self._ability is not MountAbility.NONE):
            return (Mount("", file, container.termination_message_path or DEFAULT_TERMINATION_PATH),)
        return ()

    def beside(self, argv: tuple[str, ...], directory: str, pid: int) -> list[str]:
        """A command that runs where the process `pid` does: a probe, a hook."""
        return entry_command(argv, ability=self._ability, directory=directory, error_fd=ERROR_DESCRIPTOR, joins_pid=pid)


def _run_name(pod_uid: str, container: str, attempt: int) -> str:
    """By which the groups of one run are found."""
    return f"{pod_uid}_{container}_{attempt}"


def _no_command(container: WholeContainer) -> NotReadyError:
    text = (
        f"container {container.name} names no command: the process runtime runs commands of this machine, and has no "
        f"images ({container.image}) that could name one"
    )
    shown = Waiting("CreateContainerError", text)
    return NotReadyError(shown, "Failed", f"Error: {text}", can_help_to_retry=False)


def _base() -> Mapping[str, str]:
    own = {name: value for name in _HANDED_DOWN if (value := os.environ.get(name))}
    return {"PATH": _PATH, **own}
