"""The mounts of a container, and the entrypoint command that makes them.

Input: a pod, a container, its environment, the directory of the pod's volumes. Output: `Mount`s, or a
`ContainerConfigError`; a command that runs `entrypoint`.

 1. configMap, secret, downwardAPI and projected volumes are read-only.
 2. A subPath cannot leave its volume, not even by links.
 3. Whether this user can create mounts is found out by trying: root can; other users where the kernel allows user
    namespaces.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mooring.kubelet.environment.references import ContainerConfigError
from mooring.kubelet.environment.variables import expanded_by
from mooring.kubelet.full_views import FullContainer, FullMount, FullPod, FullVolume
from mooring.kubelet.volumes import entrypoint

VARIABLE_PREFIX = "MOORING_VOLUME_"
# Isolated from the variables of the container, and without site-packages, whose lookup would dominate the start.
_PYTHON = (sys.executable, "-I", "-S", "-X", "utf8")
TRY_S_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory of the host, and its path in the container."""

    volume: str
    source: str
    target: str
    is_read_only: bool = False


def volume_path(volumes_directory: Path, volume: FullVolume) -> Path:
    """The path of a volume on the host."""
    if volume.host_path is not None:
        return Path(volume.host_path.path)
    return volumes_directory / volume.name


def mounts_of(
    pod: FullPod, container: FullContainer, environment: Mapping[str, str], volumes_directory: Path
) -> tuple[Mount, ...]:
    """Creates the directories of subpaths. Raises `ContainerConfigError`."""
    volumes = {volume.name: volume for volume in pod.spec.volumes}
    mounts = []
    for mount in container.volume_mounts:
        volume = volumes.get(mount.name)
        if volume is None:
            raise ContainerConfigError(f'cannot find volume "{mount.name}" to mount into container "{container.name}"')
        source = volume_path(volumes_directory, volume)
        if sub_path := _sub_path(mount, environment):
            source = _below(source, sub_path, mount, container)
        mounts.append(Mount(mount.name, str(source), mount.mount_path, mount.read_only or _is_read_only(volume)))
    return tuple(mounts)


def volume_variables(mounts: Sequence[Mount]) -> dict[str, str]:
    """Variables with the host path of each volume; of several mounts of a volume the first counts."""
    named = {mount.volume: mount.source for mount in reversed(mounts)}
    return {VARIABLE_PREFIX + name.upper().replace("-", "_").replace(".", "_"): path for name, path in named.items()}


def unmountable_message(mounts: Sequence[Mount]) -> str:
    """The message of the event MountsUnavailable."""
    reported = ", ".join(f"{mount.target} (${name})" for mount, name in zip(mounts, _names(mounts)))
    return (
        "mount namespaces are not available (they need root or unprivileged user namespaces): volumes are not at their "
        f"paths, but where these variables say: {reported}"
    )


def _names(mounts: Sequence[Mount]) -> list[str]:
    return [name for mount in mounts for name in volume_variables([mount])]


def _is_read_only(volume: FullVolume) -> bool:
    claim = volume.persistent_volume_claim
    if claim is not None:
        return claim.read_only
    return any((volume.config_map, volume.secret, volume.downward_api, volume.projected))


def _sub_path(mount: FullMount, environment: Mapping[str, str]) -> str:
    path = mount.sub_path
    if mount.sub_path_expr:
        missing: dict[str, None] = {}

        def value_of(name: str) -> str:
            value = environment.get(name, "")
            if not value:
                missing[name] = None
            return value

        path = expanded_by(mount.sub_path_expr, value_of)
        if missing:
            raise ContainerConfigError(f"missing value for {', '.join(sorted(missing))}")
    if path.startswith("/"):
        raise ContainerConfigError(f"error SubPath `{path}` must not be an absolute path")
    if ".." in path.split("/"):
        raise ContainerConfigError(f"unable to provision SubPath `{path}`: must not contain '..'")
    return path


def _below(volume: Path, sub_path: str, mount: FullMount, container: FullContainer) -> Path:
    # Without details: they would reveal files of the host.
    failure = ContainerConfigError(
        f'failed to prepare subPath for volumeMount "{mount.name}" of container "{container.name}"'
    )
    root, path = volume.resolve(), (volume / sub_path).resolve()
    if not path.is_relative_to(root):
        raise failure
    try:
        if not path.exists():
            path.mkdir(parents=True)
    except OSError:
        raise failure from None
    return path


class MountAbility(Enum):
    """How a process can get its own mounts."""

    NONE = entrypoint.NONE
    ROOT = entrypoint.ROOT
    USER_NAMESPACE = entrypoint.USER_NAMESPACE


def entry_command(
    argv: Sequence[str],
    *,
    mounts: Sequence[Mount] = (),
    ability: MountAbility,
    directory: str,
    error_fd: int,
    joins_pid: int = 0,
) -> list[str]:
    """The command to run instead of `argv`. It writes errors to the pipe `error_fd`.

    With `joins_pid` the command runs in the namespaces of that process, without own `mounts`.
    """
    options = {
        "mounts": [(mount.source, mount.target, mount.is_read_only) for mount in mounts],
        "ability": ability.value,
        "directory": directory,
        "errors": error_fd,
        "joins": joins_pid,
    }
    return [*_PYTHON, entrypoint.__file__, json.dumps(options), *argv]


def mount_ability() -> MountAbility:
    """Tries to mount, in a process that ends at once. Blocks for a moment."""
    for ability in (MountAbility.ROOT, MountAbility.USER_NAMESPACE):
        if ability is MountAbility.ROOT and os.geteuid() != 0:
            continue
        if _works(ability):
            return ability
    return MountAbility.NONE


def _works(ability: MountAbility) -> bool:
    reading, writing = os.pipe()
    try:
        # The target does not exist, so that creating mount points is tried as well.
        mounts = [Mount("try", "/", "/.mooring-try/below")]
        command = entry_command(["true"], mounts=mounts, ability=ability, directory="/", error_fd=writing)
        ended = subprocess.run(command, pass_fds=(writing,), timeout=TRY_S_MAX, check=False, capture_output=True)
        return ended.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        os.close(reading)
        os.close(writing)
