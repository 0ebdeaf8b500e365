"""Diagnosis and FitError: why no node can run a pod, as in kube-scheduler's framework.

1. A plugin is unschedulable if it is reported for some node (the first filter that rejected it), if its PreFilter
   rejected the pod, or if its PreFilter named nodes and so excluded others.
2. A pending plugin is one of them whose reasons are all `Pending`: it waits for something outside of the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Diagnosis(NamedTuple):
    """The reasons for which nodes were rejected, and the plugins that rejected them."""

    reasons: Mapping[str, int]
    """The number of nodes for each reason. A node with several reasons counts for each."""
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    pre_filter_message: str = ""
    """The message of the PreFilter plugin that rejected the pod on all nodes, if one did."""


class FitError(NamedTuple):
    """A pod that fits on no node. `message` is that of kube-scheduler's FailedScheduling event, byte for byte."""

    node_count: int
    diagnosis: Diagnosis
    post_filter_message: str = ""

    @property
    def message(self) -> str:
        """`0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: …`"""
        text = f"0/{self.node_count} nodes are available:"
        if self.diagnosis.pre_filter_message:
            text += f" {self.diagnosis.pre_filter_message}."
        elif self.diagnosis.reasons:
            # Sorted as text, count included: 10 comes before 2.
            counted = sorted(f"{count} {reason}" for reason, count in self.diagnosis.reasons.items())
            text += f" {', '.join(counted)}."
        return f"{text} {self.post_filter_message}" if self.post_filter_message else text
