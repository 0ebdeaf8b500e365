"""The data directory: who has it, and how far what it holds was acknowledged.

Comes in   a path
Goes out   the directory, locked until it is closed; the revision that was acknowledged last

   lock           the process that has the directory; the lock is the kernel's and goes with the process
   acknowledged   the last revision that somebody was told is durable
   store.db       the store, and beside it SQLite's log (store.db-wal)

 1. A lock whose process is gone does not matter: the kernel has released it.
 2. `acknowledged` is written after a commit is durable, so it is never ahead of what was durable once. It is not forced
    to the disk each time: a power cut can leave it behind or unreadable, and then it merely proves less.
 3. Nobody but the owner may read what is in it: the store holds secrets.

Why `acknowledged`: SQLite takes a log whose checksums end early for one that was being written, and a log that is not
there for one that is empty. Both are right after a crash and wrong after damage; this number tells which it was.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from contextlib import suppress
from pathlib import Path

from mooring.store.sqlite.errors import DirectoryInUse, DirectoryUnusable

DATABASE_NAME = "store.db"
_LOCK_NAME = "lock"
_ACKNOWLEDGED_NAME = "acknowledged"
_ACKNOWLEDGED_BYTES = 30  # twenty digits, a blank, the eight of a checksum, a new line


class DataDirectory:
    """A directory that is ours alone. Made and locked when this is constructed."""

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
        with suppress(OSError):  # a full disk: the lock holds, it is only not said whose it is
            os.pwrite(self._lock_fd, b"%-19d\n" % os.getpid(), 0)

    def acknowledged(self) -> int:
        """The last revision that is known to have been acknowledged; 0 if nothing is known."""
        text = os.pread(self._acknowledged_fd, _ACKNOWLEDGED_BYTES, 0)
        digits = text[:20]
        return int(digits) if text == _acknowledgement(digits) and digits.isdigit() else 0

    def acknowledge(self, revision: int) -> None:
        os.pwrite(self._acknowledged_fd, _acknowledgement(b"%020d" % revision), 0)

    def sync(self) -> None:
        """Make durable which files there are."""
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
