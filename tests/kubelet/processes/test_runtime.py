"""Pods of the process runtime, seen through the API: statuses, leftovers, termination."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

from mooring.api.kinds import CONFIG_MAP, CORE_EVENT, NODE
from mooring.kubelet.processes.cgroups import Cgroups, CgroupTree
from mooring.kubelet.processes.sandboxes import HOST as HOST_USERS
from mooring.kubelet.processes.shim.linux import descendants_of
from mooring.store.memory import MemoryStore
from tests.kubelet.harness import Body, container, pod
from tests.kubelet.processes.process_harness import HOST, RealPlay, container_pid, played_for_real, shell_pod
from tests.waiting import LIMIT_S, wait_until

FOREVER = "exec sleep 600"


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def text_of(path: Path) -> str:
    return path.read_text()


def test_a_pod_runs_and_says_where(tmp_path: Path) -> None:
    async def story(play: RealPlay) -> None:
        await play.create(shell_pod("web", f"echo hello; {FOREVER}"))
        await play.wait_line("web", "Running ready main=running")
        status = await play.status("web")
        assert (status["podIP"], status["hostIP"]) == (HOST.address, HOST.address)
        await play.wait_log("web", "hello\n")

    played_for_real(story, tmp_path)


@pytest.mark.parametrize(
    ("script", "line"),
    [
        pytest.param("true", "Succeeded main=terminated:Completed(0)", id="well"),
        pytest.param("exit 3", "Failed main=terminated:Error(3)", id="with a code"),
        pytest.param("kill -KILL $$", "Failed main=terminated:Error(137)", id="by a signal"),
    ],
)
def test_how_a_pod_that_is_not_restarted_ends(tmp_path: Path, script: str, line: str) -> None:
    async def story(play: RealPlay) -> None:
        await play.create(shell_pod("job", script, restartPolicy="Never"))
        await play.wait_line("job", line)

    played_for_real(story, tmp_path)


def test_a_container_that_crashes_is_started_again_and_then_has_to_wait(tmp_path: Path) -> None:
    async def story(play: RealPlay) -> None:
        await play.create(shell_pod("web", "echo run $$; exit 1"))
        await play.wait_line("web", "Running main=waiting:CrashLoopBackOff*")
        (reported,) = (await play.status("web"))["containerStatuses"]
        assert reported["lastState"]["terminated"]["exitCode"] == 1
        assert (await play.log("web")).startswith("run ")

    played_for_real(story, tmp_path)


def test_a_killed_process_is_noticed_and_replaced(tmp_path: Path) -> None:
    async def story(play: RealPlay) -> None:
        await play.create(shell_pod("web", f"date +%s%N; {FOREVER}"))
        await play.wait_line("web", "Running ready main=running")
        await play.wait_log("web", "\n")
        first = await play.log("web")
        os.kill(container_pid(tmp_path), signal.SIGKILL)
        await play.wait_line("web", "Running ready main=running*1")
        await play.wait_log("web", "\n")
        assert await play.log("web") != first
        assert await play.log("web", is_previous=True) == first

    played_for_real(story, tmp_path)


@pytest.mark.parametrize(
    ("command", "line", "words"),
    [
        pytest.param(
            ["/nonexistent"], "* main=waiting:RunContainerError", "stat /nonexistent: no such file", id="no such file"
        ),
        pytest.param(["/etc"], "* main=waiting:RunContainerError", "is a directory", id="a directory"),
        pytest.param([], "* main=waiting:CreateContainerError", "has no command", id="nothing but an image"),
    ],
)
def test_what_cannot_be_started_says_why(tmp_path: Path, command: list[str], line: str, words: str) -> None:
    async def story(play: RealPlay) -> None:
        await play.create(pod("web", on=HOST.name, containers=[container(command=command)]))
        await play.wait_line("web", line)
        (reported,) = (await play.status("web"))["containerStatuses"]
        assert words in reported["state"]["waiting"]["message"]
        if command:
            ended = reported["lastState"]["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
        await play.delete("web")
        await play.wait_line("web", "gone")

    played_for_real(story, tmp_path)


def test_what_never_could_be_started_and_is_not_tried_again_has_failed(tmp_path: Path) -> None:
    async def story(play: RealPlay) -> None:
        await play.create(pod("job", on=HOST.name, containers=[container(command=["/no"])], restartPolicy="Never"))
        await play.wait_line("job", "Failed main=terminated:StartError(128)")

    played_for_real(story, tmp_path)


@pytest.mark.parametrize(
    ("script", "grace_s", "said"),
    [
        pytest.param(
            "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done", 180, "bye", id="it is asked first"
        ),
        pytest.param("trap '' TERM; echo up; while :; do sleep 0.05; done", 1, "up", id="and killed after the grace"),
    ],
)
def test_a_pod_that_is_deleted_ends(tmp_path: Path, script: str, grace_s: int, said: str) -> None:
    async def story(play: RealPlay) -> None:
        script_then = f"{script}; echo up; while :; do sleep 0.05; done"
        await play.create(shell_pod("web", script_then, terminationGracePeriodSeconds=grace_s))
        await play.wait_line("web", "Running ready main=running")
        await play.wait_log("web", "up\n")
        log = only(tmp_path, "*/containers/main/0.log")
        with log.open() as opened:
            await play.delete("web")
            await play.wait_line("web", "gone")
            assert said in opened.read()
        while (tmp_path / log.parts[-4]).exists():
            await play.wait(0.05)

    played_for_real(story, tmp_path)


def test_hooks_run_beside_the_process(tmp_path: Path) -> None:
    async def story(play: RealPlay) -> None:
        lifecycle = {
            "postStart": {"exec": {"command": ["/bin/sh", "-c", "echo started > $FOLDER/started"]}},
            "preStop": {"exec": {"command": ["/bin/sh", "-c", "echo stopped > $FOLDER/stopped"]}},
        }
        fields = {"lifecycle": lifecycle, "env": [{"name": "FOLDER", "value": str(tmp_path)}]}
        await play.create(shell_pod("web", FOREVER, fields=fields))
        while not (tmp_path / "started").exists():
            await play.wait(0.05)
        await play.delete("web")
        await play.wait_line("web", "gone")
        assert (tmp_path / "stopped").read_text() == "stopped\n"

    played_for_real(story, tmp_path / "pods", pod_users=HOST_USERS)


def test_a_start_hook_that_fails_ends_the_container(tmp_path: Path) -> None:
    async def story(play: RealPlay) -> None:
        lifecycle = {"postStart": {"exec": {"command": ["/bin/false"]}}}
        await play.create(shell_pod("job", FOREVER, fields={"lifecycle": lifecycle}, restartPolicy="Never"))
        await play.wait_line("job", "Failed main=terminated:Error(143)")

    played_for_real(story, tmp_path)


@pytest.mark.parametrize(
    ("policy", "script"),
    [
        pytest.param("File", "echo -n why > $MOORING_TERMINATION_LOG; exit 1", id="as it writes them"),
        pytest.param("FallbackToLogsOnError", "echo -n why >&2; exit 1", id="or the end of its log"),
    ],
)
def test_the_last_words_are_in_the_status(tmp_path: Path, policy: str, script: str) -> None:
    async def story(play: RealPlay) -> None:
        fields = {"terminationMessagePolicy": policy}
        await play.create(shell_pod("job", script, fields=fields, restartPolicy="Never"))
        await play.wait_line("job", "Failed main=terminated:Error(1)")
        (reported,) = (await play.status("job"))["containerStatuses"]
        assert reported["state"]["terminated"]["message"].strip() == "why"

    played_for_real(story, tmp_path)


def test_a_container_that_does_not_answer_is_killed_and_one_that_is_not_ready_waits(tmp_path: Path) -> None:
    async def story(play: RealPlay) -> None:
        often = {"periodSeconds": 1, "timeoutSeconds": int(LIMIT_S)}
        probe = {**often, "failureThreshold": 1, "exec": {"command": ["/bin/sh", "-c", "test ! -e sick"]}}
        ready = {**often, "exec": {"command": ["/bin/sh", "-c", "test -e ready"]}}
        fields = {"livenessProbe": probe, "readinessProbe": ready}
        # Only what starts again gets well: the first run may be seen before it has done anything.
        script = f"test -e begun && rm -f sick; touch begun; {FOREVER}"
        await play.create(shell_pod("web", script, fields=fields))
        await play.wait_line("web", "Running main=running:unready")
        work = only(tmp_path, "*/containers/main/work")
        (work / "ready").touch()
        await play.wait_line("web", "Running ready main=running")
        (work / "sick").touch()
        await play.wait_line("web", "* main=running**1")

    played_for_real(story, tmp_path)


def test_a_new_kubelet_restarts_pods_and_keeps_their_logs(tmp_path: Path) -> None:
    store = MemoryStore()

    async def first(play: RealPlay) -> None:
        await play.create(shell_pod("web", f"echo first $$; {FOREVER}"))
        await play.create(shell_pod("other", FOREVER))
        await play.wait_line("web", "Running ready main=running")
        await play.wait_line("other", "Running ready main=running")
        await play.wait_log("web", "first")

    async def second(play: RealPlay) -> None:
        await play.wait_line("web", "Running ready main=running*1")
        (reported,) = (await play.status("web"))["containerStatuses"]
        ended = reported["lastState"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (255, "Unknown")
        assert (await play.log("web", is_previous=True)).startswith("first")

    played_for_real(first, tmp_path, store)
    uids = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert len(uids) == 2
    (tmp_path / "pod-that-is-gone").mkdir()
    played_for_real(second, tmp_path, store)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == sorted(uids)


def test_nothing_runs_when_it_has_ended(tmp_path: Path) -> None:
    pids: list[int] = []

    async def story(play: RealPlay) -> None:
        await play.create(shell_pod("web", f"trap '' TERM; setsid sleep 600 & echo up; wait; {FOREVER}"))
        await play.wait_line("web", "Running ready main=running")
        await play.wait_log("web", "up\n")
        first = container_pid(tmp_path)
        pids.extend((first, *descendants_of(first)))

    played_for_real(story, tmp_path)
    assert len(pids) >= 2
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


@pytest.mark.parametrize(
    ("needs", "line"),
    [
        pytest.param(
            {"envFrom": [{"configMapRef": {"name": "settings"}}]},
            "Pending main=waiting:CreateContainerConfigError",
            id="a variable",
        ),
        pytest.param(
            {"volumeMounts": [{"name": "settings", "mountPath": "/etc/settings"}]},
            "Pending main=waiting:ContainerCreating",
            id="a volume",
        ),
    ],
)
def test_a_container_waits_for_what_it_needs(tmp_path: Path, needs: Body, line: str) -> None:
    async def story(play: RealPlay) -> None:
        volumes = [{"name": "settings", "configMap": {"name": "settings"}}]
        await play.create(shell_pod("web", FOREVER, fields=needs, volumes=volumes if "volumeMounts" in needs else []))
        await play.wait_line("web", line)
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}
        await play.client.create(CONFIG_MAP, "default", config_map)
        await play.wait_line("web", "Running ready main=running")

    played_for_real(story, tmp_path)


def test_init_containers_and_sidecars_come_in_their_order(tmp_path: Path) -> None:
    async def story(play: RealPlay) -> None:
        def said(word: str) -> list[str]:
            return ["/bin/sh", "-c", f"echo {word} >> {tmp_path}/said; test {word} = init || exec sleep 600"]

        first = container("first", command=said("init"))
        helper = container("helper", command=said("sidecar"), restartPolicy="Always")
        main = container(command=said("main"))
        body = pod("web", on=HOST.name, initContainers=[first, helper], containers=[main])
        await play.create({**body, "spec": {**body["spec"], "terminationGracePeriodSeconds": 60}})
        await play.wait_line("web", "Running ready first=terminated:Completed(0) helper=running main=running")
        while len(words := text_of(tmp_path / "said").split()) < 3:
            await play.wait(0.05)
        assert words == ["init", "sidecar", "main"]

    played_for_real(story, tmp_path / "pods", pod_users=HOST_USERS)


def test_pods_of_other_nodes_do_not_run_on_this_machine(tmp_path: Path) -> None:
    async def story(play: RealPlay) -> None:
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "other", "annotations": {"mooring.dev/simulated": "true"}},
            "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "10"}},
        }
        await play.client.create(NODE, "", node)
        body = shell_pod("stranger", FOREVER)
        await play.create({**body, "spec": {**body["spec"], "nodeName": "other"}})
        await play.create(shell_pod("ours", FOREVER))
        await play.wait_line("ours", "Running ready main=running")
        assert await play.line("stranger") == "Pending"

    played_for_real(story, tmp_path)


def test_limits_that_cannot_be_set_are_an_event_of_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mooring.kubelet.processes.runtime.find_cgroups", lambda directory: Cgroups((), directory))

    async def story(play: RealPlay) -> None:
        while not (events := (await play.client.list(CORE_EVENT)).items):
            await play.wait(0.05)
        reported = msgspec.json.decode(events[0])
        assert (reported["involvedObject"]["kind"], reported["involvedObject"]["name"]) == ("Node", HOST.name)
        assert (reported["type"], reported["reason"]) == ("Warning", "LimitsNotEnforced")
        assert reported["message"].startswith("limits of memory and cpu are not enforced")

    played_for_real(story, tmp_path)


def test_a_resize_in_place_changes_the_limits_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = CgroupTree(tmp_path / "cpu", False, ("cpu",))
    tree.place.mkdir()
    monkeypatch.setattr("mooring.kubelet.processes.runtime.find_cgroups", lambda directory: Cgroups([tree], directory))

    def limits(cpu: str) -> Body:
        return {"limits": {"cpu": cpu}}

    async def story(play: RealPlay) -> None:
        await play.create(shell_pod("web", "exec sleep 600", fields={"resources": limits("100m")}))
        await play.wait_line("web", "Running ready main=running")
        (quota,) = tree.place.glob("*/*_main_0/cpu.cfs_quota_us")
        assert quota.read_text() == "10000"
        resized = {"spec": {"containers": [{"name": "main", "resources": limits("1500m")}]}}
        await play.change("web", resized, subresource="resize")
        while quota.read_text() != "150000":
            await play.wait(0.05)
        assert (await play.status("web"))["containerStatuses"][0]["restartCount"] == 0

    played_for_real(story, tmp_path / "pods")
