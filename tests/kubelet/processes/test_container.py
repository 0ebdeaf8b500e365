"""One container over its runs: reported states, hooks, stopping. With real processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mooring.client.events import EventType
from mooring.kit.clock import SystemClock, VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.probes.handlers import CommandError, CommandResult, CommandTimeout
from mooring.kubelet.probes.prober import Prober
from mooring.kubelet.processes.container import (
    FALLBACK_POLICY,
    ContainerContext,
    HookError,
    ProcessContainer,
    run_hook,
    termination_message,
)
from mooring.kubelet.processes.directories import PodDirectories
from mooring.kubelet.processes.preparation import ContainerPreparer, NotReadyError, PreparedContainer
from mooring.kubelet.processes.shim.client import ShimConfig
from mooring.kubelet.runtime import ContainerState, Exited, Role, Running, Waiting
from mooring.kubelet.timers import Timers
from mooring.kubelet.views import FullContainer, FullPod, KubeletPod
from tests.kubelet.harness import container_with, pod_with
from tests.kubelet.processes.shim.test_program import is_alive, played, wait_gone, wait_written
from tests.waiting import LIMIT_S

FILE_POLICY = "File"
FOREVER = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.02; done"
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.02; done"
LOOK_S = 0.01


def log(*texts: str) -> str:
    return "".join(f"2026-01-01T00:00:00.000000000Z stderr F {text}\n" for text in texts)


@pytest.mark.parametrize(
    ("words", "written", "policy", "code", "message"),
    [
        pytest.param("bye", "", FILE_POLICY, 1, "bye", id="what it wrote"),
        pytest.param("bye", "", FILE_POLICY, 0, "bye", id="also when all is well"),
        pytest.param("", log("oops"), FILE_POLICY, 1, "", id="nothing"),
        pytest.param("", log("a", "b"), FALLBACK_POLICY, 1, "a\nb\n", id="the end of its log"),
        pytest.param("", log("a"), FALLBACK_POLICY, 0, "", id="its log only if it failed"),
        pytest.param("bye", log("a"), FALLBACK_POLICY, 1, "bye", id="its words before its log"),
        pytest.param("x" * 5000, "", FILE_POLICY, 1, "x" * 4096, id="not too many words"),
        pytest.param(
            "", log(*map(str, range(100))), FALLBACK_POLICY, 1, "".join(f"{n}\n" for n in range(20, 100)), id="80 lines"
        ),
        pytest.param("", log("x" * 3000), FALLBACK_POLICY, 1, "x" * 2047 + "\n", id="2,048 bytes"),
    ],
)
def test_the_termination_message(
    tmp_path: Path, words: str, written: str, policy: str, code: int, message: str
) -> None:
    (tmp_path / "words").write_text(words)
    (tmp_path / "0.log").write_text(written)
    assert termination_message(tmp_path / "words", tmp_path / "0.log", policy, code) == message


def test_files_that_are_not_there_say_nothing(tmp_path: Path) -> None:
    assert termination_message(tmp_path / "words", tmp_path / "0.log", FALLBACK_POLICY, 1) == ""


async def run_command(argv: tuple[str, ...], timeout_s: float) -> CommandResult:
    match argv[0]:
        case "late":
            raise CommandTimeout
        case "none":
            raise CommandError("no such program")
    return CommandResult(int(argv[1]), b"said")


def hooked(handler: dict[str, Any], s_max: float = 10.0) -> float:
    """How long it took."""
    clock = VirtualClock()
    container = container_with(lifecycle={"preStop": handler})
    assert container.lifecycle is not None
    assert container.lifecycle.pre_stop is not None
    run(run_hook(container.lifecycle.pre_stop, container, "127.0.0.1", run_command, clock, s_max), clock)
    return clock.now_s()


@pytest.mark.parametrize(
    ("handler", "took_s"),
    [
        pytest.param({"exec": {"command": ["end", "0"]}}, 0.0, id="a command that goes well"),
        pytest.param({"sleep": {"seconds": 4}}, 4.0, id="a sleep"),
        pytest.param({"sleep": {"seconds": 40}}, 10.0, id="not longer than there is time"),
        pytest.param({"tcpSocket": {"port": 1}}, 0.0, id="an unsupported hook"),
    ],
)
def test_what_goes_well(handler: dict[str, Any], took_s: float) -> None:
    assert hooked(handler) == took_s


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        pytest.param({"exec": {"command": ["end", "3"]}}, "exit code 3: said", id="a code"),
        pytest.param({"exec": {"command": ["late"]}}, "longer than 10 s", id="too late"),
        pytest.param({"exec": {"command": ["none"]}}, "no such program", id="no program"),
        pytest.param({"httpGet": {"port": "unknown"}}, "invalid syntax", id="no port of that name"),
    ],
)
def test_what_does_not(handler: dict[str, Any], words: str) -> None:
    with pytest.raises(HookError, match=words):
        hooked(handler)


class Prepares(ContainerPreparer):
    """Has a shell ready, or says in this order what is missing; remembers who was alive when it was asked."""

    def __init__(self, directories: PodDirectories, script: str, missing: list[Exception]) -> None:
        self._directories = directories
        self._script = script
        self._missing = missing
        self.alive_when_asked: list[list[int]] = []
        self.pids: list[int] = []

    async def prepare(self, pod: FullPod, container: FullContainer, attempt: int) -> PreparedContainer:
        self.alive_when_asked.append([pid for pid in self.pids if is_alive(pid)])
        if self._missing:
            raise self._missing.pop(0)
        uid, name, directories = pod.metadata.uid, container.name, self._directories
        directories.make_container(uid, name, attempt)
        log, record = directories.log(uid, name, attempt), directories.record(uid, name)
        command = ["/bin/sh", "-c", self._script]
        return PreparedContainer(ShimConfig(command, {"PATH": "/usr/bin:/bin"}, str(log), str(record)))


class Nobody:
    """Runs no probes."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError("nothing is probed here")


class Stage:
    """A container, and the states that were reported."""

    def __init__(self, group: TaskGroup, folder: Path, script: str, missing: list[Exception]) -> None:
        clock = SystemClock()
        self._clock = clock
        self._directories = PodDirectories.open(folder / "pods")
        self.preparation = Prepares(self._directories, script, missing)
        self.reported: list[tuple[int, ContainerState]] = []
        self.events: list[tuple[str, str]] = []
        self.when_told: Callable[[ContainerState], None] = lambda state: None
        prober = Prober(clock, Nobody(), Nobody())  # type: ignore[arg-type]
        prober.start(group)
        pod = pod_with()
        context = ContainerContext(
            clock=clock,
            timers=Timers(clock),
            directories=self._directories,
            preparation=self.preparation,
            prober=prober,
            group=group,
            address="127.0.0.1",
            report_state=self._tell,
            record_event=self._record_event,
        )
        self.container = ProcessContainer(pod, pod.spec.containers[0], Role.CONTAINER, context)

    async def start(self, attempt: int = 0) -> int:
        """Starts it, and waits until it has said that it is ready; its process."""
        self.container.start(attempt)
        await self.wait_told(Running)
        uid, name = self.container.pod.metadata.uid, self.container.container.name
        log, record = self._directories.log(uid, name, attempt), self._directories.record(uid, name)
        while "ready" not in log.read_text():
            await self._clock.wait(LOOK_S)
        pid = int(msgspec.json.decode(record.read_bytes())["pid"])
        self.preparation.pids += [pid, parent_of(pid)]
        return pid

    async def wait_told(self, kind: type[ContainerState], count: int = 1) -> None:
        while sum(isinstance(state, kind) for _, state in self.reported) < count:
            await self._clock.wait(LOOK_S)

    def close(self) -> None:
        self._directories.close()

    @property
    def lines(self) -> list[str]:
        return [f"{attempt} {_words(state)}" for attempt, state in self.reported]

    def _tell(self, pod_uid: str, container: str, attempt: int, state: ContainerState) -> None:
        self.reported.append((attempt, state))
        self.when_told(state)

    def _record_event(self, pod: KubeletPod, type: EventType, reason: str, note: str) -> None:
        self.events.append((reason, note))


def _words(state: ContainerState) -> str:
    match state:
        case Waiting():
            return f"waiting {state.reason}"
        case Running():
            return "running"
        case Exited():
            return f"exited {state.code} {state.reason}"


def parent_of(pid: int) -> int:
    """Whose child it is: its shim's."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def play(
    folder: Path, story: Callable[[Stage], Awaitable[None]], script: str = FOREVER, missing: tuple[Exception, ...] = ()
) -> None:
    async def staged() -> None:
        async with TaskGroup("containers") as group:
            stage = Stage(group, folder, script, list(missing))
            try:
                await story(stage)
            finally:
                stage.container.kill()
                await stage.container.wait_ended()
                stage.close()

    played(staged)


@pytest.mark.parametrize(
    ("script", "end"),
    [
        pytest.param("true", "exited 0 Completed", id="well"),
        pytest.param("exit 3", "exited 3 Error", id="badly"),
        pytest.param("kill -KILL $$", "exited 137 Error", id="killed"),
    ],
)
def test_a_run_is_reported_from_its_beginning_to_its_end(tmp_path: Path, script: str, end: str) -> None:
    async def story(stage: Stage) -> None:
        stage.container.start(4)
        await stage.container.wait_ended()
        assert stage.lines == ["4 running", f"4 {end}"]
        (_, running), (_, exited) = stage.reported
        assert isinstance(running, Running)
        assert isinstance(exited, Exited)
        assert exited.started_s == running.started_s <= exited.finished_s
        assert not stage.container.is_running(4)

    play(tmp_path, story, script)


# --- 1. The next run begins after the last one is through -------------------------------------------------------------


def test_the_next_run_begins_after_the_last_one_is_through_with_everything(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        def again(state: ContainerState) -> None:
            if stage.lines[-1] == "0 exited 5 Error":
                stage.container.start(1)

        stage.when_told = again
        pid = await stage.start()
        stage.container.stop(LIMIT_S)
        await stage.wait_told(Running, 2)
        assert stage.lines == ["0 running", "0 exited 5 Error", "1 running"]
        assert stage.preparation.alive_when_asked == [[], []], f"{pid} and its shim were gone before the next came"
        assert stage.container.is_running(1)
        assert not stage.container.is_running(0)

    play(tmp_path, story)


# --- 2. A container that is stopped before it runs --------------------------------------------------------------------

MISSING = NotReadyError(Waiting("CreateContainerConfigError", "no map"), "Failed", "Error: no map")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mooring.kubelet.processes.container.RETRY_S_MIN", 0.01)


@pytest.mark.usefixtures("impatient")
def test_a_container_that_is_stopped_before_it_runs_is_not_reported(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.container.start(0)
        await stage.wait_told(Waiting)
        stage.container.stop(LIMIT_S)
        await stage.container.wait_ended()
        assert stage.lines == ["0 waiting CreateContainerConfigError"]

    play(tmp_path, story, missing=(MISSING,) * 100)


@pytest.mark.usefixtures("impatient")
def test_a_missing_object_is_reported_once_and_the_pod_runs_when_it_exists(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.container.start(0)
        await stage.container.wait_ended()
        assert len(stage.preparation.alive_when_asked) == 4
        assert stage.lines == [
            "0 waiting CreateContainerConfigError",
            "0 waiting ContainerCreating",
            "0 running",
            "0 exited 0 Completed",
        ]
        assert stage.events == [("Failed", "Error: no map"), ("FailedMount", "no disk")]

    play(tmp_path, story, "true", missing=(MISSING, MISSING, NotReadyError(None, "FailedMount", "no disk")))


def test_what_can_never_be_there_is_not_waited_for(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.container.start(0)
        await stage.container.wait_ended()
        assert stage.lines == ["0 waiting CreateContainerError"]

    never = NotReadyError(Waiting("CreateContainerError"), "Failed", "no command", can_help_to_retry=False)
    play(tmp_path, story, missing=(never,))


# --- 3. Unexpected ends --------------------------------------------------------------------------------------


def test_an_unexpected_end_is_reported_as_a_failed_start(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.container.start(0)
        await stage.container.wait_ended()
        assert stage.lines == ["0 exited 128 StartError"]
        assert stage.events == [("Failed", "Error: RuntimeError: the moon fell")]
        _, state = stage.reported[0]
        assert isinstance(state, Exited)
        assert (state.started_s, state.message) == (0.0, "RuntimeError: the moon fell")

    play(tmp_path, story, missing=(RuntimeError("the moon fell"),))


# --- stopping ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "grace_s", "end"),
    [
        pytest.param(FOREVER, LIMIT_S, "exited 5 Error", id="it is asked, and ends as it likes"),
        pytest.param(STUBBORN, 0.05, "exited 137 Error", id="it does not want to, and is killed after the grace"),
    ],
)
def test_how_it_is_stopped(tmp_path: Path, script: str, grace_s: float, end: str) -> None:
    async def story(stage: Stage) -> None:
        pid = await stage.start()
        stage.container.stop(grace_s)
        await stage.container.wait_ended()
        assert stage.lines == ["0 running", f"0 {end}"]
        await wait_gone(pid)

    play(tmp_path, story, script)


def test_to_stop_it_again_only_moves_its_end(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        await stage.start()
        stage.container.stop(1_000)
        stage.container.stop(0.05)
        await stage.container.wait_ended()
        assert stage.lines[-1] == "0 exited 137 Error"
        stage.container.stop(1)
        stage.container.kill()
        assert len(stage.reported) == 2, "what has ended cannot be stopped"

    play(tmp_path, story, STUBBORN)


# --- commands ---------------------------------------------------------------------------------------------------------


def test_commands_beside_its_process(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        with pytest.raises(CommandError, match="the container does not run"):
            await stage.container.run_command(("/bin/true",), 1)
        await stage.start()
        result = await stage.container.run_command(("/bin/sh", "-c", "echo out; echo err >&2; exit 4"), LIMIT_S)
        assert (result.code, sorted(result.output.split())) == (4, [b"err", b"out"])
        with pytest.raises(CommandError):
            await stage.container.run_command(("/nowhere/at/all",), LIMIT_S)
        with pytest.raises(CommandTimeout):
            await stage.container.run_command(("/bin/sleep", "600"), 0.05)

    play(tmp_path, story)


def test_a_command_ends_with_its_container(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        await stage.start()
        begun = tmp_path / "begun"
        async with TaskGroup("askers") as group:
            asked = group.start(_hook_error(stage, f"echo 1 > {begun}; exec sleep 600"), name="asked")
            await wait_written(begun)
            stage.container.kill()
            assert await asked in ("137", "the container has ended")

    play(tmp_path, story)


async def _hook_error(stage: Stage, script: str) -> str:
    try:
        return str((await stage.container.run_command(("/bin/sh", "-c", script), 600)).code)
    except CommandError as error:
        return str(error)
