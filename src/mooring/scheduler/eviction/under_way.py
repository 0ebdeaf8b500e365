"""For whom room is being made just now, and whether that is over.

Comes in   what the evictor does
Goes out   `is_running_for`, to the plugin that holds preempting pods back meanwhile (service `evictions`)
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.scheduler.cache.pods import PodInfo


class Run:
    """One preemption under way."""

    __slots__ = ("last_victim",)

    def __init__(self) -> None:
        self.last_victim: PodInfo | None = None
        """Set when it is the only one left."""


class EvictionsUnderWay:
    """Preempting pods, each with what it waits for.

    A pod that was tried again, because its last victim was seen leaving before the answer came, may have two runs.
    """

    def __init__(self, pods: Mapping[str, PodInfo]) -> None:
        self._pods = pods
        """All pods with a node."""
        self._runs: dict[str, list[Run]] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def is_running_for(self, uid: str) -> bool:
        """Whether victims of this pod are still to be evicted."""
        runs = self._runs.get(uid)
        return runs is not None and any(self._is_waiting(run) for run in runs)

    def begin(self, uid: str) -> Run:
        run = Run()
        self._runs.setdefault(uid, []).append(run)
        return run

    def end(self, uid: str, run: Run) -> None:
        self._runs[uid].remove(run)
        if not self._runs[uid]:
            del self._runs[uid]

    def _is_waiting(self, run: Run) -> bool:
        if run.last_victim is None:
            return True
        victim = self._pods.get(run.last_victim.uid)
        return victim is not None and not victim.terminating
