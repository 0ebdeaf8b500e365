"""How long a pod backs off, and in which order pods come back."""

from __future__ import annotations

import pytest

from mooring.scheduler.queue.backoff import BackoffRooms, end_s, room_for
from mooring.scheduler.queue.entry import NEVER_S, QueuedPod
from mooring.scheduler.queue.moves import Room
from tests.builders import pod
from tests.scheduler.queue.builders import record


def rooms(initial_s: float = 1.0, max_s: float = 10.0) -> BackoffRooms:
    return BackoffRooms(initial_s, max_s, lambda entry: (-entry.pod.priority, entry.queued_s))


def entry_of(
    name: str = "p", *, queued_s: float = 0.0, refusals: int = 0, errors: int = 0, priority: int = 0
) -> QueuedPod:
    entry = QueuedPod(record(pod(name, uid=name, priority=priority)), queued_s)
    entry.unschedulable_count, entry.errors_in_a_row = refusals, errors
    entry.rejectors = frozenset(("Fit",)) if refusals and not errors else frozenset()
    return entry


@pytest.mark.parametrize(
    ("entry", "initial_s", "max_s", "end"),
    [
        pytest.param(entry_of(), 1, 10, NEVER_S, id="never tried: no backoff"),
        pytest.param(entry_of(refusals=1), 1, 10, 2, id="refused once: a second, and the window in which it ends"),
        pytest.param(entry_of(refusals=2), 1, 10, 3, id="twice: two seconds"),
        pytest.param(entry_of(refusals=5), 3, 1000, 49, id="doubling: 3 * 2^4 = 48"),
        pytest.param(entry_of(refusals=16), 1, 32, 33, id="up to the limit"),
        pytest.param(entry_of(refusals=2000), 1, 32, 33, id="however often"),
        pytest.param(entry_of(refusals=5, errors=1), 1, 32, 2, id="after an error, errors in a row count"),
        pytest.param(entry_of(refusals=1, errors=16), 1, 32, 33, id="errors reach the limit too"),
        pytest.param(entry_of(refusals=16), 0, 0, NEVER_S, id="a limit of zero: nobody backs off"),
        pytest.param(entry_of(refusals=1, queued_s=7.4), 1, 10, 9, id="8.4 lies in the window that ends at 9"),
        pytest.param(entry_of(refusals=1, queued_s=7.0), 1, 10, 9, id="so does 8.0: a window is waited out"),
        pytest.param(entry_of(refusals=1, queued_s=0.3), 0.25, 10, 1, id="0.55 lies in the first window"),
    ],
)
def test_a_backoff_ends_with_the_window_of_its_last_moment(
    entry: QueuedPod, initial_s: float, max_s: float, end: float
) -> None:
    rooms(initial_s, max_s).count(entry)
    assert end_s(entry) == end


def test_refused_pods_of_one_window_come_back_in_the_order_of_the_queue() -> None:
    # The facts of kube-scheduler's own ordering test: now is 10 s, all were refused once.
    backoff = rooms()
    for name, queued_s, priority in (
        ("p0", 10, 1),
        ("p1", 9, 1),
        ("p2", 8.001, 2),
        ("p3", 8, 1),
        ("p4", 8, 2),
        ("p5", 7, 1),
    ):
        entry = entry_of(name, queued_s=queued_s, refusals=1, priority=priority)
        backoff.count(entry)
        backoff.refused.push(name, entry)
    assert over(backoff, at_s=10.0) == ["p5", "p4", "p2", "p3"]
    assert backoff.next_end_s() == 11


def test_pods_that_failed_come_after_those_refused_and_whatever_their_priority() -> None:
    backoff = rooms()
    for name, queued_s, errors, priority in (("f1", 0.2, 1, 1), ("f2", 0.1, 1, 9), ("r1", 0.3, 0, 1), ("f0", 0, 3, 9)):
        entry = entry_of(name, queued_s=queued_s, refusals=1, errors=errors, priority=priority)
        backoff.count(entry)
        backoff.room_of(room_for(entry)).push(name, entry)
    assert over(backoff, at_s=2.0) == ["r1", "f1", "f2"]
    assert over(backoff, at_s=4.9) == []
    assert over(backoff, at_s=5.0) == ["f0"]


@pytest.mark.parametrize(
    ("rejectors", "pending", "room"),
    [
        pytest.param({"Fit"}, (), Room.BACKOFF, id="refused"),
        pytest.param((), {"Fit"}, Room.BACKOFF, id="pending on somebody"),
        pytest.param((), (), Room.ERROR_BACKOFF, id="neither: an error"),
    ],
)
def test_where_a_pod_backs_off(rejectors: set[str], pending: set[str], room: Room) -> None:
    entry = entry_of()
    entry.rejectors, entry.pending = frozenset(rejectors), frozenset(pending)
    assert room_for(entry) is room


def over(backoff: BackoffRooms, *, at_s: float) -> list[str]:
    names = []
    while (entry := backoff.first_over(at_s)) is not None:
        names.append(entry.pod.name)
        backoff.room_of(room_for(entry)).delete(entry.pod.uid)
    return names
