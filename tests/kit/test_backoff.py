"""The delay doubles with each failure up to a limit, and jitter only lengthens it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.kit.backoff import Backoff, KeyedBackoff
from mooring.kit.entropy import Entropy

SCHEDULER = Backoff(initial_s=1.0, max_s=10.0)  # kube-scheduler's defaults


@pytest.mark.parametrize(
    ("failures", "delay_s"),
    [
        pytest.param(0, 0.0, id="nothing failed: no wait"),
        pytest.param(1, 1.0, id="the first failure waits the initial time"),
        pytest.param(2, 2.0, id="the second twice that"),
        pytest.param(4, 8.0, id="the fourth eight times"),
        pytest.param(5, 10.0, id="never longer than the limit"),
        pytest.param(10**9, 10.0, id="a billion failures overflow nothing"),
    ],
)
def test_the_wait_doubles_up_to_the_limit(failures: int, delay_s: float) -> None:
    assert SCHEDULER.delay_s(failures) == delay_s


@given(st.integers(), st.integers(1, 100), st.floats(0, 2))
def test_jitter_only_lengthens_and_by_no_more_than_its_fraction(seed: int, failures: int, jitter: float) -> None:
    backoff = Backoff(initial_s=0.5, max_s=60.0, jitter=jitter)
    plain_s = backoff.delay_s(failures)
    assert plain_s <= backoff.jittered_delay_s(failures, Entropy(seed)) <= plain_s * (1 + jitter)


def test_jitter_separates_keys_that_reach_the_limit_together() -> None:
    backoff = Backoff(initial_s=1.0, max_s=10.0, jitter=0.1)
    entropy = Entropy(4)
    assert len({backoff.jittered_delay_s(50, entropy) for _ in range(20)}) == 20


@pytest.mark.parametrize(
    ("initial_s", "max_s", "jitter", "words"),
    [
        pytest.param(0.0, 1.0, 0.0, "expected 0 < initial_s <= max_s", id="an initial wait of nothing"),
        pytest.param(2.0, 1.0, 0.0, "backoff from 2.0 s to 1.0 s", id="a limit below the beginning"),
        pytest.param(1.0, 2.0, -0.5, "jitter of -0.5", id="a jitter that shortens"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(initial_s: float, max_s: float, jitter: float, words: str) -> None:
    with pytest.raises(ValueError) as raised:
        Backoff(initial_s, max_s, jitter)
    assert words in str(raised.value)


def test_each_key_counts_its_own_failures_until_it_is_forgotten() -> None:
    backoff = KeyedBackoff[str](SCHEDULER, Entropy(1))
    assert [backoff.fail("a"), backoff.fail("a"), backoff.fail("b"), backoff.fail("a")] == [1.0, 2.0, 1.0, 4.0]
    assert (backoff.failures("a"), backoff.failures("b"), backoff.failures("never seen")) == (3, 1, 0)
    backoff.forget("a")
    backoff.forget("never seen")
    assert backoff.fail("a") == 1.0


def test_beyond_the_limit_of_keys_the_one_that_failed_longest_ago_is_forgotten() -> None:
    backoff = KeyedBackoff[str](SCHEDULER, Entropy(1), keys_max=2)
    for key in ("a", "b", "a", "c"):
        backoff.fail(key)
    assert (backoff.failures("a"), backoff.failures("b"), backoff.failures("c")) == (2, 0, 1)


def test_a_known_key_at_the_limit_evicts_no_key() -> None:
    backoff = KeyedBackoff[str](SCHEDULER, Entropy(1), keys_max=2)
    for key in ("a", "b", "b", "a"):
        backoff.fail(key)
    assert (backoff.failures("a"), backoff.failures("b")) == (2, 2)
