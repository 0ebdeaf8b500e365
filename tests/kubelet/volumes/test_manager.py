"""The volumes of pods, made once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mooring.api.kinds import CONFIG_MAP, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from mooring.client.interface import JsonObject
from mooring.kit.clock import VirtualClock, format_rfc3339
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.full_views import WholePod
from mooring.kubelet.volumes.manager import LOOK_S, Volumes
from mooring.kubelet.volumes.projected_files import VolumeError
from mooring.store.memory import MemoryStore
from tests.fakes.raw_client import RawClient
from tests.kubelet.whole import PLACE, pod_with

LIFE_S = 1000.0
TOKEN = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 1000}}]}}


class Api(RawClient):
    """A store that also signs tokens: token-1, token-2 ..."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(MemoryStore(), clock, Entropy(1))
        self._wall = clock
        self.requests: list[tuple[str, str, Any]] = []

    async def request_token(self, namespace: str, name: str, request: JsonObject) -> bytes:
        self.requests.append((namespace, name, request["spec"]))
        expires = format_rfc3339(self._wall.wall_s() + LIFE_S)
        status = {"token": f"token-{len(self.requests)}", "expirationTimestamp": expires}
        return msgspec.json.encode({**request, "status": status})


Story = Callable[[Volumes, Api, VirtualClock], Awaitable[None]]


def played(tmp_path: Path, story: Story) -> None:
    clock = VirtualClock()

    async def main() -> None:
        api = Api(clock)
        await story(Volumes(api, clock, tmp_path), api, clock)

    run(main(), clock)


def of_volumes(*volumes: dict[str, Any], **changes: Any) -> WholePod:
    return pod_with({"volumes": list(volumes), **changes}, volumeMounts=[{"name": "t", "mountPath": "/t"}])


def test_volumes_are_made_below_the_pod(tmp_path: Path) -> None:
    async def story(volumes: Volumes, api: Api, clock: VirtualClock) -> None:
        await api.create(CONFIG_MAP, "default", {"metadata": {"name": "settings"}, "data": {"a": "1"}})
        pod = of_volumes({"name": "c", "configMap": {"name": "settings"}}, {"name": "t", "emptyDir": {}})
        await volumes.set_up(pod, PLACE)
        assert (tmp_path / "uid-1/volumes/c/a").read_text() == "1"
        assert (tmp_path / "uid-1/volumes/t").is_dir()
        mounts = volumes.mounts_of(pod, pod.spec.containers[0], {})
        assert [(mount.source, mount.target) for mount in mounts] == [(str(tmp_path / "uid-1/volumes/t"), "/t")]

    played(tmp_path, story)


def test_what_is_made_is_not_made_again(tmp_path: Path) -> None:
    async def story(volumes: Volumes, api: Api, clock: VirtualClock) -> None:
        pod = of_volumes(TOKEN)
        await volumes.set_up(pod, PLACE)
        await volumes.set_up(pod, PLACE)
        assert len(api.requests) == 1

    played(tmp_path, story)


def test_containers_that_start_together_make_it_once(tmp_path: Path) -> None:
    async def story(volumes: Volumes, api: Api, clock: VirtualClock) -> None:
        async with TaskGroup("containers") as group:
            for number in range(3):
                group.start(volumes.set_up(of_volumes(TOKEN), PLACE), name=str(number))
        assert len(api.requests) == 1

    played(tmp_path, story)


def test_what_failed_is_tried_again(tmp_path: Path) -> None:
    async def story(volumes: Volumes, api: Api, clock: VirtualClock) -> None:
        pod = of_volumes({"name": "t", "emptyDir": {}}, {"name": "c", "configMap": {"name": "settings"}})
        with pytest.raises(VolumeError, match='volume "c" : configmap "settings" not found'):
            await volumes.set_up(pod, PLACE)
        await api.create(CONFIG_MAP, "default", {"metadata": {"name": "settings"}, "data": {"a": "1"}})
        await volumes.set_up(pod, PLACE)
        assert (tmp_path / "uid-1/volumes/c/a").exists()

    played(tmp_path, story)


def test_a_token_is_asked_for_the_account_and_bound_to_the_pod(tmp_path: Path) -> None:
    async def story(volumes: Volumes, api: Api, clock: VirtualClock) -> None:
        await volumes.set_up(of_volumes(TOKEN, serviceAccountName="robot"), PLACE)
        bound = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-1"}
        spec = {"audiences": [], "expirationSeconds": 1000, "boundObjectRef": bound}
        assert api.requests == [("default", "robot", spec)]
        assert (tmp_path / "uid-1/volumes/t/token").read_text() == "token-1"

    played(tmp_path, story)


def test_tokens_are_renewed_before_they_expire(tmp_path: Path) -> None:
    async def story(volumes: Volumes, api: Api, clock: VirtualClock) -> None:
        async with TaskGroup("volumes") as group:
            group.start_background(volumes.run(), name="tokens")
            await volumes.set_up(of_volumes(TOKEN), PLACE)
            token = tmp_path / "uid-1/volumes/t/token"
            await clock.wait(0.8 * LIFE_S - 1.0)
            assert token.read_text() == "token-1"
            await clock.wait(1.0 + LOOK_S)
            assert token.read_text() == "token-2"
            volumes.forget("uid-1")
            await clock.wait(2 * LIFE_S)
            assert len(api.requests) == 2

    played(tmp_path, story)


def test_a_store_that_signs_no_tokens_is_said(tmp_path: Path) -> None:
    clock = VirtualClock()

    async def main() -> None:
        volumes = Volumes(RawClient(MemoryStore(), clock, Entropy(1)), clock, tmp_path)
        with pytest.raises(VolumeError, match="are given by API servers, not by RawClient"):
            await volumes.set_up(of_volumes(TOKEN), PLACE)

    run(main(), clock)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        pytest.param({"persistentVolumeClaim": {"claimName": "mine"}}, "mine", id="of a claim"),
        pytest.param({"ephemeral": {"volumeClaimTemplate": {}}}, "web-t", id="of a claim that came with the pod"),
    ],
)
def test_a_claim_is_a_directory_of_this_machine(tmp_path: Path, source: dict[str, Any], claim: str) -> None:
    async def story(volumes: Volumes, api: Api, clock: VirtualClock) -> None:
        claimed = {"metadata": {"name": claim}, "spec": {"volumeName": "pv"}}
        await api.create(PERSISTENT_VOLUME_CLAIM, "default", claimed)
        pod = of_volumes({"name": "t", **source})
        with pytest.raises(VolumeError, match="has no volume yet"):
            await volumes.set_up(pod, PLACE)
        volume = {"metadata": {"name": "pv"}, "spec": {"hostPath": {"path": str(tmp_path / "disk")}}}
        await api.create(PERSISTENT_VOLUME, "", volume)
        await volumes.set_up(pod, PLACE)
        (tmp_path / "disk/kept").touch()
        assert (tmp_path / "uid-1/volumes/t/kept").exists()

    played(tmp_path, story)


def test_a_claim_on_something_else_is_refused(tmp_path: Path) -> None:
    async def story(volumes: Volumes, api: Api, clock: VirtualClock) -> None:
        await api.create(PERSISTENT_VOLUME_CLAIM, "default", {"metadata": {"name": "x"}, "spec": {"volumeName": "pv"}})
        await api.create(PERSISTENT_VOLUME, "", {"metadata": {"name": "pv"}, "spec": {"csi": {"driver": "d"}}})
        with pytest.raises(VolumeError, match="persistent volume pv is no directory of this machine"):
            await volumes.set_up(of_volumes({"name": "t", "persistentVolumeClaim": {"claimName": "x"}}), PLACE)

    played(tmp_path, story)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        pytest.param({"nfs": {"path": "/x"}}, "this kubelet runs processes, and has", id="another kind"),
        pytest.param(
            {"persistentVolumeClaim": {"claimName": "x"}}, 'persistentvolumeclaim "x" not found', id="no claim"
        ),
        pytest.param({"hostPath": {"path": "/etc", "type": "File"}}, "hostPath type check failed", id="another path"),
    ],
)
def test_what_cannot_be_made_is_said(tmp_path: Path, source: dict[str, Any], why: str) -> None:
    async def story(volumes: Volumes, api: Api, clock: VirtualClock) -> None:
        with pytest.raises(VolumeError, match=f'MountVolume.SetUp failed for volume "t" : {why}'):
            await volumes.set_up(of_volumes({"name": "t", **source}), PLACE)

    played(tmp_path, story)
