"""Creating objects as people write them and as kubectl prints them."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.errors import UnknownKindError
from mooring.api.kinds import CONFIG_MAP
from mooring.apiserver.desk import Desk
from mooring.cluster.objects import ESTABLISHED_S_MAX, create_object, loopback_client, served_kind
from tests.apiserver.desks import with_desk


def definition(plural: str, kind: str) -> Document:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"kind": kind, "plural": plural}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.sea.example"},
        "spec": {"group": "sea.example", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def test_a_printed_object_can_be_created_again() -> None:
    async def scenario(desk: Desk, _: object) -> None:
        metadata = {"name": "c", "uid": "old", "resourceVersion": "7", "generation": 3, "managedFields": []}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "v"}}
        created = await create_object(desk, loopback_client(desk), document)
        assert created["metadata"]["uid"] != "old"
        assert created["metadata"]["namespace"] == "default"
        assert metadata["uid"] == "old", "what was given is not changed"

    with_desk(scenario)


def test_a_custom_resource_may_follow_its_definition() -> None:
    async def scenario(desk: Desk, _: object) -> None:
        client = loopback_client(desk)
        boat = {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"name": "anna"}}
        with pytest.raises(UnknownKindError):
            await create_object(desk, client, boat)
        await create_object(desk, client, definition("boats", "Boat"))
        assert (await create_object(desk, client, boat))["metadata"]["name"] == "anna"

    with_desk(scenario)


def test_a_definition_whose_kind_is_taken_is_not_waited_for_longer_than_told() -> None:
    async def scenario(desk: Desk, _: object) -> None:
        client = loopback_client(desk)
        await create_object(desk, client, definition("boats", "Boat"))
        await create_object(desk, client, definition("ships", "Boat"))
        assert desk.clock.now_s() == pytest.approx(ESTABLISHED_S_MAX, abs=0.2)

    with_desk(scenario)


def test_kinds_are_found_by_version_and_name() -> None:
    async def scenario(desk: Desk, _: object) -> None:
        assert served_kind(desk, "v1", "ConfigMap") is CONFIG_MAP
        with pytest.raises(UnknownKindError, match="Ingress"):
            served_kind(desk, "networking.k8s.io/v1", "Ingress")

    with_desk(scenario)
