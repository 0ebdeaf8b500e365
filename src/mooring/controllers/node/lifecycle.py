"""The node lifecycle controller detects nodes without heartbeats, and taints nodes by their conditions.

Inputs: nodes, leases and pods, from informers; the time. Outputs: conditions, taints and labels of nodes; pods
marked as not ready; events.

    node event ──> NoSchedule taints, labels                          (queue)
    each monitor period ──> health of nodes ──> zones ──> rates
                                 └──> queue of a zone ──> NoExecute taint, at the rate of the zone

1. A pass checks the nodes that changed, whose grace period ends, or that are unhealthy. For a healthy node with a
   renewed lease only the time is recorded: thousands renew between two passes.
2. The taint eviction controller evicts pods. The rate of tainting limits the rate of evictions.
3. An index finds the pods of a node.
"""

from __future__ import annotations

import asyncio
import logging
from typing import ClassVar

from mooring.api.decode import decode_as
from mooring.api.kinds import NODE
from mooring.api.views.meta import ObjectReference, find_condition
from mooring.api.views.node import Lease, Node
from mooring.api.views.pod import Pod
from mooring.api.well_known import NODE_LEASE_NAMESPACE
from mooring.client.errors import ClientError, ConflictError
from mooring.controllers.context import DONE, Controller, ControllerContext, Outcome
from mooring.controllers.node.health import (
    NOT_READY,
    REACHABLE,
    READY,
    TRUE,
    UNREACHABLE,
    GracePeriods,
    HealthUpdate,
    NodeHealth,
    NodeWriter,
    evaluate_health,
    has_taint,
    is_renewed,
    labels_to_set,
    mark_pods_not_ready,
    no_execute_change,
    no_schedule_change,
)
from mooring.controllers.node.zones import ClusterTransition, EvictionRates, TimedQueue, Zones, zone_of
from mooring.controllers.pods import BY_NODE, add_node_index
from mooring.kit.clock import format_rfc3339
from mooring.kit.heap import KeyedHeap
from mooring.kit.tasks import TaskGroup, run_bounded

COMPONENT = "node-controller"
LABEL_WORKERS = 8
NODES_AT_ONCE = 8
TAINTING_PERIOD_S = 0.1
HEALTH_TRIES_MAX = 5
HEALTH_RETRY_S = 0.02
TAINT_RETRY_S = 0.05

logger = logging.getLogger(__name__)


class NodeLifecycleController(Controller):
    """Keys are nodes whose taints or labels have to change. A monitor checks the health."""

    name: ClassVar[str] = "node-lifecycle-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        settings = context.settings
        self.workers = LABEL_WORKERS
        self._recorder = context.recorder(COMPONENT)
        self._writer = NodeWriter(context.client, context.clock, context.entropy.fork(self.name))
        self._periods = GracePeriods(settings.node_monitor_grace_period_s, settings.node_startup_grace_period_s)
        self._zones = Zones(
            EvictionRates(
                settings.node_eviction_rate,
                settings.secondary_node_eviction_rate,
                settings.large_cluster_size_threshold,
                settings.unhealthy_zone_threshold,
            )
        )
        self._to_taint: dict[str, TimedQueue] = {}
        self._has_to_taint = asyncio.Event()
        self._health: dict[str, NodeHealth] = {}
        self._known: dict[str, Node] = {}
        self._dirty_nodes: dict[str, None] = {}
        self._renewed: dict[str, Lease] = {}
        self._healthy_until: KeyedHeap[str, float] = KeyedHeap(float)
        """All healthy nodes, with a time before which they cannot become unhealthy."""
        self._pods_to_retry: dict[str, None] = {}
        self._wall_offset_s = context.clock.wall_s() - context.clock.now_s()
        self._pod_queue = context.queue(f"{self.name} pods")
        self._nodes = context.informers.informer(Node)
        self._leases = context.informers.informer(Lease)
        self._pods = context.informers.informer(Pod)
        add_node_index(self._pods)
        self.handle_changes(self._nodes, self._on_node, self._on_node_deleted)
        self._leases.add_handler(self.name, on_add=self._on_lease_added, on_update=self._on_lease_updated)
        self._pods.add_handler(self.name, on_add=self._on_pod_added, on_update=self._on_pod_updated)

    def start(self, group: TaskGroup) -> None:
        super().start(group)
        group.start_background(self._monitor(), name=f"{self.name} monitor")
        group.start_background(self._taint(), name=f"{self.name} tainting")
        group.start_background(self._mark_late_pods(), name=f"{self.name} late pods")

    def stop(self) -> None:
        super().stop()
        self._pod_queue.shut_down()

    # ----------------------------------------------------------------------------------------------- events

    def _on_node(self, node: Node) -> None:
        self._dirty_nodes[node.metadata.name] = None
        if no_schedule_change(node) or labels_to_set(node):
            self.queue.add(node.metadata.name)

    def _on_node_deleted(self, node: Node) -> None:
        name = node.metadata.name
        self._dirty_nodes[name] = None
        self._pods_to_retry.pop(name, None)

    def _on_lease_added(self, lease: Lease) -> None:
        if lease.metadata.namespace == NODE_LEASE_NAMESPACE:
            self._dirty_nodes[lease.metadata.name] = None

    def _on_lease_updated(self, old: Lease, new: Lease) -> None:
        if new.metadata.namespace == NODE_LEASE_NAMESPACE and is_renewed(old, new):
            self._renewed[new.metadata.name] = new
        else:
            self._on_lease_added(new)

    def _on_pod_added(self, pod: Pod) -> None:
        health = self._health.get(pod.spec.node_name)
        # The monitor marks the pods of a node when it becomes unhealthy. This is for pods that arrive later.
        if health is not None and health.ready is not None and not health.is_ready:
            self._pod_queue.add(pod.key)

    def _on_pod_updated(self, old: Pod, new: Pod) -> None:
        if old.spec.node_name != new.spec.node_name:
            self._on_pod_added(new)

    # ------------------------------------------------------------------------- NoSchedule taints and labels

    async def sync(self, key: str) -> Outcome:
        node = self._nodes.lister.get("", key)
        if node is None:
            return DONE
        if change := no_schedule_change(node):
            await self._writer.change_taints(key, change)
        if labels := labels_to_set(node):
            await self._writer.set_labels(key, labels)
        return DONE

    # ---------------------------------------------------------------------------------------------- monitor

    async def _monitor(self) -> None:
        while True:
            await self._monitor_nodes()
            await self.clock.wait(self.context.settings.node_monitor_period_s)

    async def _monitor_nodes(self) -> None:
        now_s = self._now_s()
        while (due := self._healthy_until.peek()) is not None and due[1] < now_s:
            self._healthy_until.pop()
            self._dirty_nodes[due[0]] = None
        self._record_renewals(now_s)
        names, self._dirty_nodes = [*self._dirty_nodes], {}
        nodes = []
        for name in names:
            node = self._nodes.lister.get("", name)
            known = self._known.get(name)
            if node is not None:
                if known is not None and node.metadata.uid != known.metadata.uid:
                    self._health.pop(name, None)
                await self._add_node(node)
                nodes.append(node)
            elif known is not None:
                self._forget(known)
        await run_bounded(self._monitor_node, nodes, limit=NODES_AT_ONCE, name=f"{self.name} pass")
        await self._update_zones()

    def _record_renewals(self, now_s: float) -> None:
        """A healthy node with a renewed lease stays healthy. No further check is needed."""
        renewed, self._renewed = self._renewed, {}
        for name, lease in renewed.items():
            if name in self._healthy_until and name not in self._dirty_nodes:
                self._health[name] = NodeHealth(now_s, self._health[name].ready, lease)
            else:
                self._dirty_nodes[name] = None

    async def _add_node(self, node: Node) -> None:
        name = node.metadata.name
        self._add_zone(zone_of(node))
        if name not in self._known:
            self._record_event(node, "RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")
            await self._try_make_reachable(node)
        self._known[name] = node

    def _forget(self, node: Node) -> None:
        name = node.metadata.name
        self._record_event(node, "RemovingNode", f"Node {name} event: Removing Node {name} from Controller")
        del self._known[name]
        self._zones.forget(name)
        self._health.pop(name, None)
        self._healthy_until.delete(name)
        queue = self._to_taint.get(zone_of(node))
        if queue is not None:
            queue.remove(name)

    async def _monitor_node(self, node: Node) -> None:
        name = node.metadata.name
        health_update = await self._update_health(node)
        if health_update is None:
            self._dirty_nodes[name] = None
            return
        is_ready = health_update.ready_status == TRUE
        self._zones.count(node, is_ready)
        if health_update.ready_status is not None:
            await self._sync_no_execute_taint(node, health_update.ready_status)
            await self._mark_pods(node, health_update)
        if is_ready and name not in self._pods_to_retry:
            self._healthy_until.put(name, health_update.unhealthy_after_s)
            if health_update.health.lease is None and self._leases.lister.get(NODE_LEASE_NAMESPACE, name) is not None:
                self._dirty_nodes[name] = None  # the next pass treats the lease as renewed and counts from then
        else:
            self._healthy_until.delete(name)
            self._dirty_nodes[name] = None  # check it until it is healthy

    async def _update_health(self, node: Node) -> HealthUpdate | None:
        """Check and write the health of a node. None if it could not be written."""
        name = node.metadata.name
        for _ in range(HEALTH_TRIES_MAX):
            lease = self._leases.lister.get(NODE_LEASE_NAMESPACE, name)
            stamp = format_rfc3339(self.clock.wall_s())
            known = self._health.get(name)
            health_update = evaluate_health(node, lease, known, self._periods, now_s=self._now_s(), stamp=stamp)
            try:
                if health_update.conditions:
                    metadata = node.metadata
                    await self._writer.set_conditions(
                        name, metadata.uid, metadata.resource_version, health_update.conditions
                    )
                self._health[name] = health_update.health
                return health_update
            except ConflictError:
                await self.clock.wait(HEALTH_RETRY_S)
            except ClientError as error:
                logger.warning("failed to write the health of node %s: %s", name, error)
                return None
            try:
                node = decode_as(Node, await self.client.get(NODE, "", name))
            except ClientError:
                return None
        return None

    async def _sync_no_execute_taint(self, node: Node, ready_status: str) -> None:
        change = no_execute_change(ready_status)
        try:
            if change is None:
                await self._make_reachable(node)
            elif has_taint(node.spec.taints, change.removed[0]):
                await self._writer.change_taints(node.metadata.name, change)
            else:
                self._queue_taint(node, is_tainted=has_taint(node.spec.taints, change.added[0]))
        except ClientError as error:
            logger.warning("failed to change the taints of node %s: %s", node.metadata.name, error)
            self._dirty_nodes[node.metadata.name] = None

    def _queue_taint(self, node: Node, *, is_tainted: bool) -> None:
        queue = self._to_taint[zone_of(node)]
        if not is_tainted:
            queue.remove(node.metadata.name)
        if queue.add(node.metadata.name):
            self._has_to_taint.set()

    async def _make_reachable(self, node: Node) -> None:
        """Raises `ClientError`."""
        if has_taint(node.spec.taints, UNREACHABLE) or has_taint(node.spec.taints, NOT_READY):
            await self._writer.change_taints(node.metadata.name, REACHABLE)
        self._to_taint[zone_of(node)].remove(node.metadata.name)

    async def _try_make_reachable(self, node: Node) -> None:
        try:
            await self._make_reachable(node)
        except ClientError as error:
            logger.warning("failed to remove the taints of node %s: %s", node.metadata.name, error)

    async def _mark_pods(self, node: Node, health_update: HealthUpdate) -> None:
        name = node.metadata.name
        became_not_ready = health_update.was_ready and health_update.ready_status != TRUE
        if became_not_ready:
            self._record_event(node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
        is_retried = name in self._pods_to_retry and not health_update.was_ready
        self._pods_to_retry.pop(name, None)
        if became_not_ready or is_retried:
            pods = self._pods.lister.by_index(BY_NODE, name)
            if await mark_pods_not_ready(self.client, self._recorder, self.clock, pods):
                self._pods_to_retry[name] = None

    # ------------------------------------------------------------------------------------------------ zones

    def _add_zone(self, zone: str) -> None:
        if self._zones.is_known(zone):
            return
        self._zones.add(zone)
        rate_per_s = self.context.settings.node_eviction_rate
        if zone in self._to_taint:
            self._to_taint[zone].set_rate(rate_per_s)
        else:
            self._to_taint[zone] = TimedQueue(self.clock, rate_per_s)

    async def _update_zones(self) -> None:
        update = self._zones.update_states()
        if update.transition is ClusterTransition.ALL_DOWN:
            logger.warning("no node is ready: no pods are evicted until one is")
            for node in self._nodes.lister:
                if node.metadata.name in self._known:
                    await self._try_make_reachable(node)
        elif update.transition is ClusterTransition.SOME_READY_AGAIN:
            logger.warning("some nodes are ready again: every node gets another grace period")
            now_s = self._now_s()
            self._health = {
                name: NodeHealth(now_s, health.ready, health.lease) for name, health in self._health.items()
            }
            self._dirty_nodes.update(dict.fromkeys(self._known))
        for zone, rate_per_s in update.rates_per_s.items():
            self._to_taint[zone].set_rate(rate_per_s)

    # ------------------------------------------------------------------------------------- NoExecute taints

    async def _taint(self) -> None:
        while True:
            await self._has_to_taint.wait()
            # Wait first: the same pass may find so many unhealthy nodes that none is tainted.
            await self.clock.wait(TAINTING_PERIOD_S)
            for queue in list(self._to_taint.values()):
                await queue.handle(self._taint_node)
            if not any(self._to_taint.values()):
                self._has_to_taint.clear()

    async def _taint_node(self, name: str) -> float | None:
        node = self._nodes.lister.get("", name)
        if node is None:
            return None
        ready = find_condition(node.status.conditions, READY)
        if ready is None:
            return TAINT_RETRY_S
        change = no_execute_change(ready.status)
        if change is None:
            return None
        try:
            await self._writer.change_taints(name, change)
        except ClientError as error:
            logger.warning("failed to taint node %s: %s", name, error)
            return 0.0
        return None

    # ------------------------------------------------------------------------------- pods that arrive later

    async def _mark_late_pods(self) -> None:
        while (key := await self._pod_queue.get()) is not None:
            pod = self._pods.lister.by_key(key)
            health = self._health.get(pod.spec.node_name) if pod is not None else None
            is_done = True
            if pod is not None and health is not None and not health.is_ready:
                is_done = not await mark_pods_not_ready(self.client, self._recorder, self.clock, [pod])
            if is_done:
                self._pod_queue.forget(key)
            else:
                self._pod_queue.add_rate_limited(key)
            self._pod_queue.done(key)

    # ---------------------------------------------------------------------------------------------- helpers

    def _now_s(self) -> float:
        """Seconds since 1970 that never go back: a change of the wall clock must not make all nodes unhealthy."""
        return self._wall_offset_s + self.clock.now_s()

    def _record_event(self, node: Node, reason: str, message: str) -> None:
        metadata = node.metadata
        reference = ObjectReference(api_version="v1", kind="Node", name=metadata.name, uid=metadata.uid)
        self._recorder.event(reference, "Normal", reason, message)
