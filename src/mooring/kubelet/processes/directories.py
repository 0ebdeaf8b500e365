"""Where pods are on disk, and whose they are.

    pods/                                      one kubelet's at a time: it holds `lock`
      <uid of the pod>/
        volumes/…                              what its volumes hold
        containers/<name>/
          0.log, 1.log, 1.log.1                what each run wrote; this run's and the one's before are kept
          run.json                             the process of this run, for finding it after a crash
          work/                                where it starts, unless the pod says otherwise
          termination-log                      its last words

Comes in   a directory; or none, and then one is made that is gone at the end
Goes out   paths

 1. One kubelet has a directory at a time: another one is refused, in words.
 2. Temporary directories of those that were killed are removed by whoever makes the next one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

LOCK = "lock"
_TEMPORARY = "pods-"


class DirectoryTakenError(Exception):
    """Another kubelet has the pods there; the text says what to do."""


class PodDirectories:
    """The directory of all pods of one kubelet, ours from `open` to `close`."""

    def __init__(self, root: Path, lock: int, *, is_temporary: bool) -> None:
        self.root = root
        self._lock = lock
        self._is_temporary = is_temporary

    @classmethod
    def open(cls, root: Path) -> PodDirectories:
        """Raises `DirectoryTakenError`."""
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        # As it really is: the names of cgroups and what processes are known by are made of it.
        root = root.resolve()
        lock = _locked(root / LOCK)
        if lock is None:
            raise DirectoryTakenError(f"{root} has the pods of another mooring that runs: end it, or name another one")
        return cls(root, lock, is_temporary=False)

    @classmethod
    def temporary(cls) -> PodDirectories:
        root = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=_temporary_parent())).resolve()
        lock = _locked(root / LOCK)
        assert lock is not None, f"somebody else locked {root}, which was made just now"
        return cls(root, lock, is_temporary=True)

    def close(self) -> None:
        if self._is_temporary:
            shutil.rmtree(self.root, ignore_errors=True)
        os.close(self._lock)

    # ------------------------------------------------------------------------------------------------- what is where

    def pods(self) -> list[str]:
        """The uids of all pods of which there is something."""
        return sorted(path.name for path in self.root.iterdir() if path.is_dir())

    def pod(self, uid: str) -> Path:
        return self.root / uid

    def container(self, uid: str, name: str) -> Path:
        return self.pod(uid) / "containers" / name

    def log(self, uid: str, name: str, attempt: int) -> Path:
        return self.container(uid, name) / f"{attempt}.log"

    def record(self, uid: str, name: str) -> Path:
        return self.container(uid, name) / "run.json"

    def records(self) -> Iterator[Path]:
        return self.root.glob("*/containers/*/run.json")

    def work(self, uid: str, name: str) -> Path:
        return self.container(uid, name) / "work"

    def termination_log(self, uid: str, name: str) -> Path:
        return self.container(uid, name) / "termination-log"

    # ------------------------------------------------------------------------------------------------ coming and going

    def make_container(self, uid: str, name: str, attempt: int) -> None:
        """Ready for a run: what the runs before the last one wrote goes."""
        self.work(uid, name).mkdir(parents=True, exist_ok=True)
        kept = {str(attempt), str(attempt - 1)}
        for path in self.container(uid, name).glob("*.log*"):
            if path.name.partition(".")[0] not in kept and path != self.termination_log(uid, name):
                path.unlink(missing_ok=True)
        self.termination_log(uid, name).write_bytes(b"")

    def remove_pod(self, uid: str) -> None:
        shutil.rmtree(self.pod(uid), ignore_errors=True)


def abandoned_directories() -> Sequence[PodDirectories]:
    """Temporary directories whose kubelet was killed; they are ours now, to be cleared and closed."""
    found = []
    for root in sorted(_temporary_parent().glob(f"{_TEMPORARY}*")):
        lock = _locked(root / LOCK) if (root / LOCK).exists() else None
        if lock is not None:
            found.append(PodDirectories(root.resolve(), lock, is_temporary=True))
    return found


def _temporary_parent() -> Path:
    parent = Path(tempfile.gettempdir()) / f"mooring-{os.getuid()}"
    with suppress(FileExistsError):
        parent.mkdir(mode=0o700)
    return parent


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock until it is closed, or the process ends; None if somebody else has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
