"""How many pods the owners of pods want."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from mooring.api.document import Document
from mooring.api.kinds import CUSTOM_RESOURCE_DEFINITION, Kind, kind_named
from mooring.api.views.meta import OwnerReference
from mooring.client.interface import PatchForm
from mooring.controllers.context import Workshop
from mooring.controllers.disruption.owners import OwnerScales, ScaleError
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.store.memory import MemoryStore
from tests.fakes.raw_client import RawClient

WIDGET = Kind("example.com/v1", "Widget", "widgets", folder="example.com/widgets")


class Cluster:
    """Owners, and somebody who asks for their scales."""

    def __init__(self, clock: VirtualClock, group: TaskGroup) -> None:
        self.clock, self.group = clock, group
        self.client = RawClient(MemoryStore(), clock, Entropy(1))

    async def create(self, kind: Kind, name: str, spec: Document, **metadata: Any) -> str:
        """Its uid."""
        namespace = "default" if kind.is_namespaced else ""
        identity = {"name": name, **({"namespace": namespace} if namespace else {}), **metadata}
        document = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": identity, "spec": spec}
        made: Document = msgspec.json.decode(await self.client.create(kind, namespace, document))
        return str(made["metadata"]["uid"])

    async def replicas(self, api_version: str, kind: str, name: str, uid: str) -> int | None:
        workshop = Workshop(self.client, self.clock, Entropy(2))
        scales = OwnerScales(workshop)
        workshop.informers.start(self.group)
        await self.clock.wait(1)
        owner = OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid, controller=True)
        scale = await scales.scale_of(owner, "default")
        assert scale is None or scale.uid == uid or kind == "ReplicaSet"
        return scale.replicas if scale is not None else None


def tell(story: Callable[[Cluster], Awaitable[None]]) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with TaskGroup("owners") as group:
            await story(Cluster(clock, group))
            group.cancel()

    run(main(), clock)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")],
)
@pytest.mark.parametrize(("spec", "replicas"), [({"replicas": 0}, 0), ({}, 1)], ids=["it says how many", "one else"])
def test_a_built_in_owner_wants(api_version: str, kind: str, spec: Document, replicas: int) -> None:
    async def story(cluster: Cluster) -> None:
        uid = await cluster.create(kind_named(api_version, kind), "x", spec)
        assert await cluster.replicas(api_version, kind, "x", uid) == replicas
        assert await cluster.replicas(api_version, kind, "x", "former") is None, "another one by now"
        assert await cluster.replicas(api_version, kind, "y", uid) is None, "not there"

    tell(story)


@pytest.mark.parametrize(
    ("above", "replicas"),
    [
        pytest.param({"kind": "Deployment", "name": "d"}, 7, id="a Deployment decides"),
        pytest.param({"kind": "Deployment", "name": "gone"}, None, id="a Deployment that is gone"),
        pytest.param({"kind": "Rollout", "name": "d"}, 3, id="somebody else does not"),
    ],
)
def test_above_a_replica_set(above: Document, replicas: int | None) -> None:
    async def story(cluster: Cluster) -> None:
        uid = await cluster.create(kind_named("apps/v1", "Deployment"), "d", {"replicas": 7})
        owner = {"apiVersion": "apps/v1", "uid": uid, "controller": True, **above}
        mine = await cluster.create(kind_named("apps/v1", "ReplicaSet"), "x", {"replicas": 3}, ownerReferences=[owner])
        assert await cluster.replicas("apps/v1", "ReplicaSet", "x", mine) == replicas

    tell(story)


async def define_widgets(cluster: Cluster, **subresources: Any) -> None:
    names = {"plural": "widgets", "kind": "Widget"}
    versions = [
        {"name": "v1beta1", "served": True, "storage": False},
        {"name": "v1", "served": True, "storage": True, "subresources": subresources},
    ]
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    await cluster.create(CUSTOM_RESOURCE_DEFINITION, "widgets.example.com", spec)
    status = {"acceptedNames": names, "conditions": [{"type": "Established", "status": "True"}]}
    patch: Document = {"status": status}
    kind, name = CUSTOM_RESOURCE_DEFINITION, "widgets.example.com"
    await cluster.client.patch(kind, "", name, patch, form=PatchForm.MERGE, subresource="status")


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        pytest.param({"pods": {"count": 5}}, 5, id="where its definition says"),
        pytest.param({"pods": {"count": "5"}}, 0, id="not a number"),
        pytest.param({"pods": 5}, 0, id="another shape"),
        pytest.param({}, 0, id="it says nothing"),
    ],
)
def test_a_custom_owner_wants(spec: Document, replicas: int) -> None:
    async def story(cluster: Cluster) -> None:
        await define_widgets(cluster, scale={"specReplicasPath": ".spec.pods.count"})
        uid = await cluster.create(WIDGET, "x", spec)
        assert await cluster.replicas("example.com/v1", "Widget", "x", uid) == replicas
        assert await cluster.replicas("example.com/v1", "Widget", "x", "former") is None, "another one by now"
        assert await cluster.replicas("example.com/v1", "Widget", "y", uid) is None, "not there"

    tell(story)


@pytest.mark.parametrize(
    ("api_version", "kind", "message"),
    [
        ("example.com/v1", "Widget", "widgets.example.com does not implement the scale subresource"),
        ("batch/v1", "Job", "jobs.batch does not implement the scale subresource"),
        ("apps/v9", "Thing", 'no matches for kind "Thing" in version "apps/v9"'),
    ],
    ids=["a custom kind without one", "a built-in kind without one", "a kind that nobody knows"],
)
def test_a_kind_without_a_scale_is_refused_in_words(api_version: str, kind: str, message: str) -> None:
    async def story(cluster: Cluster) -> None:
        await define_widgets(cluster)
        with pytest.raises(ScaleError, match=message):
            await cluster.replicas(api_version, kind, "x", "u")

    tell(story)
