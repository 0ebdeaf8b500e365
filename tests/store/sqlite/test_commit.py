"""Group commit: concurrent writes share a commit, get their result when it is durable, and errors of the disk.

Errors of SQLite are converted to store errors with advice.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Coroutine
from pathlib import Path

import pytest

from mooring.kit.clock import SystemClock
from mooring.kit.tasks import TaskGroup
from mooring.store.interface import (
    MUST_NOT_EXIST,
    RevisionGone,
    StoreBusy,
    StoreChange,
    StoreClosed,
    StoreError,
    ValueTooLarge,
    WriteConflict,
)
from mooring.store.sqlite.commit import ITERATIONS_AWAITED
from mooring.store.sqlite.errors import (
    DirectoryInUse,
    DirectoryUnusable,
    DiskFailing,
    DiskFull,
    FileDamaged,
    FileError,
    SqliteLimits,
    error_of_sqlite,
)
from mooring.store.sqlite.file import StoreFile
from mooring.store.sqlite.store import SqliteStore
from tests.store.contract import DATABASE, DNS, NODE, PODS, WEB, fill, told
from tests.store.sqlite.builders import ON_THE_THREAD, contents, contents_of, play, play_real

Outcome = int | StoreError


async def outcomes(*writes: Coroutine[object, object, int]) -> list[Outcome]:
    """The outcomes of concurrent writes."""

    async def outcome(write: Coroutine[object, object, int]) -> Outcome:
        try:
            return await write
        except StoreError as error:
            return error

    async with TaskGroup("writers") as group:
        tasks = [group.start(outcome(write), name=str(number)) for number, write in enumerate(writes)]
    return [task.result() for task in tasks]


class Disk:
    """Records the commits of a store file, and raises an error if set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commits: list[list[int]] = []
        self.error: Exception | None = None
        append = StoreFile.append

        def append_or_fail(file: StoreFile, changes: list[StoreChange]) -> None:
            if self.error is not None:
                raise self.error
            self.commits.append([change.revision for change in changes])
            append(file, changes)

        monkeypatch.setattr(StoreFile, "append", append_or_fail)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.mark.parametrize("is_real", [False, True], ids=["on virtual time", "on a thread"])
def test_concurrent_writes_share_a_commit(is_real: bool, disk: Disk, tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        writes = [store.put(f"{PODS}default/p{number}", b"x") for number in range(64)]
        assert await outcomes(*writes) == [*range(2, 66)]
        assert disk.commits == [[*range(2, 66)]]

    (play_real if is_real else play)(tmp_path, scenario)


@pytest.mark.parametrize("is_real", [False, True], ids=["on virtual time", "on a thread"])
def test_writes_a_few_loop_iterations_later_share_the_commit(is_real: bool, disk: Disk, tmp_path: Path) -> None:
    async def put_after(store: SqliteStore, turns: int) -> int:
        for _ in range(turns):
            await SystemClock().wait(0)
        return await store.put(f"{PODS}default/p{turns}", b"x")

    async def scenario(store: SqliteStore) -> None:
        assert await outcomes(*(put_after(store, turns) for turns in range(ITERATIONS_AWAITED))) == [2, 3, 4]
        assert disk.commits == [[2, 3, 4]]

    (play_real if is_real else play)(tmp_path, scenario)


@pytest.mark.parametrize("is_real", [False, True], ids=["on virtual time", "on a thread"])
def test_a_writer_gets_its_revision_before_its_watch_returns_the_change(is_real: bool, tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        log: list[str] = []

        async def read() -> None:
            async with store.watch(PODS, since=1) as watch:
                while len(log) < 4:
                    log.extend(f"told {change.revision}" for change in await watch.next_batch())

        async def write(key: str) -> None:
            log.append(f"wrote {await store.put(key, b'x')}")

        async with TaskGroup("both") as group:
            group.start(read(), name="listener")
            await SystemClock().wait(0)
            for key in (WEB, DNS):
                group.start(write(key), name=key)
        assert log == ["wrote 2", "wrote 3", "told 2", "told 3"]

    (play_real if is_real else play)(tmp_path, scenario)


@pytest.mark.parametrize(
    ("limits", "commits"),
    [
        pytest.param(SqliteLimits(commit_writes_max=4), [4, 4, 2], id="at most four writes"),
        pytest.param(SqliteLimits(commit_bytes_max=60), [2, 2, 2, 2, 2], id="sixty bytes, exceeded by the last write"),
        pytest.param(SqliteLimits(), [10], id="below the limits"),
    ],
)
def test_the_size_of_a_commit_is_limited(limits: SqliteLimits, commits: list[int], disk: Disk, tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        await outcomes(*[store.put(f"{PODS}default/p{number}", b"x" * 20) for number in range(10)])
        assert [len(commit) for commit in disk.commits] == commits

    play(tmp_path, scenario, limits)


def test_only_the_first_of_conditional_writes_succeeds_and_others_get_the_current_record(
    disk: Disk, tmp_path: Path
) -> None:
    async def scenario(store: SqliteStore) -> None:
        first, second, removed, again = await outcomes(
            store.put(WEB, b"one", if_revision=MUST_NOT_EXIST),
            store.put(WEB, b"two", if_revision=MUST_NOT_EXIST),
            store.delete(WEB, if_revision=2),
            store.put(WEB, b"three", if_revision=MUST_NOT_EXIST),
        )
        assert (first, removed, again) == (2, 3, 4)
        assert isinstance(second, WriteConflict)
        assert second.current is not None
        assert (second.current.value, second.current.revision) == (b"one", 2)
        assert disk.commits == [[2, 3, 4]]

    play(tmp_path, scenario)


def test_a_conditional_write_behind_a_failed_write_gets_its_error_not_a_conflict(disk: Disk, tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        disk.error = DiskFull("no room")
        found = await outcomes(
            store.put(WEB, b"one", if_revision=MUST_NOT_EXIST), store.put(WEB, b"two", if_revision=MUST_NOT_EXIST)
        )
        assert [type(each) for each in found] == [DiskFull, DiskFull]
        assert found[0] is not found[1]

    play(tmp_path, scenario)


def test_a_write_is_not_visible_before_it_is_durable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[tuple[int, bool]] = []

    async def scenario(store: SqliteStore) -> None:
        append = StoreFile.append

        def look_and_append(file: StoreFile, changes: list[StoreChange]) -> None:
            append(file, changes)
            # On virtual time this is the thread of the loop, before readers are notified.
            seen.append((store.statistics()["revision"], bool(watch.seen_revision() >= 2)))

        monkeypatch.setattr(StoreFile, "append", look_and_append)
        async with store.watch(PODS, since=1) as watch:
            assert await store.put(WEB, b"one") == 2
            assert seen == [(1, False)]
            assert told(await watch.next_batch()) == [(WEB, b"one", None)]

    play(tmp_path, scenario)


def test_a_full_disk_rejects_writes_serves_reads_and_recovers(
    disk: Disk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mooring.store.sqlite.commit")

    async def scenario(store: SqliteStore) -> None:
        await fill(store, WEB, DATABASE)
        async with store.watch(PODS, since=3) as watch:
            disk.error = DiskFull("no room")
            for key in (WEB, DNS):
                with pytest.raises(DiskFull, match="no room"):
                    await store.put(key, b"refused")
            assert set(await contents(store)) == {WEB, DATABASE}
            assert store.statistics()["commits_failed"] == 2
            disk.error = None
            assert await store.put(DNS, b"there is room") == 4
            assert told(await watch.next_batch()) == [(DNS, b"there is room", None)]

    play(tmp_path, scenario)
    assert [record.message for record in caplog.records] == ["no room", "the store writes again, at revision 4"]
    assert contents_of(tmp_path)[0] == 4


def test_a_damaged_file_rejects_writes_and_serves_reads(disk: Disk, tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        await fill(store, WEB)
        disk.error = FileDamaged("a page makes no sense")
        found = await outcomes(store.put(WEB, b"x"), store.delete(WEB))
        disk.error = None
        found += await outcomes(store.put(WEB, b"x"))
        assert [(type(each), str(each)) for each in found] == [(FileDamaged, "a page makes no sense")] * 3
        with pytest.raises(FileDamaged):
            await store.compact(2)
        assert set(await contents(store)) == {WEB}

    play(tmp_path, scenario)


def test_a_removed_file_is_detected_by_the_next_write(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        await fill(store, WEB)
        (tmp_path / "store.db").rename(tmp_path / "elsewhere.db")
        with pytest.raises(FileDamaged, match="removed or replaced"):
            await store.put(WEB, b"lost")

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("limits", "refusal"),
    [
        pytest.param(SqliteLimits(waiting_writes_max=2), StoreBusy, id="too many waiting writes"),
        pytest.param(SqliteLimits(value_bytes_max=4), ValueTooLarge, id="a value that is too large"),
    ],
)
def test_only_writes_beyond_a_limit_are_rejected(
    limits: SqliteLimits, refusal: type[StoreError], tmp_path: Path
) -> None:
    async def scenario(store: SqliteStore) -> None:
        found = await outcomes(store.put(WEB, b"one"), store.put(DNS, b"two"), store.put(NODE, b"three"))
        assert found[:2] == [2, 3]
        assert type(found[2]) is refusal
        assert await store.put(NODE, b"four") == 4

    play(tmp_path, scenario, limits)


def test_at_the_limit_of_the_file_size_only_deletions_are_accepted(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        count = 0
        with pytest.raises(DiskFull, match="at its limit of 200000 bytes: delete something"):
            while count < 100:
                await store.put(f"{PODS}default/p{count}", b"x" * 10_000)
                count += 1
        assert 10 < count < 20
        for number in range(10):
            await store.delete(f"{PODS}default/p{number}")
        await store.compact(await store.revision())
        await store.put(WEB, b"x" * 10_000)

    play(tmp_path, scenario, SqliteLimits(file_bytes_max=200_000))


def test_a_cancelled_waiting_write_is_not_written(disk: Disk, tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        async with TaskGroup("writers") as group:
            cancelled = group.start(store.put(WEB, b"never"), name="cancelled")
            group.start(store.put(DNS, b"one"), name="patient")
            asyncio.get_running_loop().call_soon(cancelled.cancel)
        assert disk.commits == [[2]]
        assert set(await contents(store)) == {DNS}

    play(tmp_path, scenario)


def test_closing_completes_waiting_writes_and_rejects_new_ones(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        async def close() -> int:
            await store.close()
            return 0

        found = await outcomes(store.put(WEB, b"in time"), close(), store.put(DNS, b"too late"))
        assert found[:2] == [2, 0]
        assert isinstance(found[2], StoreClosed)

    play_real(tmp_path, scenario)
    assert contents_of(tmp_path)[0] == 2


def test_history_expires_after_its_maximum_age(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        expired = asyncio.get_running_loop().create_future()
        await fill(store, WEB, WEB, WEB)
        asyncio.get_running_loop().call_later(601.0, expired.set_result, None)
        assert store.statistics()["revision_oldest"] == 1
        await expired
        statistics = store.statistics()
        assert (statistics["revision_oldest"], statistics["obsolete_rows"], statistics["changes"]) == (4, 0, 0)
        with pytest.raises(RevisionGone):
            await store.list(PODS, at=3)

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("limits", "is_on_loop"),
    [
        pytest.param(SqliteLimits(loop_s=60.0), True, id="on the loop"),
        pytest.param(ON_THE_THREAD, False, id="on the thread"),
    ],
)
def test_commits_on_the_loop_and_on_the_thread_have_the_same_results(
    tmp_path: Path, limits: SqliteLimits, is_on_loop: bool
) -> None:
    async def scenario(store: SqliteStore) -> None:
        first = await fill(store, WEB, DNS)
        lost, won = await outcomes(store.put(WEB, b"lost", if_revision=first + 7), store.put(DNS, b"won"))
        assert (type(lost), won) == (WriteConflict, first + 1)
        counts = store.statistics()
        assert counts["commits"] >= 2
        assert counts["commits_on_loop"] == (counts["commits"] if is_on_loop else 0)

    play_real(tmp_path, scenario, limits)
    assert contents_of(tmp_path)[1][DNS][1] == b"won"


def test_a_commit_that_fails_on_the_loop_rejects_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)

    async def scenario(store: SqliteStore) -> None:
        disk.error = DiskFull("no room")
        assert [type(each) for each in await outcomes(store.put(WEB, b"one"))] == [DiskFull]
        disk.error = None
        assert isinstance(await store.put(WEB, b"two"), int)
        assert store.statistics()["commits_on_loop"] == 2

    play_real(tmp_path, scenario, SqliteLimits(loop_s=60.0))


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        pytest.param(sqlite3.SQLITE_FULL, DiskFull, "Free some space", id="a full disk"),
        pytest.param(sqlite3.SQLITE_IOERR_WRITE, DiskFailing, "Look at the disk", id="a failed write"),
        pytest.param(sqlite3.SQLITE_IOERR_FSYNC, DiskFailing, "Look at the disk", id="a failed fsync"),
        pytest.param(sqlite3.SQLITE_CORRUPT, FileDamaged, "Restore", id="a corrupt page"),
        pytest.param(sqlite3.SQLITE_NOTADB, FileDamaged, "Restore", id="not a database"),
        pytest.param(sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, FileDamaged, "Restore", id="a duplicate revision"),
        pytest.param(sqlite3.SQLITE_BUSY, DirectoryInUse, "close it", id="opened by another program"),
        pytest.param(sqlite3.SQLITE_READONLY, DirectoryUnusable, "writable", id="not writable"),
        pytest.param(sqlite3.SQLITE_CANTOPEN, DirectoryUnusable, "writable", id="not openable"),
        pytest.param(sqlite3.SQLITE_NOMEM, FileError, "store.db", id="another error"),
    ],
)
def test_error_class_and_advice_for_each_error_of_sqlite(code: int, kind: type[FileError], advice: str) -> None:
    raised = sqlite3.OperationalError("what was message")
    raised.sqlite_errorcode = code
    raised.sqlite_errorname = "SQLITE_SOMETHING"
    error = error_of_sqlite(raised, Path("/data/store.db"), "writing revision 7")
    assert type(error) is kind
    assert "what was message (SQLITE_SOMETHING) while writing revision 7" in str(error)
    assert advice in str(error)


def test_again_copies_a_file_error() -> None:
    error = DiskFull("no room")
    assert error.copied() is not error
    assert (type(error.copied()), str(error.copied())) == (DiskFull, "no room")
