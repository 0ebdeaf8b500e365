"""Shared informers of a process, and their convergence to the server's state despite failures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Self, TypeVar

import pytest

from mooring.api.decode import decode_as
from mooring.api.kinds import NODE, POD, Kind
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.apiserver.assembly import open_api_server
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.client.errors import ClientError, ExpiredError, NoAnswerError, ServerError, TooManyRequestsError
from mooring.client.informer import SharedInformers
from mooring.client.interface import EVERYTHING, Listing, PatchForm, Selection, Watch, WatchEvent
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.serving.users import User
from mooring.store.memory import MemoryStore
from tests.api_servers import WITHOUT_CONTROLLERS
from tests.client.objects import node, pod

SEEDS = range(30)
FAILURES_S = 120
PODS = [f"pod-{number}" for number in range(12)]


Result = TypeVar("Result")


class Cluster:
    """An API server, a client of it, and informers, on virtual time."""

    def __init__(self, api_server: ApiServer, clock: VirtualClock, entropy: Entropy) -> None:
        self.api_server = api_server
        self.clock = clock
        self.entropy = entropy
        self.client = LoopbackClient(api_server, User("tester"), "tester")

    def informers(self) -> SharedInformers:
        return SharedInformers(self.client, self.clock, self.entropy.fork("informers"), page_size=5)

    async def create(self, name: str, *, app: str = "web") -> None:
        await self.client.create(POD, "default", pod(name, labels={"app": app}))


def run_on_cluster(scenario: Callable[[Cluster], Awaitable[Result]], seed: int = 1) -> Result:
    clock, entropy = VirtualClock(), Entropy(seed)

    async def main() -> Result:
        store, apiserver = MemoryStore(), entropy.fork("apiserver")
        async with open_api_server(store, clock, apiserver, WITHOUT_CONTROLLERS) as api_server:
            return await scenario(Cluster(api_server, clock, entropy))

    return run(main(), clock)


def test_the_same_kind_and_selection_share_an_informer() -> None:
    async def scenario(cluster: Cluster) -> None:
        informers = cluster.informers()
        assert informers.informer(Pod) is informers.informer(Pod)
        assert informers.informer(Pod) is not informers.informer(Pod, Selection(namespace="default"))

    run_on_cluster(scenario)


def test_informers_start_once_and_follow_the_server() -> None:
    async def follow(cluster: Cluster) -> tuple[list[str], list[str], dict[str, dict[str, int]]]:
        informers = cluster.informers()
        pods, nodes = informers.informer(Pod), informers.informer(Node)
        await cluster.create("a")
        async with TaskGroup("informers") as group:
            informers.start(group)
            informers.start(group)
            await informers.wait_all_synced()
            assert pods.has_synced
            assert nodes.has_synced
            await cluster.create("b")
            await cluster.client.create(NODE, "", node("n1"))
            await cluster.clock.wait(1)
            return list(pods.lister.keys()), list(nodes.lister.keys()), informers.statistics()

    pods, nodes, statistics = run_on_cluster(follow)
    assert (pods, nodes) == (["default/a", "default/b"], ["n1"])
    assert statistics["pods as Pod"]["lists"] == 1
    assert statistics["nodes as Node"]["objects"] == 1


def test_an_informer_created_later_is_started_by_the_next_start() -> None:
    async def follow(cluster: Cluster) -> list[str]:
        informers = cluster.informers()
        informers.informer(Node)
        async with TaskGroup("informers") as group:
            informers.start(group)
            await informers.wait_all_synced()
            late = informers.informer(Pod, Selection(labels="app=db"))
            await cluster.create("a", app="db")
            await cluster.create("b")
            informers.start(group)
            await informers.wait_all_synced()
            return list(late.lister.keys())

    assert run_on_cluster(follow) == ["default/a"]


def test_an_informer_with_a_selection_gets_objects_that_enter_and_leave_it() -> None:
    async def follow(cluster: Cluster) -> list[str]:
        informers = cluster.informers()
        informer = informers.informer(Pod, Selection(labels="app=db"))
        calls: list[str] = []
        informer.add_handler(
            "recorder",
            on_add=lambda new: calls.append(f"add {new.key}"),
            on_delete=lambda old: calls.append(f"delete {old.key}"),
        )
        await cluster.create("a")
        async with TaskGroup("informers") as group:
            informers.start(group)
            await informers.wait_all_synced()
            for app in ("db", "web"):
                patch = {"metadata": {"labels": {"app": app}}}
                await cluster.client.patch(POD, "default", "a", patch, form=PatchForm.MERGE)
                await cluster.clock.wait(1)
            return calls

    assert run_on_cluster(follow) == ["add default/a", "delete default/a"]


# --- failures ----------------------------------------------------------------------------------------------------


class UnreliableClient(LoopbackClient):
    """A client whose lists fail and whose watches end, are delayed, repeat events or expire while `is_unreliable`."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.api_server, User("tester"), "tester")
        self._time = cluster.clock
        self._dice = cluster.entropy.fork("trouble")
        self._past: list[WatchEvent] = []
        self.is_unreliable = True

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        await self.fail_or_wait()
        return await super().list(kind, selection, limit=limit, continue_token=continue_token, revision=revision)

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> Watch:
        return UnreliableWatch(self, super().watch(kind, selection, since=since, bookmarks=bookmarks))

    async def fail_or_wait(self) -> None:
        """Sometimes wait or fail."""
        if not self.is_unreliable:
            return
        if self.happens(4):
            await self._time.wait(self._dice.uniform(0, 3))
        errors: list[ClientError] = [
            NoAnswerError("cut"),
            ServerError("overloaded"),
            ExpiredError("too old resource version"),
            TooManyRequestsError("later", retry_after_s=1.0),
        ]
        if self.happens(5):
            raise self._dice.choose(errors)

    def happens(self, one_in: int) -> bool:
        return self.is_unreliable and self._dice.integer_below(one_in) == 0

    def some_of(self, batch: Sequence[WatchEvent]) -> Sequence[WatchEvent]:
        """The batch, with repetitions of earlier events."""
        events: list[WatchEvent] = []
        for event in batch:
            self._past.append(event)
            events.append(event)
            if self.happens(4):
                events.append(self._dice.choose(self._past))
        return events


class UnreliableWatch:
    def __init__(self, client: UnreliableClient, watch: Watch) -> None:
        self._client = client
        self._watch = watch

    async def __aenter__(self) -> Self:
        await self._client.fail_or_wait()
        await self._watch.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._watch.__aexit__(kind, error, trace)

    async def next_batch(self) -> Sequence[WatchEvent]:
        if self._client.happens(8):
            return []
        batch = await self._watch.next_batch()
        await self._client.fail_or_wait()
        return self._client.some_of(batch)


class ConsistencyChecker:
    """A handler that records inconsistent calls."""

    def __init__(self) -> None:
        self.objects: dict[str, ApiObject] = {}
        self.faults: list[str] = []

    def on_add(self, new: Pod) -> None:
        if new.key in self.objects:
            self.faults.append(f"{new.key} is added twice")
        self.objects[new.key] = new

    def on_update(self, old: Pod, new: Pod) -> None:
        if self.objects.get(new.key) is not old:
            self.faults.append(f"{new.key}: the old object is not the last known one")
        if int(new.metadata.resource_version) <= int(old.metadata.resource_version):
            self.faults.append(f"{new.key} has an older revision")
        if new.metadata.uid != old.metadata.uid:
            self.faults.append(f"{new.key} has another uid")
        self.objects[new.key] = new

    def on_delete(self, old: Pod) -> None:
        if self.objects.pop(old.key, None) is not old:
            self.faults.append(f"{old.key}: the old object is not the last known one")


async def change_pods(client: LoopbackClient, clock: VirtualClock, entropy: Entropy) -> None:
    """Create, change and delete random pods for a while."""
    while clock.now_s() < FAILURES_S:
        name = entropy.choose(PODS)
        try:
            match entropy.integer_below(4):
                case 0:
                    await client.delete(POD, "default", name)
                case 1:
                    patch = {"metadata": {"labels": {"app": entropy.choose(["web", "db"])}}}
                    await client.patch(POD, "default", name, patch, form=PatchForm.MERGE)
                case _:
                    await client.create(POD, "default", pod(name, labels={"app": "web"}))
        except ClientError:
            pass  # the pod exists already or does not exist
        await clock.wait(entropy.choose([0, 0, 0.1, 1]))


@pytest.mark.parametrize("selection", [EVERYTHING, Selection(labels="app=web")], ids=["all pods", "some pods"])
def test_informers_converge_to_the_server_after_failures(selection: Selection) -> None:
    for seed in SEEDS:

        async def run_with_failures(cluster: Cluster) -> tuple[ConsistencyChecker, list[ApiObject], list[ApiObject]]:
            client = UnreliableClient(cluster)
            informers = SharedInformers(client, cluster.clock, cluster.entropy.fork("informers"), page_size=5)
            informer = informers.informer(Pod, selection)
            checker = ConsistencyChecker()
            informer.add_handler(
                "checker", on_add=checker.on_add, on_update=checker.on_update, on_delete=checker.on_delete
            )
            async with TaskGroup("suffering") as group:
                informers.start(group)
                await change_pods(client, cluster.clock, cluster.entropy.fork("life"))
                client.is_unreliable = False
                await cluster.clock.wait(200)
                listing = await client.list(POD, selection)
                truth: list[ApiObject] = [decode_as(Pod, raw) for raw in listing.items]
                return checker, list(informer.lister), truth

        checker, copy, truth = run_on_cluster(run_with_failures, seed)
        assert checker.faults == [], f"seed {seed}"
        assert by_key(copy) == by_key(truth) == by_key(checker.objects.values()), f"seed {seed}"


def by_key(views: Iterable[ApiObject]) -> list[tuple[str, str]]:
    return sorted((view.key, view.metadata.resource_version) for view in views)
