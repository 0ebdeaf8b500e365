"""The binder's writes: each only if it changes something, and believed from then on."""

from __future__ import annotations

import pytest

from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from mooring.client.errors import ConflictError
from mooring.controllers.volume.plan import Tell
from tests.controllers.volume_bench import Bench, tell

STUCK = Tell("Warning", "VolumeFailedDelete", "it is stuck")


def test_a_binding_is_written_on_both_sides() -> None:
    async def story(bench: Bench) -> None:
        volume, claim = await bench.volume(), await bench.claim()
        await bench.start()
        await bench.writer.bind(volume, claim)
        bound, owner = await bench.get(PERSISTENT_VOLUME, "v"), await bench.get(PERSISTENT_VOLUME_CLAIM, "c")
        assert (bound["spec"]["claimRef"]["name"], bound["status"]["phase"]) == ("c", "Bound")
        assert (owner["spec"]["volumeName"], owner["status"]["phase"]) == ("v", "Bound")
        assert owner["status"]["capacity"] == {"storage": "1Gi"}

    tell(story)


def test_what_is_bound_already_is_not_written_again() -> None:
    async def story(bench: Bench) -> None:
        volume, claim = await bench.volume(), await bench.claim()
        await bench.start()
        await bench.writer.bind(volume, claim)
        versions = [
            (await bench.get(kind, name))["metadata"]["resourceVersion"]
            for kind, name in ((PERSISTENT_VOLUME, "v"), (PERSISTENT_VOLUME_CLAIM, "c"))
        ]
        seen_volume, seen_claim = bench.latest_volumes.get("v"), bench.latest_claims.get("default/c")
        assert seen_volume is not None
        assert seen_claim is not None
        assert [seen_volume.metadata.resource_version, seen_claim.metadata.resource_version] == versions, "believed"
        await bench.writer.bind(seen_volume, seen_claim)
        assert (await bench.get(PERSISTENT_VOLUME, "v"))["metadata"]["resourceVersion"] == versions[0]
        assert (await bench.get(PERSISTENT_VOLUME_CLAIM, "c"))["metadata"]["resourceVersion"] == versions[1]

    tell(story)


def test_a_volume_that_is_unbound_is_available() -> None:
    async def story(bench: Bench) -> None:
        ours = {"pv.kubernetes.io/bound-by-controller": "yes"}
        volume = await bench.volume(claim="c", annotations=ours)
        await bench.start()
        await bench.writer.unbind(volume)
        free = await bench.get(PERSISTENT_VOLUME, "v")
        assert "claimRef" not in free["spec"]
        assert free["status"]["phase"] == "Available"

    tell(story)


def test_an_event_is_told_only_with_a_new_phase() -> None:
    async def story(bench: Bench) -> None:
        volume = await bench.volume()
        await bench.start()
        volume = await bench.writer.set_volume_phase(volume, "Failed", STUCK)
        status = (await bench.get(PERSISTENT_VOLUME, "v"))["status"]
        assert (status["phase"], status["message"]) == ("Failed", "it is stuck")
        assert await bench.writer.set_volume_phase(volume, "Failed", STUCK) is volume
        assert bench.told == [("VolumeFailedDelete", "it is stuck")]

    tell(story)


def test_who_was_faster_wins() -> None:
    async def story(bench: Bench) -> None:
        volume = await bench.volume()
        await bench.start()
        await bench.writer.set_volume_phase(volume, "Available")
        with pytest.raises(ConflictError):
            await bench.writer.set_volume_phase(volume, "Failed", STUCK)
        assert bench.told == []

    tell(story)
