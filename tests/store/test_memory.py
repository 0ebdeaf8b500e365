"""MemoryStore: the store contract, limits, slow watches, and equality with a simple model that keeps all states."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.store.interface import EMPTY_REVISION, Record, RevisionGone, Store, StoreChange, WriteConflict
from mooring.store.memory import KeyFolder, MemoryStore, MemoryWatch
from tests.store.contract import DATABASE, DNS, NODE, PODS, WEB, Play, Scenario, StoreContract, fill, names, told


class TestTheContract(StoreContract):
    @pytest.fixture
    def play(self) -> Play:
        def play(scenario: Scenario) -> None:
            run(_started(scenario, MemoryStore()))

        return play


def play(scenario: Callable[[MemoryStore], Awaitable[None]], store: MemoryStore) -> None:
    async def started() -> None:
        await scenario(store)

    run(started())


async def _started(scenario: Scenario, store: Store) -> None:
    await scenario(store)


def test_an_empty_store_has_the_first_revision() -> None:
    async def scenario(store: MemoryStore) -> None:
        assert await store.revision() == EMPTY_REVISION
        assert await store.put(WEB, b"one") == EMPTY_REVISION + 1

    play(scenario, MemoryStore())


def test_values_are_not_copied() -> None:
    async def scenario(store: MemoryStore) -> None:
        value = b"x" * 5000
        async with store.watch(PODS, since=await store.revision()) as watch:
            await store.put(WEB, value)
            (change,) = await watch.next_batch()
        record = await store.get(WEB)
        assert record is not None
        assert record.value is value
        assert change.value is value

    play(scenario, MemoryStore())


def test_all_watches_return_the_same_change_object() -> None:
    async def scenario(store: MemoryStore) -> None:
        since = await store.revision()
        async with store.watch(PODS, since=since) as one, store.watch("/registry/", since=since) as other:
            await store.put(WEB, b"one")
            assert (await one.next_batch())[0] is (await other.next_batch())[0]

    play(scenario, MemoryStore())


@pytest.mark.parametrize(
    ("limits", "oldest"),
    [
        pytest.param({"changes_max": 3}, 8, id="maximum number of changes"),
        pytest.param({"replaced_bytes_max": 25}, 9, id="maximum number of replaced bytes"),
        pytest.param({}, 1, id="below the limits"),
    ],
)
def test_the_history_is_limited(limits: dict[str, int], oldest: int) -> None:
    async def scenario(store: MemoryStore) -> None:
        for _ in range(10):
            await store.put(WEB, b"ten bytes!")
        assert store.statistics()["revision_oldest"] == oldest
        with pytest.raises(RevisionGone):
            await store.list(PODS, at=oldest - 1)
        assert len((await store.list(PODS, at=max(oldest, 2))).records) == 1

    play(scenario, MemoryStore(**limits))


def test_a_slow_watch_ends_with_revision_gone_and_other_watches_continue() -> None:
    async def scenario(store: MemoryStore) -> None:
        since = await store.revision()
        async with store.watch(PODS, since=since) as slow, store.watch(PODS, since=since) as quick:
            for _ in range(3):
                await store.put(WEB, b"x")
                assert len(await quick.next_batch()) == 1
            with pytest.raises(RevisionGone):
                await slow.next_batch()
            with pytest.raises(RevisionGone):
                await slow.next_batch()
        assert store.statistics()["watches"] == 0
        assert store.statistics()["watches_cut_off"] == 1

    play(scenario, MemoryStore(buffer_max=2))


def test_a_full_buffer_loses_no_change() -> None:
    async def scenario(store: MemoryStore) -> None:
        async with store.watch(PODS, since=await store.revision()) as watch:
            await fill(store, WEB, DATABASE)
            assert len(await watch.next_batch()) == 2

    play(scenario, MemoryStore(buffer_max=2))


def test_a_closed_watch_is_removed() -> None:
    async def scenario(store: MemoryStore) -> None:
        async with store.watch(PODS, since=await store.revision()):
            assert store.statistics()["watches"] == 1
        await store.put(WEB, b"one")
        assert store.statistics()["watches"] == 0

    play(scenario, MemoryStore())


def test_a_watch_returns_changes_in_folders_created_later() -> None:
    async def scenario(store: MemoryStore) -> None:
        async with store.watch(PODS, since=await store.revision()) as watch:
            await store.put(WEB, b"one")
            await store.delete(WEB)
            await store.put(WEB, b"two")
            expected = [(WEB, b"one", None), (WEB, None, b"one"), (WEB, b"two", None)]
            assert told(await watch.next_batch()) == expected

    play(scenario, MemoryStore())


def test_a_record_with_the_name_of_a_folder_is_listed_in_order() -> None:
    async def scenario(store: MemoryStore) -> None:
        await fill(store, "/a/c", "/a/b/x", "/a/b", "/a/b-c/x")
        page = await store.list("/a/")
        assert [record.key for record in page.records] == ["/a/b", "/a/b-c/x", "/a/b/x", "/a/c"]
        assert names((await store.list("/a/", start="/a/b-c/", limit=2)).records) == ["x", "x"]

    play(scenario, MemoryStore())


def test_statistics_count_records_changes_and_replaced_bytes() -> None:
    async def scenario(store: MemoryStore) -> None:
        await fill(store, WEB, DNS, NODE)
        await store.put(WEB, b"another")
        await store.delete(DNS)
        statistics = store.statistics()
        assert (statistics["records"], statistics["changes"], statistics["replaced_bytes"]) == (2, 5, 6)
        await store.compact(await store.revision())
        assert (store.statistics()["changes"], store.statistics()["replaced_bytes"]) == (0, 0)

    play(scenario, MemoryStore())


NAMES = st.text("abc", min_size=1, max_size=3)


def put(folder: KeyFolder, key: str) -> None:
    folder.put(Record(key, b"", 2), is_new=key not in folder.records)


@pytest.mark.parametrize("count", [pytest.param(3, id="few keys"), pytest.param(100, id="many keys")])
def test_keys_are_in_order_after_puts_and_removals(count: int) -> None:
    folder = KeyFolder("/f/")
    for number in reversed(range(count)):
        put(folder, f"/f/{number:03}")
    assert list(folder.keys_from("")) == [f"/f/{number:03}" for number in range(count)]
    for number in range(0, count, 2):
        folder.remove(f"/f/{number:03}")
    assert list(folder.keys_from("")) == [f"/f/{number:03}" for number in range(1, count, 2)]


@given(st.lists(st.tuples(st.sampled_from(["put", "remove", "look"]), NAMES), max_size=60), NAMES)
def test_a_folder_equals_a_sorted_dictionary(steps: list[tuple[str, str]], start: str) -> None:
    folder, expected = KeyFolder(""), dict[str, None]()
    for step, key in steps:
        if step == "put":
            put(folder, key)
            expected[key] = None
        elif step == "remove" and key in expected:
            folder.remove(key)
            del expected[key]
        elif step == "look":
            assert list(folder.keys_from("")) == sorted(expected)
    assert [record.key for record in folder.in_order()] == sorted(expected)
    assert list(folder.keys_from(start)) == [key for key in sorted(expected) if key >= start]
    assert folder.count_from(start) == sum(key >= start for key in expected)


def test_a_second_reader_of_a_watch_is_an_assertion_error() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        async with store.watch(PODS, since=await store.revision()) as watch, TaskGroup("readers") as group:
            group.start(watch.next_batch(), name="first")
            group.start(watch.next_batch(), name="second")

    with pytest.raises(BaseExceptionGroup) as failures:
        run(scenario())
    assert "has one reader, not two" in str(failures.value.exceptions[0])


def test_seen_revision_includes_changes_of_other_folders_but_not_buffered_changes() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        start = await store.revision()
        async with store.watch(PODS, since=start) as watch:
            assert watch.seen_revision() == start
            elsewhere = await store.put(NODE, b"n")
            assert watch.seen_revision() == elsewhere
            mine = await store.put(WEB, b"w")
            assert watch.seen_revision() < mine
            await watch.next_batch()
            assert watch.seen_revision() == mine

    run(scenario())


def test_a_cancelled_reader_loses_no_change() -> None:
    async def scenario(clock: VirtualClock) -> None:
        store = MemoryStore()
        async with store.watch(PODS, since=await store.revision()) as watch:
            async with TaskGroup("reading") as group:
                group.start_background(watch.next_batch(), name="reader")
                await clock.wait(1)
            await store.put(WEB, b"one")
            assert len(await watch.next_batch()) == 1

    clock = VirtualClock()
    run(scenario(clock), clock)


Result = TypeVar("Result")

KEYS = st.sampled_from(["/a/x", "/a/y", "/a/b/x", "/a/b/y", "/a/b", "/c/x", "/c/z"])
FOLDERS = st.sampled_from(["/", "/a/", "/a/b/", "/c/", "/none/"])
VALUES = st.binary(max_size=4)


def step(work: Coroutine[object, object, Result]) -> Result:
    """Run a coroutine that must not wait."""
    try:
        work.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise AssertionError("the memory store must not wait")


class StoreMachine(RuleBasedStateMachine):
    @initialize(changes_max=st.integers(2, 12), buffer_max=st.integers(1, 6))
    def begin(self, changes_max: int, buffer_max: int) -> None:
        self.store = MemoryStore(changes_max=changes_max, buffer_max=buffer_max)
        self.states: list[dict[str, Record]] = [{}, {}]  # by revision: 0 does not exist, 1 is empty
        self.changes: list[StoreChange] = []
        self.watches: list[tuple[MemoryWatch, str, int]] = []

    @property
    def now(self) -> dict[str, Record]:
        return self.states[-1]

    @rule(key=KEYS, value=VALUES)
    def put(self, key: str, value: bytes) -> None:
        self._expect(key, value, step(self.store.put(key, value)))

    @rule(key=KEYS, value=VALUES, revision=st.integers(0, 30))
    def put_if(self, key: str, value: bytes, revision: int) -> None:
        have = self.now[key].revision if key in self.now else 0
        if have == revision:
            self._expect(key, value, step(self.store.put(key, value, if_revision=revision)))
        else:
            with pytest.raises(WriteConflict) as conflict:
                step(self.store.put(key, value, if_revision=revision))
            assert conflict.value.current == self.now.get(key)

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        if key in self.now:
            self._expect(key, None, step(self.store.delete(key)))
        else:
            with pytest.raises(WriteConflict):
                step(self.store.delete(key))

    @rule(folder=FOLDERS, back=st.integers(0, 6), start=st.one_of(st.just(""), KEYS), limit=st.integers(0, 4))
    def list(self, folder: str, back: int, start: str, limit: int) -> None:
        at = max(1, len(self.states) - 1 - back)
        if at < self.store.oldest_revision():
            with pytest.raises(RevisionGone):
                step(self.store.list(folder, start=start, limit=limit, at=at))
            return
        page = step(self.store.list(folder, start=start, limit=limit, at=at))
        state = self.states[at]
        expected = [state[key] for key in sorted(state) if key.startswith(folder) and key >= start]
        assert [*page.records] == (expected[:limit] if limit else expected)
        rest = expected[limit:] if limit else []
        assert (page.next_start, page.remaining) == (rest[0].key if rest else "", len(rest))

    @rule(folder=FOLDERS, back=st.integers(0, 6))
    def watch(self, folder: str, back: int) -> None:
        since = max(1, len(self.states) - 1 - back)
        watch = self.store.watch(folder, since=since)
        if since < self.store.oldest_revision():
            with pytest.raises(RevisionGone):
                step(watch.__aenter__())
        else:
            step(watch.__aenter__())
            self.watches.append((watch, folder, since))

    @rule()
    def read_watches(self) -> None:
        open_watches = []
        for watch, folder, since in self.watches:
            expected = [change for change in self.changes if change.revision > since and change.key.startswith(folder)]
            watch.interrupt()
            try:
                found = step(watch.next_batch())
            except RevisionGone:
                assert expected, "the watch ended without missed changes"
                continue
            assert [(each.key, each.revision, each.value, each.previous) for each in found] == [
                (each.key, each.revision, each.value, each.previous) for each in expected
            ]
            open_watches.append((watch, folder, len(self.states) - 1))
        self.watches = open_watches

    @rule(back=st.integers(0, 4))
    def compact(self, back: int) -> None:
        step(self.store.compact(max(1, len(self.states) - 1 - back)))

    @invariant()
    def the_present_is_right(self) -> None:
        if hasattr(self, "store"):
            assert step(self.store.revision()) == len(self.states) - 1
            assert {record.key: record for record in step(self.store.list("/")).records} == self.now

    def _expect(self, key: str, value: bytes | None, revision: int) -> None:
        self.changes.append(StoreChange(key, revision, value, self.now.get(key)))
        state = {name: record for name, record in self.now.items() if name != key}
        if value is not None:
            state[key] = Record(key, value, revision)
        self.states.append(state)


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=60, stateful_step_count=40)
