"""Patches: stored results, field managers, and rejected patches."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, DEPLOYMENT, POD, Kind
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.registry.patches import Patch, patch
from mooring.apiserver.server import ApiServer
from mooring.client.errors import StatusError
from mooring.client.interface import PatchForm
from mooring.serving.users import User
from tests.api_servers import with_api_server
from tests.client.objects import read

NS = "default"
POD_SPEC: Document = {"containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 80}]}]}
OBJECTS: dict[Kind, Document] = {
    CONFIG_MAP: {"metadata": {"name": "it", "labels": {"a": "1"}}, "data": {"x": "1", "y": "2"}},
    POD: {"metadata": {"name": "it"}, "spec": POD_SPEC},
    DEPLOYMENT: {
        "metadata": {"name": "it"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD_SPEC},
        },
    },
}


class PatchFixture:
    """One object of each kind, named `it`, and a client that patches them."""

    def __init__(self, api_server: ApiServer, client: LoopbackClient) -> None:
        self._api_server = api_server
        self._client = client
        self.warnings: list[str] = []

    async def create(self) -> None:
        for kind, body in OBJECTS.items():
            await self._client.create(kind, NS, {"apiVersion": kind.api_version, "kind": kind.kind, **body})

    async def stored(self, kind: Kind) -> Document:
        return read(await self._client.get(kind, NS, "it"))

    async def patch(self, kind: Kind, content: object, form: PatchForm = PatchForm.MERGE, **options: Any) -> Document:
        call = Call(
            verb="patch",
            kind=kind,
            user=User("tester"),
            now_s=0.0,
            now="2026-01-01T00:00:00Z",
            namespace=NS,
            **{"name": "it", "field_manager": "hand", "warnings": self.warnings, **options},
        )
        resource = self._api_server.resources.of_kind(kind)
        reader = self._api_server.document_reader(resource, form)
        return (await patch(self._api_server.context, resource, call, Patch(form, content), reader)).document


def run_scenario(scenario: Any) -> None:
    async def with_client(api_server: ApiServer, client: LoopbackClient) -> None:
        fixture = PatchFixture(api_server, client)
        await fixture.create()
        await scenario(fixture)

    with_api_server(with_client)


MERGE, STRATEGIC, JSON_PATCH, APPLY = PatchForm.MERGE, PatchForm.STRATEGIC, PatchForm.JSON, PatchForm.APPLY
CONTAINERS = {"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "i:2"}]}}}}
APPLIED: Document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}, "data": {"z": "3"}}


def data_of(document: Document) -> object:
    return document.get("data")


def names_of(document: Document) -> object:
    return [container["name"] for container in document["spec"]["template"]["spec"]["containers"]]


@pytest.mark.parametrize(
    ("kind", "form", "content", "part_of", "expected"),
    [
        pytest.param(
            CONFIG_MAP, MERGE, {"data": {"x": "9"}}, data_of, {"x": "9", "y": "2"}, id="merge patch sets a field"
        ),
        pytest.param(CONFIG_MAP, MERGE, {"data": {"x": None}}, data_of, {"y": "2"}, id="merge patch removes a field"),
        pytest.param(CONFIG_MAP, MERGE, {"data": None}, data_of, None, id="merge patch removes a map"),
        pytest.param(
            CONFIG_MAP,
            JSON_PATCH,
            [{"op": "remove", "path": "/data/y"}],
            data_of,
            {"x": "1"},
            id="JSON patch removes a field",
        ),
        pytest.param(
            CONFIG_MAP,
            JSON_PATCH,
            [{"op": "test", "path": "/data/x", "value": "1"}, {"op": "replace", "path": "/data/x", "value": "2"}],
            data_of,
            {"x": "2", "y": "2"},
            id="JSON patch tests and replaces",
        ),
        pytest.param(CONFIG_MAP, APPLY, APPLIED, data_of, {"x": "1", "y": "2", "z": "3"}, id="apply adds a field"),
        pytest.param(DEPLOYMENT, MERGE, CONTAINERS, names_of, ["d"], id="merge patch replaces a list"),
        pytest.param(
            DEPLOYMENT, STRATEGIC, CONTAINERS, names_of, ["d", "c"], id="strategic merge patch merges a list by key"
        ),
    ],
)
def test_each_patch_type_changes_the_stored_object(
    kind: Kind, form: PatchForm, content: object, part_of: Any, expected: object
) -> None:
    async def scenario(fixture: PatchFixture) -> None:
        before = await fixture.stored(kind)
        after = await fixture.patch(kind, content, form)
        assert part_of(after) == expected
        assert await fixture.stored(kind) == after
        assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("content", "managers"),
    [
        pytest.param({"data": {"x": "9"}}, {"tester": ["f:y"], "hand": ["f:x"]}, id="changed field"),
        pytest.param({"data": {"z": "9"}}, {"tester": ["f:x", "f:y"], "hand": ["f:z"]}, id="added field"),
        pytest.param({"data": {"x": None}}, {"tester": ["f:y"]}, id="removed field"),
    ],
)
def test_the_field_manager_of_a_patch_owns_the_changed_fields(content: object, managers: object) -> None:
    async def scenario(fixture: PatchFixture) -> None:
        entries = (await fixture.patch(CONFIG_MAP, content))["metadata"]["managedFields"]
        fields = {entry["manager"]: entry["fieldsV1"]["f:data"] for entry in entries}
        assert {manager: [name for name in owned if name != "."] for manager, owned in fields.items()} == managers

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("kind", "form", "content"),
    [
        pytest.param(CONFIG_MAP, MERGE, {}, id="empty patch"),
        pytest.param(CONFIG_MAP, MERGE, {"data": {"x": "1"}}, id="same value"),
        pytest.param(DEPLOYMENT, STRATEGIC, {"spec": {"replicas": 1}}, id="default value"),
        pytest.param(
            CONFIG_MAP, JSON_PATCH, [{"op": "test", "path": "/data/x", "value": "1"}], id="JSON patch with only a test"
        ),
    ],
)
def test_a_patch_that_changes_nothing_writes_nothing(kind: Kind, form: PatchForm, content: object) -> None:
    async def scenario(fixture: PatchFixture) -> None:
        before = await fixture.stored(kind)
        assert await fixture.patch(kind, content, form) == before == await fixture.stored(kind)

    run_scenario(scenario)


def test_a_dry_run_writes_nothing() -> None:
    async def scenario(fixture: PatchFixture) -> None:
        before = await fixture.stored(CONFIG_MAP)
        assert data_of(await fixture.patch(CONFIG_MAP, {"data": {"x": "9"}}, is_dry_run=True)) == {"x": "9", "y": "2"}
        assert await fixture.stored(CONFIG_MAP) == before

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("kind", "form", "content", "code", "words"),
    [
        pytest.param(
            CONFIG_MAP,
            MERGE,
            {"metadata": {"resourceVersion": "1"}},
            409,
            "the object has been modified",
            id="old resourceVersion",
        ),
        pytest.param(CONFIG_MAP, MERGE, {"metadata": {"name": "other"}}, 400, "does not match", id="another name"),
        pytest.param(
            CONFIG_MAP, MERGE, {"metadata": {"uid": "u"}}, 422, "metadata.uid: Invalid value", id="another uid"
        ),
        pytest.param(CONFIG_MAP, MERGE, {"data": {"x": 1}}, 422, "cannot unmarshal number", id="wrong type"),
        pytest.param(
            CONFIG_MAP, MERGE, {"data": {"a b": "1"}}, 422, 'data[a b]: Invalid value: "a b"', id="invalid key"
        ),
        pytest.param(
            CONFIG_MAP,
            JSON_PATCH,
            [{"op": "test", "path": "/data/x", "value": "2"}],
            422,
            "the server rejected our request",
            id="JSON patch tests for another value",
        ),
        pytest.param(
            CONFIG_MAP,
            JSON_PATCH,
            [{"op": "remove", "path": "/data/z"}],
            422,
            "the server rejected our request",
            id="JSON patch removes an absent field",
        ),
        pytest.param(
            DEPLOYMENT,
            STRATEGIC,
            {"spec": {"template": {"metadata": {"labels": {"app": "other"}}}}},
            422,
            "`selector` does not match template `labels`",
            id="labels do not match the selector",
        ),
    ],
)
def test_a_rejected_patch_changes_nothing(kind: Kind, form: PatchForm, content: object, code: int, words: str) -> None:
    async def scenario(fixture: PatchFixture) -> None:
        before = await fixture.stored(kind)
        with pytest.raises(StatusError) as refused:
            await fixture.patch(kind, content, form)
        assert (refused.value.code, words in refused.value.message) == (code, True), refused.value.message
        assert await fixture.stored(kind) == before

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("form", "is_created"),
    [pytest.param(MERGE, False, id="merge patch"), pytest.param(APPLY, True, id="apply")],
)
def test_only_apply_creates_a_missing_object(form: PatchForm, is_created: bool) -> None:
    async def scenario(fixture: PatchFixture) -> None:
        content = {**APPLIED, "metadata": {"name": "new"}}
        if is_created:
            assert data_of(await fixture.patch(CONFIG_MAP, content, form, name="new")) == {"z": "3"}
        else:
            with pytest.raises(StatusError, match='configmaps "new" not found'):
                await fixture.patch(CONFIG_MAP, content, form, name="new")

    run_scenario(scenario)


BODY_WITH_UNKNOWN_FIELD = {"spec": {"replicaz": 3}}
UNKNOWN_FIELD = 'unknown field "spec.replicaz"'


@pytest.mark.parametrize(
    ("validation", "warnings"),
    [
        pytest.param(FieldValidation.WARN, [UNKNOWN_FIELD], id="Warn"),
        pytest.param(FieldValidation.IGNORE, [], id="Ignore"),
    ],
)
def test_an_unknown_field_is_dropped_with_a_warning_unless_ignored(
    validation: FieldValidation, warnings: list[str]
) -> None:
    async def scenario(fixture: PatchFixture) -> None:
        after = await fixture.patch(DEPLOYMENT, BODY_WITH_UNKNOWN_FIELD, field_validation=validation)
        assert "replicaz" not in after["spec"]
        assert fixture.warnings == warnings

    run_scenario(scenario)


def test_strict_field_validation_rejects_an_unknown_field() -> None:
    async def scenario(fixture: PatchFixture) -> None:
        with pytest.raises(StatusError, match=f"strict decoding error: {UNKNOWN_FIELD}"):
            await fixture.patch(DEPLOYMENT, BODY_WITH_UNKNOWN_FIELD, field_validation=FieldValidation.STRICT)

    run_scenario(scenario)


@pytest.mark.parametrize("form", [pytest.param(MERGE, id="merge"), pytest.param(STRATEGIC, id="strategic")])
def test_defaults_of_the_patched_pod_do_not_change_the_old_pod(form: PatchForm) -> None:
    """Both pods may share parts; the error message contains the complete difference between them."""

    async def scenario(fixture: PatchFixture) -> None:
        with pytest.raises(StatusError) as refused:
            await fixture.patch(POD, {"spec": {"hostNetwork": True}}, form)
        lines = [line.strip() for line in refused.value.message.splitlines() if line.startswith(("-", "+"))]
        assert lines == [
            '-     "HostPort": 0,',
            '+     "HostPort": 80,',
            '-  "HostNetwork": false,',
            '+  "HostNetwork": true,',
        ]

    run_scenario(scenario)
