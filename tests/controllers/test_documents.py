"""Whole objects, to be written back."""

from __future__ import annotations

import msgspec
import pytest

from mooring.api.decode import decode_as
from mooring.api.kinds import REPLICA_SET
from mooring.api.views.workloads import ReplicaSet
from mooring.controllers.documents import document_of, is_being_deleted, owner_reference, read_document
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.api_servers import open_loopback_client
from tests.controllers.builders import replica_set, replica_set_view


def test_a_document_has_every_field_and_is_the_caller_s_own() -> None:
    whole = {**replica_set("web"), "unheardOf": {"deep": [1]}}
    view = decode_as(ReplicaSet, msgspec.json.encode(whole))
    document = document_of(view)
    assert document == whole
    document["spec"]["replicas"] = 99
    assert document_of(view) == whole


def test_what_was_not_read_from_json_cannot_be_written_back() -> None:
    with pytest.raises(AssertionError, match="nothing to write back"):
        document_of(ReplicaSet())


def test_the_newest_document() -> None:
    async def main() -> None:
        async with open_loopback_client(VirtualClock()) as client:
            view = decode_as(ReplicaSet, await client.create(REPLICA_SET, "default", replica_set("web", replicas=1)))
            document = document_of(view)
            document["spec"]["replicas"] = 2
            await client.update(REPLICA_SET, "default", "web", document)
            assert (await read_document(client, view))["spec"]["replicas"] == 2

    run(main())


def test_who_controls() -> None:
    view = replica_set_view("web")
    assert owner_reference(view) == {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": "uid-web",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert not is_being_deleted(view.metadata)
