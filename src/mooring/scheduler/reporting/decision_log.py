"""The decision log: decision records in a SQLite file, for `mooring why`.

Input: the records of the running scheduler. Output: a file that any process may read.

1. Records are collected and written once a second, in one transaction, in a thread: the scheduling loop never waits for
   the disk. The records of the last second are written when the scheduler stops in order.
2. The file is pruned by age and by size, oldest records first.
3. A disk that cannot be written does not stop the scheduler: records are dropped, and the log says so once per outage.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mooring.kit.clock import Clock
from mooring.scheduler.reporting.decision_records import DecisionRecord, DecisionRecords

FLUSH_S = 1.0
AGE_S_MAX = 7 * 24 * 3600.0
BYTES_MAX = 1 << 30
PRUNED_SHARE = 0.1
"""The share of the records that is dropped when the file has become too large."""
WAITING_MAX = 100_000
"""Records that wait for the disk. More are dropped."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS decisions (
    id INTEGER PRIMARY KEY, wall_s REAL NOT NULL, pod TEXT NOT NULL, uid TEXT NOT NULL, attempt INTEGER NOT NULL,
    binding TEXT NOT NULL, record BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS decisions_by_pod ON decisions (pod, id);
CREATE INDEX IF NOT EXISTS decisions_by_uid ON decisions (uid, attempt);
CREATE INDEX IF NOT EXISTS decisions_by_time ON decisions (wall_s);
"""

logger = logging.getLogger(__name__)


class DecisionLogError(Exception):
    """The file cannot be opened or read."""


class _Outcome(NamedTuple):
    uid: str
    attempt: int
    binding: str


class DecisionLog:
    """Writes records to a file while `run` runs."""

    def __init__(self, path: Path, clock: Clock, *, age_s_max: float = AGE_S_MAX, bytes_max: int = BYTES_MAX) -> None:
        self.path = path
        self._clock = clock
        self._age_s_max = age_s_max
        self._bytes_max = bytes_max
        self._records: list[DecisionRecord] = []
        self._outcomes: list[_Outcome] = []
        self._is_failing = False
        self._database = _open(path)

    def attach(self, records: DecisionRecords) -> None:
        """Writes every record from now on."""
        records.listen(self._add, self._bound)

    async def run(self) -> None:
        """Writes until it is cancelled, and then once more."""
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="decision-log") as writer:
            loop = asyncio.get_running_loop()
            try:
                while True:
                    await self._clock.wait(FLUSH_S)
                    await loop.run_in_executor(writer, self.flush)
            finally:
                writer.submit(self.flush).result()  # after the one that may still be running
                self._database.close()

    def flush(self) -> None:
        """Writes what has come in since the last call."""
        records, self._records = self._records, []
        outcomes, self._outcomes = self._outcomes, []
        if not records and not outcomes:
            return
        try:
            with self._database:
                self._database.executemany(
                    "INSERT INTO decisions (wall_s, pod, uid, attempt, binding, record) VALUES (?, ?, ?, ?, ?, ?)",
                    [
                        (
                            record.wall_s,
                            record.pod,
                            record.uid,
                            record.attempt,
                            record.binding,
                            msgspec.msgpack.encode(record),
                        )
                        for record in records
                    ],
                )
                self._database.executemany(
                    "UPDATE decisions SET binding = ? WHERE uid = ? AND attempt = ?",
                    [(outcome.binding, outcome.uid, outcome.attempt) for outcome in outcomes],
                )
            self._prune()
            self._is_failing = False
        except sqlite3.Error as error:
            if not self._is_failing:
                logger.error("decision log: %d records were not written: %s", len(records), error)
            self._is_failing = True

    def _prune(self) -> None:
        database, oldest_s = self._database, self._clock.wall_s() - self._age_s_max
        with database:
            database.execute("DELETE FROM decisions WHERE wall_s < ?", (oldest_s,))
            pages, free, size = (_pragma(database, name) for name in ("page_count", "freelist_count", "page_size"))
            if (pages - free) * size > self._bytes_max:
                first, last = database.execute("SELECT min(id), max(id) FROM decisions").fetchone()
                if first is not None:  # the file may have other tables, and no record
                    most = first + int((last - first) * PRUNED_SHARE)
                    database.execute("DELETE FROM decisions WHERE id <= ?", (most,))

    def _add(self, record: DecisionRecord) -> None:
        if len(self._records) < WAITING_MAX:
            self._records.append(record)

    def _bound(self, record: DecisionRecord) -> None:
        if len(self._outcomes) < WAITING_MAX:
            self._outcomes.append(_Outcome(record.uid, record.attempt, record.binding))


def read_log(path: Path, pod: str, limit: int) -> Sequence[DecisionRecord]:
    """The latest records about a pod (NAMESPACE/NAME), newest first. Raises `DecisionLogError`."""
    rows = _selected(path, "SELECT record, binding FROM decisions WHERE pod = ? ORDER BY id DESC LIMIT ?", pod, limit)
    return _decoded(path, rows)


def read_log_around(path: Path, wall_s: float, limit: int) -> Sequence[DecisionRecord]:
    """Records until a time and after it, at most `limit` of each, newest first. Raises `DecisionLogError`."""
    columns = "SELECT record, binding FROM decisions"
    after = _selected(path, f"{columns} WHERE wall_s > ? ORDER BY wall_s LIMIT ?", wall_s, limit)
    until = _selected(path, f"{columns} WHERE wall_s <= ? ORDER BY wall_s DESC LIMIT ?", wall_s, limit)
    return _decoded(path, [*reversed(after), *until])


def oldest_in_log(path: Path) -> float | None:
    """The time of the oldest record, in seconds since 1970. Raises `DecisionLogError`."""
    oldest: float | None = _selected(path, "SELECT min(wall_s) FROM decisions")[0][0]
    return oldest


def _selected(path: Path, query: str, *parameters: object) -> list[Any]:
    if not path.is_file():
        raise DecisionLogError(f"there is no file {path}")
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return database.execute(query, parameters).fetchall()
        finally:
            database.close()
    except sqlite3.Error as error:
        raise DecisionLogError(f"{path} is no decision log: {error}") from error


def _decoded(path: Path, rows: Sequence[tuple[bytes, str]]) -> list[DecisionRecord]:
    found: list[DecisionRecord] = []
    for raw, binding in rows:
        try:
            record = msgspec.msgpack.decode(raw, type=DecisionRecord)
        except (msgspec.MsgspecError, TypeError, UnicodeDecodeError) as error:
            raise DecisionLogError(f"{path} has a record that cannot be read: {error}") from error
        record.binding = binding
        found.append(record)
    return found


def _open(path: Path) -> sqlite3.Connection:
    try:
        database = sqlite3.connect(path, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.executescript(SCHEMA)
    except sqlite3.Error as error:
        raise DecisionLogError(f"cannot write the decision log {path}: {error}") from error
    return database


def _pragma(database: sqlite3.Connection, name: str) -> int:
    value: int = database.execute(f"PRAGMA {name}").fetchone()[0]
    return value
