"""Events are shared by the watches that tell them, and views by the events."""

from __future__ import annotations

import pytest

from mooring.api.decode import decode_as
from mooring.api.kinds import POD
from mooring.api.views.meta import ApiObject, ObjectWithRaw, View
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.apiserver.storage.watch import BookmarkEvent, StoreEvent
from mooring.client.interface import Change, Selection
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.api_servers import open_loopback_client
from tests.client.contract_play import NS
from tests.client.objects import pod


class WholePod(ObjectWithRaw):
    """A pod that somebody writes back."""


class Named(View):
    """Something that is no object: a part of one."""

    kind: str = ""


VALUE = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"},"spec":{}}'


def test_each_watch_sees_the_changes_of_its_selection() -> None:
    async def scenario() -> None:
        async with open_loopback_client(VirtualClock()) as client:
            since = (await client.list(POD)).revision
            unbound, mine = Selection(fields="spec.nodeName="), Selection(labels="app=web", fields="spec.nodeName=n1")
            async with (
                client.watch(POD, since=since) as everything,
                client.watch(POD, Selection(NS), since=since) as one_namespace,
                client.watch(POD, unbound, since=since) as waiting,
                client.watch(POD, mine, since=since) as my_node,
            ):
                await client.create(POD, NS, pod("web", labels={"app": "web"}))
                await client.bind(NS, "web", "", "n1")
                told = [await watch.next_batch() for watch in (everything, one_namespace, waiting, my_node)]
            assert [[event.change for event in events] for events in told] == [
                [Change.ADDED, Change.MODIFIED],
                [Change.ADDED, Change.MODIFIED],
                [Change.ADDED, Change.DELETED],
                [Change.ADDED],
            ]
            bound = told[0][1].view(Pod)
            assert bound.spec.node_name == "n1"
            assert told[3][0].raw == told[0][1].raw
            assert told[3][0].revision == bound.metadata.resource_version

    run(scenario())


def test_an_event_is_decoded_once_for_each_view() -> None:
    event = StoreEvent(Change.ADDED, VALUE, 7)
    assert event.view(Pod) is event.view(Pod)
    assert event.view(Node).metadata.name == "web"
    assert (event.revision, event.view(Pod).metadata.resource_version) == ("7", "7")


@pytest.mark.parametrize("kind", [Pod, ApiObject, WholePod, Named], ids=lambda kind: kind.__name__)
def test_a_view_is_what_reading_the_bytes_of_the_event_gives(kind: type[View]) -> None:
    event = StoreEvent(Change.ADDED, VALUE, 7)
    assert event.view(kind) == decode_as(kind, event.raw)


def test_a_bookmark_is_an_object_with_nothing_but_a_revision() -> None:
    bookmark = BookmarkEvent(POD, 9)
    assert bookmark.raw == (
        b'{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","creationTimestamp":null}}'
    )
    assert (bookmark.revision, bookmark.view(Pod).metadata.resource_version) == ("9", "9")


def test_a_watch_that_was_left_tells_nothing() -> None:
    async def scenario() -> None:
        async with open_loopback_client(VirtualClock()) as client:
            since = (await client.list(POD)).revision
            async with client.watch(POD, since=since) as watch:
                await client.create(POD, NS, pod("web"))
            assert not await watch.next_batch()

    run(scenario())
