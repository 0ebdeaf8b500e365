"""What SQLite says becomes an error that says what to do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from mooring.store.sqlite.errors import (
    DirectoryInUse,
    DirectoryUnusable,
    DiskFailing,
    DiskFull,
    FileDamaged,
    FileError,
    in_words,
)


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        pytest.param(sqlite3.SQLITE_FULL, DiskFull, "Free some space", id="no room"),
        pytest.param(sqlite3.SQLITE_IOERR_WRITE, DiskFailing, "Look at the disk", id="a write failed"),
        pytest.param(sqlite3.SQLITE_IOERR_FSYNC, DiskFailing, "Look at the disk", id="forcing to the disk failed"),
        pytest.param(sqlite3.SQLITE_CORRUPT, FileDamaged, "Restore", id="a page makes no sense"),
        pytest.param(sqlite3.SQLITE_NOTADB, FileDamaged, "Restore", id="another file"),
        pytest.param(sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, FileDamaged, "Restore", id="a revision is there twice"),
        pytest.param(sqlite3.SQLITE_BUSY, DirectoryInUse, "close it", id="somebody has it open"),
        pytest.param(sqlite3.SQLITE_READONLY, DirectoryUnusable, "writable", id="it cannot be written"),
        pytest.param(sqlite3.SQLITE_CANTOPEN, DirectoryUnusable, "writable", id="it cannot be opened"),
        pytest.param(sqlite3.SQLITE_NOMEM, FileError, "store.db", id="anything else"),
    ],
)
def test_each_complaint_has_its_error_and_its_advice(code: int, kind: type[FileError], advice: str) -> None:
    complaint = sqlite3.OperationalError("what was said")
    complaint.sqlite_errorcode = code
    complaint.sqlite_errorname = "SQLITE_SOMETHING"
    error = in_words(complaint, Path("/data/store.db"), "writing revision 7")
    assert type(error) is kind
    assert "what was said (SQLITE_SOMETHING) while writing revision 7" in str(error)
    assert advice in str(error)


def test_an_error_told_twice_is_two_errors_with_one_text() -> None:
    error = DiskFull("no room")
    assert error.again() is not error
    assert (type(error.again()), str(error.again())) == (DiskFull, "no room")
