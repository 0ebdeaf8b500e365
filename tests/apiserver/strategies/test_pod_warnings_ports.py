"""What is unwise about ports."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.strategies.pod_warnings_ports import port_warnings
from tests.apiserver.pod_builders import pod

FIRST = "spec.containers[0].ports[0]"
SECOND = "spec.containers[0].ports[1]"


@pytest.mark.parametrize(
    ("one", "other", "warnings"),
    [
        pytest.param({}, {"containerPort": 81}, [], id="two ports"),
        pytest.param({}, {}, [f"{SECOND}: duplicate port definition with {FIRST}"], id="one port twice"),
        pytest.param(
            {}, {"hostPort": 8}, [f"{SECOND}: overlapping port definition with {FIRST}"], id="once on the host"
        ),
        pytest.param(
            {"hostPort": 8, "hostIP": "1.1.1.1"},
            {"hostPort": 8},
            [f"{SECOND}: dangerously ambiguous port definition with {FIRST}"],
            id="on one address and on all",
        ),
        pytest.param(
            {"name": "a"},
            {"name": "a", "protocol": "UDP"},
            [
                f'{SECOND}: duplicate port name "a" with {FIRST}, '
                f"services and probes that select ports by name will use {FIRST}"
            ],
            id="one name for two",
        ),
        pytest.param(
            {"hostIP": "1.1.1.1"},
            {"containerPort": 81},
            [
                f"{FIRST}: hostIP set without hostPort: "
                "{Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.1.1.1}"
            ],
            id="an address for nothing",
        ),
    ],
)
def test_ports(one: Document, other: Document, warnings: list[str]) -> None:
    ports = [{"containerPort": 80, **one}, {"containerPort": 80, **other}]
    assert port_warnings(pod(container={"ports": ports})["spec"], "spec") == warnings
