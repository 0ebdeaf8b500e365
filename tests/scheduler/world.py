"""A cluster on virtual time: an API server, a client that may misbehave, and schedulers at work.

    @played()
    async def test_a_pod_gets_a_node(world: World) -> None:
        await world.create(node("n1", cpu=4))
        await world.create(pod("web", cpu=1))
        await world.settle()
        assert await world.node_of("web") == "n1"

A test with parameters defines its story itself, and calls `play(story)`.

The builders of `tests.builders` make objects. The functions of the world read the store, not the scheduler.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from inspect import Signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from mooring.api.decode import decode_as
from mooring.api.kinds import EVENT, NODE, POD, PRIORITY_CLASS, Kind, kind_of_view
from mooring.api.views.meta import ApiObject, ObjectMeta
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import PriorityClass
from mooring.apiserver.loopback import LoopbackClient
from mooring.client.interface import Client, Deletion, PatchForm
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.catalogue import PLUGINS, default_registry
from mooring.scheduler.config import SchedulerConfiguration, load_configuration
from mooring.scheduler.framework.plugin import Plugin
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.reporting.recording import Recording
from mooring.scheduler.scheduler import Limits, Scheduler
from mooring.simulator.replay import RecordingReader, Replay, ReplayReport
from mooring.store.memory import MemoryStore
from tests.api_servers import create, open_loopback_client
from tests.scheduler.config.builders import configuration

Story = Callable[["World"], Awaitable[None]]
Through = Callable[[Client, VirtualClock], Client]


class World:
    """What a story plays in."""

    def __init__(
        self, clock: VirtualClock, group: TaskGroup, entropy: Entropy, store: MemoryStore, client: LoopbackClient
    ) -> None:
        self.clock = clock
        self.group = group
        self.store = store
        self.client = client
        self.schedulers: list[Scheduler] = []
        self._priority_classes: set[str] = set()
        self._entropy = entropy

    def start_scheduler(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        client: Client | None = None,
        registry: Registry | None = None,
        limits: Limits | None = None,
        recording: Recording | None = None,
    ) -> Scheduler:
        scheduler = Scheduler(
            client if client is not None else self.client,
            load_configuration(config),
            clock=self.clock,
            entropy=self._entropy.fork(f"scheduler {len(self.schedulers)}"),
            registry=registry,
            limits=limits,
            recording=recording,
        )
        self.schedulers.append(scheduler)
        self.group.start_background(scheduler.run(), name=f"scheduler-{len(self.schedulers)}")
        return scheduler

    @property
    def scheduler(self) -> Scheduler:
        """The only one there is."""
        (scheduler,) = self.schedulers
        return scheduler

    # Writing

    async def create(self, *views: ApiObject) -> None:
        for view in views:
            kind = kind_of_view(type(view))
            document = plain(view)
            if isinstance(view, Pod):
                # No kubelet runs: a deleted pod is gone at once, unless the test gives it time.
                document["spec"].setdefault("terminationGracePeriodSeconds", 0)
            if isinstance(view, Pod) and view.spec.priority is not None:
                document["spec"]["priorityClassName"] = await self._priority_class(
                    view.spec.priority, view.spec.preemption_policy
                )
            await create(self.client, kind, view.metadata.namespace, document)

    async def _priority_class(self, priority: int, preemption_policy: str | None) -> str:
        """The name of a class of this priority. The API server rejects a priority without a class."""
        name = f"priority{priority}-{preemption_policy}".lower()
        if name not in self._priority_classes:
            self._priority_classes.add(name)
            view = PriorityClass(metadata=ObjectMeta(name=name), value=priority, preemption_policy=preemption_policy)
            await self.client.create(PRIORITY_CLASS, "", plain(view))
        return name

    async def delete(self, name: str, kind: Kind = POD, namespace: str = "default", grace_s: int | None = 0) -> None:
        await self.client.delete(kind, namespace if kind.is_namespaced else "", name, Deletion(grace_s=grace_s))

    async def patch(self, name: str, patch: Mapping[str, object], kind: Kind = POD, subresource: str = "") -> None:
        namespace = "default" if kind.is_namespaced else ""
        await self.client.patch(kind, namespace, name, patch, form=PatchForm.MERGE, subresource=subresource)

    async def settle(self, for_s: float = 1.0) -> None:
        """Lets everybody work for a while."""
        await self.clock.wait(for_s)

    # Reading

    async def pods(self) -> dict[str, Pod]:
        listing = await self.client.list(POD)
        found = [decode_as(Pod, raw) for raw in listing.items]
        return {pod.metadata.name: pod for pod in found}

    async def pod(self, name: str) -> Pod:
        return decode_as(Pod, await self.client.get(POD, "default", name))

    async def node_of(self, name: str) -> str:
        return (await self.pod(name)).spec.node_name

    async def condition(self, name: str, type_: str = "PodScheduled") -> tuple[str, str, str] | None:
        """(status, reason, message) of a condition of a pod."""
        for condition in (await self.pod(name)).status.conditions:
            if condition.type == type_:
                return condition.status, condition.reason, condition.message
        return None

    async def events(self, reason: str = "") -> list[tuple[str, str, str]]:
        """(object, reason, note) of each event, in the order in which they happened."""
        listing = await self.client.list(EVENT)
        found = [msgspec.json.decode(raw) for raw in listing.items]
        found.sort(key=lambda event: (event["eventTime"], event["metadata"]["name"]))
        return [
            (event["regarding"]["name"], event["reason"], event["note"])
            for event in found
            if not reason or event["reason"] == reason
        ]

    async def overcommitted(self) -> list[str]:
        """Nodes that were given more cpu than they have, or more pods."""
        nodes = [decode_as(Node, raw) for raw in (await self.client.list(NODE)).items]
        pods = list((await self.pods()).values())
        found = []
        for node in nodes:
            here = [pod for pod in pods if pod.spec.node_name == node.metadata.name]
            used = sum(float(str(c.resources.requests.get("cpu", 0))) for pod in here for c in pod.spec.containers)
            if used > float(str(node.status.allocatable["cpu"])):
                found.append(f"{node.metadata.name}: {used} cpu by {[pod.metadata.name for pod in here]}")
        return found


@asynccontextmanager
async def open_world(clock: VirtualClock, entropy: Entropy) -> AsyncIterator[World]:
    """A world whose API server runs while the block runs."""
    store = MemoryStore()
    async with open_loopback_client(clock, entropy.fork("client"), store) as client, TaskGroup("world") as group:
        yield World(clock, group, entropy, store, client)


def with_plugins(*plugins: type[Plugin], **fields: object) -> tuple[dict[str, Any], Registry]:
    """A configuration that has these plugins at all of their points, before the usual ones; and the registry."""
    enabled = [{"name": plugin.name} for plugin in plugins]
    profile = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"enabled": enabled}}}
    return configuration(profiles=[profile], **fields), Registry((*PLUGINS, *plugins))


def play(
    story: Story,
    *,
    config: Mapping[str, Any] | None = None,
    through: Through | None = None,
    registry: Registry | None = None,
    plugins: Sequence[type[Plugin]] = (),
    limits: Limits | None = None,
    schedulers: int = 1,
    seed: int = 1,
    is_replayed: bool = True,
) -> None:
    """Runs a story with schedulers that are synced, and checks at its end that nothing inside is amiss.

    The schedulers are recorded, and a replay must decide as they did. Not so with extenders, or if a plugin decides by
    what is not in the recording (`is_replayed`). `plugins` are enabled at all of their points, before the usual ones.
    """
    if plugins:
        config, registry = with_plugins(*plugins)
    clock = VirtualClock()
    is_recorded = is_replayed and not (config or {}).get("extenders")

    async def main(folder: Path) -> None:
        async with open_world(clock, Entropy(seed)) as world:
            for number in range(schedulers):
                client = through(world.client, clock) if through is not None else None
                recording = Recording(folder / f"{number}.recording", clock) if is_recorded else None
                world.start_scheduler(config, client=client, registry=registry, limits=limits, recording=recording)
            await world.settle()
            await story(world)
            for scheduler in world.schedulers:
                check(scheduler)

    with TemporaryDirectory(prefix="mooring-story-") as name:
        run(main(Path(name)), clock)
        for number in range(schedulers if is_recorded else 0):
            report = replayed(Path(name) / f"{number}.recording", load_configuration(config), registry)
            assert not report.differences, report.differences[0]


def played(**options: Any) -> Callable[[Story], Callable[[], None]]:
    """Makes a test of a story, which `play` runs with these options."""

    def as_test(story: Story) -> Callable[[], None]:
        @wraps(story)
        def test() -> None:
            play(story, **options)

        test.__signature__ = Signature()  # type: ignore[attr-defined]  # the world is no fixture of pytest
        return test

    return as_test


def replayed(
    path: Path, configuration: SchedulerConfiguration, registry: Registry | None = None, *, is_exact: bool = True
) -> ReplayReport:
    """What the replay of a recording finds."""
    registry = registry if registry is not None else default_registry()
    return run(Replay(RecordingReader(path), configuration, registry, is_exact=is_exact).run())


def check(scheduler: Scheduler) -> None:
    """What holds whenever nothing is under way: the queue is in order, and what is counted is what is there."""
    scheduler.queue.check()
    columns = scheduler.engine.columns
    for row, pods in enumerate(columns.pods_on):
        cpu = sum(int(pod.signature.request_vector[0]) for pod in pods.values())
        assert int(columns.resources.used[0, row]) == cpu, f"row {row} counts what is not there"


def plain(view: ApiObject) -> dict[str, Any]:
    """An object as it is sent to be created."""
    sent: dict[str, Any] = msgspec.to_builtins(view)
    sent["metadata"].pop("resourceVersion", None)
    return {"apiVersion": view.api_version, "kind": view.kind, **sent}


def names(pods: Sequence[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]
