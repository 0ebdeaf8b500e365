"""Failures between a server and a reflector: the sink gets each change once, in order."""

from __future__ import annotations

import itertools

import pytest

from mooring.api.kinds import POD
from mooring.api.views.pod import Pod
from mooring.apiserver.loopback import LoopbackClient
from mooring.client.informer import Informer
from mooring.client.interface import Change
from mooring.client.reflector import Reflector
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from tests.client.contract_play import NS
from tests.client.http.play import HttpSetup, run_over_http
from tests.client.http.server import Cut, CutWatch, Refuse, Reset, ServerFault
from tests.client.objects import pod, text_at

ROUNDS = 6


class CheckingSink:
    """A sink that asserts that revisions increase."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, int]] = []
        self.last = 0
        self.replaced = 0

    def replace(self, views: object, revision: str) -> None:
        self.replaced += 1
        self.last = int(revision)

    def apply(self, change: Change, view: Pod) -> None:
        revision = int(view.metadata.resource_version)
        assert revision > self.last, f"{revision} follows {self.last}"
        self.last = revision
        self.changes.append((change.value, view.metadata.name, revision))


async def create_and_bind(local: LoopbackClient, number: int) -> list[tuple[str, str, int]]:
    """Create and bind a pod; the events that a watch must return."""
    name = f"pod-{number}"
    created = await local.create(POD, NS, pod(name))
    await local.bind(NS, name, "", "n1")
    bound = await local.get(POD, NS, name)
    first, second = (int(text_at(raw, "metadata.resourceVersion")) for raw in (created, bound))
    return [("ADDED", name, first), ("MODIFIED", name, second)]


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([CutWatch(3, Cut.ORDERLY)], id="the server ends the watch"),
        pytest.param([CutWatch(3, Cut.RESET)], id="the connection is reset"),
        pytest.param([CutWatch(3, Cut.HALF_A_LINE)], id="half a line, complete response"),
        pytest.param([CutWatch(3, Cut.HALF_A_LINE_RESET)], id="half a line, reset"),
        pytest.param([CutWatch(0, Cut.RESET), CutWatch(0, Cut.ORDERLY)], id="no events before the end"),
        pytest.param([CutWatch(2, Cut.FAILED_EVENT)], id="an error event"),
        pytest.param([CutWatch(2, Cut.GARBAGE)], id="HTML of a proxy"),
        pytest.param([Refuse(500, method="WATCH"), Refuse(503, method="WATCH")], id="rejected with 5xx"),
        pytest.param([Refuse(429, {"Retry-After": "1"}, method="WATCH")] * 3, id="rejected with 429"),
        pytest.param([Reset(method="WATCH")], id="reset before the response"),
        pytest.param(
            [CutWatch(number % 4, how) for number, how in enumerate(Cut) if how is not Cut.EXPIRED_EVENT],
            id="all in sequence",
        ),
    ],
)
def test_watch_failures_do_not_lose_or_repeat_changes(faults: list[ServerFault]) -> None:
    sink = CheckingSink()

    async def scenario(setup: HttpSetup) -> None:
        await setup.local.create(POD, NS, pod("first"))
        setup.server.faults = list(faults)
        reflector = Reflector(setup.client, POD, Pod, sink, clock=setup.clock, entropy=Entropy(1))
        expected: list[tuple[str, str, int]] = []
        async with TaskGroup("faults") as group:
            group.start_background(reflector.run(), name="reflector")
            await reflector.wait_synced()
            for number in itertools.count():
                expected += await create_and_bind(setup.local, number)
                await setup.clock.wait(2.0)
                if number >= ROUNDS and not setup.server.faults:
                    break
            while len(sink.changes) < len(expected):
                await setup.clock.wait(1.0)
        assert sink.changes == expected
        assert sink.replaced == 1
        assert reflector.statistics()["repeated"] == 0

    run_over_http(scenario)


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([CutWatch(3, Cut.EXPIRED_EVENT)], id="an error event"),
        pytest.param([CutWatch(3, Cut.RESET), Refuse(410, method="WATCH")], id="a status"),
        pytest.param(
            [CutWatch(1, Cut.EXPIRED_EVENT), Refuse(500, method="GET"), Reset(method="GET")],
            id="and the next list fails",
        ),
    ],
)
def test_after_an_expired_watch_handlers_are_called_only_for_differences(faults: list[ServerFault]) -> None:
    calls: list[str] = []

    async def scenario(setup: HttpSetup) -> None:
        await setup.local.create(POD, NS, pod("first"))
        setup.server.faults = [fault for fault in faults if fault.method == "WATCH"]
        informer: Informer[Pod] = Informer("pods")
        informer.add_handler(
            "handler",
            on_add=lambda new: calls.append(f"+{new.metadata.name}@{new.metadata.resource_version}"),
            on_update=lambda old, new: calls.append(f"~{new.metadata.name}@{new.metadata.resource_version}"),
        )
        reflector = Reflector(setup.client, POD, Pod, informer, clock=setup.clock, entropy=Entropy(1))
        async with TaskGroup("faults") as group:
            group.start_background(reflector.run(), name="reflector")
            await reflector.wait_synced()
            setup.server.faults += [fault for fault in faults if fault.method != "WATCH"]
            for number in range(ROUNDS):
                await create_and_bind(setup.local, number)
                await setup.clock.wait(2.0)
            while len(informer.lister.list()) < ROUNDS + 1 or not all(
                each.spec.node_name for each in informer.lister.list() if each.metadata.name != "first"
            ):
                await setup.clock.wait(1.0)
        assert reflector.statistics()["lists"] == 2
        assert len(calls) == len(set(calls)), "a handler was called twice for one change"
        for number in range(ROUNDS):
            changes = [line for line in calls if f"pod-{number}@" in line]
            assert changes[0].startswith("+")
            assert all(line.startswith("~") for line in changes[1:])

    run_over_http(scenario)


def test_a_reflector_continues_after_a_restart_of_the_server() -> None:
    sink = CheckingSink()

    async def scenario(setup: HttpSetup) -> None:
        await setup.local.create(POD, NS, pod("first"))
        reflector = Reflector(setup.client, POD, Pod, sink, clock=setup.clock, entropy=Entropy(1))
        async with TaskGroup("restart") as group:
            group.start_background(reflector.run(), name="reflector")
            await reflector.wait_synced()
            expected = await create_and_bind(setup.local, 0)
            while len(sink.changes) < 2:
                await setup.clock.wait(1.0)
            await setup.server.stop()
            expected += await create_and_bind(setup.local, 1)
            await setup.clock.wait(20.0)
            await setup.server.start()
            expected += await create_and_bind(setup.local, 2)
            while len(sink.changes) < len(expected):
                await setup.clock.wait(1.0)
        assert sink.changes == expected
        assert sink.replaced == 1

    run_over_http(scenario)


@pytest.mark.parametrize(
    ("can_watch_all", "faults", "asked"),
    [
        pytest.param(True, [], ["WATCH all"], id="supported by the server"),
        pytest.param(False, [], ["WATCH all", "GET", "WATCH"], id="not supported by the server"),
        pytest.param(True, [Reset(method="WATCH")] * 12, ["WATCH all"] * 13, id="lost requests are repeated"),
        pytest.param(
            True,
            [Refuse(429, method="WATCH")],
            ["WATCH all", "WATCH all"],
            id="a request rejected with 429 is repeated",
        ),
        pytest.param(
            True, [CutWatch(3, Cut.RESET)], ["WATCH all", "WATCH"], id="a reset watch continues at the last revision"
        ),
        pytest.param(
            True,
            [CutWatch(3, Cut.EXPIRED_EVENT), Refuse(410, method="WATCH")],
            ["WATCH all", "WATCH", "WATCH all"],
            id="an expired watch starts again with initial events",
        ),
    ],
)
def test_a_reflector_can_be_filled_by_a_watch_with_initial_events(
    can_watch_all: bool, faults: list[ServerFault], asked: list[str]
) -> None:
    async def scenario(setup: HttpSetup) -> None:
        await setup.local.create(POD, NS, pod("first"))
        setup.server.faults = list(faults)
        informer: Informer[Pod] = Informer("pods")
        reflector = Reflector(
            setup.client,
            POD,
            Pod,
            informer,
            clock=setup.clock,
            entropy=Entropy(1),
            uses_watch_list=True,
        )
        async with TaskGroup("watch list") as group:
            group.start_background(reflector.run(), name="reflector")
            await reflector.wait_synced()
            assert "default/first" in {view.key for view in informer.lister.list()}
            for number in range(3):
                await create_and_bind(setup.local, number)
            while len(informer.lister.list()) < 4 or setup.server.faults or len(setup.server.requests) < len(asked):
                await setup.clock.wait(1.0)
        kinds = [
            request.partition(" ")[0] + " all" * ("sendInitialEvents" in request) for request in setup.server.requests
        ]
        assert kinds == asked
        wanted = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        assert all(wanted in request for request in setup.server.requests if "sendInitialEvents" in request)

    run_over_http(scenario, can_watch_all=can_watch_all)
