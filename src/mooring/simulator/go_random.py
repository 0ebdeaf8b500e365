"""The random numbers of Go's `math/rand`: the same seed gives the same numbers.

The authors of the OpenB trace drew the order of pods and nodes with this generator. Their orders are not reproduced
seed by seed: compare means over seeds, not single seeds.

The generator adds two of its last 607 numbers, modulo 2^64:

    x(n) = x(n − 607) + x(n − 273)

A seed fills the 607 numbers by a linear congruential generator, combined with a fixed state: the state that the
recurrence reaches from the seed 1 after `WARM_UP` steps. It is computed here in a moment, because a step is linear: the
number after N steps is a sum of the first 607 numbers with the coefficients of z^N modulo z^607 − z^334 − 1.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

LENGTH = 607
TAP = 273
WARM_UP = 7_800_000_000_000
_MODULUS = (1 << 31) - 1
_FACTOR = 48271
_SEED_OF_ZERO = 89482311
_MASK = (1 << 64) - 1

_Numbers = npt.NDArray[np.uint64]


class GoRandom:
    """`rand.New(rand.NewSource(seed))`"""

    def __init__(self, seed: int) -> None:
        seed %= _MODULUS
        fixed = _fixed_state()
        self._numbers = [(a ^ b) & _MASK for a, b in zip(_filled(seed or _SEED_OF_ZERO, 40, 20), fixed, strict=True)]
        self._tap = 0
        self._feed = LENGTH - TAP

    def int63(self) -> int:
        """`Int63`"""
        self._tap = (self._tap - 1) % LENGTH
        self._feed = (self._feed - 1) % LENGTH
        number = (self._numbers[self._feed] + self._numbers[self._tap]) & _MASK
        self._numbers[self._feed] = number
        return number & (_MASK >> 1)

    def below(self, limit: int) -> int:
        """`Intn`, for limits below 2^31."""
        assert 0 < limit < 1 << 31, f"no limit: {limit}"
        if limit & (limit - 1) == 0:
            return (self.int63() >> 32) & (limit - 1)
        highest = (1 << 31) - 1 - (1 << 31) % limit
        number = self.int63() >> 32
        while number > highest:
            number = self.int63() >> 32
        return number % limit

    def shuffled(self, count: int) -> list[int]:
        """The order into which `Shuffle` brings 0 to count - 1."""
        order = list(range(count))
        for last in range(count - 1, 0, -1):
            other = self._scaled(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def permutation(self, count: int) -> list[int]:
        """`Perm`"""
        numbers = [0] * count
        for place in range(count):
            other = self.below(place + 1)
            numbers[place] = numbers[other]
            numbers[other] = place
        return numbers

    def _scaled(self, limit: int) -> int:
        """A number below the limit by multiplication, as `Shuffle` draws it."""
        product = (self.int63() >> 31) * limit
        if product & 0xFFFFFFFF < limit:
            smallest = ((1 << 32) - limit) % limit
            while product & 0xFFFFFFFF < smallest:
                product = (self.int63() >> 31) * limit
        return product >> 32


def _filled(seed: int, first_shift: int, second_shift: int) -> list[int]:
    """607 numbers, each of three numbers of the linear congruential generator."""
    number = seed
    for _ in range(20):
        number = _FACTOR * number % _MODULUS
    numbers = []
    for _ in range(LENGTH):
        high = _FACTOR * number % _MODULUS
        middle = _FACTOR * high % _MODULUS
        number = _FACTOR * middle % _MODULUS
        numbers.append(high << first_shift ^ middle << second_shift ^ number)
    return numbers


@cache
def _fixed_state() -> list[int]:
    """The state after `WARM_UP` steps from the seed 1."""
    start = _filled(1, 20, 10)
    # In the order of the recurrence: the generator walks through its numbers backwards, beginning at LENGTH - TAP.
    order = [(LENGTH - TAP - 1 - step) % LENGTH for step in range(LENGTH)]
    sequence = np.array([start[place] for place in order], dtype=np.uint64)
    power = _power_of_z(WARM_UP)
    later = np.zeros(LENGTH, dtype=np.uint64)
    for step in range(LENGTH):  # z^(N + step) gives the number `step` places after N
        later[step] = (power * sequence).sum(dtype=np.uint64)
        power = _times_z(power)
    state = [0] * LENGTH
    for step in range(LENGTH):
        state[order[(WARM_UP + step) % LENGTH]] = int(later[step])
    return state


def _power_of_z(exponent: int) -> _Numbers:
    result = np.zeros(LENGTH, dtype=np.uint64)
    result[0] = 1
    for bit in bin(exponent)[2:]:
        result = _reduced(_product(result, result))
        if bit == "1":
            result = _times_z(result)
    return result


def _product(left: _Numbers, right: _Numbers) -> _Numbers:
    product = np.zeros(2 * LENGTH - 1, dtype=np.uint64)
    for place, factor in enumerate(left):
        product[place : place + LENGTH] += np.multiply(right, factor)
    return product


def _times_z(numbers: _Numbers) -> _Numbers:
    return _reduced(np.concatenate([np.zeros(1, dtype=np.uint64), numbers]))


def _reduced(numbers: _Numbers) -> _Numbers:
    """Modulo z^607 − z^334 − 1."""
    rest = numbers.copy()
    end = len(rest)
    while end > LENGTH:  # at most TAP coefficients at once: they are not added to each other
        begin = max(end - TAP, LENGTH)
        high = rest[begin:end].copy()
        rest[begin - LENGTH : end - LENGTH] += high
        rest[begin - TAP : end - TAP] += high
        end = begin
    return rest[:LENGTH]
