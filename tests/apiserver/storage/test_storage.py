"""Storage through the loopback client: revisions, expired history, both APIs of events, bookmarks and watches.

A continue token holds a key and a revision; its key cannot leave the prefix of the listed kind.

Watches share their events, and each event caches its decoded views.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.decode import decode_as
from mooring.api.kinds import CONFIG_MAP, CORE_EVENT, EVENT, POD
from mooring.api.views.meta import ApiObject, ObjectWithRaw, View
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.apiserver.storage.storage import BookmarkEvent, StoreEvent, continue_token, read_continue_token
from mooring.client.errors import BadRequestError, ExpiredError, ServerError
from mooring.client.interface import Change, Client, PatchForm, Selection
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import DeadlockError, run
from mooring.store.memory import MemoryStore
from tests.api_servers import open_loopback_client
from tests.client.contract_play import NS, create_all, names
from tests.client.objects import Body, at, config_map, pod, read

CHANGES_MAX = 2
Scenario = Callable[[Client, VirtualClock], Awaitable[None]]


def run_local(scenario: Scenario, store: MemoryStore | None = None) -> None:
    clock = VirtualClock()

    async def started() -> None:
        async with open_loopback_client(clock, store=store) as client:
            await scenario(client, clock)

    run(started(), clock)


@pytest.mark.parametrize(
    ("revision", "limit", "found"),
    [
        pytest.param("", 0, ["a", "b"], id="the newest"),
        pytest.param("0", 0, ["a", "b"], id="any"),
        pytest.param("first", 0, ["a", "b"], id="not older than an old one"),
        pytest.param("first", 5, ["a"], id="exactly an old one, with a limit"),
    ],
)
def test_list_accepts_a_revision(revision: str, limit: int, found: list[str]) -> None:
    async def scenario(client: Client, clock: VirtualClock) -> None:
        first = await create_all(client, config_map("a"))
        await create_all(client, config_map("b"))
        requested = first if revision == "first" else revision
        assert names((await client.list(CONFIG_MAP, revision=requested, limit=limit)).items) == found

    run_local(scenario)


@pytest.mark.parametrize(
    ("limit", "retry_after_s"),
    [pytest.param(0, 1.0, id="not older than"), pytest.param(5, None, id="exact revision, not to be retried")],
)
def test_a_list_at_a_future_revision_is_a_timeout(limit: int, retry_after_s: float | None) -> None:
    async def scenario(client: Client, clock: VirtualClock) -> None:
        current = (await client.list(CONFIG_MAP)).revision
        with pytest.raises(ServerError) as caught:
            await client.list(CONFIG_MAP, revision="9000", limit=limit)
        assert str(caught.value) == f"Timeout: Too large resource version: 9000, current: {current}"
        assert (caught.value.code, caught.value.retry_after_s) == (504, retry_after_s)

    run_local(scenario)


def test_an_event_is_the_same_object_in_both_apis() -> None:
    body: Body = {
        "metadata": {"name": "web.1", "namespace": NS},
        "regarding": {"kind": "Pod", "name": "web", "namespace": NS},
        "note": "Successfully assigned",
        "type": "Normal",
        "action": "Binding",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-1",
        "reason": "Scheduled",
    }

    async def scenario(client: Client, clock: VirtualClock) -> None:
        newer = await client.create(EVENT, NS, body)
        older = await client.get(CORE_EVENT, NS, "web.1")
        assert (at(newer, "apiVersion"), at(newer, "note")) == ("events.k8s.io/v1", "Successfully assigned")
        assert (at(older, "apiVersion"), at(older, "message")) == ("v1", "Successfully assigned")
        assert at(older, "involvedObject.name") == "web"
        assert read(await client.get(EVENT, NS, "web.1")) == read(newer)
        assert [read(raw) for raw in (await client.list(EVENT, Selection(fields="regarding.name=web"))).items] == [
            read(newer)
        ]
        of_pod = Selection(fields="involvedObject.name=web")
        assert [read(raw) for raw in (await client.list(CORE_EVENT, of_pod)).items] == [read(older)]
        series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
        await client.patch(EVENT, NS, "web.1", {"series": series}, form=PatchForm.STRATEGIC)
        assert at(await client.get(CORE_EVENT, NS, "web.1"), "series.count") == 2

    run_local(scenario)


def test_a_bookmark_is_sent_after_a_minute_with_only_changes_of_other_kinds() -> None:
    async def scenario(client: Client, clock: VirtualClock) -> None:
        since = (await client.list(POD)).revision
        async with client.watch(POD, since=since) as watch:
            revision = await create_all(client, config_map("elsewhere"))
            (bookmark,) = await watch.next_batch()
            assert (bookmark.change, bookmark.revision) == (Change.BOOKMARK, revision)
            assert clock.now_s() == 60.0
            assert read(bookmark.raw)["metadata"] == {"resourceVersion": revision, "creationTimestamp": None}
            await create_all(client, pod("web"))
            assert [event.change for event in await watch.next_batch()] == [Change.ADDED]

    run_local(scenario)


def test_a_bookmark_is_not_lost_if_it_coincides_with_changes() -> None:
    async def scenario(client: Client, clock: VirtualClock) -> None:
        since = (await client.list(POD)).revision
        async with client.watch(POD, since=since) as watch:
            await create_all(client, pod("a"))
            await watch.next_batch()
            await create_all(client, config_map("elsewhere"), pod("b"))
            assert [event.change for event in await watch.next_batch()] == [Change.ADDED]
            await create_all(client, config_map("elsewhere-too"))
            await clock.wait(59)
            assert clock.now_s() == 59
            await clock.wait(2)
            await create_all(client, pod("c"))
            assert [event.change for event in await watch.next_batch()] == [Change.ADDED]
            assert [event.change for event in await watch.next_batch()] == [Change.BOOKMARK]

    run_local(scenario)


@pytest.mark.parametrize(
    ("bookmarks", "is_changed"),
    [
        pytest.param(True, False, id="no changes"),
        pytest.param(False, True, id="bookmarks not requested"),
    ],
)
def test_no_bookmark_is_sent_without_changes_or_if_not_requested(bookmarks: bool, is_changed: bool) -> None:
    async def scenario(client: Client, clock: VirtualClock) -> None:
        since = (await client.list(POD)).revision
        async with client.watch(POD, since=since, bookmarks=bookmarks) as watch:
            if is_changed:
                await create_all(client, config_map("elsewhere"))
            await watch.next_batch()

    with pytest.raises(DeadlockError):
        run_local(scenario)


def test_a_revision_before_the_kept_history_is_expired() -> None:
    async def scenario(client: Client, clock: VirtualClock) -> None:
        await create_all(client, config_map("a"), config_map("b"), config_map("c"))
        page = await client.list(CONFIG_MAP, limit=1)
        await create_all(client, *(config_map(f"d{number}") for number in range(5)))
        with pytest.raises(ExpiredError) as caught:
            await client.list(CONFIG_MAP, limit=1, continue_token=page.continue_token)
        assert str(caught.value).startswith("The provided continue parameter is too old")
        with pytest.raises(ExpiredError):
            await client.list(CONFIG_MAP, limit=1, revision="2")
        with pytest.raises(ExpiredError) as caught:
            async with client.watch(CONFIG_MAP, since="2"):
                pass
        oldest = int((await client.list(CONFIG_MAP)).revision) - CHANGES_MAX
        assert str(caught.value) == f"too old resource version: 2 ({oldest})"

    run_local(scenario, MemoryStore(changes_max=CHANGES_MAX))


def test_a_watch_that_reads_too_slowly_is_expired() -> None:
    async def scenario(client: Client, clock: VirtualClock) -> None:
        since = (await client.list(CONFIG_MAP)).revision
        async with client.watch(CONFIG_MAP, since=since) as watch:
            await create_all(client, *(config_map(f"c{number}") for number in range(3)))
            with pytest.raises(ExpiredError):
                await watch.next_batch()

    run_local(scenario, MemoryStore(buffer_max=2))


def test_a_watch_of_events_k8s_io_sends_events_in_that_form() -> None:
    async def scenario(client: Client, clock: VirtualClock) -> None:
        since = (await client.list(EVENT)).revision
        async with client.watch(EVENT, since=since) as watch:
            body: Body = {"metadata": {"name": "web.1"}, "message": "hello", "involvedObject": {"name": "web"}}
            await client.create(CORE_EVENT, NS, body)
            (event,) = await watch.next_batch()
        assert event.change is Change.ADDED
        assert (at(event.raw, "note"), at(event.raw, "regarding.name")) == ("hello", "web")
        assert event.raw == await client.get(EVENT, NS, "web.1")

    run_local(scenario)


def test_a_watch_at_a_future_revision_is_rejected() -> None:
    async def scenario(client: Client, clock: VirtualClock) -> None:
        with pytest.raises(ServerError):
            async with client.watch(CONFIG_MAP, since="9000"):
                pass

    run_local(scenario)


PODS = "/registry/pods/"


@given(st.text("abc-.é", min_size=1), st.text("abc-.é", min_size=1), st.integers(1, 2**62))
def test_a_continue_token_decodes_to_its_key_and_revision(namespace: str, name: str, revision: int) -> None:
    key = f"{PODS}n{namespace}/p{name}"
    token = continue_token(PODS, key, revision)
    assert token.isascii()
    assert "=" not in token
    assert read_continue_token(PODS, token) == (key, revision)


def test_continue_tokens_equal_those_of_kube_apiserver() -> None:
    made = urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":7,"start":"default/web"}').decode().rstrip("=")
    assert continue_token(PODS, f"{PODS}default/web", 7) == made


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("!!!", "continue key is not valid", id="no base64"),
        pytest.param("a", "continue key is not valid", id="a broken length"),
        pytest.param('{"v":1}', "continue key is not valid", id="a version that is no string"),
        pytest.param(
            '{"v":"v9","rv":7,"start":"a"}', "does not recognize this encoded version v9", id="another version"
        ),
        pytest.param(
            '{"v":"meta.k8s.io/v1","rv":0,"start":"a"}', "incorrect encoded start resourceVersion", id="no revision"
        ),
        pytest.param('{"v":"meta.k8s.io/v1","rv":7,"start":""}', "encoded start key empty", id="no key"),
        pytest.param(
            '{"v":"meta.k8s.io/v1","rv":7,"start":"../secrets/a"}', "../secrets/a", id="key outside of the prefix"
        ),
    ],
)
def test_an_invalid_continue_token_is_rejected(text: str, words: str) -> None:
    token = urlsafe_b64encode(text.encode()).decode().rstrip("=") if text.startswith("{") else text
    with pytest.raises(BadRequestError) as refusal:
        read_continue_token(PODS, token)
    assert words in str(refusal.value)


class WholePod(ObjectWithRaw):
    """A pod view that keeps the raw object, for clients that write it back."""


class Named(View):
    """A view without metadata: a part of an object."""

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
                received = [await watch.next_batch() for watch in (everything, one_namespace, waiting, my_node)]
            assert [[event.change for event in events] for events in received] == [
                [Change.ADDED, Change.MODIFIED],
                [Change.ADDED, Change.MODIFIED],
                [Change.ADDED, Change.DELETED],
                [Change.ADDED],
            ]
            bound = received[0][1].view(Pod)
            assert bound.spec.node_name == "n1"
            assert received[3][0].raw == received[0][1].raw
            assert received[3][0].revision == bound.metadata.resource_version

    run(scenario())


def test_an_event_is_decoded_once_for_each_view() -> None:
    event = StoreEvent(Change.ADDED, VALUE, 7)
    assert event.view(Pod) is event.view(Pod)
    assert event.view(Node).metadata.name == "web"
    assert (event.revision, event.view(Pod).metadata.resource_version) == ("7", "7")


@pytest.mark.parametrize("kind", [Pod, ApiObject, WholePod, Named], ids=lambda kind: kind.__name__)
def test_a_view_of_an_event_equals_decoding_its_bytes(kind: type[View]) -> None:
    event = StoreEvent(Change.ADDED, VALUE, 7)
    assert event.view(kind) == decode_as(kind, event.raw)


def test_a_bookmark_is_an_object_with_only_a_revision() -> None:
    bookmark = BookmarkEvent(POD, 9)
    assert bookmark.raw == (
        b'{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","creationTimestamp":null}}'
    )
    assert (bookmark.revision, bookmark.view(Pod).metadata.resource_version) == ("9", "9")


def test_a_closed_watch_returns_no_events() -> None:
    async def scenario() -> None:
        async with open_loopback_client(VirtualClock()) as client:
            since = (await client.list(POD)).revision
            async with client.watch(POD, since=since) as watch:
                await client.create(POD, NS, pod("web"))
            assert not await watch.next_batch()

    run(scenario())
