"""When probes run, and what the listener gets. On virtual time.

Thresholds: what follows from probe results.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from mooring.client.events import EventType
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run, run_real
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.probes.handlers import CommandResult, ProbeError, ProbeOutcome, ProbeResult, failure
from mooring.kubelet.probes.prober import (
    ContainerHealth,
    ProbeKind,
    Prober,
    RunHealth,
    first_health,
    kill_grace_s,
    kill_message,
    port_number,
    run_probe,
)
from mooring.kubelet.runtime import Role
from mooring.kubelet.views import FullContainer, FullPod, FullProbe, KubeletPod
from tests.kubelet.harness import container_with, pod_with
from tests.ports import silent_port
from tests.waiting import LIMIT_S

GOOD = ProbeResult(ProbeOutcome.SUCCESS)
BAD = failure("HTTP probe failed with statuscode: 500")
PROBE: dict[str, Any] = {"httpGet": {"port": 80, "path": "/live"}, "periodSeconds": 10}


class Runner:
    async def run_command(self, pod_uid: str, container: str, argv: Sequence[str], timeout_s: float) -> CommandResult:
        return CommandResult(0, f"{pod_uid} {container} {' '.join(argv)} {timeout_s:g}".encode())


def probe_result(probe: dict[str, Any]) -> ProbeResult:
    one = pod_with(livenessProbe=probe)
    container = one.spec.containers[0]
    assert container.liveness_probe is not None
    return run_real(run_probe(Runner(), one, container, container.liveness_probe, "127.0.0.1"))


def test_by_a_command() -> None:
    answer = probe_result({"exec": {"command": ["cat", "x"]}, "timeoutSeconds": 3})

    assert answer == ProbeResult(ProbeOutcome.SUCCESS, "uid-1 main cat x 3")


@pytest.mark.parametrize("way", ["httpGet", "tcpSocket"])
def test_at_the_address_of_the_pod(way: str) -> None:
    with silent_port() as port:
        answer = probe_result({way: {"port": port}, "timeoutSeconds": int(LIMIT_S)})

    assert answer.text.endswith(f"dial tcp 127.0.0.1:{port}: connect: connection refused")


def test_in_no_way() -> None:
    with pytest.raises(ProbeError, match=r"missing probe handler for web_default\(uid-1\):main"):
        probe_result({})


@pytest.mark.parametrize(
    ("port", "wanted"),
    [
        pytest.param(8080, 8080, id="a number"),
        pytest.param("http", 80, id="a name"),
        pytest.param("9090", 9090, id="a number as text"),
        pytest.param("grpc", 'strconv.Atoi: parsing "grpc": invalid syntax', id="an unknown name"),
        pytest.param(0, "invalid port number: 0", id="no port at all"),
        pytest.param(70000, "invalid port number: 70000", id="beyond all ports"),
    ],
)
def test_a_port_has_a_number(port: int | str, wanted: int | str) -> None:
    container = container_with(ports=[{"name": "http", "containerPort": 80}, {"containerPort": 81}])
    if isinstance(wanted, int):
        assert port_number(port, container) == wanted
        return
    with pytest.raises(ProbeError) as fault:
        port_number(port, container)
    assert str(fault.value) == wanted


def other(**changes: Any) -> dict[str, Any]:
    return {**PROBE, **changes}


class Stage:
    """Returns the given results, and records probes and reports with their time."""

    def __init__(self, clock: VirtualClock, answers: dict[str, list[ProbeResult | ProbeError]], takes_s: float) -> None:
        self._clock = clock
        self._answers = answers
        self._takes_s = takes_s
        self.heard: list[str] = []
        self.asked: list[str] = []

    async def run_probe(self, pod: FullPod, container: FullContainer, probe: FullProbe, pod_ip: str) -> ProbeResult:
        assert pod_ip == "127.0.0.1"
        word = {
            id(container.startup_probe): "startup",
            id(container.readiness_probe): "readiness",
            id(container.liveness_probe): "liveness",
        }[id(probe)]
        self.asked.append(f"{self._clock.now_s():g} {word}")
        await self._clock.wait(self._takes_s)
        answers = self._answers.get(word, [])
        answer = answers.pop(0) if answers else GOOD
        if isinstance(answer, ProbeError):
            raise answer
        return answer

    def health_changed(self, pod_uid: str, container: str, attempt: int, health: ContainerHealth) -> None:
        what = "ready" if health.is_ready else "started" if health.is_started else "nothing"
        self._read_control(f"{container}/{attempt} {what}")

    def container_unhealthy(self, pod_uid: str, container: str, attempt: int, grace_s: float) -> None:
        self._read_control(f"kill {container}/{attempt} within {grace_s:g}")

    def record_event(self, pod: KubeletPod, type: EventType, reason: str, message: str) -> None:
        self._read_control(f"{type} {reason}: {message}")

    def _read_control(self, what: str) -> None:
        self.heard.append(f"{self._clock.now_s():g} {what}")


def staged(
    story: Callable[[Prober, FullPod, VirtualClock], Awaitable[None]],
    probes: dict[str, Any],
    answers: dict[str, list[ProbeResult | ProbeError]] | None = None,
    *,
    role: Role = Role.CONTAINER,
    takes_s: float = 0.0,
) -> Stage:
    clock = VirtualClock()
    stage = Stage(clock, answers or {}, takes_s)

    async def main() -> None:
        prober = Prober(clock, stage.run_probe, stage)
        async with TaskGroup("probes") as group:
            prober.start(group)
            one = pod_with(**probes)
            prober.begin(one, one.spec.containers[0], role, 2, clock.wall_s(), "127.0.0.1")
            await story(prober, one, clock)

    run(main(), clock)
    return stage


def for_s(duration_s: float) -> Callable[[Prober, FullPod, VirtualClock], Awaitable[None]]:
    async def story(prober: Prober, pod: FullPod, clock: VirtualClock) -> None:
        await clock.wait(duration_s)

    return story


@pytest.mark.parametrize(
    ("probes", "until_s", "wanted"),
    [
        pytest.param({}, 60, [], id="without probes nothing is probed"),
        pytest.param(
            {"livenessProbe": PROBE}, 35, ["10 liveness", "20 liveness", "30 liveness"], id="once in each period"
        ),
        pytest.param({"readinessProbe": PROBE}, 25, ["0 readiness", "10 readiness", "20 readiness"], id="at once"),
        pytest.param(
            {"livenessProbe": other(initialDelaySeconds=15, periodSeconds=2)},
            19,
            ["16 liveness", "18 liveness"],
            id="not before the initial delay",
        ),
        pytest.param(
            {"startupProbe": other(periodSeconds=4), "readinessProbe": PROBE, "livenessProbe": PROBE},
            21,
            ["4 startup", "4 readiness", "10 liveness", "14 readiness", "20 liveness"],
            id="readiness as soon as it has come up",
        ),
    ],
)
def test_containers_are_probed_in_time(probes: dict[str, Any], until_s: float, wanted: list[str]) -> None:
    assert staged(for_s(until_s), probes).asked == wanted


def test_a_slow_answer_costs_the_turns_that_it_misses() -> None:
    stage = staged(for_s(12), {"livenessProbe": other(periodSeconds=2)}, takes_s=3.0)

    assert stage.asked == ["2 liveness", "5 liveness", "8 liveness", "11 liveness"]


@pytest.mark.parametrize(
    ("probes", "answers", "until_s", "wanted"),
    [
        pytest.param({"readinessProbe": PROBE}, {}, 25, ["0 main/2 ready"], id="ready is reported once"),
        pytest.param(
            {"livenessProbe": other(failureThreshold=2, terminationGracePeriodSeconds=7)},
            {"liveness": [BAD, BAD]},
            60,
            [
                "10 Warning Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 500",
                "20 Warning Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 500",
                "20 Normal Killing: Container main failed liveness probe, will be restarted",
                "20 kill main/2 within 7",
            ],
            id="two failures kill it, and probing ends",
        ),
        pytest.param(
            {"startupProbe": other(failureThreshold=1)},
            {"startup": [BAD]},
            60,
            [
                "10 Warning Unhealthy: Startup probe failed: HTTP probe failed with statuscode: 500",
                "10 Normal Killing: Container main failed startup probe, will be restarted",
                "10 kill main/2 within 30",
            ],
            id="it does not come up",
        ),
        pytest.param(
            {"readinessProbe": other(failureThreshold=1)},
            {"readiness": [GOOD, BAD, GOOD]},
            25,
            [
                "0 main/2 ready",
                "10 Warning Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 500",
                "10 main/2 started",
                "20 main/2 ready",
            ],
            id="unready, and ready again",
        ),
        pytest.param(
            {"readinessProbe": PROBE},
            {"readiness": [ProbeResult(ProbeOutcome.WARNING, "elsewhere")]},
            5,
            ["0 Warning ProbeWarning: Readiness probe warning: elsewhere", "0 main/2 ready"],
            id="a warning is a success",
        ),
        pytest.param(
            {"readinessProbe": PROBE},
            {"readiness": [ProbeError("no")] * 3},
            5,
            ["0 Warning Unhealthy: Readiness probe errored and resulted in unknown state: no"],
            id="a question that cannot be put counts neither way",
        ),
        pytest.param(
            {"readinessProbe": PROBE},
            {"readiness": [ProbeError("no")] * 2},
            5,
            ["0 main/2 ready"],
            id="but it is tried three times",
        ),
    ],
)
def test_the_listener_gets_reports(
    probes: dict[str, Any], answers: dict[str, list[ProbeResult | ProbeError]], until_s: float, wanted: list[str]
) -> None:
    # Copied, as a parameter is shared by other runs of the same row.
    assert staged(for_s(until_s), probes, {word: list(said) for word, said in answers.items()}).heard == wanted


def test_after_the_end_nothing_is_probed_or_reported() -> None:
    async def story(prober: Prober, pod: FullPod, clock: VirtualClock) -> None:
        await clock.wait(11.0)  # it has been asked, and has not answered
        prober.end("uid-1", "main")
        await clock.wait(60.0)

    stage = staged(story, {"livenessProbe": other(failureThreshold=1)}, {"liveness": [BAD]}, takes_s=5.0)

    assert (stage.asked, stage.heard) == (["10 liveness"], [])


def test_a_deleted_pod_is_not_probed() -> None:
    async def story(prober: Prober, pod: FullPod, clock: VirtualClock) -> None:
        prober.forget("uid-1")
        await clock.wait(60.0)

    assert staged(story, {"livenessProbe": PROBE, "readinessProbe": PROBE}).asked == []


def test_only_readiness_is_probed_while_a_pod_stops() -> None:
    async def story(prober: Prober, pod: FullPod, clock: VirtualClock) -> None:
        prober.pod_stops("uid-1")
        await clock.wait(15.0)

    assert staged(story, {"livenessProbe": PROBE, "readinessProbe": PROBE}).asked == ["0 readiness", "10 readiness"]


def test_another_run_begins_anew() -> None:
    async def story(prober: Prober, pod: FullPod, clock: VirtualClock) -> None:
        await clock.wait(15.0)
        prober.begin(pod, pod.spec.containers[0], Role.CONTAINER, 3, clock.wall_s(), "127.0.0.1")
        await clock.wait(15.0)

    stage = staged(story, {"livenessProbe": other(failureThreshold=2)}, {"liveness": [BAD, BAD]})

    assert stage.asked == ["10 liveness", "25 liveness"]
    assert not any("kill" in line for line in stage.heard)


@pytest.mark.parametrize(("role", "count"), [(Role.INIT, 0), (Role.EPHEMERAL, 0), (Role.SIDECAR, 1)])
def test_only_containers_and_sidecars_are_probed(role: Role, count: int) -> None:
    assert len(staged(for_s(15), {"livenessProbe": PROBE}, role=role).asked) == count


READY, STARTED, NOTHING = ContainerHealth(True, True), ContainerHealth(False, True), ContainerHealth(False, False)
TCP_PROBE: dict[str, Any] = {"tcpSocket": {"port": 80}}
WORDS = {"s": ProbeKind.STARTUP, "r": ProbeKind.READINESS, "l": ProbeKind.LIVENESS}


@pytest.mark.parametrize(
    ("probes", "wanted"),
    [
        pytest.param({}, READY, id="without probes it is ready at once"),
        pytest.param({"livenessProbe": TCP_PROBE}, READY, id="who lives is not asked for readiness"),
        pytest.param({"readinessProbe": TCP_PROBE}, STARTED, id="readiness is asked first"),
        pytest.param({"startupProbe": TCP_PROBE}, NOTHING, id="it has to come up first"),
    ],
)
def test_a_container_begins(probes: dict[str, Any], wanted: ContainerHealth) -> None:
    assert first_health(container_with(**probes)) == wanted


@pytest.mark.parametrize(
    ("probes", "answers", "wanted"),
    [
        pytest.param({"readinessProbe": TCP_PROBE}, "r+", [READY], id="one success makes it ready"),
        pytest.param(
            {"readinessProbe": {**TCP_PROBE, "successThreshold": 2}},
            "r+ r- r+ r+",
            [STARTED, STARTED, STARTED, READY],
            id="two in a row, if it wants two",
        ),
        pytest.param(
            {"readinessProbe": TCP_PROBE},
            "r+ r- r- r- r+",
            [READY, READY, READY, STARTED, READY],
            id="three failures in a row make it unready, and it comes back",
        ),
        pytest.param({"readinessProbe": TCP_PROBE}, "r- r- r- r-", [STARTED] * 4, id="unready is never killed"),
        pytest.param(
            {"livenessProbe": TCP_PROBE}, "l- l- l+ l- l- l-", [READY] * 5 + ["killed"], id="three in a row kill it"
        ),
        pytest.param(
            {"livenessProbe": {**TCP_PROBE, "failureThreshold": 1}}, "l-", ["killed"], id="one, if it wants one"
        ),
        pytest.param({"startupProbe": TCP_PROBE}, "s- s- s+", [NOTHING, NOTHING, READY], id="it comes up"),
        pytest.param({"startupProbe": TCP_PROBE}, "s- s- s-", [NOTHING, NOTHING, "killed"], id="it never comes up"),
        pytest.param(
            {"startupProbe": TCP_PROBE, "readinessProbe": TCP_PROBE},
            "s+ r+",
            [STARTED, READY],
            id="one after the other",
        ),
    ],
)
def test_answers_count(probes: dict[str, Any], answers: str, wanted: list[ContainerHealth | str]) -> None:
    health = RunHealth(container_with(**probes))
    seen: list[ContainerHealth | str] = []
    for word in answers.split():
        is_killed = health.count(WORDS[word[0]], is_success=word[1] == "+")
        seen.append("killed" if is_killed else health.health)

    assert seen == wanted


def test_no_other_probe_runs_before_the_startup_probe_succeeds() -> None:
    health = RunHealth(container_with(startupProbe=TCP_PROBE, readinessProbe=TCP_PROBE, livenessProbe=TCP_PROBE))

    assert [kind for kind in ProbeKind if health.is_due(kind, 0.0)] == [ProbeKind.STARTUP]

    health.count(ProbeKind.STARTUP, is_success=True)

    assert [kind for kind in ProbeKind if health.is_due(kind, 0.0)] == [ProbeKind.READINESS, ProbeKind.LIVENESS]


def test_it_is_left_alone_for_the_initial_delay() -> None:
    health = RunHealth(container_with(livenessProbe={**TCP_PROBE, "initialDelaySeconds": 5}))

    assert [health.is_due(ProbeKind.LIVENESS, elapsed_s) for elapsed_s in (0.0, 4.9, 5.0)] == [False, False, True]


def test_a_probe_that_killed_a_container_does_not_run_again() -> None:
    health = RunHealth(container_with(livenessProbe={**TCP_PROBE, "failureThreshold": 1}, readinessProbe=TCP_PROBE))

    health.count(ProbeKind.LIVENESS, is_success=False)

    assert not health.is_due(ProbeKind.LIVENESS, 100.0)
    assert health.is_due(ProbeKind.READINESS, 100.0)


@pytest.mark.parametrize(
    ("policy", "own", "is_sidecar", "wanted"),
    [
        pytest.param("Always", None, False, "Container main failed liveness probe, will be restarted", id="Always"),
        pytest.param("Never", None, False, "Container main failed liveness probe", id="Never"),
        pytest.param("Never", "Always", False, "Container main failed liveness probe, will be restarted", id="own"),
        pytest.param("Always", "Always", True, "Init container main failed liveness probe", id="sidecar"),
    ],
)
def test_why_it_is_killed(policy: str, own: str | None, is_sidecar: bool, wanted: str) -> None:
    own_policy = {"restartPolicy": own} if own else {}
    one = pod_with({"restartPolicy": policy}, **own_policy)

    assert kill_message(one, one.spec.containers[0], ProbeKind.LIVENESS, is_sidecar=is_sidecar) == wanted


@pytest.mark.parametrize(
    ("of_pod", "of_probe", "wanted"),
    [
        pytest.param(20, 5, 5.0, id="the probe's own"),
        pytest.param(20, None, 20.0, id="the pod's"),
        pytest.param(None, None, 30.0, id="without an owner"),
        pytest.param(20, 0, 0.0, id="none at all"),
    ],
)
def test_how_long_it_may_take_to_end(of_pod: int | None, of_probe: int | None, wanted: float) -> None:
    one = pod_with({"terminationGracePeriodSeconds": of_pod} if of_pod is not None else {})
    if of_pod is None:
        one = pod_with({"terminationGracePeriodSeconds": None})

    assert kill_grace_s(one, FullProbe(termination_grace_period_seconds=of_probe)) == wanted
