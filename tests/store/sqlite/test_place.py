"""Where a commit is worked on: on the loop while the disk is quick, on a thread while it is not."""

from __future__ import annotations

import pytest

from mooring.kit.clock import VirtualClock
from mooring.store.sqlite.commit import CommitPlace
from mooring.store.sqlite.limits import SqliteLimits

LIMITS = SqliteLimits(
    here_writes_max=100, here_bytes_max=1_000, here_s=0.001, here_s_per_write=0.0001, away_s=1.0, away_s_max=3.0
)
SLOW_S = 1.0


def a_place() -> tuple[CommitPlace, VirtualClock]:
    clock = VirtualClock()
    return CommitPlace(clock, LIMITS), clock


def commits_until_away(place: CommitPlace, took_s: float) -> int:
    """How many such commits the loop suffers."""
    for count in range(1_000):
        if not place.is_here(1, 1):
            return count
        place.note(1, took_s)
    return -1


@pytest.mark.parametrize(
    ("writes", "size_bytes", "is_here"),
    [
        pytest.param(100, 1_000, True, id="a common one"),
        pytest.param(101, 1, False, id="many writes"),
        pytest.param(1, 1_001, False, id="many bytes"),
    ],
)
def test_large_commits_go_to_the_thread(writes: int, size_bytes: int, is_here: bool) -> None:
    assert a_place()[0].is_here(writes, size_bytes) is is_here


@pytest.mark.parametrize(
    ("took_s", "commits"),
    [
        pytest.param(0.0011, -1, id="as long as one may take"),
        pytest.param(0.0022, 7, id="twice as long"),
        pytest.param(SLOW_S, 3, id="a second"),
    ],
)
def test_a_slow_disk_is_found_out_in_a_few_commits(took_s: float, commits: int) -> None:
    assert commits_until_away(a_place()[0], took_s) == commits


def test_more_writes_may_take_longer() -> None:
    place, _ = a_place()
    for _ in range(1_000):
        place.note(90, 0.0099)
    assert place.is_here(1, 1)


def test_one_slow_moment_is_forgiven() -> None:
    place, _ = a_place()
    for _ in range(100):
        place.note(1, SLOW_S)
        for _ in range(30):
            place.note(1, 0.0002)
        assert place.is_here(1, 1)


def test_the_loop_tries_again_ever_more_seldom_until_the_disk_is_quick() -> None:
    place, clock = a_place()
    waits_s = []
    for _ in range(4):
        assert commits_until_away(place, SLOW_S) == 3
        began_s = clock.now_s()
        while not place.is_here(1, 1):
            clock.advance_to(clock.now_s() + 0.5)
        waits_s.append(clock.now_s() - began_s)
    assert waits_s == [1.0, 2.0, 3.0, 3.0]

    place.note(1, 0.0002)
    assert commits_until_away(place, SLOW_S) == 3
    clock.advance_to(clock.now_s() + 1.0)
    assert place.is_here(1, 1)
