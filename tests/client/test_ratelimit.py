"""A token bucket gives so many at once, and then only so many a second."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.client.ratelimit import TokenBucket
from mooring.kit.clock import VirtualClock


def test_a_full_bucket_gives_its_burst_and_then_one_for_each_interval() -> None:
    clock = VirtualClock()
    bucket = TokenBucket(clock, rate_per_s=0.5, burst=3)
    assert [bucket.try_take() for _ in range(4)] == [True, True, True, False]
    clock.advance_to(1.9)
    assert not bucket.try_take()
    clock.advance_to(2.0)
    assert [bucket.try_take() for _ in range(2)] == [True, False]


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    clock = VirtualClock()
    bucket = TokenBucket(clock, rate_per_s=10, burst=2)
    clock.advance_to(1_000.0)
    assert [bucket.try_take() for _ in range(3)] == [True, True, False]


def test_a_reservation_waits_for_those_before_it() -> None:
    clock = VirtualClock()
    bucket = TokenBucket(clock, rate_per_s=10, burst=2)
    assert [bucket.reserve_s() for _ in range(4)] == pytest.approx([0, 0, 0.1, 0.2])
    clock.advance_to(0.1)
    assert bucket.reserve_s() == pytest.approx(0.2)


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_bucket_that_could_never_give_is_refused(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="wanted at least 1, at more than 0"):
        TokenBucket(VirtualClock(), rate_per_s=rate, burst=burst)


@given(st.lists(st.floats(0, 5), max_size=30), st.integers(1, 5))
def test_no_window_lets_through_more_than_the_burst_and_the_refill(pauses_s: list[float], burst: int) -> None:
    clock = VirtualClock()
    bucket = TokenBucket(clock, rate_per_s=1.0, burst=burst)
    taken = 0
    for pause_s in pauses_s:
        clock.advance_to(clock.now_s() + pause_s)
        taken += bucket.try_take()
        assert taken <= burst + clock.now_s() + 1e-6
