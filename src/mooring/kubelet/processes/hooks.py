"""Hooks: what a pod wants done right after a container has started, or before it is asked to end.

Comes in   a handler, the container, a way to run commands beside it
Goes out   nothing; or `HookError`, in words

`tcpSocket` is accepted by the API and done by nobody, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.kit.clock import Clock
from mooring.kubelet.full_views import HTTPGetAction, LifecycleHandler, WholeContainer
from mooring.kubelet.probes.asking import port_number
from mooring.kubelet.probes.commands import CommandError, CommandResult, CommandTimeout
from mooring.kubelet.probes.handlers import Outcome, ProbeFault
from mooring.kubelet.probes.http import ask_http


class HookError(Exception):
    """It did not go well."""


RunCommand = Callable[[tuple[str, ...], float], Awaitable[CommandResult]]


async def run_hook(
    handler: LifecycleHandler,
    container: WholeContainer,
    address: str,
    run_command: RunCommand,
    clock: Clock,
    s_max: float,
) -> None:
    """Do what it says, for `s_max` at most. Raises `HookError`."""
    if handler.exec is not None:
        await _run(handler.exec.command, run_command, s_max)
    elif handler.sleep is not None:
        await clock.wait(min(float(handler.sleep.seconds), s_max))
    elif handler.http_get is not None:
        await _get(handler.http_get, container, address, s_max)


async def _get(action: HTTPGetAction, container: WholeContainer, address: str, s_max: float) -> None:
    try:
        answer = await ask_http(action, action.host or address, port_number(action.port, container), s_max)
    except ProbeFault as fault:
        raise HookError(str(fault)) from None
    if answer.outcome is Outcome.FAILURE:
        raise HookError(answer.text)


async def _run(command: tuple[str, ...], run_command: RunCommand, s_max: float) -> None:
    try:
        result = await run_command(command, s_max)
    except CommandTimeout:
        raise HookError(f"the command took longer than {s_max:g} s") from None
    except CommandError as error:
        raise HookError(str(error)) from None
    if result.code:
        said = result.output.decode(errors="replace")
        raise HookError(f"command terminated with exit code {result.code}: {said}")
