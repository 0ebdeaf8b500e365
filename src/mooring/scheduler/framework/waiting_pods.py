"""Pods that wait for Permit: they have a node, and plugins decide when they are bound.

Plugins reach them through the service `waiting_pods`: the last pod of a gang finds the others here and allows them.

1. A pod continues when every plugin that made it wait has allowed it.
2. The first rejection, time-out or preemption ends the wait. Later calls have no effect.
3. A waiting pod uses no task: one timer for each plugin, and a callback.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

from mooring.api.durations import format_duration
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.status import Code, Status

WAIT_S_MAX = 900.0
"""Limit of the time-out of a plugin, as in kube-scheduler."""

OnEnd = Callable[[Status | None], None]


class WaitingPod:
    """One waiting pod."""

    def __init__(self, pod: PodInfo, node_name: str, timeouts_s: Mapping[str, float], on_end: OnEnd) -> None:
        self.pod = pod
        self.node_name = node_name
        self._on_end: OnEnd | None = on_end
        loop = asyncio.get_running_loop()
        self._timers = {
            plugin: loop.call_later(timeout_s, self._time_out, plugin, timeout_s)
            for plugin, timeout_s in timeouts_s.items()
        }

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """The plugins that have not allowed the pod yet."""
        return tuple(self._timers)

    def allow(self, plugin: str) -> None:
        """The plugin allows the pod. The pod continues if it was the last one."""
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers:
            self._end(None)

    def reject(self, plugin: str, message: str) -> bool:
        """Reject the pod. False if the wait had already ended."""
        return self._end(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """A pod of higher priority needs the node: this pod is retried, as after an error."""
        return self._end(Status(Code.ERROR, (f"waiting on permit for pod: {message}",), plugin))

    def leave(self) -> None:
        """End the wait without calling back."""
        self._on_end = None
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _time_out(self, plugin: str, timeout_s: float) -> None:
        waited = format_duration(timeout_s)
        self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def _end(self, status: Status | None) -> bool:
        on_end, self._on_end = self._on_end, None
        if on_end is None:
            return False
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        on_end(status)
        return True


class WaitingPods:
    """All pods that wait for Permit, by uid."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[WaitingPod]:
        """The waiting pods in the order of arrival. They may be allowed or rejected while iterating."""
        return iter(tuple(self._pods.values()))

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def add(self, pod: PodInfo, node_name: str, timeouts_s: Mapping[str, float], on_end: OnEnd) -> WaitingPod:
        """Let a pod wait. `on_end` is called once, when the wait has ended."""
        assert timeouts_s, f"no plugin made {pod} wait"

        def leave(status: Status | None) -> None:
            del self._pods[pod.uid]
            on_end(status)

        bounded_s = {plugin: min(timeout_s, WAIT_S_MAX) for plugin, timeout_s in timeouts_s.items()}
        waiting = self._pods[pod.uid] = WaitingPod(pod, node_name, bounded_s, leave)
        return waiting

    def close(self) -> None:
        """End all waits without calling back: the scheduler stops, and the next one starts from the API."""
        for waiting in self._pods.values():
            waiting.leave()
        self._pods.clear()
