"""Objects that break a rule deep inside are left out; everybody else is scheduled as if they were not there."""

from __future__ import annotations

import logging

import pytest

from mooring.api.kinds import NODE, POD, Kind
from tests.builders import node, pod
from tests.scheduler.world import World, plain, play

Patch = dict[str, object]

BAD_REQUEST: Patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "banana"}}}]}}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param(NODE, {**plain(node("bad")), "status": {"allocatable": {"cpu": "banana"}}}, id="a node's cpu"),
        pytest.param(POD, {**plain(pod("bad")), **BAD_REQUEST}, id="a pending pod's request"),
        pytest.param(
            POD,
            {**plain(pod("bad")), "spec": {"nodeName": "n1", **BAD_REQUEST["spec"]}},  # type: ignore[dict-item]
            id="a placed pod's request",
        ),
        pytest.param(
            POD,
            {**plain(pod("bad", on="n1")), "status": {"startTime": "yesterday"}},
            id="the time when a pod was started",
        ),
    ],
)
def test_an_object_that_cannot_be_read(kind: Kind, body: Patch, caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=2), pod("first", cpu=1))
        with caplog.at_level(logging.ERROR):
            await world.client.create(kind, "default" if kind.is_namespaced else "", body)
            await world.settle()
        assert "bad is left out because it cannot be read" in caplog.text
        await world.create(pod("second", cpu=1))
        await world.settle()
        assert [await world.node_of(name) for name in ("first", "second")] == ["n1", "n1"]
        await world.delete("bad", kind=kind)
        await world.settle()
        assert sorted(record.name for record in world.scheduler.engine.columns.pods.values()) == ["first", "second"]

    play(story)


def test_a_node_that_becomes_unreadable_stays_as_it_was() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1, labels={"disk": "ssd"}))
        await world.settle()
        await world.patch("n1", {"status": {"allocatable": {"cpu": "banana"}}}, kind=NODE, subresource="status")
        await world.create(pod("web", cpu=1, node_labels={"disk": "ssd"}))
        await world.settle()
        assert await world.node_of("web") == "n1"
        await world.patch("n1", {"status": {"allocatable": {"cpu": "2"}}}, kind=NODE, subresource="status")
        await world.create(pod("web-2", cpu=1))
        await world.settle(5)
        assert await world.node_of("web-2") == "n1"

    play(story)


def test_broken_objects_in_the_first_list_do_not_keep_the_others_out() -> None:
    async def story(world: World) -> None:
        await world.client.create(NODE, "", {**plain(node("a-bad")), "status": {"allocatable": {"cpu": "banana"}}})
        await world.client.create(POD, "default", {**plain(pod("a-bad")), **BAD_REQUEST})
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        world.start_scheduler()
        await world.settle()
        assert await world.node_of("web") == "n1"

    play(story, schedulers=0)
