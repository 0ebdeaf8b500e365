"""The scale subresource changes only the replicas, checks preconditions, and records the field manager."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import DEPLOYMENT, REPLICATION_CONTROLLER
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.scale import scale_of, scaled, validate_scale
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.registry.patches import Patch
from mooring.apiserver.registry.scale import patch_scale, put_scale
from mooring.apiserver.server import ApiServer
from mooring.client.errors import StatusError
from mooring.client.interface import PatchForm
from mooring.serving.users import User
from tests.api_servers import with_api_server
from tests.apiserver.core_documents import messages
from tests.apiserver.workload_builders import UID, body, changed, created
from tests.client.objects import read

NS = "default"
SPEC: Document = {
    "replicas": 2,
    "selector": {"matchLabels": {"app": "web"}},
    "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
}


class ScaleFixture:
    """A deployment of two replicas, and a client of its scale subresource."""

    def __init__(self, api_server: ApiServer, client: LoopbackClient) -> None:
        self._api_server = api_server
        self._client = client

    async def create(self) -> Document:
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": SPEC}
        return read(await self._client.create(DEPLOYMENT, NS, body))

    async def stored(self) -> Document:
        return read(await self._client.get(DEPLOYMENT, NS, "web"))

    async def put(self, replicas: int, **metadata: Any) -> Document:
        body = {"metadata": {"name": "web", **metadata}, "spec": {"replicas": replicas}}
        resource = self._api_server.resources.of_kind(DEPLOYMENT)
        return await put_scale(self._api_server.context, resource, self._call("hand"), body)

    async def patch(self, content: object, form: PatchForm = PatchForm.MERGE, by: str = "hand") -> Document:
        reader = self._api_server.other_document_reader("autoscaling/v1", "Scale")
        resource = self._api_server.resources.of_kind(DEPLOYMENT)
        return await patch_scale(self._api_server.context, resource, self._call(by), Patch(form, content), reader)

    def _call(self, manager: str) -> Call:
        return Call(
            verb="update",
            kind=DEPLOYMENT,
            user=User("tester"),
            now_s=0.0,
            now="2026-01-01T00:00:00Z",
            namespace=NS,
            name="web",
            subresource="scale",
            field_manager=manager,
        )


def run_scenario(scenario: Any) -> None:
    async def with_client(api_server: ApiServer, client: LoopbackClient) -> None:
        fixture = ScaleFixture(api_server, client)
        await fixture.create()
        await scenario(fixture)

    with_api_server(with_client)


def by_manager(obj: Document) -> dict[tuple[str, str], bool]:
    """Each manager and subresource, and whether it owns the replicas."""
    return {
        (entry["manager"], entry.get("subresource", "")): "f:replicas" in entry["fieldsV1"].get("f:spec", {})
        for entry in obj["metadata"].get("managedFields", ())
    }


@pytest.mark.parametrize("way", ["put", "merge", "json"])
def test_a_scale_write_changes_only_the_replicas_and_returns_the_new_state(way: str) -> None:
    async def scenario(fixture: ScaleFixture) -> None:
        before = await fixture.stored()
        if way == "put":
            answer = await fixture.put(5)
        elif way == "merge":
            answer = await fixture.patch({"spec": {"replicas": 5}})
        else:
            step = {"op": "replace", "path": "/spec/replicas", "value": 5}
            answer = await fixture.patch([step], PatchForm.JSON)
        after = await fixture.stored()
        assert after["spec"] == {**before["spec"], "replicas": 5}
        assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1, (
            "incremented by the strategy of deployments"
        )
        assert answer["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
        assert (answer["kind"], answer["spec"]) == ("Scale", {"replicas": 5})
        assert answer["status"] == {"replicas": 0, "selector": "app=web"}

    run_scenario(scenario)


def test_a_scale_write_makes_the_client_the_manager_of_the_replicas() -> None:
    async def scenario(fixture: ScaleFixture) -> None:
        assert by_manager(await fixture.stored()) == {("tester", ""): True}
        await fixture.put(5)
        assert by_manager(await fixture.stored()) == {("tester", ""): False, ("hand", "scale"): True}

    run_scenario(scenario)


def test_applying_a_scale_conflicts_with_replicas_of_another_manager() -> None:
    async def scenario(fixture: ScaleFixture) -> None:
        applied = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}}
        await fixture.patch({"spec": {"replicas": 4}})
        with pytest.raises(StatusError) as caught:
            await fixture.patch({**applied, "spec": {"replicas": 7}}, PatchForm.APPLY, by="other")
        assert (caught.value.code, caught.value.reason) == (409, "Conflict")
        assert (await fixture.stored())["spec"]["replicas"] == 4
        await fixture.patch({**applied, "spec": {"replicas": 4}}, PatchForm.APPLY, by="other")
        assert {("hand", "scale"), ("other", "scale")} <= by_manager(await fixture.stored()).keys(), (
            "both managers own the replicas"
        )

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("replicas", "metadata", "code", "words"),
    [
        pytest.param(
            -1,
            {},
            422,
            'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
            id="negative replicas",
        ),
        pytest.param(
            5,
            {"name": "db"},
            400,
            "the name of the object (db) does not match the name on the URL (web)",
            id="another name",
        ),
        pytest.param(
            5,
            {"namespace": "other"},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
            id="another namespace",
        ),
        pytest.param(5, {"uid": "x"}, 409, "Precondition failed: UID in precondition: x", id="another uid"),
        pytest.param(5, {"resourceVersion": "1"}, 409, "the object has been modified", id="old resourceVersion"),
    ],
)
def test_a_rejected_scale_changes_nothing(replicas: int, metadata: Document, code: int, words: str) -> None:
    async def scenario(fixture: ScaleFixture) -> None:
        before = await fixture.stored()
        with pytest.raises(StatusError) as caught:
            await fixture.put(replicas, **metadata)
        assert caught.value.code == code
        assert words in caught.value.message
        assert await fixture.stored() == before

    run_scenario(scenario)


def test_a_scale_with_matching_preconditions_is_accepted() -> None:
    async def scenario(fixture: ScaleFixture) -> None:
        metadata = (await fixture.stored())["metadata"]
        await fixture.put(5, uid=metadata["uid"], resourceVersion=metadata["resourceVersion"])
        assert (await fixture.stored())["spec"]["replicas"] == 5

    run_scenario(scenario)


def test_a_deployment_can_be_scaled_to_zero() -> None:
    async def scenario(fixture: ScaleFixture) -> None:
        assert (await fixture.put(0))["spec"] == {}
        assert (await fixture.stored())["spec"]["replicas"] == 0

    run_scenario(scenario)


def test_a_scale_needs_a_name_and_no_negative_replicas() -> None:
    assert validate_scale({"metadata": {"name": "o", "namespace": "n"}, "spec": {}}) == []
    assert messages(validate_scale({"metadata": {"namespace": "n"}, "spec": {"replicas": -1}})) == [
        "metadata.name: Required value: name or generateName is required",
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    ]


def _deployment() -> Document:
    return changed(created(body("Deployment")).obj, metadata__resourceVersion="7", metadata__labels={"a": "b"})


def test_scale_of_returns_replicas_selector_and_basic_metadata() -> None:
    assert scale_of(DEPLOYMENT, changed(_deployment(), status={"replicas": 2})) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": "o",
            "namespace": "n",
            "uid": UID,
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"replicas": 1},
        "status": {"replicas": 2, "selector": "app=x"},
    }


def test_scale_of_formats_the_selector() -> None:
    selector = {
        "matchLabels": {"b": "1"},
        "matchExpressions": [
            {"key": "c", "operator": "DoesNotExist"},
            {"key": "b", "operator": "In", "values": ["2", "1"]},
            {"key": "a", "operator": "NotIn", "values": ["x"]},
            {"key": "d", "operator": "Exists"},
        ],
    }
    scale = scale_of(DEPLOYMENT, changed(_deployment(), spec__selector=selector))
    assert scale["status"]["selector"] == "a notin (x),b=1,b in (1,2),!c,d"


def test_scale_of_omits_zero_replicas() -> None:
    assert scale_of(DEPLOYMENT, changed(_deployment(), spec__replicas=0))["spec"] == {}


def test_scale_of_formats_the_selector_of_a_replication_controller() -> None:
    obj = {"metadata": {"name": "o"}, "spec": {"replicas": 1, "selector": {"b": "2", "a": "1"}}, "status": {}}
    assert scale_of(REPLICATION_CONTROLLER, obj)["status"] == {"replicas": 0, "selector": "a=1,b=2"}


def test_scaled_changes_only_the_replicas() -> None:
    obj = _deployment()
    scale = changed(scale_of(DEPLOYMENT, obj), spec__replicas=5, metadata__labels={"ignored": "yes"})
    after = scaled(obj, scale)
    assert after["spec"]["replicas"] == 5
    assert after["metadata"] == obj["metadata"]
    assert obj["spec"]["replicas"] == 1


def test_scaled_has_no_resource_version_if_the_scale_has_none() -> None:
    after = scaled(_deployment(), {"metadata": {"name": "o"}, "spec": {}})
    assert "resourceVersion" not in after["metadata"]
    assert after["spec"]["replicas"] == 0
