"""Runs the expensive steps of large requests in a thread, so that the event loop goes on with the others.

Input: a function without side effects, and the number of bytes that it works on. Output: its result.

1. Small work runs on the loop, at once. From `WORKER_BYTES_MIN` on, work runs in the thread, in order of arrival. The
   code is the same.
2. The function reads and changes only what belongs to its request, and caches whose entries depend on their key alone.
   Looking up, reserving and storing stay on the loop.
3. There is one thread: more would only compete for the interpreter lock. Large requests wait for each other; at most
   `requests_max` of them are there, and each ends after `request_s_max`.
4. The interpreter passes its lock on every 5 ms, so that the loop waits for about that long at each iteration while the
   thread works. A single call of a C function is not interrupted: for 3 MiB the longest takes about 30 ms.
5. The garbage collector pauses meanwhile: a collection holds the lock while it traverses all objects of a document.
6. On virtual time there is no thread: the work is done at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar, TypeVarTuple

from mooring.kit.memory import loading

WORKER_BYTES_MIN = 32 * 1024
"""The most expensive input of this size takes about 50 ms."""

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


def _run_uncollected(work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    with loading():
        return work(*arguments)


class Worker:
    """The thread of an API server. Its thread starts with the first large request."""

    def __init__(self, bytes_min: int = WORKER_BYTES_MIN) -> None:
        self._bytes_min = bytes_min
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="apiserver-worker")

    async def run(self, size_bytes: int, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """The result of `work`, computed here if it is small."""
        if size_bytes < self._bytes_min:
            return work(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._executor, _run_uncollected, work, *arguments)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
