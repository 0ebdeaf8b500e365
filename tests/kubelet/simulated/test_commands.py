"""Commands that hollow nodes follow, as the timeline of a pod on a node."""

from __future__ import annotations

import pytest

from mooring.kubelet.runtime import Role
from mooring.kubelet.simulated.commands import stage_set_of_command
from mooring.kubelet.simulated.stages import StageState
from tests.kubelet.harness import Body, Play, container, played, pod


def followed(*command: str, role: Role = Role.CONTAINER) -> str:
    """What a command does: seconds that it runs, lines that it logs, and its exit code."""
    stage_set = stage_set_of_command(command[:1], command[1:], role)
    if stage_set is None:
        return "unknown"
    words: list[str] = []
    for stage in stage_set.stages.values():
        words += stage.log
        if stage.state is StageState.RUNNING:
            words.append("endless" if stage.for_s is None else f"{stage.for_s:g}s")
        elif stage.state is StageState.TERMINATED:
            words.append(f"exit {stage.exit_code}")
    return ", ".join(words)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param(["true"], "0.1s, exit 0", id="true"),
        pytest.param(["/bin/false"], "0.1s, exit 1", id="a path"),
        pytest.param(["sleep", "300"], "300s, exit 0", id="sleep"),
        pytest.param(["sleep", "1.5m", "2"], "92s, exit 0", id="several durations with units"),
        pytest.param(["sleep", "infinity"], "endless", id="sleep without end"),
        pytest.param(["sleep", "soon"], "unknown", id="not a duration"),
        pytest.param(["sleep"], "unknown", id="no duration"),
        pytest.param(["echo", "hello", "world"], "hello world, 0.1s, exit 0", id="echo"),
        pytest.param(["echo", "-n", "x"], "unknown", id="an option of echo"),
        pytest.param(["echo", "$(POD)"], "unknown", id="a variable of Kubernetes"),
        pytest.param(["exit", "1"], "unknown", id="no program of that name"),
        pytest.param(["nginx", "-g", "daemon off;"], "unknown", id="another program"),
        pytest.param(["sh", "-c", "exit 3"], "0.1s, exit 3", id="exit"),
        pytest.param(["sh", "-c", "false; exit"], "0.1s, exit 1", id="exit with the last code"),
        pytest.param(["sh", "-c", ""], "0.1s, exit 0", id="an empty script"),
        pytest.param(["/bin/bash", "-c", "sleep 5; exit 1"], "5s, exit 1", id="one after the other"),
        pytest.param(["sh", "-c", "sleep 1\n\tsleep 2\n"], "1s, 2s, exit 0", id="lines"),
        pytest.param(["sh", "-c", "echo a; sleep 1; echo b"], "a, 1s, b, exit 0", id="lines of a log in their time"),
        pytest.param(["sh", "-c", "echo 'a b' \"c\""], "a b c, 0.1s, exit 0", id="quotes"),
        pytest.param(["sh", "-c", "false && sleep 5"], "0.1s, exit 1", id="and, after a failure"),
        pytest.param(["sh", "-c", "true && sleep 5"], "5s, exit 0", id="and, after a success"),
        pytest.param(["sh", "-c", "false || echo no; true"], "no, 0.1s, exit 0", id="or, after a failure"),
        pytest.param(["sh", "-c", "true || sleep 5"], "0.1s, exit 0", id="or, after a success"),
        pytest.param(["sh", "-c", "true || false && exit 4"], "0.1s, exit 4", id="from left to right"),
        pytest.param(["sh", "-c", "exit 300"], "0.1s, exit 44", id="exit codes have eight bits"),
        pytest.param(["sh", "-c", "false && make"], "unknown", id="unknown, also where it would not run"),
        pytest.param(["sh", "-c", "echo ok > /tmp/ok; sleep 1"], "unknown", id="redirections"),
        pytest.param(["sh", "-c", "exit $CODE"], "unknown", id="variables"),
        pytest.param(["sh", "-c", "sleep 5 & exit 1"], "unknown", id="background"),
        pytest.param(["sh", "-c", "echo 'a;b'"], "unknown", id="quoted operators"),
        pytest.param(["sh", "-c", "&& true"], "unknown", id="a syntax error"),
        pytest.param(["sh", "-c", "echo 'a"], "unknown", id="an open quote"),
        pytest.param(["sh", "-c", "true", "name"], "unknown", id="arguments of a script"),
        pytest.param(["sh"], "unknown", id="a shell that reads its input"),
    ],
)
def test_what_a_command_does(command: list[str], expected: str) -> None:
    assert followed(*command) == expected


def test_without_a_command_the_image_decides() -> None:
    assert stage_set_of_command((), ("sleep", "5"), Role.CONTAINER) is None


@pytest.mark.parametrize(
    ("body", "wait_s", "line"),
    [
        pytest.param(
            pod(owner="Job", restartPolicy="Never", containers=[container(command=["sh", "-c", "exit 3"])]),
            *(5.0, "Failed main=terminated:Error(3)"),
            id="a pod of a Job fails",
        ),
        pytest.param(
            pod(owner="Job", restartPolicy="Never", containers=[container(command=["sleep"], args=["60"])]),
            *(50.0, "Running ready main=running"),
            id="a pod of a Job sleeps",
        ),
        pytest.param(
            pod(
                owner="Job",
                restartPolicy="Never",
                annotations={"mooring.dev/run-for": "10s"},
                containers=[container(command=["sleep", "60"])],
            ),
            *(50.0, "Succeeded main=terminated:Completed(0)"),
            id="an annotation overrides the duration",
        ),
        pytest.param(
            pod(containers=[container(command=["false"])]),
            *(5.0, "Running main=waiting:CrashLoopBackOff*1"),
            id="a container that always fails",
        ),
        pytest.param(
            pod(
                restartPolicy="Never",
                initContainers=[container("one", command=["true"]), container("two", command=["false"])],
            ),
            *(5.0, "Failed one=terminated:Completed(0) two=terminated:Error(1) main=waiting:PodInitializing"),
            id="an init container fails",
        ),
        pytest.param(
            pod(containers=[container(readinessProbe={"exec": {"command": ["/bin/false"]}})]),
            *(300.0, "Running main=running:unready"),
            id="a readiness probe that always fails",
        ),
        pytest.param(
            pod(containers=[container(readinessProbe={"exec": {"command": ["cat", "/tmp/ok"]}})]),
            *(5.0, "Running ready main=running"),
            id="a readiness probe that is not known",
        ),
        pytest.param(
            pod(stage_set="service", containers=[container(command=["false"])]),
            *(5.0, "Running ready main=running"),
            id="an annotation names a stage set",
        ),
    ],
)
def test_a_pod_follows_its_commands(body: Body, wait_s: float, line: str) -> None:
    async def story(play: Play) -> None:
        await play.create(body)
        await play.wait(wait_s)
        assert await play.line("web") == line

    played(story)


def test_a_container_is_not_ready_before_its_initial_delay() -> None:
    async def story(play: Play) -> None:
        probe = {"httpGet": {"port": 80}, "initialDelaySeconds": 20}
        await play.create(pod(containers=[container(readinessProbe=probe)]))
        await play.wait(19.0)
        assert await play.line("web") == "Running main=running:unready"
        await play.wait(3.0)
        assert await play.line("web") == "Running ready main=running"

    played(story)


def test_sigterm_ends_a_command_with_143() -> None:
    async def story(play: Play) -> None:
        await play.create(pod(activeDeadlineSeconds=5, containers=[container(command=["sleep", "60"])]))
        await play.wait(10.0)
        assert await play.line("web") == "Failed (DeadlineExceeded) main=terminated:Error(143)"

    played(story)
