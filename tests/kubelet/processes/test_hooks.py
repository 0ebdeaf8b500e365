"""What a pod wants done after the start and before the end."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kubelet.probes.commands import CommandError, CommandResult, CommandTimeout
from mooring.kubelet.processes.hooks import HookError, run_hook
from tests.kubelet.whole import container_with


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
        pytest.param({"tcpSocket": {"port": 1}}, 0.0, id="what nobody does"),
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
