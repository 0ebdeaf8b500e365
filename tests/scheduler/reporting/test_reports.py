"""Reports: conditions, events, metrics, log lines and recent decisions; the writes of the status writer."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from mooring.api.kinds import POD
from mooring.api.views.meta import Condition, ObjectReference
from mooring.api.views.pod import Pod
from mooring.client.events import EventKey, EventRecorder
from mooring.client.interface import UnavailableClient
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.logs import ATTEMPTS, JsonFormatter
from mooring.kit.loop import run
from mooring.kit.tasks import WorkerPool
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Status
from mooring.scheduler.queue.queued_pod import QueuedPod
from mooring.scheduler.reporting.metrics import Metrics, PluginTiming
from mooring.scheduler.reporting.reports import SAMPLED_ONE_IN, TRIES_MAX, Failure, Reports, StatusWriter
from tests.builders import pod
from tests.client.faulty import Fault, FaultyClient, Outcome, Request, Script
from tests.scheduler.harness import engine_of
from tests.scheduler.queue.builders import profile
from tests.scheduler.world import World, open_world

ENGINE = engine_of()
MINE = profile(scheduler_name="mine")


def seen(view: Pod, revision: str) -> Pod:
    return replace(view, metadata=replace(view.metadata, resource_version=revision))


WEB = ENGINE.record(seen(pod("web", uid="web-uid", scheduler="mine"), "12"))
VICTIM = ENGINE.record(seen(pod("victim", uid="victim-uid", on="n1"), "7"))
FORGOTTEN = ENGINE.record(pod("gone", uid="gone-uid"))
FORGOTTEN.view = None

Written = tuple[str, Condition | None, str | None]


class WrittenStatus(StatusWriter):
    """Remembers what it should write."""

    written: list[Written]

    def write(self, pod: Pod, condition: Condition | None = None, nominated_node: str | None = None) -> None:
        self.written.append((pod.metadata.name, condition, nominated_node))


class ReportsFixture:
    """Reports, and everything that went out."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.registry = CollectorRegistry()
        self.events: list[tuple[EventKey, str]] = []
        self.status = WrittenStatus(UnavailableClient(), self.clock, WorkerPool("status", 1))
        self.status.written = []
        recorders = {
            name: EventRecorder(lambda key, note: self.events.append((key, note)), name, f"{name}-0")
            for name in ("mine", "default-scheduler")
        }
        self.reports = Reports(recorders, self.status, Metrics(self.registry), self.clock, Entropy(1))

    def counted(self) -> dict[str, float]:
        """All samples that are not zero, without buckets: `name{label values}`."""
        found = {}
        for metric in self.registry.collect():
            for sample in metric.samples:
                if sample.value and not sample.name.endswith("_bucket"):
                    labels = f"{{{','.join(sample.labels.values())}}}" if sample.labels else ""
                    found[sample.name.removeprefix("scheduler_") + labels] = sample.value
        return found


def reference(name: str, revision: str) -> ObjectReference:
    return ObjectReference(
        api_version="v1", kind="Pod", namespace="default", name=name, uid=f"{name}-uid", resource_version=revision
    )


ABOUT_WEB = reference("web", "12")


@pytest.mark.parametrize(
    ("act", "level", "line", "carried"),
    [
        pytest.param(
            lambda reports: reports.decided(Decision(WEB, node_name="n1", feasible_count=4), 1, 0.1),
            ATTEMPTS,
            "pod default/web gets n1, feasible nodes: 4",
            {"pod": "default/web", "node": "n1", "feasibleNodes": 4},
            id="decided",
        ),
        pytest.param(
            lambda reports: reports.preempted(VICTIM, WEB, "n1", "mine", is_in_memory=False),
            ATTEMPTS,
            "pod default/victim on n1 is preempted by pod default/web",
            {"pod": "default/victim", "node": "n1", "preemptor": "default/web"},
            id="preempted",
        ),
        pytest.param(
            lambda reports: reports.scheduled(QueuedPod(WEB, 0.0), None, MINE, "n1", 0.0),
            ATTEMPTS,
            "pod default/web is bound to n1, attempts: 0",
            {"pod": "default/web", "node": "n1", "attempts": 0},
            id="bound: for those who want to know",
        ),
        pytest.param(
            lambda reports: reports.failed(
                WEB, WEB.view, MINE, Failure("0/1 nodes are available.", is_error=False, plugin="NodePorts,NodeName")
            ),
            ATTEMPTS,
            "pod default/web is unschedulable: 0/1 nodes are available.",
            {"pod": "default/web", "plugin": "NodePorts,NodeName", "reason": "0/1 nodes are available."},
            id="rejected: as quietly",
        ),
        pytest.param(
            lambda reports: reports.failed(
                WEB, WEB.view, MINE, Failure('running "Mine" filter plugin: oh', is_error=True, plugin="Mine")
            ),
            logging.ERROR,
            'scheduling pod default/web failed: running "Mine" filter plugin: oh',
            {"pod": "default/web", "plugin": "Mine", "reason": 'running "Mine" filter plugin: oh'},
            id="failed: for everybody, with who did it",
        ),
    ],
)
def test_log_lines(
    act: Callable[[Reports], None],
    level: int,
    line: str,
    carried: dict[str, object],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(ATTEMPTS, logger="mooring")
    act(ReportsFixture().reports)
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (level, line)
    written = json.loads(JsonFormatter().format(record))
    assert {name: value for name, value in written.items() if name not in ("ts", "caller", "msg", "v")} == carried
    assert written["caller"] == f"reporting/reports.py:{record.lineno}"


@pytest.mark.parametrize(
    ("act", "key", "note"),
    [
        pytest.param(
            lambda reports: reports.scheduled(QueuedPod(WEB, 0.0), None, MINE, "n1", 0.0),
            ("Normal", "Binding", "Scheduled", "mine", "mine-0", ABOUT_WEB, None),
            "Successfully assigned default/web to n1",
            id="bound",
        ),
        pytest.param(
            lambda reports: reports.failed(WEB, WEB.view, MINE, Failure("0/1 nodes are available.", is_error=False)),
            ("Warning", "Scheduling", "FailedScheduling", "mine", "mine-0", ABOUT_WEB, None),
            "0/1 nodes are available.",
            id="rejected",
        ),
        pytest.param(
            lambda reports: reports.skipped(WEB, "mine"),
            ("Warning", "Scheduling", "FailedScheduling", "mine", "mine-0", ABOUT_WEB, None),
            "skip schedule deleting pod: default/web",
            id="it is being deleted",
        ),
        pytest.param(
            lambda reports: reports.preempted(VICTIM, WEB, "n1", "mine", is_in_memory=False),
            ("Normal", "Preempting", "Preempted", "mine", "mine-0", reference("victim", "7"), ABOUT_WEB),
            "Preempted by pod web-uid on node n1",
            id="preempted: notified of the victim, because of the preemptor",
        ),
        pytest.param(
            lambda reports: reports.preempted(VICTIM, WEB, "n1", "mine", is_in_memory=True),
            ("Normal", "Preempting", "Preempted", "mine", "mine-0", reference("victim", "7"), ABOUT_WEB),
            "Preempted by pod web-uid on node n1 (in kube-scheduler memory).",
            id="preempted before it was bound",
        ),
        pytest.param(
            lambda reports: reports.event(WEB, "Normal", "Reason", "Action", "a note"),
            ("Normal", "Action", "Reason", "mine", "mine-0", ABOUT_WEB, None),
            "a note",
            id="what a plugin says comes from the pod's own scheduler",
        ),
        pytest.param(
            lambda reports: reports.event(FORGOTTEN, "Normal", "Reason", "Action", "a note"),
            (
                "Normal",
                "Action",
                "Reason",
                "default-scheduler",
                "default-scheduler-0",
                reference("gone", ""),
                None,
            ),
            "a note",
            id="a pod that names no scheduler, and whose revision nobody remembers",
        ),
    ],
)
def test_events(act: Callable[[Reports], None], key: EventKey, note: str) -> None:
    fixture = ReportsFixture()
    act(fixture.reports)
    assert fixture.events == [(key, note)]


def rejected(message: str, reason: str) -> Condition:
    return Condition(type="PodScheduled", status="False", reason=reason, message=message)


@pytest.mark.parametrize(
    ("act", "written"),
    [
        pytest.param(
            lambda reports: reports.failed(WEB, WEB.view, MINE, Failure("no room", is_error=False)),
            [("web", rejected("no room", "Unschedulable"), None)],
            id="rejected: the nomination stays as it is",
        ),
        pytest.param(
            lambda reports: reports.failed(WEB, WEB.view, MINE, Failure("oops", is_error=True, nominated_node="")),
            [("web", rejected("oops", "SchedulerError"), "")],
            id="an error, and the nomination is void",
        ),
        pytest.param(
            lambda reports: reports.failed(FORGOTTEN, None, MINE, Failure("no room", is_error=False)),
            [],
            id="nobody remembers the pod: its status cannot be reported",
        ),
        pytest.param(lambda reports: reports.nominate(WEB, "n1"), [("web", None, "n1")], id="it is on its way"),
        pytest.param(lambda reports: reports.nominate(FORGOTTEN, "n1"), [], id="it is on its way, and forgotten"),
        pytest.param(
            lambda reports: reports.clear_nomination(WEB), [("web", None, "")], id="another pod needs the node"
        ),
        pytest.param(lambda reports: reports.clear_nomination(FORGOTTEN), [], id="a nomination of one forgotten"),
        pytest.param(lambda reports: reports.skipped(WEB, "mine"), [], id="a pod that goes needs no status"),
    ],
)
def test_statuses(act: Callable[[Reports], None], written: list[Written]) -> None:
    fixture = ReportsFixture()
    act(fixture.reports)
    assert fixture.status.written == written


def bound(*, attempts: int = 1, first_attempt_s: float | None = 1.0, was_flushed: bool = False) -> QueuedPod:
    entry = QueuedPod(WEB, 0.0)
    entry.attempts, entry.first_attempt_s, entry.was_flushed = attempts, first_attempt_s, was_flushed
    return entry


ATTEMPT_AT_3_S = {
    "schedule_attempts_total{scheduled,mine}": 1,
    "scheduling_attempt_duration_seconds_count{scheduled,mine}": 1,
    "scheduling_attempt_duration_seconds_sum{scheduled,mine}": 3,
    "pod_scheduling_attempts_count": 1,
}


@pytest.mark.parametrize(
    ("act", "counted"),
    [
        pytest.param(
            lambda reports: reports.scheduled(bound(attempts=2), None, MINE, "n1", 2.0),
            ATTEMPT_AT_3_S
            | {
                "pod_scheduling_attempts_sum": 2,
                "pod_scheduling_sli_duration_seconds_count{2}": 1,
                "pod_scheduling_sli_duration_seconds_sum{2}": 4,
            },
            id="bound: from the start of the attempt, and from the first of them",
        ),
        pytest.param(
            lambda reports: reports.scheduled(
                bound(attempts=15, first_attempt_s=None, was_flushed=True), None, MINE, "n1", 2.0
            ),
            ATTEMPT_AT_3_S | {"pod_scheduling_attempts_sum": 15, "pod_scheduled_after_flush_total": 1},
            id="bound after the unschedulable timeout",
        ),
        pytest.param(
            lambda reports: reports.scheduled(bound(attempts=40), None, MINE, "n1", 2.0),
            ATTEMPT_AT_3_S
            | {
                "pod_scheduling_attempts_sum": 40,
                "pod_scheduling_sli_duration_seconds_count{15+}": 1,
                "pod_scheduling_sli_duration_seconds_sum{15+}": 4,
            },
            id="bound after very many attempts",
        ),
        pytest.param(
            lambda reports: reports.attempt_failed(MINE, False, 2.0),
            {
                "schedule_attempts_total{unschedulable,mine}": 1,
                "scheduling_attempt_duration_seconds_count{unschedulable,mine}": 1,
                "scheduling_attempt_duration_seconds_sum{unschedulable,mine}": 3,
            },
            id="rejected",
        ),
        pytest.param(
            lambda reports: reports.attempt_failed(MINE, True, 5.0),
            {
                "schedule_attempts_total{error,mine}": 1,
                "scheduling_attempt_duration_seconds_count{error,mine}": 1,
            },
            id="failed",
        ),
        pytest.param(
            lambda reports: reports.permit_waited(None, 2.0),
            {"permit_wait_duration_seconds_count{Success}": 1, "permit_wait_duration_seconds_sum{Success}": 2},
            id="Permit let it go",
        ),
        pytest.param(
            lambda reports: reports.permit_waited(Status.unschedulable("no"), 2.0),
            {
                "permit_wait_duration_seconds_count{Unschedulable}": 1,
                "permit_wait_duration_seconds_sum{Unschedulable}": 2,
            },
            id="Permit did not",
        ),
        pytest.param(
            lambda reports: reports.preempting(3),
            {"preemption_victims_count": 1, "preemption_victims_sum": 3},
            id="victims",
        ),
        pytest.param(
            lambda reports: reports.preemption_ended(True, 2.0),
            {
                "preemption_goroutines_execution_total{success}": 1,
                "preemption_goroutines_duration_seconds_count{success}": 1,
                "preemption_goroutines_duration_seconds_sum{success}": 2,
            },
            id="a preemption that was carried out",
        ),
        pytest.param(
            lambda reports: reports.preemption_ended(False, 2.0),
            {
                "preemption_goroutines_execution_total{error}": 1,
                "preemption_goroutines_duration_seconds_count{error}": 1,
                "preemption_goroutines_duration_seconds_sum{error}": 2,
            },
            id="one that was not",
        ),
        pytest.param(
            lambda reports: reports.pod_queued("active", "PodAdd"),
            {"queue_incoming_pods_total{active,PodAdd}": 1},
            id="the queue",
        ),
    ],
)
def test_what_is_counted_at_5_s(act: Callable[[Reports], None], counted: dict[str, float]) -> None:
    fixture = ReportsFixture()
    fixture.clock.advance_to(5.0)
    act(fixture.reports)
    assert fixture.counted() == counted


@pytest.mark.parametrize(
    ("decision", "preemption_attempts"),
    [
        pytest.param(Decision(WEB, node_name="n1"), 0, id="placed"),
        pytest.param(Decision(WEB, message="0/1 nodes"), 1, id="rejected: preemption was tried"),
        pytest.param(Decision(WEB, message="oops", error="filter"), 0, id="the cycle failed: it was not"),
    ],
)
def test_a_decision_is_kept_and_counted(decision: Decision, preemption_attempts: int) -> None:
    fixture = ReportsFixture()
    fixture.reports.decided(decision, 1, 0.25)
    counted = fixture.counted()
    assert counted.pop("preemption_attempts_total", 0) == preemption_attempts
    assert counted == {
        "scheduling_algorithm_duration_seconds_count": 1,
        "scheduling_algorithm_duration_seconds_sum": 0.25,
    }
    assert [record.pod for record in fixture.reports.decisions.recent()] == ["default/web"]


def test_the_first_cycle_is_timed_and_then_one_in_so_many_by_chance() -> None:
    reports, cycles = ReportsFixture().reports, 200 * SAMPLED_ONE_IN
    timed = [number for number in range(cycles) if reports.sampled(MINE) is not None]
    gaps = {after - before for before, after in pairwise(timed)}
    assert timed[0] == 0
    assert 150 <= len(timed) <= 250
    assert min(gaps) >= 1
    assert max(gaps) < 2 * SAMPLED_ONE_IN
    assert len(gaps) > SAMPLED_ONE_IN, "no rhythm that a workload could fall in with"


def test_each_profile_has_one_stopwatch() -> None:
    reports, other = ReportsFixture().reports, profile(scheduler_name="default-scheduler")

    def next_for(wanted: Profile) -> PluginTiming:
        while (timing := reports.sampled(wanted)) is None:
            pass
        return timing

    assert next_for(MINE) is next_for(MINE)
    assert next_for(other) is not next_for(MINE)


def test_before_a_binding_the_status_falls_silent() -> None:
    asked: list[str] = []

    class Silent(WrittenStatus):
        def discard_writes(self, uid: str) -> asyncio.Event | None:
            asked.append(uid)
            return None

    fixture = ReportsFixture()
    status = Silent(UnavailableClient(), fixture.clock, WorkerPool("status", 1))
    reports = Reports({}, status, Metrics(CollectorRegistry()), fixture.clock, Entropy(1))
    assert reports.discard_writes(WEB) is None
    assert asked == ["web-uid"]


NO_ROOM = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")
STILL_NONE = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="still no room")

Reported = Callable[[StatusWriter, Pod, World], Awaitable[None]]


def playing(reported: Reported, *faults: Fault) -> list[Request]:
    """A writer and a pod; the patches that were asked for."""
    clock = VirtualClock()
    clients: list[FaultyClient] = []

    async def main() -> None:
        async with open_world(clock, Entropy(1)) as world:
            client = FaultyClient(world.client, clock, Script(*faults))
            clients.append(client)
            pool = WorkerPool("status", 2)
            pool.open(world.group)
            await world.create(pod("web"))
            await reported(StatusWriter(client, clock, pool), await world.pod("web"), world)

    run(main(), clock)
    return [request for request in clients[0].requests if request.verb == "patch"]


async def fallen_silent(writer: StatusWriter, pod: Pod) -> None:
    """As before a binding."""
    if (answered := writer.discard_writes(pod.metadata.uid)) is not None:
        await answered.wait()


def test_what_is_wanted_while_a_patch_is_under_way_is_sent_together() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await world.settle(1)
        writer.write(web, NO_ROOM, nominated_node="n1")
        writer.write(web, STILL_NONE)
        writer.write(web, nominated_node="n2")
        await world.settle(10)
        assert await world.condition("web") == ("False", "Unschedulable", "still no room")
        assert (await world.pod("web")).status.nominated_node_name == "n2"
        assert len(writer) == 0

    assert len(playing(reported, Fault("patch", delay_s=5))) == 2


def test_a_condition_that_the_status_has_is_not_sent() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, nominated_node="")
        writer.write(web, NO_ROOM)
        await world.settle(1)
        writer.write(await world.pod("web"), NO_ROOM, nominated_node="")
        await world.settle(1)

    assert len(playing(reported)) == 1


@pytest.mark.parametrize(
    ("outcome", "tries"),
    [
        pytest.param(Outcome.BROKEN, TRIES_MAX, id="the server's trouble may pass"),
        pytest.param(Outcome.REQUEST_LOST, TRIES_MAX, id="no answer: again"),
        pytest.param(Outcome.CONFLICT, 1, id="it is another pod by now"),
    ],
)
def test_how_often_a_patch_is_tried(outcome: Outcome, tries: int) -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await world.settle(200)
        assert (len(writer), writer.failures) == (0, 1)

    assert len(playing(reported, Fault("patch", outcome, times=None))) == tries


def test_a_pod_that_is_gone_needs_no_status() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        await world.delete("web")
        await world.create(pod("web"))  # of the same name, and not the one that is meant
        writer.write(web, NO_ROOM)
        await world.settle(10)
        assert await world.condition("web") is None
        assert len(writer) == 0

    playing(reported)


def test_before_a_binding_what_is_not_sent_yet_is_dropped() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await fallen_silent(writer, web)
        await world.settle(10)
        assert await world.condition("web") is None

    assert playing(reported) == []


def test_before_a_binding_what_is_under_way_is_waited_for() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await world.settle(1)
        writer.write(web, STILL_NONE)
        began_s = world.clock.now_s()
        await fallen_silent(writer, web)
        assert world.clock.now_s() - began_s == pytest.approx(4)
        await world.settle(10)
        assert await world.condition("web") == ("False", "Unschedulable", "no room")

    assert len(playing(reported, Fault("patch", delay_s=5))) == 1


def test_before_a_binding_a_patch_that_would_be_tried_again_is_not() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await world.settle(1)
        began_s = world.clock.now_s()
        await fallen_silent(writer, web)
        assert world.clock.now_s() == began_s
        await world.settle(100)
        assert await world.condition("web") is None
        assert len(writer) == 0

    playing(reported, Fault("patch", Outcome.BROKEN, times=5))


def test_after_that_the_pod_may_be_reportedmething_new() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await world.settle(0.1)
        await fallen_silent(writer, web)
        writer.write(web, STILL_NONE)  # the binding has failed
        await world.settle(100)
        assert await world.condition("web") == ("False", "Unschedulable", "still no room")

    playing(reported, Fault("patch", Outcome.BROKEN, times=3))


def test_the_pod_is_named_by_its_uid() -> None:
    async def reported(writer: StatusWriter, web: Pod, world: World) -> None:
        writer.write(web, NO_ROOM)
        await world.settle(1)

    (request,) = playing(reported)
    subject = request.subject
    assert isinstance(subject, dict)
    assert (request.kind, request.subresource) == (POD, "status")
    assert set(subject["metadata"]) == {"uid"}
