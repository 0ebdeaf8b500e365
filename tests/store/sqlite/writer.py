"""A process that writes to a SQLite store without pauses and prints acknowledged writes, until it is killed.

    python -m tests.store.sqlite.writer DIRECTORY

Each line is a revision, a key and a value (`-` for a deletion): with revision 0 before the write is started, and with
its own when it is acknowledged. Limits are small, so that kills also happen during maintenance of the file.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from mooring.store.sqlite.errors import SqliteLimits
from mooring.store.sqlite.store import SqliteStore

WRITERS = 8
KEYS_OF_EACH = 5
REPEATED = 200
LIMITS = SqliteLimits(
    changes_max=50, log_bytes_max=100_000, obsolete_rows_max=20, free_bytes_kept=20_000, commit_writes_max=5
)


async def main(directory: Path) -> None:
    async with await SqliteStore.open(directory, SystemClock(), LIMITS) as store, TaskGroup("writers") as group:
        for writer in range(WRITERS):
            group.start(write(store, writer), name=str(writer))


async def write(store: SqliteStore, writer: int) -> None:
    turn = await store.revision()
    while True:
        turn += 1
        key = f"/registry/pods/w{writer}/p{turn % KEYS_OF_EACH}"
        if turn % 7 == 0 and await store.get(key) is not None:
            report(0, key, "-")
            report(await store.delete(key), key, "-")
        else:
            report(0, key, value := f"{writer}.{turn}.")
            report(await store.put(key, value.encode() * REPEATED), key, value)


def report(revision: int, key: str, value: str) -> None:
    os.write(1, f"{revision} {key} {value}\n".encode())


if __name__ == "__main__":
    run_real(main(Path(sys.argv[1])))
