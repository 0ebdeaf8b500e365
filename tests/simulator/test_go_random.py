"""The random numbers of Go."""

from __future__ import annotations

from mooring.simulator.go_random import GoRandom


def test_the_numbers_are_those_of_go() -> None:
    # The output of `rand.Intn(100)` in a Go program without a seed, before Go 1.20.
    random = GoRandom(1)
    assert [random.below(100) for _ in range(12)] == [81, 87, 47, 59, 81, 18, 25, 40, 56, 0, 94, 11]


def test_orders_contain_everything_once() -> None:
    assert sorted(GoRandom(7).shuffled(100)) == list(range(100))
    assert sorted(GoRandom(7).permutation(100)) == list(range(100))
    assert GoRandom(7).shuffled(100) != GoRandom(8).shuffled(100)


def test_powers_of_two_and_zero_are_allowed() -> None:
    assert {GoRandom(seed).below(2) for seed in range(20)} == {0, 1}
    assert GoRandom(0).int63() == GoRandom((1 << 31) - 1).int63()
