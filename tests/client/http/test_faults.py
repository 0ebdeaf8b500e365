"""Failures between a server and a reflector: the sink gets each change once, in order."""

from __future__ import annotations

import itertools

import pytest

from mooring.api.kinds import POD
from mooring.api.views.pod import Pod
from mooring.apiserver.loopback import LoopbackClient
from mooring.client.cache.informer import Informer
from mooring.client.cache.reflector import Reflector
from mooring.client.interface import Change
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from tests.client.contract_play import NS
from tests.client.http.play import Scene, play_over_http
from tests.client.http.server import Cut, CutWatch, Refuse, Reset, ServerFault
from tests.client.objects import pod, text_at

ROUNDS = 6


class Ledger:
    """A sink that asserts that revisions increase."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, int]] = []
        self.last = 0
        self.replaced = 0

    def replace(self, views: object, revision: str) -> None:
        self.replaced += 1
        self.last = int(revision)

    def apply(self, change: Change, view: Pod) -> None:
        revision = int(view.metadata.resource_version)
        assert revision > self.last, f"{revision} is told after {self.last}"
        self.last = revision
        self.told.append((change.value, view.metadata.name, revision))


async def live(local: LoopbackClient, number: int) -> list[tuple[str, str, int]]:
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
        pytest.param([CutWatch(3, Cut.HALF_A_LINE)], id="half a line, and an orderly end"),
        pytest.param([CutWatch(3, Cut.HALF_A_LINE_RESET)], id="half a line, and a reset"),
        pytest.param([CutWatch(0, Cut.RESET), CutWatch(0, Cut.ORDERLY)], id="cut before a word is said"),
        pytest.param([CutWatch(2, Cut.FAILED_EVENT)], id="the server tells of an error"),
        pytest.param([CutWatch(2, Cut.GARBAGE)], id="something in between tells of its own"),
        pytest.param([Refuse(500, method="WATCH"), Refuse(503, method="WATCH")], id="refused by a sick server"),
        pytest.param([Refuse(429, {"Retry-After": "1"}, method="WATCH")] * 3, id="refused by a busy server"),
        pytest.param([Reset(method="WATCH")], id="reset before an answer"),
        pytest.param(
            [CutWatch(number % 4, how) for number, how in enumerate(Cut) if how is not Cut.EXPIRED_EVENT],
            id="one after the other",
        ),
    ],
)
def test_watch_failures_do_not_lose_or_repeat_changes(faults: list[ServerFault]) -> None:
    ledger = Ledger()

    async def scenario(scene: Scene) -> None:
        await scene.local.create(POD, NS, pod("first"))
        scene.server.faults = list(faults)
        reflector = Reflector(scene.client, POD, Pod, ledger, clock=scene.clock, entropy=Entropy(1))
        expected: list[tuple[str, str, int]] = []
        async with TaskGroup("faults") as group:
            group.start_background(reflector.run(), name="reflector")
            await reflector.wait_synced()
            for number in itertools.count():
                expected += await live(scene.local, number)
                await scene.clock.wait(2.0)
                if number >= ROUNDS and not scene.server.faults:
                    break
            while len(ledger.told) < len(expected):
                await scene.clock.wait(1.0)
        assert ledger.told == expected
        assert ledger.replaced == 1
        assert reflector.statistics()["repeated"] == 0

    play_over_http(scenario)


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([CutWatch(3, Cut.EXPIRED_EVENT)], id="as an event"),
        pytest.param([CutWatch(3, Cut.RESET), Refuse(410, method="WATCH")], id="as a status"),
        pytest.param(
            [CutWatch(1, Cut.EXPIRED_EVENT), Refuse(500, method="GET"), Reset(method="GET")],
            id="and the list that follows fails too",
        ),
    ],
)
def test_after_an_expired_watch_handlers_are_called_only_for_differences(faults: list[ServerFault]) -> None:
    heard: list[str] = []

    async def scenario(scene: Scene) -> None:
        await scene.local.create(POD, NS, pod("first"))
        scene.server.faults = [fault for fault in faults if fault.method == "WATCH"]
        informer: Informer[Pod] = Informer("pods")
        informer.add_handler(
            "ear",
            on_add=lambda new, is_initial: heard.append(f"+{new.metadata.name}@{new.metadata.resource_version}"),
            on_update=lambda old, new: heard.append(f"~{new.metadata.name}@{new.metadata.resource_version}"),
        )
        reflector = Reflector(scene.client, POD, Pod, informer, clock=scene.clock, entropy=Entropy(1))
        async with TaskGroup("faults") as group:
            group.start_background(reflector.run(), name="reflector")
            await reflector.wait_synced()
            scene.server.faults += [fault for fault in faults if fault.method != "WATCH"]
            for number in range(ROUNDS):
                await live(scene.local, number)
                await scene.clock.wait(2.0)
            while len(informer.lister.list()) < ROUNDS + 1 or not all(
                each.spec.node_name for each in informer.lister.list() if each.metadata.name != "first"
            ):
                await scene.clock.wait(1.0)
        assert reflector.statistics()["lists"] == 2
        assert len(heard) == len(set(heard)), "somebody was told twice"
        for number in range(ROUNDS):
            told = [line for line in heard if f"pod-{number}@" in line]
            assert told[0].startswith("+")
            assert all(line.startswith("~") for line in told[1:])

    play_over_http(scenario)


def test_a_reflector_continues_after_a_restart_of_the_server() -> None:
    ledger = Ledger()

    async def scenario(scene: Scene) -> None:
        await scene.local.create(POD, NS, pod("first"))
        reflector = Reflector(scene.client, POD, Pod, ledger, clock=scene.clock, entropy=Entropy(1))
        async with TaskGroup("restart") as group:
            group.start_background(reflector.run(), name="reflector")
            await reflector.wait_synced()
            expected = await live(scene.local, 0)
            while len(ledger.told) < 2:
                await scene.clock.wait(1.0)
            await scene.server.stop()
            expected += await live(scene.local, 1)
            await scene.clock.wait(20.0)
            await scene.server.start()
            expected += await live(scene.local, 2)
            while len(ledger.told) < len(expected):
                await scene.clock.wait(1.0)
        assert ledger.told == expected
        assert ledger.replaced == 1

    play_over_http(scenario)


@pytest.mark.parametrize(
    ("can_watch_all", "faults", "asked"),
    [
        pytest.param(True, [], ["WATCH all"], id="if it can, it is not listed"),
        pytest.param(False, [], ["WATCH all", "GET", "WATCH"], id="if it cannot, it is listed"),
        pytest.param(
            True, [Reset(method="WATCH")] * 12, ["WATCH all"] * 13, id="what is lost on the way is asked for again"
        ),
        pytest.param(
            True, [Refuse(429, method="WATCH")], ["WATCH all", "WATCH all"], id="a busy server is asked again"
        ),
        pytest.param(True, [CutWatch(3, Cut.RESET)], ["WATCH all", "WATCH"], id="after a cut it goes on where it was"),
        pytest.param(
            True,
            [CutWatch(3, Cut.EXPIRED_EVENT), Refuse(410, method="WATCH")],
            ["WATCH all", "WATCH", "WATCH all"],
            id="when the history is gone it begins with everything again",
        ),
    ],
)
def test_a_reflector_can_be_filled_by_a_watch_with_initial_events(
    can_watch_all: bool, faults: list[ServerFault], asked: list[str]
) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.local.create(POD, NS, pod("first"))
        scene.server.faults = list(faults)
        informer: Informer[Pod] = Informer("pods")
        reflector = Reflector(
            scene.client,
            POD,
            Pod,
            informer,
            clock=scene.clock,
            entropy=Entropy(1),
            is_filled_by_watching=True,
        )
        async with TaskGroup("watch list") as group:
            group.start_background(reflector.run(), name="reflector")
            await reflector.wait_synced()
            assert "default/first" in {view.key for view in informer.lister.list()}
            for number in range(3):
                await live(scene.local, number)
            while len(informer.lister.list()) < 4 or scene.server.faults or len(scene.server.asked) < len(asked):
                await scene.clock.wait(1.0)
        kinds = [each.partition(" ")[0] + " all" * ("sendInitialEvents" in each) for each in scene.server.asked]
        assert kinds == asked
        wanted = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        assert all(wanted in each for each in scene.server.asked if "sendInitialEvents" in each)

    play_over_http(scenario, can_watch_all=can_watch_all)
