"""Sandboxes: what this machine allows, and the sandbox of each container.

Input: how pods are to run (`--pod-users`); the identity and mounts of a container. Output: a `HostCapabilities`, found
out by starting a process in such a sandbox; a `Sandbox` for the shim; or `PodUsersError`.

 1. As root, pods have separate users unless the settings say otherwise. If that is impossible here, nothing runs:
    pods must not get the rights of root by accident.
 2. Other users get what is possible: namespaces, or none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mooring.kubelet.processes.security_context import ROOT_ID, HostCapabilities, PodUsers, ProcessIdentity, id_map
from mooring.kubelet.processes.shim.client import Sandbox, ShimConfig, ShimMount, ShimProcess
from mooring.kubelet.processes.shim.sandbox import NONE, ROOT, USER_NAMESPACE
from mooring.kubelet.volumes.mounts import Mount

SEPARATE, HOST = "separate", "host"
"""Whose users the users of pods are: those of a user namespace of the pod, or those of this machine."""
WORK_PATH = "/run/mooring/work"
"""The default working directory of a container with mounts."""
_TRY_PATH = "/run/mooring/try/below"


class PodUsersError(Exception):
    """Pods cannot run with the users that the settings want; the text says what to do."""


class Sandboxes:
    """The sandboxes of one kubelet."""

    def __init__(self, ability: HostCapabilities, users: PodUsers | None) -> None:
        self.ability = ability
        self._users = users

    @classmethod
    async def open(cls, pod_users: str, directory: Path) -> Sandboxes:
        """Tries what is possible. `directory` is that of the pods. Raises `PodUsersError`."""
        user, group = os.geteuid(), os.getegid()
        chosen = pod_users or (SEPARATE if user == ROOT_ID else HOST)
        users = _open_users() if user == ROOT_ID else None
        if chosen == SEPARATE:
            if users is None:
                raise PodUsersError("--pod-users separate needs root: other users have no ids to give to pods")
            ability = HostCapabilities(user, group, ROOT, has_pid_namespaces=True, has_separate_users=True)
            error = await _try(cls(ability, users), directory)
            if error:
                users.close()
                raise PodUsersError(
                    f"pods cannot have users of their own on this machine ({error}): "
                    "--pod-users host runs them as root, with all rights on this machine"
                )
            return cls(ability, users)
        level = ROOT if user == ROOT_ID else USER_NAMESPACE
        for has_pid_namespaces in (True, False):
            sandboxes = cls(HostCapabilities(user, group, level, has_pid_namespaces), users)
            if not await _try(sandboxes, directory):
                return sandboxes
        return cls(HostCapabilities(user, group), users)

    def sandbox(self, pod_uid: str, identity: ProcessIdentity, directory: str, mounts: Sequence[Mount]) -> Sandbox:
        """Raises `NoRangeError`."""
        level = self.ability.level
        # Root without rights, as in some containers, may not even set the ids that it has.
        is_changed = (identity.user, identity.group, identity.groups) != (self.ability.user, self.ability.group, ())
        maps: dict[str, str] = {}
        if identity.has_user_namespace and level == ROOT:
            assert self._users is not None, "root has ranges of ids"
            maps = id_map(self._users.first_id(pod_uid))
        return Sandbox(
            level,
            directory,
            [_mounted(one, has_map=bool(maps)) for one in mounts] if level != NONE else [],
            identity.has_pid_namespace and level != NONE,
            identity.is_root_read_only,
            maps,
            identity.user,
            identity.group,
            identity.groups,
            self.ability.is_root and (level != NONE or is_changed),
            identity.capabilities,
            identity.has_no_new_privileges,
            identity.has_ipc_namespace and level != NONE,
        )

    def forget(self, pod_uid: str) -> None:
        """The pod was deleted."""
        if self._users is not None:
            self._users.release(pod_uid)

    def close(self) -> None:
        if self._users is not None:
            self._users.close()


def _mounted(mount: Mount, *, has_map: bool) -> ShimMount:
    return ShimMount(mount.source, mount.target, mount.is_read_only, mount.has_mapped_ids and has_map)


def _open_users() -> PodUsers:
    try:
        return PodUsers()
    except OSError as error:
        raise PodUsersError(f"{error.filename} cannot be opened: {error.strerror}") from None


async def _try(sandboxes: Sandboxes, directory: Path) -> str:
    """Run `true` in a sandbox. Returns why that failed."""
    ability = sandboxes.ability
    source = directory / ".try"
    source.mkdir(exist_ok=True)
    # The target does not exist, so that creating mount points is tried as well.
    mounts = [Mount("try", str(source), _TRY_PATH)]
    identity = ProcessIdentity(
        ability.user,
        ability.group,
        has_pid_namespace=ability.has_pid_namespaces,
        has_user_namespace=ability.has_separate_users,
        has_ipc_namespace=True,
    )
    try:
        sandbox = sandboxes.sandbox("try", identity, os.sep, mounts)
        log, record = str(source / "log"), str(source / "record")
        shim = await ShimProcess.start(ShimConfig(["true"], {}, log, record, sandbox=sandbox))
        try:
            reports = [report async for report in shim.reports()]
        finally:
            await shim.close()
    except OSError as error:
        return str(error)
    finally:
        sandboxes.forget("try")
        for file in source.glob("*"):
            file.unlink()
        source.rmdir()
    return "" if reports and reports[-1].exited == 0 else (reports[-1].failed if reports else "the shim ended")
