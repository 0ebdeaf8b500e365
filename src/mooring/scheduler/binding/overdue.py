"""Assumptions whose confirmation never came: asked about, then confirmed or taken back.

Comes in   assumptions that the API server accepted, and the watch never told of
Goes out   the same as if the watch had told: the pod placed, back in the queue, or gone

It should never happen. When it does (an event was lost, an extender said that it had bound the pod and had not), the
room of the pod would be taken for ever, and the pod would wait for ever.
"""

from __future__ import annotations

import logging
from copy import copy
from functools import partial
from typing import Protocol

from mooring.api.decode import decode_as
from mooring.api.errors import ObjectError
from mooring.api.kinds import POD
from mooring.api.views.pod import Pod
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import Client
from mooring.kit.clock import Clock
from mooring.scheduler.binding.assumptions import Assumption, Assumptions
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_buffer import EventBuffer
from mooring.scheduler.framework.events import ASSIGNED_POD_DELETE
from mooring.scheduler.queue.queue import SchedulingQueue

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
