"""One binding: until when it can be called off."""

from __future__ import annotations

import asyncio

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.scheduler.binding.assumptions import Assumption
from mooring.scheduler.binding.binding import Binding, Stage
from mooring.scheduler.queue.queued_pod import QueuedPod
from tests.builders import node, pod
from tests.scheduler.harness import engine_of

ENGINE = engine_of(node("n1"))


def binding() -> Binding:
    record = ENGINE.record(pod("web"))
    profile = ENGINE.cycle_for(record).profile
    return Binding(QueuedPod(record, 0.0), profile, Assumption(record, "n1"), (), 0.0)


def test_before_pre_bind_there_is_nothing_to_call_off() -> None:
    under_way = binding()
    assert under_way.stage is Stage.READY
    assert not under_way.call_off("DefaultPreemption")
    assert under_way.called_off_by == ""


def test_a_pre_bind_that_waits_is_interrupted_and_its_task_goes_on() -> None:
    under_way, seen, clock = binding(), list[str](), VirtualClock()

    async def worker() -> None:
        under_way.prepare()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("interrupted")
        seen.append(f"called off: {under_way.prepared()}")
        await clock.wait(1)  # the worker has other jobs to do
        seen.append("went on")

    async def main() -> None:
        task = asyncio.get_running_loop().create_task(worker())
        await clock.wait(1)
        assert under_way.stage is Stage.PREPARING
        assert under_way.call_off("DefaultPreemption")
        assert under_way.call_off("DefaultPreemption"), "whoever comes second has the same answer"
        await task

    run(main(), clock)
    assert seen == ["interrupted", "called off: True", "went on"]


def test_after_pre_bind_it_is_too_late() -> None:
    under_way = binding()

    async def main() -> None:
        under_way.prepare()
        assert not under_way.prepared()
        assert under_way.stage is Stage.BINDING
        assert not under_way.call_off("DefaultPreemption")

    run(main())
