"""All kubelets of a process: they register nodes, keep them alive, and run the pods that are bound to them.

   watch of pods ───> PodSink ──> PodWorker ──> Runtime ──> PodWorker ──> WriteQueue ──> StatusManager ──> API
   watch of nodes ──> NodeSink ─> Heartbeats ────────────────────────────────────────────────────────────> API

1. There is no task per node or per pod: only tasks for the two watches and for the writers, and one timer.
2. A node belongs to this process if its settings name it, or if it has the annotation `mooring.dev/simulated`. A pod
   belongs to this process if its node does.
3. A pod waits until its node is known: admission reads the Node object.
4. A node that a user deletes is not registered again. Its pods run until they are deleted, as with a real kubelet.
5. After a restart simulated containers keep running; the process runtime starts its containers again.
6. The pod watch skips pods without a node, and events for the kubelets' own status writes. After a relist, pods and
   nodes that are missing are gone. New pods are handled oldest first.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD, RESOURCE_SLICE
from mooring.api.views.meta import ObjectReference
from mooring.api.views.node import Node
from mooring.client.batch_writes import batch_max
from mooring.client.errors import AlreadyExistsError, BadRequestError, ClientError
from mooring.client.events import CoreFormat, EventType, EventWriter
from mooring.client.interface import Change, Client, PatchForm, WatchEvent
from mooring.client.reflector import Reflector
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.container_logs import log_attempt, log_error
from mooring.kubelet.node_state import NodeState
from mooring.kubelet.node_status import (
    SILENT_ANNOTATION,
    SIMULATED_ANNOTATION,
    Heartbeats,
    needs_correction,
    node_document,
    node_resources,
    resource_slices,
    resources_patch,
)
from mooring.kubelet.pod_worker import PodWorker, WorkerContext
from mooring.kubelet.runtime import ContainerState, LogRequest, Runtime, RuntimeContext, RuntimeFactory
from mooring.kubelet.settings import KubeletSettings
from mooring.kubelet.simulated.runtime import SimulatedRuntime
from mooring.kubelet.simulated.stage_file import load_stage_sets
from mooring.kubelet.status_manager import OwnWrites, StatusManager
from mooring.kubelet.timers import Timers
from mooring.kubelet.views import KubeletPod
from mooring.kubelet.write_queue import WRITES_PER_TURN, WriteQueue, one_by_one

_HAS_NODE = b'"nodeName":"'
REGISTRATION_RETRY_S = 2.0

logger = logging.getLogger(__name__)


class WatchHandler(Protocol):
    """Receives the nodes and pods of the watches."""

    def node_changed(self, name: str, view: Node | None) -> None: ...

    def known_node_names(self) -> Sequence[str]: ...

    def pod_changed(self, pod: KubeletPod) -> None: ...

    def pod_gone(self, pod: KubeletPod) -> None: ...

    def latest_pods(self) -> Sequence[KubeletPod]: ...


class NodeSink:
    """The reflector sink of the node watch."""

    def __init__(self, handler: WatchHandler) -> None:
        self._handler = handler

    def replace(self, views: Sequence[Node], revision: str) -> None:
        present = {view.metadata.name for view in views}
        for name in self._handler.known_node_names():
            if name not in present:
                self._handler.node_changed(name, None)
        for view in views:
            self._handler.node_changed(view.metadata.name, view)

    def apply(self, change: Change, view: Node) -> None:
        self._handler.node_changed(view.metadata.name, None if change is Change.DELETED else view)


class PodSink:
    """The reflector sink of the pod watch."""

    def __init__(self, handler: WatchHandler, own_writes: OwnWrites) -> None:
        self._handler = handler
        self._own_writes = own_writes

    def is_wanted(self, event: WatchEvent) -> bool:
        """Filters raw events before they are decoded, because decoding a pod is expensive."""
        return not self._own_writes.take(event.revision) and _HAS_NODE in event.raw

    def replace(self, views: Sequence[KubeletPod], revision: str) -> None:
        present = {view.metadata.uid for view in views}
        for pod in self._handler.latest_pods():
            if pod.metadata.uid not in present:
                self._handler.pod_gone(pod)
        for view in sorted(views, key=_age):
            if view.spec.node_name:
                self._handler.pod_changed(view)

    def apply(self, change: Change, view: KubeletPod) -> None:
        if not view.spec.node_name:
            return
        if change is Change.DELETED:
            self._handler.pod_gone(view)
        else:
            self._handler.pod_changed(view)


def _age(pod: KubeletPod) -> tuple[str, str]:
    return (pod.metadata.creation_timestamp or "", pod.key)


class Kubelets:
    """All kubelets of a process. `run` returns when it is cancelled."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        entropy: Entropy,
        settings: KubeletSettings,
        make_runtime: RuntimeFactory | None = None,
    ) -> None:
        """The runtime is simulated unless `make_runtime` returns another one."""
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._settings = settings
        self._nodes: dict[str, NodeState] = {}
        self._indexes_used = 0
        self._workers: dict[str, PodWorker] = {}
        self._silenced: dict[str, None] = {}
        self._timers = Timers(clock)
        self._events = EventWriter(client, clock, entropy.fork("events"), CoreFormat())
        self._recorder = self._events.recorder("kubelet")
        self._runtime = self._new_runtime(make_runtime)
        self._heartbeats = Heartbeats(client, clock, self._timers, settings)
        self._own_writes = OwnWrites()
        writer = StatusManager(client, self._workers, self._own_writes)
        in_flight_max = settings.pod_writes_in_flight_max
        self._statuses: WriteQueue[str] = WriteQueue(
            "pod statuses",
            writer.send,
            clock,
            self._timers,
            in_flight_max=in_flight_max,
            keys_max=batch_max(client, WRITES_PER_TURN),
        )
        self._registrations: WriteQueue[str] = WriteQueue(
            "registrations",
            one_by_one(self._register),
            clock,
            self._timers,
            in_flight_max=settings.node_writes_in_flight_max,
        )
        self._slices: WriteQueue[str] = WriteQueue(
            "resource slices",
            one_by_one(self._publish_devices),
            clock,
            self._timers,
            in_flight_max=settings.node_writes_in_flight_max,
        )
        self._worker_context = WorkerContext(
            self._runtime, clock, self._timers, self._statuses.add, self._record_event, self._resources_released
        )
        self._own_names = frozenset(settings.node_names())
        for name in settings.node_names():
            self._new_node(name)

    def _new_runtime(self, make_runtime: RuntimeFactory | None) -> Runtime:
        clock, entropy, timers = self._clock, self._entropy, self._timers
        if make_runtime is None:
            # The name "lives" selects the random stream: another name would change all recorded runs.
            return SimulatedRuntime(load_stage_sets(self._settings.stages), clock, entropy.fork("lives"), timers, self)
        resources = node_resources(self._settings.shape)
        return make_runtime(
            RuntimeContext(self._client, clock, entropy.fork("runtime"), timers, self, self._record_event, resources)
        )

    async def run(self) -> None:
        """Run until cancelled."""
        nodes, pods = NodeSink(self), PodSink(self, self._own_writes)
        try:
            async with self._runtime.opened(), TaskGroup("kubelets") as group:
                self._events.start(group)
                self._heartbeats.start(group)
                self._statuses.start(group)
                self._registrations.start(group)
                self._slices.start(group)
                node_reflector = self._reflector("nodes", nodes)
                group.start(node_reflector.run(), name="nodes")
                await node_reflector.wait_synced()
                for node in self._nodes.values():
                    if node.view is None:
                        self._registrations.add(node.name)
                self._report_limitations()
                pod_reflector: Reflector[KubeletPod] = Reflector(
                    self._client,
                    POD,
                    self._runtime.pod_view,
                    pods,
                    clock=self._clock,
                    entropy=self._entropy.fork("pods"),
                    is_wanted=pods.is_wanted,
                )
                group.start(pod_reflector.run(), name="pods")
                await pod_reflector.wait_synced()
                self._runtime.remove_all_except({pod.metadata.uid for pod in self.latest_pods()})
        finally:
            self._timers.close()

    def _reflector(self, name: str, sink: NodeSink) -> Reflector[Node]:
        return Reflector(self._client, NODE, Node, sink, clock=self._clock, entropy=self._entropy.fork(name))

    # Callers

    def silence(self, name: str) -> None:
        """The node stops sending heartbeats and statuses and ignores changes until `resume`. Its containers keep
        running."""
        node = self._node(name)
        self._silenced[name] = None
        self._update_silence(node)

    def resume(self, name: str) -> None:
        """The node sends heartbeats again and catches up with changes."""
        node = self._node(name)
        self._silenced.pop(name, None)
        self._update_silence(node)

    def add(self, name: str) -> None:
        """Register one more node."""
        if name not in self._nodes:
            self._new_node(name)
            self._registrations.add(name)

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(self._nodes)

    def has_node(self, name: str) -> bool:
        """Whether a node belongs to this process."""
        return name in self._nodes

    async def logs(self, pod: Document, container: str, options: LogRequest) -> AsyncGenerator[bytes, None]:
        """The log of a container, for `kubectl logs`. Raises `BadRequestError`."""
        error = log_error(pod, container, is_previous=options.is_previous)
        if error:
            raise BadRequestError(error)
        attempt = log_attempt(pod, container, is_previous=options.is_previous)
        return self._runtime.logs(pod["metadata"]["uid"], container, attempt, options)

    def statistics(self) -> dict[str, object]:
        return {
            "nodes": len(self._nodes),
            "nodes_silent": sum(node.is_silent for node in self._nodes.values()),
            "pods": len(self._workers),
            "alarms": len(self._timers),
            "pod_statuses": self._statuses.statistics(),
            **self._heartbeats.statistics(),
        }

    # Nodes

    def node_changed(self, name: str, view: Node | None) -> None:
        """The Node object changed, or was deleted (None)."""
        node = self._nodes.get(name)
        if node is None:
            if view is None or not self._is_given_to_us(view):
                return
            node = self._new_node(name)
        is_new = node.view is None
        node.observe(view)
        if view is None:
            self._heartbeats.remove(node)
            return
        if is_new and self._settings.kind_of(name, node.index)[0].devices:
            self._slices.add(name)
        self._update_silence(node)
        self._heartbeats.add(node)
        if is_new and name in self._own_names and resources_patch(node, self._settings):
            self._heartbeats.correct_resources(node)
        if needs_correction(node, self._settings):
            self._heartbeats.correct(node)
        self._start_waiting_pods(node)

    def known_node_names(self) -> tuple[str, ...]:
        """Nodes that exist in the API."""
        return tuple(name for name, node in self._nodes.items() if node.view is not None)

    def _is_given_to_us(self, view: Node) -> bool:
        """Whether to adopt a Node object that another client created. The process runtime adopts none: it would run the
        pods of other nodes on this machine."""
        return not self._runtime.is_real and view.metadata.annotations.get(SIMULATED_ANNOTATION) == "true"

    def _new_node(self, name: str) -> NodeState:
        host = self._settings.host
        address = host.address if host is not None else ""
        node = self._nodes[name] = NodeState(name, self._indexes_used, address)
        self._indexes_used += 1
        return node

    def _node(self, name: str) -> NodeState:
        node = self._nodes.get(name)
        if node is None:
            raise KeyError(f"node {name!r} does not belong to this process")
        return node

    async def _register(self, name: str) -> float | None:
        node = self._nodes[name]
        if node.view is not None or node.is_registered:
            return None
        body = node_document(node, self._settings, self._clock.wall_s())
        try:
            await self._client.create(NODE, "", body, is_answer_wanted=False)
        except AlreadyExistsError:
            return None
        except ClientError as error:
            logger.warning("registering node %s failed: %s", name, error)
            return REGISTRATION_RETRY_S
        return None

    async def _publish_devices(self, name: str) -> float | None:
        """Create or update the ResourceSlices of a node."""
        node = self._nodes[name]
        if node.view is None:
            return None
        for resource_slice in resource_slices(node, self._settings):
            try:
                await self._publish_slice(resource_slice)
            except ClientError as error:
                logger.warning("publishing the devices of node %s failed: %s", name, error)
                return REGISTRATION_RETRY_S
        return None

    async def _publish_slice(self, resource_slice: Document) -> None:
        try:
            await self._client.create(RESOURCE_SLICE, "", resource_slice, is_answer_wanted=False)
        except AlreadyExistsError:
            slice_name = resource_slice["metadata"]["name"]
            found: Document = msgspec.json.decode(await self._client.get(RESOURCE_SLICE, "", slice_name))
            if found["spec"].get("devices", []) == resource_slice["spec"]["devices"]:
                return
            pool = {**resource_slice["spec"]["pool"], "generation": found["spec"]["pool"]["generation"] + 1}
            patch = {"spec": {"devices": resource_slice["spec"]["devices"], "pool": pool}}
            await self._client.patch(RESOURCE_SLICE, "", slice_name, patch, form=PatchForm.MERGE)

    def _report_limitations(self) -> None:
        """Log what the runtime cannot do on this machine, and record it as an event of each node."""
        limitations = self._runtime.limitations
        if not limitations:
            return
        logger.warning("%s", limitations)
        for name in self._nodes:
            # As in Kubernetes, events of a kubelet use the node name as the uid.
            about = ObjectReference(api_version=NODE.api_version, kind=NODE.kind, name=name, uid=name)
            self._recorder.event(about, "Warning", "LimitsNotEnforced", limitations)

    def _update_silence(self, node: NodeState) -> None:
        annotations = node.view.metadata.annotations if node.view is not None else {}
        is_silent = node.name in self._silenced or annotations.get(SILENT_ANNOTATION) == "true"
        was_silenced, node.is_silent = node.is_silent, is_silent
        if was_silenced and not is_silent:
            self._heartbeats.resume(node)
            self._catch_up(node)

    def _catch_up(self, node: NodeState) -> None:
        """Apply what happened to the pods of a node while it was silent."""
        for uid in list(node.worker_uids):
            worker = self._workers[uid]
            if uid not in node.pods_by_uid:
                self._remove_worker(worker)
            else:
                worker.last_status = b""
                self._statuses.add(uid)
        for pod in list(node.pods_by_uid.values()):
            self._observe_pod(node, pod)

    # Pods

    def pod_changed(self, pod: KubeletPod) -> None:
        """The Pod object changed."""
        node = self._nodes.get(pod.spec.node_name)
        if node is None:
            return
        node.pods_by_uid[pod.metadata.uid] = pod
        self._observe_pod(node, pod)

    def pod_gone(self, pod: KubeletPod) -> None:
        """The Pod object was deleted."""
        node = self._nodes.get(pod.spec.node_name)
        if node is None:
            return
        node.pods_by_uid.pop(pod.metadata.uid, None)
        worker = self._workers.get(pod.metadata.uid)
        if worker is not None and not node.is_silent:
            self._remove_worker(worker)

    def latest_pods(self) -> list[KubeletPod]:
        """All pods of nodes of this process."""
        return [pod for node in self._nodes.values() for pod in node.pods_by_uid.values()]

    def container_changed(self, pod_uid: str, container: str, attempt: int, state: ContainerState) -> None:
        """Called by the runtime."""
        worker = self._workers.get(pod_uid)
        if worker is not None:
            worker.container_changed(container, attempt, state)

    def _observe_pod(self, node: NodeState, pod: KubeletPod) -> None:
        if node.view is None or node.is_silent or not node.allocatable:
            return  # a node without allocatable resources cannot admit pods
        worker = self._workers.get(pod.metadata.uid)
        if worker is not None:
            worker.update(pod)
            return
        worker = self._workers[pod.metadata.uid] = PodWorker(pod, node, self._worker_context)
        node.worker_uids[pod.metadata.uid] = None
        worker.begin()

    def _start_waiting_pods(self, node: NodeState) -> None:
        """Start pods that were seen before their node, oldest first."""
        waiting = [pod for uid, pod in node.pods_by_uid.items() if uid not in self._workers]
        for pod in sorted(waiting, key=lambda pod: pod.metadata.creation_timestamp or ""):
            self._observe_pod(node, pod)

    def _remove_worker(self, worker: PodWorker) -> None:
        del self._workers[worker.uid]
        del worker.node.worker_uids[worker.uid]
        worker.remove()

    def _resources_released(self, node: NodeState) -> None:
        for uid in node.worker_uids:
            self._workers[uid].consider_resize()

    def _record_event(self, pod: KubeletPod, type: EventType, reason: str, message: str) -> None:
        if type == "Warning" or self._settings.records_normal_events:
            self._recorder.event(pod, type, reason, message)
