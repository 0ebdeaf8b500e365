"""The raw client passes the client contract; its timestamps, its bookmarks, and calls that never suspend."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

import pytest

from mooring.api.kinds import CONFIG_MAP, CORE_EVENT, EVENT, NODE, POD
from mooring.client.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    NotFoundError,
    ServerError,
    StatusError,
)
from mooring.client.interface import Change, Deletion, PatchForm, Selection
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import DeadlockError, run
from mooring.store.interface import WriteConflict
from mooring.store.memory import MemoryStore
from tests.client.contract import ClientContract
from tests.client.contract_play import NS, Play, Scenario, create_all, names
from tests.client.objects import Body, at, config_map, node, pod, read, text_at
from tests.fakes.raw_client import RawClient

Result = TypeVar("Result")


class TestTheContract(ClientContract):
    @pytest.fixture
    def play(self) -> Play:
        def play(scenario: Scenario) -> None:
            run_local(lambda client, clock: scenario(client))

        return play


def run_local(scenario: Callable[[RawClient, VirtualClock], Awaitable[None]], store: MemoryStore | None = None) -> None:
    clock = VirtualClock()
    client = RawClient(store or MemoryStore(), clock, Entropy(1))

    async def started() -> None:
        await scenario(client, clock)

    run(started(), clock)


def step(work: Coroutine[object, object, Result]) -> Result:
    try:
        work.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise AssertionError("the raw client suspended its caller")


def test_no_request_waits_on_the_memory_store() -> None:
    client = RawClient(MemoryStore(), VirtualClock(), Entropy(1))
    raw = step(client.create(POD, NS, pod("web")))
    step(client.patch(POD, NS, "web", {"metadata": {"labels": {"a": "b"}}}, form=PatchForm.STRATEGIC))
    step(client.bind(NS, "web", text_at(raw, "metadata.uid"), "n1"))
    step(client.update(POD, NS, "web", read(step(client.get(POD, NS, "web")))))
    assert len(step(client.list(POD)).items) == 1
    step(client.delete(POD, NS, "web", Deletion(grace_s=0)))


def test_the_same_seed_makes_the_same_objects() -> None:
    made = [
        step(RawClient(MemoryStore(), VirtualClock(), Entropy(7)).create(POD, NS, pod("", generateName="web-")))
        for _ in range(2)
    ]
    assert made[0] == made[1]


def test_objects_are_stored_as_kube_apiserver_lays_them_out() -> None:
    store = MemoryStore()
    client = RawClient(store, VirtualClock(), Entropy(1))
    step(client.create(NODE, "", node("n1")))
    step(client.create(CONFIG_MAP, NS, {"data": {}, "metadata": {"name": "settings", "labels": {"a": "b"}}}))
    records = step(store.list("/registry/")).records
    assert [record.key for record in records] == ["/registry/configmaps/default/settings", "/registry/minions/n1"]
    assert records[0].value.startswith(
        b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings","namespace"'
    )
    assert b"resourceVersion" not in records[0].value


def test_time_comes_from_the_clock() -> None:
    async def scenario(client: RawClient, clock: VirtualClock) -> None:
        early = await client.create(POD, NS, pod("early", on="n1"))
        await clock.wait(90)
        late = await client.create(POD, NS, pod("late"))
        assert at(early, "metadata.creationTimestamp") == "2026-01-01T00:00:00Z"
        assert at(late, "metadata.creationTimestamp") == "2026-01-01T00:01:30Z"
        await client.delete(POD, NS, "early")
        assert at(await client.get(POD, NS, "early"), "metadata.deletionTimestamp") == "2026-01-01T00:02:00Z"

    run_local(scenario)


class LoadedDice(Entropy):
    """Always throws the given suffixes, the last one for ever."""

    def __init__(self, *suffixes: str) -> None:
        super().__init__(1)
        self.suffixes = list(suffixes)

    def suffix(self, length: int = 5) -> str:
        return self.suffixes.pop(0) if len(self.suffixes) > 1 else self.suffixes[0]


def test_names_are_generated_until_one_is_free() -> None:
    client = RawClient(MemoryStore(), VirtualClock(), LoadedDice("aaaaa", "aaaaa", "aaaaa", "bbbbb"))
    made = [text_at(step(client.create(POD, NS, pod("", generateName="x-"))), "metadata.name") for _ in range(2)]
    assert made == ["x-aaaaa", "x-bbbbb"]
    with pytest.raises(AlreadyExistsError) as refusal:
        step(client.create(POD, NS, pod("", generateName="x-")))
    assert str(refusal.value) == 'pods "x-bbbbb" already exists'


def test_a_generated_name_is_no_longer_than_a_name_may_be() -> None:
    client = RawClient(MemoryStore(), VirtualClock(), LoadedDice("aaaaa"))
    made = step(client.create(POD, NS, pod("", generateName="x" * 70)))
    assert text_at(made, "metadata.name") == "x" * 58 + "aaaaa"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param({"kind": "Secret"}, "the kind in the data (Secret) does not match", id="another kind"),
        pytest.param({"apiVersion": "v2"}, "the API version in the data (v2) does not match", id="another version"),
        pytest.param(
            {"metadata": {"name": "a", "resourceVersion": "5"}}, "resourceVersion should not be set", id="old"
        ),
    ],
)
def test_a_body_that_is_something_else_is_refused(body: Body, words: str) -> None:
    client = RawClient(MemoryStore(), VirtualClock(), Entropy(1))
    with pytest.raises(BadRequestError) as refusal:
        step(client.create(CONFIG_MAP, NS, {**config_map("a"), **body}))
    assert words in str(refusal.value)


def test_apply_and_unknown_subresources_are_refused_in_words() -> None:
    client = RawClient(MemoryStore(), VirtualClock(), Entropy(1))
    step(client.create(CONFIG_MAP, NS, config_map()))
    with pytest.raises(StatusError) as refusal:
        step(client.patch(CONFIG_MAP, NS, "settings", {}, form=PatchForm.APPLY))
    assert refusal.value.code == 415
    for subresource in ("status", "scale"):
        with pytest.raises(NotFoundError):
            step(client.update(CONFIG_MAP, NS, "settings", config_map(), subresource=subresource))


# --------------------------------------------------------------------------------------------- revisions


@pytest.mark.parametrize(
    ("revision", "limit", "found"),
    [
        pytest.param("", 0, ["a", "b"], id="the newest"),
        pytest.param("0", 0, ["a", "b"], id="any: the newest will do"),
        pytest.param("2", 0, ["a", "b"], id="not older than an old one"),
        pytest.param("2", 5, ["a"], id="exactly an old one, with a limit"),
    ],
)
def test_a_listing_may_name_a_revision(revision: str, limit: int, found: list[str]) -> None:
    client = RawClient(MemoryStore(), VirtualClock(), Entropy(1))
    step(create_all(client, config_map("a"), config_map("b")))
    assert names(step(client.list(CONFIG_MAP, revision=revision, limit=limit)).items) == found


@pytest.mark.parametrize(
    ("limit", "retry_after_s"),
    [pytest.param(0, 1.0, id="or a later one"), pytest.param(5, None, id="that very revision: there is no waiting")],
)
def test_a_listing_of_the_future(limit: int, retry_after_s: float | None) -> None:
    client = RawClient(MemoryStore(), VirtualClock(), Entropy(1))
    with pytest.raises(ServerError) as refusal:
        step(client.list(CONFIG_MAP, revision="9", limit=limit))
    assert str(refusal.value) == "Timeout: Too large resource version: 9, current: 1"
    assert (refusal.value.code, refusal.value.retry_after_s) == (504, retry_after_s)


def test_history_that_is_gone_is_an_expired_error() -> None:
    async def scenario(client: RawClient, clock: VirtualClock) -> None:
        await create_all(client, config_map("a"), config_map("b"), config_map("c"))
        page = await client.list(CONFIG_MAP, limit=1)
        await create_all(client, *(config_map(f"d{number}") for number in range(5)))
        with pytest.raises(ExpiredError) as refusal:
            await client.list(CONFIG_MAP, limit=1, continue_token=page.continue_token)
        assert str(refusal.value).startswith("The provided continue parameter is too old")
        with pytest.raises(ExpiredError):
            await client.list(CONFIG_MAP, limit=1, revision="2")
        with pytest.raises(ExpiredError) as refusal:
            async with client.watch(CONFIG_MAP, since="2"):
                pass
        assert str(refusal.value) == "too old resource version: 2 (7)"

    run_local(scenario, MemoryStore(changes_max=2))


def test_a_watch_cannot_start_in_the_future() -> None:
    async def scenario(client: RawClient, clock: VirtualClock) -> None:
        with pytest.raises(ServerError):
            async with client.watch(CONFIG_MAP, since="9"):
                pass

    run_local(scenario)


def test_a_reader_who_is_too_slow_has_to_list_again() -> None:
    async def scenario(client: RawClient, clock: VirtualClock) -> None:
        since = (await client.list(CONFIG_MAP)).revision
        async with client.watch(CONFIG_MAP, since=since) as watch:
            await create_all(client, *(config_map(f"c{number}") for number in range(3)))
            with pytest.raises(ExpiredError):
                await watch.next_batch()

    run_local(scenario, MemoryStore(buffer_max=2))


# ------------------------------------------------------------------------------------------------ races


class MeddlingStore(MemoryStore):
    """Somebody else writes between the reading and the writing of a request, a given number of times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times_left = times

    async def put(self, key: str, value: bytes, *, if_revision: int | None = None) -> int:
        if if_revision and self.times_left:
            self.times_left -= 1
            record = await self.get(key)
            assert record is not None
            await super().put(key, record.value.replace(b'"data":{', b'"data":{"theirs":"x",', 1))
            raise WriteConflict(key, await self.get(key))
        return await super().put(key, value, if_revision=if_revision)


def test_a_write_that_meets_another_is_made_again_on_top_of_it() -> None:
    client = RawClient(MeddlingStore(times=1), VirtualClock(), Entropy(1))
    step(client.create(CONFIG_MAP, NS, config_map(data={"a": "1"})))
    after = step(client.patch(CONFIG_MAP, NS, "settings", {"data": {"mine": "y"}}, form=PatchForm.MERGE))
    assert at(after, "data") == {"a": "1", "theirs": "x", "mine": "y"}


def test_a_write_that_is_meant_for_one_state_is_not_made_on_another() -> None:
    client = RawClient(MeddlingStore(times=1), VirtualClock(), Entropy(1))
    body = read(step(client.create(CONFIG_MAP, NS, config_map(data={"a": "1"}))))
    with pytest.raises(ConflictError):
        step(client.update(CONFIG_MAP, NS, "settings", {**body, "data": {"mine": "y"}}))


def test_a_write_that_always_meets_another_gives_up() -> None:
    store = MeddlingStore(times=1_000)
    client = RawClient(store, VirtualClock(), Entropy(1))
    step(client.create(CONFIG_MAP, NS, config_map(data={"a": "1"}, finalizers=["example.com/x"])))
    with pytest.raises(ConflictError):
        step(client.patch(CONFIG_MAP, NS, "settings", {"data": {"mine": "y"}}, form=PatchForm.MERGE))
    with pytest.raises(ConflictError):
        step(client.delete(CONFIG_MAP, NS, "settings"))
    step(client.create(POD, NS, pod("web")))
    with pytest.raises(ConflictError):
        step(client.bind(NS, "web", "", "n1"))


# ------------------------------------------------------------------------------------- events and others


def test_an_event_is_the_same_under_both_names() -> None:
    client = RawClient(MemoryStore(), VirtualClock(), Entropy(1))
    body: Body = {
        "metadata": {"name": "web.1", "namespace": NS},
        "regarding": {"kind": "Pod", "name": "web"},
        "note": "Successfully assigned",
        "reportingController": "default-scheduler",
        "reason": "Scheduled",
    }
    newer = step(client.create(EVENT, NS, body))
    older = step(client.get(CORE_EVENT, NS, "web.1"))
    assert (at(newer, "apiVersion"), at(newer, "note")) == ("events.k8s.io/v1", "Successfully assigned")
    assert (at(older, "apiVersion"), at(older, "message")) == ("v1", "Successfully assigned")
    assert at(older, "involvedObject.name") == "web"
    assert step(client.get(EVENT, NS, "web.1")) == newer
    assert step(client.list(EVENT, Selection(fields="regarding.name=web"))).items == [newer]
    assert step(client.list(CORE_EVENT, Selection(fields="involvedObject.name=web"))).items == [older]
    step(client.patch(EVENT, NS, "web.1", {"note": "again", "series": {"count": 2}}, form=PatchForm.STRATEGIC))
    assert at(step(client.get(CORE_EVENT, NS, "web.1")), "message") == "again"


def test_a_watch_of_the_newer_events_tells_them_in_their_form() -> None:
    async def scenario(client: RawClient, clock: VirtualClock) -> None:
        since = (await client.list(EVENT)).revision
        async with client.watch(EVENT, since=since) as watch:
            body: Body = {"metadata": {"name": "web.1"}, "message": "hello", "involvedObject": {"name": "web"}}
            await client.create(CORE_EVENT, NS, body)
            (event,) = await watch.next_batch()
        assert event.change is Change.ADDED
        assert (at(event.raw, "note"), at(event.raw, "regarding.name")) == ("hello", "web")
        assert event.raw == await client.get(EVENT, NS, "web.1")

    run_local(scenario)


def test_a_taken_name_is_named_in_the_refusal() -> None:
    client = RawClient(MemoryStore(), VirtualClock(), Entropy(1))
    step(client.create(POD, NS, pod("web")))
    with pytest.raises(AlreadyExistsError) as refusal:
        step(client.create(POD, NS, pod("web")))
    assert refusal.value.details == {"name": "web", "kind": "pods"}


# --------------------------------------------------------------------------------------------- bookmarks


def test_a_bookmark_comes_after_a_minute_in_which_only_others_changed() -> None:
    async def scenario(client: RawClient, clock: VirtualClock) -> None:
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


def test_a_bookmark_is_not_lost_if_changes_come_at_the_same_time() -> None:
    async def scenario(client: RawClient, clock: VirtualClock) -> None:
        since = (await client.list(POD)).revision
        async with client.watch(POD, since=since) as watch:
            await create_all(client, pod("a"))
            await watch.next_batch()
            await create_all(client, config_map("elsewhere"), pod("b"))
            assert [event.change for event in await watch.next_batch()] == [Change.ADDED]
            await create_all(client, config_map("elsewhere too"))
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
        pytest.param(True, False, id="nothing happened anywhere: no alarm is set"),
        pytest.param(False, True, id="nobody asked for bookmarks"),
    ],
)
def test_no_bookmark_comes_if(bookmarks: bool, is_changed: bool) -> None:
    async def scenario(client: RawClient, clock: VirtualClock) -> None:
        since = (await client.list(POD)).revision
        async with client.watch(POD, since=since, bookmarks=bookmarks) as watch:
            if is_changed:
                await create_all(client, config_map("elsewhere"))
            await watch.next_batch()

    with pytest.raises(DeadlockError):
        run_local(scenario)
