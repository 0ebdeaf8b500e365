"""Durations of stages, and transitions."""

from __future__ import annotations

from collections import Counter

import pytest

from mooring.kit.entropy import Entropy
from mooring.kubelet.simulated.stages import (
    STAGE_S_MIN,
    Stage,
    StageState,
    Transition,
    next_stage,
    stage_delay_s,
    stage_duration_s,
)
from tests.kubelet.harness import pod, view


def stage(**fields: object) -> Stage:
    return Stage("any", StageState.RUNNING, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "visits", "annotations", "seconds"),
    [
        pytest.param(stage(), 0, {}, None, id="no time is for good"),
        pytest.param(stage(for_s=2.0), 5, {}, 2.0, id="the same at each visit"),
        pytest.param(stage(for_s=0.0), 0, {}, STAGE_S_MIN, id="never shorter than the least"),
        pytest.param(stage(for_s=10.0, growth=2.0, for_s_max=300.0), 0, {}, 10.0, id="growing: the first"),
        pytest.param(stage(for_s=10.0, growth=2.0, for_s_max=300.0), 3, {}, 80.0, id="growing: the fourth"),
        pytest.param(stage(for_s=10.0, growth=2.0, for_s_max=300.0), 9_999, {}, 300.0, id="growing: up to a limit"),
        pytest.param(stage(for_s=1.0, for_annotation="a"), 0, {"a": "1m"}, 60.0, id="the annotation says"),
        pytest.param(stage(for_annotation="a"), 0, {"a": "1m"}, 60.0, id="the annotation alone says"),
        pytest.param(stage(for_s=1.0, for_annotation="a"), 0, {"a": "soon"}, 1.0, id="the annotation is nonsense"),
        pytest.param(stage(for_s=1.0, for_annotation="a"), 0, {}, 1.0, id="there is no such annotation"),
    ],
)
def test_how_long_a_stage_takes(one: Stage, visits: int, annotations: dict[str, str], seconds: float | None) -> None:
    assert stage_delay_s(one, view(pod(annotations=annotations)), visits, Entropy(1)) == seconds


def test_jitter_only_lengthens() -> None:
    entropy, one_pod = Entropy(1), view(pod())
    drawn = [stage_delay_s(stage(for_s=1.0, jitter_s=0.5), one_pod, 0, entropy) or 0.0 for _ in range(200)]
    assert min(drawn) >= 1.0
    assert max(drawn) <= 1.5
    assert max(drawn) - min(drawn) > 0.4


def test_ways_are_taken_by_their_weights() -> None:
    one = stage(transitions=(Transition("often", 3.0), Transition("never", 0.0), Transition("seldom", 1.0)))
    entropy = Entropy(1)
    taken = Counter(next_stage(one, entropy) for _ in range(2_000))
    assert set(taken) == {"often", "seldom"}
    assert 1_400 < taken["often"] < 1_600


def test_one_way_needs_no_chance_and_none_leads_nowhere() -> None:
    assert next_stage(stage(transitions=(Transition("only"),)), Entropy(1)) == "only"
    assert next_stage(stage(), Entropy(1)) == ""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("500ms", 0.5), ("10s", 10.0), ("1m30s", 90.0), ("1.5h", 5400.0), ("2h45m", 9900.0)],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert stage_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "10", "s", "-1s", "1 s", "1d", "1s2"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; wanted one such as"):
        stage_duration_s(text)
