"""Watches: the events that clients get, their order, and how watches end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from mooring.api.document import Document
from mooring.kit.loop import run_real
from tests.apiserver.http.served import Served, served
from tests.waiting import LIMIT_S

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

Line = dict[str, Any]


class WatchScenario:
    """Opens watches of a server and writes config maps."""

    def __init__(self, api: Served) -> None:
        self.api = api

    async def write(self, method: str, name: str, **parts: Any) -> Document:
        """Create, merge or delete a config map and return the result."""
        path, metadata = CONFIG_MAPS if method == "POST" else f"{CONFIG_MAPS}/{name}", parts.pop("metadata", {})
        body: Document = {"metadata": {"name": name, **metadata}, **parts} if method != "DELETE" else {}
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Content-Type": kind}
        async with self.api.session.request(method, self.api.url(path), json=body, headers=headers) as response:
            assert response.status in (200, 201), await response.text()
            document: Document = await response.json()
            return document

    async def revision(self) -> str:
        return str(await self.api.api_server.store.revision())

    @asynccontextmanager
    async def watch(self, query: str, accept: str = "application/json") -> AsyncIterator[aiohttp.ClientResponse]:
        url = self.api.url(f"{CONFIG_MAPS}?watch=1&{query}")
        async with self.api.session.get(url, headers={"Accept": accept}) as response:
            assert response.status == 200, await response.text()
            yield response


def run_scenario(scenario: Callable[[WatchScenario], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), served() as api:
            cluster = WatchScenario(api)
            await cluster.write("POST", "old", data={"x": "1"}, metadata={"labels": {"app": "web"}})
            await scenario(cluster)
            assert api.handler.failures == 0

    run_real(main())


async def lines_of(response: aiohttp.ClientResponse, count: int) -> list[Line]:
    return [json.loads(await response.content.readline()) for _ in range(count)]


async def rest_of(response: aiohttp.ClientResponse) -> list[Line]:
    """All lines until the end of the response; aiohttp raises an error if the last chunk is missing."""
    return [json.loads(line) for line in (await response.read()).splitlines()]


def summaries(lines: Sequence[Line]) -> list[str]:
    return [f"{line['type']} {line['object']['metadata'].get('name', '')}".strip() for line in lines]


# ------------------------------------------------------------------------------------------------ initial events


@pytest.mark.parametrize(
    ("query", "first"),
    [
        pytest.param("", ["ADDED old"], id="no revision"),
        pytest.param("resourceVersion=0", ["ADDED old"], id="revision 0"),
        pytest.param("resourceVersion=NOW", [], id="the current revision"),
        pytest.param("allowWatchBookmarks=true", ["ADDED old", "BOOKMARK"], id="bookmarks"),
        pytest.param(
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
            ["ADDED old", "BOOKMARK"],
            id="initial events requested",
        ),
        pytest.param(
            "sendInitialEvents=false&resourceVersionMatch=NotOlderThan", [], id="initial events not requested"
        ),
        pytest.param("labelSelector=app%3Dweb", ["ADDED old"], id="a matching label selector"),
        pytest.param("labelSelector=app%3Ddb", [], id="another label selector"),
        pytest.param("fieldSelector=metadata.name%3Dold", ["ADDED old"], id="a field selector"),
    ],
)
def test_initial_events_of_a_watch(query: str, first: list[str]) -> None:
    async def scenario(cluster: WatchScenario) -> None:
        async with cluster.watch(query.replace("NOW", await cluster.revision())) as response:
            assert summaries(await lines_of(response, len(first))) == first
            created = await cluster.write("POST", "old-2", metadata={"labels": {"app": "web"}})
            if "Selector" not in query:
                (line,) = await lines_of(response, 1)
                assert line == {"type": "ADDED", "object": created}

    run_scenario(scenario)


def test_a_bookmark_marks_the_end_of_the_initial_events() -> None:
    async def scenario(cluster: WatchScenario) -> None:
        query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        async with cluster.watch(query) as response:
            _, mark = await lines_of(response, 2)
        assert mark == {
            "type": "BOOKMARK",
            "object": {
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata": {
                    "resourceVersion": await cluster.revision(),
                    "annotations": {"k8s.io/initial-events-end": "true"},
                },
            },
        }

    run_scenario(scenario)


# ----------------------------------------------------------------------------------------------------- changes


async def write_all_changes(cluster: WatchScenario) -> None:
    await cluster.write("POST", "one", metadata={"labels": {"app": "web"}})
    await cluster.write("PATCH", "one", data={"x": "2"})
    await cluster.write("PATCH", "one", metadata={"labels": {"app": "db"}})
    await cluster.write("PATCH", "one", metadata={"labels": {"app": "web"}})
    await cluster.write("DELETE", "one")


@pytest.mark.parametrize(
    ("query", "received"),
    [
        pytest.param(
            "", ["ADDED one", "MODIFIED one", "MODIFIED one", "MODIFIED one", "DELETED one"], id="no selector"
        ),
        pytest.param(
            "labelSelector=app%3Dweb",
            ["ADDED one", "MODIFIED one", "DELETED one", "ADDED one", "DELETED one"],
            id="an object that leaves and enters the selection",
        ),
        pytest.param(
            "labelSelector=app%3Ddb", ["ADDED one", "DELETED one"], id="a selection that the object enters once"
        ),
        pytest.param("fieldSelector=metadata.name%3Dthree", [], id="another name"),
    ],
)
def test_events_of_an_object_for_selectors(query: str, received: list[str]) -> None:
    async def scenario(cluster: WatchScenario) -> None:
        since = await cluster.revision()
        await write_all_changes(cluster)
        query_since = f"resourceVersion={since}&{query}"
        async with cluster.watch(query_since) as one, cluster.watch(query_since) as another:
            lines = await lines_of(one, len(received))
            assert await lines_of(another, len(received)) == lines
        assert summaries(lines) == received
        revisions = [int(line["object"]["metadata"]["resourceVersion"]) for line in lines]
        assert revisions == sorted(set(revisions))

    run_scenario(scenario)


def test_watches_with_the_same_query_get_the_same_events() -> None:
    async def scenario(cluster: WatchScenario) -> None:
        since = f"resourceVersion={await cluster.revision()}"
        async with cluster.watch(since) as first:
            await cluster.write("POST", "one")
            before = await lines_of(first, 1)
            async with (
                cluster.watch(since) as second,
                cluster.watch(f"resourceVersion={await cluster.revision()}") as third,
            ):
                await cluster.write("POST", "two")
                await cluster.write("DELETE", "one")
                received = await lines_of(first, 2)
                assert await lines_of(second, 3) == before + received
                assert await lines_of(third, 2) == received
                assert summaries(before + received) == ["ADDED one", "ADDED two", "DELETED one"]

    run_scenario(scenario)


# -------------------------------------------------------------------------------------------------- formats


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        pytest.param("application/json", "ConfigMap", id="object"),
        pytest.param(TABLE, "Table", id="table"),
        pytest.param(METADATA, "PartialObjectMetadata", id="metadata"),
    ],
)
def test_formats_of_watch_events(accept: str, kind: str) -> None:
    async def scenario(cluster: WatchScenario) -> None:
        async with cluster.watch("allowWatchBookmarks=true", accept) as response:
            lines = await lines_of(response, 2)
            await cluster.write("POST", "one")
            lines += await lines_of(response, 1)
        assert [line["object"]["kind"] for line in lines] == [kind] * 3
        assert [line["type"] for line in lines] == ["ADDED", "BOOKMARK", "ADDED"]

    run_scenario(scenario)


def test_only_the_first_table_row_of_a_watch_has_column_definitions() -> None:
    async def scenario(cluster: WatchScenario) -> None:
        async with cluster.watch(f"resourceVersion={await cluster.revision()}", TABLE) as response:
            for name in ("one", "two", "three"):
                await cluster.write("POST", name)
            tables = [line["object"] for line in await lines_of(response, 3)]
        assert [bool(table["columnDefinitions"]) for table in tables] == [True, False, False]
        assert [table["rows"][0]["cells"][0] for table in tables] == ["one", "two", "three"]

    run_scenario(scenario)


# -------------------------------------------------------------------------------------------- end of a watch


def test_a_watch_ends_with_a_complete_response_at_its_timeout() -> None:
    async def scenario(cluster: WatchScenario) -> None:
        async with cluster.watch(f"resourceVersion={await cluster.revision()}&timeoutSeconds=1") as response:
            assert await rest_of(response) == []
        assert cluster.api.handler.watches_open == 0

    run_scenario(scenario)


def test_a_watch_from_a_future_revision_waits() -> None:
    async def scenario(cluster: WatchScenario) -> None:
        async with cluster.watch("resourceVersion=9999999&timeoutSeconds=1") as response:
            await cluster.write("POST", "one")
            assert await rest_of(response) == []

    run_scenario(scenario)


def test_a_watch_from_a_compacted_revision_ends_with_410() -> None:
    async def scenario(cluster: WatchScenario) -> None:
        since = await cluster.revision()
        await cluster.write("POST", "one")
        await cluster.write("POST", "two")
        await cluster.api.api_server.store.compact(await cluster.api.api_server.store.revision())
        async with cluster.watch(f"resourceVersion={since}") as response:
            (line,) = await rest_of(response)
        assert line["type"] == "ERROR"
        assert (line["object"]["code"], line["object"]["reason"]) == (410, "Expired")

    run_scenario(scenario)


BAD_LABELS = "found '==', expected: !, identifier, or 'end of string'"
BAD_FIELD = '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"'
ERRORS: Mapping[str, tuple[int, str]] = {
    "resourceVersion=x": (500, 'resourceVersion: Invalid value: "x"'),
    "labelSelector===": (400, BAD_LABELS),
    "labelSelector===&resourceVersion=x": (400, BAD_LABELS),
    "labelSelector===&sendInitialEvents=true": (400, BAD_LABELS),
    "fieldSelector=spec.x%3D1": (400, BAD_FIELD),
    "fieldSelector=spec.x%3D1&resourceVersion=x": (400, BAD_FIELD),
    "timeoutSeconds=x&labelSelector===": (400, 'strconv.ParseInt: parsing "x": invalid syntax'),
    "sendInitialEvents=true": (422, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
    "sendInitialEvents=true&fieldSelector=spec.x%3D1": (422, "sendInitialEvents requires setting"),
    "resourceVersionMatch=Exact&resourceVersion=1": (422, "resourceVersionMatch is forbidden for watch unless"),
}
"""By parameter. Of two errors, the one is reported that kube-apiserver finds first."""


@pytest.mark.parametrize("query", ERRORS)
def test_an_invalid_watch_fails_before_the_response_starts(query: str) -> None:
    code, message = ERRORS[query]

    async def scenario(cluster: WatchScenario) -> None:
        async with cluster.api.session.get(cluster.api.url(f"{CONFIG_MAPS}?watch=1&{query}")) as response:
            document = await response.json()
        assert (response.status, document["kind"]) == (code, "Status")
        assert message in document["message"]

    run_scenario(scenario)
