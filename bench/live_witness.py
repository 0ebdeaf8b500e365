"""The witness: watches the store, and records when each pod is bound or rejected.

Input: the changes of all pods, from a watch of its own. Output: when and how often each pod was bound; when the last
expected pod was decided. The scheduler is not asked.

 1. It costs the measured process two searches in the bytes of each change, a hundredth of the cost of a pod.
 2. A pod is rejected when its status says so, as users would see it.
 3. Times are those at which the witness runs: a few milliseconds late, never early.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from time import perf_counter_ns

from mooring.api.kinds import POD
from mooring.store.interface import Store, StoreChange

_HAS_NODE = b'"nodeName":"'
_IS_REFUSED = b'"reason":"Unschedulable"'


class Witness:
    """Watches all pods of a store, for as long as `run` does."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open_placed: set[str] = set()
        self._open_refused: set[str] = set()
        self._all_decided = asyncio.Event()
        self.watches = asyncio.Event()
        """Set as soon as nothing escapes it any more."""
        self.bindings: dict[str, int] = {}
        """How often each pod got a node, by its key."""
        self.bound_ns: dict[str, int] = {}

    async def run(self) -> None:
        async with self._store.watch(POD.key_prefix, since=await self._store.revision()) as watch:
            self.watches.set()
            while True:
                changes = await watch.next_batch()
                now_ns = perf_counter_ns()
                for change in changes:
                    self._see(change, now_ns)
                self._tell_if_all_are_decided()

    def expect(self, placed: Iterable[str], refused: Iterable[str]) -> None:
        """Pods that are about to come, by their keys."""
        self._open_placed.update(placed)
        self._open_refused.update(refused)
        self._all_decided.clear()
        self._tell_if_all_are_decided()

    async def wait_until_decided(self, seconds_max: float) -> int:
        """Comes back when all expected pods are decided, or after a time. Returns how many are not; they are let go."""
        try:
            async with asyncio.timeout(seconds_max):
                await self._all_decided.wait()
        except TimeoutError:
            pass
        left = len(self._open_placed) + len(self._open_refused)
        self._open_placed.clear()
        self._open_refused.clear()
        return left

    def _see(self, change: StoreChange, now_ns: int) -> None:
        value, previous = change.value, change.previous
        if value is None or previous is None:
            return
        if _HAS_NODE in value:
            if change.key in self._open_placed or _HAS_NODE not in previous.value:
                self.bindings[change.key] = self.bindings.get(change.key, 0) + 1
                self.bound_ns[change.key] = now_ns
                self._open_placed.discard(change.key)
        elif _IS_REFUSED in value:
            self._open_refused.discard(change.key)

    def _tell_if_all_are_decided(self) -> None:
        if not self._open_placed and not self._open_refused:
            self._all_decided.set()
