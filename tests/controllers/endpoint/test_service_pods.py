"""When a service is synced, and its endpoints."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD, SERVICE, Kind
from mooring.client.interface import Client, PatchForm
from mooring.client.workqueue import WorkQueue
from mooring.controllers.context import ControllerContext
from mooring.controllers.endpoint.service_pods import (
    BATCH_S_PER_POD,
    LARGE_SERVICE,
    ServicePods,
    TriggerTimes,
    addresses_of,
    families_of,
    has_address,
    hostname_of,
    is_endpoint_changed,
    ports_of,
    selector_of_service,
)
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from tests.api_servers import create, open_loopback_client
from tests.controllers.cluster_builders import backend, backend_view, service, service_view

NAMED = {"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}
WEB = [{"name": "web", "containerPort": 8080, "protocol": "TCP"}]
KEY = "default/web"


@pytest.mark.parametrize(
    ("parts", "is_one"),
    [
        pytest.param({}, True, id="it runs"),
        pytest.param({"address": ""}, False, id="it has no address yet"),
        pytest.param({"phase": "Succeeded"}, False, id="it has ended"),
        pytest.param({"going": True}, True, id="it goes"),
    ],
)
def test_a_pod_can_be_an_endpoint(parts: dict[str, Any], is_one: bool) -> None:
    assert has_address(backend_view("p", **parts)) is is_one


@pytest.mark.parametrize(
    ("spec", "ports"),
    [
        pytest.param({"containers": [{"name": "c", "ports": WEB}]}, [8080], id="of a container"),
        pytest.param(
            {"containers": [], "initContainers": [{"name": "c", "restartPolicy": "Always", "ports": WEB}]},
            [8080],
            id="of a sidecar",
        ),
        pytest.param(
            {"containers": [], "initContainers": [{"name": "c", "ports": WEB}]}, [], id="of init containers only"
        ),
        pytest.param({}, [], id="it has none of that name"),
    ],
)
def test_a_named_port_is(spec: dict[str, Any], ports: list[int]) -> None:
    found = ports_of(service_view(ports=[NAMED]), backend_view("p", **spec))
    assert [port.port for port in found] == ports


@pytest.mark.parametrize(
    ("spec", "families"),
    [
        pytest.param({}, ("IPv4",), id="it says"),
        pytest.param({"ipFamilies": ["IPv6", "IPv4"]}, ("IPv6", "IPv4"), id="it says two"),
        pytest.param({"ipFamilies": [], "clusterIP": "fd00::1"}, ("IPv6",), id="its address says"),
        pytest.param({"ipFamilies": [], "clusterIP": "None"}, ("IPv4", "IPv6"), id="not specified"),
    ],
)
def test_a_service_is_reached_by(spec: dict[str, Any], families: tuple[str, ...]) -> None:
    assert families_of(service_view(**spec)) == families


def test_addresses_are_distinguished_by_family() -> None:
    pod = backend_view("p", "fd00::2")
    assert (addresses_of(pod, "IPv4"), addresses_of(pod, "IPv6")) == ((), ("fd00::2",))


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        pytest.param({"hostname": "h", "subdomain": "web"}, "h", id="in the service's domain"),
        pytest.param({"hostname": "h", "subdomain": "other"}, None, id="in another one"),
        pytest.param({"subdomain": "web"}, None, id="without a name"),
    ],
)
def test_a_pod_is_known_by_name(spec: dict[str, Any], name: str | None) -> None:
    assert hostname_of(backend_view("p", **spec), service_view()) == name


def test_an_external_name_service_selects_no_pod() -> None:
    assert selector_of_service(service_view(type="ExternalName")).matches_nothing
    assert selector_of_service(service_view(selector=None)).matches_nothing
    assert selector_of_service(service_view()).matches({"app": "web"})


def test_only_what_matters_to_endpoints_is_a_change() -> None:
    assert not is_endpoint_changed(backend_view("p"), backend_view("p", labels={}))
    assert is_endpoint_changed(backend_view("p"), backend_view("p", is_ready=False))
    assert is_endpoint_changed(backend_view("p"), backend_view("p", going=True))
    assert is_endpoint_changed(backend_view("p"), backend_view("p", "10.9.9.9"))


def test_the_trigger_time_of_a_change_is_used_once() -> None:
    times, pod = TriggerTimes(), backend_view("p")
    assert times.observe(service_view(), [pod]) == "2026-01-01T00:00:00Z"
    assert times.observe(service_view(), [pod]) == ""
    times.forget("default/web")
    assert times.observe(service_view(), [pod]) == "2026-01-01T00:00:00Z"


class Watched:
    """Services and pods, and who follows them."""

    def __init__(self, clock: VirtualClock, group: TaskGroup, client: Client, batch_s: float) -> None:
        self.clock = clock
        self.client = client
        context = ControllerContext(self.client, clock, Entropy(2))
        self.queue: WorkQueue[str] = context.queue("test")
        self.service_pods = ServicePods(context, "test", self.queue, batch_s)
        context.informers.start(group)

    async def create(self, *documents: Document) -> None:
        for document in documents:
            await create(self.client, SERVICE if document["kind"] == "Service" else POD, "default", document)

    async def patch(self, kind: Kind, name: str, patch: Document, subresource: str = "") -> None:
        await self.client.patch(kind, "default", name, patch, form=PatchForm.MERGE, subresource=subresource)

    async def enqueued(self, after_s: float = 0.01) -> bool:
        """Whether the service is due by then."""
        await self.clock.wait(after_s)
        key = self.queue.get_nowait()
        if key is not None:
            self.queue.done(key)
        assert key in (KEY, None)
        return key is not None

    def names(self) -> Sequence[str]:
        found = self.service_pods.service(KEY)
        assert found is not None
        return sorted(pod.metadata.name for pod in self.service_pods.read(found)[0])


def run_story(story: Callable[[Watched], Awaitable[None]], batch_s: float = 0.0) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_loopback_client(clock) as client, TaskGroup("services") as group:
            watched = Watched(clock, group, client, batch_s)
            await clock.wait(1)
            await story(watched)
            group.cancel()

    run(main(), clock)


OTHER: Document = {"metadata": {"labels": {"app": "other"}}}
NOT_READY: Document = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
NOTED: Document = {"metadata": {"annotations": {"a": "b"}}}


@pytest.mark.parametrize(
    ("pod", "patch", "subresource", "is_queued"),
    [
        pytest.param(backend("a"), NOT_READY, "status", True, id="a pod that is not ready any more"),
        pytest.param(backend("a"), OTHER, "", True, id="a pod that leaves"),
        pytest.param(
            backend("a", labels={"app": "other"}), {"metadata": {"labels": {"app": "web"}}}, "", True, id="joins"
        ),
        pytest.param(backend("a"), NOTED, "", False, id="a pod that changes nothing"),
        pytest.param(backend("a", labels={"app": "other"}), NOT_READY, "status", False, id="a pod of others"),
    ],
)
def test_a_service_is_looked_at_again_for(pod: Document, patch: Document, subresource: str, is_queued: bool) -> None:
    async def story(watched: Watched) -> None:
        await watched.create(service(), pod)
        assert await watched.enqueued()
        await watched.patch(POD, "a", patch, subresource)
        assert await watched.enqueued() is is_queued

    run_story(story)


def test_a_service_is_looked_at_when_it_changes_and_when_it_goes() -> None:
    async def story(watched: Watched) -> None:
        await watched.create(service(), backend("a"), backend("b", labels={"app": "db"}))
        assert await watched.enqueued()
        assert watched.names() == ["a"]
        await watched.patch(SERVICE, "web", {"spec": {"selector": {"app": "db"}}})
        assert await watched.enqueued()
        assert watched.names() == ["b"]
        await watched.client.delete(SERVICE, "default", "web")
        assert await watched.enqueued()
        assert watched.service_pods.service(KEY) is None

    run_story(story)


def test_changes_are_gathered_as_long_as_the_settings_say() -> None:
    async def story(watched: Watched) -> None:
        await watched.create(service())
        assert await watched.enqueued()
        await watched.create(backend("a"))
        assert not await watched.enqueued(1.5)
        assert await watched.enqueued(1.0)

    run_story(story, batch_s=2.0)


def test_a_large_service_is_looked_at_less_often_until_it_is_forgotten() -> None:
    async def story(watched: Watched) -> None:
        size = LARGE_SERVICE + 1
        await watched.create(service(), *(backend(f"p{number}") for number in range(size)))
        assert await watched.enqueued()
        assert len(watched.names()) == size
        await watched.patch(POD, "p0", NOT_READY, "status")
        assert not await watched.enqueued(size * BATCH_S_PER_POD / 2)
        assert await watched.enqueued(size * BATCH_S_PER_POD)
        watched.service_pods.forget(KEY)
        await watched.patch(POD, "p1", NOT_READY, "status")
        assert await watched.enqueued(size * BATCH_S_PER_POD / 2)

    run_story(story)
