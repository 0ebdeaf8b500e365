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
from contextlib import contextmanager
from pathlib import Path

LOCK_FILE = ".lock"

_open_directories: dict[Path, None] = {}


@contextmanager
def temporary_directory(prefix: str) -> Iterator[Path]:
    """A new directory below the system's directory for temporary files."""
    _remove_abandoned(prefix)
    path, lock = _create(prefix)
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


def _create(prefix: str) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix))
        lock = _take_lock(path / LOCK_FILE, os.O_RDWR | os.O_CREAT)
        if lock is not None:
            return path, lock
        # Another process took the lock before this one could. It removes the directory.


def _remove_abandoned(prefix: str) -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        lock = _take_lock(path / LOCK_FILE, os.O_RDWR)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _take_lock(path: Path, flags: int) -> int | None:
    """A descriptor that holds the lock until it is closed or the process ends; None if the lock is not available."""
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None  # no lock file yet, or the directory belongs to another user
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
