"""The engine against recorded verdicts of the real kube-scheduler: the same nodes, reasons, scores, texts and victims.

Every decision is made three times: in brief (the way of the scheduler's loop), in full, and in full with nothing kept
from earlier decisions. The second is compared with the recording, the other two with the second.
"""

from __future__ import annotations

import pytest

from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.schedule_pod import SchedulingCycle
from mooring.scheduler.engine import Engine
from tests.golden.recordings import FAMILIES, differences, recorded
from tools import verdicts

PARTS = {"mixed": 2, "large": 2}
"""Slow families in several tests, so that two cores share them."""
SHOWN_MAX = 20


class OftenDecidingEngine(Engine):
    """Decides at first sight, in full, in brief and from nothing, and remembers where they disagree."""

    disagreements: list[str]

    def decide(self, pod: PodInfo, *, in_full: bool = False) -> Decision:
        first = super().decide(pod)
        full = super().decide(pod, in_full=True)
        brief = super().decide(pod)
        choose, clock = verdicts.by_name(self.columns), VirtualClock()
        cycle = SchedulingCycle(self.cycle_for(pod).profile, self.columns, choose, None, clock.now_s)
        from_nothing = cycle.decide(pod, in_full=True)
        if _outcome(first) != _outcome(full):
            self.disagreements.append(f"{pod.key} at first sight: {_outcome(first)}, in full: {_outcome(full)}")
        if _outcome(brief) != _outcome(full):
            self.disagreements.append(f"{pod.key} in brief: {_outcome(brief)}, in full: {_outcome(full)}")
        if from_nothing != full:
            self.disagreements.append(f"{pod.key} with what was kept: {full}, without: {from_nothing}")
        return full


@pytest.mark.parametrize(
    ("family", "part", "parts"),
    [
        pytest.param(family, part, PARTS.get(family, 1), id=f"{family}-{part + 1}")
        for family in FAMILIES
        for part in range(PARTS.get(family, 1))
    ],
)
def test_decides_as_kube_scheduler_did(family: str, part: int, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "Engine", OftenDecidingEngine)
    monkeypatch.setattr(OftenDecidingEngine, "disagreements", [], raising=False)
    found = [
        difference
        for scenario, verdict in recorded(family, part, parts)
        for difference in differences(verdict, verdicts.verdict(scenario), scenario)
    ]
    assert not found, _listed(found)
    assert not OftenDecidingEngine.disagreements, _listed(OftenDecidingEngine.disagreements)


def _outcome(decision: Decision) -> tuple[object, ...]:
    return (
        decision.node_name,
        decision.message,
        decision.preemption,
        decision.error,
        decision.status,
        decision.clears_nomination,
        decision.feasible_count,
    )


def _listed(found: list[str]) -> str:
    more = f"\n… and {len(found) - SHOWN_MAX} more" if len(found) > SHOWN_MAX else ""
    return f"{len(found)} differences:\n" + "\n".join(found[:SHOWN_MAX]) + more
