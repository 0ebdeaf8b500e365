"""The next step for a claim or a volume."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.controllers.volume.plan import (
    AssignClass,
    BindVolume,
    EnqueueClaim,
    MarkLost,
    MarkPending,
    Mismatch,
    ProvisionVolume,
    RejectBinding,
    Release,
    SetPhase,
    Unbind,
    VolumePlanError,
    best_volume,
    default_class,
    is_settled,
    mismatch_reason,
    plan_claim,
    plan_volume,
)
from tests.controllers.cluster_builders import BOUND, claim_view, class_view, volume_view

FREE: dict[str, Any] = {"phase": "Available"}
SELECTED = {"volume.kubernetes.io/selected-node": "n1"}


@pytest.mark.parametrize(
    ("claim", "volumes", "best"),
    [
        pytest.param({}, [], None, id="there is none"),
        pytest.param({}, [("a", {"storage": "5Gi"}), ("b", {"storage": "2Gi"})], "b", id="the smallest"),
        pytest.param({}, [("b", {}), ("a", {})], "a", id="of equals the first by name"),
        pytest.param(
            {"storage": "3Gi"}, [("a", {"storage": "2Gi"}), ("b", {"storage": "3Gi"})], "b", id="large enough"
        ),
        pytest.param({}, [("a", {"class_name": "other"})], None, id="another class"),
        pytest.param({"class_name": ""}, [("a", {"class_name": ""})], "a", id="no class and no class"),
        pytest.param({}, [("a", {"phase": "Released"})], None, id="one that is not free"),
        pytest.param({}, [("a", {"going": True})], None, id="one that goes"),
        pytest.param({}, [("a", {"claim": "other"})], None, id="one that names another claim"),
        pytest.param(
            {}, [("a", {}), ("b", {"storage": "9Gi", "claim": "c"})], "b", id="one that names it, though larger"
        ),
        pytest.param({}, [("b", {"claim": "c", "uid": ""})], "b", id="one that names it without a uid"),
        pytest.param({}, [("b", {"claim": "c", "uid": "old"})], None, id="one that names its namesake"),
        pytest.param({}, [("b", {"claim": "c", "class_name": "x"})], "b", id="who names it may be of another class"),
        pytest.param(
            {"storage": "3Gi"},
            [("a", {"storage": "5Gi"}), ("b", {"claim": "c"})],
            "a",
            id="who names it must be large enough",
        ),
        pytest.param({"volumeMode": "Block"}, [("a", {})], None, id="another mode"),
        pytest.param({"volumeMode": "Filesystem"}, [("a", {})], "a", id="Filesystem is the default"),
        pytest.param({"modes": ["ReadOnlyMany"]}, [("a", {})], None, id="an access mode is missing"),
        pytest.param(
            {},
            [("a", {"modes": ["ReadWriteOnce", "ReadOnlyMany"]}), ("b", {"storage": "9Gi"})],
            "b",
            id="fewer access modes come before a smaller size",
        ),
        pytest.param(
            {},
            [("a", {"modes": ["ReadWriteOnce", "ReadOnlyMany"], "claim": "c"}), ("b", {})],
            "b",
            id="and even before one that names it",
        ),
        pytest.param(
            {"selector": {"matchLabels": {"disk": "fast"}}},
            [("a", {}), ("b", {"storage": "9Gi", "labels": {"disk": "fast"}})],
            "b",
            id="by its selector",
        ),
        pytest.param({"volumeAttributesClassName": "gold"}, [("a", {})], None, id="another attributes class"),
    ],
)
def test_a_claim_gets(claim: dict[str, Any], volumes: list[tuple[str, dict[str, Any]]], best: str | None) -> None:
    found = best_volume(
        claim_view(**claim), [volume_view(name, **{**FREE, **parts}) for name, parts in volumes], is_delayed=False
    )
    assert (found.metadata.name if found is not None else None) == best


@pytest.mark.parametrize(
    ("volume", "best"),
    [
        pytest.param({}, None, id="a free one is left to the scheduler"),
        pytest.param({"claim": "c"}, "v", id="one that names it was chosen by the scheduler"),
    ],
)
def test_a_claim_that_waits_for_its_consumer_gets(volume: dict[str, Any], best: str | None) -> None:
    found = best_volume(claim_view(), [volume_view(**{**FREE, **volume})], is_delayed=True)
    assert (found.metadata.name if found is not None else None) == best


@pytest.mark.parametrize(
    ("claim", "volume", "why"),
    [
        pytest.param({}, {}, "", id="it will do"),
        pytest.param({}, {"going": True}, 'the volume is marked for deletion "v"', id="it goes"),
        pytest.param({"storage": "2Gi"}, {}, "requested PV is too small", id="too small"),
        pytest.param({"class_name": "x"}, {}, "storageClassName does not match", id="another class"),
        pytest.param(
            {"volumeAttributesClassName": "gold"}, {}, "volumeAttributesClassName does not match", id="attributes"
        ),
        pytest.param({}, {"volumeMode": "Block"}, "incompatible volumeMode", id="another mode"),
        pytest.param({"modes": ["ReadWriteMany"]}, {}, "incompatible accessMode", id="another access mode"),
    ],
)
def test_a_volume_that_is_asked_for_is_refused_because(claim: dict[str, Any], volume: dict[str, Any], why: str) -> None:
    assert mismatch_reason(volume_view(**volume), claim_view(**claim)) == why


@dataclass
class Around:
    """What can be looked up."""

    volumes: Sequence[PersistentVolume] = ()
    classes: Sequence[StorageClass] = ()
    pods: Sequence[str] = field(default_factory=list)

    def volume(self, name: str) -> PersistentVolume | None:
        return next((volume for volume in self.volumes if volume.metadata.name == name), None)

    def candidates(self, claim: PersistentVolumeClaim) -> Iterable[PersistentVolume]:
        return self.volumes

    def storage_class(self, name: str) -> StorageClass | None:
        return next((storage_class for storage_class in self.classes if storage_class.metadata.name == name), None)

    def storage_classes(self) -> Sequence[StorageClass]:
        return self.classes

    def unscheduled_pods(self, claim: PersistentVolumeClaim) -> Sequence[str]:
        return self.pods


@pytest.mark.parametrize(
    ("claim", "around", "action", "reason"),
    [
        pytest.param({}, Around([volume_view(phase="Available")]), BindVolume, "", id="a free volume is bound"),
        pytest.param(
            {}, Around(), ProvisionVolume, "", id="without one it is provisioned, whether the class exists or not"
        ),
        pytest.param({}, Around(classes=[class_view(waits=True)]), MarkPending, "WaitForFirstConsumer", id="it waits"),
        pytest.param(
            {},
            Around(classes=[class_view(waits=True)], pods=["p"]),
            MarkPending,
            "WaitForPodScheduled",
            id="with a pod",
        ),
        pytest.param(
            {"annotations": SELECTED},
            Around(classes=[class_view(waits=True)]),
            ProvisionVolume,
            "",
            id="a node was chosen",
        ),
        pytest.param({"class_name": ""}, Around(), MarkPending, "FailedBinding", id="no class, no volume"),
        pytest.param({"class_name": None}, Around(), MarkPending, "FailedBinding", id="nothing said about a class"),
        pytest.param(
            {"class_name": None}, Around(classes=[class_view(is_default=True)]), AssignClass, "", id="the default class"
        ),
        pytest.param(
            {"class_name": ""},
            Around(classes=[class_view(is_default=True)]),
            MarkPending,
            "FailedBinding",
            id="none is none",
        ),
        pytest.param({"volume": "v"}, Around(), MarkPending, "", id="its volume does not exist"),
        pytest.param({"volume": "v"}, Around([volume_view()]), BindVolume, "", id="its volume is available"),
        pytest.param(
            {"volume": "v", "storage": "2Gi"},
            Around([volume_view()]),
            MarkPending,
            "VolumeMismatch",
            id="its volume is too small",
        ),
        pytest.param({"volume": "v"}, Around([volume_view(claim="c")]), BindVolume, "", id="its volume names it"),
        pytest.param(
            {"volume": "v"},
            Around([volume_view(claim="other")]),
            MarkPending,
            "FailedBinding",
            id="its volume is bound to another claim",
        ),
        pytest.param(
            {"volume": "v", "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
            Around([volume_view(claim="other")]),
            RejectBinding,
            "FailedBinding",
            id="a controller bound it wrongly",
        ),
        pytest.param({"annotations": BOUND}, Around(), MarkLost, "ClaimLost", id="it lost the name of its volume"),
        pytest.param({"annotations": BOUND, "volume": "v"}, Around(), MarkLost, "ClaimLost", id="its volume vanished"),
        pytest.param(
            {"annotations": BOUND, "volume": "v"},
            Around([volume_view()]),
            BindVolume,
            "",
            id="its volume forgot it: again",
        ),
        pytest.param(
            {"annotations": BOUND, "volume": "v"}, Around([volume_view(claim="c")]), BindVolume, "", id="all is well"
        ),
        pytest.param(
            {"annotations": BOUND, "volume": "v"},
            Around([volume_view(claim="other")]),
            MarkLost,
            "ClaimMisbound",
            id="its volume is another's",
        ),
    ],
)
def test_for_a_claim(claim: dict[str, Any], around: Around, action: type, reason: str) -> None:
    planned = plan_claim(claim_view(**claim), around)
    assert isinstance(planned, action)
    event = getattr(planned, "event", None)
    assert (event.reason if event is not None else "") == reason


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        pytest.param([], "waiting for first consumer to be created before binding", id="no pod uses it"),
        pytest.param(["a"], "waiting for pod a to be scheduled", id="a pod does"),
        pytest.param(["a", "b"], "waiting for pods a,b to be scheduled", id="several do"),
    ],
)
def test_a_waiting_claim_names_its_consumer(pods: list[str], message: str) -> None:
    planned = plan_claim(claim_view(), Around(classes=[class_view(waits=True)], pods=pods))
    assert isinstance(planned, MarkPending)
    assert planned.event is not None
    assert planned.event.message == message


def test_a_class_that_does_not_say_when_it_binds_is_an_error() -> None:
    with pytest.raises(VolumePlanError, match='VolumeBindingMode not set for StorageClass "slow"'):
        plan_claim(claim_view(), Around(classes=[class_view(volumeBindingMode=None)]))


def test_of_several_default_classes_the_newest_counts_then_the_first_by_name() -> None:
    old, new = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    classes = [
        class_view("a", is_default=True, created=old),
        class_view("c", is_default=True, created=new),
        class_view("b", is_default=True, created=new),
        class_view("d", created=new),
    ]
    found = default_class(classes)
    assert found is not None
    assert found.metadata.name == "b"


MADE = {"pv.kubernetes.io/provisioned-by": "example.com/disk"}


@pytest.mark.parametrize(
    ("volume", "claim", "action"),
    [
        pytest.param({}, None, SetPhase("Available"), id="it names no claim"),
        pytest.param({"claim": "c", "uid": ""}, None, SetPhase("Available"), id="it waits for a claim of a name"),
        pytest.param({"claim": "c"}, None, Release(), id="its claim is gone"),
        pytest.param({"claim": "c"}, {"volume": "v"}, SetPhase("Bound"), id="both agree"),
        pytest.param({"claim": "c"}, {}, EnqueueClaim(), id="its claim does not know yet"),
        pytest.param({"claim": "c"}, {"volume": "w"}, Unbind(), id="its claim has another one"),
        pytest.param(
            {"claim": "c", "annotations": MADE, "policy": "Delete"},
            {"volume": "w"},
            Release(),
            id="one that was made for it is of no use then",
        ),
        pytest.param({"claim": "c", "annotations": MADE}, {"volume": "w"}, Unbind(), id="unless it is to be kept"),
    ],
)
def test_for_a_volume(volume: dict[str, Any], claim: dict[str, Any] | None, action: object) -> None:
    assert plan_volume(volume_view(**volume), claim_view(**claim) if claim is not None else None) == action


def test_a_mismatch_of_modes_is_an_event_of_volume_and_claim() -> None:
    planned = plan_volume(volume_view(claim="c", volumeMode="Block"), claim_view())
    assert isinstance(planned, Mismatch)
    assert planned.about_volume.message.endswith('PersistentVolumeClaim "c" due to incompatible volumeMode.')
    assert planned.about_claim.message.startswith('Cannot bind PersistentVolume "v" to requested')


@pytest.mark.parametrize(
    ("claim", "volume", "expected"),
    [
        pytest.param({}, {}, True, id="everything is written"),
        pytest.param({"phase": "Pending"}, {}, False, id="the claim's phase is missing"),
        pytest.param({}, {"phase": "Available"}, False, id="the volume's phase is missing"),
        pytest.param({"annotations": {}}, {}, False, id="the binding is not complete"),
        pytest.param({}, {"uid": "old"}, False, id="the volume names another"),
        pytest.param({}, {"modes": ["ReadWriteMany"]}, False, id="the access modes changed"),
    ],
)
def test_a_bound_pair_is_settled(claim: dict[str, Any], volume: dict[str, Any], expected: bool) -> None:
    status = {"accessModes": ["ReadWriteOnce"]}
    one = claim_view(**{"volume": "v", "phase": "Bound", "annotations": BOUND, "status": status, **claim})
    other = volume_view(**{"claim": "c", "phase": "Bound", **volume})
    assert is_settled(one, other) is expected
    assert not is_settled(one, None)
