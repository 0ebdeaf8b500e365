"""Creating objects as people write them and as kubectl prints them."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.errors import UnknownKindError
from mooring.api.kinds import CONFIG_MAP
from mooring.apiserver.server import ApiServer
from mooring.cluster.objects import ESTABLISHED_S_MAX, create_object, loopback_client, served_kind
from tests.api_servers import with_api_server


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
    async def scenario(api_server: ApiServer, _: object) -> None:
        metadata = {"name": "c", "uid": "old", "resourceVersion": "7", "generation": 3, "managedFields": []}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "v"}}
        created = await create_object(api_server, loopback_client(api_server), document)
        assert created["metadata"]["uid"] != "old"
        assert created["metadata"]["namespace"] == "default"
        assert metadata["uid"] == "old", "what was given is not changed"

    with_api_server(scenario)


def test_a_custom_resource_may_follow_its_definition() -> None:
    async def scenario(api_server: ApiServer, _: object) -> None:
        client = loopback_client(api_server)
        boat = {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"name": "anna"}}
        with pytest.raises(UnknownKindError):
            await create_object(api_server, client, boat)
        await create_object(api_server, client, definition("boats", "Boat"))
        assert (await create_object(api_server, client, boat))["metadata"]["name"] == "anna"

    with_api_server(scenario)


def test_a_definition_whose_kind_is_taken_is_awaited_up_to_the_limit() -> None:
    async def scenario(api_server: ApiServer, _: object) -> None:
        client = loopback_client(api_server)
        await create_object(api_server, client, definition("boats", "Boat"))
        await create_object(api_server, client, definition("ships", "Boat"))
        assert api_server.clock.now_s() == pytest.approx(ESTABLISHED_S_MAX, abs=0.2)

    with_api_server(scenario)


def test_kinds_are_found_by_version_and_name() -> None:
    async def scenario(api_server: ApiServer, _: object) -> None:
        assert served_kind(api_server, "v1", "ConfigMap") is CONFIG_MAP
        with pytest.raises(UnknownKindError, match="Ingress"):
            served_kind(api_server, "networking.k8s.io/v1", "Ingress")

    with_api_server(scenario)
