"""StoreLookup decodes each revision of an object once; ServerStatusWriter writes statuses on behalf of the server."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, NODE, RESOURCE_QUOTA
from mooring.apiserver.registry import object_storage
from mooring.apiserver.registry.object_storage import ServerStatusWriter, StoreLookup
from mooring.kit.loop import run
from tests.apiserver.registry.fixture import NOW, NS, RegistryFixture


def test_get_sees_every_write_before_it() -> None:
    async def main() -> None:
        api_server = RegistryFixture()
        lookup = StoreLookup(api_server.store)
        assert await lookup.get(CONFIG_MAP, NS, "o") is None
        revision = await api_server.put(CONFIG_MAP, "o", data={"a": "1"})
        first = await lookup.get(CONFIG_MAP, NS, "o")
        assert first is not None
        assert (first["data"], first["metadata"]["resourceVersion"]) == ({"a": "1"}, str(revision))
        changed: Document = {**first, "data": {"a": "2"}}
        revision = await api_server.context.object_storage.put(CONFIG_MAP, changed, if_revision=revision)
        second = await lookup.get(CONFIG_MAP, NS, "o")
        assert second is not None
        assert second["data"] == {"a": "2"}
        await api_server.context.object_storage.delete(CONFIG_MAP, NS, "o", if_revision=revision)
        assert await lookup.get(CONFIG_MAP, NS, "o") is None

    run(main())


def test_an_unchanged_object_is_decoded_once() -> None:
    async def main() -> None:
        api_server = RegistryFixture()
        lookup = StoreLookup(api_server.store)
        await api_server.put(CONFIG_MAP, "o")
        first = await lookup.get(CONFIG_MAP, NS, "o")
        assert await lookup.get(CONFIG_MAP, NS, "o") is first
        (listed,) = await lookup.list(CONFIG_MAP, NS)
        assert listed is first

    run(main())


def test_labels_are_read_without_the_rest_of_the_object() -> None:
    async def main() -> None:
        api_server = RegistryFixture()
        lookup = StoreLookup(api_server.store)
        assert await lookup.labels(NODE, "", "n") is None
        await api_server.put(NODE, "n")
        assert await lookup.labels(NODE, "", "n") == {}
        labelled: Document = {"metadata": {"name": "m", "labels": {"zone": "z1"}}, "spec": {"podCIDR": "10.0.0.0/24"}}
        await api_server.context.object_storage.create(NODE, labelled)
        assert await lookup.labels(NODE, "", "m") == {"zone": "z1"}

    run(main())


def test_list_returns_objects_of_one_kind_and_one_namespace() -> None:
    async def main() -> None:
        api_server = RegistryFixture()
        lookup = StoreLookup(api_server.store)
        for name in ("b", "a"):
            await api_server.put(CONFIG_MAP, name)
        await api_server.put(NODE, "n")
        assert [each["metadata"]["name"] for each in await lookup.list(CONFIG_MAP, NS)] == ["a", "b"]
        assert await lookup.list(CONFIG_MAP, f"{NS}-other") == []
        assert [each["metadata"]["name"] for each in await lookup.list(NODE)] == ["n"]

    run(main())


def test_the_number_of_cached_documents_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_storage, "CACHED_DOCUMENTS_MAX", 2)

    async def main() -> None:
        api_server = RegistryFixture()
        lookup = StoreLookup(api_server.store)
        for name in "abc":
            await api_server.put(CONFIG_MAP, name)
        first = await lookup.get(CONFIG_MAP, NS, "a")
        for name in "bc":
            await lookup.get(CONFIG_MAP, NS, name)
        again = await lookup.get(CONFIG_MAP, NS, "a")
        assert again == first
        assert again is not first, "the document left the cache and was decoded again"

    run(main())


FIELDS: Document = {"f:status": {"f:hard": {"f:pods": {}}, "f:used": {"f:pods": {}}}}
ENTRY = {
    "manager": "m",
    "operation": "Update",
    "apiVersion": "v1",
    "time": NOW,
    "fieldsType": "FieldsV1",
    "fieldsV1": FIELDS,
    "subresource": "status",
}


def test_write_used_writes_once_per_revision_with_the_server_as_manager() -> None:
    async def main() -> tuple[list[bool], Document]:
        api_server = RegistryFixture()
        status = {"hard": {"pods": "2"}, "used": {"pods": "0"}}
        await api_server.put(
            RESOURCE_QUOTA, "q", {"managedFields": [ENTRY]}, spec={"hard": {"pods": "2"}}, status=status
        )
        writer = ServerStatusWriter(api_server.context.object_storage, api_server.context.resources)
        read = await api_server.get(RESOURCE_QUOTA, "q")
        outcomes = [await writer.write_used(read, {"pods": number}, NOW) for number in ("1", "2")]
        return outcomes, await api_server.get(RESOURCE_QUOTA, "q")

    outcomes, quota = run(main())
    assert outcomes == [True, False]
    assert quota["status"] == {"hard": {"pods": "2"}, "used": {"pods": "1"}}
    assert {one["manager"]: one["fieldsV1"] for one in quota["metadata"]["managedFields"]} == {
        "m": {"f:status": {"f:hard": {"f:pods": {}}}},
        "kube-apiserver": {"f:status": {"f:used": {"f:pods": {}}}},
    }
