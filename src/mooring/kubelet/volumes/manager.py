"""The volume manager: creates the volumes of all pods, once for each pod.

Input: pods whose containers are to start. Output: filled directories <pods directory>/<uid>/volumes/<name>; or a
`VolumeError`.

 1. An existing volume is not touched: restarted containers find their files. Only tokens are renewed, by `run`.
 2. Volumes are removed with the directory of the pod, by its owner.
 3. An unsupported volume is an error: the pod does not run without it.
 4. A file is written beside its target and renamed, so that it is never incomplete. Paths cannot leave the volume; the
    API server validates that, and it is checked again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mooring.api.views.meta import View
from mooring.client.errors import ClientError
from mooring.client.interface import Client, request_token
from mooring.kit.clock import Clock, TimestampError, parse_rfc3339
from mooring.kubelet.references import (
    ContainerConfigError,
    NodeFacts,
    ReferencedObjects,
    ReferenceLookup,
    claim_name,
)
from mooring.kubelet.views import FullContainer, FullPod, FullVolume, HostPathVolume, TokenProjection
from mooring.kubelet.volumes.mounts import Mount, mounts_of, reachability_error
from mooring.kubelet.volumes.projected_files import (
    File,
    VolumeError,
    config_map_names,
    files_of,
    secret_names,
    token_projections,
    volume_error,
)

EMPTY_MODE = 0o777
"""The mode of an emptyDir: containers of any user may write."""
DIRECTORY_MODE = 0o755
FILE_MODE = 0o644
READ_ACCESS, WRITE_ACCESS, DIRECTORY_ACCESS = 0o440, 0o660, 0o2110
"""Permissions of the fsGroup of a pod."""
RENEW_SHARE = 0.8
"""The share of its lifetime after which a token is renewed."""
RENEW_S_MAX = 24 * 3600.0
NEVER_S = float("inf")
REFRESH_S = 60.0
"""The interval of `run`, and the delay after a failed renewal."""

logger = logging.getLogger(__name__)


class HostPathError(Exception):
    """A hostPath is not of the declared type."""


def write_files(directory: Path, files: Mapping[str, File]) -> None:
    """Write the files of a volume. Raises `OSError`."""
    directory.mkdir(parents=True, exist_ok=True)
    for path, file in files.items():
        inside = os.path.normpath(path)
        if inside.startswith(("/", "..")):
            raise OSError(f"{path} leads out of the volume")
        place = directory / inside
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_name(f".{place.name}.new")
        temporary.write_bytes(file.data)
        temporary.chmod(file.mode)
        temporary.replace(place)


def make_empty(directory: Path) -> None:
    """Create a directory that all users may write; an existing one is kept. Raises `OSError`."""
    if not directory.exists():
        directory.mkdir(parents=True)
        directory.chmod(EMPTY_MODE)


def link_directory(link: Path, path: Path, mode: int) -> None:
    """Link a directory of the host, which is created if it is missing. Raises `OSError`."""
    if not path.exists():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(path)


def set_volume_ownership(directory: Path, group: int, *, is_read_only: bool) -> None:
    """Give a volume to the fsGroup of its pod, as a kubelet: the group may read and, unless the volume is read-only,
    write; new files belong to it. Raises `OSError`."""
    access = READ_ACCESS if is_read_only else WRITE_ACCESS
    for place, _, files in os.walk(directory):
        for path in (place, *(os.path.join(place, name) for name in files)):
            mode = os.lstat(path).st_mode
            os.chown(path, -1, group, follow_symlinks=False)
            if stat.S_ISDIR(mode):
                os.chmod(path, stat.S_IMODE(mode) | access | DIRECTORY_ACCESS)
            elif not stat.S_ISLNK(mode):
                os.chmod(path, stat.S_IMODE(mode) | access)


def check_host_path(volume: HostPathVolume) -> None:
    """Check the type of a hostPath, and create it if its type allows that. Raises `HostPathError`."""
    path = Path(volume.path)
    if volume.type in ("", "DirectoryOrCreate") and not path.exists():
        path.mkdir(mode=DIRECTORY_MODE, parents=True)
    elif volume.type == "FileOrCreate" and not path.exists():
        path.touch(mode=FILE_MODE)
    is_so, what = _HOST_PATH_TYPES.get(volume.type, (Path.exists, ""))
    if not is_so(path):
        raise HostPathError(f"hostPath type check failed: {path} is not a {what}")


_HOST_PATH_TYPES: Mapping[str, tuple[Callable[[Path], bool], str]] = {
    "Directory": (Path.is_dir, "directory"),
    "DirectoryOrCreate": (Path.is_dir, "directory"),
    "File": (Path.is_file, "file"),
    "FileOrCreate": (Path.is_file, "file"),
    "Socket": (Path.is_socket, "socket file"),
    "CharDevice": (Path.is_char_device, "character device"),
    "BlockDevice": (Path.is_block_device, "block device"),
}


@dataclass(slots=True)
class _PodVolumes:
    pod: FullPod
    node: NodeFacts
    created: set[str] = field(default_factory=set)
    renew_s: float = NEVER_S
    """When to renew the tokens (wall clock)."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Containers of a pod start together; the volumes are created once."""


class VolumeManager:
    """All volumes of a kubelet."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        pods_directory: Path,
        *,
        sets_groups: bool = False,
        has_separate_users: bool = False,
    ) -> None:
        """`sets_groups`: whether this process can give volumes to the fsGroup of their pod."""
        self._sets_groups = sets_groups
        self._has_separate_users = has_separate_users
        self._client = client
        self._clock = clock
        self._lookup = ReferenceLookup(client)
        self._pods_directory = pods_directory
        self._pods: dict[str, _PodVolumes] = {}

    async def set_up(self, pod: FullPod, node: NodeFacts) -> None:
        """Create missing volumes. Raises `VolumeError`."""
        known = self._pods.setdefault(pod.metadata.uid, _PodVolumes(pod, node))
        async with known.lock:
            missing = [volume for volume in pod.spec.volumes if volume.name not in known.created]
            if not missing:
                return
            found, tokens = await self._look_up(pod, missing)
            for volume in missing:
                if claim := claim_name(volume, pod):
                    await self._link_claim(volume, pod, claim)
                else:
                    self._create(volume, pod, found, tokens, node)
                known.created.add(volume.name)

    def mounts_of(self, pod: FullPod, container: FullContainer, environment: Mapping[str, str]) -> tuple[Mount, ...]:
        """The mounts of a container. Raises `ContainerConfigError`."""
        directory = self._directory(pod.metadata.uid)
        return mounts_of(pod, container, environment, directory, has_separate_users=self._has_separate_users)

    def forget(self, pod_uid: str) -> None:
        """The pod was deleted. Its directory is removed by the caller."""
        self._pods.pop(pod_uid, None)

    async def run(self) -> None:
        """Renew tokens until cancelled."""
        while True:
            await self._clock.wait(REFRESH_S)
            for known in list(self._pods.values()):
                if known.renew_s <= self._clock.wall_s():
                    await self._renew(known)

    # One pod

    def _create(
        self,
        volume: FullVolume,
        pod: FullPod,
        found: ReferencedObjects,
        tokens: Mapping[TokenProjection, str],
        node: NodeFacts,
    ) -> None:
        directory = self._directory(pod.metadata.uid) / volume.name
        try:
            if volume.empty_dir is not None:
                make_empty(directory)
                self._set_ownership(directory, pod, is_read_only=False)
            elif volume.host_path is not None:
                if self._has_separate_users:
                    error = reachability_error(Path(volume.host_path.path).resolve())
                    if error:
                        raise HostPathError(error)
                check_host_path(volume.host_path)
            elif any((volume.config_map, volume.secret, volume.downward_api, volume.projected)):
                write_files(directory, files_of(volume, pod, found, tokens, node))
                self._set_ownership(directory, pod, is_read_only=True)
            else:
                raise volume_error(
                    volume.name,
                    "the process runtime supports emptyDir, hostPath, configMap, secret, downwardAPI, projected and "
                    "persistentVolumeClaim volumes only",
                )
        except (OSError, HostPathError) as error:
            raise volume_error(volume.name, str(error)) from None

    async def _link_claim(self, volume: FullVolume, pod: FullPod, claim: str) -> None:
        """The volume of a claim must be a directory of this machine."""
        try:
            claimed = await self._lookup.claimed_directory(pod.metadata.namespace, claim)
        except (ClientError, ContainerConfigError) as error:
            raise volume_error(volume.name, str(error)) from None
        try:
            mode = EMPTY_MODE if claimed.is_provisioned else DIRECTORY_MODE
            link_directory(self._directory(pod.metadata.uid) / volume.name, Path(claimed.path), mode)
            if claimed.is_local:
                self._set_ownership(Path(claimed.path), pod, is_read_only=False)
        except OSError as error:
            raise volume_error(volume.name, str(error)) from None

    def _set_ownership(self, directory: Path, pod: FullPod, *, is_read_only: bool) -> None:
        group = pod.spec.security_context.fs_group
        if group is not None and self._sets_groups:
            set_volume_ownership(directory, group, is_read_only=is_read_only)

    async def _look_up(
        self, pod: FullPod, volumes: Sequence[FullVolume]
    ) -> tuple[ReferencedObjects, dict[TokenProjection, str]]:
        try:
            found = await self._lookup.objects(pod.metadata.namespace, config_map_names(volumes), secret_names(volumes))
            return found, {token: await self._token(pod, token) for token in token_projections(volumes)}
        except ClientError as error:
            raise volume_error(volumes[0].name, str(error)) from None

    async def _token(self, pod: FullPod, token: TokenProjection) -> str:
        metadata = pod.metadata
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": [token.audience] if token.audience else [],
                "expirationSeconds": token.expiration_seconds,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": metadata.name, "uid": metadata.uid},
            },
        }
        account = pod.spec.service_account_name or "default"
        raw = await request_token(self._client, metadata.namespace, account, request)
        answer = _decode_token(raw).status
        self._plan_renewal(metadata.uid, answer.expiration_timestamp)
        return answer.token

    def _plan_renewal(self, pod_uid: str, expires: str) -> None:
        known, now_s = self._pods.get(pod_uid), self._clock.wall_s()
        if known is None:
            return  # the pod was deleted meanwhile
        try:
            lifetime_s = parse_rfc3339(expires) - now_s
        except TimestampError:
            return
        known.renew_s = min(known.renew_s, now_s + min(RENEW_SHARE * lifetime_s, RENEW_S_MAX))

    async def _renew(self, known: _PodVolumes) -> None:
        pod, known.renew_s = known.pod, NEVER_S
        volumes = [volume for volume in pod.spec.volumes if token_projections([volume])]
        try:
            found, tokens = await self._look_up(pod, volumes)
            for volume in volumes:
                self._create(volume, pod, found, tokens, known.node)
        except VolumeError as error:
            known.renew_s = self._clock.wall_s() + REFRESH_S
            logger.warning("renewing the tokens of pod %s failed: %s", pod.key, error)

    def _directory(self, pod_uid: str) -> Path:
        return self._pods_directory / pod_uid / "volumes"


class _TokenStatus(View):
    token: str = ""
    expiration_timestamp: str = ""


class _TokenAnswer(View):
    status: _TokenStatus = _TokenStatus()


_decode_token = msgspec.json.Decoder(_TokenAnswer).decode
