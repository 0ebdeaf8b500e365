"""Prepares a run: identity, volumes, environment, command, mounts, limits.

Input: a pod and a container. Output: the configuration of its shim; or `NotReadyError`.

 1. The order is the kubelet's: security context, volumes, environment, command, mounts.
 2. A container without a command cannot run: there are no images.
 3. A container whose security context cannot be honoured does not run.
 4. Preparing twice is safe: the second attempt finds what the first one created.
 5. With users of their own, containers cannot reach the directory of the pods. Their working directory, termination log
    and directories for temporary files are mounted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mooring.client.errors import ClientError
from mooring.kubelet.environment import argv_of, environment_of
from mooring.kubelet.processes.cgroups import Cgroups
from mooring.kubelet.processes.directories import PodDirectories
from mooring.kubelet.processes.sandboxes import WORK_PATH, Sandboxes
from mooring.kubelet.processes.security_context import NoRangeError, ProcessIdentity, SecurityError, identity_of
from mooring.kubelet.processes.shim.client import ShimConfig, shim_config
from mooring.kubelet.processes.shim.sandbox import NONE
from mooring.kubelet.processes.stale_processes import OWNER_VARIABLE
from mooring.kubelet.references import ContainerConfigError, NodeFacts, ReferenceLookup
from mooring.kubelet.runtime import Waiting
from mooring.kubelet.views import FullContainer, FullPod, KubeletContainer
from mooring.kubelet.volumes.manager import VolumeManager
from mooring.kubelet.volumes.mounts import Mount, unmountable_message, volume_variables
from mooring.kubelet.volumes.projected_files import VolumeError

TERMINATION_VARIABLE = "MOORING_TERMINATION_LOG"
"""The path of the termination log, for containers where nothing can be mounted."""
SERVICE_ACCOUNT_VARIABLE = "MOORING_SERVICE_ACCOUNT"
"""The directory of the service account, for containers where nothing can be mounted."""
SERVICE_ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
DEFAULT_TERMINATION_PATH = "/dev/termination-log"
TEMPORARY_PATHS = ("/tmp", "/var/tmp", "/dev/shm")
"""Directories that all users may write."""
ALWAYS_WRITABLE = ("/dev/shm",)
"""Writable also in a read-only root file system."""
_LOCALE = ("LANG", "TZ")
_HANDED_DOWN = ("PATH", "HOME", *_LOCALE)
"""Variables that containers inherit from this process. No others: they may be secrets."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class NotReadyError(Exception):
    """A container cannot be started now: the waiting state to report, an event, and whether a retry may help."""

    def __init__(self, waiting: Waiting | None, event: str, message: str, *, can_help_to_retry: bool = True) -> None:
        super().__init__(message)
        self.waiting = waiting
        self.event = event
        self.can_help_to_retry = can_help_to_retry


@dataclass(frozen=True, slots=True)
class PreparedContainer:
    """A container that can be started."""

    config: ShimConfig
    warning: str = ""
    """Set if the volumes cannot be mounted at their paths."""


class ContainerPreparer:
    """Prepares all containers of a kubelet."""

    def __init__(
        self,
        directories: PodDirectories,
        cgroups: Cgroups,
        lookup: ReferenceLookup,
        volumes: VolumeManager,
        sandboxes: Sandboxes,
        node: NodeFacts,
    ) -> None:
        self._directories = directories
        self._cgroups = cgroups
        self._lookup = lookup
        self._volumes = volumes
        self._sandboxes = sandboxes
        self._node = node

    async def prepare(self, pod: FullPod, container: FullContainer, attempt: int) -> PreparedContainer:
        """Raises `NotReadyError`."""
        ability = self._sandboxes.ability
        try:
            identity = identity_of(pod, container, ability)
            await self._volumes.set_up(pod, self._node)
            found = await self._lookup.look_up(pod, container)
            environment = environment_of(pod, container, found, self._node, _base(identity))
            argv = argv_of(container, environment)
            mounts = self._volumes.mounts_of(pod, container, environment)
        except SecurityError as error:
            waiting = Waiting(error.reason, str(error))
            raise NotReadyError(waiting, "Failed", f"Error: {error}", can_help_to_retry=False) from None
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
        owner = (identity.user, identity.group) if ability.is_root else None
        self._directories.make_container(uid, name, attempt, owner)
        own_mounts = self._own_mounts(uid, container, identity)
        directory = container.working_dir or str(self._directories.work(uid, name))
        termination_log = str(self._directories.termination_log(uid, name))
        if own_mounts:
            directory = container.working_dir or WORK_PATH
            termination_log = container.termination_message_path or DEFAULT_TERMINATION_PATH
        environment |= volume_variables(mounts, are_mounted=ability.level != NONE)
        environment |= {
            OWNER_VARIABLE: str(self._directories.container(uid, name)),
            TERMINATION_VARIABLE: termination_log,
            **_service_account_variable(mounts, is_mounted=ability.level != NONE),
        }
        taken = {mount.target.rstrip("/") for mount in mounts}
        all_mounts = (*mounts, *(mount for mount in own_mounts if mount.target not in taken))
        try:
            sandbox = self._sandboxes.sandbox(uid, identity, directory, all_mounts)
        except NoRangeError as error:
            raise NotReadyError(Waiting("CreateContainerError", str(error)), "Failed", f"Error: {error}") from None
        cgroup = self._cgroups.make(_run_name(uid, name, attempt), container.resources)
        log, record = self._directories.log(uid, name, attempt), self._directories.record(uid, name)
        warning = unmountable_message(mounts) if mounts and ability.level == NONE else ""
        return PreparedContainer(shim_config(argv, environment, log, record, cgroup, sandbox), warning)

    def resize(self, pod_uid: str, container: KubeletContainer, attempt: int) -> str:
        """Set other limits for a run. Returns why that failed."""
        return self._cgroups.change(_run_name(pod_uid, container.name, attempt), container.resources)

    def _own_mounts(self, pod_uid: str, container: FullContainer, identity: ProcessIdentity) -> Sequence[Mount]:
        """Working directory, termination log and temporary directories; none where nothing can be mounted."""
        if self._sandboxes.ability.level == NONE:
            return ()
        own = self._directories
        file = container.termination_message_path or DEFAULT_TERMINATION_PATH
        mounts = [
            Mount("", str(own.work(pod_uid, container.name)), WORK_PATH),
            Mount("", str(own.termination_log(pod_uid, container.name)), file),
        ]
        if self._sandboxes.ability.has_separate_users:
            # Files in directories that all users may write would stay behind, and other pods would see them.
            is_read_only = identity.is_root_read_only
            for target in TEMPORARY_PATHS:
                path = own.temporary_files(pod_uid, container.name, target)
                mounts.append(Mount("", str(path), target, is_read_only and target not in ALWAYS_WRITABLE))
        return mounts


def _run_name(pod_uid: str, container: str, attempt: int) -> str:
    """The name of the cgroup of a run."""
    return f"{pod_uid}_{container}_{attempt}"


def _service_account_variable(mounts: Sequence[Mount], *, is_mounted: bool) -> dict[str, str]:
    """The directory with the token, the CA and the namespace, also where it cannot be mounted at its path."""
    found = next((mount for mount in mounts if mount.target == SERVICE_ACCOUNT_PATH), None)
    return {SERVICE_ACCOUNT_VARIABLE: found.target if is_mounted else found.source} if found is not None else {}


def _no_command(container: FullContainer) -> NotReadyError:
    text = (
        f"container {container.name} has no command: the process runtime runs commands of this machine and has no "
        f"images ({container.image}) that could define one"
    )
    waiting = Waiting("CreateContainerError", text)
    return NotReadyError(waiting, "Failed", f"Error: {text}", can_help_to_retry=False)


def _base(identity: ProcessIdentity) -> Mapping[str, str]:
    if identity.has_user_namespace:
        return {"PATH": _PATH, "HOME": WORK_PATH, **{name: os.environ[name] for name in _LOCALE if name in os.environ}}
    own = {name: value for name in _HANDED_DOWN if (value := os.environ.get(name))}
    return {"PATH": _PATH, **own}
