"""What becomes of an object that is deleted: gone, or ending with an end in sight."""

from __future__ import annotations

import pytest

from mooring.api.kinds import CONFIG_MAP, EVENT, JOB, POD, REPLICA_SET, REPLICATION_CONTROLLER, Kind
from mooring.apiserver.storage.stored_form import PlainObject
from mooring.client.errors import ConflictError
from mooring.client.interface import Deletion, Propagation
from mooring.kit.clock import VIRTUAL_WALL_S, format_rfc3339
from tests.fakes.raw_delete import GONE, PENDING, Fate, fate_of

BY_ITSELF = Deletion()


def after_s(seconds: int) -> str:
    return format_rfc3339(VIRTUAL_WALL_S + seconds)


def thing(**metadata: object) -> PlainObject:
    return {"metadata": {"name": "a", "uid": "u1", **metadata}}


def running_pod(**metadata: object) -> PlainObject:
    return {**thing(generation=1, **metadata), "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 30}}


def ending_pod(grace_s: int, *, began_s: int = 0, **metadata: object) -> PlainObject:
    return running_pod(deletionTimestamp=after_s(began_s + grace_s), deletionGracePeriodSeconds=grace_s, **metadata)


def ended(fate: Fate) -> tuple[object, object, object, bool]:
    """When it ends, the time that it has, its finalizers, and whether it is gone."""
    assert fate.ending is not None
    metadata = fate.ending["metadata"]
    assert isinstance(metadata, dict)
    return (
        metadata["deletionTimestamp"],
        metadata["deletionGracePeriodSeconds"],
        metadata.get("finalizers"),
        fate.is_gone,
    )


@pytest.mark.parametrize(
    ("kind", "current", "deletion", "fate"),
    [
        pytest.param(CONFIG_MAP, thing(), BY_ITSELF, GONE, id="a plain object"),
        pytest.param(
            CONFIG_MAP, thing(), Deletion(grace_s=30), GONE, id="which needs no time even if it is given some"
        ),
        pytest.param(EVENT, thing(), Deletion(propagation=Propagation.ORPHAN), GONE, id="an event owns nothing"),
        pytest.param(POD, ending_pod(30), BY_ITSELF, PENDING, id="a pod that is ending already"),
        pytest.param(POD, ending_pod(30), Deletion(grace_s=30), PENDING, id="and is given no less time"),
        pytest.param(POD, ending_pod(0), BY_ITSELF, GONE, id="a pod whose time is over"),
    ],
)
def test_what_is_gone_at_once_or_goes_on_as_it_is(
    kind: Kind, current: PlainObject, deletion: Deletion, fate: Fate
) -> None:
    assert fate_of(kind, current, 5, deletion, VIRTUAL_WALL_S) == fate


@pytest.mark.parametrize(
    ("kind", "current", "deletion", "expected"),
    [
        pytest.param(POD, running_pod(), BY_ITSELF, (after_s(30), 30, None, False), id="a pod has its own time"),
        pytest.param(POD, running_pod(), Deletion(grace_s=5), (after_s(5), 5, None, False), id="or what it is given"),
        pytest.param(POD, running_pod(), Deletion(grace_s=0), (after_s(0), 0, None, True), id="or none"),
        pytest.param(
            POD, running_pod(), Deletion(grace_s=-4), (after_s(1), 1, None, False), id="less than none is a second"
        ),
        pytest.param(POD, ending_pod(30), Deletion(grace_s=9), (after_s(9), 9, None, False), id="less than it had"),
        pytest.param(
            POD,
            ending_pod(30, began_s=-20),
            Deletion(grace_s=9),
            (after_s(0), 1, None, False),
            id="less than is over already",
        ),
        pytest.param(POD, ending_pod(30), Deletion(grace_s=0), (after_s(0), 0, None, True), id="no more time"),
        pytest.param(POD, ending_pod(30), Deletion(grace_s=-1), (after_s(1), 1, None, False), id="a second, once more"),
        pytest.param(
            POD,
            running_pod(finalizers=["x"]),
            Deletion(grace_s=0),
            (after_s(0), 0, ["x"], False),
            id="it has a finalizer",
        ),
        pytest.param(
            CONFIG_MAP,
            thing(finalizers=["x"]),
            BY_ITSELF,
            (after_s(0), 0, ["x"], False),
            id="an object with a finalizer",
        ),
        pytest.param(
            CONFIG_MAP,
            thing(finalizers=["x"], deletionTimestamp=after_s(-9), deletionGracePeriodSeconds=0),
            BY_ITSELF,
            (after_s(-9), 0, ["x"], False),
            id="which was deleted before",
        ),
        pytest.param(
            REPLICA_SET,
            thing(),
            Deletion(propagation=Propagation.FOREGROUND),
            (after_s(0), 0, ["foregroundDeletion"], False),
            id="its dependents first",
        ),
        pytest.param(
            REPLICA_SET,
            thing(finalizers=["foregroundDeletion", "x"]),
            Deletion(propagation=Propagation.ORPHAN),
            (after_s(0), 0, ["x", "orphan"], False),
            id="its dependents left alone after all",
        ),
        pytest.param(
            REPLICA_SET,
            thing(finalizers=["orphan"]),
            BY_ITSELF,
            (after_s(0), 0, ["orphan"], False),
            id="as it says itself",
        ),
        pytest.param(JOB, thing(), BY_ITSELF, (after_s(0), 0, ["orphan"], False), id="a job orphans its pods"),
        pytest.param(
            REPLICATION_CONTROLLER,
            thing(),
            BY_ITSELF,
            (after_s(0), 0, ["orphan"], False),
            id="a replication controller too",
        ),
    ],
)
def test_what_is_ending(
    kind: Kind, current: PlainObject, deletion: Deletion, expected: tuple[object, object, object, bool]
) -> None:
    assert ended(fate_of(kind, current, 5, deletion, VIRTUAL_WALL_S)) == expected


@pytest.mark.parametrize("kind", [JOB, REPLICATION_CONTROLLER])
def test_who_asks_for_it_deletes_dependents_in_the_background(kind: Kind) -> None:
    assert fate_of(kind, thing(), 5, Deletion(propagation=Propagation.BACKGROUND), VIRTUAL_WALL_S) == GONE


@pytest.mark.parametrize(
    ("kind", "current", "generation"),
    [
        pytest.param(POD, running_pod(), 2, id="a pod that begins to end"),
        pytest.param(POD, ending_pod(30), 1, id="a pod that is given less time"),
        pytest.param(REPLICA_SET, thing(generation=4, finalizers=["x"]), 5, id="an object that waits for a finalizer"),
        pytest.param(CONFIG_MAP, thing(finalizers=["x"]), None, id="one without a generation"),
    ],
)
def test_beginning_to_end_is_a_change_of_what_is_wanted(
    kind: Kind, current: PlainObject, generation: int | None
) -> None:
    fate = fate_of(kind, current, 5, Deletion(grace_s=3), VIRTUAL_WALL_S)
    assert fate.ending is not None
    metadata = fate.ending["metadata"]
    assert isinstance(metadata, dict)
    assert metadata.get("generation") == generation


@pytest.mark.parametrize("deletion", [Deletion(uid="u0"), Deletion(revision="4"), Deletion(uid="u1", revision="6")])
def test_another_object_or_state_is_not_deleted(deletion: Deletion) -> None:
    with pytest.raises(ConflictError):
        fate_of(CONFIG_MAP, thing(), 5, deletion, VIRTUAL_WALL_S)


def test_what_comes_in_is_not_changed() -> None:
    current = running_pod(finalizers=["x"])
    fate_of(POD, current, 5, Deletion(propagation=Propagation.ORPHAN), VIRTUAL_WALL_S)
    assert current == running_pod(finalizers=["x"])
