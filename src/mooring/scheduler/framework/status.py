"""Refusals as values: why a node, or a whole cycle, says no to a pod.

Comes in   what plugins answer
Goes out   `Code`, `Reason` and `Rejection`, to the diagnosis, the queue, events, `explain` and metrics; `Status`, which
           users' plugins return for one node

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
class Status:
    """The result of a user's filter for one node, as in kube-scheduler's framework: a code and the reasons for it."""

    code: Code
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.code not in _STATUS_CODES:
            raise ValueError(f"a Status for a node is {', '.join(_STATUS_CODES.values())}, found {self.code!r}")
        if not _are_texts(self.reasons):
            raise ValueError(f"the reasons of a Status are texts that are not empty, found {self.reasons!r}")
        if (self.code is Code.SUCCESS) != (not self.reasons):
            wanted = "has no reasons" if self.code is Code.SUCCESS else "needs a reason"
            raise ValueError(f"a Status {_STATUS_CODES[self.code]} {wanted}, found {self.reasons!r}")

    @classmethod
    def success(cls) -> Status:
        """The pod fits on the node. The same as None."""
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
        """The plugin failed. The cycle of this pod ends with an error, and the pod is retried."""
        return cls(Code.ERROR, reasons)


_STATUS_CODES = {
    Code.SUCCESS: "success",
    Code.UNSCHEDULABLE: "unschedulable",
    Code.UNRESOLVABLE: "unresolvable",
    Code.ERROR: "error",
}
"""The codes that a user's filter can return, and the constructors of `Status` for them."""


def _are_texts(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, str) and value for value in values)


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


def status_of(plugin: str, bits: int, reasons: Sequence[Reason]) -> Refusal:
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
