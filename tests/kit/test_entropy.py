"""Seeded streams, independent of each other."""

import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.kit.entropy import SUFFIX_ALPHABET, Entropy, system_entropy

Draws = list[object]

RECORDED: Draws = [96, "38b94bfb-6b0a-4e24-8e86-e81850559bb4", "mm6tw", 0.035178528348857596, "c"]
RECORDED_CHILD: Draws = [102, "ddfadeb2-090d-46d5-aa39-a15ea518d02f", "bsgrf", 0.05172813597764958, "c"]


def some_draws(entropy: Entropy) -> Draws:
    return [entropy.integer_below(1000), entropy.uuid(), entropy.suffix(), entropy.uniform(), entropy.choose("abc")]


def test_the_same_seed_gives_the_same_stream_in_this_and_every_later_version() -> None:
    # Recorded: if this row changes, every recorded seed in the world means something else.
    assert some_draws(Entropy(1)) == RECORDED
    assert some_draws(Entropy(1).fork("scheduler").fork("ties")) == RECORDED_CHILD


def test_the_stream_does_not_depend_on_the_salt_of_pythons_hash() -> None:
    program = "from mooring.kit.entropy import Entropy; print(Entropy(7).fork('a').uuid())"
    texts = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for salt in ("1", "2")
    ]
    assert texts[0] == texts[1] == Entropy(7).fork("a").uuid() + "\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(Entropy(1), Entropy(2), id="two seeds"),
        pytest.param(Entropy(1), Entropy(-1), id="a seed and its negative"),
        pytest.param(Entropy(1), Entropy(1).fork("a"), id="a parent and its child"),
        pytest.param(Entropy(1).fork("a"), Entropy(1).fork("b"), id="two children"),
        pytest.param(Entropy(1).fork("a"), Entropy(2).fork("a"), id="children of two seeds"),
        pytest.param(Entropy(1).fork("a").fork("b"), Entropy(1).fork("b").fork("a"), id="grandchildren"),
        pytest.param(Entropy(1).fork("a/b").fork("c"), Entropy(1).fork("a").fork("b/c"), id="names with strokes"),
    ],
)
def test_streams_differ(one: Entropy, other: Entropy) -> None:
    assert some_draws(one) != some_draws(other)


def test_a_child_depends_neither_on_its_parent_nor_on_its_siblings() -> None:
    quiet, busy = Entropy(5), Entropy(5)
    some_draws(busy)
    some_draws(busy.fork("another consumer"))
    assert some_draws(quiet.fork("kubelet")) == some_draws(busy.fork("kubelet"))


def test_forking_draws_nothing_from_the_parent() -> None:
    quiet, forked = Entropy(5), Entropy(5)
    forked.fork("kubelet")
    assert some_draws(quiet) == some_draws(forked)


@given(st.integers(), st.integers(1, 2**70))
def test_an_integer_below_a_limit_is_below_it(seed: int, limit: int) -> None:
    assert 0 <= Entropy(seed).integer_below(limit) < limit


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7])
def test_integers_below_a_limit_are_equally_likely(limit: int) -> None:
    entropy = Entropy(3)
    draws = [entropy.integer_below(limit) for _ in range(3000)]
    for value in range(limit):
        assert draws.count(value) == pytest.approx(3000 / limit, rel=0.2)


@given(st.integers(), st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_a_uniform_float_lies_between_its_limits(seed: int, low: float, width: float) -> None:
    assert low <= Entropy(seed).uniform(low, low + width) <= low + width


@given(st.integers())
def test_a_uuid_has_the_shape_of_version_4(seed: int) -> None:
    text = Entropy(seed).uuid()
    parsed = uuid.UUID(text)
    assert (str(parsed), parsed.version, parsed.variant) == (text, 4, uuid.RFC_4122)


@pytest.mark.parametrize("length", [0, 1, 5, 10])
def test_a_suffix_uses_kubernetes_alphabet(length: int) -> None:
    assert re.fullmatch(f"[{SUFFIX_ALPHABET}]{{{length}}}", Entropy(9).suffix(length))


@pytest.mark.parametrize(
    ("misuse", "words"),
    [
        pytest.param(lambda: Entropy(1).integer_below(0), "nothing lies in", id="an integer below zero"),
        pytest.param(lambda: Entropy(1).choose([]), "nothing lies in", id="one of nothing"),
        pytest.param(lambda: Entropy(1).uniform(2, 1), "nothing lies between", id="limits the wrong way round"),
        pytest.param(lambda: Entropy(1).fork(""), "needs a name", id="a child without a name"),
    ],
)
def test_misuse_is_a_bug(misuse: Callable[[], object], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        misuse()


def test_the_system_chooses_a_seed_that_can_be_used_again() -> None:
    chosen = system_entropy()
    assert chosen.seed != system_entropy().seed
    assert some_draws(Entropy(chosen.seed)) == some_draws(chosen)
