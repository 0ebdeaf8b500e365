"""SqliteStore: the contract on a thread, on virtual time and after restarts; equality with a simple model."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import VirtualLoop
from mooring.store.interface import Record, RevisionGone, Store, StoreChange, StoreClosed, WriteConflict
from mooring.store.sqlite.commit import CommitScheduler
from mooring.store.sqlite.errors import SqliteLimits
from mooring.store.sqlite.memory import DurableMemory
from mooring.store.sqlite.store import SqliteStore
from tests.store.contract import DATABASE, DNS, NODE, PODS, WEB, Play, Scenario, StoreContract, fill, gather, told
from tests.store.sqlite.builders import contents, crash_image, play, play_real


class TestTheContractOnVirtualTime(StoreContract):
    @pytest.fixture
    def play(self, tmp_path: Path) -> Play:
        def play_in_directory(scenario: Scenario) -> None:
            play(tmp_path / "data", scenario)

        return play_in_directory


class TestTheContractOnAThread(StoreContract):
    @pytest.fixture
    def play(self, tmp_path: Path) -> Play:
        def play_in_directory(scenario: Scenario) -> None:
            play_real(tmp_path / "data", scenario)

        return play_in_directory


class TestTheContractAfterARestart(StoreContract):
    """The contract on a store with a history: compacted, maintained, closed and opened again."""

    @pytest.fixture
    def play(self, tmp_path: Path) -> Play:
        def play_in_directory(scenario: Scenario) -> None:
            play(tmp_path / "data", _leave_a_past)
            play(tmp_path / "data", scenario)

        return play_in_directory


async def _leave_a_past(store: Store) -> None:
    await fill(store, WEB, NODE, WEB)
    await store.compact(await store.revision())
    for key in (WEB, NODE):
        await store.delete(key)


@pytest.mark.parametrize("ending", ["it was closed", "it was killed"])
def test_all_records_and_the_revision_exist_after_a_restart(ending: str, tmp_path: Path) -> None:
    left: dict[str, tuple[int, bytes]] = {}

    async def write(store: SqliteStore) -> None:
        await fill(store, WEB, DATABASE, NODE)
        await store.put(WEB, b"changed")
        await store.delete(NODE)
        await store.put(DNS, b"")
        left.update(await contents(store))
        crash_image(tmp_path / "data", tmp_path / "killed")

    async def look(store: SqliteStore) -> None:
        assert await contents(store) == left
        assert await store.revision() == 7
        assert await store.put(NODE, b"next") == 8

    play(tmp_path / "data", write)
    play(tmp_path / ("data" if ending == "it was closed" else "killed"), look)


@pytest.mark.parametrize(
    ("compacted", "since", "changes"),
    [
        pytest.param(1, 1, [(WEB, b"web", None), (WEB, b"two", b"web"), (WEB, None, b"two")], id="from the start"),
        pytest.param(1, 2, [(WEB, b"two", b"web"), (WEB, None, b"two")], id="from the middle"),
        pytest.param(2, 2, [(WEB, b"two", b"web"), (WEB, None, b"two")], id="from the oldest revision"),
        pytest.param(2, 4, [], id="from the current revision"),
        pytest.param(3, 2, None, id="from a compacted revision"),
        pytest.param(4, 3, None, id="when all history is compacted"),
    ],
)
def test_a_watch_after_a_restart_gets_missed_changes_or_revision_gone(
    compacted: int, since: int, changes: list[tuple[str, bytes | None, bytes | None]] | None, tmp_path: Path
) -> None:
    async def write(store: SqliteStore) -> None:
        await fill(store, WEB)
        await store.put(WEB, b"two")
        await store.delete(WEB)
        await store.compact(compacted)

    async def resume(store: SqliteStore) -> None:
        if changes is None:
            with pytest.raises(RevisionGone):
                async with store.watch(PODS, since=since):
                    pass
            return
        async with store.watch(PODS, since=since) as watch:
            assert told(await gather(watch.next_batch, len(changes))) == changes
            await store.put(DNS, b"later")
            assert told(await gather(watch.next_batch, 1)) == [(DNS, b"later", None)]

    play(tmp_path, write)
    play(tmp_path, resume)


def test_an_old_revision_is_read_after_a_restart(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        await fill(store, WEB, DATABASE)
        await store.put(WEB, b"changed")
        await store.delete(DATABASE)

    async def look(store: SqliteStore) -> None:
        page = await store.list(PODS, at=3)
        assert [(record.key, record.value) for record in page.records] == [(DATABASE, b"database"), (WEB, b"web")]

    play(tmp_path, write)
    play(tmp_path, look)


def test_revisions_continue_after_a_restart_of_an_empty_store(tmp_path: Path) -> None:
    async def write_and_forget(store: SqliteStore) -> None:
        await fill(store, WEB)
        await store.compact(await store.delete(WEB))

    async def look(store: SqliteStore) -> None:
        assert await contents(store) == {}
        assert await store.put(WEB, b"again") == 4

    play(tmp_path, write_and_forget)
    play(tmp_path, look)


def test_the_loaded_history_is_limited(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        await fill(store, *[f"{PODS}default/p{number}" for number in range(10)])

    async def look(store: SqliteStore) -> None:
        assert store.statistics()["revision_oldest"] == 8

    play(tmp_path, write)
    play(tmp_path, look, SqliteLimits(changes_max=3))


def test_a_closed_store_rejects_writes_and_can_be_closed_again(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        await fill(store, WEB)
        await store.close()
        with pytest.raises(StoreClosed):
            await store.put(WEB, b"late")
        with pytest.raises(StoreClosed):
            await store.compact(2)
        record = await store.get(WEB)
        assert record is not None

    play(tmp_path, scenario)


LIMITS = SqliteLimits(
    loop_writes_max=100, loop_bytes_max=1_000, loop_s=0.001, loop_s_per_write=0.0001, thread_s=1.0, thread_s_max=3.0
)
SLOW_S = 1.0


def new_scheduler() -> tuple[CommitScheduler, VirtualClock]:
    clock = VirtualClock()
    return CommitScheduler(clock, LIMITS), clock


def commits_until_thread(scheduler: CommitScheduler, took_s: float) -> int:
    """The number of commits of a duration on the loop before the scheduler uses the thread."""
    for count in range(1_000):
        if not scheduler.is_on_loop(1, 1):
            return count
        scheduler.note(1, took_s)
    return -1


@pytest.mark.parametrize(
    ("writes", "size_bytes", "is_on_loop"),
    [
        pytest.param(100, 1_000, True, id="a small commit"),
        pytest.param(101, 1, False, id="many writes"),
        pytest.param(1, 1_001, False, id="many bytes"),
    ],
)
def test_large_commits_run_on_the_thread(writes: int, size_bytes: int, is_on_loop: bool) -> None:
    assert new_scheduler()[0].is_on_loop(writes, size_bytes) is is_on_loop


@pytest.mark.parametrize(
    ("took_s", "commits"),
    [
        pytest.param(0.0011, -1, id="the maximum duration"),
        pytest.param(0.0022, 7, id="twice the maximum"),
        pytest.param(SLOW_S, 3, id="a second"),
    ],
)
def test_commits_move_to_the_thread_after_a_few_slow_commits(took_s: float, commits: int) -> None:
    assert commits_until_thread(new_scheduler()[0], took_s) == commits


def test_the_allowed_duration_grows_with_the_number_of_writes() -> None:
    scheduler, _ = new_scheduler()
    for _ in range(1_000):
        scheduler.note(90, 0.0099)
    assert scheduler.is_on_loop(1, 1)


def test_a_single_slow_commit_has_no_effect() -> None:
    scheduler, _ = new_scheduler()
    for _ in range(100):
        scheduler.note(1, SLOW_S)
        for _ in range(30):
            scheduler.note(1, 0.0002)
        assert scheduler.is_on_loop(1, 1)


def test_the_loop_is_tried_again_with_growing_delays_until_the_disk_is_fast() -> None:
    scheduler, clock = new_scheduler()
    waits_s = []
    for _ in range(4):
        assert commits_until_thread(scheduler, SLOW_S) == 3
        began_s = clock.now_s()
        while not scheduler.is_on_loop(1, 1):
            clock.advance_to(clock.now_s() + 0.5)
        waits_s.append(clock.now_s() - began_s)
    assert waits_s == [1.0, 2.0, 3.0, 3.0]

    scheduler.note(1, 0.0002)
    assert commits_until_thread(scheduler, SLOW_S) == 3
    clock.advance_to(clock.now_s() + 1.0)
    assert scheduler.is_on_loop(1, 1)


def filled_memory(limits: SqliteLimits | None = None) -> DurableMemory:
    """Revision 2 puts, 3 replaces and 4 deletes a record, and 5 puts another: one per second."""
    memory = DurableMemory(limits or SqliteLimits())
    first, second = Record(WEB, b"one", 2), Record(WEB, b"two", 3)
    memory.load([], 1, [], 0.0)
    memory.apply([StoreChange(WEB, 2, b"one", None)], 1.0)
    memory.apply([StoreChange(WEB, 3, b"two", first)], 2.0)
    memory.apply([StoreChange(WEB, 4, None, second)], 3.0)
    memory.apply([StoreChange(DNS, 5, b"dns", None)], 4.0)
    return memory


@pytest.mark.parametrize(
    ("forgotten", "obsolete"),
    [
        pytest.param(1, [], id="no history removed"),
        pytest.param(2, [], id="the first put removed"),
        pytest.param(3, [2], id="the replacement removed: the first row"),
        pytest.param(4, [2, 3, 4], id="the deletion removed: the second row and the deletion"),
        pytest.param(5, [2, 3, 4], id="the put of an existing record removed"),
    ],
)
def test_a_row_is_obsolete_when_its_replacement_is_no_longer_in_the_history(
    forgotten: int, obsolete: list[int]
) -> None:
    memory = filled_memory()
    memory.forget_before(forgotten)
    assert memory.obsolete == obsolete
    assert memory.oldest_revision() == forgotten


@pytest.mark.parametrize(
    ("now_s", "oldest", "next_s"),
    [
        pytest.param(10.9, 1, 11.0, id="no change is ten seconds old"),
        pytest.param(11.0, 2, 12.0, id="the first change"),
        pytest.param(13.5, 4, 14.0, id="three changes"),
        pytest.param(99.0, 5, None, id="all changes"),
    ],
)
def test_history_expires_by_age(now_s: float, oldest: int, next_s: float | None) -> None:
    memory = filled_memory(SqliteLimits(history_s_max=10.0))
    memory.forget_expired(now_s)
    assert (memory.oldest_revision(), memory.next_expiry_s()) == (oldest, next_s)


def test_changes_close_in_time_expire_together() -> None:
    memory = DurableMemory(SqliteLimits(history_s_max=10.0))
    memory.load([], 1, [], 0.0)
    for revision in range(2, 12):
        memory.apply([StoreChange(f"/a/{revision}", revision, b"", None)], 1.0 + revision / 20)
    assert memory.next_expiry_s() == pytest.approx(11.55)
    memory.forget_expired(11.56)
    assert memory.oldest_revision() == 11


def test_a_gap_between_revisions_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match="revision 7 after 5"):
        filled_memory().apply([StoreChange(DNS, 7, b"dns", None)], 5.0)


Result = TypeVar("Result")

KEYS = st.sampled_from(["/a/x", "/a/y", "/a/b/x", "/c/x", "/c/z"])
FOLDERS = st.sampled_from(["/", "/a/", "/c/"])


class SqliteMachine(RuleBasedStateMachine):
    @initialize(changes_max=st.integers(2, 12), obsolete_rows_max=st.integers(1, 4))
    def begin(self, changes_max: int, obsolete_rows_max: int) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.directory = self.root / "0"
        self.runs = 0
        self.clock = VirtualClock()
        self.loop = VirtualLoop(self.clock)
        self.limits = SqliteLimits(
            changes_max=changes_max, obsolete_rows_max=obsolete_rows_max, log_bytes_max=20_000, free_bytes_kept=8192
        )
        self.states: list[dict[str, Record]] = [{}, {}]  # by revision: 0 does not exist, 1 is empty
        self.changes: list[StoreChange] = []
        self.store = self.do(SqliteStore.open(self.directory, self.clock, self.limits))

    def do(self, work: Coroutine[object, object, Result]) -> Result:
        return self.loop.run_until_complete(work)

    @property
    def now(self) -> dict[str, Record]:
        return self.states[-1]

    @rule(key=KEYS, value=st.binary(max_size=3), times=st.sampled_from([1, 1, 3000]))
    def put(self, key: str, value: bytes, times: int) -> None:
        self._expect(key, value * times, self.do(self.store.put(key, value * times)))

    @rule(key=KEYS, revision=st.integers(0, 12))
    def put_if(self, key: str, revision: int) -> None:
        have = self.now[key].revision if key in self.now else 0
        if have == revision:
            self._expect(key, b"if", self.do(self.store.put(key, b"if", if_revision=revision)))
        else:
            with pytest.raises(WriteConflict) as conflict:
                self.do(self.store.put(key, b"if", if_revision=revision))
            assert conflict.value.current == self.now.get(key)

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        if key in self.now:
            self._expect(key, None, self.do(self.store.delete(key)))
        else:
            with pytest.raises(WriteConflict):
                self.do(self.store.delete(key))

    @rule(back=st.integers(0, 4))
    def compact(self, back: int) -> None:
        self.do(self.store.compact(max(1, len(self.states) - 1 - back)))

    @rule()
    def close_and_open(self) -> None:
        self.do(self.store.close())
        self.store = self.do(SqliteStore.open(self.directory, self.clock, self.limits))

    @rule()
    def kill_and_open(self) -> None:
        self.runs += 1
        after = crash_image(self.directory, self.root / str(self.runs))
        self.do(self.store.close())
        self.directory = after
        self.store = self.do(SqliteStore.open(self.directory, self.clock, self.limits))

    @rule(folder=FOLDERS, back=st.integers(0, 6))
    def read_the_past(self, folder: str, back: int) -> None:
        at = max(1, len(self.states) - 1 - back)
        if at < self.store.statistics()["revision_oldest"]:
            with pytest.raises(RevisionGone):
                self.do(self.store.list(folder, at=at))
            return
        state = self.states[at]
        page = self.do(self.store.list(folder, at=at))
        assert [*page.records] == [state[key] for key in sorted(state) if key.startswith(folder)]
        missed = [change for change in self.changes if change.revision > at and change.key.startswith(folder)]
        assert self.do(self._watch(folder, at)) == missed

    async def _watch(self, folder: str, since: int) -> list[StoreChange]:
        async with self.store.watch(folder, since=since) as watch:
            watch.interrupt()
            return [*await watch.next_batch()]

    @invariant()
    def the_present_is_right(self) -> None:
        if hasattr(self, "store"):
            assert self.do(self.store.revision()) == len(self.states) - 1
            assert {record.key: record for record in self.do(self.store.list("/")).records} == self.now

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.do(self.store.close())
            assert self.loop.wind_up() == []
            shutil.rmtree(self.root)

    def _expect(self, key: str, value: bytes | None, revision: int) -> None:
        self.changes.append(StoreChange(key, revision, value, self.now.get(key)))
        state = {name: record for name, record in self.now.items() if name != key}
        if value is not None:
            state[key] = Record(key, value, revision)
        self.states.append(state)


TestSqliteMachine = SqliteMachine.TestCase
TestSqliteMachine.settings = settings(max_examples=30, stateful_step_count=30)
