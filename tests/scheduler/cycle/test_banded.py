"""Deciding by bands: the same decisions as if every row had been asked, pod after pod, to the throw of the die."""

from __future__ import annotations

import pytest

from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import load_configuration
from mooring.scheduler.cycle import banded, cycle, keeper
from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.cycle.banded import BestInBands, _Merged
from mooring.scheduler.cycle.bands import Bands
from mooring.scheduler.engine import Engine
from tests.api.builders import selector
from tests.builders import HOSTNAME, ZONE, node, owned_by, pod, replica_set, spread

WEB = {"app": "web"}
SET = replica_set("web", selector(app="web"))
EVENLY = spread(ZONE, app="web")
RATHER = spread(ZONE, hard=False, app="web")
RATHER_APART = spread(HOSTNAME, hard=False, app="web")


def kind(name: str, **wishes: object) -> Pod:
    return pod(name, cpu="500m", labels=WEB, **wishes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wishes", "count_by_bands"),
    [
        pytest.param({"spread": [EVENLY]}, 56, id="evenly over zones"),
        pytest.param({"spread": [RATHER, RATHER_APART]}, 56, id="rather evenly over zones and nodes"),
        pytest.param({"owner": owned_by("ReplicaSet", "web")}, 56, id="by default"),
        pytest.param({"spread": [EVENLY, RATHER_APART]}, 14, id="both; where zones are left out the score wants rows"),
        pytest.param({"spread": [spread(HOSTNAME, app="web")]}, 56, id="a node is a domain, and there are few nodes"),
        pytest.param({"spread": [EVENLY], "apart": []}, 56, id="nothing to say about neighbours"),
    ],
)
def test_bands_change_no_decision(
    wishes: dict[str, object], count_by_bands: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[BestInBands] = []
    monkeypatch.setattr(cycle, "best_in_bands", lambda attempt, bands: _counted(taken, attempt, bands))
    with_bands = _decisions(wishes)
    assert len(taken) >= count_by_bands
    monkeypatch.setattr(keeper, "PODS_BEFORE_BANDS", 1_000_000)
    assert _decisions(wishes) == with_bands


def _counted(taken: list[BestInBands], attempt: Attempt, bands: Bands) -> BestInBands | None:
    found = banded.best_in_bands(attempt, bands)
    if found is not None:
        taken.append(found)
    return found


def _decisions(wishes: dict[str, object]) -> list[tuple[str | None, int]]:
    """Sixty pods of one kind come; now and then one of them goes, and a stranger is placed."""
    engine = Engine(load_configuration(None), entropy=Entropy(seed=7))
    engine.put(SET)
    for number in range(12):
        engine.put(node(f"n{number}", cpu=4, zone="abc"[number % 3]))
    taken: list[tuple[str | None, int]] = []
    for number in range(60):
        decision = engine.decide(engine.record(kind(f"web-{number}", **wishes)))
        taken.append((decision.node_name, decision.feasible_count))
        if decision.node_name is not None:
            engine.assume(decision)
        if number % 7 == 6:
            engine.put(pod(f"stranger-{number}", on=f"n{number % 12}", cpu=1))
        if number % 5 == 4 and decision.node_name is not None:
            engine.forget(decision.pod)
    return taken


@pytest.mark.parametrize(
    "bands",
    [
        pytest.param([[1, 4, 9], [2, 3, 17]], id="two"),
        pytest.param([[5]], id="one of one"),
        pytest.param([[0, 1, 2], [3], [4, 5]], id="one behind the other"),
        pytest.param([[8, 9], [0, 11], [4]], id="one around the others"),
    ],
)
def test_rows_of_several_bands_are_found_in_order(bands: list[list[int]]) -> None:
    merged, expected = _Merged(bands), sorted(row for band in bands for row in band)
    assert [merged[place] for place in range(len(merged))] == expected
    assert list(merged) == expected
    assert list(merged[1:]) == expected[1:]
    with pytest.raises(IndexError):
        merged[len(expected)]
