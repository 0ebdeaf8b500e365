"""Pods in their sandboxes, seen through the API: as root with users of their own, and as a user without rights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mooring.api.kinds import CORE_EVENT, SECRET
from mooring.kit.loop import run_real
from mooring.kubelet.processes import sandboxes as sandboxes_module
from mooring.kubelet.processes.sandboxes import HOST, SEPARATE, PodUsersError, Sandboxes
from mooring.kubelet.processes.security_context import HostCapabilities, PodUsers, ProcessIdentity
from mooring.kubelet.processes.shim.sandbox import NONE, ROOT, USER_NAMESPACE
from tests.kubelet.processes.process_harness import RealPlay, container_pid, played_for_real, shell_pod

NOBODY = 65534
FOREVER = "exec sleep 600"
ROOT_DIRECTORY = Path(__file__).parents[3]
ALLOWED = {
    "runAsUser": 1000,
    "runAsGroup": 3000,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def opened(folder: Path, pod_users: str = "") -> HostCapabilities:
    async def main() -> HostCapabilities:
        found = await Sandboxes.open(pod_users, folder)
        found.close()
        return found.ability

    return run_real(main())


def test_what_is_possible_is_found_out_by_trying(tmp_path: Path) -> None:
    found = opened(tmp_path)
    assert (found.user, found.group) == (os.getuid(), os.getgid())
    assert found.has_separate_users is (os.getuid() == 0)
    assert list(tmp_path.iterdir()) == []
    assert not opened(tmp_path, HOST).has_separate_users


@pytest.mark.parametrize(
    ("user", "pod_users", "works", "wanted"),
    [
        pytest.param(0, HOST, {(ROOT, True), (ROOT, False)}, HostCapabilities(0, 0, ROOT, True), id="root"),
        pytest.param(0, HOST, {(ROOT, False)}, HostCapabilities(0, 0, ROOT), id="without /proc"),
        pytest.param(0, HOST, set(), HostCapabilities(0, 0, NONE), id="root who may not"),
        pytest.param(7, "", {(USER_NAMESPACE, True)}, HostCapabilities(7, 0, USER_NAMESPACE, True), id="a user"),
        pytest.param(7, "", set(), HostCapabilities(7, 0, NONE), id="a user who may not"),
        pytest.param(0, "", {(ROOT, True)}, HostCapabilities(0, 0, ROOT, True, True), id="separate by default"),
        pytest.param(0, "", set(), "--pod-users host runs them as root", id="separate, but that is impossible"),
        pytest.param(7, SEPARATE, set(), "--pod-users separate needs root", id="a user has no ids to give"),
    ],
)
def test_the_best_way_is_taken(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    user: int,
    pod_users: str,
    works: set[tuple[str, bool]],
    wanted: HostCapabilities | str,
) -> None:
    async def attempt(sandboxes: Sandboxes, directory: Path) -> str:
        ability = sandboxes.ability
        return "" if (ability.level, ability.has_pid_namespaces) in works else "operation not permitted"

    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "getegid", lambda: 0)
    monkeypatch.setattr(sandboxes_module, "_try", attempt)
    monkeypatch.setattr(sandboxes_module, "_open_users", lambda: PodUsers(tmp_path / "lock"))
    if isinstance(wanted, HostCapabilities):
        assert opened(tmp_path, pod_users) == wanted
        return
    with pytest.raises(PodUsersError, match=wanted):
        opened(tmp_path, pod_users)


def test_what_cannot_be_honoured_is_seen_in_the_status_and_as_an_event(tmp_path: Path) -> None:
    async def story(play: RealPlay) -> None:
        context = {"seLinuxOptions": {"level": "s0"}}
        await play.create(shell_pod("web", FOREVER, fields={"securityContext": context}))
        await play.wait_line("web", "Pending main=waiting:CreateContainerError")
        (reported,) = (await play.status("web"))["containerStatuses"]
        assert "seLinuxOptions" in reported["state"]["waiting"]["message"]
        while not (events := (await play.client.list(CORE_EVENT)).items):
            await play.wait(0.05)
        assert msgspec.json.decode(events[0])["reason"] == "Failed"

    played_for_real(story, tmp_path)


async def _secret(play: RealPlay) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": "c2VjcmV0"}}
    await play.client.create(SECRET, "default", secret)


def pod_of(name: str, script: str, *, group: int | None = 2000, mode: int = 0o400, **container: Any) -> dict[str, Any]:
    volumes = [{"name": "s", "secret": {"secretName": "s", "defaultMode": mode}}, {"name": "e", "emptyDir": {}}]
    mounts = [{"name": "s", "mountPath": "/secret"}, {"name": "e", "mountPath": "/scratch"}]
    context = {"fsGroup": group} if group is not None else {}
    fields = {"volumeMounts": mounts, **container}
    return shell_pod(name, script, fields=fields, volumes=volumes, securityContext=context, restartPolicy="Never")


if os.getuid() == 0:

    def test_a_pod_honours_its_security_context(tmp_path: Path) -> None:
        async def story(play: RealPlay) -> None:
            await _secret(play)
            script = (
                "id -u; id -g; id -G; cat /secret/password; echo; echo x > /scratch/x; stat -c '%u %g' /scratch/x; "
                "touch /tmp/x 2>&1; grep -E 'CapBnd|NoNew' /proc/self/status; "
                "touch /dev/shm/x && printf bye > /dev/termination-log"
            )
            await play.create(pod_of("web", script, securityContext=ALLOWED))
            await play.wait_line("web", "Succeeded main=terminated:Completed(0)")
            assert (await play.log("web")).splitlines() == [
                *("1000", "3000", "3000 2000", "secret", "1000 2000"),
                "touch: cannot touch '/tmp/x': Read-only file system",
                *("CapBnd:\t0000000000000000", "NoNewPrivs:\t1"),
            ]
            (reported,) = (await play.status("web"))["containerStatuses"]
            assert reported["state"]["terminated"]["message"] == "bye"

        played_for_real(story, tmp_path)

    def test_a_secret_of_root_is_not_for_another_user_without_the_group(tmp_path: Path) -> None:
        async def story(play: RealPlay) -> None:
            await _secret(play)
            await play.create(pod_of("web", "cat /secret/password", group=None, securityContext={"runAsUser": 1000}))
            await play.wait_line("web", "Failed main=terminated:Error(1)")
            assert "Permission denied" in await play.log("web")

        played_for_real(story, tmp_path)

    def test_pods_reach_neither_each_other_nor_the_host(tmp_path: Path) -> None:
        async def story(play: RealPlay) -> None:
            await _secret(play)
            await play.create(pod_of("victim", f"touch /tmp/mine; {FOREVER}", mode=0o444))
            await play.wait_line("victim", "Running ready main=running")
            uid = (await play.pod("victim"))["metadata"]["uid"]
            pid = container_pid(tmp_path, uid)
            script = (
                f"cat {tmp_path}/{uid}/volumes/s/password; ls {tmp_path}; cat /etc/shadow; kill -9 {pid}; ls /tmp; "
                f"cat /proc/{pid}/root/etc/passwd; cat /proc/self/uid_map"
            )
            await play.create(pod_of("thief", f"({script}) 2>&1"))
            await play.wait_line("thief", "Succeeded*")
            output = await play.log("thief")
            assert output.count("Permission denied") + output.count("No such file") == 4, output
            assert "No such process" in output
            assert "secret" not in output.replace("/secret", "").replace("volumes/s", "")
            first = Path(f"/proc/{pid}/task/{pid}/children")
            assert await _first_id(first) != output.split()[-2]

        played_for_real(story, tmp_path)

    async def _first_id(children: Path) -> str:
        (child,) = children.read_text().split()  # noqa: ASYNC240 - a file of the kernel
        return Path(f"/proc/{child}/uid_map").read_text().split()[1]  # noqa: ASYNC240

    def test_probes_and_hooks_run_as_the_user_of_the_pod(tmp_path: Path) -> None:
        async def story(play: RealPlay) -> None:
            probe = {"exec": {"command": ["sh", "-c", "id -u > /scratch/probe"]}, "periodSeconds": 1}
            hook = {"postStart": {"exec": {"command": ["sh", "-c", "id -u > /scratch/hook"]}}}
            fields: dict[str, Any] = {
                "readinessProbe": probe,
                "lifecycle": hook,
                "securityContext": {"runAsUser": 1000},
            }
            await _secret(play)
            body = pod_of("web", FOREVER, **fields)
            await play.create(body)
            await play.wait_line("web", "Running ready main=running")
            uid = (await play.pod("web"))["metadata"]["uid"]
            for name in ("probe", "hook"):
                path = tmp_path / uid / "volumes/e" / name
                while not path.exists() or path.read_text() != "1000\n":
                    await play.wait(0.05)

        played_for_real(story, tmp_path)

    def test_a_user_of_the_host_if_that_is_wanted(tmp_path: Path) -> None:
        async def story(play: RealPlay) -> None:
            context = {"runAsUser": NOBODY, "runAsGroup": 7, "capabilities": {"add": ["NET_ADMIN"]}}
            script = "id -u; id -g; cat /proc/self/uid_map; pwd; touch x"
            await play.create(shell_pod("job", script, fields={"securityContext": context}, restartPolicy="Never"))
            await play.wait_line("job", "Succeeded*")
            assert (await play.log("job")).split() == [str(NOBODY), "7", "0", "0", "4294967295", "/run/mooring/work"]

        played_for_real(story, tmp_path, pod_users=HOST)


_AS_USER = """
import json, sys
from pathlib import Path
from tests.kubelet.processes.process_harness import played_for_real, shell_pod

body, folder, found = json.loads(sys.argv[1]), Path(sys.argv[2]), []

async def story(play):
    await play.create(shell_pod("job", body["script"], fields=body["fields"], restartPolicy="Never", **body["spec"]))
    await play.wait_line("job", body["line"])
    if "terminated" in body["line"]:
        found.append(await play.log("job"))
    else:
        (reported,) = (await play.status("job"))["containerStatuses"]
        found.append(reported["state"]["waiting"]["message"])

played_for_real(story, folder)
print(json.dumps(found[0]))
"""


def as_user(folder: Path, line: str, script: str, fields: dict[str, Any], spec: dict[str, Any]) -> str:
    """The log, or the message, of a pod of a user without rights."""
    body = json.dumps({"line": line, "script": script, "fields": fields, "spec": spec})
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    work = folder / "of-user"
    work.mkdir()
    if user:
        os.chown(work, NOBODY, NOBODY)
        for parent in (folder, *folder.parents):
            if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o011)
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(work), "PYTHONPATH": str(ROOT_DIRECTORY)}
    command = [sys.executable, "-c", _AS_USER, body, str(work / "pods")]
    ended = subprocess.run(  # type: ignore[call-overload]
        command, env=environment, cwd=ROOT_DIRECTORY, capture_output=True, text=True, check=False, **user
    )
    assert ended.returncode == 0, ended.stderr
    assert [path.name for path in (work / "pods").glob("lock")] == ["lock"]
    return str(json.loads(ended.stdout.splitlines()[-1]))


def can_run_as_user() -> bool:
    """Whether a user without rights can run this Python: not if the project is in a directory that only root enters."""
    if os.getuid() != 0:
        return True
    command = [sys.executable, "-c", "import tests.kubelet.processes.process_harness"]
    environment = {"PYTHONPATH": str(ROOT_DIRECTORY)}
    return (
        subprocess.run(command, env=environment, user=NOBODY, group=NOBODY, check=False, capture_output=True).returncode
        == 0
    )


if can_run_as_user():

    def test_a_user_without_rights_runs_pods_with_another_id_in_a_namespace(tmp_path: Path) -> None:
        commands = ("id -u", "id -g", "pwd", "cat /proc/1/comm | wc -l", "touch /scratch/x && ls /scratch")
        script = "; ".join((*commands, "touch x && ls", "touch /usr/x 2>&1"))
        fields = {"securityContext": ALLOWED, "volumeMounts": [{"name": "e", "mountPath": "/scratch"}]}
        spec = {"volumes": [{"name": "e", "emptyDir": {}}]}
        output = as_user(tmp_path, "Failed main=terminated:Error(1)", script, fields, spec)
        assert output.split("\n")[:6] == ["1000", "3000", "/run/mooring/work", "1", "x", "x"]
        assert "Read-only file system" in output

    def test_a_user_without_rights_cannot_give_groups(tmp_path: Path) -> None:
        spec = {"securityContext": {"supplementalGroups": [7]}}
        message = as_user(tmp_path, "Pending main=waiting:CreateContainerConfigError", FOREVER, {}, spec)
        assert "who can have one group only" in message


@pytest.mark.parametrize(
    ("ability", "user", "sets_user"),
    [
        pytest.param(HostCapabilities(0, 0, ROOT), 0, True, id="root"),
        pytest.param(HostCapabilities(0, 0), 0, False, id="root without rights stays what it is"),
        pytest.param(HostCapabilities(0, 0), 7, True, id="unless the container asks for another user"),
        pytest.param(HostCapabilities(7, 7, USER_NAMESPACE), 9, False, id="the map of the namespace does it"),
    ],
)
def test_the_user_of_a_container(ability: HostCapabilities, user: int, sets_user: bool) -> None:
    sandbox = Sandboxes(ability, None).sandbox("uid", ProcessIdentity(user, ability.group), "/", ())
    assert (sandbox.sets_user, sandbox.user) == (sets_user, user)
