"""The report: everything that one run of `mooring explain` has to say."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mooring.cli.explanation import Outcome, PodExplanation


@dataclass(frozen=True, slots=True)
class Report:
    """What was read, what was decided, and what chance there was in it."""

    pods: tuple[PodExplanation, ...]
    node_count: int
    placed_count: int
    """Pods that had a node before anything was decided."""
    pending_count: int
    seed: int
    is_about_one: bool = False
    """Whether one pod was asked for by name."""

    def outcomes(self) -> Counter[Outcome]:
        return Counter(pod.outcome for pod in self.pods)

    @property
    def is_anything_nowhere(self) -> bool:
        return any(pod.outcome in (Outcome.UNSCHEDULABLE, Outcome.ERROR) for pod in self.pods)
