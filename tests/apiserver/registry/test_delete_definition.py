"""Deleting a definition marks it first."""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document
from mooring.api.kinds import CUSTOM_RESOURCE_DEFINITION
from mooring.apiserver.access.users import User
from mooring.apiserver.call import Call
from mooring.apiserver.registry.delete import CLEANUP_FINALIZER, mark_definition
from mooring.apiserver.registry.object_storage import Stored
from mooring.kit.loop import run
from tests.apiserver.custom.definitions import definition
from tests.apiserver.registry.fixture import NOW, RegistryFixture


def test_the_first_deletion_does_nothing_but_mark_it() -> None:
    async def play(*, is_dry_run: bool) -> tuple[Document, Any]:
        api_server = RegistryFixture()
        object_storage, resource = (
            api_server.parts.object_storage,
            api_server.parts.resources.of_kind(CUSTOM_RESOURCE_DEFINITION),
        )
        revision = (await object_storage.create(CUSTOM_RESOURCE_DEFINITION, definition())).revision
        call = Call("delete", CUSTOM_RESOURCE_DEFINITION, User("u"), 0.0, NOW, is_dry_run=is_dry_run)
        marked = await mark_definition(api_server.parts, resource, call, Stored(definition(), revision, b""))
        found = await object_storage.find(CUSTOM_RESOURCE_DEFINITION, "", "widgets.example.com")
        return marked, found

    marked, found = run(play(is_dry_run=False))
    assert marked["metadata"]["finalizers"] == [CLEANUP_FINALIZER]
    assert marked["metadata"]["deletionTimestamp"] == NOW
    assert marked["status"]["conditions"][-1]["reason"] == "InstanceDeletionPending"
    assert found.document["metadata"]["deletionTimestamp"] == NOW
    _, untouched = run(play(is_dry_run=True))
    assert "deletionTimestamp" not in untouched.document["metadata"]
