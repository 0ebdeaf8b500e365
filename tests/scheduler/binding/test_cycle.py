"""The binding cycle: every way from Permit to a binding or back to the queue."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from mooring.api.kinds import POD
from mooring.client.errors import ConflictError
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.scheduler.binding.assumed_pods import AssumedPod
from mooring.scheduler.binding.cycle import LOOKUPS_MAX, Binding, BindingStage
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.framework.plugin import SKIP, Bind, Permit, PostBind, PreBind, Reserve, Skip, Wait
from mooring.scheduler.framework.status import Status
from mooring.scheduler.framework.waiting_pods import WaitingPod
from mooring.scheduler.queue.queued_pod import QueuedPod, QueueState
from mooring.scheduler.scheduler import Limits
from tests.builders import node, pod
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.scheduler.harness import engine_of, without_line
from tests.scheduler.world import Story, World, play, with_plugins


class Diary(Reserve, Permit, PreBind, Bind, PostBind):
    """Writes down what `web` is asked, and answers once as it is reported; else it has nothing to say."""

    name = "Diary"
    lines: ClassVar[list[str]] = []
    answers: ClassVar[dict[str, Any]] = {}

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD),
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE),
        )

    def reserve(self, pod: PodInfo, row: int) -> Status | None:
        answer: Status | None = self._asked("reserve", pod)
        return answer

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        self._asked("unreserve", pod)

    async def released(self, pod: PodInfo, node_name: str) -> None:
        self._asked("released", pod)

    def permit(self, pod: PodInfo, node_name: str) -> Wait | Status | None:
        answer: Wait | Status | None = self._asked("permit", pod)
        return answer

    def has_work(self, pod: PodInfo, node_name: str) -> bool:
        return bool(self._asked("has_work", pod))

    async def pre_bind(self, pod: PodInfo, node_name: str) -> Status | None:
        answer: Status | None = self._asked("pre_bind", pod)
        return answer

    async def bind(self, pod: PodInfo, node_name: str) -> Skip | Status | None:
        answer = self._asked("bind", pod)
        return SKIP if answer is None else answer

    def post_bind(self, pod: PodInfo, node_name: str) -> None:
        self._asked("post_bind", pod)

    def _asked(self, point: str, pod: PodInfo) -> Any:
        if pod.name != "web":
            return None
        self.lines.append(point)
        answer = self.answers.pop(point, None)
        if isinstance(answer, Exception):
            raise answer
        return answer


def write_diary(story: Story, *faults: Fault, bindings_max: int = 1_000, **answers: Any) -> list[str]:
    """Plays a story with a diary; what was written."""
    Diary.lines, Diary.answers = [], dict(answers)
    config, registry = with_plugins(Diary)
    config["profiles"][0]["plugins"]["bind"] = {"enabled": [{"name": "Diary"}, {"name": "DefaultBinder"}]}
    play(
        story,
        config=config,
        registry=registry,
        limits=Limits(bindings_max=bindings_max),
        through=lambda client, clock: FaultyClient(client, clock, Script(*faults)),
        is_replayed=False,  # a replay would write to the diary
    )
    return Diary.lines


def is_nothing_left(world: World) -> bool:
    """The columns believe nobody anywhere, and nothing is under way."""
    scheduler = world.scheduler
    return not (scheduler.engine.columns.pods or scheduler.bindings.running or len(scheduler.assumed_pods))


@pytest.mark.parametrize(
    ("answers", "lines"),
    [
        pytest.param({}, ["reserve", "permit", "has_work", "bind", "post_bind"], id="nothing to prepare"),
        pytest.param(
            {"has_work": True},
            ["reserve", "permit", "has_work", "pre_bind", "bind", "post_bind"],
            id="something to prepare",
        ),
        pytest.param(
            {"post_bind": ValueError("oops")},
            ["reserve", "permit", "has_work", "bind", "post_bind"],
            id="after it is bound nothing can go wrong",
        ),
    ],
)
def test_a_pod_is_bound(answers: dict[str, Any], lines: list[str]) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle()
        assert await world.node_of("web") == "n1"
        assert await world.events() == [("web", "Scheduled", "Successfully assigned default/web to n1")]
        assert world.scheduler.bindings.running == {}

    assert write_diary(story, **answers) == lines


UNSCHEDULABLE, ERROR = "Unschedulable", "SchedulerError"


@pytest.mark.parametrize(
    ("answers", "lines", "reason", "message", "state"),
    [
        pytest.param(
            {"permit": Status.unschedulable("full")},
            ["permit", "unreserve"],
            UNSCHEDULABLE,
            "0/1 nodes are available: 1 full.",
            QueueState.UNSCHEDULABLE,
            id="Permit rejects: about the node, so the pod sleeps until something helps",
        ),
        pytest.param(
            {"permit": Status.error("away")},
            ["permit", "unreserve"],
            ERROR,
            'running Permit plugin "Diary": away',
            QueueState.ERROR_BACKOFF,
            id="Permit fails",
        ),
        pytest.param(
            {"permit": Wait(float("nan"))},
            ["permit", "unreserve"],
            ERROR,
            'running Permit plugin "Diary": it returned Wait(timeout_s=nan), which is not a result of Permit',
            QueueState.ERROR_BACKOFF,
            id="Permit answers what is no time",
        ),
        pytest.param(
            {"has_work": ValueError("oops")},
            ["permit", "has_work", "unreserve"],
            ERROR,
            'running PreBindPreFlight plugin "Diary": ValueError: oops',
            QueueState.ERROR_BACKOFF,
            id="nobody can say whether there is something to prepare",
        ),
        pytest.param(
            {"has_work": True, "pre_bind": Status.unschedulable("not ready")},
            ["permit", "has_work", "pre_bind", "unreserve", "released"],
            UNSCHEDULABLE,
            "not ready",
            QueueState.ERROR_BACKOFF,
            id="PreBind rejects: nobody knows what helps, so it is tried again; what it wrote is taken back",
        ),
        pytest.param(
            {"has_work": True, "pre_bind": ValueError("oops")},
            ["permit", "has_work", "pre_bind", "unreserve", "released"],
            ERROR,
            'running PreBind plugin "Diary": ValueError: oops',
            QueueState.ERROR_BACKOFF,
            id="PreBind fails",
        ),
        pytest.param(
            {"bind": Status.unschedulable("not here")},
            ["permit", "has_work", "bind", "unreserve"],
            UNSCHEDULABLE,
            "not here",
            QueueState.ERROR_BACKOFF,
            id="Bind rejects: nothing was written, and nothing is taken back",
        ),
        pytest.param(
            {"bind": ConflictError("somebody was faster")},
            ["permit", "has_work", "bind", "unreserve"],
            ERROR,
            'running Bind plugin "Diary": somebody was faster',
            QueueState.ERROR_BACKOFF,
            id="Bind fails",
        ),
    ],
)
def test_from_wherever_it_fails_the_columns_are_as_before_and_the_pod_is_back(
    answers: dict[str, Any], lines: list[str], reason: str, message: str, state: QueueState
) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(0.5)
        assert is_nothing_left(world)
        condition = await world.condition("web")
        assert condition is not None
        assert (*condition[:2], without_line(condition[2])) == ("False", reason, message)
        assert await world.events() == [("web", "FailedScheduling", condition[2])]
        entry = world.scheduler.queue.get((await world.pod("web")).metadata.uid)
        assert entry is not None
        assert (entry.state, entry.pod.node_name) == (state, "")
        assert Diary.lines == ["reserve", *lines]
        await world.create(pod("other", cpu=1))
        await world.settle(0.4)
        assert await world.node_of("other") == "n1", "the resources are free"

    write_diary(story, **answers)


@pytest.mark.parametrize(
    ("end", "state"),
    [
        pytest.param(WaitingPod.reject, QueueState.UNSCHEDULABLE, id="after a rejection: it itself sleeps on"),
        pytest.param(WaitingPod.preempt, QueueState.ERROR_BACKOFF, id="after an error"),
    ],
)
def test_unschedulable_pods_get_an_event_for_freed_resources(
    end: Callable[[WaitingPod, str, str], bool], state: QueueState
) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(0.1)
        await world.create(pod("other", cpu=1))
        await world.settle(5)
        (waiting,) = world.scheduler.waiting_pods
        assert await world.node_of("other") == ""
        assert end(waiting, "Diary", "go")
        entry = world.scheduler.queue.get(waiting.pod.uid)
        assert entry is not None
        assert entry.state is state
        await world.settle(0.5)
        assert await world.node_of("other") == "n1"

    write_diary(story, permit=Wait(60))


# --- 1. A waiting pod costs no place among the bindings ---------------------------------------------------------------


def test_a_pod_that_waits_for_permit_does_not_delay_other_bindings() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=2), pod("web", cpu=1))
        await world.settle(0.1)
        uid = (await world.pod("web")).metadata.uid
        assert world.scheduler.bindings.running[uid].stage is BindingStage.WAITING
        assert world.scheduler.binding_pool.running == 0
        assert (await world.pod("web")).status.nominated_node_name == "n1", "others can read where it is going"
        await world.create(pod("other", cpu=1))
        await world.settle(0.1)
        assert (await world.node_of("web"), await world.node_of("other")) == ("", "n1")
        world.scheduler.waiting_pods.get(uid).allow("Diary")  # type: ignore[union-attr]
        await world.settle(0.1)
        assert await world.node_of("web") == "n1"

    lines = write_diary(story, bindings_max=1, permit=Wait(60))
    assert lines == ["reserve", "permit", "has_work", "bind", "post_bind"]


# --- 2. A binding whose outcome is unknown ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "look_ups_lost", "event"),
    [
        pytest.param(Outcome.ANSWER_LOST, 0, "Scheduled", id="it was carried out"),
        pytest.param(Outcome.ANSWER_LOST, 3, "Scheduled", id="it was carried out, and that is found out late"),
        pytest.param(Outcome.REQUEST_LOST, 0, "Scheduled", id="it was not, so the binding is sent again"),
    ],
)
def test_the_pod_is_looked_up_before_its_resources_is_given_away(
    outcome: Outcome, look_ups_lost: int, event: str
) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(8)
        reported = [reason for _, reason, _ in await world.events()]
        assert reported[0] == event
        assert reported.count("Scheduled") == 1
        assert await world.node_of("web") == "n1"

    broken = Fault("get", Outcome.BROKEN, kind=POD, times=look_ups_lost)
    write_diary(story, Fault("bind", outcome), broken)


def test_a_binding_that_was_not_sent_is_forgotten_without_a_lookup() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(0.5)
        assert is_nothing_left(world)
        assert [reason for _, reason, _ in await world.events()] == ["FailedScheduling"]
        await world.settle(5)
        assert await world.node_of("web") == "n1"

    no_lookup = Fault("get", Outcome.REQUEST_LOST, kind=POD, times=None)
    write_diary(story, Fault("bind", Outcome.NOT_LEADING), no_lookup)


def test_while_the_lookup_fails_the_pod_stays_assumed_up_to_a_limit() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(5)
        await world.create(pod("other", cpu=1))
        await world.settle(100)
        assert len(world.scheduler.assumed_pods) == 1
        assert [await world.node_of(name) for name in ("web", "other")] == ["", ""]
        await world.settle(10.0 * LOOKUPS_MAX)
        assert await world.node_of("other") == "n1"
        assert ("web", "FailedScheduling") in {(name, reason) for name, reason, _ in await world.events()}
        assert world.scheduler.bindings.running == {}

    nobody_answers = Fault("get", Outcome.REQUEST_LOST, kind=POD, times=LOOKUPS_MAX)
    write_diary(story, Fault("bind", Outcome.REQUEST_LOST), nobody_answers)


def test_a_pod_that_another_scheduler_bound_to_the_same_node_reports_no_success() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(0.5)
        uid = (await world.pod("web")).metadata.uid
        await world.client.bind("default", "web", uid, "n1")  # another scheduler
        await world.settle(20)
        assert [reason for _, reason, _ in await world.events()] == ["FailedScheduling"]
        assert world.scheduler.engine.columns.pods[uid].node_name == "n1"
        assert world.scheduler.bindings.running == {}

    lines = write_diary(story, Fault("bind", delay_s=1), Fault("next_batch", kind=POD, delay_s=5, after=1))
    assert "unreserve" in lines
    assert "post_bind" not in lines


# --- 3. The event buffer ----------------------------------------------------------------------------------------------


def test_a_failure_waits_while_the_event_buffer_is_held() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(0.1)
        (waiting,) = world.scheduler.waiting_pods
        with world.scheduler.event_buffer.held():
            assert waiting.reject("Diary", "no")
            await world.settle(5)
            assert len(world.scheduler.engine.columns.pods) == 1
            assert await world.events() == []
        assert is_nothing_left(world)
        await world.settle(0.5)
        assert ("web", "FailedScheduling", "0/1 nodes are available: 1 no.") in await world.events()

    write_diary(story, permit=Wait(60))


def test_what_cannot_be_released_is_logged_and_the_pod_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        with caplog.at_level(logging.ERROR):
            await world.settle(0.5)
        assert "plugin Diary could not release what it had written for pod default/web" in caplog.text
        await world.settle(20)
        assert await world.node_of("web") == "n1"

    write_diary(story, has_work=True, pre_bind=Status.error("away"), released=ValueError("oops"))


@pytest.mark.parametrize(
    "watch_delay_s",
    [
        pytest.param(0.0, id="the watch reports the deletion before the binding fails"),
        pytest.param(5.0, id="the binding fails before the watch reports the deletion"),
    ],
)
def test_a_pod_deleted_before_it_is_bound_is_not_logged_as_an_error(
    watch_delay_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(0.5)
        await world.delete("web")
        await world.settle(20)
        assert is_nothing_left(world)
        assert await world.events("FailedScheduling")

    with caplog.at_level(logging.INFO, logger="mooring.scheduler"):
        write_diary(story, Fault("bind", delay_s=1), Fault("next_batch", kind=POD, delay_s=watch_delay_s, after=1))
    assert "pod default/web no longer exists" in caplog.text
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


ENGINE = engine_of(node("n1"))


def binding() -> Binding:
    record = ENGINE.record(pod("web"))
    profile = ENGINE.cycle_for(record).profile
    return Binding(QueuedPod(record, 0.0), profile, AssumedPod(record, "n1"), (), 0.0)


def test_before_pre_bind_there_is_nothing_to_call_off() -> None:
    running = binding()
    assert running.stage is BindingStage.READY
    assert not running.cancel("DefaultPreemption")
    assert running.cancelled_by == ""


def test_a_pre_bind_that_waits_is_interrupted_and_its_task_goes_on() -> None:
    running, seen, clock = binding(), list[str](), VirtualClock()

    async def worker() -> None:
        running.begin_pre_bind()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("interrupted")
        seen.append(f"called off: {running.end_pre_bind()}")
        await clock.wait(1)  # the worker has other jobs to do
        seen.append("went on")

    async def main() -> None:
        task = asyncio.get_running_loop().create_task(worker())
        await clock.wait(1)
        assert running.stage is BindingStage.PREPARING
        assert running.cancel("DefaultPreemption")
        assert running.cancel("DefaultPreemption"), "whoever comes second has the same answer"
        await task

    run(main(), clock)
    assert seen == ["interrupted", "called off: True", "went on"]


def test_after_pre_bind_it_is_too_late() -> None:
    running = binding()

    async def main() -> None:
        running.begin_pre_bind()
        assert not running.end_pre_bind()
        assert running.stage is BindingStage.BINDING
        assert not running.cancel("DefaultPreemption")

    run(main())
