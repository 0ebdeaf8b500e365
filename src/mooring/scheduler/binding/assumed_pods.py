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
from mooring.client.interface import Client
from mooring.kit.clock import Clock
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_buffer import EventBuffer
from mooring.scheduler.framework.events import ASSIGNED_POD_DELETE
from mooring.scheduler.queue.queue import SchedulingQueue


class AssumptionState(Enum):
    BINDING = "binding"
    BOUND = "bound"
    RELEASED = "released"


class Assumption:
    """One believed placement."""

    __slots__ = ("due_s", "node_name", "pod", "state")

    def __init__(self, pod: PodInfo, node_name: str) -> None:
        self.pod = pod
        self.node_name = node_name
        self.state = AssumptionState.BINDING
        self.due_s = float("inf")

    def __repr__(self) -> str:
        return f"Assumption({self.pod.key} on {self.node_name}, {self.state.value})"


class Assumptions:
    """All believed placements, by the uid of the pod."""

    def __init__(self, overdue_s: float | None) -> None:
        self._overdue_s = overdue_s
        self._assumptions: dict[str, Assumption] = {}
        self._bound: dict[str, Assumption] = {}
        """Those that wait for their confirmation, in the order in which they are due."""

    def __len__(self) -> int:
        return len(self._assumptions)

    def __contains__(self, uid: str) -> bool:
        return uid in self._assumptions

    def get(self, uid: str) -> Assumption | None:
        return self._assumptions.get(uid)

    def add(self, pod: PodInfo, node_name: str) -> Assumption:
        assert pod.uid not in self._assumptions, f"{pod} is assumed already"
        assumption = self._assumptions[pod.uid] = Assumption(pod, node_name)
        return assumption

    def bound(self, assumption: Assumption, now_s: float) -> None:
        """The API server has accepted the binding; the watch should tell of it soon."""
        if self._assumptions.get(assumption.pod.uid) is not assumption:
            return  # the watch was faster than the answer
        if assumption.state is AssumptionState.RELEASED:
            self.remove(assumption.pod.uid)  # it is being deleted: nobody waits for it to be confirmed
            return
        assumption.state = AssumptionState.BOUND
        if self._overdue_s is not None:
            assumption.due_s = now_s + self._overdue_s
            self._bound[assumption.pod.uid] = assumption

    def remove(self, uid: str) -> Assumption | None:
        """Confirmed or forgotten: no assumption any more."""
        self._bound.pop(uid, None)
        return self._assumptions.pop(uid, None)

    def release(self, uid: str) -> None:
        """The pod is being deleted while its binding is under way: the columns do not count it any more."""
        self._assumptions[uid].state = AssumptionState.RELEASED

    def overdue(self, now_s: float) -> list[Assumption]:
        """Those that should have been confirmed by now. Each is told once; `bound` sets the next date."""
        found: list[Assumption] = []
        for assumption in self._bound.values():
            if assumption.due_s > now_s:
                break
            found.append(assumption)
        for assumption in found:
            del self._bound[assumption.pod.uid]
        return found

    @property
    def next_due_s(self) -> float | None:
        for assumption in self._bound.values():
            return assumption.due_s
        return None


logger = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0


class Watched(Protocol):
    """Where pods go that the watch tells of."""

    def put(self, view: Pod) -> None: ...

    def forget(self, uid: str) -> None: ...


class OverdueWatch:
    """Looks after assumptions that are not confirmed in time."""

    def __init__(
        self,
        assumptions: Assumptions,
        engine: Engine,
        queue: SchedulingQueue,
        pods: Watched,
        client: Client,
        clock: Clock,
        event_buffer: EventBuffer,
    ) -> None:
        self._assumptions = assumptions
        self._engine = engine
        self._queue = queue
        self._pods = pods
        self._client = client
        self._clock = clock
        self._event_buffer = event_buffer

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._clock.wait(LOOK_EVERY_S)
            for assumption in self._assumptions.overdue(self._clock.now_s()):
                await self._look_up(assumption)

    async def _look_up(self, assumption: Assumption) -> None:
        pod = assumption.pod
        try:
            found = decode_as(Pod, await self._client.get(POD, pod.namespace, pod.name))
        except NotFoundError:
            found = None
        except (ClientError, ObjectError) as error:
            logger.warning("pod %s is assumed on %s and overdue: %s", pod.key, assumption.node_name, error)
            self._assumptions.bound(assumption, self._clock.now_s())
            return
        self._event_buffer.run(partial(self._settle, assumption, found))

    def _settle(self, assumption: Assumption, found: Pod | None) -> None:
        pod = assumption.pod
        if self._assumptions.get(pod.uid) is not assumption:
            return  # confirmed meanwhile, after all
        logger.warning("pod %s was assumed on %s, which nobody confirmed", pod.key, assumption.node_name)
        if found is None or found.metadata.uid != pod.uid:
            self._pods.forget(pod.uid)
        elif found.spec.node_name:
            self._pods.put(found)
        else:
            self._take_back(assumption)
            self._pods.put(found)

    def _take_back(self, assumption: Assumption) -> None:
        pod = assumption.pod
        self._assumptions.remove(pod.uid)
        self._engine.unreserve(pod, assumption.node_name)
        self._engine.columns.displace(pod)
        left = copy(pod)
        pod.node_name = ""
        self._pods.forget(pod.uid)
        self._queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, left, None)
