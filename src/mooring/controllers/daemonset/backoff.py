"""Failed pods of DaemonSets: how long a node waits until its next one is deleted.

Comes in   a key for each DaemonSet, generation and node; the time
Goes out   seconds to wait

 1. The first failed pod is deleted at once; the next has to have waited 1 s since then, the one after 2 s, up to
    fifteen minutes.
 2. Who has not failed for twice that long begins anew, and is forgotten.
"""

from __future__ import annotations

from mooring.controllers.daemonset.plan import FAILED_BACKOFF

FORGOTTEN_AFTER_S = 2 * FAILED_BACKOFF.max_s


class FailedPodsBackoff:
    def __init__(self) -> None:
        self._by_key: dict[str, tuple[int, float]] = {}  # failures and the last one's time, the oldest first

    def wait_s(self, key: str, now_s: float) -> float:
        """How long a wait is in force for the key; 0 if none is."""
        failures, last_s = self._by_key.get(key, (0, 0.0))
        wait_s = FAILED_BACKOFF.delay_s(failures)
        return wait_s if failures and now_s - last_s < wait_s else 0.0

    def note(self, key: str, now_s: float) -> None:
        """A failed pod is being deleted."""
        while self._by_key:
            oldest, (_, last_s) = next(iter(self._by_key.items()))
            if now_s - last_s <= FORGOTTEN_AFTER_S:
                break
            del self._by_key[oldest]
        failures, _ = self._by_key.pop(key, (0, 0.0))
        self._by_key[key] = (failures + 1, now_s)
