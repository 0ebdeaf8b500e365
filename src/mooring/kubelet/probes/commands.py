"""Commands beside a container: how they are run is somebody else's business, what they mean to a probe is ours.

Comes in   a command of a probe
Goes out   an answer: 0 is a success, everything else a failure with what the command wrote

A command of a probe knows only those variables of its container that stand in the pod as plain values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mooring.api.durations import format_duration
from mooring.kubelet.environment.expansion import expanded
from mooring.kubelet.full_views import ExecAction, WholeContainer
from mooring.kubelet.probes.handlers import Answer, Outcome, ProbeFault, failure

OUTPUT_BYTES_MAX = 10 * 1024


@dataclass(frozen=True, slots=True)
class CommandResult:
    code: int
    output: bytes
    """Everything that it wrote, up to `OUTPUT_BYTES_MAX`."""


class CommandTimeout(Exception):
    """It took too long, and was killed."""


class CommandError(Exception):
    """It could not be started."""


class CommandRunner(Protocol):
    """Who can run a command where a container is."""

    async def run_command(self, pod_uid: str, container: str, argv: Sequence[str], timeout_s: float) -> CommandResult:
        """Raises `CommandTimeout` and `CommandError`."""
        ...


async def ask_command(
    runner: CommandRunner, pod_uid: str, container: WholeContainer, action: ExecAction, timeout_s: float
) -> Answer:
    """Raises `ProbeFault`."""
    variables = {variable.name: variable.value for variable in container.env}
    argv = [expanded(word, variables) for word in action.command]
    try:
        result = await runner.run_command(pod_uid, container.name, argv, timeout_s)
    except CommandTimeout:
        return failure(f'command timed out: "{" ".join(argv)}" timed out after {format_duration(int(timeout_s))}')
    except CommandError as error:
        raise ProbeFault(str(error)) from None
    text = result.output[:OUTPUT_BYTES_MAX].decode(errors="replace")
    return Answer(Outcome.SUCCESS if result.code == 0 else Outcome.FAILURE, text)
