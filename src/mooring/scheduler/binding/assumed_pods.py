"""Assumed pods: the columns count them on a node, but the watch has not confirmed the binding yet.

                        the watch shows the pod on a node
    BINDING ──────────────────────────────────────────────> confirmed: no longer assumed
       │  the API server has accepted the binding               ^
       ├────────────────────────────────────────────────> BOUND ┘
       │  rejected or failed                                │  no confirmation within the time to live
       └────────> forgotten                                 └────────> expired: looked up

1. A pod is assumed from `Engine.assume` until the watch confirms the binding, or the pod is forgotten.
2. An expired pod is not forgotten blindly: the scheduler looks it up, because freeing the resources of a bound pod
   would overcommit its node.
3. A pod that is deleted while it is assumed is RELEASED: the columns no longer count it, and its binding, if it is
   still running, has no effect.
"""

from __future__ import annotations

import logging
from copy import copy
from enum import Enum
from functools import partial
from typing import Protocol

from mooring.api.decode import decode_as
from mooring.api.errors import ObjectError
from mooring.api.kinds import POD
from mooring.api.views.pod import Pod
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import Change, Client
from mooring.kit.clock import Clock
from mooring.kit.logs import fields
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_buffer import EventBuffer
from mooring.scheduler.framework.events import ASSIGNED_POD_DELETE
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.reporting.recording import Recording


class AssumedPodState(Enum):
    BINDING = "binding"
    BOUND = "bound"
    RELEASED = "released"


class AssumedPod:
    """One assumed pod and its node."""

    def __init__(self, pod: PodInfo, node_name: str) -> None:
        self.pod = pod
        self.node_name = node_name
        self.state = AssumedPodState.BINDING
        self.expires_s = float("inf")

    def __repr__(self) -> str:
        return f"AssumedPod({self.pod.key} on {self.node_name}, {self.state.value})"


class AssumedPods:
    """All assumed pods, by uid."""

    def __init__(self, ttl_s: float | None) -> None:
        self._ttl_s = ttl_s
        self._assumed_pods: dict[str, AssumedPod] = {}
        self._bound: dict[str, AssumedPod] = {}
        """The pods that wait for their confirmation, in the order in which they expire."""

    def __len__(self) -> int:
        return len(self._assumed_pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._assumed_pods

    def get(self, uid: str) -> AssumedPod | None:
        return self._assumed_pods.get(uid)

    def add(self, pod: PodInfo, node_name: str) -> AssumedPod:
        assert pod.uid not in self._assumed_pods, f"{pod} is already assumed"
        assumed = self._assumed_pods[pod.uid] = AssumedPod(pod, node_name)
        return assumed

    def bound(self, assumed: AssumedPod, now_s: float) -> None:
        """The API server has accepted the binding; the watch should confirm it soon."""
        if self._assumed_pods.get(assumed.pod.uid) is not assumed:
            return  # the watch was faster than the response
        if assumed.state is AssumedPodState.RELEASED:
            self.remove(assumed.pod.uid)  # the pod is being deleted: there is nothing to confirm
            return
        assumed.state = AssumedPodState.BOUND
        if self._ttl_s is not None:
            assumed.expires_s = now_s + self._ttl_s
            self._bound[assumed.pod.uid] = assumed

    def remove(self, uid: str) -> AssumedPod | None:
        """The pod is confirmed or forgotten."""
        self._bound.pop(uid, None)
        return self._assumed_pods.pop(uid, None)

    def release(self, uid: str) -> None:
        """The pod is being deleted while its binding is running: the columns no longer count it."""
        self._assumed_pods[uid].state = AssumedPodState.RELEASED

    def expired(self, now_s: float) -> list[AssumedPod]:
        """The pods that expired. Each is returned once; `bound` starts its time to live again."""
        found: list[AssumedPod] = []
        for assumed in self._bound.values():
            if assumed.expires_s > now_s:
                break
            found.append(assumed)
        for assumed in found:
            del self._bound[assumed.pod.uid]
        return found


def forget_assumed(engine: Engine, assumed_pods: AssumedPods, assumed: AssumedPod) -> bool:
    """The binding has failed: undo what `Engine.assume` did. Returns whether the pod was still assumed."""
    pod = assumed.pod
    is_ours = assumed_pods.get(pod.uid) is assumed
    if is_ours:
        assumed_pods.remove(pod.uid)
    engine.unreserve(pod, assumed.node_name)
    if is_ours and assumed.state is not AssumedPodState.RELEASED:
        engine.columns.displace(pod)
    return is_ours


logger = logging.getLogger(__name__)

CHECK_INTERVAL_S = 1.0


class PodUpdates(Protocol):
    """The event handler of pods."""

    def put(self, view: Pod) -> None: ...

    def forget(self, uid: str) -> None: ...


class RecordedPodUpdates:
    """Records what a lookup shows, and passes it to the event handler of pods."""

    def __init__(self, pods: PodUpdates, recording: Recording) -> None:
        self._pods = pods
        self._recording = recording

    def put(self, view: Pod) -> None:
        self._recording.changed(POD.resource, Change.MODIFIED, view)
        self._pods.put(view)

    def forget(self, uid: str) -> None:
        self._recording.forgotten(uid)
        self._pods.forget(uid)


class ExpiredPodChecker:
    """Looks up expired pods, and handles each as if the watch had reported it.

    This should never happen. It does if an event was lost, or if an extender reported a binding that it did not make.
    Without the lookup, the pod's resources would stay reserved and the pod would stay pending for ever.
    """

    def __init__(
        self,
        assumed_pods: AssumedPods,
        engine: Engine,
        queue: SchedulingQueue,
        pods: PodUpdates,
        client: Client,
        clock: Clock,
        event_buffer: EventBuffer,
    ) -> None:
        self._assumed_pods = assumed_pods
        self._engine = engine
        self._queue = queue
        self._pods = pods
        self._client = client
        self._clock = clock
        self._event_buffer = event_buffer

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            await self._clock.wait(CHECK_INTERVAL_S)
            for assumed in self._assumed_pods.expired(self._clock.now_s()):
                await self._look_up(assumed)

    async def _look_up(self, assumed: AssumedPod) -> None:
        pod = assumed.pod
        try:
            found = decode_as(Pod, await self._client.get(POD, pod.namespace, pod.name))
        except NotFoundError:
            found = None
        except (ClientError, ObjectError) as error:
            logger.warning(
                "pod %s is assumed on %s, has expired and could not be looked up: %s",
                pod.key,
                assumed.node_name,
                error,
                extra=fields(pod=pod.key, node=assumed.node_name, reason=error),
            )
            self._assumed_pods.bound(assumed, self._clock.now_s())
            return
        self._event_buffer.run(partial(self._settle, assumed, found))

    def _settle(self, assumed: AssumedPod, found: Pod | None) -> None:
        pod = assumed.pod
        if self._assumed_pods.get(pod.uid) is not assumed:
            return  # confirmed in the meantime
        logger.warning(
            "pod %s was assumed on %s, and the watch did not confirm it",
            pod.key,
            assumed.node_name,
            extra=fields(pod=pod.key, node=assumed.node_name),
        )
        if found is None or found.metadata.uid != pod.uid:
            self._pods.forget(pod.uid)
        elif found.spec.node_name:
            self._pods.put(found)
        else:
            self._forget(assumed)
            self._pods.put(found)

    def _forget(self, assumed: AssumedPod) -> None:
        pod = assumed.pod
        forget_assumed(self._engine, self._assumed_pods, assumed)
        left = copy(pod)
        pod.node_name = ""
        self._pods.forget(pod.uid)
        self._queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, left, None)
