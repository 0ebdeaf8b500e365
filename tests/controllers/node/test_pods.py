"""Pods of a silent node."""

from __future__ import annotations

from mooring.api.decode import convert_as
from mooring.api.kinds import POD
from mooring.api.views.pod import Pod
from mooring.client.events.recorder import EventKey, EventRecorder
from mooring.controllers.node.pods import mark_pods_not_ready
from tests.controllers.cluster_builders import pod_document
from tests.controllers.world import World, play


def test_pods_that_claim_to_be_ready_are_marked() -> None:
    async def story(world: World) -> None:
        unready, fresh = pod_document("unready", "n1"), pod_document("fresh", "n1")
        unready["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
        fresh["status"]["conditions"] = []
        await world.create(pod_document("ready", "n1"), unready, fresh)
        told: list[tuple[str, str, str]] = []

        def tell(key: EventKey, note: str) -> None:
            told.append((key[5].name, key[2], note))

        pods = [convert_as(Pod, document) for document in await world.pods()]
        vanished = convert_as(Pod, pod_document("vanished", "n1"))
        recorder = EventRecorder(tell, "node-controller")
        errors = await mark_pods_not_ready(world.client, recorder, world.clock, [*pods, vanished])
        assert errors == []
        assert told == [("ready", "NodeNotReady", "Node is not ready")]
        assert (await world.conditions("ready", POD))["Ready"][0] == "False"

    play(story, controllers=[])
