"""Workers do what the outcome says, and survive every failure."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from mooring.client.workers import DONE, Failed, Later, Outcome, run_workers
from mooring.client.workqueue import WorkQueue
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup


class Reconciler:
    """Answers with the next outcome, or raises it; notes when it was asked."""

    def __init__(self, clock: VirtualClock, outcomes: Sequence[Outcome | Exception], takes_s: float = 0.0) -> None:
        self._clock = clock
        self._outcomes = list(outcomes)
        self._takes_s = takes_s
        self.asked: list[tuple[str, float]] = []

    async def __call__(self, key: str) -> Outcome:
        self.asked.append((key, round(self._clock.now_s(), 3)))
        if self._takes_s:
            await self._clock.wait(self._takes_s)
        outcome = self._outcomes.pop(0) if self._outcomes else DONE
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def reconciled(
    keys: Sequence[str], outcomes: Sequence[Outcome | Exception], *, workers: int = 1, takes_s: float = 0.0
) -> tuple[list[tuple[str, float]], WorkQueue[str]]:
    """When each key was reconciled; and the queue afterwards."""
    clock = VirtualClock()

    async def main() -> tuple[list[tuple[str, float]], WorkQueue[str]]:
        queue: WorkQueue[str] = WorkQueue("boats", clock, Entropy(1))
        reconciler = Reconciler(clock, outcomes, takes_s)
        async with TaskGroup("controller") as group:
            run_workers(queue, reconciler, workers=workers, group=group)
            for key in keys:
                queue.add(key)
            await clock.wait(1000)
            queue.shut_down()
        return reconciler.asked, queue

    return run(main(), clock)


@pytest.mark.parametrize(
    ("outcomes", "asked_at_s", "requeues"),
    [
        pytest.param([DONE], [0.0], 0, id="done"),
        pytest.param([Later(30.0)], [0.0, 30.0], 0, id="later"),
        pytest.param([Failed("no node")] * 2, [0.0, 0.005, 0.015], 0, id="failed twice, then done"),
        pytest.param([RuntimeError("oops")], [0.0, 0.005], 0, id="an exception"),
        pytest.param(
            [Failed("no"), Later(1.0), Failed("no")], [0.0, 0.005, 1.005, 1.01], 0, id="after a success it starts anew"
        ),
    ],
)
def test_what_becomes_of_a_key(outcomes: list[Outcome | Exception], asked_at_s: list[float], requeues: int) -> None:
    asked, queue = reconciled(["a"], outcomes)
    assert asked == [("a", at_s) for at_s in asked_at_s]
    assert queue.num_requeues("a") == requeues
    assert queue.statistics()["in_work"] == 0


def test_an_exception_is_logged_with_its_key(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        reconciled(["default/web"], [RuntimeError("oops")])
    (record,) = caplog.records
    assert record.getMessage() == "boats: default/web could not be reconciled; trying again"
    assert record.exc_info is not None


def test_as_many_keys_are_in_work_at_a_time_as_there_are_workers() -> None:
    asked, _ = reconciled(["a", "b", "c"], [], workers=2, takes_s=10.0)
    assert asked == [("a", 0.0), ("b", 0.0), ("c", 10.0)]


def test_a_queue_without_workers_is_refused() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with TaskGroup("controller") as group:
            run_workers(WorkQueue[str]("boats", clock, Entropy(1)), Reconciler(clock, []), workers=0, group=group)

    with pytest.raises(BaseExceptionGroup) as caught:
        run(main(), clock)
    assert "would never be emptied" in str(caught.value.exceptions[0])
