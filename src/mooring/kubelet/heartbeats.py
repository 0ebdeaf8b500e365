"""Heartbeats: that all nodes are alive, told often enough and spread over time.

Comes in   nodes that join and leave; nodes of which the API believes something wrong
Goes out   renewed leases (each `lease_period_s`), node statuses (each `status_period_s`, or when they are wrong)

 1. The nodes renew their leases one after the other, evenly over the period, so that the API server hears a murmur and
    not a shout. One alarm serves them all, at most each `TICK_S`.
 2. A silent node is passed over, and keeps its turn.
 3. A lease that is not there is made; a node that is not there any more has none renewed.
 4. A node that somebody takes for lost (its conditions are not ours) says at its next turn, or within `CORRECTION_S`,
    that it is not.
"""

from __future__ import annotations

import logging
from heapq import heappop, heappush

from mooring.api.kinds import LEASE, NODE
from mooring.client.errors import AlreadyExistsError, ClientError, NotFoundError
from mooring.client.interface import Client, PatchForm
from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.node_state import FleetNode
from mooring.kubelet.node_status import LEASE_NAMESPACE, heartbeat_patch, is_well, lease_body, renewal_patch
from mooring.kubelet.settings import FleetSettings
from mooring.kubelet.timers import Alarms
from mooring.kubelet.write_queue import Outbox

TICK_S = 0.1
CORRECTION_S = 1.0
RETRY_S = 2.0
REFUSED_S = 30.0
GOLDEN_RATIO = 0.618034
LEASES, STATUSES = "leases", "node statuses"

logger = logging.getLogger(__name__)


class Heartbeats:
    """Of all nodes of a fleet."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        alarms: Alarms,
        settings: FleetSettings,
    ) -> None:
        self._client = client
        self._clock = clock
        self._alarms = alarms
        self._settings = settings
        self._nodes: dict[str, FleetNode] = {}
        self._due: list[tuple[float, int, str, str]] = []  # when, a number that keeps the order, which node, what
        self._number = 0
        in_flight_max = settings.node_writes_in_flight_max
        self._leases: Outbox[str] = Outbox(LEASES, self._renew, clock, alarms, in_flight_max=in_flight_max)
        self._statuses: Outbox[str] = Outbox(STATUSES, self._tell_status, clock, alarms, in_flight_max=in_flight_max)

    def start(self, group: TaskGroup) -> None:
        self._leases.start(group)
        self._statuses.start(group)

    def add(self, node: FleetNode) -> None:
        """From now on, say that it is alive; for the first time at once."""
        if node.name in self._nodes:
            return
        self._nodes[node.name] = node
        self._leases.put(node.name)
        # Where it stands in the fleet decides when its turn is, not when it came: they all come at once.
        share, now_s = _share(node.index, self._settings.count), self._clock.now_s()
        for what, period_s in ((LEASES, self._settings.lease_period_s), (STATUSES, self._settings.status_period_s)):
            self._push(now_s + (share * period_s - now_s) % period_s, node.name, what)
        self._wind()

    def remove(self, node: FleetNode) -> None:
        self._nodes.pop(node.name, None)

    def correct(self, node: FleetNode) -> None:
        """The API believes something else of it: say how it is."""
        if node.name in self._nodes:
            self._statuses.put_after(node.name, CORRECTION_S)

    def wake(self, node: FleetNode) -> None:
        """It was silent, and is not any more."""
        self._leases.put(node.name)
        self._statuses.put(node.name)

    def statistics(self) -> dict[str, dict[str, int]]:
        return {LEASES: self._leases.statistics(), STATUSES: self._statuses.statistics()}

    # -------------------------------------------------------------------------------------------- whose turn

    def _push(self, due_s: float, name: str, what: str) -> None:
        self._number += 1
        heappush(self._due, (due_s, self._number, name, what))

    def _wind(self) -> None:
        if self._due:
            delay_s = max(TICK_S, self._due[0][0] - self._clock.now_s())
            self._alarms.set("heartbeats", delay_s, self._ring)

    def _ring(self) -> None:
        now_s = self._clock.now_s() + TICK_S / 2
        while self._due and self._due[0][0] <= now_s:
            due_s, _, name, what = heappop(self._due)
            node = self._nodes.get(name)
            if node is None:
                continue
            is_lease = what == LEASES
            self._push(due_s + self._period_s(is_lease), name, what)
            if not node.is_silenced:
                (self._leases if is_lease else self._statuses).put(name)
        self._wind()

    def _period_s(self, is_lease: bool) -> float:
        return self._settings.lease_period_s if is_lease else self._settings.status_period_s

    # ------------------------------------------------------------------------------------------------ telling

    async def _renew(self, name: str) -> float | None:
        node = self._nodes.get(name)
        if node is None or node.is_silenced:
            return None
        patch = renewal_patch(self._clock.wall_s())
        try:
            await self._client.patch(LEASE, LEASE_NAMESPACE, name, patch, form=PatchForm.MERGE)
        except NotFoundError:
            return await self._create_lease(node)
        except ClientError as error:
            return _retry_s(error, f"the lease of {name}")
        return None

    async def _create_lease(self, node: FleetNode) -> float | None:
        body = lease_body(node, self._settings, self._clock.wall_s())
        try:
            await self._client.create(LEASE, LEASE_NAMESPACE, body, is_answer_wanted=False)
        except AlreadyExistsError:
            return None
        except NotFoundError:
            return RETRY_S  # the namespace is made by the API server, some time after its start
        except ClientError as error:
            return _retry_s(error, f"the lease of {node.name}")
        return None

    async def _tell_status(self, name: str) -> float | None:
        node = self._nodes.get(name)
        if node is None or node.is_silenced or node.view is None:
            return None
        patch = heartbeat_patch(node, self._settings, self._clock.wall_s())
        try:
            await self._client.patch(NODE, "", name, patch, form=PatchForm.STRATEGIC, subresource="status")
        except NotFoundError:
            return None
        except ClientError as error:
            return _retry_s(error, f"the status of node {name}")
        return None


def needs_correction(node: FleetNode) -> bool:
    """Whether the API believes of a node what its kubelet would not say."""
    return not node.is_silenced and node.view is not None and not is_well(node)


def _share(index: int, count: int) -> float:
    """Where in a period a node has its turn, from 0 to 1. The golden ratio spreads any number of adopted nodes."""
    return index / count if index < count else index * GOLDEN_RATIO % 1.0


def _retry_s(error: ClientError, what: str) -> float:
    if error.can_help_to_retry:
        return RETRY_S
    logger.warning("%s is refused: %s", what, error)
    return REFUSED_S
