"""Where the objects are kept: in memory, in a file, or on an etcd.

Comes in   what was asked for
Goes out   an open store, closed at the end of the block
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mooring.kit.clock import Clock
from mooring.store.interface import Store
from mooring.store.memory import MemoryStore

STORE_FOLDER = "store"
KEYS_FOLDER = "keys"
PODS_FOLDER = "pods"


@asynccontextmanager
async def open_store(directory: Path | None, url: str, clock: Clock) -> AsyncIterator[Store]:
    """The store that was asked for. Raises `StoreError`."""
    if url:
        from mooring.apiserver.storage.foreign_values import read_stored_value
        from mooring.store.etcd.settings import EtcdLimits
        from mooring.store.etcd.store import EtcdStore

        async with await EtcdStore.open(url, clock, EtcdLimits(), read_stored_value) as etcd:
            yield etcd
    elif directory is not None:
        from mooring.store.sqlite.store import SqliteStore

        async with await SqliteStore.open(directory / STORE_FOLDER, clock) as file:
            yield file
    else:
        yield MemoryStore()
