"""The file takes whole batches or nothing, lives through a full disk, and gives back the room it does not need.

A data directory has one owner, who may die without tidying up, and a number that only proves what it can.
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
    """The connections of the stores that are opened, so that a test can take room away from them."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite_file._connect_exclusively

    def connect_and_note(path: Path) -> sqlite3.Connection:
        opened.append(connect(path))
        return opened[-1]

    monkeypatch.setattr(sqlite_file, "_connect_exclusively", connect_and_note)
    return opened


def test_when_the_database_is_full_a_batch_is_refused_in_whole_and_the_next_may_fit(
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
def test_a_batch_of_any_size_is_taken_in_whole_or_not_at_all(rows: int, tmp_path: Path) -> None:
    keys = [f"{PODS}default/p{number}" for number in range(rows)]
    file, _ = sqlite_file.open_file(tmp_path, SqliteLimits())
    broken = [StoreChange(key, 2 + number, b"x", None) for number, key in enumerate(keys)]
    broken.append(StoreChange(WEB, 2, b"x", None))  # a revision that was there before
    with pytest.raises(FileError):
        file.append(broken)
    file.append([StoreChange(key, 2 + number, b"y", None) for number, key in enumerate(keys)])
    file.close()
    assert contents_of(tmp_path)[1] == {key: (2 + number, b"y") for number, key in enumerate(keys)}


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """The kernel refuses to let any file of this process grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_when_the_kernel_refuses_to_write_the_store_goes_on_reading_and_writes_when_it_may(tmp_path: Path) -> None:
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


def test_a_store_that_was_full_when_it_ended_has_what_was_acknowledged(
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


def test_room_is_given_back_when_history_is_compacted(tmp_path: Path) -> None:
    limits = SqliteLimits(free_bytes_kept=100_000, freed_bytes_max=500_000)

    async def scenario(store: SqliteStore) -> None:
        for number in range(40):
            await store.put(f"{PODS}default/p{number % 4}", BIG)
        await store.compact(1)  # nothing to forget, but the log goes into the file
        assert (tmp_path / DATABASE).stat().st_size > 4_000_000
        await store.compact(await store.revision())
        assert (tmp_path / DATABASE).stat().st_size < 700_000
        assert store.statistics()["file_bytes"] == (tmp_path / DATABASE).stat().st_size
        assert len(await contents(store)) == 4

    play(tmp_path, scenario, limits)
    assert len(contents_of(tmp_path)[1]) == 4


def test_the_log_and_the_file_stay_bounded_while_one_record_is_written_over_and_over(tmp_path: Path) -> None:
    limits = SqliteLimits(replaced_bytes_max=1_000_000, log_bytes_max=500_000, obsolete_rows_max=5)

    async def scenario(store: SqliteStore) -> None:
        for _ in range(200):
            await store.put(WEB, BIG)
        assert store.statistics()["tendings"] > 10
        assert (tmp_path / LOG).stat().st_size < 2_000_000
        assert (tmp_path / DATABASE).stat().st_size < 4_000_000

    play(tmp_path, scenario, limits)
    assert contents_of(tmp_path) == (201, {WEB: (201, BIG)})


def test_another_store_on_the_same_directory_is_refused_until_the_first_is_closed(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        await fill(store, WEB)
        with pytest.raises(DirectoryInUse, match="is in use by process"):
            await SqliteStore.open(tmp_path, SystemClock())
        assert await store.put(WEB, b"unharmed") == 3

    play_real(tmp_path, scenario)
    assert contents_of(tmp_path)[0] == 3


def test_another_program_that_writes_to_the_file_is_refused_by_sqlite(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        await fill(store, WEB)
        with (
            closing(sqlite3.connect(tmp_path / DATABASE, timeout=0)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("DELETE FROM changes")

    play(tmp_path, scenario)


def test_a_program_that_has_the_file_open_is_named_as_the_reason(
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


def test_what_a_crash_left_of_making_the_file_is_made_again(tmp_path: Path) -> None:
    for name in (f"{DATABASE}.new", f"{DATABASE}.new-wal", f"{DATABASE}.new-journal"):
        (tmp_path / name).write_bytes(b"half made")
    play(tmp_path, _write_one)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["acknowledged", "lock", "reserve", DATABASE]


# --- the reserve -----------------------------------------------------------------------------------------------------


class FullDisk:
    """A disk without free space but for what the reserve of a store occupies. Only what SQLite does is refused."""

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
    raise AssertionError("a database without pages took a table")


async def refusal_of(write: Awaitable[int]) -> StoreError | None:
    try:
        await write
    except StoreError as error:
        return error
    return None


async def _fill_both(store: SqliteStore) -> None:
    await fill(store, WEB, DNS)


def test_on_a_full_disk_deletions_are_written_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_store_on_a_full_disk_is_opened_for_reading_and_deleting(
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


def test_without_a_reserve_a_full_disk_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(tmp_path, _fill_both)
    (tmp_path / sqlite_file.RESERVE_NAME).unlink()

    def refuse(path: Path, acknowledged: int) -> FileContents:
        raise DiskFailing("no space for the shared memory")

    monkeypatch.setattr(sqlite_file, "load", refuse)
    for _ in range(2):  # the directory is unlocked again
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


def test_when_disk_space_is_low_the_log_stays_short(tmp_path: Path) -> None:
    limits = SqliteLimits(free_bytes_low=1 << 62, reserve_bytes=400_000)

    async def scenario(store: SqliteStore) -> None:
        for number in range(20):
            await store.put(f"{PODS}default/p{number}", BIG)
            assert (tmp_path / LOG).stat().st_size < 400_000 + 2 * len(BIG)
        assert store.statistics()["tendings"] > 5

    play(tmp_path, scenario, limits)
    assert len(contents_of(tmp_path)[1]) == 20


def test_the_second_owner_is_told_who_the_first_is(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path / "data")
    with pytest.raises(DirectoryInUse, match=f"data is in use by process {os.getpid()}: stop that process"):
        DataDirectory(tmp_path / "data")
    first.close()
    DataDirectory(tmp_path / "data").close()


def test_a_lock_that_a_dead_process_left_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("4242424242424242424\n")
    DataDirectory(tmp_path).close()
    assert (tmp_path / "lock").read_text().split() == [str(os.getpid())]


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data")
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0
    assert all(each.stat().st_mode & 0o077 == 0 for each in (tmp_path / "data").iterdir())
    directory.close()


def test_what_is_no_directory_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DirectoryUnusable, match=r"cannot be the data directory: .*choose another one"):
        DataDirectory(tmp_path / "file")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        pytest.param(b"", 0, id="nothing was noted yet"),
        pytest.param(b"\0" * 30, 0, id="a power cut left zeros"),
        pytest.param(b"00000000000000001234", 0, id="a part of it"),
        pytest.param(b"00000000000000009234 60f5bf34\n", 0, id="a digit is another one"),
        pytest.param(None, 1234, id="what was noted"),
    ],
)
def test_what_was_acknowledged_is_known_only_if_it_is_whole(text: bytes | None, known: int, tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    directory.acknowledge(99)
    directory.acknowledge(1234)
    if text is not None:
        (tmp_path / "acknowledged").write_bytes(text)
    assert directory.acknowledged() == known
    directory.close()
