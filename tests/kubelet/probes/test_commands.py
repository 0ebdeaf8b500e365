"""What a command means to a probe."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mooring.kit.loop import run
from mooring.kubelet.full_views import ExecAction
from mooring.kubelet.probes.commands import CommandError, CommandResult, CommandTimeout, ask_command
from mooring.kubelet.probes.handlers import Answer, Outcome, ProbeFault
from tests.kubelet.whole import container_with


class Runner:
    def __init__(self, result: CommandResult | Exception) -> None:
        self._result = result
        self.ran: list[str] = []

    async def run_command(self, pod_uid: str, container: str, argv: Sequence[str], timeout_s: float) -> CommandResult:
        self.ran = list(argv)
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


def asked(runner: Runner, *command: str) -> Answer:
    one = container_with(env=[{"name": "A", "value": "1"}])
    return run(ask_command(runner, "uid-1", one, ExecAction(command=command), 5.0))


@pytest.mark.parametrize(
    ("result", "wanted"),
    [
        pytest.param(CommandResult(0, b"fine"), Answer(Outcome.SUCCESS, "fine"), id="0 is a success"),
        pytest.param(CommandResult(1, b"no file"), Answer(Outcome.FAILURE, "no file"), id="anything else a failure"),
        pytest.param(
            CommandResult(1, b"x" * 20_000), Answer(Outcome.FAILURE, "x" * 10_240), id="which does not talk endlessly"
        ),
        pytest.param(
            CommandTimeout(),
            Answer(Outcome.FAILURE, 'command timed out: "cat /tmp/x" timed out after 5s'),
            id="too slow is a failure",
        ),
    ],
)
def test_a_command_answers(result: CommandResult | Exception, wanted: Answer) -> None:
    assert asked(Runner(result), "cat", "/tmp/x") == wanted


def test_a_command_that_cannot_be_started_is_no_answer() -> None:
    with pytest.raises(ProbeFault, match="not found"):
        asked(Runner(CommandError('exec: "nope": executable file not found in $PATH')), "nope")


def test_plain_variables_are_known() -> None:
    runner = Runner(CommandResult(0, b""))

    asked(runner, "echo", "$(A) $(B)")

    assert runner.ran == ["echo", "1 $(B)"]
