"""The waiting room of Permit: pods that have their node, and wait until plugins let them go there.

Comes in   pods whose Permit plugins answered `Wait`, each with a time-out
Goes out   for each, once: go on, or why not

Plugins reach the room as the service `waiting_pods`: a gang's last member finds the others here and allows them.

 1. A pod goes on when every plugin that asked it to wait has allowed it.
 2. The first rejection, time-out or preemption ends the wait; whatever comes later is not heard.
 3. Waiting costs no task and no turn of the loop: an alarm for each plugin, and a callback.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

from mooring.api.durations import format_duration
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.status import Code, Status

WAIT_S_MAX = 900.0
"""No plugin keeps a pod waiting for longer, whatever it says."""

OnEnd = Callable[[Status | None], None]


class WaitingPod:
    """One pod in the room."""

    __slots__ = ("_alarms", "_on_end", "node_name", "pod")

    def __init__(self, pod: PodInfo, node_name: str, timeouts_s: Mapping[str, float], on_end: OnEnd) -> None:
        self.pod = pod
        self.node_name = node_name
        self._on_end: OnEnd | None = on_end
        loop = asyncio.get_running_loop()
        self._alarms = {
            plugin: loop.call_later(timeout_s, self._time_out, plugin, timeout_s)
            for plugin, timeout_s in timeouts_s.items()
        }

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """The plugins that have not allowed it yet."""
        return tuple(self._alarms)

    def allow(self, plugin: str) -> None:
        """This plugin has nothing more against it."""
        alarm = self._alarms.pop(plugin, None)
        if alarm is not None:
            alarm.cancel()
        if not self._alarms:
            self._end(None)

    def reject(self, plugin: str, message: str) -> bool:
        """Not at all. False if the wait was over already."""
        return self._end(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """Somebody more important needs the node: the pod is tried again at once, as after an error."""
        return self._end(Status(Code.ERROR, (f"waiting on permit for pod: {message}",), plugin))

    def leave(self) -> None:
        """Ends the wait without a word."""
        self._on_end = None
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()

    def _time_out(self, plugin: str, timeout_s: float) -> None:
        waited = format_duration(timeout_s)
        self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def _end(self, status: Status | None) -> bool:
        on_end, self._on_end = self._on_end, None
        if on_end is None:
            return False
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()
        on_end(status)
        return True


class WaitingPods:
    """The room."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[WaitingPod]:
        """Those who wait, in the order in which they came; allowing or rejecting on the way is fine."""
        return iter(tuple(self._pods.values()))

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def add(self, pod: PodInfo, node_name: str, timeouts_s: Mapping[str, float], on_end: OnEnd) -> WaitingPod:
        """Seats a pod; `on_end` is called once, when its wait is over."""
        assert timeouts_s, f"{pod} was asked to wait by nobody"

        def leave(status: Status | None) -> None:
            del self._pods[pod.uid]
            on_end(status)

        bounded_s = {plugin: min(timeout_s, WAIT_S_MAX) for plugin, timeout_s in timeouts_s.items()}
        waiting = self._pods[pod.uid] = WaitingPod(pod, node_name, bounded_s, leave)
        return waiting

    def close(self) -> None:
        """Nobody waits any more, and nobody is told: the scheduler stops, and the next one starts from the API."""
        for waiting in self._pods.values():
            waiting.leave()
        self._pods.clear()
