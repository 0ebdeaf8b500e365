"""Temporary directories that do not outlive their process, even if it is killed.

1. A directory is private to the user (0700) and removed when its `with` block ends.
2. A process holds a lock in each of its directories. The next process that creates a directory with the same prefix
   removes those whose lock is free: their process was killed.
3. A signal handler that ends the process at once calls `remove_temporary_directories` first.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK_FILE = ".lock"

_open_directories: dict[Path, None] = {}


@contextmanager
def temporary_directory(prefix: str, again: Path | None = None) -> Iterator[Path]:
    """A new directory below the system's directory for temporary files; under the same path as `again`, which this
    process had before, unless something else is there now."""
    _remove_abandoned(prefix)
    path, lock = _create(prefix, again)
    _open_directories[path] = None
    try:
        yield path
    finally:
        _open_directories.pop(path, None)
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def remove_temporary_directories() -> None:
    """Remove all directories of this process, for a process that ends without leaving its `with` blocks."""
    for path in list(_open_directories):
        shutil.rmtree(path, ignore_errors=True)


def take_lock(path: Path, *, creates_file: bool = True) -> int | None:
    """A descriptor that holds the lock until it is closed or the process ends; None if another process holds it.

    Raises `OSError` if the file cannot be opened."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if creates_file else 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _create(prefix: str, again: Path | None) -> tuple[Path, int]:
    while True:
        path = again if again is not None and _make(again) else Path(tempfile.mkdtemp(prefix=prefix))
        lock = take_lock(path / LOCK_FILE)
        if lock is not None:
            return path, lock
        # Another process took the lock before this one could. It removes the directory.


def _make(path: Path) -> bool:
    """False if it exists: then it may be of another user."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True


def _remove_abandoned(prefix: str) -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):  # no lock file yet, or a directory of another user
            lock = take_lock(path / LOCK_FILE, creates_file=False)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)
