"""Status, Diagnosis and FitError: the results of plugins, as in kube-scheduler's framework.

`Status` is the result of one plugin for one pod, or for one pod on one node: a code, the reasons and the plugin. None
stands for a success wherever a `Status` may be returned. A pod that does not fit is an expected result, never an
exception.

A filter does not make a `Status` for each of 5,000 nodes. It returns `ReasonBits`: one integer per row, 0 if the pod
fits, otherwise one bit for each of the filter's reasons. `status_of` makes a `Status` of the bits of a single row.

1. The order of a filter's reasons is the order of the reasons in the `Status`.
2. The code of reason bits is the most severe code among the reasons.
3. A plugin is unschedulable in a `Diagnosis` if it is the first filter that rejected a node, if its PreFilter rejected
   the pod, or if its PreFilter named nodes and so excluded others. A pending plugin is one of them whose reasons are
   all `Pending`: it waits for something outside of the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec

REASONS_MAX = 62
"""Limit of the reasons of one filter: the bits of an int64 without the sign and a spare one."""


class Code(Enum):
    """What a result means for the pod. Kubernetes' names, from harmless to severe."""

    SUCCESS = "Success"
    SKIP = "Skip"
    WAIT = "Wait"
    PENDING = "Pending"
    UNSCHEDULABLE = "Unschedulable"
    """The pod does not fit. Removing pods could help: preemption tries the node."""
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """The pod does not fit, and no preemption can change that."""
    ERROR = "Error"

    @property
    def severity(self) -> int:
        return _SEVERITY[self]


_SEVERITY = {code: severity for severity, code in enumerate(Code)}


class Reason(NamedTuple):
    """One reason for which a filter rejects nodes. A reason without a message only raises the code."""

    message: str | None
    code: Code = Code.UNSCHEDULABLE


class Status(msgspec.Struct, frozen=True):
    """The result of a plugin: a code, the reasons for it, and the plugin's name where the framework has set it."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @classmethod
    def success(cls) -> Status:
        """The pod passes. The same as None."""
        return cls(Code.SUCCESS)

    @classmethod
    def unschedulable(cls, *reasons: str) -> Status:
        """The pod does not fit now. Preemption checks whether it fits after evicting pods."""
        return cls(Code.UNSCHEDULABLE, reasons)

    @classmethod
    def unresolvable(cls, *reasons: str) -> Status:
        """The pod does not fit, and evicting pods does not change that: preemption does not try the node."""
        return cls(Code.UNRESOLVABLE, reasons)

    @classmethod
    def error(cls, *reasons: str) -> Status:
        """The plugin failed. The attempt of this pod ends with an error, and the pod is retried."""
        return cls(Code.ERROR, reasons)

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def with_plugin(self, plugin: str) -> Status:
        return Status(self.code, self.reasons, plugin)


def status_of(plugin: str, bits: int, reasons: Sequence[Reason]) -> Status:
    """The reason bits of one row as a `Status`."""
    given = [reason for index, reason in enumerate(reasons) if bits >> index & 1]
    assert given, f"{plugin} returned {bits:#b}, but has only {len(reasons)} reasons"
    code = max((reason.code for reason in given), key=lambda code: code.severity)
    messages = tuple(reason.message for reason in given if reason.message is not None)
    if code is Code.ERROR:
        messages = (f'running "{plugin}" filter plugin: {", ".join(messages)}',)
    return Status(code, messages, plugin)


def code_of(bits: int, reasons: Sequence[Reason]) -> Code:
    """The code of the reason bits of one row."""
    codes = [reason.code for index, reason in enumerate(reasons) if bits >> index & 1]
    return max(codes, key=lambda code: code.severity, default=Code.SUCCESS)


class RejectionCount(NamedTuple):
    """A number of nodes that a plugin rejected for one reason, or, without a reason, for any."""

    plugin: str
    reason: str
    nodes: int


class Diagnosis(NamedTuple):
    """The reasons for which nodes were rejected, and the plugins that rejected them."""

    reasons: Mapping[str, int]
    """The number of nodes for each reason. A node with several reasons counts for each."""
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    pre_filter_message: str = ""
    """The message of the PreFilter plugin that rejected the pod on all nodes, if one did."""
    rejections: tuple[RejectionCount, ...] = ()
    """The reasons with the plugins that gave them."""


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
