"""Which way a probe wants its container asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mooring.kit.loop import run_real
from mooring.kubelet.probes.asking import ProbeAsker, port_number
from mooring.kubelet.probes.commands import CommandResult
from mooring.kubelet.probes.handlers import Answer, Outcome, ProbeFault
from tests.kubelet.whole import container_with, pod_with
from tests.ports import silent_port
from tests.waiting import LIMIT_S


class Runner:
    async def run_command(self, pod_uid: str, container: str, argv: Sequence[str], timeout_s: float) -> CommandResult:
        return CommandResult(0, f"{pod_uid} {container} {' '.join(argv)} {timeout_s:g}".encode())


def asked(probe: dict[str, Any]) -> Answer:
    one = pod_with(livenessProbe=probe)
    container = one.spec.containers[0]
    assert container.liveness_probe is not None
    return run_real(ProbeAsker(Runner()).ask(one, container, container.liveness_probe, "127.0.0.1"))


def test_by_a_command() -> None:
    answer = asked({"exec": {"command": ["cat", "x"]}, "timeoutSeconds": 3})

    assert answer == Answer(Outcome.SUCCESS, "uid-1 main cat x 3")


@pytest.mark.parametrize("way", ["httpGet", "tcpSocket"])
def test_at_the_address_of_the_pod(way: str) -> None:
    with silent_port() as port:
        answer = asked({way: {"port": port}, "timeoutSeconds": int(LIMIT_S)})

    assert answer.text.endswith(f"dial tcp 127.0.0.1:{port}: connect: connection refused")


def test_in_no_way() -> None:
    with pytest.raises(ProbeFault, match=r"missing probe handler for web_default\(uid-1\):main"):
        asked({})


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
    with pytest.raises(ProbeFault) as fault:
        port_number(port, container)
    assert str(fault.value) == wanted
