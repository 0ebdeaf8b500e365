"""Create: names of new objects, fields that the server sets, and rejected requests."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, NAMESPACE, Kind
from mooring.apiserver.call import Call
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.registry.create import GENERATED_NAME_TRIES_MAX, Created, create
from mooring.apiserver.server import ApiServer
from mooring.client.errors import StatusError
from mooring.kit.entropy import SUFFIX_LENGTH, Entropy
from mooring.serving.users import User
from tests.api_servers import with_api_server
from tests.client.objects import read

NS = "default"
NOW = "2026-01-01T00:00:00Z"


class ConfigMapCreator:
    """Creates config maps."""

    def __init__(self, api_server: ApiServer, client: LoopbackClient) -> None:
        self.api_server = api_server
        self.client = client
        self.warnings: list[str] = []

    async def create(self, metadata: Document, *, entropy: Entropy | None = None, **options: Any) -> Created:
        call = Call(
            verb="create",
            kind=CONFIG_MAP,
            user=User("tester"),
            now_s=0.0,
            now=NOW,
            warnings=self.warnings,
            **{"namespace": NS, "field_manager": "hand", **options},
        )
        resource = self.api_server.resources.of_kind(CONFIG_MAP)
        parts = replace(self.api_server.context, entropy=entropy) if entropy is not None else self.api_server.context
        body = msgspec.json.encode({"metadata": metadata, "data": {"x": "1"}})
        read_body = self.api_server.body_reader(resource, call, body, "application/json")
        return await create(parts, resource, call, read_body())

    async def names(self, kind: Kind = CONFIG_MAP, namespace: str = NS) -> list[str]:
        listing = await self.client.list(kind)
        found: list[Any] = [read(raw)["metadata"] for raw in listing.items]
        return [metadata["name"] for metadata in found if metadata.get("namespace", "") == namespace]


def run_scenario(scenario: Callable[[ConfigMapCreator], Awaitable[None]]) -> None:
    async def with_client(api_server: ApiServer, client: LoopbackClient) -> None:
        await scenario(ConfigMapCreator(api_server, client))

    with_api_server(with_client)


# --------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("metadata", "pattern"),
    [
        pytest.param({"name": "it"}, r"it", id="name"),
        pytest.param({"generateName": "it-"}, r"it-[a-z0-9]{5}", id="generateName"),
        pytest.param({"name": "it", "generateName": "other-"}, r"it", id="name and generateName"),
        pytest.param({"generateName": "a" * 70}, r"a{58}[a-z0-9]{5}", id="generateName is truncated"),
    ],
)
def test_create_uses_the_name_or_generates_one_from_generate_name(metadata: Document, pattern: str) -> None:
    async def scenario(creator: ConfigMapCreator) -> None:
        created = (await creator.create(metadata)).document
        assert re.fullmatch(pattern, created["metadata"]["name"])
        assert read(await creator.client.get(CONFIG_MAP, NS, created["metadata"]["name"])) == created

    run_scenario(scenario)


class CollidingEntropy(Entropy):
    """Returns the same suffix `repeats` times before random ones."""

    def __init__(self, repeats: int) -> None:
        super().__init__(1)
        self._repeats = repeats

    def suffix(self, length: int = SUFFIX_LENGTH) -> str:
        self._repeats -= 1
        return "aaaaa" if self._repeats >= 0 else super().suffix(length)


@pytest.mark.parametrize(
    ("repeats", "is_created"),
    [
        pytest.param(1, True, id="one collision"),
        pytest.param(GENERATED_NAME_TRIES_MAX - 1, True, id="one collision less than the limit"),
        pytest.param(GENERATED_NAME_TRIES_MAX, False, id="as many collisions as tries"),
    ],
)
def test_create_retries_a_generated_name_that_is_taken(repeats: int, is_created: bool) -> None:
    async def scenario(creator: ConfigMapCreator) -> None:
        await creator.create({"name": "it-aaaaa"})
        if is_created:
            assert (await creator.create({"generateName": "it-"}, entropy=CollidingEntropy(repeats))).document
            return
        with pytest.raises(StatusError) as refused:
            await creator.create({"generateName": "it-"}, entropy=CollidingEntropy(repeats))
        assert refused.value.message == (
            'configmaps "it-aaaaa" already exists, the server was not able to generate a unique name for the object'
        )
        assert (refused.value.code, refused.value.retry_after_s) == (409, 1)

    run_scenario(scenario)


# ---------------------------------------------------------------------------------------- what the server adds


def test_create_overwrites_system_fields_in_metadata() -> None:
    sent_metadata = {
        "name": "it",
        "uid": "mine",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "selfLink": "/it",
        "resourceVersion": "0",
    }

    async def scenario(creator: ConfigMapCreator) -> None:
        metadata = (await creator.create(sent_metadata)).document["metadata"]
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
        assert (metadata["creationTimestamp"], metadata["namespace"]) == (NOW, NS)
        assert not {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} & metadata.keys()
        assert int(metadata["resourceVersion"]) > 0
        (entry,) = metadata["managedFields"]
        assert (entry["manager"], entry["operation"], entry["time"]) == ("hand", "Update", NOW)

    run_scenario(scenario)


def test_the_response_to_a_create_equals_the_stored_object() -> None:
    async def scenario(creator: ConfigMapCreator) -> None:
        created = await creator.create({"name": "it"})
        assert created.answer is not None
        assert read(created.answer) == created.document == read(await creator.client.get(CONFIG_MAP, NS, "it"))

    run_scenario(scenario)


def test_duplicate_owner_references_are_dropped_with_a_warning() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}

    async def scenario(creator: ConfigMapCreator) -> None:
        created = await creator.create({"name": "it", "ownerReferences": [owner, owner]})
        assert created.document["metadata"]["ownerReferences"] == [owner]
        (warning,) = creator.warnings
        assert "contains duplicate entries" in warning
        assert warning.endswith("duplicate UID(s) observed: u")

    run_scenario(scenario)


# ------------------------------------------------------------------------------------------ rejected requests


@pytest.mark.parametrize(
    ("metadata", "options", "code", "words"),
    [
        pytest.param({}, {}, 422, "metadata.name: Required value: name or generateName is required", id="no name"),
        pytest.param({"name": "It"}, {}, 422, 'metadata.name: Invalid value: "It"', id="a bad name"),
        pytest.param({"name": "taken"}, {}, 409, 'configmaps "taken" already exists', id="existing name"),
        pytest.param(
            {"name": "taken"},
            {"is_dry_run": True},
            409,
            'configmaps "taken" already exists',
            id="existing name in a dry run",
        ),
        pytest.param(
            {"name": "going"},
            {},
            409,
            'object is being deleted: configmaps "going" already exists',
            id="name of a terminating object",
        ),
        pytest.param(
            {"name": "it", "resourceVersion": "5"},
            {},
            500,
            "resourceVersion should not be set on objects to be created",
            id="resourceVersion",
        ),
        pytest.param(
            {"name": "it", "namespace": "other"},
            {},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
            id="another namespace",
        ),
        pytest.param(
            {"name": "it"}, {"namespace": "nowhere"}, 404, 'namespaces "nowhere" not found', id="no such namespace"
        ),
        pytest.param(
            {"name": "it"},
            {"namespace": "closing"},
            403,
            "because it is being terminated",
            id="terminating namespace",
        ),
        pytest.param(
            {"name": "it", "labels": {"a b": "c"}}, {}, 422, "metadata.labels: Invalid value", id="a bad label"
        ),
    ],
)
def test_a_rejected_create_stores_nothing(metadata: Document, options: Document, code: int, words: str) -> None:
    async def scenario(creator: ConfigMapCreator) -> None:
        await creator.create({"name": "taken"})
        await creator.create({"name": "going", "finalizers": ["a.io/b"]})
        await creator.client.delete(CONFIG_MAP, NS, "going")
        await creator.client.create(NAMESPACE, "", {"metadata": {"name": "closing"}})
        await creator.client.delete(NAMESPACE, "", "closing")
        before = await creator.names()
        with pytest.raises(StatusError) as refused:
            await creator.create(metadata, **options)
        assert (refused.value.code, words in refused.value.message) == (code, True), refused.value.message
        assert await creator.names() == before
        assert await creator.names(namespace="closing") == []

    run_scenario(scenario)


def test_a_dry_run_create_stores_nothing_and_returns_the_object() -> None:
    async def scenario(creator: ConfigMapCreator) -> None:
        before = await creator.names()
        created = await creator.create({"generateName": "it-"}, is_dry_run=True)
        assert created.document["metadata"]["uid"]
        assert "resourceVersion" not in created.document["metadata"]
        assert created.answer is None
        assert await creator.names() == before

    run_scenario(scenario)
