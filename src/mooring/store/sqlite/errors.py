"""What can be wrong with a store on disk, in words.

Comes in   what SQLite and the operating system say
Goes out   a `FileError`, whose text says what was found and what to do about it

   StoreError
   └── FileError
       ├── DirectoryUnusable   it cannot be made, read or written, or holds somebody else's file
       ├── DirectoryInUse      another process has it
       ├── FileDamaged         something that was written is not there or not as it was written
       ├── DiskFull            no room: writes go on by themselves as soon as there is some
       └── DiskFailing         the disk or the operating system refused

The last two are each a `WriteRefused` as well, beside the refusals that every store has (`promise`).

 1. Trying again can help after `DiskFull`, `DiskFailing` and the promise's `StoreBusy`, and after nothing else.
 2. Each error can be made again from its text (`again`): a failed commit tells many writers, and an exception that two
    of them raise would collect both of their traces.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Self

from mooring.store.interface import StoreError, WriteRefused

_PRIMARY_CODE = 0xFF  # the rest of a code says which of the sorts it was


class FileError(StoreError):
    """The store's file, or its directory, does not do what it should."""

    def again(self) -> Self:
        return type(self)(*self.args)


class DirectoryUnusable(FileError):
    """The data directory cannot be used at all."""


class DirectoryInUse(FileError):
    """Two processes cannot share a data directory."""


class FileDamaged(FileError):
    """The file is not what was written to it."""


class DiskFull(FileError, WriteRefused):
    """There is no room for the write."""


class DiskFailing(FileError, WriteRefused):
    """The write failed below us."""


def damaged(path: Path, found: str) -> FileDamaged:
    return FileDamaged(
        f"{path} is damaged: {found}. Restore {path.parent} from a backup, or move it away to begin with an empty store"
    )


def in_words(error: sqlite3.Error, path: Path, doing: str) -> FileError:
    """What SQLite said, as an error of ours."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
    name: str = getattr(error, "sqlite_errorname", type(error).__name__)
    said = f"{error} ({name}) while {doing}"
    match code & _PRIMARY_CODE:
        case sqlite3.SQLITE_FULL:
            return DiskFull(f"{path}: {said}. Free some space: reading goes on, and so does writing when there is room")
        case sqlite3.SQLITE_IOERR:
            return DiskFailing(f"{path}: {said}. Look at the disk and its quota; it can be tried again")
        # The statements are always the same: if one makes no sense, the tables are not the ones that we made.
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_ERROR:
            return damaged(path, said)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return DirectoryInUse(f"{path}: {said}. Another program has the file open: close it, then try again")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return DirectoryUnusable(f"{path}: {said}. Make {path.parent} readable and writable, or choose another one")
        case _:
            return FileError(f"{path}: {said}")
