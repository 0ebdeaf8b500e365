"""Thresholds: what follows from probe results."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.kubelet.full_views import FullProbe
from mooring.kubelet.probes.health import (
    ContainerHealth,
    ProbeKind,
    RunHealth,
    first_health,
    kill_grace_s,
    kill_message,
)
from tests.kubelet.full_pods import container_with, pod_with

READY, STARTED, NOTHING = ContainerHealth(True, True), ContainerHealth(False, True), ContainerHealth(False, False)
PROBE: dict[str, Any] = {"tcpSocket": {"port": 80}}
WORDS = {"s": ProbeKind.STARTUP, "r": ProbeKind.READINESS, "l": ProbeKind.LIVENESS}


@pytest.mark.parametrize(
    ("probes", "wanted"),
    [
        pytest.param({}, READY, id="without probes it is ready at once"),
        pytest.param({"livenessProbe": PROBE}, READY, id="who lives is not asked for readiness"),
        pytest.param({"readinessProbe": PROBE}, STARTED, id="readiness is asked first"),
        pytest.param({"startupProbe": PROBE}, NOTHING, id="it has to come up first"),
    ],
)
def test_a_container_begins(probes: dict[str, Any], wanted: ContainerHealth) -> None:
    assert first_health(container_with(**probes)) == wanted


@pytest.mark.parametrize(
    ("probes", "answers", "wanted"),
    [
        pytest.param({"readinessProbe": PROBE}, "r+", [READY], id="one success makes it ready"),
        pytest.param(
            {"readinessProbe": {**PROBE, "successThreshold": 2}},
            "r+ r- r+ r+",
            [STARTED, STARTED, STARTED, READY],
            id="two in a row, if it wants two",
        ),
        pytest.param(
            {"readinessProbe": PROBE},
            "r+ r- r- r- r+",
            [READY, READY, READY, STARTED, READY],
            id="three failures in a row make it unready, and it comes back",
        ),
        pytest.param({"readinessProbe": PROBE}, "r- r- r- r-", [STARTED] * 4, id="unready is never killed"),
        pytest.param(
            {"livenessProbe": PROBE}, "l- l- l+ l- l- l-", [READY] * 5 + ["killed"], id="three in a row kill it"
        ),
        pytest.param({"livenessProbe": {**PROBE, "failureThreshold": 1}}, "l-", ["killed"], id="one, if it wants one"),
        pytest.param({"startupProbe": PROBE}, "s- s- s+", [NOTHING, NOTHING, READY], id="it comes up"),
        pytest.param({"startupProbe": PROBE}, "s- s- s-", [NOTHING, NOTHING, "killed"], id="it never comes up"),
        pytest.param(
            {"startupProbe": PROBE, "readinessProbe": PROBE}, "s+ r+", [STARTED, READY], id="one after the other"
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


def test_nobody_else_is_asked_before_it_has_come_up() -> None:
    health = RunHealth(container_with(startupProbe=PROBE, readinessProbe=PROBE, livenessProbe=PROBE))

    assert [kind for kind in ProbeKind if health.wants(kind, 0.0)] == [ProbeKind.STARTUP]

    health.count(ProbeKind.STARTUP, is_success=True)

    assert [kind for kind in ProbeKind if health.wants(kind, 0.0)] == [ProbeKind.READINESS, ProbeKind.LIVENESS]


def test_it_is_left_alone_for_the_initial_delay() -> None:
    health = RunHealth(container_with(livenessProbe={**PROBE, "initialDelaySeconds": 5}))

    assert [health.wants(ProbeKind.LIVENESS, elapsed_s) for elapsed_s in (0.0, 4.9, 5.0)] == [False, False, True]


def test_who_is_to_be_killed_is_not_asked_again() -> None:
    health = RunHealth(container_with(livenessProbe={**PROBE, "failureThreshold": 1}, readinessProbe=PROBE))

    health.count(ProbeKind.LIVENESS, is_success=False)

    assert not health.wants(ProbeKind.LIVENESS, 100.0)
    assert health.wants(ProbeKind.READINESS, 100.0)


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
        pytest.param(None, None, 30.0, id="nobody's"),
        pytest.param(20, 0, 0.0, id="none at all"),
    ],
)
def test_how_long_it_may_take_to_end(of_pod: int | None, of_probe: int | None, wanted: float) -> None:
    one = pod_with({"terminationGracePeriodSeconds": of_pod} if of_pod is not None else {})
    if of_pod is None:
        one = pod_with({"terminationGracePeriodSeconds": None})

    assert kill_grace_s(one, FullProbe(termination_grace_period_seconds=of_probe)) == wanted
