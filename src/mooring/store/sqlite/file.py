"""The data directory of a store and its SQLite file: durable commits, maintenance.

Inputs: batches of changes; obsolete rows. Outputs: the contents at the start; a batch is durable when `append` returns.

   lock           the process that has the directory; the kernel releases the lock with the process
   acknowledged   the last revision that was acknowledged as durable
   store.db       the store, with SQLite's log (store.db-wal)
   reserve        disk space for when the disk is full

1. All calls block. One thread at a time calls: the store's writer thread, or the event loop.
2. When `append` returns, the batch is on the disk (WAL, synchronous=FULL) and survives a crash. When it raises, nothing
   of the batch is in the store.
3. There is one connection. It locks the file, and only it checkpoints.
4. A new file is created under another name and renamed when it is complete: `store.db` is never incomplete.
5. Rows are dropped together with an update of the count of the remaining rows (see `load`).
6. `acknowledged` is written after a commit is durable, so it is never ahead of the store. It is not synced each time:
   after a power cut it may be old or unreadable, and then it proves less.
7. Only the owner can read the directory: the store holds secrets.
8. SQLite needs space to open a file (shared memory), to write a deletion (log), and to write the log into the file. The
   reserve is deleted when there is none, and allocated again by the first other write after space was freed.

Why `acknowledged`: SQLite takes a log with an early end for one that was being written, and a missing log for an empty
one. Both are right after a crash and wrong after damage. This number shows which it was.

If a commit fails while it is synced, its pages stay in the log until the next commit overwrites them. If the process is
killed before, they may appear as a commit: of writes that were refused for an unknown reason, with revisions that were
not used otherwise. That is allowed.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

from mooring.store.interface import EMPTY_REVISION, StoreChange
from mooring.store.sqlite.errors import (
    DirectoryInUse,
    DirectoryUnusable,
    DiskFailing,
    DiskFull,
    FileError,
    SqliteLimits,
    damaged,
    error_of_sqlite,
)
from mooring.store.sqlite.load import APPLICATION_ID, FORMAT_VERSION, FileContents, FileState, checksum_of, load

DATABASE_NAME = "store.db"
RESERVE_NAME = "reserve"
_LOCK_NAME = "lock"
_ACKNOWLEDGED_NAME = "acknowledged"
_ACKNOWLEDGED_BYTES = 30  # 20 digits, a space, 8 hex digits of a checksum, a newline


class DiskReserve:
    """A file that occupies disk space until the space is needed."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._path = path
        self.is_held = False

    def hold(self) -> bool:
        """Allocate the space, unless that was done. Returns whether there was enough."""
        if self.is_held:
            return True
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(fd, 0, self.size_bytes)
            finally:
                os.close(fd)
        except OSError:
            self._remove()
            return False
        self.is_held = True
        return True

    def release(self) -> bool:
        """Free the space. Returns whether there was any."""
        return self._remove()

    def _remove(self) -> bool:
        self.is_held = False
        try:
            self._path.unlink()
        except OSError:
            return False
        return True


class DataDirectory:
    """A locked directory. Created and locked by the constructor."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.database = self.path / DATABASE_NAME
        self.database_log = self.path / f"{DATABASE_NAME}-wal"
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock_fd = os.open(self.path / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(self.path, error) from error
        try:
            self._lock()
            self._acknowledged_fd = os.open(
                self.path / _ACKNOWLEDGED_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            os.close(self._lock_fd)
            raise _unusable(self.path, error) from error
        except DirectoryInUse:
            os.close(self._lock_fd)
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._lock_fd, 20, 0).decode(errors="replace").strip() or "unknown"
            raise DirectoryInUse(
                f"{self.path} is in use by process {owner}: stop that process, or choose another data directory"
            ) from None
        with suppress(OSError):  # a full disk: the lock holds, but without its owner
            os.pwrite(self._lock_fd, b"%-19d\n" % os.getpid(), 0)

    def acknowledged(self) -> int:
        """The last acknowledged revision; 0: unknown."""
        text = os.pread(self._acknowledged_fd, _ACKNOWLEDGED_BYTES, 0)
        digits = text[:20]
        return int(digits) if text == _acknowledgement(digits) and digits.isdigit() else 0

    def acknowledge(self, revision: int) -> None:
        os.pwrite(self._acknowledged_fd, _acknowledgement(b"%020d" % revision), 0)

    def sync(self) -> None:
        """Sync the directory itself."""
        directory_fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory_fd)
        finally:
            os.close(directory_fd)

    def close(self) -> None:
        os.close(self._acknowledged_fd)
        os.close(self._lock_fd)


def _acknowledgement(digits: bytes) -> bytes:
    return b"%s %08x\n" % (digits, zlib.crc32(digits))


def _unusable(path: Path, error: OSError) -> DirectoryUnusable:
    return DirectoryUnusable(
        f"{path} cannot be the data directory: {error.strerror} ({error.filename or path}). "
        "Make it a directory that this user may write, or choose another one"
    )


PAGE_BYTES = 4096  # with pods of 4.5 KB: half the file size and commits a quarter faster than with 8192
_ROW_OVERHEAD_BYTES = 64
_PARAMETERS_MAX = 500
_ROWS_AT_ONCE_MAX = 128  # four parameters each
_STATEMENTS_KEPT = 2 * _ROWS_AT_ONCE_MAX  # one for each number of rows, and others
_OPEN_TIMEOUT_S = 1.0  # a backup may be running

_TABLES = (
    "CREATE TABLE changes (revision INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, key TEXT NOT NULL, value BLOB)",
    "CREATE TABLE state (oldest INTEGER NOT NULL, rows INTEGER NOT NULL, checksums INTEGER NOT NULL, "
    "checksum INTEGER NOT NULL)",
)

logger = logging.getLogger(__name__)


class StoreFile:
    """The file of a store, open for writing. Made by `open_file`."""

    def __init__(
        self, directory: DataDirectory, connection: sqlite3.Connection, state: FileState, limits: SqliteLimits
    ) -> None:
        self.log_bytes = 0
        self.used_bytes = 0
        self.file_bytes = 0
        self.free_bytes = 0
        """Free space on the disk after the last commit."""
        self.reserve = DiskReserve(directory.path / RESERVE_NAME, limits.reserve_bytes)
        self._directory = directory
        self._path = directory.database
        self._connection = connection
        self._state = state
        self._limits = limits
        self._identity = _identity(self._path)
        self._measure()
        self._measure_disk()
        with suppress(OSError):
            self.log_bytes = directory.database_log.stat().st_size  # left by a crash

    def append(self, changes: Sequence[StoreChange]) -> None:
        """Make a batch durable."""
        if _identity(self._path) != self._identity:
            raise damaged(self._path, "it was removed or replaced while this process used it")
        try:
            self._insert(changes)
        except sqlite3.Error as error:
            self._roll_back()
            raise error_of_sqlite(error, self._path, f"writing revision {changes[-1].revision}") from error
        self.note_acknowledged(changes[-1].revision)
        added_bytes = sum(len(change.key) + len(change.value or b"") + _ROW_OVERHEAD_BYTES for change in changes)
        self.log_bytes += added_bytes + PAGE_BYTES
        self.used_bytes += added_bytes
        self._measure_disk()

    def _insert(self, changes: Sequence[StoreChange]) -> None:
        """Many rows with one statement, not one after the other: between two statements this thread waits for the
        interpreter, which the loop's thread has, and a commit would take as many turns as it has rows. For the same
        reason few rows are a statement that is a commit of its own."""
        execute = self._connection.execute
        if len(changes) <= _ROWS_AT_ONCE_MAX:
            execute(_insertion(len(changes)), _columns_of(changes))
            return
        execute("BEGIN IMMEDIATE")
        for start in range(0, len(changes), _ROWS_AT_ONCE_MAX):
            some = changes[start : start + _ROWS_AT_ONCE_MAX]
            execute(_insertion(len(some)), _columns_of(some))
        execute("COMMIT")

    def note_acknowledged(self, revision: int) -> None:
        try:
            self._directory.acknowledge(revision)
        except OSError as error:
            # The batch is durable; only the number is old.
            logger.warning("%s: cannot note that revision %d is durable: %s", self._directory.path, revision, error)

    # -------------------------------------------------------------------------------------------- maintenance

    def maintain(self, oldest: int, obsolete: Sequence[int]) -> bool:
        """Drop rows, free space, checkpoint. Returns whether there is more space to free."""
        try:
            if oldest != self._state.oldest or obsolete:
                self._drop(oldest, obsolete)
            is_more = self.reserve.is_held and self._give_back()
            self._checkpoint()
            self._measure()
            self._measure_disk()
        except sqlite3.Error as error:
            self._roll_back()
            raise error_of_sqlite(error, self._path, "compacting it") from error
        return is_more

    def _checkpoint(self) -> None:
        """Write the log into the file, unless that might take space that deletions need."""
        self._measure_disk()
        if not self.reserve.is_held and self.free_bytes < self.log_bytes:
            return
        is_low = self.free_bytes < self._limits.free_bytes_low
        self._connection.execute(f"PRAGMA wal_checkpoint({'TRUNCATE' if is_low else 'PASSIVE'})").fetchall()
        self.log_bytes = 0

    def _drop(self, oldest: int, obsolete: Sequence[int]) -> None:
        assert oldest >= self._state.oldest, f"the oldest revision goes from {self._state.oldest} back to {oldest}"
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        entered = "SELECT count(*), coalesce(sum(checksum), 0) FROM changes WHERE revision > ? AND revision <= ?"
        count, checksums = execute(entered, (self._state.oldest, oldest)).fetchone()
        rows, checksums_left = self._state.rows + count, self._state.checksums + checksums
        for start in range(0, len(obsolete), _PARAMETERS_MAX):
            some = obsolete[start : start + _PARAMETERS_MAX]
            which = f"revision IN ({','.join('?' * len(some))})"
            count, checksums = execute(
                f"SELECT count(*), coalesce(sum(checksum), 0) FROM changes WHERE {which}", some
            ).fetchone()
            execute(f"DELETE FROM changes WHERE {which}", some)
            rows, checksums_left = rows - count, checksums_left - checksums
        state = FileState(oldest, rows, checksums_left)
        execute("UPDATE state SET oldest = ?, rows = ?, checksums = ?, checksum = ?", _columns(state))
        execute("COMMIT")
        self._state = state

    def _give_back(self) -> bool:
        free_bytes = self._pragma("freelist_count") * PAGE_BYTES - self._limits.free_bytes_kept
        if free_bytes > 0:
            pages = min(free_bytes, self._limits.freed_bytes_max) // PAGE_BYTES
            # Each step of this statement moves one page and returns no row: `execute` would do one step only.
            self._connection.executescript(f"PRAGMA incremental_vacuum({pages})")
        return free_bytes > self._limits.freed_bytes_max

    def _measure(self) -> None:
        pages = self._pragma("page_count")
        self.file_bytes = pages * PAGE_BYTES
        self.used_bytes = (pages - self._pragma("freelist_count")) * PAGE_BYTES

    def _measure_disk(self) -> None:
        with suppress(OSError):
            disk = os.statvfs(self._directory.path)
            self.free_bytes = disk.f_bavail * disk.f_frsize

    def _pragma(self, name: str) -> int:
        number: int = self._connection.execute(f"PRAGMA {name}").fetchone()[0]
        return number

    def _roll_back(self) -> None:
        # SQLite has often rolled back already. If it cannot, the next BEGIN raises.
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        try:
            with suppress(sqlite3.Error):  # the data is safe in the log
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._connection.close()
            self.reserve.hold()  # for the next start
        finally:
            self._directory.close()


def open_file(path: Path, limits: SqliteLimits) -> tuple[StoreFile, FileContents]:
    """Lock the directory, load and check its contents (or create an empty store), and open it for writing."""
    directory = DataDirectory(path)
    try:
        try:
            file, contents = _opened(directory, limits)
            file.reserve.hold()
        except (DiskFull, DiskFailing) as error:
            if not DiskReserve(directory.path / RESERVE_NAME, limits.reserve_bytes).release():
                raise
            # Not allocated again here: other files that the process writes at its start need space, too.
            logger.warning("%s. Its reserve of %d bytes is given up", error, limits.reserve_bytes)
            file, contents = _opened(directory, limits)
    except FileError:
        directory.close()
        raise
    if not file.reserve.is_held:
        logger.warning("%s: the disk is full: only reading and deleting is possible", path)
    file.note_acknowledged(contents.revision)
    return file, contents


def _opened(directory: DataDirectory, limits: SqliteLimits) -> tuple[StoreFile, FileContents]:
    try:
        acknowledged = directory.acknowledged()
        if not directory.database.exists():
            _create(directory, acknowledged)
        contents = load(directory.database, acknowledged)
        return StoreFile(directory, _connect_exclusively(directory.database), contents.state, limits), contents
    except OSError as error:
        raise DirectoryUnusable(
            f"{directory.path}: {error}. Make it readable and writable, or choose another one"
        ) from error
    except sqlite3.Error as error:
        raise error_of_sqlite(error, directory.database, "opening it") from error


def _create(directory: DataDirectory, acknowledged: int) -> None:
    if acknowledged > EMPTY_REVISION:
        raise damaged(directory.database, f"it is missing, but revision {acknowledged} was acknowledged")
    if directory.database_log.exists():
        raise damaged(directory.database, f"it is missing, but its log {directory.database_log.name} is there")
    made = directory.path / f"{directory.database.name}.new"
    for left_over in directory.path.glob(f"{made.name}*"):
        left_over.unlink()
    os.close(os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(sqlite3.connect(made, isolation_level=None)) as connection:
            _lay_out(connection)
    except sqlite3.Error as error:
        raise error_of_sqlite(error, made, "making it") from error
    _force_to_disk(made)
    made.rename(directory.database)
    directory.sync()


def _lay_out(connection: sqlite3.Connection) -> None:
    settings = (
        f"page_size = {PAGE_BYTES}",
        "auto_vacuum = INCREMENTAL",
        "journal_mode = WAL",
        "synchronous = OFF",  # synced once, when it is complete
        f"application_id = {APPLICATION_ID}",
        f"user_version = {FORMAT_VERSION}",
    )
    for setting in settings:
        connection.execute(f"PRAGMA {setting}").fetchall()
    for table in _TABLES:
        connection.execute(table)
    connection.execute("INSERT INTO state VALUES (?, ?, ?, ?)", _columns(FileState()))


def _connect_exclusively(path: Path) -> sqlite3.Connection:
    # One thread at a time calls, but not always the one that opened the file.
    connection = sqlite3.connect(
        path,
        timeout=_OPEN_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS_KEPT,
    )
    settings = (
        "locking_mode = EXCLUSIVE",
        "synchronous = FULL",
        "wal_autocheckpoint = 0",  # `maintain` checkpoints, when no write is waiting
        "cell_size_check = ON",
    )
    try:
        for setting in settings:
            connection.execute(f"PRAGMA {setting}").fetchall()
        connection.execute("BEGIN IMMEDIATE")  # locks the file until it is closed
        connection.execute("COMMIT")
        # The shared memory file is not needed: no other process can open the store.
        path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    except sqlite3.Error as error:
        connection.close()
        raise error_of_sqlite(error, path, "opening it") from error
    return connection


@cache
def _insertion(count: int) -> str:
    return f"INSERT INTO changes VALUES {','.join(['(?,?,?,?)'] * count)}"


def _columns_of(changes: Sequence[StoreChange]) -> list[int | str | bytes | None]:
    return [column for change in changes for column in _row(change)]


def _row(change: StoreChange) -> tuple[int, int, str, bytes | None]:
    return change.revision, checksum_of(change.revision, change.key, change.value), change.key, change.value


def _columns(state: FileState) -> tuple[int, int, int, int]:
    return state.oldest, state.rows, state.checksums, state.checksum()


def _identity(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _force_to_disk(path: Path) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
