"""LoopbackClient fulfils the client contract, with defaults, admission and validation of the API server."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import cast

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, POD
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.registry.object_storage import OBJECT_BYTES_MAX, ObjectStorage
from mooring.apiserver.server import ApiServer
from mooring.client.errors import (
    BadRequestError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    StatusError,
)
from mooring.client.interface import Client, PatchForm
from mooring.store.memory import MemoryStore
from mooring.store.sqlite.errors import DiskFull
from tests.api_servers import with_api_server
from tests.client.contract import ClientContract
from tests.client.contract_play import NS, Play, Scenario
from tests.client.objects import at, config_map, pod, read


class TestTheContract(ClientContract):
    @pytest.fixture
    def play(self) -> Play:
        def play(scenario: Scenario) -> None:
            async def on_server(api_server: ApiServer, client: LoopbackClient) -> None:
                await scenario(client)

            with_api_server(on_server)

        return play


async def rejected(client: Client, body: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        await client.create(POD, NS, body)


def test_created_objects_get_defaults_admission_and_managed_fields() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        made = read(await client.create(POD, NS, pod("web")))
        assert at(made, "spec.priority") == 0
        assert at(made, "spec.restartPolicy") == "Always"
        [entry] = cast("list[dict[str, str]]", at(made, "metadata.managedFields"))
        assert entry["manager"] == "tester"

    with_api_server(scenario)


def test_created_objects_are_validated() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        nameless: dict[str, object] = {**pod("web"), "spec": {"containers": []}}
        await rejected(client, nameless, InvalidError, "spec.containers: Required value")
        strange: dict[str, object] = {**pod("web"), "spec": {"containers": "many"}}
        await rejected(client, strange, BadRequestError, "cannot unmarshal string")
        unknown = pod("web")
        unknown["spec"] = {**cast("dict[str, object]", unknown["spec"]), "priorityClassName": "nobody"}
        await rejected(client, unknown, ForbiddenError, "no PriorityClass with name nobody was found")

    with_api_server(scenario)


def test_creation_in_a_missing_namespace_is_not_found() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        with pytest.raises(NotFoundError, match='namespaces "nowhere" not found'):
            await client.create(CONFIG_MAP, "nowhere", config_map("settings"))

    with_api_server(scenario)


def test_pods_of_one_replica_set_are_created_independently_of_earlier_pods() -> None:
    """Caches filled by earlier pods do not change what is stored: fields, managers and warnings."""
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}]
    other = {"labels": {"b": "c", "a": "b"}, "finalizers": ["example.com/f"], "annotations": {"x": "y"}}

    async def create(client: LoopbackClient, name: str, **metadata: object) -> Document:
        body = pod(name)
        body["metadata"] = {**cast(Document, body["metadata"]), **metadata}
        made = cast(Document, read(await client.create(POD, NS, body)))
        for field in ("uid", "resourceVersion"):
            del made["metadata"][field]
        return made

    alone: list[Document] = []

    async def each_alone(api_server: ApiServer, client: LoopbackClient) -> None:
        alone.append(await create(client, "web", **(other if alone else {"ownerReferences": owners})))

    with_api_server(each_alone)
    with_api_server(each_alone)

    async def together(api_server: ApiServer, client: LoopbackClient) -> None:
        await create(client, "first")
        await create(client, "second", ownerReferences=owners)
        third = await create(client, "web", ownerReferences=owners)
        assert json.dumps(third) == json.dumps(alone[0])
        await client.delete(POD, NS, "web")
        assert json.dumps(await create(client, "web", **other)) == json.dumps(alone[1])

    with_api_server(together)


class _FullStore(MemoryStore):
    async def put(self, key: str, value: bytes, *, if_revision: int | None = None) -> int:
        raise DiskFull("no space")


def test_a_store_error_becomes_an_api_error() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        store = _FullStore()
        storage = ObjectStorage(store, api_server.context.worker)
        api_server.context = replace(api_server.context, object_storage=storage)
        with pytest.raises(ServerError, match="no space") as refused:
            await client.create(CONFIG_MAP, "default", {"metadata": {"name": "a"}})
        assert refused.value.code == 507

    with_api_server(scenario)


def test_the_size_limit_of_an_object_is_that_of_etcd() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        annotations = {f"a{index}": "x" * 1_000 for index in range(200)}
        data = {f"a{index}": "x" * 900 for index in range(1_100)}
        body = {"metadata": {"name": "large", "annotations": annotations}, "data": data}
        stored = await client.create(CONFIG_MAP, "default", body)
        assert 1_000_000 < len(stored) < OBJECT_BYTES_MAX
        labels = {f"l{index}": "x" * 60 for index in range(8_000)}
        with pytest.raises(StatusError, match="and may have 1572864") as refused:
            await client.patch(CONFIG_MAP, "default", "large", {"metadata": {"labels": labels}}, form=PatchForm.MERGE)
        assert (refused.value.code, refused.value.reason) == (413, "RequestEntityTooLarge")

    with_api_server(scenario)


def test_an_object_too_large_after_defaulting_is_rejected_before_validation() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        containers = [{"name": "=", "image": "i"} for _ in range(30_000)]
        with pytest.raises(StatusError, match="the object would have") as refused:
            await client.create(POD, NS, {"metadata": {"name": "a"}, "spec": {"containers": containers}})
        assert refused.value.code == 413

    with_api_server(scenario)
