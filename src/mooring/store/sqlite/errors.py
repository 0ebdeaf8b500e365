"""Errors of a store on disk, from those of SQLite and the operating system. Each text has the cause and a remedy.

   StoreError
   └── FileError
       ├── DirectoryUnusable   the directory cannot be created, read or written, or has a foreign file
       ├── DirectoryInUse      another process has the directory
       ├── FileDamaged         the file is not what was written to it
       ├── DiskFull            no space; writes succeed again as soon as there is some
       └── DiskFailing         the disk or the operating system failed

`DiskFull` and `DiskFailing` are also a `WriteRefused`.

1. A retry can help after `DiskFull`, `DiskFailing` and `StoreBusy` only.
2. Each error can be made again from its text (`again`): a failed commit raises it in many writers, and a shared
   exception would collect their tracebacks.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Self

from mooring.store.interface import StoreError, WriteRefused

_PRIMARY_CODE = 0xFF  # the other bits are the extended code


class FileError(StoreError):
    """The file or the directory of a store cannot be used."""

    def again(self) -> Self:
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


def in_words(error: sqlite3.Error, path: Path, doing: str) -> FileError:
    """The `FileError` for an error of SQLite."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
    name: str = getattr(error, "sqlite_errorname", type(error).__name__)
    said = f"{error} ({name}) while {doing}"
    match code & _PRIMARY_CODE:
        case sqlite3.SQLITE_FULL:
            return DiskFull(f"{path}: {said}. Free some space: reading goes on, and so does writing when there is room")
        case sqlite3.SQLITE_IOERR:
            return DiskFailing(f"{path}: {said}. Look at the disk and its quota; it can be tried again")
        # The statements are fixed: if one fails, the tables are not ours.
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_ERROR:
            return damaged(path, said)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return DirectoryInUse(f"{path}: {said}. Another program has the file open: close it, then try again")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return DirectoryUnusable(f"{path}: {said}. Make {path.parent} readable and writable, or choose another one")
        case _:
            return FileError(f"{path}: {said}")
