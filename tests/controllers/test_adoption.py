"""Claiming objects: keep, adopt, release."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import POD, REPLICA_SET
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import ReplicaSet
from mooring.client.errors import NotFoundError
from mooring.client.interface import Client
from mooring.controllers.owner_controller import AdoptionError, claim_objects, plan_claim
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.api_servers import open_loopback_client
from tests.controllers.builders import pod_view, replica_set, replica_set_view, template

OWN, OTHER, NOBODY = "uid-web", "uid-other", ""


def matches(pod: Pod) -> bool:
    return pod.metadata.labels.get("app") == "web"


@pytest.mark.parametrize(
    ("owner", "app", "parts", "outcome"),
    [
        pytest.param(OWN, "web", {}, "kept", id="its own that matches"),
        pytest.param(OWN, "x", {}, "released", id="its own that does not match"),
        pytest.param(NOBODY, "web", {}, "adopted", id="an orphan that matches"),
        pytest.param(NOBODY, "x", {}, "left", id="an orphan that does not match"),
        pytest.param(OTHER, "web", {}, "left", id="another's"),
        pytest.param(NOBODY, "web", {"going": True}, "left", id="a terminating orphan"),
        pytest.param(OWN, "web", {"going": True}, "kept", id="its own that is going"),
    ],
)
def test_claimed_objects(owner: str, app: str, parts: dict[str, Any], outcome: str) -> None:
    pod = pod_view("p", labels={"app": app}, owner=owner, **parts)
    claim = plan_claim(replica_set_view("web"), [pod], matches)
    lists = {"kept": claim.owned, "adopted": claim.to_adopt, "released": claim.to_release}
    assert [name for name, found in lists.items() if found] == ([outcome] if outcome != "left" else [])


def test_an_owner_that_is_going_adopts_and_releases_nothing() -> None:
    document = replica_set("web")
    document["metadata"] |= {"uid": OWN, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    owner = decode_as(ReplicaSet, msgspec.json.encode(document))
    pods = [pod_view("a", labels={"app": "web"}), pod_view("b", labels={"app": "x"}, owner=OWN)]
    claim = plan_claim(owner, pods, matches)
    assert (claim.owned, claim.to_adopt, claim.to_release) == ([], [], [])


class AdoptionFixture:
    """An owner and a pod in a store."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def owner(self) -> ReplicaSet:
        return decode_as(ReplicaSet, await self.client.create(REPLICA_SET, "default", replica_set("web")))

    async def pod(self, **labels: str) -> Pod:
        body: Document = {"metadata": {"name": "p", "labels": labels}, "spec": template({})["spec"]}
        return decode_as(Pod, await self.client.create(POD, "default", body))

    async def owners(self) -> list[str]:
        found = decode_as(Pod, await self.client.get(POD, "default", "p"))
        return [
            owner_reference.name
            for owner_reference in found.metadata.owner_references
            if owner_reference.controller and owner_reference.block_owner_deletion
        ]


def run_story(story: Callable[[AdoptionFixture], Awaitable[None]]) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_loopback_client(clock) as client:
            await story(AdoptionFixture(client))

    run(main(), clock)


def test_adopting_and_releasing() -> None:
    async def story(fixture: AdoptionFixture) -> None:
        owner, pod = await fixture.owner(), await fixture.pod(app="web")
        assert await claim_objects(fixture.client, owner, [pod], matches) == [pod]
        assert await fixture.owners() == ["web"]
        adopted = decode_as(Pod, await fixture.client.get(POD, "default", "p"))
        assert await claim_objects(fixture.client, owner, [adopted], lambda pod: False) == []
        assert await fixture.owners() == []

    run_story(story)


def test_nothing_is_adopted_by_an_owner_that_is_gone_in_the_meantime() -> None:
    async def story(fixture: AdoptionFixture) -> None:
        owner, pod = await fixture.owner(), await fixture.pod(app="web")
        await fixture.client.delete(REPLICA_SET, "default", "web")
        with pytest.raises(AdoptionError, match=r"can't adopt Pod default/p .*can't recheck DeletionTimestamp"):
            await claim_objects(fixture.client, owner, [pod], matches)
        await fixture.owner()
        with pytest.raises(AdoptionError, match="original ReplicaSet default/web is gone"):
            await claim_objects(fixture.client, owner, [pod], matches)
        assert await fixture.owners() == []

    run_story(story)


def test_what_is_gone_is_neither_adopted_nor_missed() -> None:
    async def story(fixture: AdoptionFixture) -> None:
        owner, pod = await fixture.owner(), await fixture.pod(app="web")
        await fixture.client.delete(POD, "default", "p")
        with pytest.raises(NotFoundError):
            await fixture.client.get(POD, "default", "p")
        assert await claim_objects(fixture.client, owner, [pod], matches) == []

    run_story(story)
