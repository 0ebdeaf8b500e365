"""Load the file of a store at the start, and check that it is complete.

Inputs: the path of the file, and the last acknowledged revision. Output: its contents; or `FileDamaged`, which leaves
the file and its log unchanged.

The file is a list of changes by revision. Its layout shows damage that SQLite does not detect:

1. Each row has a checksum, because SQLite has none for its pages.
2. Above the oldest revision nothing was ever dropped: the revisions have no gap.
3. Up to the oldest revision, the remaining rows were counted and their checksums added up when it became the oldest.
4. The last revision is not below the last acknowledged one.
5. Each page is in exactly one place: a page that is both free and in use would be overwritten later.

The connection is read-only: closing a writable one copies the log into the file and deletes it, and with it the chance
of a repair.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from mooring.store.interface import EMPTY_REVISION, Record, StoreChange
from mooring.store.sqlite.errors import DirectoryUnusable, FileDamaged, damaged, error_of_sqlite

APPLICATION_ID = 0x6D6F6F72  # "moor", where tools such as `file` look for it
FORMAT_VERSION = 1

_DELETED = 0x5EED_DEAD  # so that a deletion and an empty value have different checksums


@dataclass(frozen=True, slots=True)
class FileState:
    """The count and checksum of the rows up to the oldest revision."""

    oldest: int = EMPTY_REVISION
    rows: int = 0
    checksums: int = 0

    def checksum(self) -> int:
        return zlib.crc32(b"%d %d %d" % (self.oldest, self.rows, self.checksums))


@dataclass(slots=True)
class FileContents:
    """The contents of a file."""

    state: FileState
    records: dict[str, Record] = field(default_factory=dict)
    changes: list[StoreChange] = field(default_factory=list)
    obsolete: list[int] = field(default_factory=list)

    @property
    def revision(self) -> int:
        return self.state.oldest + len(self.changes)


def checksum_of(revision: int, key: str, value: bytes | None) -> int:
    of_key = zlib.crc32(key.encode(), revision & 0xFFFF_FFFF)
    return of_key ^ _DELETED if value is None else zlib.crc32(value, of_key)


def load(path: Path, acknowledged: int) -> FileContents:
    """Load and check the contents of a file."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)) as connection:
            _check_format(connection, path)
            contents = _read(connection, path)
            _check_structure(connection, path)
    except sqlite3.Error as error:
        raise error_of_sqlite(error, path, "reading it at the start") from error
    except UnicodeDecodeError as error:
        raise damaged(path, f"a key is no text ({error})") from error
    if contents.revision < acknowledged:
        raise _behind(path, contents.revision, acknowledged)
    return contents


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA cell_size_check = ON")
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if (application, version) == (0, 0) and not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        raise damaged(path, "it is empty, and a store is never without its tables")
    if application != APPLICATION_ID:
        raise DirectoryUnusable(
            f"{path} is another program's database (application id {application:#x}): choose another data directory"
        )
    if version != FORMAT_VERSION:
        raise DirectoryUnusable(
            f"{path} has format {version} and this version of Mooring reads format {FORMAT_VERSION}: "
            "use the version that wrote it, or choose another data directory"
        )


def _check_structure(connection: sqlite3.Connection, path: Path) -> None:
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise damaged(path, str(found).replace("\n", " "))


def _read(connection: sqlite3.Connection, path: Path) -> FileContents:
    states = connection.execute("SELECT oldest, rows, checksums, checksum FROM state").fetchall()
    if len(states) != 1 or not _is_state_sound(*states[0]):
        raise damaged(path, f"the line about its oldest revision is wrong ({states})")
    contents = FileContents(FileState(*states[0][:3]))
    base = "SELECT revision, checksum, key, value FROM changes WHERE revision <= ? ORDER BY revision"
    later = "SELECT revision, checksum, key, value FROM changes WHERE revision > ? ORDER BY revision"
    _read_base(connection.execute(base, (contents.state.oldest,)), contents, path)
    _read_changes(connection.execute(later, (contents.state.oldest,)), contents, path)
    return contents


_Row = tuple[int, int, str, bytes | None]


def _read_base(rows: Iterable[_Row], contents: FileContents, path: Path) -> None:
    records, obsolete = contents.records, contents.obsolete
    count = checksums = 0
    for revision, checksum, key, value in rows:
        if not _is_sound(revision, checksum, key, value):
            raise _wrong_row(path, revision)
        count += 1
        checksums += checksum
        if (replaced := records.pop(key, None)) is not None:
            obsolete.append(replaced.revision)
        if value is not None:
            records[key] = Record(key, value, revision)
        else:
            obsolete.append(revision)
    state = contents.state
    if (count, checksums) != (state.rows, state.checksums):
        raise damaged(path, f"up to revision {state.oldest} there should be {state.rows} rows, and there are {count}")


def _read_changes(rows: Iterable[_Row], contents: FileContents, path: Path) -> None:
    records, changes = contents.records, contents.changes
    expected = contents.state.oldest
    for revision, checksum, key, value in rows:
        expected += 1
        if revision != expected:
            raise damaged(path, f"revision {expected} is missing")
        if not _is_sound(revision, checksum, key, value):
            raise _wrong_row(path, revision)
        changes.append(StoreChange(key, revision, value, records.pop(key, None)))
        if value is not None:
            records[key] = Record(key, value, revision)


def _is_sound(revision: int, checksum: object, key: object, value: object) -> bool:
    # A column can hold any type, also after a flipped bit.
    if not isinstance(key, str) or not isinstance(value, bytes | None):
        return False
    return checksum == checksum_of(revision, key, value)


def _is_state_sound(*numbers: object) -> bool:
    oldest, rows, checksums, checksum = numbers
    if not isinstance(oldest, int) or not isinstance(rows, int) or not isinstance(checksums, int):
        return False
    return checksum == FileState(oldest, rows, checksums).checksum()


def _wrong_row(path: Path, revision: int) -> FileDamaged:
    return damaged(path, f"the checksum of revision {revision} is wrong")


def _behind(path: Path, revision: int, acknowledged: int) -> FileDamaged:
    return damaged(
        path,
        f"it ends with revision {revision}, but revision {acknowledged} was acknowledged. "
        f"If you put an older {path.name} there on purpose, delete {path.parent / 'acknowledged'}",
    )
