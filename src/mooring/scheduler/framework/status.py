"""Refusals as values: why a node, or a whole cycle, says no to a pod.

Comes in   what plugins answer
Goes out   `Code`, `Reason` and `Rejection`, to the diagnosis, the queue, events, `explain` and metrics

A pod that does not fit is an expected result, never an exception. For each row a filter answers with a bit set:
0 means that the pod fits, each bit stands for one of the filter's reasons.

 1. The order of a filter's reasons is the order in which they are told.
 2. The code of a bit set is the most severe code among its reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

REASONS_MAX = 62
"""Bits in an int64 that are not its sign: more different reasons than one filter can tell apart."""


class Code(Enum):
    """What an answer means for the pod, in the words of Kubernetes, from harmless to severe."""

    SUCCESS = "Success"
    SKIP = "Skip"
    WAIT = "Wait"
    PENDING = "Pending"
    UNSCHEDULABLE = "Unschedulable"
    """Not here, but removing pods could help: preemption looks at such nodes."""
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """Not here, and no preemption can change that."""
    ERROR = "Error"

    @property
    def severity(self) -> int:
        return _SEVERITY[self]


_SEVERITY = {code: severity for severity, code in enumerate(Code)}


class Reason(NamedTuple):
    """One thing that a filter can say against a node. Without a message it only raises the code."""

    message: str | None
    code: Code = Code.UNSCHEDULABLE


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a pod goes no further, whatever the node."""

    code: Code
    reasons: tuple[str, ...]
    plugin: str = ""

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)


class Refusal(NamedTuple):
    """Why one node refuses a pod: the first filter that said no, and everything it said."""

    plugin: str
    code: Code
    reasons: tuple[str, ...]


def refusal_of(plugin: str, bits: int, reasons: Sequence[Reason]) -> Refusal:
    """A filter's bit set in words."""
    said = [reason for place, reason in enumerate(reasons) if bits >> place & 1]
    assert said, f"{plugin} answered {bits:#b}, but has only {len(reasons)} reasons"
    code = max((reason.code for reason in said), key=lambda code: code.severity)
    messages = tuple(reason.message for reason in said if reason.message is not None)
    if code is Code.ERROR:
        messages = (f'running "{plugin}" filter plugin: {", ".join(messages)}',)
    return Refusal(plugin, code, messages)


def code_of(bits: int, reasons: Sequence[Reason]) -> Code:
    said = [reason.code for place, reason in enumerate(reasons) if bits >> place & 1]
    return max(said, key=lambda code: code.severity, default=Code.SUCCESS)


def unschedulable(*reasons: str) -> Rejection:
    return Rejection(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Rejection:
    return Rejection(Code.UNRESOLVABLE, reasons)


def failure(*reasons: str) -> Rejection:
    """Something went wrong that says nothing about the pod: the cycle ends in an error and is tried again."""
    return Rejection(Code.ERROR, reasons)
