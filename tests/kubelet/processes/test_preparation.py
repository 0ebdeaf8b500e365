"""What a run needs: found, created, or an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kubelet.environment.references import ReferenceLookup
from mooring.kubelet.full_views import FullPod
from mooring.kubelet.processes.cgroups import Cgroups
from mooring.kubelet.processes.directories import PodDirectories
from mooring.kubelet.processes.preparation import NotReadyError, Preparation, Prepared, identity_error
from mooring.kubelet.runtime import Waiting
from mooring.kubelet.volumes.manager import VolumeManager
from mooring.kubelet.volumes.mounts import MountAbility
from tests.api_servers import open_loopback_client
from tests.kubelet.full_pods import PLACE, pod_with

SCRATCH: dict[str, Any] = {"volumes": [{"name": "s", "emptyDir": {}}]}
MOUNTED = [{"name": "s", "mountPath": "/scratch"}]


@pytest.mark.parametrize(
    ("of_pod", "of_container", "user", "word"),
    [
        pytest.param({}, {}, 0, "", id="nobody minds"),
        pytest.param({"runAsUser": 7}, {}, 7, "", id="as whom we are"),
        pytest.param({"runAsUser": 7}, {}, 8, "runAsUser 7", id="as somebody else"),
        pytest.param({"runAsUser": 7}, {"runAsUser": 8}, 8, "", id="the container counts before the pod"),
        pytest.param({"runAsNonRoot": True}, {}, 8, "", id="not as root, and we are not"),
        pytest.param({"runAsNonRoot": True}, {}, 0, "runAsNonRoot", id="not as root, but we are"),
        pytest.param({"runAsNonRoot": True}, {"runAsNonRoot": False}, 0, "", id="the container does not mind"),
    ],
)
def test_why_not(of_pod: dict[str, Any], of_container: dict[str, Any], user: int, word: str) -> None:
    pod = pod_with({"securityContext": of_pod}, securityContext=of_container)
    why = identity_error(user, pod, pod.spec.containers[0])
    assert word in why
    assert bool(why) == bool(word)


def prepared(folder: Path, pod: FullPod, ability: MountAbility = MountAbility.NONE, attempts: int = 1) -> Prepared:
    clock = VirtualClock()

    async def main() -> Prepared | NotReadyError:
        async with open_loopback_client(clock) as client:
            directories, volumes = PodDirectories.open(folder), VolumeManager(client, clock, folder)
            references = ReferenceLookup(client)
            preparation = Preparation(directories, Cgroups((), folder), references, volumes, ability, PLACE)
            try:
                main = pod.spec.containers[0]
                return [await preparation.prepare(pod, main, attempt) for attempt in range(attempts)][-1]
            except NotReadyError as error:
                return error
            finally:
                directories.close()

    result = run(main(), clock)
    if isinstance(result, NotReadyError):
        raise result
    return result


@pytest.mark.parametrize(
    ("changes", "fields", "waiting", "event", "can_help"),
    [
        pytest.param({}, {}, "CreateContainerError", "Failed", False, id="no command"),
        pytest.param(
            {}, {"securityContext": {"runAsUser": 4_242}}, "CreateContainerConfigError", "Failed", False, id="as others"
        ),
        pytest.param(
            {},
            {"command": ["x"], "envFrom": [{"configMapRef": {"name": "none"}}]},
            "CreateContainerConfigError",
            "Failed",
            True,
            id="variables that are not there yet",
        ),
        pytest.param(
            {"volumes": [{"name": "c", "configMap": {"name": "none"}}]},
            {"command": ["x"], "volumeMounts": [{"name": "c", "mountPath": "/c"}]},
            None,
            "FailedMount",
            True,
            id="volumes that are not there yet",
        ),
    ],
)
def test_what_is_not_ready(
    tmp_path: Path, changes: dict[str, Any], fields: dict[str, Any], waiting: str | None, event: str, can_help: bool
) -> None:
    with pytest.raises(NotReadyError) as caught:
        prepared(tmp_path, pod_with(changes, **fields))
    told = caught.value.waiting
    assert (told.reason if isinstance(told, Waiting) else None) == waiting
    assert (caught.value.event, caught.value.can_help_to_retry) == (event, can_help)


@pytest.mark.parametrize(
    ("fields", "where"),
    [({}, "uid-1/containers/main/work"), ({"workingDir": "/srv"}, "/srv")],
    ids=["a directory of its own", "the one that it names"],
)
def test_where_it_starts(tmp_path: Path, fields: dict[str, Any], where: str) -> None:
    assert prepared(tmp_path, pod_with(command=["x"], **fields)).directory == str(tmp_path / where)


def test_what_it_has_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_OURS", "secret")
    monkeypatch.setenv("HOME", "/home/of-mooring")
    environment = prepared(tmp_path, pod_with(command=["x"])).wanted.environment
    assert "TOKEN_OF_OURS" not in environment
    assert environment["HOME"] == "/home/of-mooring"
    assert environment["MOORING_CONTAINER"] == str(tmp_path / "uid-1/containers/main")


@pytest.mark.parametrize(
    ("ability", "has_volumes", "is_warned", "is_mounted"),
    [
        (MountAbility.ROOT, True, False, True),
        (MountAbility.ROOT, False, False, True),
        (MountAbility.USER_NAMESPACE, True, False, True),
        (MountAbility.USER_NAMESPACE, False, False, False),
        (MountAbility.NONE, True, True, False),
        (MountAbility.NONE, False, False, False),
    ],
)
def test_where_its_last_words_go(
    tmp_path: Path, ability: MountAbility, has_volumes: bool, is_warned: bool, is_mounted: bool
) -> None:
    fields = {"volumeMounts": MOUNTED} if has_volumes else {}
    found = prepared(tmp_path, pod_with(SCRATCH if has_volumes else {}, command=["x"], **fields), ability)
    assert ("$MOORING_VOLUME_S" in found.warning) is is_warned
    assert any("/dev/termination-log" in word for word in found.wanted.command) is is_mounted
    assert "MOORING_TERMINATION_LOG" in found.wanted.environment


def test_each_attempt_has_a_log_of_its_own(tmp_path: Path) -> None:
    assert prepared(tmp_path, pod_with(command=["x"]), attempts=3).wanted.log.endswith("/2.log")
