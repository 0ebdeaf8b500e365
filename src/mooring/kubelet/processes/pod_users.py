"""Ids of pods on the host: each pod has a range of its own, in a user namespace.

Input: the uids of pods. Output: the first id of a range, held until it is released or the process ends.

 1. No two pods on this machine have the same range, even of different kubelets: a range is a locked byte of
    `LOCK_FILE`.
 2. Files of pods do not have these ids: their mounts map them (`shim.mount_namespace`). So a pod may get another range
    after a restart.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from mooring.kubelet.processes.security_context import IDS_MAX

LOCK_FILE = Path("/run/mooring-pod-users")
FIRST_ID = 0x70000000
"""Above the ids of users, of `/etc/subuid` and of systemd."""
RANGE_SIZE = IDS_MAX + 1
RANGES_MAX = 4000
"""All ranges end below 2**31."""


class NoRangeError(Exception):
    """All ranges are in use."""


class PodUsers:
    """The ranges of the pods of one kubelet."""

    def __init__(self, lock_file: Path = LOCK_FILE) -> None:
        """Raises `OSError` if the lock file cannot be opened."""
        self._file = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._taken: dict[str, int] = {}

    def first_id(self, pod_uid: str) -> int:
        """The first id of a pod. Raises `NoRangeError`."""
        if pod_uid not in self._taken:
            own = set(self._taken.values())
            found = next((number for number in range(RANGES_MAX) if number not in own and self._lock(number)), None)
            if found is None:
                raise NoRangeError(f"all {RANGES_MAX} ranges of user ids of this machine are in use by pods")
            self._taken[pod_uid] = found
        return FIRST_ID + self._taken[pod_uid] * RANGE_SIZE

    def release(self, pod_uid: str) -> None:
        number = self._taken.pop(pod_uid, None)
        if number is not None:
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _byte_lock(fcntl.F_UNLCK, number))

    def close(self) -> None:
        os.close(self._file)

    def _lock(self, number: int) -> bool:
        try:
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _byte_lock(fcntl.F_WRLCK, number))
        except BlockingIOError:
            return False
        return True


def id_map(first_id: int) -> dict[str, str]:
    """The maps of a user namespace: ids of the pod, ids of the host, how many."""
    line = f"0 {first_id} {RANGE_SIZE}"
    return {"uid_map": line, "gid_map": line}


def _byte_lock(kind: int, number: int) -> bytes:
    return struct.pack("hhqqi0q", kind, os.SEEK_SET, number, 1, 0)
