"""StoreFile: batches are written completely or not at all; full disks; freeing of file space.

DataDirectory: one owner, stale locks, and the checksum of the acknowledged revision.
"""

from __future__ import annotations

import os
import resource
import sqlite3
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from mooring.kit.clock import SystemClock
from mooring.kit.tasks import TaskGroup
from mooring.store.interface import StoreChange, StoreError
from mooring.store.sqlite import file as sqlite_file
from mooring.store.sqlite.errors import (
    DirectoryInUse,
    DirectoryUnusable,
    DiskFailing,
    DiskFull,
    FileError,
    SqliteLimits,
)
from mooring.store.sqlite.file import DataDirectory, StoreFile
from mooring.store.sqlite.load import FileContents, load
from mooring.store.sqlite.store import SqliteStore
from tests.store.contract import DNS, PODS, WEB, fill
from tests.store.sqlite.builders import DATABASE, LOG, contents, contents_of, play, play_real

BIG = b"x" * 100_000
API = f"{PODS}default/api"


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """The connections of opened stores, so that a test can limit their size."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite_file._connect_exclusively

    def connect_and_record(path: Path) -> sqlite3.Connection:
        opened.append(connect(path))
        return opened[-1]

    monkeypatch.setattr(sqlite_file, "_connect_exclusively", connect_and_record)
    return opened


def test_a_batch_that_exceeds_the_database_size_is_rejected_and_the_next_may_succeed(
    connections: list[sqlite3.Connection], tmp_path: Path
) -> None:
    async def scenario(store: SqliteStore) -> None:
        await fill(store, WEB)
        connections[0].execute("PRAGMA max_page_count = 10")
        with pytest.raises(DiskFull, match=r"store\.db: .*full.* while writing revision 3.*Free some space"):
            await store.put(DNS, BIG)
        assert set(await contents(store)) == {WEB}
        connections[0].execute("PRAGMA max_page_count = 1000000")
        assert await store.put(DNS, BIG) == 3

    play(tmp_path, scenario)
    assert contents_of(tmp_path)[1] == {WEB: (2, b"web"), DNS: (3, BIG)}


@pytest.mark.parametrize("rows", [1, 2, 128, 129, 300], ids=lambda rows: f"{rows} rows")
def test_a_batch_of_any_size_is_written_completely_or_not_at_all(rows: int, tmp_path: Path) -> None:
    keys = [f"{PODS}default/p{number}" for number in range(rows)]
    file, _ = sqlite_file.open_file(tmp_path, SqliteLimits())
    broken = [StoreChange(key, 2 + number, b"x", None) for number, key in enumerate(keys)]
    broken.append(StoreChange(WEB, 2, b"x", None))  # a duplicate revision
    with pytest.raises(FileError):
        file.append(broken)
    file.append([StoreChange(key, 2 + number, b"y", None) for number, key in enumerate(keys)])
    file.close()
    assert contents_of(tmp_path)[1] == {key: (2 + number, b"y") for number, key in enumerate(keys)}


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """Limit the file size of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_after_failed_writes_the_store_serves_reads_and_writes_again(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        await fill(store, WEB)
        with files_of_at_most((tmp_path / LOG).stat().st_size + 20_000):
            for _ in range(3):
                with pytest.raises(DiskFailing, match="while writing revision 3"):
                    await store.put(DNS, BIG)
            assert set(await contents(store)) == {WEB}
        assert await store.put(DNS, BIG) == 3

    play_real(tmp_path, scenario)
    assert contents_of(tmp_path)[1] == {WEB: (2, b"web"), DNS: (3, BIG)}


def test_a_store_that_was_full_contains_acknowledged_writes_after_a_restart(
    connections: list[sqlite3.Connection], tmp_path: Path
) -> None:
    acknowledged: list[int] = []

    async def scenario(store: SqliteStore) -> None:
        connections[0].execute("PRAGMA max_page_count = 200")
        with pytest.raises(DiskFull):
            while True:
                acknowledged.append(await store.put(f"{PODS}default/p{len(acknowledged)}", BIG))

    play(tmp_path, scenario)
    assert acknowledged
    revision, records = contents_of(tmp_path)
    assert (revision, len(records)) == (acknowledged[-1], len(acknowledged))


def test_compaction_shrinks_the_file(tmp_path: Path) -> None:
    limits = SqliteLimits(free_bytes_kept=100_000, freed_bytes_max=500_000)

    async def scenario(store: SqliteStore) -> None:
        for number in range(40):
            await store.put(f"{PODS}default/p{number % 4}", BIG)
        await store.compact(1)  # no history to remove, but moves the log into the file
        assert (tmp_path / DATABASE).stat().st_size > 4_000_000
        await store.compact(await store.revision())
        assert (tmp_path / DATABASE).stat().st_size < 700_000
        assert store.statistics()["file_bytes"] == (tmp_path / DATABASE).stat().st_size
        assert len(await contents(store)) == 4

    play(tmp_path, scenario, limits)
    assert len(contents_of(tmp_path)[1]) == 4


def test_log_and_file_size_are_limited_while_one_record_is_overwritten(tmp_path: Path) -> None:
    limits = SqliteLimits(replaced_bytes_max=1_000_000, log_bytes_max=500_000, obsolete_rows_max=5)

    async def scenario(store: SqliteStore) -> None:
        for _ in range(200):
            await store.put(WEB, BIG)
        assert store.statistics()["maintenances"] > 10
        assert (tmp_path / LOG).stat().st_size < 2_000_000
        assert (tmp_path / DATABASE).stat().st_size < 4_000_000

    play(tmp_path, scenario, limits)
    assert contents_of(tmp_path) == (201, {WEB: (201, BIG)})


def test_a_second_store_on_a_directory_is_rejected_until_the_first_is_closed(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        await fill(store, WEB)
        with pytest.raises(DirectoryInUse, match="is in use by process"):
            await SqliteStore.open(tmp_path, SystemClock())
        assert await store.put(WEB, b"unharmed") == 3

    play_real(tmp_path, scenario)
    assert contents_of(tmp_path)[0] == 3


def test_writes_of_another_program_to_an_open_file_are_rejected_by_sqlite(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        await fill(store, WEB)
        with (
            closing(sqlite3.connect(tmp_path / DATABASE, timeout=0)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("DELETE FROM changes")

    play(tmp_path, scenario)


def test_opening_a_file_used_by_another_program_is_an_error_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    play(tmp_path, _write_one)
    monkeypatch.setattr(sqlite_file, "_OPEN_TIMEOUT_S", 0.0)
    other = sqlite3.connect(tmp_path / DATABASE, isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT * FROM changes").fetchall()
    with pytest.raises(DirectoryInUse, match="Another program has the file open"):
        contents_of(tmp_path)
    other.close()
    assert contents_of(tmp_path)[0] == 2


async def _write_one(store: SqliteStore) -> None:
    await fill(store, WEB)


def test_incomplete_files_of_a_crash_during_creation_are_replaced(tmp_path: Path) -> None:
    for name in (f"{DATABASE}.new", f"{DATABASE}.new-wal", f"{DATABASE}.new-journal"):
        (tmp_path / name).write_bytes(b"half made")
    play(tmp_path, _write_one)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["acknowledged", "lock", "reserve", DATABASE]


# --- the reserve -----------------------------------------------------------------------------------------------------


class FullDisk:
    """A disk without free space except that of the reserve of a store. Only writes of SQLite fail."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        self._reserve = directory / sqlite_file.RESERVE_NAME
        insert, hold = StoreFile._insert, sqlite_file.DiskReserve.hold

        def load_if_possible(path: Path, acknowledged: int) -> FileContents:
            if self._is_short():
                raise DiskFailing("no space for the shared memory")
            return load(path, acknowledged)

        def insert_if_possible(file: StoreFile, changes: Sequence[StoreChange]) -> None:
            if self._is_short():
                raise full_error()
            insert(file, changes)

        def hold_if_possible(reserve: sqlite_file.DiskReserve) -> bool:
            return False if self.is_full and not reserve.is_held else hold(reserve)

        monkeypatch.setattr(sqlite_file, "load", load_if_possible)
        monkeypatch.setattr(StoreFile, "_insert", insert_if_possible)
        monkeypatch.setattr(sqlite_file.DiskReserve, "hold", hold_if_possible)

    def _is_short(self) -> bool:
        return self.is_full and self._reserve.exists()


def full_error() -> sqlite3.Error:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA max_page_count = 1")
        try:
            connection.execute("CREATE TABLE large (x)")
        except sqlite3.Error as error:
            return error
    raise AssertionError("a database without free pages accepted a table")


async def refusal_of(write: Awaitable[int]) -> StoreError | None:
    try:
        await write
    except StoreError as error:
        return error
    return None


async def _fill_both(store: SqliteStore) -> None:
    await fill(store, WEB, DNS)


def test_on_a_full_disk_only_deletions_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk(tmp_path, monkeypatch)

    async def scenario(store: SqliteStore) -> None:
        await fill(store, WEB, DNS)
        disk.is_full = True
        async with TaskGroup("one commit") as group:
            refused = group.start(refusal_of(store.put(API, b"x")), name="put")
            deleted = group.start(store.delete(WEB), name="delete")
        assert (type(refused.result()), deleted.result()) == (DiskFull, 4)
        for _ in range(2):
            with pytest.raises(DiskFull, match="bytes are free"):
                await store.put(API, b"x")
        assert set(await contents(store)) == {DNS}
        disk.is_full = False
        await store.put(API, b"there is space")
        assert (tmp_path / sqlite_file.RESERVE_NAME).exists()

    play(tmp_path, scenario)
    assert set(contents_of(tmp_path)[1]) == {DNS, API}


def test_a_store_on_a_full_disk_serves_reads_and_deletions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk(tmp_path, monkeypatch)
    play(tmp_path, _fill_both)
    disk.is_full = True

    async def scenario(store: SqliteStore) -> None:
        assert set(await contents(store)) == {WEB, DNS}
        await store.delete(WEB)
        with pytest.raises(DiskFull, match="Reading and deleting go on"):
            await store.put(WEB, b"x")

    play(tmp_path, scenario)
    assert "only reading and deleting is possible" in caplog.text
    assert set(contents_of(tmp_path)[1]) == {DNS}


def test_a_store_without_a_reserve_cannot_be_opened_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(tmp_path, _fill_both)
    (tmp_path / sqlite_file.RESERVE_NAME).unlink()

    def refuse(path: Path, acknowledged: int) -> FileContents:
        raise DiskFailing("no space for the shared memory")

    monkeypatch.setattr(sqlite_file, "load", refuse)
    for _ in range(2):  # the failed attempt unlocks the directory
        with pytest.raises(DiskFailing, match="no space"):
            sqlite_file.open_file(tmp_path, SqliteLimits())


def test_the_reserve_occupies_disk_space(tmp_path: Path) -> None:
    file, _ = sqlite_file.open_file(tmp_path, SqliteLimits())
    found = os.stat(tmp_path / sqlite_file.RESERVE_NAME)
    assert (found.st_size, found.st_blocks * 512 >= found.st_size) == (SqliteLimits().reserve_bytes, True)
    assert file.reserve.release()
    assert not file.reserve.release()
    assert not (tmp_path / sqlite_file.RESERVE_NAME).exists()
    file.close()
    assert (tmp_path / sqlite_file.RESERVE_NAME).exists()


def test_the_log_is_short_when_disk_space_is_low(tmp_path: Path) -> None:
    limits = SqliteLimits(free_bytes_low=1 << 62, reserve_bytes=400_000)

    async def scenario(store: SqliteStore) -> None:
        for number in range(20):
            await store.put(f"{PODS}default/p{number}", BIG)
            assert (tmp_path / LOG).stat().st_size < 400_000 + 2 * len(BIG)
        assert store.statistics()["maintenances"] > 5

    play(tmp_path, scenario, limits)
    assert len(contents_of(tmp_path)[1]) == 20


def test_opening_a_used_directory_names_the_process_that_uses_it(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path / "data")
    with pytest.raises(DirectoryInUse, match=f"data is in use by process {os.getpid()}: stop that process"):
        DataDirectory(tmp_path / "data")
    first.close()
    DataDirectory(tmp_path / "data").close()


def test_a_lock_of_a_dead_process_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("4242424242424242424\n")
    DataDirectory(tmp_path).close()
    assert (tmp_path / "lock").read_text().split() == [str(os.getpid())]


def test_only_the_owner_may_read_the_directory(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data")
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0
    assert all(each.stat().st_mode & 0o077 == 0 for each in (tmp_path / "data").iterdir())
    directory.close()


def test_a_data_directory_that_is_a_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DirectoryUnusable, match=r"cannot be the data directory: .*choose another one"):
        DataDirectory(tmp_path / "file")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        pytest.param(b"", 0, id="an empty file"),
        pytest.param(b"\0" * 30, 0, id="zeros after a power failure"),
        pytest.param(b"00000000000000001234", 0, id="truncated"),
        pytest.param(b"00000000000000009234 60f5bf34\n", 0, id="a changed digit"),
        pytest.param(None, 1234, id="unchanged"),
    ],
)
def test_the_acknowledged_revision_is_read_only_with_a_valid_checksum(
    text: bytes | None, known: int, tmp_path: Path
) -> None:
    directory = DataDirectory(tmp_path)
    directory.acknowledge(99)
    directory.acknowledge(1234)
    if text is not None:
        (tmp_path / "acknowledged").write_bytes(text)
    assert directory.acknowledged() == known
    directory.close()
