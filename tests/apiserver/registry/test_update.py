"""Update: preconditions, what is written, and conflicts between concurrent writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, LEASE, Kind
from mooring.apiserver.call import Call
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.registry.object_storage import WRITE_TRIES_MAX
from mooring.apiserver.registry.update import Changed, change, put
from mooring.apiserver.server import ApiServer
from mooring.client.errors import StatusError
from mooring.client.interface import PatchForm
from mooring.serving.users import User
from tests.api_servers import with_api_server
from tests.apiserver.custom.definitions import definition, version, widget
from tests.client.objects import read

NS = "default"
BODIES: dict[Kind, Document] = {CONFIG_MAP: {"data": {"x": "1"}}, LEASE: {"spec": {"holderIdentity": "a"}}}
ESTABLISHING_S_MAX = 10.0


class UpdateFixture:
    """One object, named `it`, and a client that writes to it."""

    def __init__(self, api_server: ApiServer, client: LoopbackClient, kind: Kind) -> None:
        self.api_server = api_server
        self.client = client
        self.kind = kind

    def body(self, *, name: str = "it", metadata: Document | None = None, **parts: Any) -> Document:
        whole = {"name": name, "namespace": NS, **(metadata or {})}
        return {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": whole, **parts}

    async def stored(self) -> Document:
        return read(await self.client.get(self.kind, NS, "it"))

    async def put(self, body: Document, **options: Any) -> Changed:
        resource, call = self.api_server.resources.of_kind(self.kind), self.call(**options)
        reader = self.api_server.body_reader(resource, call, msgspec.json.encode(body), "application/json")
        return await put(self.api_server.context, resource, call, reader)

    async def change(self, make: Callable[[Document], Awaitable[Document]]) -> Changed:
        async def made(old: Document | None) -> Document:
            assert old is not None
            return await make(old)

        return await change(self.api_server.context, self.api_server.resources.of_kind(self.kind), self.call(), made)

    def call(self, **options: Any) -> Call:
        return Call(
            verb="update",
            kind=self.kind,
            user=User("tester"),
            now_s=0.0,
            now="2026-01-01T00:00:00Z",
            namespace=NS,
            **{"name": "it", "field_manager": "hand", **options},
        )


def run_scenario(scenario: Callable[[UpdateFixture], Awaitable[None]], kind: Kind = CONFIG_MAP) -> None:
    async def with_client(api_server: ApiServer, client: LoopbackClient) -> None:
        fixture = UpdateFixture(api_server, client, kind)
        await client.create(kind, NS, fixture.body(**BODIES[kind]))
        await scenario(fixture)

    with_api_server(with_client)


# ---------------------------------------------------------------------------------------------- preconditions


@pytest.mark.parametrize(
    ("kind", "revision", "code", "words"),
    [
        pytest.param(CONFIG_MAP, "now", 200, "", id="current"),
        pytest.param(CONFIG_MAP, None, 200, "", id="absent"),
        pytest.param(CONFIG_MAP, "", 200, "", id="empty"),
        pytest.param(CONFIG_MAP, "0", 200, "", id="zero"),
        pytest.param(CONFIG_MAP, "1", 409, "the object has been modified; please apply your changes", id="old"),
        pytest.param(CONFIG_MAP, "99999", 409, "the object has been modified", id="in the future"),
        pytest.param(CONFIG_MAP, "x", 500, 'strconv.ParseUint: parsing "x": invalid syntax', id="not a number"),
        pytest.param(LEASE, None, 422, "must be specified for an update", id="absent for a kind that requires it"),
    ],
)
def test_update_checks_the_resource_version(kind: Kind, revision: str | None, code: int, words: str) -> None:
    async def scenario(fixture: UpdateFixture) -> None:
        before = await fixture.stored()
        given = before["metadata"]["resourceVersion"] if revision == "now" else revision
        metadata: Document = {"labels": {"a": "b"}} | ({} if given is None else {"resourceVersion": given})
        body = fixture.body(metadata=metadata, **BODIES[kind])
        if code == 200:
            changed = await fixture.put(body)
            assert changed.document["metadata"]["labels"] == {"a": "b"}
            assert await fixture.stored() == changed.document
            assert int(changed.document["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
            return
        with pytest.raises(StatusError) as refused:
            await fixture.put(body)
        assert (refused.value.code, words in refused.value.message) == (code, True), refused.value.message
        assert await fixture.stored() == before

    run_scenario(scenario, kind)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        pytest.param(
            {"name": "other"}, 400, "the name of the object (other) does not match the name on", id="another name"
        ),
        pytest.param({"name": ""}, 400, "the name of the object (it based on URL) was undeterminable", id="no name"),
        pytest.param(
            {"metadata": {"namespace": "other"}},
            400,
            "the namespace of the provided object does not",
            id="another namespace",
        ),
        pytest.param({"metadata": {"uid": "u"}}, 409, "Precondition failed: UID in precondition: u", id="another uid"),
        pytest.param({"metadata": {"labels": {"a b": "c"}}}, 422, "metadata.labels: Invalid value", id="a bad label"),
    ],
)
def test_an_update_that_does_not_match_the_url_or_the_object_is_rejected(
    body: dict[str, Any], code: int, words: str
) -> None:
    async def scenario(fixture: UpdateFixture) -> None:
        before = await fixture.stored()
        with pytest.raises(StatusError) as refused:
            await fixture.put(fixture.body(**body))
        assert (refused.value.code, words in refused.value.message) == (code, True), refused.value.message
        assert await fixture.stored() == before

    run_scenario(scenario)


# -------------------------------------------------------------------------------------------- what is written


def test_an_update_without_changes_is_not_written() -> None:
    async def scenario(fixture: UpdateFixture) -> None:
        before = await fixture.stored()
        assert (await fixture.put(fixture.body(data={"x": "1"}))).document == before
        assert await fixture.stored() == before

    run_scenario(scenario)


def test_a_dry_run_writes_nothing() -> None:
    async def scenario(fixture: UpdateFixture) -> None:
        before = await fixture.stored()
        changed = await fixture.put(fixture.body(data={"x": "2"}), is_dry_run=True)
        assert changed.document["data"] == {"x": "2"}
        assert await fixture.stored() == before

    run_scenario(scenario)


def test_update_keeps_the_system_fields() -> None:
    async def scenario(fixture: UpdateFixture) -> None:
        before = (await fixture.stored())["metadata"]
        sent_metadata = {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7, "selfLink": "/it"}
        after = (await fixture.put(fixture.body(metadata=sent_metadata, data={"x": "2"}))).document["metadata"]
        assert (after["uid"], after["creationTimestamp"]) == (before["uid"], before["creationTimestamp"])
        assert not {"generation", "selfLink"} & after.keys()

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("kind", "is_created"),
    [pytest.param(LEASE, True, id="a lease is created"), pytest.param(CONFIG_MAP, False, id="others are not found")],
)
def test_update_of_a_missing_object_creates_it_only_for_leases(kind: Kind, is_created: bool) -> None:
    async def scenario(fixture: UpdateFixture) -> None:
        body = fixture.body(name="new", **BODIES[kind])
        if is_created:
            assert (await fixture.put(body, name="new")).is_created
            return
        with pytest.raises(StatusError, match='configmaps "new" not found'):
            await fixture.put(body, name="new")

    run_scenario(scenario, kind)


def test_removing_the_last_finalizer_deletes_a_terminating_object() -> None:
    async def scenario(fixture: UpdateFixture) -> None:
        await fixture.put(fixture.body(metadata={"finalizers": ["a.io/b", "a.io/c"]}))
        await fixture.client.delete(CONFIG_MAP, NS, "it")
        await fixture.put(fixture.body(metadata={"finalizers": ["a.io/c"]}))
        assert (await fixture.stored())["metadata"]["finalizers"] == ["a.io/c"]
        assert "finalizers" not in (await fixture.put(fixture.body())).document["metadata"]
        with pytest.raises(StatusError, match="not found"):
            await fixture.stored()

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(True, 1, id="a flag becomes a number"),
        pytest.param([0], [False], id="a number becomes a flag"),
        pytest.param(1, 1.5, id="an integer becomes a float"),
        pytest.param({"a": None}, {"a": 1}, id="a null becomes a number"),
    ],
)
def test_a_status_without_a_schema_is_compared_as_json(before: object, after: object) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

    async def with_client(api_server: ApiServer, client: LoopbackClient) -> None:
        made = definition(version(schema, subresources={"status": {}}), accepted=False)
        made["metadata"] = {"name": made["metadata"]["name"]}
        await client.create(CUSTOM_RESOURCE_DEFINITION, "", made)
        waited_s = 0.0
        while (resource := api_server.resources.find("example.com/v1", "widgets")) is None:
            assert (waited_s := waited_s + 0.1) < ESTABLISHING_S_MAX
            await api_server.clock.wait(0.1)
        await client.create(resource.kind, NS, widget())
        for value in (before, after):
            patch = {"status": {"it": value}}
            await client.patch(resource.kind, NS, "a", patch, form=PatchForm.MERGE, subresource="status")
        stored = await client.get(resource.kind, NS, "a")
        assert b'"status":{"it":%b}' % msgspec.json.encode(after) in stored

    with_api_server(with_client)


# ----------------------------------------------------------------------------------------- concurrent writes


def test_a_change_is_retried_with_the_new_state_after_a_concurrent_write() -> None:
    seen: list[object] = []

    async def scenario(fixture: UpdateFixture) -> None:
        async def make(old: Document) -> Document:
            seen.append(old["data"])
            if len(seen) == 1:
                await fixture.put(fixture.body(data={"x": "quicker"}))
            metadata = {name: text for name, text in old["metadata"].items() if name != "resourceVersion"}
            return {**old, "metadata": metadata, "data": {**old["data"], "y": "2"}}

        changed = await fixture.change(make)
        assert seen == [{"x": "1"}, {"x": "quicker"}]
        assert changed.document["data"] == {"x": "quicker", "y": "2"}
        assert await fixture.stored() == changed.document

    run_scenario(scenario)


def test_a_change_with_a_resource_version_conflicts_after_a_concurrent_write() -> None:
    async def scenario(fixture: UpdateFixture) -> None:
        before = await fixture.stored()

        async def make(old: Document) -> Document:
            await fixture.put(fixture.body(data={"x": "quicker"}))
            return {**old, "metadata": dict(before["metadata"]), "data": {"x": "slower"}}

        with pytest.raises(StatusError, match="the object has been modified"):
            await fixture.change(make)
        assert (await fixture.stored())["data"] == {"x": "quicker"}

    run_scenario(scenario)


def test_a_change_fails_after_the_maximum_number_of_conflicts() -> None:
    tries: list[int] = []

    async def scenario(fixture: UpdateFixture) -> None:
        async def make(old: Document) -> Document:
            tries.append(1)
            await fixture.put(fixture.body(data={"x": f"try {len(tries)}"}))
            metadata = {name: text for name, text in old["metadata"].items() if name != "resourceVersion"}
            return {**old, "metadata": metadata, "data": {"x": "slower"}}

        with pytest.raises(StatusError, match="the object has been modified"):
            await fixture.change(make)
        assert len(tries) == WRITE_TRIES_MAX

    run_scenario(scenario)
