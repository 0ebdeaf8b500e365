"""What a write looked at, and whether that is still so."""

from __future__ import annotations

import pytest

from mooring.api.kinds import LIMIT_RANGE, NAMESPACE, NODE, RESOURCE_QUOTA, Kind
from mooring.apiserver.desk import Desk
from mooring.apiserver.inside import InsideClient
from mooring.apiserver.reads import RecordingLookup, are_unchanged
from mooring.client.interface import PatchForm
from tests.apiserver.desks import with_desk
from tests.client.objects import Body, node

NS = "default"
QUOTA: Body = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}}
RANGE: Body = {"metadata": {"name": "limits"}, "spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}}


@pytest.mark.parametrize(
    ("kind", "body", "is_shared"),
    [
        pytest.param(LIMIT_RANGE, RANGE, True, id="limits are the same for all"),
        pytest.param(RESOURCE_QUOTA, QUOTA, False, id="a quota is charged by each"),
        pytest.param(NODE, node("n1"), False, id="nodes are not the same for all"),
    ],
)
def test_what_all_look_at(kind: Kind, body: Body, is_shared: bool) -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        namespace = NS if kind.is_namespaced else ""
        await client.create(kind, namespace, body)
        lookup = RecordingLookup(desk.lookup)
        assert len(await lookup.list(kind, namespace)) == 1
        assert (lookup.reads_shared() is not None) == is_shared

    with_desk(scenario)


def test_what_was_found_by_a_name_that_is_exchanged_is_not_shared() -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        lookup = RecordingLookup(desk.lookup)
        assert await lookup.get(NAMESPACE, "", NS) is not None
        assert lookup.reads_shared([b"other"]) is not None
        assert lookup.reads_shared([NS.encode()]) is None

    with_desk(scenario)


def test_a_change_is_noticed() -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        lookup = RecordingLookup(desk.lookup)
        await lookup.get(NAMESPACE, "", NS)
        await lookup.list(LIMIT_RANGE, NS)
        reads = lookup.reads_shared()
        assert reads is not None
        assert await are_unchanged(desk.store, reads)
        await client.create(LIMIT_RANGE, "kube-system", RANGE)
        assert await are_unchanged(desk.store, reads), "nobody looked there"
        await client.create(LIMIT_RANGE, NS, RANGE)
        assert not await are_unchanged(desk.store, reads)
        await client.delete(LIMIT_RANGE, NS, "limits")
        assert await are_unchanged(desk.store, reads)
        await client.patch(NAMESPACE, "", NS, {"metadata": {"labels": {"a": "b"}}}, form=PatchForm.MERGE)
        assert not await are_unchanged(desk.store, reads)

    with_desk(scenario)
