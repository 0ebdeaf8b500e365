"""The mounts of a container.

Input: a pod, a container, its environment, the directory of the pod's volumes. Output: `Mount`s, or a
`ContainerConfigError`.

 1. configMap, secret, downwardAPI and projected volumes are read-only.
 2. A subPath cannot leave its volume, not even by links. Sources have no links.
 3. All volumes but hostPath have the ids of the pod on disk.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mooring.kubelet.environment import expanded_by
from mooring.kubelet.references import ContainerConfigError
from mooring.kubelet.views import FullContainer, FullMount, FullPod, FullVolume

VARIABLE_PREFIX = "MOORING_VOLUME_"


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory of the host, and its path in the container."""

    volume: str
    source: str
    target: str
    is_read_only: bool = False
    has_mapped_ids: bool = True
    """Whether its owners on disk are ids of the pod."""


def volume_path(volumes_directory: Path, volume: FullVolume) -> Path:
    """The path of a volume on the host."""
    if volume.host_path is not None:
        return Path(volume.host_path.path)
    return volumes_directory / volume.name


def reachability_error(resolved: Path) -> str:
    """Why a pod with users of its own must not mount a hostPath; empty if any user can reach it.

    It is mounted by root: a pod would get past directories that are closed to its user, those of other pods included.
    """
    try:
        resolved.lstat()
        closed = [str(parent) for parent in reversed(resolved.parents) if not parent.stat().st_mode & stat.S_IXOTH]
    except OSError:
        return f"{resolved} does not exist, and pods with users of their own cannot create it"
    return f"{resolved} is below {closed[0]}, which is closed to the users of pods" if closed else ""


def mounts_of(
    pod: FullPod,
    container: FullContainer,
    environment: Mapping[str, str],
    volumes_directory: Path,
    *,
    has_separate_users: bool = False,
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
        source = source.resolve()
        if volume.host_path is not None and has_separate_users and (error := reachability_error(source)):
            # Checked again, because another pod may have put a link there since the volume was set up.
            raise ContainerConfigError(f'volume "{mount.name}": {error}')
        is_read_only = mount.read_only or _is_read_only(volume)
        mounts.append(Mount(mount.name, str(source), mount.mount_path, is_read_only, volume.host_path is None))
    return tuple(mounts)


def volume_variables(mounts: Sequence[Mount], *, are_mounted: bool) -> dict[str, str]:
    """Variables with the path of each volume; of several mounts of a volume the first counts."""
    named = {mount.volume: mount.target if are_mounted else mount.source for mount in reversed(mounts)}
    return {VARIABLE_PREFIX + name.upper().replace("-", "_").replace(".", "_"): path for name, path in named.items()}


def unmountable_message(mounts: Sequence[Mount]) -> str:
    """The message of the event MountsUnavailable."""
    reported = ", ".join(f"{mount.target} (${name})" for mount, name in zip(mounts, _names(mounts)))
    return (
        "mount namespaces are not available (they need root or unprivileged user namespaces): volumes are not at their "
        f"paths, but where these variables say: {reported}"
    )


def _names(mounts: Sequence[Mount]) -> list[str]:
    return [name for mount in mounts for name in volume_variables([mount], are_mounted=False)]


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
