"""Heartbeats come often enough, evenly, and survive trouble."""

from __future__ import annotations

from collections import Counter

import msgspec

from mooring.api.kinds import LEASE, NODE
from mooring.client.interface import EVERYTHING
from mooring.kubelet.node_status import SIMULATED_ANNOTATION
from mooring.kubelet.settings import FleetSettings
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.kubelet.play import Body, Play, played


async def renewals(play: Play, kind: object = LEASE, for_s: float = 10.0, parts: int = 10) -> list[int]:
    """How many leases are renewed in each part of a while."""
    counts = []
    before = dict.fromkeys((await play.client.list(LEASE, EVERYTHING)).items)
    for _ in range(parts):
        await play.wait(for_s / parts)
        now = dict.fromkeys((await play.client.list(LEASE, EVERYTHING)).items)
        counts.append(sum(raw not in before for raw in now))
        before = now
    return counts


def test_leases_are_renewed_each_ten_seconds_evenly_over_time() -> None:
    async def story(play: Play) -> None:
        await play.wait(20.0)
        for _ in range(2):
            assert await renewals(play) == [10] * 10

    played(story, FleetSettings(count=100))


def test_leases_of_adopted_nodes_are_spread_over_time_too() -> None:
    async def story(play: Play) -> None:
        for number in range(100):
            metadata = {"name": f"adopted-{number}", "annotations": {SIMULATED_ANNOTATION: "true"}}
            await play.client.create(NODE, "", {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        await play.wait(20.0)
        assert all(5 <= count <= 15 for count in await renewals(play))

    played(story, FleetSettings(count=0))


def test_a_status_is_told_each_five_minutes() -> None:
    async def story(play: Play) -> None:
        await play.wait(300.0)
        stamps: Counter[str] = Counter()
        for name in play.fleet.node_names:
            node = await play.node(name)
            stamps[node["status"]["conditions"][3]["lastHeartbeatTime"]] += 1
        assert len(stamps) == 10
        assert min(stamps) >= "2026-01-01T00:00:01Z"
        transitions = {(await play.node(name))["status"]["conditions"][3]["lastTransitionTime"] for name in ("node-3",)}
        assert transitions == {"2026-01-01T00:00:00Z"}

    played(story, FleetSettings(count=10))


def test_a_lease_that_somebody_deleted_is_made_again() -> None:
    async def story(play: Play) -> None:
        await play.client.delete(LEASE, "kube-node-lease", "node-0")
        await play.wait(11.0)
        lease: Body = msgspec.json.decode(await play.client.get(LEASE, "kube-node-lease", "node-0"))
        assert lease["spec"]["holderIdentity"] == "node-0"

    played(story)


def test_what_fails_is_tried_again() -> None:
    faults = Script(
        Fault("create", Outcome.BROKEN, kind=NODE),
        Fault("create", Outcome.REQUEST_LOST, kind=LEASE),
        Fault("patch", Outcome.ANSWER_LOST, kind=LEASE, times=3),
        Fault("patch", Outcome.BROKEN, kind=NODE, times=2),
    )

    async def story(play: Play) -> None:
        await play.wait(30.0)
        nodes = await play.client.list(NODE, EVERYTHING)
        leases = await play.client.list(LEASE, EVERYTHING)
        assert (len(nodes.items), len(leases.items)) == (2, 2)
        statistics = play.fleet.statistics()["leases"]
        assert isinstance(statistics, dict)
        assert statistics["failed"] >= 2

    played(story, through=lambda client, clock: FaultyClient(client, clock, faults))
