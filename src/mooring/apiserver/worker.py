"""Runs the expensive steps of large requests in a thread, so that the event loop can serve other requests.

Input: a function without side effects, and the number of bytes that it works on. Output: its result.

1. Small work runs on the loop. From `WORKER_BYTES_MIN` on, work runs in the thread, in order of arrival. The
   code is the same.
2. The function reads and changes only what belongs to its request, and caches whose entries depend on their key alone.
   Looking up, reserving and storing stay on the loop.
3. There is one thread: more would only compete for the interpreter lock. Large requests wait for each other; at most
   `requests_max` of them are there, and each ends after `request_s_max`.
4. The interpreter passes its lock on every 5 ms, so that the loop waits for about that long at each iteration while the
   thread works. A single call of a C function is not interrupted: for 3 MiB the longest takes about 30 ms.
5. The garbage collector pauses meanwhile, and for `COLLECTION_DELAY_S` after: a collection holds the lock while it
   traverses a document, which takes 0.1 s for 400,000 objects. A document has no cycles, so it is freed without the
   collector when its request ends. Endless large requests delay collections by at most `PAUSE_S_MAX`.
6. On virtual time there is no thread: the work runs on the loop.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar, TypeVarTuple

WORKER_BYTES_MIN = 32 * 1024
"""The most expensive input of this size takes about 50 ms."""

COLLECTION_DELAY_S = 1.0
PAUSE_S_MAX = 10.0

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class WorkerThread:
    """The thread of an API server. Its thread starts with the first large request."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="apiserver-worker")
        self._pending = 0
        self._paused_since_s: float | None = None
        """When the collector was paused; None: it runs."""
        self._ended_s = 0.0

    async def run(self, size_bytes: int, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """The result of `work`, computed here if it is small."""
        if self._paused_since_s is not None:
            self._collect_again(asyncio.get_running_loop().time())
        if size_bytes < WORKER_BYTES_MIN:
            return work(*arguments)
        loop = asyncio.get_running_loop()
        if self._paused_since_s is None:
            gc.disable()
            self._paused_since_s = loop.time()
        self._pending += 1
        try:
            return await loop.run_in_executor(self._executor, work, *arguments)
        finally:
            self._pending -= 1
            self._ended_s = loop.time()

    def _collect_again(self, now_s: float) -> None:
        """End the pause, if it is time."""
        assert self._paused_since_s is not None
        is_idle = not self._pending and now_s - self._ended_s >= COLLECTION_DELAY_S
        if is_idle or now_s - self._paused_since_s >= PAUSE_S_MAX:
            gc.enable()
            self._paused_since_s = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
        if self._paused_since_s is not None:
            gc.enable()
            self._paused_since_s = None
