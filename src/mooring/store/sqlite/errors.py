"""Errors and limits of a store on disk. Errors come from those of SQLite and the operating system.

   StoreError
   └── FileError
       ├── DirectoryUnusable   the directory cannot be created, read or written, or has a foreign file
       ├── DirectoryInUse      another process has the directory
       ├── FileDamaged         the file is not what was written to it
       ├── DiskFull            no space; writes succeed again as soon as there is some
       └── DiskFailing         the disk or the operating system failed

`DiskFull` and `DiskFailing` are also a `WriteRefused`.

1. The text of an error has the cause and a remedy.
2. A retry can help after `DiskFull`, `DiskFailing` and `StoreBusy` only.
3. Each error can be copied (`copied`): a failed commit raises it in many writers, and a shared
   exception would collect their tracebacks.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mooring.store.interface import StoreError, WriteRefused
from mooring.store.memory import HISTORY_CHANGES_MAX, HISTORY_REPLACED_BYTES_MAX, WATCH_BUFFER_MAX

_PRIMARY_CODE = 0xFF  # the other bits are the extended code


class FileError(StoreError):
    """The file or the directory of a store cannot be used."""

    def copied(self) -> Self:
        return type(self)(*self.args)


class DirectoryUnusable(FileError):
    """The data directory cannot be used."""


class DirectoryInUse(FileError):
    """Two processes cannot share a data directory."""


class FileDamaged(FileError):
    """The file is not what was written to it."""


class DiskFull(FileError, WriteRefused):
    """There is no space for the write."""


class DiskFailing(FileError, WriteRefused):
    """The disk or the operating system failed."""


def damaged(path: Path, found: str) -> FileDamaged:
    return FileDamaged(
        f"{path} is damaged: {found}. Restore {path.parent} from a backup, or move it away to begin with an empty store"
    )


def error_of_sqlite(error: sqlite3.Error, path: Path, doing: str) -> FileError:
    """The `FileError` for an error of SQLite."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
    name: str = getattr(error, "sqlite_errorname", type(error).__name__)
    message = f"{error} ({name}) while {doing}"
    match code & _PRIMARY_CODE:
        case sqlite3.SQLITE_FULL:
            return DiskFull(f"{path}: {message}. Free some space: reads still work, and writes do when there is space")
        case sqlite3.SQLITE_IOERR:
            return DiskFailing(f"{path}: {message}. Look at the disk and its quota; it can be tried again")
        # The statements are fixed: if one fails, the tables are not ours.
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_ERROR:
            return damaged(path, message)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return DirectoryInUse(f"{path}: {message}. Another program has the file open: close it, then try again")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return DirectoryUnusable(
                f"{path}: {message}. Make {path.parent} readable and writable, or choose another one"
            )
        case _:
            return FileError(f"{path}: {message}")


# --- limits ---------------------------------------------------------------------------------------------------


MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteLimits:
    """Limits of the history, of pending writes, and of single steps."""

    # History: older changes are compacted.
    changes_max: int = HISTORY_CHANGES_MAX
    replaced_bytes_max: int = HISTORY_REPLACED_BYTES_MAX
    history_s_max: float = 600.0
    """kube-apiserver compacts changes that are five to ten minutes old."""

    # Watches: one with more pending changes gets `RevisionGone`.
    buffer_max: int = WATCH_BUFFER_MAX

    # Writes: a longer value is refused (`ValueTooLarge`), and so is a write above the limit (`StoreBusy`). Writes that
    # do not fit into a commit go into the next one.
    value_bytes_max: int = 8 * MIB
    waiting_writes_max: int = 50_000
    commit_writes_max: int = 1_000
    commit_bytes_max: int = 8 * MIB

    # Commits on the event loop. Larger ones, and all for some time after the average was slower, go to the thread.
    loop_writes_max: int = 256
    loop_bytes_max: int = MIB
    loop_s: float = 0.002
    loop_s_per_write: float = 0.000_04
    thread_s: float = 1.0
    thread_s_max: float = 60.0

    # The file: above its limit only deletions are accepted (`DiskFull` for other writes).
    file_bytes_max: int = 8 * 1024 * MIB

    # The reserve: disk space that is given up when the disk is full, so that the store can be opened, and deletions can
    # be written. Without it only deletions are accepted (`DiskFull` for other writes).
    reserve_bytes: int = 2 * MIB
    free_bytes_low: int = 64 * MIB
    """With less free disk space, the log is written into the file after half of the reserve, so that the reserve is
    always enough for that."""

    # Maintenance. A longer log means fewer checkpoints and more to read after a crash. Free space up to the limit is
    # reused, the rest goes back to the file system.
    log_bytes_max: int = 16 * MIB
    obsolete_rows_max: int = 2_000
    maintained_rows_max: int = 5_000
    free_bytes_kept: int = 16 * MIB
    freed_bytes_max: int = 32 * MIB
