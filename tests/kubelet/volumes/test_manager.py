"""Volumes of pods are created once; tokens are renewed."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mooring.api.kinds import CONFIG_MAP, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from mooring.apiserver.assembly import open_api_server
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.client.interface import JsonObject
from mooring.kit.clock import VirtualClock, format_rfc3339
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.views import FullPod, HostPathVolume
from mooring.kubelet.volumes.manager import (
    REFRESH_S,
    HostPathError,
    VolumeManager,
    check_host_path,
    link_directory,
    make_empty,
    set_volume_ownership,
    write_files,
)
from mooring.kubelet.volumes.projected_files import File, VolumeError
from mooring.store.memory import MemoryStore
from tests.api_servers import ADMIN, NO_CLIENT, WITHOUT_CONTROLLERS
from tests.kubelet.harness import PLACE, pod_with

TOKEN_EXPIRY_S = 1000.0
TOKEN = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 1000}}]}}


def test_files_are_written_with_their_modes(tmp_path: Path) -> None:
    write_files(tmp_path / "v", {"a": File(b"1", 0o640), "x/y": File(b"2", 0o755)})

    assert sorted(path.relative_to(tmp_path / "v").as_posix() for path in (tmp_path / "v").rglob("*")) == [
        "a",
        "x",
        "x/y",
    ]
    assert (tmp_path / "v/a").read_bytes() == b"1"
    assert [(tmp_path / "v" / path).stat().st_mode & 0o7777 for path in ("a", "x/y")] == [0o640, 0o755]


def test_files_are_written_again(tmp_path: Path) -> None:
    write_files(tmp_path, {"a": File(b"1", 0o400)})
    write_files(tmp_path, {"a": File(b"2", 0o400)})

    assert (tmp_path / "a").read_bytes() == b"2"


@pytest.mark.parametrize("path", ["../a", "x/../../a", "/a"])
def test_no_path_leads_out_of_the_volume(tmp_path: Path, path: str) -> None:
    with pytest.raises(OSError, match="leads out"):
        write_files(tmp_path / "v", {path: File(b"", 0o644)})


def test_an_empty_dir_is_writable_for_all_users_and_stays(tmp_path: Path) -> None:
    make_empty(tmp_path / "v")
    (tmp_path / "v/kept").touch()
    make_empty(tmp_path / "v")

    assert (tmp_path / "v").stat().st_mode & 0o7777 == 0o777
    assert os.listdir(tmp_path / "v") == ["kept"]


@pytest.mark.parametrize(
    ("is_read_only", "modes"),
    [(True, (0o2755, 0o640, 0o2755, 0o440)), (False, (0o2775, 0o660, 0o2775, 0o660))],
    ids=["for reading", "for writing"],
)
def test_a_volume_belongs_to_the_group_of_its_pod(tmp_path: Path, is_read_only: bool, modes: tuple[int, ...]) -> None:
    write_files(tmp_path / "v", {"a": File(b"1", 0o600), "x/y": File(b"2", 0o400)})
    (tmp_path / "v/link").symlink_to("/etc/passwd")
    group = os.getgid()
    set_volume_ownership(tmp_path / "v", group, is_read_only=is_read_only)

    paths = [tmp_path / "v" / path for path in ("", "a", "x", "x/y")]
    assert tuple(path.stat().st_mode & 0o7777 for path in paths) == modes
    assert {path.stat().st_gid for path in paths} == {group}
    assert Path("/etc/passwd").stat().st_mode & 0o020 == 0, "links are not followed"


def test_a_directory_has_another_name_however_often_it_is_given(tmp_path: Path) -> None:
    for _ in range(2):
        link_directory(tmp_path / "pod/v", tmp_path / "disk", 0o755)

    (tmp_path / "disk/kept").touch()
    assert os.listdir(tmp_path / "pod/v") == ["kept"]


@pytest.mark.parametrize(
    ("kind", "path", "is_fine"),
    [
        pytest.param("", "directory", True, id="whatever it is"),
        pytest.param("", "new/one", True, id="what is not there is made"),
        pytest.param("Directory", "directory", True, id="a directory"),
        pytest.param("Directory", "file", False, id="no directory"),
        pytest.param("Directory", "nowhere", False, id="no directory there"),
        pytest.param("DirectoryOrCreate", "new/one", True, id="a directory is made"),
        pytest.param("File", "file", True, id="a file"),
        pytest.param("File", "directory", False, id="no file"),
        pytest.param("FileOrCreate", "new", True, id="a file is made"),
        pytest.param("Socket", "socket", True, id="a socket"),
        pytest.param("Socket", "file", False, id="no socket"),
        pytest.param("CharDevice", "/dev/null", True, id="a device"),
        pytest.param("BlockDevice", "file", False, id="no device"),
    ],
)
def test_a_path_of_the_host_is_what_the_pod_says(tmp_path: Path, kind: str, path: str, is_fine: bool) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(tmp_path / "socket"))  # a whole path may be too long for a socket
        volume = HostPathVolume(path=str(tmp_path / path), type=kind)
        if is_fine:
            check_host_path(volume)
            assert (tmp_path / path).exists()
            return
        with pytest.raises(HostPathError, match=r"hostPath type check failed: .* is not a "):
            check_host_path(volume)


class Api(LoopbackClient):
    """A client whose tokens are known: token-1, token-2 ..."""

    def __init__(self, api_server: ApiServer, clock: VirtualClock) -> None:
        super().__init__(api_server, ADMIN, "tester")
        self._wall = clock
        self.requests: list[tuple[str, str, Any]] = []

    async def request_token(self, namespace: str, name: str, request: JsonObject) -> bytes:
        self.requests.append((namespace, name, request["spec"]))
        expires = format_rfc3339(self._wall.wall_s() + TOKEN_EXPIRY_S)
        status = {"token": f"token-{len(self.requests)}", "expirationTimestamp": expires}
        return msgspec.json.encode({**request, "status": status})


Story = Callable[[VolumeManager, Api, VirtualClock], Awaitable[None]]


def played(tmp_path: Path, story: Story) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_api_server(MemoryStore(), clock, Entropy(1), WITHOUT_CONTROLLERS) as api_server:
            api = Api(api_server, clock)
            await story(VolumeManager(api, clock, tmp_path), api, clock)

    run(main(), clock)


def of_volumes(*volumes: dict[str, Any], **changes: Any) -> FullPod:
    return pod_with({"volumes": list(volumes), **changes}, volumeMounts=[{"name": "t", "mountPath": "/t"}])


def test_volumes_are_made_below_the_pod(tmp_path: Path) -> None:
    async def story(volumes: VolumeManager, api: Api, clock: VirtualClock) -> None:
        await api.create(CONFIG_MAP, "default", {"metadata": {"name": "settings"}, "data": {"a": "1"}})
        pod = of_volumes({"name": "c", "configMap": {"name": "settings"}}, {"name": "t", "emptyDir": {}})
        await volumes.set_up(pod, PLACE)
        assert (tmp_path / "uid-1/volumes/c/a").read_text() == "1"
        assert (tmp_path / "uid-1/volumes/t").is_dir()
        mounts = volumes.mounts_of(pod, pod.spec.containers[0], {})
        assert [(mount.source, mount.target) for mount in mounts] == [(str(tmp_path / "uid-1/volumes/t"), "/t")]

    played(tmp_path, story)


def test_what_is_made_is_not_made_again(tmp_path: Path) -> None:
    async def story(volumes: VolumeManager, api: Api, clock: VirtualClock) -> None:
        pod = of_volumes(TOKEN)
        await volumes.set_up(pod, PLACE)
        await volumes.set_up(pod, PLACE)
        assert len(api.requests) == 1

    played(tmp_path, story)


def test_containers_that_start_together_make_it_once(tmp_path: Path) -> None:
    async def story(volumes: VolumeManager, api: Api, clock: VirtualClock) -> None:
        async with TaskGroup("containers") as group:
            for number in range(3):
                group.start(volumes.set_up(of_volumes(TOKEN), PLACE), name=str(number))
        assert len(api.requests) == 1

    played(tmp_path, story)


def test_what_failed_is_tried_again(tmp_path: Path) -> None:
    async def story(volumes: VolumeManager, api: Api, clock: VirtualClock) -> None:
        pod = of_volumes({"name": "t", "emptyDir": {}}, {"name": "c", "configMap": {"name": "settings"}})
        with pytest.raises(VolumeError, match='volume "c" : configmap "settings" not found'):
            await volumes.set_up(pod, PLACE)
        await api.create(CONFIG_MAP, "default", {"metadata": {"name": "settings"}, "data": {"a": "1"}})
        await volumes.set_up(pod, PLACE)
        assert (tmp_path / "uid-1/volumes/c/a").exists()

    played(tmp_path, story)


def test_a_token_is_requested_for_the_account_and_bound_to_the_pod(tmp_path: Path) -> None:
    async def story(volumes: VolumeManager, api: Api, clock: VirtualClock) -> None:
        await volumes.set_up(of_volumes(TOKEN, serviceAccountName="robot"), PLACE)
        bound = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-1"}
        spec = {"audiences": [], "expirationSeconds": 1000, "boundObjectRef": bound}
        assert api.requests == [("default", "robot", spec)]
        assert (tmp_path / "uid-1/volumes/t/token").read_text() == "token-1"

    played(tmp_path, story)


def test_tokens_are_renewed_before_they_expire(tmp_path: Path) -> None:
    async def story(volumes: VolumeManager, api: Api, clock: VirtualClock) -> None:
        async with TaskGroup("volumes") as group:
            group.start_background(volumes.run(), name="tokens")
            await volumes.set_up(of_volumes(TOKEN), PLACE)
            token = tmp_path / "uid-1/volumes/t/token"
            await clock.wait(0.8 * TOKEN_EXPIRY_S - 1.0)
            assert token.read_text() == "token-1"
            await clock.wait(1.0 + REFRESH_S)
            assert token.read_text() == "token-2"
            volumes.forget("uid-1")
            await clock.wait(2 * TOKEN_EXPIRY_S)
            assert len(api.requests) == 2

    played(tmp_path, story)


def test_a_store_that_signs_no_tokens_is_said(tmp_path: Path) -> None:
    clock = VirtualClock()

    async def main() -> None:
        volumes = VolumeManager(NO_CLIENT, clock, tmp_path)
        with pytest.raises(VolumeError, match="are given by API servers, not by object"):
            await volumes.set_up(of_volumes(TOKEN), PLACE)

    run(main(), clock)


async def create_claim(api: Api, name: str) -> None:
    """A claim on the volume `pv`."""
    spec = {"volumeName": "pv", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await api.create(PERSISTENT_VOLUME_CLAIM, "default", {"metadata": {"name": name}, "spec": spec})


async def create_volume(api: Api, **source: Any) -> None:
    """The volume `pv`."""
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, **source}
    await api.create(PERSISTENT_VOLUME, "", {"metadata": {"name": "pv"}, "spec": spec})


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        pytest.param({"persistentVolumeClaim": {"claimName": "mine"}}, "mine", id="of a claim"),
        pytest.param({"ephemeral": {"volumeClaimTemplate": {}}}, "web-t", id="of a claim that came with the pod"),
    ],
)
def test_a_claim_is_a_directory_of_this_machine(tmp_path: Path, source: dict[str, Any], claim: str) -> None:
    async def story(volumes: VolumeManager, api: Api, clock: VirtualClock) -> None:
        await create_claim(api, claim)
        pod = of_volumes({"name": "t", **source})
        with pytest.raises(VolumeError, match="has no volume yet"):
            await volumes.set_up(pod, PLACE)
        await create_volume(api, hostPath={"path": str(tmp_path / "disk")})
        await volumes.set_up(pod, PLACE)
        (tmp_path / "disk/kept").touch()
        assert (tmp_path / "uid-1/volumes/t/kept").exists()

    played(tmp_path, story)


def test_a_claim_on_something_else_is_refused(tmp_path: Path) -> None:
    async def story(volumes: VolumeManager, api: Api, clock: VirtualClock) -> None:
        await create_claim(api, "x")
        await create_volume(api, csi={"driver": "d", "volumeHandle": "h"})
        with pytest.raises(VolumeError, match="persistent volume pv is not a directory of this machine"):
            await volumes.set_up(of_volumes({"name": "t", "persistentVolumeClaim": {"claimName": "x"}}), PLACE)

    played(tmp_path, story)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        pytest.param({"nfs": {"path": "/x"}}, "the process runtime supports emptyDir", id="another kind"),
        pytest.param(
            {"persistentVolumeClaim": {"claimName": "x"}}, 'persistentvolumeclaim "x" not found', id="no claim"
        ),
        pytest.param({"hostPath": {"path": "/etc", "type": "File"}}, "hostPath type check failed", id="another path"),
    ],
)
def test_what_cannot_be_made_is_said(tmp_path: Path, source: dict[str, Any], why: str) -> None:
    async def story(volumes: VolumeManager, api: Api, clock: VirtualClock) -> None:
        with pytest.raises(VolumeError, match=f'MountVolume.SetUp failed for volume "t" : {why}'):
            await volumes.set_up(of_volumes({"name": "t", **source}), PLACE)

    played(tmp_path, story)
