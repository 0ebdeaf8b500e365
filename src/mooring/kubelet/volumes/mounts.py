"""Mounts: what a container wants to see where.

Comes in   a pod, a container, its environment, the directory of the pod's volumes
Goes out   `Mount`s; or a `ContainerConfigError`

 1. Config maps, secrets, fields and tokens can only be read, whatever the mount says.
 2. A path below a volume never leads out of it, by whatever links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mooring.kubelet.environment.expansion import expanded_by
from mooring.kubelet.environment.references import ContainerConfigError
from mooring.kubelet.full_views import WholeContainer, WholeMount, WholePod, WholeVolume

VARIABLE_PREFIX = "MOORING_VOLUME_"


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
