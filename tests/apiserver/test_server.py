"""ApiServer: service account tokens for loopback clients, warnings of calls, and lookup of resources by kind."""

from __future__ import annotations

import pytest

from mooring.api.kinds import POD, SERVICE_ACCOUNT, Kind
from mooring.apiserver.call import WARNINGS_MAX, Call
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.resources import ResourceTable, built_in_resources
from mooring.apiserver.server import ApiServer
from mooring.client.errors import NotFoundError
from mooring.client.interface import JsonObject
from mooring.serving.users import User
from tests.api_servers import with_api_server
from tests.client.objects import at, read


def request(pod_uid: str) -> JsonObject:
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": pod_uid}
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": [], "expirationSeconds": 3607, "boundObjectRef": bound},
    }


def test_request_token_issues_a_token_for_a_pod() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        await client.create(SERVICE_ACCOUNT, "default", {"metadata": {"name": "robot"}})
        container = {"name": "main", "image": "registry.k8s.io/pause:3.9"}
        spec = {"serviceAccountName": "robot", "containers": [container]}
        made = read(await client.create(POD, "default", {"metadata": {"name": "web"}, "spec": spec}))
        answer = read(await client.request_token("default", "robot", request(str(at(made, "metadata.uid")))))
        assert str(at(answer, "status.token")).count(".") == 2
        assert at(answer, "status.expirationTimestamp")

    with_api_server(scenario)


def test_request_token_for_a_missing_service_account_is_not_found() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        with pytest.raises(NotFoundError, match='serviceaccounts "nobody" not found'):
            await client.request_token("default", "nobody", request(""))

    with_api_server(scenario)


def new_call(*warnings: str) -> Call:
    return Call("create", POD, User("tester"), 0.0, "", warnings=list(warnings))


def test_a_warning_is_recorded_once() -> None:
    call = new_call("deprecated")
    for text in ("deprecated", "a", "b", "a"):
        call.warn(text)
    assert call.warnings == ["deprecated", "a", "b"]


def test_the_number_of_warnings_is_limited() -> None:
    call = new_call()
    for number in range(WARNINGS_MAX + 10):
        call.warn(f"unknown field {number}")
    assert len(call.warnings) == WARNINGS_MAX


def test_a_resource_is_found_by_an_equal_kind() -> None:
    table = ResourceTable(built_in_resources())
    assert table.of_kind(POD).kind is POD
    assert table.of_kind(Kind("v1", "Pod", "pods")).kind is POD


def test_a_kind_that_is_not_served_is_not_found_in_the_resource_table() -> None:
    with pytest.raises(NotFoundError):
        ResourceTable().of_kind(Kind("example.com/v1", "Widget", "widgets"))
