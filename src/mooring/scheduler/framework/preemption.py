"""Preemption in two steps, between which extenders may change the candidates.

1. `find_candidates` finds nodes on which evicting pods would make the pod fit, with the victims on each.
2. `select_candidate` selects the one whose eviction does the least harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.failed_attempt import FailedAttempt
from mooring.scheduler.framework.plugin import PostFilterResult
from mooring.scheduler.framework.status import Code, Status


class Victims(NamedTuple):
    """The pods to evict from a node, most important first, and how many of them violate a disruption budget."""

    pods: tuple[PodInfo, ...]
    violations: int


Candidates: TypeAlias = Mapping[str, Victims]
"""By node name."""


@runtime_checkable
class FindsCandidates(Protocol):
    """A PostFilter plugin that preempts, and whose candidates extenders may change."""

    def find_candidates(self, attempt: FailedAttempt) -> Candidates | PostFilterResult:
        """The candidates; a result with a status if there are none."""

    def select_candidate(self, candidates: Candidates) -> PostFilterResult: ...


def preemption_failed(code: Code, message: str, nominated_node: str | None = None) -> PostFilterResult:
    """The result of a preemption without a node."""
    return PostFilterResult(nominated_node, status=Status(code, (f"preemption: {message}",)))
