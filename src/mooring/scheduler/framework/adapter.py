"""The adapter between users' plugins, which are called per node, and the framework, which works on arrays of rows.

`Registry.build` wraps each `FilterPlugin` and `ScorePlugin` in a `NodePluginAdapter` and puts the adapter at the Filter
and Score extension points of the profile.

 1. The user's code is called for feasible rows only: one call costs as much as a hundred rows in numpy.
 2. Everything that `applies_to`, `filter` and `score` raise is caught here. It becomes an error of this cycle that
    names the plugin, the pod, the node and the line; other pods are scheduled as usual.
 3. One cycle distinguishes `REASONS_REPORTED_MAX` reasons per plugin. Further nodes are counted under a common reason.
"""

from __future__ import annotations

import numpy as np

from mooring.api.views.pod import Pod
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of, row_numbers
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.guard import describe, is_interrupt, score_error
from mooring.scheduler.framework.node_plugins import FilterPlugin, NodeInfo, NodePlugin, ScorePlugin
from mooring.scheduler.framework.plugin import SCORE_MAX, SKIP, Filter, Proceed, Score, Skip
from mooring.scheduler.framework.status import REASONS_MAX, Code, Reason, Status

REJECTING_CODES = (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.ERROR)
REASONS_REPORTED_MAX = REASONS_MAX - len(REJECTING_CODES)
"""Different reasons of one plugin in one cycle. One bit per code is reserved for all further reasons."""
RAW_SCORE_MAX = 1 << 55
"""Limit of the absolute value of a score to normalize: a hundred times the distance of two scores fits in 63 bits."""
_STATUS_CODES = {
    Code.SUCCESS: "success",
    Code.UNSCHEDULABLE: "unschedulable",
    Code.UNRESOLVABLE: "unresolvable",
    Code.ERROR: "error",
}
"""The codes that a user's filter may return, with the constructors of `Status` for them."""
_INTEGERS = (int, np.integer)


class NodePluginState:
    """The state of one plugin in one cycle: the pod, and the reasons so far, each with its bit."""

    def __init__(self, plugin: str, pod: Pod, error: str | None = None) -> None:
        self.pod = pod
        self.error = error
        """Why the plugin cannot be called for this pod, if it cannot."""
        self.reasons: list[Reason] = []
        self._plugin = plugin
        self._bit_of: dict[Reason | Code, int] = {}

    def bits(self, status: Status) -> int:
        """The bits of a status: one for each of its reasons, 0 for a success."""
        bits = 0
        for text in status.reasons:
            bits |= self.bit(Reason(text, status.code))
        return bits

    def bit(self, reason: Reason) -> int:
        """The bit of a reason, allocated at its first use. All errors share one bit: the first error is reported."""
        key = reason.code if reason.code is Code.ERROR else reason
        bit = self._bit_of.get(key)
        if bit is None:
            bit = self._bit_of[key] = 1 << self._index_for(reason)
        return bit

    def _index_for(self, reason: Reason) -> int:
        if len(self.reasons) == REASONS_REPORTED_MAX:
            text = f"node(s) were rejected by plugin {self._plugin} for other reasons"
            self.reasons += [Reason(text), Reason(text, Code.UNRESOLVABLE)]
        if len(self.reasons) > REASONS_REPORTED_MAX and reason.code is not Code.ERROR:
            return REASONS_REPORTED_MAX + (reason.code is Code.UNRESOLVABLE)
        self.reasons.append(reason)
        return len(self.reasons) - 1


class NodePluginAdapter(Filter[NodePluginState], Score[NodePluginState]):
    """A user's plugin at the Filter and Score extension points, as far as its class serves them."""

    def __init__(self, plugin: NodePlugin, columns: Columns) -> None:
        self.name = plugin.name
        self.normalizes = isinstance(plugin, ScorePlugin) and plugin.normalizes
        self._plugin = plugin
        self._columns = columns
        self._node_infos: list[NodeInfo] = []

    def pre_filter(self, pod: PodInfo) -> Proceed[NodePluginState] | Skip:
        state = self._state(pod)
        return Proceed(state) if isinstance(state, NodePluginState) else SKIP

    def filter(self, state: NodePluginState, rows: Rows) -> Int64s:
        bits = np.zeros(length_of(rows), dtype=np.int64)
        if state.error is not None:
            bits[:] = state.bit(Reason(state.error, Code.ERROR))
            return bits
        plugin, pod, nodes, node_infos = self._plugin, state.pod, self._columns.nodes, self._infos_by_row()
        assert isinstance(plugin, FilterPlugin), f"{self.name} does not serve Filter"
        for index, row in enumerate(row_numbers(rows)):
            if nodes[row] is None:
                continue  # the row has no node at the moment; the cycle ignores its result
            try:
                status = plugin.filter(pod, node_infos[row])
                if status is not None:
                    bits[index] = state.bits(_checked_status(status))
            except BaseException as error:
                if is_interrupt(error):
                    raise
                bits[index] = state.bit(Reason(self._text(pod, row, error), Code.ERROR))
        return bits

    def reasons(self, state: NodePluginState) -> list[Reason]:
        return state.reasons

    def pre_score(self, pod: PodInfo, feasible: Rows) -> NodePluginState | Skip:
        return self._state(pod)

    def score(self, state: NodePluginState, rows: Rows) -> Int64s:
        if state.error is not None:
            raise score_error(self.name, state.error)
        plugin, pod, node_infos = self._plugin, state.pod, self._infos_by_row()
        assert isinstance(plugin, ScorePlugin), f"{self.name} does not serve Score"
        scores = []
        for row in row_numbers(rows):
            try:
                scores.append(_checked_score(plugin.score(pod, node_infos[row]), self.normalizes))
            except BaseException as error:
                if is_interrupt(error):
                    raise
                raise score_error(self.name, self._text(pod, row, error)) from error
        return np.array(scores, dtype=np.int64)

    def normalize(self, state: NodePluginState, scores: Int64s, rows: Rows) -> Int64s:
        return scaled(scores) if self.normalizes else scores

    def _state(self, pod: PodInfo) -> NodePluginState | Skip:
        view = pod.view if pod.view is not None else pod.signature.view
        try:
            return NodePluginState(self.name, view) if self._plugin.applies_to(view) else SKIP
        except BaseException as error:
            if is_interrupt(error):
                raise
            return NodePluginState(self.name, view, f"pod {view.key}: {describe(error, type(self._plugin))}")

    def _infos_by_row(self) -> list[NodeInfo]:
        """A NodeInfo for each row, made once: it reads whichever node the row has at the moment."""
        known = self._node_infos
        if len(known) < self._columns.height:
            known += (NodeInfo(self._columns, row) for row in range(len(known), self._columns.height))
        return known

    def _text(self, pod: Pod, row: int, error: BaseException) -> str:
        what = str(error) if isinstance(error, _InvalidResultError) else describe(error, type(self._plugin))
        return f"pod {pod.key} on node {self._columns.node_names[row]}: {what}"


class _InvalidResultError(Exception):
    """A user's method returned an invalid value. The message is complete."""


def _checked_status(status: object) -> Status:
    if not isinstance(status, Status):
        raise _InvalidResultError(f"filter returned {status!r}; expected None or a Status")
    code, reasons = status.code, status.reasons
    if code not in _STATUS_CODES:
        raise _InvalidResultError(
            f"filter returned {status!r}; a Status for a node is {', '.join(_STATUS_CODES.values())}"
        )
    if not _are_texts(reasons):
        raise _InvalidResultError(f"filter returned {status!r}; the reasons of a Status are texts that are not empty")
    if (code is Code.SUCCESS) != (not reasons):
        problem = "has no reasons" if code is Code.SUCCESS else "needs a reason"
        raise _InvalidResultError(f"filter returned {status!r}; a Status {_STATUS_CODES[code]} {problem}")
    return status


def _are_texts(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, str) and value for value in values)


def _checked_score(score: object, normalizes: bool) -> int:
    lowest, highest = (-RAW_SCORE_MAX, RAW_SCORE_MAX) if normalizes else (0, SCORE_MAX)
    if isinstance(score, _INTEGERS) and not isinstance(score, bool) and lowest <= score <= highest:
        return int(score)
    advice = "" if normalizes else "; with `normalizes = True` any whole number is valid"
    raise _InvalidResultError(f"score returned {score!r}; expected a whole number from {lowest} to {highest}{advice}")


def scaled(scores: Int64s) -> Int64s:
    """Per node: (score - floor) * 100 // (best - floor), where floor is 0, or the lowest score if that is negative."""
    floor = min(int(scores.min(initial=0)), 0)
    best = int(scores.max(initial=floor))
    if best == floor:
        return np.zeros(len(scores), dtype=np.int64)
    return (scores - floor) * SCORE_MAX // (best - floor)
