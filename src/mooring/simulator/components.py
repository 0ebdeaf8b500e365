"""The components of a simulation at cluster level, wired together on one virtual clock.

1. The components are those of `mooring up`, with the defaults of kube-controller-manager and, but for heartbeats, of
   the kubelet.
2. Event objects are not stored: no component reads them, and each would cost as much as a binding.
3. Pods need no service account, and new nodes are ready at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import CORE_EVENT, EVENT, LEASE, POD, Kind
from mooring.api.views.pod import Pod
from mooring.api.well_known import NODE_LEASE_NAMESPACE
from mooring.apiserver.access.certificates import new_key
from mooring.apiserver.assembly import Settings, open_api_server
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.client.batch_writes import renewal_patch
from mooring.client.errors import AlreadyExistsError, ClientError, NotFoundError
from mooring.client.interface import Deletion, JsonObject, PatchForm, Propagation
from mooring.client.reflector import Reflector
from mooring.cluster.clone import clone
from mooring.cluster.component_client import component_user
from mooring.cluster.objects import create_object, served_kind
from mooring.controllers.manager import ControllerManager
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.kubelets import Kubelets
from mooring.kubelet.settings import KubeletSettings
from mooring.scheduler.scheduler import Scheduler
from mooring.simulator.cluster_objects import STAGES
from mooring.simulator.errors import ScenarioError
from mooring.simulator.measures import SimulationMeter
from mooring.simulator.observer import MeasuringClock, PodObserver
from mooring.simulator.policies import loaded_policy, smallest_name
from mooring.simulator.scenario.fields import Scenario
from mooring.simulator.workload import PodTypes
from mooring.store.memory import MemoryStore

CONTROLLERS = (
    "*",
    "-serviceaccount-controller",
    "-root-ca-certificate-publisher-controller",
    "-clusterrole-aggregation-controller",
    "-endpoints-controller",
    "-endpointslice-controller",
)
"""The objects of those that are left out have no effect on pods here: no pod has a token, or is called."""
DISABLED_ADMISSION = frozenset(("ServiceAccount", "TaintNodesByCondition"))
KUBELETS = KubeletSettings(stages=STAGES, lease_s=160, status_period_s=86_400.0)
"""Heartbeats are most of the cost of an idle node. A lease is renewed every 40 s instead of every 10 s, which is within
the 50 s after which the node lifecycle controller gives up, and once more when its node fails. So a failure is noticed
after 50 s, instead of 40 to 50 s."""
STARTED_CHECK_S = 0.01


class QuietClient(LoopbackClient):
    """A loopback client that stores no Event objects."""

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        if kind in (EVENT, CORE_EVENT):
            return msgspec.json.encode(body)
        return await super().create(kind, namespace, body, is_answer_wanted=is_answer_wanted)

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes:
        if kind in (EVENT, CORE_EVENT):
            return b"{}"
        return await super().patch(kind, namespace, name, patch, form=form, subresource=subresource)


@asynccontextmanager
async def open_cluster(
    scenario: Scenario, policy: str, types: PodTypes, clock: MeasuringClock, entropy: Entropy
) -> AsyncIterator[SimulatedCluster]:
    """An API server, while the block lasts; `start` starts the other components. Raises `ScenarioError`."""
    settings = Settings(new_key(), disabled_admission_plugins=DISABLED_ADMISSION)
    async with (
        open_api_server(MemoryStore(), clock, entropy.fork("apiserver"), settings) as api_server,
        TaskGroup("simulation") as group,
    ):
        yield SimulatedCluster(scenario, policy, types, api_server, clock, entropy, group)


class SimulatedCluster:
    """A cluster on virtual time."""

    def __init__(
        self,
        scenario: Scenario,
        policy: str,
        types: PodTypes,
        api_server: ApiServer,
        clock: MeasuringClock,
        entropy: Entropy,
        group: TaskGroup,
    ) -> None:
        self.api_server = api_server
        self.clock = clock
        self.group = group
        self.client = self._client_of("mooring")
        self._entropy = entropy
        with loaded_policy(scenario, policy) as (configuration, registry):
            self.scheduler = Scheduler(
                self._client_of("kube-scheduler"),
                configuration,
                clock=clock,
                entropy=entropy.fork("scheduler"),
                registry=registry,
                services={"workload": types},
                tie_break=smallest_name if scenario.ties == "name" else None,
            )
        self.meter = SimulationMeter(self.scheduler.engine, types)
        self.observer = PodObserver(self.meter, clock)
        self._controllers = ControllerManager(
            self._client_of("kube-controller-manager"), clock, entropy.fork("controllers"), enabled=CONTROLLERS
        )
        self.kubelets = Kubelets(self._client_of("kubelet"), clock, entropy.fork("nodes"), KUBELETS)

    async def start(self, nodes: int) -> None:
        """Start the components, and wait until all of them know what was created, and that many nodes."""
        observer = Reflector(
            self.client, POD, Pod, self.observer, clock=self.clock, entropy=self._entropy.fork("observer")
        )
        self.group.start_background(observer.run(), name="observer")
        self.group.start_background(self.scheduler.run(), name="scheduler")
        self.group.start_background(self._controllers.run(), name="controllers")
        self.group.start_background(self.kubelets.run(), name="nodes")
        await observer.wait_synced()
        await self._controllers.wait_working()
        while not self.scheduler.has_synced or len(self.kubelets.node_names) < nodes:
            await self.clock.wait(STARTED_CHECK_S)

    async def create(self, document: Document, *, may_exist: bool = False) -> None:
        """Raises `ScenarioError` if the API server rejects it."""
        try:
            await create_object(self.api_server, self.client, document)
        except ClientError as error:
            if may_exist and isinstance(error, AlreadyExistsError):
                return
            raise ScenarioError("", f"{document['kind']} {document['metadata']['name']}: {error}") from error

    async def apply(self, document: Document) -> None:
        """As kubectl apply --server-side. Raises `ClientError`, `UnknownKindError`."""
        kind, namespace, name = self._place_of(document)
        await self.client.patch(kind, namespace, name, document, form=PatchForm.APPLY)

    async def delete(self, document: Document) -> None:
        """Delete an object, and in the background what it owns. Raises `ClientError`, `UnknownKindError`."""
        kind, namespace, name = self._place_of(document)
        with suppress(NotFoundError):
            await self.client.delete(kind, namespace, name, Deletion(propagation=Propagation.BACKGROUND))

    async def clone(self, documents: Sequence[Document]) -> None:
        """Create the objects of a dump. Raises `ScenarioError` if a node or a pod cannot be created."""
        report = await clone(self.api_server, documents)
        failures = [text for text in report.failures if text.startswith(("Node ", "Pod "))]
        if failures:
            raise ScenarioError("", failures[0])

    async def fail(self, node: str) -> None:
        """The kubelet of a node falls silent, just after it has renewed its lease."""
        patch = renewal_patch(self.clock.wall_s())
        await self.client.patch(LEASE, NODE_LEASE_NAMESPACE, node, patch, form=PatchForm.MERGE)
        self.kubelets.silence(node)

    def preemptions(self) -> int:
        count = self.scheduler.metrics.registry.get_sample_value("scheduler_preemption_victims_count")
        return int(count or 0)

    def _place_of(self, document: Document) -> tuple[Kind, str, str]:
        kind = served_kind(self.api_server, str(document["apiVersion"]), str(document["kind"]))
        metadata = document["metadata"]
        return kind, (metadata.get("namespace") or "default") if kind.is_namespaced else "", metadata["name"]

    def _client_of(self, name: str) -> QuietClient:
        return QuietClient(self.api_server, component_user(name), name)
