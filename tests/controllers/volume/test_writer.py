"""The writes of the binder: only changes, and the cache of own writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from mooring.api.views.storage import PersistentVolume
from mooring.client.errors import ConflictError
from mooring.client.informer import Informer
from mooring.client.interface import Change
from mooring.controllers.volume.plan import VolumeEvent
from mooring.controllers.volume.writer import (
    CapacityError,
    OwnWritesCache,
    bound_claim,
    bound_volume,
    claim_in_phase,
    migrated_claim,
    migrated_volume,
    unbound_volume,
    volume_in_phase,
)
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.controllers.cluster_builders import BOUND, claim_view, volume_view
from tests.controllers.volume_bench import Bench, run_story

BY_CONTROLLER = {"pv.kubernetes.io/bound-by-controller": "yes"}
STUCK = VolumeEvent("Warning", "VolumeFailedDelete", "it is stuck")


def test_an_available_volume_gets_its_claim_and_the_annotation() -> None:
    document = bound_volume(volume_view(), claim_view())
    assert document is not None
    assert document["spec"]["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": "c",
        "uid": "uid-c",
        "resourceVersion": "1",
    }
    assert document["metadata"]["annotations"] == BY_CONTROLLER
    assert document["spec"]["csi"]["volumeHandle"] == "v", "what the view does not read stays"


def test_a_volume_that_a_user_bound_gets_the_uid_and_no_mark() -> None:
    document = bound_volume(volume_view(claim="c", uid=""), claim_view())
    assert document is not None
    assert document["spec"]["claimRef"]["uid"] == "uid-c"
    assert document["metadata"]["annotations"] == {}


def test_a_volume_that_is_bound_is_left() -> None:
    assert bound_volume(volume_view(claim="c"), claim_view()) is None


@pytest.mark.parametrize(
    ("annotations", "reference", "left"),
    [
        pytest.param(BY_CONTROLLER, False, None, id="what a controller bound is free again"),
        pytest.param({**BY_CONTROLLER, "a": "b"}, False, {"a": "b"}, id="and keeps other notes"),
        pytest.param({}, True, {}, id="what a user bound waits for a claim of that name"),
    ],
)
def test_a_volume_is_unbound(annotations: dict[str, str], reference: bool, left: dict[str, str] | None) -> None:
    document = unbound_volume(volume_view(claim="c", annotations=annotations))
    assert ("claimRef" in document["spec"]) is reference
    assert "uid" not in document["spec"].get("claimRef", {})
    assert document["metadata"].get("annotations") == left


@pytest.mark.parametrize(
    ("claim", "annotations"),
    [
        pytest.param({}, BOUND, id="both marks"),
        pytest.param(
            {"volume": "v"},
            {"pv.kubernetes.io/bind-completed": "yes"},
            id="a volume that the user chose: one annotation",
        ),
    ],
)
def test_a_claim_names_its_volume(claim: dict[str, Any], annotations: dict[str, str]) -> None:
    document = bound_claim(claim_view(**claim), volume_view())
    assert document is not None
    assert document["spec"]["volumeName"] == "v"
    assert document["metadata"]["annotations"] == annotations
    assert bound_claim(claim_view(volume="v", annotations=BOUND), volume_view()) is None


LENT = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}


@pytest.mark.parametrize(
    ("claim", "phase", "volume", "status"),
    [
        pytest.param({}, "Bound", {}, LENT, id="bound: it has what its volume has"),
        pytest.param({"status": LENT}, "Bound", {}, None, id="nothing new"),
        pytest.param({"status": LENT}, "Bound", {"storage": "2Gi"}, None, id="another controller records growth"),
        pytest.param({"status": LENT}, "Lost", None, {"phase": "Lost"}, id="lost: it has nothing"),
        pytest.param({}, "Pending", None, None, id="pending as before"),
        pytest.param(
            {},
            "Bound",
            {"annotations": {"volume.alpha.kubernetes.io/pre-resize-capacity": "512Mi"}},
            {**LENT, "capacity": {"storage": "512Mi"}},
            id="a volume that is being grown lends what it had",
        ),
        pytest.param(
            {},
            "Bound",
            {"volumeAttributesClassName": "gold"},
            {**LENT, "currentVolumeAttributesClassName": "gold"},
            id="its attributes class",
        ),
    ],
)
def test_a_claim_in_phase(
    claim: dict[str, Any], phase: str, volume: dict[str, Any] | None, status: Document | None
) -> None:
    found = claim_in_phase(claim_view(**claim), phase, volume_view(**volume) if volume is not None else None)
    assert (found["status"] if found is not None else None) == status


def test_a_volume_without_a_size_lends_nothing() -> None:
    with pytest.raises(CapacityError, match='PersistentVolume "v" is without a storage capacity'):
        claim_in_phase(claim_view(), "Bound", volume_view(capacity={}))


def test_a_volume_changes_its_phase_once() -> None:
    document = volume_in_phase(volume_view(phase="Released"), "Failed", "why")
    assert document is not None
    assert document["status"] == {"phase": "Failed", "message": "why"}
    assert volume_in_phase(volume_view(phase="Failed"), "Failed") is None


@pytest.mark.parametrize(
    ("provisioner", "policy", "finalizers", "driver"),
    [
        pytest.param("kubernetes.io/aws-ebs", "Delete", [], "ebs.csi.aws.com", id="one that became a driver"),
        pytest.param("kubernetes.io/other", "Delete", ["kubernetes.io/pv-controller"], None, id="one that did not"),
        pytest.param("kubernetes.io/other", "Retain", None, None, id="one that is kept"),
        pytest.param("example.com/disk", "Delete", None, None, id="one from outside"),
    ],
)
def test_a_volume_that_was_provisioned(
    provisioner: str, policy: str, finalizers: list[str] | None, driver: str | None
) -> None:
    annotations = {"pv.kubernetes.io/provisioned-by": provisioner}
    document = migrated_volume(volume_view(policy=policy, annotations=annotations))
    if finalizers is None:
        assert document is None
        return
    assert document is not None
    assert document["metadata"]["finalizers"] == finalizers
    assert document["metadata"]["annotations"].get("pv.kubernetes.io/migrated-to") == driver


def test_a_claim_learns_which_driver_makes_its_volume() -> None:
    document = migrated_claim(
        claim_view(annotations={"volume.kubernetes.io/storage-provisioner": "kubernetes.io/gce-pd"})
    )
    assert document is not None
    assert document["metadata"]["annotations"]["pv.kubernetes.io/migrated-to"] == "pd.csi.storage.gke.io"
    assert migrated_claim(claim_view()) is None


def at(revision: int, uid: str = "uid-v", phase: str = "") -> PersistentVolume:
    view = volume_view(phase=phase)
    return replace(view, metadata=replace(view.metadata, resource_version=str(revision), uid=uid))


def with_cache(scenario: Callable[[Informer[PersistentVolume], OwnWritesCache[PersistentVolume]], None]) -> None:
    async def main() -> None:
        informer: Informer[PersistentVolume] = Informer("volumes")
        cache = OwnWritesCache("test", informer)
        informer.replace([at(9)], "9")
        scenario(informer, cache)

    run(main(), VirtualClock())


def test_own_writes_are_used_at_once() -> None:
    def scenario(informer: Informer[PersistentVolume], cache: OwnWritesCache[PersistentVolume]) -> None:
        cache.assume(at(10, phase="Bound"))
        found = cache.get("v")
        assert found is not None
        assert found.status.phase == "Bound"
        assert cache.of(at(9)) is found

    with_cache(scenario)


def test_what_the_informer_shows_later_wins_by_number_not_by_text() -> None:
    def scenario(informer: Informer[PersistentVolume], cache: OwnWritesCache[PersistentVolume]) -> None:
        cache.assume(at(100))
        informer.apply(Change.MODIFIED, at(99))
        assert cache.of(at(99)).metadata.resource_version == "100"
        informer.apply(Change.MODIFIED, at(101))
        assert cache.of(at(101)).metadata.resource_version == "101"

    with_cache(scenario)


def test_an_answer_that_comes_late_is_old_news() -> None:
    def scenario(informer: Informer[PersistentVolume], cache: OwnWritesCache[PersistentVolume]) -> None:
        informer.apply(Change.MODIFIED, at(20))
        cache.assume(at(10))
        found = cache.get("v")
        assert found is not None
        assert found.metadata.resource_version == "20"

    with_cache(scenario)


def test_what_is_deleted_is_forgotten_and_not_remembered_again() -> None:
    def scenario(informer: Informer[PersistentVolume], cache: OwnWritesCache[PersistentVolume]) -> None:
        cache.assume(at(10))
        informer.apply(Change.DELETED, at(11))
        cache.assume(at(10))
        assert cache.get("v") is None

    with_cache(scenario)


def test_a_namesake_is_another_one() -> None:
    def scenario(informer: Informer[PersistentVolume], cache: OwnWritesCache[PersistentVolume]) -> None:
        cache.assume(at(10, uid="other"))
        found = cache.get("v")
        assert found is not None
        assert found.metadata.uid == "uid-v"

    with_cache(scenario)


def test_a_binding_is_written_on_both_sides() -> None:
    async def story(bench: Bench) -> None:
        volume, claim = await bench.volume(), await bench.claim()
        await bench.start()
        await bench.writer.bind(volume, claim)
        bound, owner = await bench.get(PERSISTENT_VOLUME, "v"), await bench.get(PERSISTENT_VOLUME_CLAIM, "c")
        assert (bound["spec"]["claimRef"]["name"], bound["status"]["phase"]) == ("c", "Bound")
        assert (owner["spec"]["volumeName"], owner["status"]["phase"]) == ("v", "Bound")
        assert owner["status"]["capacity"] == {"storage": "1Gi"}

    run_story(story)


def test_what_is_bound_already_is_not_written_again() -> None:
    async def story(bench: Bench) -> None:
        volume, claim = await bench.volume(), await bench.claim()
        await bench.start()
        await bench.writer.bind(volume, claim)
        versions = [
            (await bench.get(kind, name))["metadata"]["resourceVersion"]
            for kind, name in ((PERSISTENT_VOLUME, "v"), (PERSISTENT_VOLUME_CLAIM, "c"))
        ]
        seen_volume, seen_claim = bench.volume_cache.get("v"), bench.claim_cache.get("default/c")
        assert seen_volume is not None
        assert seen_claim is not None
        assert [seen_volume.metadata.resource_version, seen_claim.metadata.resource_version] == versions, "believed"
        await bench.writer.bind(seen_volume, seen_claim)
        assert (await bench.get(PERSISTENT_VOLUME, "v"))["metadata"]["resourceVersion"] == versions[0]
        assert (await bench.get(PERSISTENT_VOLUME_CLAIM, "c"))["metadata"]["resourceVersion"] == versions[1]

    run_story(story)


def test_a_volume_that_is_unbound_is_available() -> None:
    async def story(bench: Bench) -> None:
        ours = {"pv.kubernetes.io/bound-by-controller": "yes"}
        volume = await bench.volume(claim="c", annotations=ours)
        await bench.start()
        await bench.writer.unbind(volume)
        free = await bench.get(PERSISTENT_VOLUME, "v")
        assert "claimRef" not in free["spec"]
        assert free["status"]["phase"] == "Available"

    run_story(story)


def test_an_event_is_recorded_only_with_a_new_phase() -> None:
    async def story(bench: Bench) -> None:
        volume = await bench.volume()
        await bench.start()
        volume = await bench.writer.set_volume_phase(volume, "Failed", STUCK)
        status = (await bench.get(PERSISTENT_VOLUME, "v"))["status"]
        assert (status["phase"], status["message"]) == ("Failed", "it is stuck")
        assert await bench.writer.set_volume_phase(volume, "Failed", STUCK) is volume
        assert bench.recorded == [("VolumeFailedDelete", "it is stuck")]

    run_story(story)


def test_the_newer_version_wins() -> None:
    async def story(bench: Bench) -> None:
        volume = await bench.volume()
        await bench.start()
        await bench.writer.set_volume_phase(volume, "Available")
        with pytest.raises(ConflictError):
            await bench.writer.set_volume_phase(volume, "Failed", STUCK)
        assert bench.recorded == []

    run_story(story)
