"""Entropy: seeded randomness.

 1. The same seed gives the same stream on every machine and Python from 3.11 on.
 2. A child stream depends on the seed and the names on the path to it, not on what was drawn before: a new consumer
    does not change the numbers of others. Two consumers need two names.
 3. Not for secrets: keys and tokens come from the cryptography library.

Only `getrandbits` and `random` of the standard generator are used: Python guarantees that these two do not change.
"""

import secrets
from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from typing import TypeVar

# The alphabet of Kubernetes: without vowels and without 0, 1 and 3.
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5

_SYSTEM_SEED_BITS = 64
_UUID_FREE_BITS = ((1 << 128) - 1) & ~(0xF << 76) & ~(0b11 << 62)
_UUID_VERSION_AND_VARIANT = (0x4 << 76) | (0b10 << 62)

Item = TypeVar("Item")


class Entropy:
    """A stream of random numbers; `seed` and `name` reproduce it."""

    __slots__ = ("_random", "name", "seed")

    def __init__(self, seed: int, name: str = "") -> None:
        self.seed = seed
        self.name = name
        self._random = Random(_seed_of_stream(seed, name))

    def fork(self, name: str) -> "Entropy":
        """The child stream with this name."""
        assert name, "a child stream needs a name"
        # The length keeps ("a", "b/c") and ("a/b", "c") apart.
        return Entropy(self.seed, f"{self.name}/{len(name)}:{name}")

    def exchange(self, other: "Entropy") -> None:
        """Exchange the positions of two streams."""
        self._random, other._random = other._random, self._random

    def integer_below(self, limit: int) -> int:
        """A uniform integer from 0 to limit - 1."""
        assert limit > 0, f"nothing lies in [0, {limit})"
        bits = (limit - 1).bit_length()
        draw = self._random.getrandbits
        drawn = draw(bits)
        # Rejection sampling: a remainder would not be uniform.
        while drawn >= limit:
            drawn = draw(bits)
        return drawn

    def choose(self, items: Sequence[Item]) -> Item:
        """A uniform choice."""
        return items[self.integer_below(len(items))]

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """A float from low to high; high only by rounding."""
        assert low <= high, f"nothing lies between {low} and {high}"
        return low + (high - low) * self._random.random()

    def uuid(self) -> str:
        """A version 4 UUID of RFC 4122."""
        digits = f"{self._random.getrandbits(128) & _UUID_FREE_BITS | _UUID_VERSION_AND_VARIANT:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def suffix(self, length: int = SUFFIX_LENGTH) -> str:
        """The suffix that Kubernetes appends to a `generateName`."""
        return "".join(self.choose(SUFFIX_ALPHABET) for _ in range(length))

    def __repr__(self) -> str:
        return f"Entropy(seed={self.seed}, name={self.name!r})"


def system_entropy() -> Entropy:
    """A stream with a random seed. Log its `seed` to reproduce the run."""
    return Entropy(secrets.randbits(_SYSTEM_SEED_BITS))


def _seed_of_stream(seed: int, name: str) -> int:
    # Not hash(): Python salts it differently in every process.
    return int.from_bytes(blake2b(f"{seed}|{name}".encode(), digest_size=32).digest())
