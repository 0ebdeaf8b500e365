"""What a run needs: found, created, or an error."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kubelet.processes.cgroups import Cgroups
from mooring.kubelet.processes.directories import PodDirectories
from mooring.kubelet.processes.preparation import ContainerPreparer, NotReadyError, PreparedContainer
from mooring.kubelet.processes.sandboxes import Sandboxes
from mooring.kubelet.processes.security_context import FIRST_ID, HostCapabilities, PodUsers
from mooring.kubelet.processes.shim.sandbox import ROOT, USER_NAMESPACE
from mooring.kubelet.references import ReferenceLookup
from mooring.kubelet.runtime import Waiting
from mooring.kubelet.views import FullPod
from mooring.kubelet.volumes.manager import VolumeManager
from tests.api_servers import open_loopback_client
from tests.kubelet.harness import PLACE, pod_with

SCRATCH: dict[str, Any] = {"volumes": [{"name": "s", "emptyDir": {}}]}
MOUNTED = [{"name": "s", "mountPath": "/scratch"}]


SEPARATE = HostCapabilities(0, 0, ROOT, has_pid_namespaces=True, has_separate_users=True)
NAMESPACES = HostCapabilities(os.getuid(), os.getgid(), USER_NAMESPACE, has_pid_namespaces=True)
NOTHING = HostCapabilities(4_000, 4_000)


def prepared(folder: Path, pod: FullPod, ability: HostCapabilities = NOTHING, attempts: int = 1) -> PreparedContainer:
    clock = VirtualClock()

    async def main() -> PreparedContainer | NotReadyError:
        async with open_loopback_client(clock) as client:
            directories, volumes = PodDirectories.open(folder), VolumeManager(client, clock, folder)
            sandboxes, references = Sandboxes(ability, PodUsers(folder / "users")), ReferenceLookup(client)
            preparation = ContainerPreparer(directories, Cgroups((), folder), references, volumes, sandboxes, PLACE)
            try:
                main = pod.spec.containers[0]
                return [await preparation.prepare(pod, main, attempt) for attempt in range(attempts)][-1]
            except NotReadyError as error:
                return error
            finally:
                directories.close()
                sandboxes.close()

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
            {}, {"securityContext": {"privileged": True}}, "CreateContainerError", "Failed", False, id="with all rights"
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
    reported = caught.value.waiting
    assert (reported.reason if isinstance(reported, Waiting) else None) == waiting
    assert (caught.value.event, caught.value.can_help_to_retry) == (event, can_help)


@pytest.mark.parametrize(
    ("ability", "fields", "where"),
    [
        pytest.param(NOTHING, {}, "uid-1/containers/main/work", id="a directory of its own"),
        pytest.param(NOTHING, {"workingDir": "/srv"}, "/srv", id="the one that it names"),
        pytest.param(NAMESPACES, {}, "/run/mooring/work", id="mounted"),
    ],
)
def test_where_it_starts(tmp_path: Path, ability: HostCapabilities, fields: dict[str, Any], where: str) -> None:
    sandbox = prepared(tmp_path, pod_with(command=["x"], **fields), ability).config.sandbox
    assert sandbox.directory == str(tmp_path / where)


def test_what_it_has_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_OURS", "secret")
    monkeypatch.setenv("HOME", "/home/of-mooring")
    environment = prepared(tmp_path, pod_with(command=["x"])).config.environment
    assert "TOKEN_OF_OURS" not in environment
    assert environment["HOME"] == "/home/of-mooring"
    assert environment["MOORING_CONTAINER"] == str(tmp_path / "uid-1/containers/main")


@pytest.mark.parametrize(("ability", "is_mounted"), [(NAMESPACES, True), (NOTHING, False)])
def test_what_it_finds_where(tmp_path: Path, ability: HostCapabilities, is_mounted: bool) -> None:
    found = prepared(tmp_path, pod_with(SCRATCH, command=["x"], volumeMounts=MOUNTED), ability)
    environment = found.config.environment
    assert ("$MOORING_VOLUME_S" in found.warning) is not is_mounted
    assert (environment["MOORING_VOLUME_S"] == "/scratch") is is_mounted
    assert (environment["MOORING_TERMINATION_LOG"] == "/dev/termination-log") is is_mounted
    targets = [mount.target for mount in found.config.sandbox.mounts]
    assert targets == (["/scratch", "/run/mooring/work", "/dev/termination-log"] if is_mounted else [])


@pytest.mark.parametrize(("ability", "is_mounted"), [(NAMESPACES, True), (NOTHING, False)])
def test_a_variable_names_the_directory_of_the_service_account(
    tmp_path: Path, ability: HostCapabilities, is_mounted: bool
) -> None:
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    pod = pod_with(SCRATCH, command=["x"], volumeMounts=[{"name": "s", "mountPath": path}])
    found = prepared(tmp_path, pod, ability).config.environment["MOORING_SERVICE_ACCOUNT"]
    assert found == (path if is_mounted else str(tmp_path / "uid-1/volumes/s"))


def test_each_attempt_has_a_log_of_its_own(tmp_path: Path) -> None:
    assert prepared(tmp_path, pod_with(command=["x"]), attempts=3).config.log.endswith("/2.log")


if os.getuid() == 0:

    def test_a_pod_with_users_of_its_own(tmp_path: Path) -> None:
        fields = {"securityContext": {"runAsUser": 7, "runAsGroup": 8, "readOnlyRootFilesystem": True}}
        found = prepared(tmp_path, pod_with(SCRATCH, command=["x"], volumeMounts=MOUNTED, **fields), SEPARATE).config
        assert (found.sandbox.user, found.sandbox.group, found.sandbox.sets_user) == (7, 8, True)
        assert found.sandbox.id_map == dict.fromkeys(("uid_map", "gid_map"), f"0 {FIRST_ID} 65536")
        assert found.environment["HOME"] == "/run/mooring/work"
        mounts = {mount.target: (mount.is_read_only, mount.has_mapped_ids) for mount in found.sandbox.mounts}
        assert mounts == {
            "/scratch": (False, True),
            "/run/mooring/work": (False, True),
            "/dev/termination-log": (False, True),
            "/tmp": (True, True),
            "/var/tmp": (True, True),
            "/dev/shm": (False, True),
        }
        own = tmp_path / "uid-1/containers/main"
        assert [(path.stat().st_uid, path.stat().st_gid) for path in (own / "work", own / "termination-log")] == [
            (7, 8)
        ] * 2
        assert tmp_path.stat().st_mode & 0o777 == 0o700
