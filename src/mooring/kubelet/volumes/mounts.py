"""Mounts: what a container wants to see where.

Comes in   a pod, a container, its environment, the directory of the pod's volumes
Goes out   `Mount`s; or a `ContainerConfigError`

 1. Config maps, secrets, fields and tokens can only be read, whatever the mount says.
 2. A path below a volume never leads out of it, by whatever links.
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
from mooring.kubelet.full_views import WholeContainer, WholeMount, WholePod, WholeVolume
from mooring.kubelet.volumes import entrypoint

VARIABLE_PREFIX = "MOORING_VOLUME_"
# Isolated from the variables of the container, and without the packages that are installed here: those take longer
# to find than everything else.
_PYTHON = (sys.executable, "-I", "-S", "-X", "utf8")
TRY_S_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory of the host, and where a container sees it."""

    volume: str
    source: str
    target: str
    is_read_only: bool = False


def volume_path(volumes_directory: Path, volume: WholeVolume) -> Path:
    """Where a volume is on this host."""
    if volume.host_path is not None:
        return Path(volume.host_path.path)
    return volumes_directory / volume.name


def mounts_of(
    pod: WholePod, container: WholeContainer, environment: Mapping[str, str], volumes_directory: Path
) -> tuple[Mount, ...]:
    """Makes the directories that subpaths name. Raises `ContainerConfigError`."""
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
    """Where each volume is on the host, for who cannot see it at its path; the first mount of a volume counts."""
    named = {mount.volume: mount.source for mount in reversed(mounts)}
    return {VARIABLE_PREFIX + name.upper().replace("-", "_").replace(".", "_"): path for name, path in named.items()}


def unmountable_message(mounts: Sequence[Mount]) -> str:
    """What to tell of mounts that this machine cannot make."""
    told = ", ".join(f"{mount.target} (${name})" for mount, name in zip(mounts, _names(mounts)))
    return (
        "no mount namespaces here (they take root, or user namespaces that everybody may make): the volumes are not at "
        f"their paths, but where variables say: {told}"
    )


def _names(mounts: Sequence[Mount]) -> list[str]:
    return [name for mount in mounts for name in volume_variables([mount])]


def _is_read_only(volume: WholeVolume) -> bool:
    claim = volume.persistent_volume_claim
    if claim is not None:
        return claim.read_only
    return any((volume.config_map, volume.secret, volume.downward_api, volume.projected))


def _sub_path(mount: WholeMount, environment: Mapping[str, str]) -> str:
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


def _below(volume: Path, sub_path: str, mount: WholeMount, container: WholeContainer) -> Path:
    # Not said in more words: a pod need not learn what the host has.
    refusal = ContainerConfigError(
        f'failed to prepare subPath for volumeMount "{mount.name}" of container "{container.name}"'
    )
    root, path = volume.resolve(), (volume / sub_path).resolve()
    if not path.is_relative_to(root):
        raise refusal
    try:
        if not path.exists():
            path.mkdir(parents=True)
    except OSError:
        raise refusal from None
    return path


class MountAbility(Enum):
    """How a process gets mounts of its own."""

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
    """What to run instead of `argv`: with the pipe `error_fd` open, on which it says why it cannot.

    With `joins_pid`, where that process is: `mounts` are its.
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
    """What works here: a mount is made, in a process that ends at once. Takes a moment, and blocks."""
    for ability in (MountAbility.ROOT, MountAbility.USER_NAMESPACE):
        if ability is MountAbility.ROOT and os.geteuid() != 0:
            continue
        if _works(ability):
            return ability
    return MountAbility.NONE


def _works(ability: MountAbility) -> bool:
    reading, writing = os.pipe()
    try:
        # At a path that is nowhere, so that the making of mount points is tried as well.
        mounts = [Mount("try", "/", "/.mooring-try/below")]
        command = entry_command(["true"], mounts=mounts, ability=ability, directory="/", error_fd=writing)
        ended = subprocess.run(command, pass_fds=(writing,), timeout=TRY_S_MAX, check=False, capture_output=True)
        return ended.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        os.close(reading)
        os.close(writing)
