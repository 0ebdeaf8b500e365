"""Plugins of users in the running scheduler: working ones, and ones that fail."""

from __future__ import annotations

import logging
from pathlib import Path
from textwrap import dedent
from typing import ClassVar

import pytest

from mooring.api.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.client.interface import PatchForm
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config import load_configuration
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint, queue_if
from mooring.scheduler.framework.loading import enabled_if_unmentioned, load_plugins
from mooring.scheduler.framework.node_plugins import FilterPlugin, NodeInfo
from mooring.scheduler.framework.plugin import (
    SKIP,
    Bind,
    Filter,
    Permit,
    Plugin,
    PostBind,
    PreBind,
    PreEnqueue,
    PreFilter,
    Reserve,
    Score,
    Skip,
)
from mooring.scheduler.framework.status import Reason, Status
from mooring.scheduler.queue.queued_pod import QueueState
from tests.builders import node, pod
from tests.scheduler.harness import without_line
from tests.scheduler.world import World, play, played, with_plugins

NEW_NODE = ClusterEventWithHint(EventResource.NODE, ActionType.ADD)


def said(answers: list[object]) -> object:
    """The next of these answers, raised if it is an error; None when there are no more."""
    answer = answers.pop(0) if answers else None
    if isinstance(answer, Exception):
        raise answer
    return answer


class Clumsy(Plugin):
    """A plugin of which every kind below does something wrong once: with the pod `web`, and with no other."""

    name = "Clumsy"

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (NEW_NODE,)


# --- what is reported, and that it goes on ----------------------------------------------------------------------------


async def one_failure(world: World, reason: str, message: str | None) -> None:
    """`web` meets the mishap, is notified of it with the plugin's name, and is bound when it is tried again."""
    await world.create(node("n1", cpu=1), pod("web", cpu=1))
    await world.settle(0.5)
    reported = await world.condition("web")
    assert reported is not None
    assert reported[:2] == ("False", reason)
    assert "Clumsy" in reported[2] if message is None else without_line(reported[2]) == message
    assert ("web", "FailedScheduling", reported[2]) in await world.events()
    assert world.scheduler.engine.columns.pods == {}
    assert len(world.scheduler.assumed_pods) == 0
    await world.create(pod("other", cpu=1))
    await world.settle(0.4)
    assert await world.node_of("other") == "n1", "the loop goes on, and the resources are free"
    await world.create(node("n2", cpu=1))
    await world.settle(20)
    assert await world.node_of("web") == "n2"
    assert world.scheduler.bindings.running == {}


def test_a_success_is_the_same_as_none() -> None:
    class Content(Clumsy, PreEnqueue, Reserve, Permit, PreBind):
        def pre_enqueue(self, pod: PodInfo) -> Status:
            return Status.success()

        def reserve(self, pod: PodInfo, row: int) -> Status:
            return Status.success()

        def unreserve(self, pod: PodInfo, node_name: str) -> None:
            raise AssertionError("nothing failed")

        def permit(self, pod: PodInfo, node_name: str) -> Status:
            return Status.success()

        async def pre_bind(self, pod: PodInfo, node_name: str) -> Status:
            return Status.success()

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(0.5)
        assert await world.node_of("web") == "n1"

    play(story, plugins=(Content,))


@pytest.mark.parametrize(
    ("answer", "reason", "message"),
    [
        pytest.param(
            Status.unschedulable("full"), "Unschedulable", "0/1 nodes are available: 1 full.", id="a rejection"
        ),
        pytest.param(Status.error("away"), "SchedulerError", 'running Reserve plugin "Clumsy": away', id="an error"),
        pytest.param(KeyError("x"), "SchedulerError", None, id="an exception"),
        pytest.param(True, "SchedulerError", None, id="something that is no answer"),
    ],
)
def test_reserve(answer: object, reason: str, message: str | None) -> None:
    unreserved: list[str] = []

    class Careless(Clumsy, Reserve):
        answers: ClassVar[list[object]] = [answer]

        def reserve(self, pod: PodInfo, row: int) -> Status | None:
            return said(self.answers) if pod.name == "web" else None  # type: ignore[return-value]

        def unreserve(self, pod: PodInfo, node_name: str) -> None:
            unreserved.append(f"{pod.name} on {node_name}")

    async def story(world: World) -> None:
        await one_failure(world, reason, message)
        assert unreserved == ["web on n1"]
        notes = [note for name, _, note in await world.events("FailedScheduling") if name == "web"]
        assert notes[0].count("running Reserve plugin") <= 1

    play(story, plugins=(Careless,))


@pytest.mark.parametrize(
    ("answer", "reason", "message"),
    [
        pytest.param(Status.unschedulable("not ready"), "Unschedulable", "not ready", id="a rejection"),
        pytest.param(Status.error("away"), "SchedulerError", 'running PreBind plugin "Clumsy": away', id="an error"),
        pytest.param(
            KeyError("x"), "SchedulerError", "running PreBind plugin \"Clumsy\": KeyError: 'x'", id="an exception"
        ),
        pytest.param(True, "SchedulerError", None, id="something that is no answer"),
    ],
)
def test_pre_bind(answer: object, reason: str, message: str | None) -> None:
    class Careless(Clumsy, PreBind):
        answers: ClassVar[list[object]] = [answer]

        async def pre_bind(self, pod: PodInfo, node_name: str) -> Status | None:
            return said(self.answers) if pod.name == "web" else None  # type: ignore[return-value]

    async def story(world: World) -> None:
        await one_failure(world, reason, message)

    play(story, plugins=(Careless,))


def test_an_error_of_has_work_fails_the_attempt() -> None:
    class Careless(Clumsy, PreBind):
        answers: ClassVar[list[object]] = [KeyError("x")]

        def has_work(self, pod: PodInfo, node_name: str) -> bool:
            return bool(said(self.answers)) if pod.name == "web" else False

        async def pre_bind(self, pod: PodInfo, node_name: str) -> None:
            return None

    async def story(world: World) -> None:
        await one_failure(world, "SchedulerError", "running PreBindPreFlight plugin \"Clumsy\": KeyError: 'x'")

    play(story, plugins=(Careless,))


@pytest.mark.parametrize(
    ("answer", "reason", "message"),
    [
        pytest.param(Status.unschedulable("no"), "Unschedulable", "no", id="a rejection"),
        pytest.param(Status.error("away"), "SchedulerError", 'running Bind plugin "Clumsy": away', id="an error"),
        pytest.param(
            KeyError("x"), "SchedulerError", "running Bind plugin \"Clumsy\": KeyError: 'x'", id="an exception"
        ),
        pytest.param(True, "SchedulerError", None, id="something that is no answer"),
    ],
)
def test_bind(answer: object, reason: str, message: str | None) -> None:
    class Careless(Clumsy, Bind):
        answers: ClassVar[list[object]] = [answer]

        async def bind(self, pod: PodInfo, node_name: str) -> Skip | Status | None:
            found = said(self.answers) if pod.name == "web" else None
            return SKIP if found is None else found  # type: ignore[return-value]

    async def story(world: World) -> None:
        await one_failure(world, reason, message)

    config, registry = with_plugins(Careless)
    config["profiles"][0]["plugins"]["bind"] = {"enabled": [{"name": "Clumsy"}, {"name": "DefaultBinder"}]}
    play(story, config=config, registry=registry)


@pytest.mark.parametrize("point", ["pre_filter", "score"])
def test_the_cycle(point: str) -> None:
    class Careless(Clumsy, PreFilter[None], Filter[None], Score[None]):
        filter_reasons = (Reason("never said"),)
        failures: ClassVar[list[str]] = [point]

        def pre_filter(self, pod: PodInfo) -> Skip:
            self.stumble("pre_filter", pod.name)
            return SKIP

        def filter(self, state: None, rows: Rows) -> Int64s:
            raise AssertionError("it was skipped")

        def pre_score(self, pod: PodInfo, feasible: Rows) -> Skip:
            self.stumble("score", pod.name)
            return SKIP

        def score(self, state: None, rows: Rows) -> Int64s:
            raise AssertionError("it was skipped")

        def stumble(self, where: str, name: str) -> None:
            if name == "web" and where in self.failures:
                self.failures.remove(where)
                raise ZeroDivisionError("oops")

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1))
        if point == "score":
            await world.create(node("n2", cpu=1))  # a single node need not be scored
        await world.create(pod("web", cpu=1), pod("other", cpu=1))
        await world.settle(0.5)
        reported = await world.condition("web")
        assert reported is not None
        assert reported[:2] == ("False", "SchedulerError")
        assert '"Clumsy"' in reported[2]
        assert "ZeroDivisionError: oops" in reported[2]
        assert await world.node_of("other") != ""
        where = world.scheduler.queue.status((await world.pod("web")).metadata.uid)
        assert where is not None
        assert where.state is QueueState.ERROR_BACKOFF
        await world.create(node("n3", cpu=1))
        await world.settle(5)
        assert await world.node_of("web") != ""

    play(story, plugins=(Careless,), is_replayed=False)  # it fails only once


def test_pre_enqueue_that_fails_keeps_the_pod_outside_until_something_happens(caplog: pytest.LogCaptureFixture) -> None:
    class Careless(Clumsy, PreEnqueue):
        answers: ClassVar[list[object]] = [KeyError("x")]

        def pre_enqueue(self, pod: PodInfo) -> Status | None:
            return said(self.answers) if pod.name == "web" else None  # type: ignore[return-value]

    async def story(world: World) -> None:
        with caplog.at_level(logging.ERROR):
            await world.create(node("n1", cpu=2), pod("web", cpu=1), pod("other", cpu=1))
            await world.settle()
        assert "PreEnqueue plugin Clumsy failed for pod default/web" in caplog.text
        assert await world.node_of("other") == "n1"
        assert await world.node_of("web") == ""
        await world.create(node("n2", cpu=2))
        await world.settle()
        assert await world.node_of("web") != ""

    play(story, plugins=(Careless,))


def test_a_hint_that_raises_queues_the_pod(caplog: pytest.LogCaptureFixture) -> None:
    def broken(pod: PodInfo, old: object, new: object) -> QueueingHint:
        raise KeyError("x")

    class Reluctant(FilterPlugin):
        name = "Reluctant"

        def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
            return None if node_info.name == "n2" else Status.unschedulable("not this one")

        def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
            return (ClusterEventWithHint(EventResource.NODE, ActionType.ADD, broken),)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=2), pod("web", cpu=1))
        await world.settle()
        assert await world.node_of("web") == ""
        with caplog.at_level(logging.ERROR):
            await world.create(node("n2", cpu=2))
            await world.settle(5)
        assert "queueing hint of plugin Reluctant failed" in caplog.text
        assert await world.node_of("web") == "n2"

    play(story, plugins=(Reluctant,))


class Licence(ApiObject):
    """A custom kind, as the plugin below reads it."""

    api_version: ClassVar[str] = "example.com/v1"
    kind: ClassVar[str] = "Licence"
    seats: int = 0


LICENCE = Kind("example.com/v1", "Licence", "licences", view=Licence, folder="example.com/licences")


LICENCE_SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"seats": {"type": "integer"}}}}
LICENCE_DEFINITION = {
    "metadata": {"name": "licences.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "licences", "kind": "Licence"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": LICENCE_SCHEMA}],
    },
}


class Licensed(PreFilter[None]):
    """Pods wait for a licence with seats in their namespace."""

    name = "Licensed"

    def __init__(self, columns: Columns) -> None:
        self._licences = columns.objects.of(Licence)

    def pre_filter(self, pod: PodInfo) -> Skip | Status:
        has_seats = any(licence.seats for licence in self._licences.in_namespace(pod.namespace))
        return SKIP if has_seats else Status.unschedulable("no licence")

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (ClusterEventWithHint(LICENCE, ActionType.ADD | ActionType.UPDATE, self.has_seats),)

    def has_seats(self, pod: PodInfo, old: Licence | None, new: Licence | None) -> QueueingHint:
        return queue_if(new is not None and new.seats > 0)


@played(plugins=(Licensed,))
async def test_a_custom_kind_is_watched_for_the_plugin_that_names_it(world: World) -> None:
    async def write(seats: int) -> None:
        body = {"apiVersion": "example.com/v1", "kind": "Licence", "metadata": {"name": "office"}, "seats": seats}
        await world.client.create(LICENCE, "default", body)

    await world.client.create(CUSTOM_RESOURCE_DEFINITION, "", LICENCE_DEFINITION)
    await world.create(node("n1", cpu=2), pod("web", cpu=1))
    await world.settle()
    uid = (await world.pod("web")).metadata.uid
    reported = await world.condition("web")
    assert reported is not None
    assert reported[2].startswith("0/1 nodes are available: no licence. ")
    await write(0)
    await world.settle(30)
    where = world.scheduler.queue.status(uid)
    assert where is not None
    assert (where.state, where.attempts) == (QueueState.UNSCHEDULABLE, 1)
    await world.client.patch(LICENCE, "default", "office", {"seats": 3}, form=PatchForm.MERGE)
    await world.settle()
    assert await world.node_of("web") == "n1"


def test_post_bind_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bound: list[str] = []

    class Careless(Clumsy, PostBind):
        def post_bind(self, pod: PodInfo, node_name: str) -> None:
            bound.append(f"{pod.name} on {node_name}")
            raise KeyError("x")

    async def story(world: World) -> None:
        with caplog.at_level(logging.ERROR):
            await world.create(node("n1", cpu=2), pod("web", cpu=1), pod("other", cpu=1))
            await world.settle()
        assert sorted(bound) == ["other on n1", "web on n1"]
        assert "PostBind plugin Clumsy failed for pod default/web, which is bound" in caplog.text
        assert [await world.node_of(name) for name in ("web", "other")] == ["n1", "n1"]

    play(story, plugins=(Careless,))


def test_a_failed_unreserve_does_not_stop_the_others() -> None:
    class Careless(Clumsy, Reserve, Permit):
        answers: ClassVar[list[object]] = [Status.unschedulable("not today")]

        def reserve(self, pod: PodInfo, row: int) -> None:
            return None

        def unreserve(self, pod: PodInfo, node_name: str) -> None:
            raise KeyError("x")

        def permit(self, pod: PodInfo, node_name: str) -> Status | None:
            return said(self.answers) if pod.name == "web" else None  # type: ignore[return-value]

    async def story(world: World) -> None:
        await one_failure(world, "Unschedulable", "0/1 nodes are available: 1 not today.")

    play(story, plugins=(Careless,))


# --- Users' plugins that do what they should: binders of their own, and rules from a file ----------------------------


def test_a_bind_plugin_that_does_not_skip_binds_instead_of_the_usual_one() -> None:
    class OwnBinder(Bind):
        """Binds pods of its own with its own words to the API."""

        name = "OwnBinder"

        def __init__(self, client: object) -> None:
            self._client = client
            self.bound = 0

        async def bind(self, pod: PodInfo, node_name: str) -> Skip | None:
            if pod.name != "mine":
                return SKIP
            self.bound += 1
            await self._client.bind(pod.namespace, pod.name, pod.uid, node_name)  # type: ignore[attr-defined]
            return None

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=2), pod("mine", cpu=1), pod("theirs", cpu=1))
        await world.settle()
        assert [await world.node_of(name) for name in ("mine", "theirs")] == ["n1", "n1"]
        plugin = world.scheduler.engine.cycles["default-scheduler"].profile.plugins["OwnBinder"]
        assert isinstance(plugin, OwnBinder)
        assert plugin.bound == 1

    config, registry = with_plugins(OwnBinder)
    config["profiles"][0]["plugins"]["bind"] = {"enabled": [{"name": "OwnBinder"}, {"name": "DefaultBinder"}]}
    play(story, config=config, registry=registry)


def test_when_all_binders_skip_the_pod_is_tried_again() -> None:
    class Lazy(Bind):
        name = "Lazy"

        async def bind(self, pod: PodInfo, node_name: str) -> Skip:
            return SKIP

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=2), pod("web", cpu=1))
        await world.settle(0.5)
        reported = await world.condition("web")
        assert reported is not None
        assert reported[:2] == ("False", "SchedulerError")
        assert world.scheduler.engine.columns.pods == {}

    config, registry = with_plugins(Lazy)
    config["profiles"][0]["plugins"]["bind"] = {"enabled": [{"name": "Lazy"}], "disabled": [{"name": "*"}]}
    play(story, config=config, registry=registry)


def test_a_plugin_file_works_in_the_running_scheduler(tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    path.write_text(
        dedent("""
        from mooring.scheduler.framework.node_plugins import FilterPlugin, Status

        class OnlyEven(FilterPlugin):
            name = "OnlyEven"
            def filter(self, pod, node_info):
                if int(node_info.name[1:]) % 2:
                    return Status.unschedulable("node(s) are odd")
        """)
    )
    plugins = load_plugins(path)
    _, registry = with_plugins(*plugins)
    loaded = enabled_if_unmentioned(load_configuration(None), [plugin.name for plugin in plugins])
    assert any(use.name == "OnlyEven" for use in loaded.profiles[0].plugins.multi_point.enabled)
    config, _ = with_plugins(*plugins)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=2), pod("web", cpu=1))
        await world.settle()
        reported = await world.condition("web")
        assert reported is not None
        assert reported[2].startswith("0/1 nodes are available: 1 node(s) are odd.")
        await world.create(node("n2", cpu=2))
        await world.settle(5)
        assert await world.node_of("web") == "n2"

    play(story, config=config, registry=registry)
