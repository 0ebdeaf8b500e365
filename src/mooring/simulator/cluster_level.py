"""A simulation at cluster level: API server, scheduler, controllers and hollow nodes on virtual time.

`simulate_cluster` is a pure function of a scenario, a policy and a seed, like the engine level. Time 0 of the scenario
is when all components know all nodes.

1. Pods with `replicas` are a Deployment. Other pods arrive one by one: each with a Job that creates it again when it is
   evicted, or bare. Of a SimKube trace the objects are applied and deleted, and controllers create the pods.
2. A failed node is silent: it renews no lease, and the node lifecycle controller evicts its pods.
3. What an event does is in `events`; this module carries out its commands through the API.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mooring.api.decode import decode_as
from mooring.api.errors import UnknownKindError
from mooring.api.kinds import DEPLOYMENT, NODE
from mooring.api.views.meta import controller_of
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Deployment
from mooring.api.well_known import NODE_BOUND_OWNERS
from mooring.client.errors import ClientError, ConflictError, NotFoundError, TooManyRequestsError
from mooring.client.interface import PatchForm
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import errors_in
from mooring.scheduler.engine import Engine
from mooring.simulator.autoscaler import Autoscaler
from mooring.simulator.budgets import NAMESPACE, budget_documents
from mooring.simulator.cluster_objects import (
    applied_object,
    arrival_document,
    deployment_document,
    dump_documents,
    is_of_dump,
    namespaces,
    node_document,
    objects_implied,
    priority_classes,
    rollout_patch,
)
from mooring.simulator.components import SimulatedCluster, open_cluster
from mooring.simulator.errors import ScenarioError
from mooring.simulator.events import (
    DRAIN_CHECK_S,
    EVICTION_RETRY_S,
    AddNodes,
    Command,
    CordonNode,
    DrainNodes,
    FailNode,
    Fork,
    Pause,
    RecoverNode,
    RemoveNode,
    Steps,
    event_steps,
)
from mooring.simulator.measures import Figures, Progress, SimulationMeter, sample_times_s
from mooring.simulator.observer import ClusterMeter, MeasuringClock
from mooring.simulator.scenario.fields import RolloutPart, ScalePart, Scenario, seconds
from mooring.simulator.simkube import SimkubeTrace, log_left_out
from mooring.simulator.sources import POOL, NodePools, read_input

ROLLOUT_CHECK_S = 1.0
END_S = 0.001
"""How far time moves beyond the end, so that everything of the last moment has happened."""
LOOP_LOGGER = "mooring.kit.loop"


def simulate_cluster(
    scenario: Scenario, policy: str, seed: int, progress: Progress, keeps_placements: bool
) -> tuple[Figures, SimulationMeter, list[float]]:
    """The figures of a scenario, its meter, and how long pending pods have waited. Raises `ScenarioError`."""
    simkube = scenario.workload.simkube
    trace = SimkubeTrace(Path(simkube.trace)) if simkube is not None else None
    clock = MeasuringClock(trace.begin_s) if trace is not None else MeasuringClock()  # CronJobs read the wall clock
    simulation = ClusterSimulation(scenario, seed, clock, progress, trace)
    try:
        with _quiet():
            found = run(simulation.run(policy, keeps_placements), clock)
    except KeyboardInterrupt:
        # The interrupted task cannot end, which the loop would report when it is collected.
        logging.getLogger(LOOP_LOGGER).setLevel(logging.CRITICAL)
        raise
    except BaseExceptionGroup as group:
        cause = next((error for error in errors_in(group) if isinstance(error, ScenarioError)), None)
        if cause is None:
            raise
        raise cause from group
    if trace is not None:
        log_left_out(trace.path, simulation.left_out, "the API server does not serve these kinds")
    return found


class ClusterSimulation:
    """One simulation; `run` may be called once."""

    _cluster: SimulatedCluster
    _measure: ClusterMeter

    def __init__(
        self, scenario: Scenario, seed: int, clock: MeasuringClock, progress: Progress, trace: SimkubeTrace | None
    ) -> None:
        self._scenario = scenario
        self._trace = trace
        self.left_out: Counter[str] = Counter()
        """Requests of the trace for kinds that the API server does not serve."""
        self._clock = clock
        self._progress = progress
        self._seed = seed
        self._entropy = Entropy(seed)
        self._input = read_input(scenario, seed)
        self._groups = {group.name: group for group in scenario.workload.pods}
        self.pools = NodePools(scenario.cluster.pools)
        self._pool_of = {node.metadata.name: node.metadata.labels.get(POOL, "") for node in self._input.nodes}
        """The nodes that exist, and their pools."""
        self._failed: set[str] = set()
        self._begin_s = 0.0
        arrivals = self._input.workload.arrivals
        last_s = arrivals[-1].at_s if arrivals else 0.0
        self._duration_s = scenario.duration_s if scenario.duration_s is not None else last_s

    async def run(self, policy: str, keeps_placements: bool) -> tuple[Figures, SimulationMeter, list[float]]:
        types, entropy = self._input.workload.types, self._entropy.fork("cluster")
        async with open_cluster(self._scenario, policy, types, self._clock, entropy) as cluster:
            self._cluster, meter = cluster, cluster.meter
            autoscaler = Autoscaler(self._scenario, self._seed, self)
            meter.placements = {} if keeps_placements else None
            await self._fill()
            await cluster.start(len(self._input.nodes))
            self._begin()
            for group in self._groups.values():
                if group.is_deployment:
                    await cluster.create(deployment_document(group))
            arriving = self._arrive() if self._trace is None else self._play(self._trace)
            cluster.group.start_background(arriving, name="arrivals")
            for number in range(len(self._scenario.events)):
                cluster.group.start_background(self._repeat(number), name=f"event {number}")
            if self._scenario.has_autoscaler:
                cluster.group.start_background(self._carry_out("", autoscaler.steps()), name="autoscaler")
            await self._wait_until(self._duration_s)
            await self._clock.wait(END_S)
            meter.advance_to(self._duration_s)
            meter.preemptions = cluster.preemptions()
            waits_s = cluster.observer.waits_s()
            figures = meter.totals(waits_s, len(cluster.observer.pending), autoscaler.figures())
        return figures, meter, waits_s

    # The workload

    async def _fill(self) -> None:
        """What is there at the beginning, before the components start."""
        found, dump = self._input, self._scenario.cluster.dump
        if dump:
            has_model = self._scenario.workload.dump is not None
            await self._cluster.clone(dump_documents(dump, found, has_arrival_model=has_model))
        pods = [arrival.pod for arrival in found.workload.arrivals]
        for document in (
            *(() if dump else namespaces(pods)),
            *(() if dump else map(node_document, found.nodes)),
            *priority_classes(pods, self._groups.values()),
            *budget_documents(self._groups.values()),
        ):
            await self._cluster.create(document)
        for document in objects_implied(self._trace) if self._trace is not None else ():
            await self._cluster.create(document, may_exist=True)

    async def _play(self, trace: SimkubeTrace) -> None:
        """Apply and delete the objects of a trace. Kinds that the API server does not serve are left out."""
        for event in trace.events():
            await self._wait_until(event.at_s)
            with trace.errors_of(event.number):
                applied = [applied_object(trace, document) for document in event.applied]
            for change, documents in ((self._cluster.apply, applied), (self._cluster.delete, event.deleted)):
                for document in documents:
                    try:
                        await change(dict(document))
                    except UnknownKindError:
                        self.left_out[document["kind"]] += 1
                    except ClientError as error:
                        text = f"{document['kind']} {document['metadata']['name']}: {error}"
                        raise ScenarioError(f"{trace.path}: event {event.number}", text) from error

    async def _arrive(self) -> None:
        for arrival in self._input.workload.arrivals:
            group = self._groups.get(arrival.owner)
            if is_of_dump(arrival) or (group is not None and group.is_deployment):
                continue
            await self._wait_until(arrival.at_s)
            is_bare = not arrival.owner or (group is not None and group.bare)
            startup = group.startup if group is not None else ""
            await self._cluster.create(arrival_document(arrival, startup, is_bare=is_bare))

    # Time and measures

    async def _wait_until(self, at_s: float) -> None:
        delay_s = self._begin_s + at_s - self._clock.now_s()
        if delay_s > 0:
            await self._clock.wait(delay_s)

    def _begin(self) -> None:
        """Time 0 is now."""
        self._begin_s = self._clock.now_s()
        times_s = sample_times_s(self._scenario.samples.every, self._duration_s)
        columns, observer = self._cluster.scheduler.engine.columns, self._cluster.observer
        measure = self._measure = ClusterMeter(self._cluster.meter, columns, observer, self._working_nodes, times_s)
        reported = 0

        def before(now_s: float) -> None:
            nonlocal reported
            at_s = now_s - self._begin_s
            measure.before(self.now_s(), at_s)
            percent = int(100 * at_s / self._duration_s) if self._duration_s else 100
            if reported < percent <= 100:
                reported = percent
                self._progress(percent / 100)

        self._clock.before = before

    def _working_nodes(self) -> tuple[int, float]:
        """The number of nodes that have not failed, and their price per hour."""
        pools = [pool for name, pool in self._pool_of.items() if name not in self._failed]
        return len(pools), self.pools.price_per_h(pools)

    # Events

    async def _repeat(self, number: int) -> None:
        event = self._scenario.events[number]
        found = event.change()
        assert found is not None, "the scenario was validated"
        entropy = self._entropy.fork("events")
        occurrence = 0
        while True:
            await self._wait_until(seconds(event.at) + occurrence * (seconds(event.every) if event.every else 0.0))
            steps = event_steps(event, self, entropy.fork(f"event {number} {occurrence}"))
            self._cluster.group.start_background(self._carry_out(found[0], steps), name=f"event {number}")
            occurrence += 1
            if not event.every:
                return

    async def _carry_out(self, name: str, steps: Steps) -> None:
        meter = self._cluster.meter
        began = meter.event_began(name, self.now_s())
        try:
            for command in steps:
                await self._execute(command)
                if not isinstance(command, Pause):
                    self._measure.invalidate()
        except ClientError as error:
            raise ScenarioError("", f"an event at {self.now_s():.0f} s: {error}") from error
        meter.event_ended(began, self.now_s())

    async def _execute(self, command: Command) -> None:
        client = self._cluster.client
        match command:
            case Pause(delay_s):
                await self._clock.wait(delay_s)
            case Fork(steps):
                self._cluster.group.start_background(self._carry_out("", steps), name="event")
            case AddNodes(nodes):
                for node in nodes:
                    await self._cluster.create(node_document(node))
                    self._pool_of[node.metadata.name] = node.metadata.labels.get(POOL, "")
            case RemoveNode(name):
                self._failed.discard(name)
                if self._pool_of.pop(name, None) is not None:
                    await client.delete(NODE, "", name)
            case FailNode(name):
                if name in self._pool_of:
                    self._failed.add(name)
                    await self._cluster.fail(name)
            case RecoverNode(name):
                if name in self._pool_of:
                    self._failed.discard(name)
                    self._cluster.kubelets.resume(name)
            case CordonNode(name, is_cordoned):
                cordon = {"spec": {"unschedulable": is_cordoned}}
                with suppress(NotFoundError):  # another event may remove the node meanwhile
                    await client.patch(NODE, "", name, cordon, form=PatchForm.MERGE)
            case DrainNodes():
                await self._drain(command)
            case ScalePart(workload=workload, replicas=replicas):
                scale = {"spec": {"replicas": replicas}}
                await client.patch(DEPLOYMENT, NAMESPACE, workload, scale, form=PatchForm.MERGE)
            case RolloutPart(workload=workload):
                patch = rollout_patch(command)
                await client.patch(DEPLOYMENT, NAMESPACE, workload, patch, form=PatchForm.STRATEGIC)
                await self._wait_rolled_out(workload)

    async def _drain(self, command: DrainNodes) -> None:
        until_s = self._clock.now_s() + command.timeout_s
        while left := self._pods_on(command.names):
            blocked = 0
            for pod in left:
                if pod.metadata.deletion_timestamp is None:
                    try:
                        await self._cluster.client.evict(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
                    except TooManyRequestsError:
                        blocked += 1
                    except (NotFoundError, ConflictError):
                        continue  # it is gone, or another one has its name
            left_s = until_s - self._clock.now_s()
            if left_s <= 0:
                return
            await self._clock.wait(min(EVICTION_RETRY_S if blocked else DRAIN_CHECK_S, left_s))

    def _pods_on(self, names: tuple[str, ...]) -> list[Pod]:
        """The pods that a drain evicts: not those that end with their node, as kubectl drain --ignore-daemonsets."""
        found = [pod for name in names for pod in self._cluster.observer.on_node.get(name, {}).values()]
        owners = ((pod, controller_of(pod.metadata)) for pod in found)
        return [pod for pod, owner in owners if owner is None or owner.kind not in NODE_BOUND_OWNERS]

    async def _wait_rolled_out(self, workload: str) -> None:
        while True:
            deployment = decode_as(Deployment, await self._cluster.client.get(DEPLOYMENT, NAMESPACE, workload))
            status, wanted = deployment.status, deployment.spec.replicas
            counts = {status.replicas, status.updated_replicas, status.available_replicas}
            if status.observed_generation >= deployment.metadata.generation and counts == {wanted}:
                return
            await self._clock.wait(ROLLOUT_CHECK_S)

    # What events and the autoscaler read

    @property
    def engine(self) -> Engine:
        return self._cluster.scheduler.engine

    def unschedulable_pods(self) -> list[Pod]:
        return self._cluster.observer.unschedulable_pods()

    def failed_nodes(self, pool: str) -> list[str]:
        return sorted(name for name in self._failed if self._pool_of.get(name) == pool)

    def now_s(self) -> float:
        return self._clock.now_s() - self._begin_s

    def has_node(self, name: str) -> bool:
        return name in self._pool_of

    def pool_nodes(self, pool: str) -> list[str]:
        return sorted(name for name, found in self._pool_of.items() if found == pool and name not in self._failed)


@contextmanager
def _quiet() -> Iterator[None]:
    """Components warn of failed nodes and refused requests, which are what is simulated."""
    logger = logging.getLogger("mooring")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
