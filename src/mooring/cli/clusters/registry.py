"""The registry of running clusters: one directory for each, below `~/.local/state/mooring/clusters`.

    NAME/lock         held by the process that runs the cluster
    NAME/state.json   what `mooring status` shows
    NAME/log          the output of a detached cluster

1. A cluster runs while its process holds the lock. The system releases the lock when the process ends, also after
   `kill -9`; then the directory is stale, and the next command that finds it removes it.
2. The state is replaced as a whole: a reader sees the old or the new one.
3. Only the user can read the registry.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

import msgspec

from mooring.cli.errors import input_error
from mooring.kit.temporary_directory import take_lock

DEFAULT_NAME = "mooring"
ATTEMPTS_MAX = 5
"""How often a directory is created that another process removes as stale at the same moment."""
NAMES_MAX = 1_000
"""How many clusters may run without a name of their own."""

logger = logging.getLogger(__name__)

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LOCK, _STATE, _LOG = "lock", "state.json", "log"


class ClusterState(msgspec.Struct, frozen=True, rename="camel"):
    """What is known of a running cluster."""

    name: str
    pid: int = 0
    started_wall_s: float = 0.0
    url: str = ""
    kubeconfig: str = ""
    objects: str = ""
    """Where the objects are stored."""
    log: str = ""
    """The log of a detached cluster."""
    is_ready: bool = False
    """The nodes are ready, and the objects of `-f` were created."""
    are_workloads_available: bool = False
    """The workloads of `-f` are available; true if there are none."""


def registry_directory() -> Path:
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "mooring" / "clusters"


class Registration:
    """The entry of a cluster. The process that runs it holds the lock, also if it is a fork of the one that took it."""

    def __init__(self, name: str, directory: Path | None, lock: int | None) -> None:
        """Without a directory, nothing is written."""
        self._directory = directory
        self._lock = lock
        self.state = ClusterState(name)

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def log_path(self) -> Path | None:
        """Where a detached cluster writes its output."""
        return self._directory / _LOG if self._directory is not None else None

    def update(self, **changes: object) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)
        if self._directory is None:
            return
        temporary = self._directory / f"{_STATE}.new"
        with suppress(OSError):  # a full disk or a removed directory does not stop a cluster
            temporary.write_bytes(msgspec.json.encode(self.state))
            temporary.replace(self._directory / _STATE)

    def release(self) -> None:
        """Leave the entry to a fork of this process."""
        if self._lock is not None:
            os.close(self._lock)

    def remove(self) -> None:
        """Remove the entry. The lock is released when the process ends: who waits for that must find no process."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


def register(name: str) -> Registration:
    """An entry of that name, or, if it is empty, of the first free one. Raises `InputError` if the name is taken."""
    running_clusters()  # removes stale entries
    if name and not _NAME.fullmatch(name):
        raise input_error(f"--name {name!r}: wanted lower-case letters, digits and dashes, at most 63")
    numbered = (DEFAULT_NAME if number == 1 else f"{DEFAULT_NAME}-{number}" for number in range(1, NAMES_MAX + 1))
    try:
        for candidate in [name] if name else numbered:
            directory = registry_directory() / candidate
            lock = _take_directory(directory)
            if lock is not None:
                return Registration(candidate, directory, lock)
    except OSError as error:
        logger.warning("`mooring status` will not show this cluster: %s", error)
        return Registration(name or DEFAULT_NAME, None, None)
    if name:
        raise input_error(f"a cluster {name} runs already: `mooring down {name}` stops it, or choose another --name")
    raise input_error(f"{NAMES_MAX} clusters run already: stop some of them, or choose a --name")


def _take_directory(directory: Path) -> int | None:
    """The lock of the directory; None if a process holds it. Raises `OSError`."""
    for _ in range(ATTEMPTS_MAX):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            lock = take_lock(directory / _LOCK)
        except FileNotFoundError:
            continue  # another process removed the stale directory at this moment
        if lock is None:
            return None
        if _is_same_file(lock, directory / _LOCK):
            return lock
        os.close(lock)
    return None


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


class ClusterProcess:
    """Detects by the lock that the process of a cluster has ended; its pid may be in use again."""

    def __init__(self, name: str) -> None:
        try:
            self._lock: int | None = os.open(registry_directory() / name / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            self._lock = None  # it has ended since

    def has_ended(self) -> bool:
        if self._lock is None:
            return True
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        os.close(self._lock)
        self._lock = None
        return True


def running_clusters() -> list[ClusterState]:
    """The running clusters by name. Removes stale entries."""
    try:
        directories = sorted(registry_directory().iterdir())
    except OSError:
        return []
    return [state for directory in directories if (state := _running_in(directory)) is not None]


def _running_in(directory: Path) -> ClusterState | None:
    try:
        lock = take_lock(directory / _LOCK, creates_file=False)
    except OSError:
        return None  # just created or removed, or no directory of ours
    if lock is not None:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)
        return None
    try:
        return msgspec.json.decode((directory / _STATE).read_bytes(), type=ClusterState)
    except (OSError, msgspec.MsgspecError):
        return None  # the cluster starts or ends at this moment
