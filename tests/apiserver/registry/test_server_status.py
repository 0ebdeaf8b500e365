"""ServerStatusWriter writes statuses on behalf of the server."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import RESOURCE_QUOTA
from mooring.apiserver.registry.object_storage import ServerStatusWriter
from mooring.kit.loop import run
from tests.apiserver.registry.fixture import NOW, RegistryFixture

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
        writer = ServerStatusWriter(
            api_server.context.object_storage, api_server.context.resources, api_server.context.kind_schema_of
        )
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
