"""The fleet: thousands of kubelets in one process, wired.

Comes in   two watches, of all nodes and of all pods; what somebody does to a node (`silence`, `wake`, `add`)
Goes out   registered nodes that are alive, and pods that run

    watch of pods ──> intake ──> worker ──> runtime ──> worker ──> outbox ──> status writer ──> API
    watch of nodes ─> intake ──> heartbeats ──────────────────────────────────────────────────> API

 1. There is no task for a node or for a pod: a few for the two watches, the writers and the alarms.
 2. Nodes are ours if this fleet was asked for them, or if they carry the annotation `mooring.dev/simulated`.
    Pods are ours if their node is.
 3. A pod waits until its node is known: admission looks at the node as the API has it.
 4. A node that somebody deletes stays away. Its pods go on until the API lets them go, as with a real kubelet.
 5. A fleet that starts anew goes on with what it finds: simulated pods that ran go on running, real ones are started
    again.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD
from mooring.api.views.meta import ObjectReference
from mooring.api.views.node import Node
from mooring.client.cache.reflector import Reflector
from mooring.client.errors import AlreadyExistsError, BadRequestError, ClientError
from mooring.client.events.formats import CoreFormat
from mooring.client.events.writer import EventWriter
from mooring.client.interface import Change, Client, WatchEvent
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.container_logs import logged_attempt, why_no_log
from mooring.kubelet.node_state import FleetNode
from mooring.kubelet.node_status import (
    SILENT_ANNOTATION,
    SIMULATED_ANNOTATION,
    Heartbeats,
    needs_correction,
    node_amounts,
    node_body,
)
from mooring.kubelet.pod_worker import PodWorker, Services
from mooring.kubelet.runtime import ContainerState, LogRequest, Needs, Runtime, RuntimeMaker
from mooring.kubelet.settings import FleetSettings
from mooring.kubelet.simulated.runtime import SimulatedRuntime
from mooring.kubelet.simulated.stage_file import load_lives
from mooring.kubelet.status_manager import Echoes, StatusWriter
from mooring.kubelet.timers import Alarms
from mooring.kubelet.views import KubeletPod
from mooring.kubelet.write_queue import Outbox

_HAS_NODE = b'"nodeName":"'
REGISTRATION_RETRY_S = 2.0

logger = logging.getLogger(__name__)


class WatchSink(Protocol):
    """Who hears of nodes and pods."""

    def node_changed(self, name: str, view: Node | None) -> None: ...

    def known_node_names(self) -> Sequence[str]: ...

    def pod_changed(self, pod: KubeletPod) -> None: ...

    def pod_gone(self, pod: KubeletPod) -> None: ...

    def latest_pods(self) -> Sequence[KubeletPod]: ...


class NodeIntake:
    """The sink of the watch of nodes."""

    def __init__(self, fleet: WatchSink) -> None:
        self._fleet = fleet

    def replace(self, views: Sequence[Node], revision: str) -> None:
        present = {view.metadata.name for view in views}
        for name in self._fleet.known_node_names():
            if name not in present:
                self._fleet.node_changed(name, None)
        for view in views:
            self._fleet.node_changed(view.metadata.name, view)

    def apply(self, change: Change, view: Node) -> None:
        self._fleet.node_changed(view.metadata.name, None if change is Change.DELETED else view)


class PodIntake:
    """The sink of the watch of pods."""

    def __init__(self, fleet: WatchSink, echoes: Echoes) -> None:
        self._fleet = fleet
        self._echoes = echoes

    def is_wanted(self, event: WatchEvent) -> bool:
        """Not before it has a node, and not if it tells what we have just written: reading a pod costs more."""
        return not self._echoes.take(event.revision) and _HAS_NODE in event.raw

    def replace(self, views: Sequence[KubeletPod], revision: str) -> None:
        present = {view.metadata.uid for view in views}
        for pod in self._fleet.latest_pods():
            if pod.metadata.uid not in present:
                self._fleet.pod_gone(pod)
        for view in sorted(views, key=_age):
            if view.spec.node_name:
                self._fleet.pod_changed(view)

    def apply(self, change: Change, view: KubeletPod) -> None:
        if not view.spec.node_name:
            return
        if change is Change.DELETED:
            self._fleet.pod_gone(view)
        else:
            self._fleet.pod_changed(view)


def _age(pod: KubeletPod) -> tuple[str, str]:
    return (pod.metadata.creation_timestamp or "", pod.key)


class Fleet:
    """All kubelets of a process. `run` it until it is cancelled."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        entropy: Entropy,
        settings: FleetSettings,
        make_runtime: RuntimeMaker | None = None,
    ) -> None:
        """Simulated, unless somebody makes another runtime."""
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._settings = settings
        self._nodes: dict[str, FleetNode] = {}
        self._indexes_used = 0
        self._workers: dict[str, PodWorker] = {}
        self._silenced_by_hand: dict[str, None] = {}
        self._alarms = Alarms(clock)
        self._events = EventWriter(client, clock, entropy.fork("events"), CoreFormat())
        self._recorder = self._events.recorder("kubelet")
        self._runtime = self._made_runtime(make_runtime)
        self._heartbeats = Heartbeats(client, clock, self._alarms, settings)
        self._echoes = Echoes()
        writer = StatusWriter(client, self._workers, self._echoes)
        in_flight_max = settings.pod_writes_in_flight_max
        self._statuses: Outbox[str] = Outbox(
            "pod statuses", writer.send, clock, self._alarms, in_flight_max=in_flight_max
        )
        self._registrations: Outbox[str] = Outbox(
            "registrations", self._register, clock, self._alarms, in_flight_max=settings.node_writes_in_flight_max
        )
        self._services = Services(
            self._runtime, clock, self._alarms, self._statuses.put, self._tell_event, self._room_was_made
        )
        for name in settings.node_names():
            self._new_node(name)

    def _made_runtime(self, make_runtime: RuntimeMaker | None) -> Runtime:
        clock, entropy, alarms = self._clock, self._entropy, self._alarms
        if make_runtime is None:
            return SimulatedRuntime(load_lives(self._settings.lives), clock, entropy.fork("lives"), alarms, self)
        amounts = node_amounts(self._settings)
        return make_runtime(
            Needs(self._client, clock, entropy.fork("runtime"), alarms, self, self._tell_event, amounts)
        )

    async def run(self) -> None:
        """Until it is cancelled."""
        nodes, pods = NodeIntake(self), PodIntake(self, self._echoes)
        try:
            async with self._runtime.opened(), TaskGroup("kubelets") as group:
                self._events.start(group)
                self._heartbeats.start(group)
                self._statuses.start(group)
                self._registrations.start(group)
                node_reflector = self._reflector("nodes", nodes)
                group.start(node_reflector.run(), name="nodes")
                await node_reflector.wait_synced()
                for node in self._nodes.values():
                    if node.view is None:
                        self._registrations.put(node.name)
                self._tell_lacking()
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
                self._runtime.keep_only({pod.metadata.uid for pod in self.latest_pods()})
        finally:
            self._alarms.close()

    def _reflector(self, name: str, sink: NodeIntake) -> Reflector[Node]:
        return Reflector(self._client, NODE, Node, sink, clock=self._clock, entropy=self._entropy.fork(name))

    # ---------------------------------------------------------------------------------------- from outside

    def silence(self, name: str) -> None:
        """The node says nothing more and hears nothing, until `wake`. Its containers go on."""
        node = self._node(name)
        self._silenced_by_hand[name] = None
        self._set_silence(node)

    def wake(self, name: str) -> None:
        """The node is heard again, and catches up."""
        node = self._node(name)
        self._silenced_by_hand.pop(name, None)
        self._set_silence(node)

    def add(self, name: str) -> None:
        """One more node."""
        if name not in self._nodes:
            self._new_node(name)
            self._registrations.put(name)

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(self._nodes)

    def has_node(self, name: str) -> bool:
        """Whether a node is one of ours."""
        return name in self._nodes

    async def logs(self, pod: Document, container: str, options: LogRequest) -> AsyncIterator[bytes]:
        """What a container wrote, for who serves `kubectl logs`. Raises `BadRequestError`."""
        refusal = why_no_log(pod, container, is_previous=options.is_previous)
        if refusal:
            raise BadRequestError(refusal)
        attempt = logged_attempt(pod, container, is_previous=options.is_previous)
        return self._runtime.logs(pod["metadata"]["uid"], container, attempt, options)

    def statistics(self) -> dict[str, object]:
        return {
            "nodes": len(self._nodes),
            "nodes_silent": sum(node.is_silenced for node in self._nodes.values()),
            "pods": len(self._workers),
            "alarms": len(self._alarms),
            "pod_statuses": self._statuses.statistics(),
            **self._heartbeats.statistics(),
        }

    # ------------------------------------------------------------------------------------------------- nodes

    def node_changed(self, name: str, view: Node | None) -> None:
        """The API has a node so; or not any more."""
        node = self._nodes.get(name)
        if node is None:
            if view is None or not self._is_given_to_us(view):
                return
            node = self._new_node(name)
        node.see(view)
        if view is None:
            self._heartbeats.remove(node)
            return
        self._set_silence(node)
        self._heartbeats.add(node)
        if needs_correction(node):
            self._heartbeats.correct(node)
        self._take_up_pods(node)

    def known_node_names(self) -> tuple[str, ...]:
        """Those that the API has, as far as we know."""
        return tuple(name for name, node in self._nodes.items() if node.view is not None)

    def _is_given_to_us(self, view: Node) -> bool:
        """Whether a node that somebody else made is to be ours. Nobody makes this machine run other nodes' pods."""
        return not self._runtime.is_real and view.metadata.annotations.get(SIMULATED_ANNOTATION) == "true"

    def _new_node(self, name: str) -> FleetNode:
        host = self._settings.host
        address = host.address if host is not None else ""
        node = self._nodes[name] = FleetNode(name, self._indexes_used, address)
        self._indexes_used += 1
        return node

    def _node(self, name: str) -> FleetNode:
        node = self._nodes.get(name)
        if node is None:
            raise KeyError(f"node {name!r} is none of this fleet")
        return node

    async def _register(self, name: str) -> float | None:
        node = self._nodes[name]
        if node.view is not None or node.is_registered:
            return None
        body = node_body(node, self._settings, self._clock.wall_s())
        try:
            await self._client.create(NODE, "", body, is_answer_wanted=False)
        except AlreadyExistsError:
            return None
        except ClientError as error:
            logger.warning("node %s cannot be registered: %s", name, error)
            return REGISTRATION_RETRY_S
        return None

    def _tell_lacking(self) -> None:
        """What this machine does not let us do, to whoever reads the log or looks at the nodes."""
        lacking = self._runtime.lacking
        if not lacking:
            return
        logger.warning("%s", lacking)
        for name in self._nodes:
            # A node has no uid in the events of its kubelet, which may not know it yet.
            about = ObjectReference(api_version=NODE.api_version, kind=NODE.kind, name=name, uid=name)
            self._recorder.event(about, "Warning", "LimitsNotEnforced", lacking)

    def _set_silence(self, node: FleetNode) -> None:
        annotations = node.view.metadata.annotations if node.view is not None else {}
        is_silenced = node.name in self._silenced_by_hand or annotations.get(SILENT_ANNOTATION) == "true"
        was_silenced, node.is_silenced = node.is_silenced, is_silenced
        if was_silenced and not is_silenced:
            self._heartbeats.wake(node)
            self._catch_up(node)

    def _catch_up(self, node: FleetNode) -> None:
        """What happened to its pods while it was silent."""
        for uid in list(node.worked_on):
            worker = self._workers[uid]
            if uid not in node.latest:
                self._drop(worker)
            else:
                worker.written = b""
                self._statuses.put(uid)
        for pod in list(node.latest.values()):
            self._see(node, pod)

    # -------------------------------------------------------------------------------------------------- pods

    def pod_changed(self, pod: KubeletPod) -> None:
        """The API has a pod so."""
        node = self._nodes.get(pod.spec.node_name)
        if node is None:
            return
        node.latest[pod.metadata.uid] = pod
        self._see(node, pod)

    def pod_gone(self, pod: KubeletPod) -> None:
        """The API has a pod no more."""
        node = self._nodes.get(pod.spec.node_name)
        if node is None:
            return
        node.latest.pop(pod.metadata.uid, None)
        worker = self._workers.get(pod.metadata.uid)
        if worker is not None and not node.is_silenced:
            self._drop(worker)

    def latest_pods(self) -> list[KubeletPod]:
        """All pods of ours, as far as we know."""
        return [pod for node in self._nodes.values() for pod in node.latest.values()]

    def container_changed(self, pod_uid: str, container: str, attempt: int, state: ContainerState) -> None:
        """The runtime tells of a container."""
        worker = self._workers.get(pod_uid)
        if worker is not None:
            worker.container_changed(container, attempt, state)

    def _see(self, node: FleetNode, pod: KubeletPod) -> None:
        if node.view is None or node.is_silenced or not node.allocatable:
            return  # whose status has not been told yet has no room yet
        worker = self._workers.get(pod.metadata.uid)
        if worker is not None:
            worker.update(pod)
            return
        worker = self._workers[pod.metadata.uid] = PodWorker(pod, node, self._services)
        node.worked_on[pod.metadata.uid] = None
        worker.begin()

    def _take_up_pods(self, node: FleetNode) -> None:
        """Those that came before their node was known, the oldest first."""
        waiting = [pod for uid, pod in node.latest.items() if uid not in self._workers]
        for pod in sorted(waiting, key=lambda pod: pod.metadata.creation_timestamp or ""):
            self._see(node, pod)

    def _drop(self, worker: PodWorker) -> None:
        del self._workers[worker.uid]
        del worker.node.worked_on[worker.uid]
        worker.vanish()

    def _room_was_made(self, node: FleetNode) -> None:
        for uid in node.worked_on:
            self._workers[uid].consider_resize()

    def _tell_event(self, pod: KubeletPod, is_warning: bool, reason: str, message: str) -> None:
        if is_warning or self._settings.tells_routine_events:
            self._recorder.event(pod, "Warning" if is_warning else "Normal", reason, message)
