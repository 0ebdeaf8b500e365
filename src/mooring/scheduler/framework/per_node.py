"""Plugins for one node at a time: the easy way to write a placement rule, and the adapter that makes plugins of them.

Comes in   a class with `why_not(pod, node)` or `score_node(pod, node)`, or both, in plain Python
Goes out   a Filter and a Score like any other: bit sets and numbers for many rows

    class QuietNodes(PerNodeFilter):
        name = "QuietNodes"

        def why_not(self, pod: Pod, node: NodeSituation) -> str | None:
            return "node(s) were noisy" if node.labels.get("noise") == "loud" else None

 1. The user's code is asked only about rows that every row-local filter lets through (`Filter.wants_few_rows`): a call
    in Python costs as much as a hundred rows in numpy.
 2. A `NodeSituation` reads the live columns, so that inside of a what-if it shows what is supposed there.
 3. Whatever the user's code raises becomes a failure of this one cycle, which names the plugin, the pod, the node and
    the line. It never gets out: other pods go on.
 4. A cycle tells `TEXTS_MAX` different reasons of one plugin apart; nodes with yet others are counted under one text.
 5. Answers are never kept for the next pod, because nobody can promise for code that may read a pod's name or its
    annotations. A plugin that can promise it answers for many rows (`Filter`, `Score`) and says what it reads.
"""

from __future__ import annotations

import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath

import msgspec
import numpy as np

from mooring.api.field_errors import quoted
from mooring.api.views.node import Node, Taint
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.cache.resources import CPU_NON_ZERO, MEMORY_NON_ZERO, PODS, ResourceColumns
from mooring.scheduler.config.problems import ConfigurationError, Problem
from mooring.scheduler.framework.guard import is_interrupt, score_error
from mooring.scheduler.framework.plugin import (
    SCORE_MAX,
    SKIP,
    Filter,
    Plugin,
    Reads,
    Score,
    Skip,
)
from mooring.scheduler.framework.registry import BadPluginError
from mooring.scheduler.framework.status import REASONS_MAX, Code, Reason

ZONE = "topology.kubernetes.io/zone"

REFUSING_CODES = (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.ERROR)
TEXTS_MAX = REASONS_MAX - len(REFUSING_CODES)
"""Different reasons that one plugin can give in one cycle. For the rest there is a bit for each code."""
RAW_SCORE_MAX = 1 << 55
"""No score to be normalised is larger, or smaller than its negative: a hundred times their distance fits in 63 bits."""
_WHOLE_NUMBERS = (int, np.integer)


def for_good(text: str) -> Reason:
    """A reason that evicting pods would not change: preemption does not try the node."""
    return Reason(text, Code.UNRESOLVABLE)


# --- what a user writes -----------------------------------------------------------------------------------------


class PerNode(Plugin):
    """What both adapters have in common. Users inherit from `PerNodeFilter`, `PerNodeScore`, or both."""

    def __init__(self, columns: Columns, arguments: Mapping[str, object]) -> None:
        self._columns = columns
        self._situations: list[NodeSituation] = []
        try:
            self.configure(arguments)
        except Exception as error:
            text = f"initializing plugin {quoted(self.name)}: {_words_about_arguments(error)}"
            raise ConfigurationError([Problem("profiles", text)]) from error

    def configure(self, arguments: Mapping[str, object]) -> None:
        """Takes over the plugin's `args` from the configuration. Raise ValueError, in words, if they are wrong."""
        if arguments:
            raise ValueError(f"takes no arguments, but was given {', '.join(sorted(arguments))}")

    def concerns(self, pod: Pod) -> bool:
        """Is the pod this plugin's business? If not, no node is asked about, and that costs nothing."""
        return True

    def _trial(self, pod: PodRecord) -> Trial | Skip:
        view = pod.view if pod.view is not None else pod.shape.view
        try:
            if not hasattr(self, "_columns"):
                raise ValueError("its constructor does not call super().__init__(columns, arguments)")
            is_concerned = self.concerns(view)
        except BaseException as error:
            if is_interrupt(error):
                raise
            return Trial(self.name, view, f"pod {view.key}: {_words(error)}")
        return Trial(self.name, view) if is_concerned else SKIP

    def _by_row(self) -> list[NodeSituation]:
        """A situation for each row, made once: they read what is there now, whichever node that is."""
        known = self._situations
        if len(known) < self._columns.height:
            known += (NodeSituation(self._columns, row) for row in range(len(known), self._columns.height))
        return known

    def _failure(self, trial: Trial, row: int, error: BaseException) -> str:
        return f"pod {trial.pod.key} on node {self._columns.node_names[row]}: {_words(error)}"


class PerNodeFilter(PerNode, Filter["Trial"]):
    """A filter that looks at one node at a time."""

    wants_few_rows = True

    @abstractmethod
    def why_not(self, pod: Pod, node: NodeSituation) -> str | Reason | None:
        """Why this node cannot take the pod: a text, or `for_good(text)`; None if it can."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _refuse_promise(cls, "filter_reads", cls.filter_reads)

    def prepare(self, pod: PodRecord) -> Trial | Skip:
        return self._trial(pod)

    def filter(self, state: Trial, rows: Rows) -> Int64s:
        answers = np.zeros(length_of(rows), dtype=np.int64)
        if state.failure is not None:
            answers[:] = state.bit(Reason(state.failure, Code.ERROR))
            return answers
        pod, nodes, by_row = state.pod, self._columns.nodes, self._by_row()
        for place, row in enumerate(_numbers(rows)):
            if nodes[row] is None:
                continue  # a row that belongs to nobody is left out of the decision by whoever asks
            try:
                answer = self.why_not(pod, by_row[row])
                if answer is not None:
                    answers[place] = state.bit(_reason(answer))
            except BaseException as error:
                if is_interrupt(error):
                    raise
                answers[place] = state.bit(Reason(self._failure(state, row, error), Code.ERROR))
        return answers

    def reasons(self, state: Trial) -> list[Reason]:
        return state.reasons


class PerNodeScore(PerNode, Score["Trial"]):
    """A score that looks at one node at a time: 0 to 100, or any whole number if the class says `normalises = True`."""

    @abstractmethod
    def score_node(self, pod: Pod, node: NodeSituation) -> int:
        """How good is this node for the pod? More is better."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _refuse_promise(cls, "score_reads", cls.score_reads)

    def prepare_score(self, pod: PodRecord) -> Trial | Skip:
        return self._trial(pod)

    def score(self, state: Trial, rows: Rows) -> Int64s:
        if state.failure is not None:
            raise score_error(self.name, state.failure)
        pod, by_row = state.pod, self._by_row()
        scores = []
        for row in _numbers(rows):
            try:
                scores.append(_whole_number(self.score_node(pod, by_row[row]), self.normalises))
            except BaseException as error:
                if is_interrupt(error):
                    raise
                raise score_error(self.name, self._failure(state, row, error)) from error
        return np.array(scores, dtype=np.int64)

    def normalise(self, state: Trial, scores: Int64s, rows: Rows) -> Int64s:
        return stretched(scores) if self.normalises else scores


def stretched(scores: Int64s) -> Int64s:
    """Per node: (score - floor) * 100 // (best - floor), where the floor is 0, or the worst score if that is less."""
    floor = min(int(scores.min(initial=0)), 0)
    best = int(scores.max(initial=floor))
    if best == floor:
        return np.zeros(len(scores), dtype=np.int64)
    return (scores - floor) * SCORE_MAX // (best - floor)


# --- what a user sees of a node ---------------------------------------------------------------------------------


class NodeSituation:
    """One node as it is believed to be at this moment. It can be read and not written, and is worked out when read."""

    __slots__ = ("_columns", "_row")

    def __init__(self, columns: Columns, row: int) -> None:
        self._columns = columns
        self._row = row

    @property
    def name(self) -> str:
        return self._columns.node_names[self._row]

    @property
    def view(self) -> Node:
        """The whole node, as the scheduler reads it."""
        node = self._columns.nodes[self._row]
        assert node is not None, f"row {self._row} belongs to no node"
        return node

    @property
    def labels(self) -> Mapping[str, str]:
        return self.view.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.view.metadata.annotations

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.view.spec.taints

    @property
    def zone(self) -> str | None:
        return self.labels.get(ZONE)

    @property
    def allocatable(self) -> Amounts:
        """What the node offers: cpu in thousandths, everything else in units (memory in bytes)."""
        return Amounts(self._columns.resources, self._row, _offered)

    @property
    def requested(self) -> Amounts:
        """What its pods have requested; `requested["pods"]` is their number."""
        return Amounts(self._columns.resources, self._row, _requested)

    @property
    def free(self) -> Amounts:
        """What it offers less what its pods have requested; less than nothing on an overcommitted node."""
        return Amounts(self._columns.resources, self._row, _free)

    @property
    def pods(self) -> tuple[PodRecord, ...]:
        """The pods on the node, those included that the scheduler has only just put there."""
        return tuple(self._columns.pods_on[self._row].values())

    @property
    def pod_count(self) -> int:
        return _requested(self._columns.resources, PODS, self._row)

    def __repr__(self) -> str:
        return f"NodeSituation({self.name})"


class Amounts(Mapping[str, int]):
    """An amount for each resource that a node offers or that its pods have requested. Every other resource is 0."""

    __slots__ = ("_amount", "_resources", "_row")

    def __init__(
        self, resources: ResourceColumns, row: int, amount: Callable[[ResourceColumns, int, int], int]
    ) -> None:
        self._resources = resources
        self._row = row
        self._amount = amount

    def __getitem__(self, resource: str) -> int:
        try:
            slot = self._resources.names.index(resource)
        except ValueError:
            return 0  # not `ResourceColumns.slot`, which would make a line for every name that is asked about
        return self._amount(self._resources, slot, self._row)

    def __contains__(self, resource: object) -> bool:
        return resource in tuple(self)

    def __iter__(self) -> Iterator[str]:
        in_use = (self._resources.allocatable[:, self._row] != 0) | (self._resources.used[:, self._row] != 0)
        for slot in np.flatnonzero(in_use).tolist():
            if slot not in (CPU_NON_ZERO, MEMORY_NON_ZERO):
                yield self._resources.names[slot]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Amounts({dict(self)})"


def _offered(resources: ResourceColumns, slot: int, row: int) -> int:
    return resources.allocatable.item(slot, row)


def _requested(resources: ResourceColumns, slot: int, row: int) -> int:
    return resources.used.item(slot, row)


def _free(resources: ResourceColumns, slot: int, row: int) -> int:
    return _offered(resources, slot, row) - _requested(resources, slot, row)


# --- one pod's questions ----------------------------------------------------------------------------------------


class Trial:
    """What one cycle knows of one plugin: the pod, and the reasons that came up so far, each with its bit."""

    __slots__ = ("_bit_of", "_plugin", "failure", "pod", "reasons")

    def __init__(self, plugin: str, pod: Pod, failure: str | None = None) -> None:
        self.pod = pod
        self.failure = failure
        """Why the plugin cannot be asked at all, if it cannot."""
        self.reasons: list[Reason] = []
        self._plugin = plugin
        self._bit_of: dict[Reason | Code, int] = {}

    def bit(self, reason: Reason) -> int:
        """The bit of a reason, which it gets when it first comes up. All failures share one: the first is told."""
        key = reason.code if reason.code is Code.ERROR else reason
        bit = self._bit_of.get(key)
        if bit is None:
            bit = self._bit_of[key] = 1 << self._place_for(reason)
        return bit

    def _place_for(self, reason: Reason) -> int:
        if len(self.reasons) == TEXTS_MAX:
            text = f"node(s) were refused by plugin {self._plugin} for yet other reasons"
            self.reasons += [Reason(text), for_good(text)]
        if len(self.reasons) > TEXTS_MAX and reason.code is not Code.ERROR:
            return TEXTS_MAX + (reason.code is Code.UNRESOLVABLE)
        self.reasons.append(reason)
        return len(self.reasons) - 1


def _reason(answer: object) -> Reason:
    if isinstance(answer, str) and answer:
        return Reason(answer)
    if isinstance(answer, Reason) and answer.message and answer.code in REFUSING_CODES:
        return answer
    raise ValueError(f"why_not answered {answer!r}; wanted None, a text that says why not, or for_good(text)")


def _whole_number(answer: object, may_be_any: bool) -> int:
    if type(answer) is int and 0 <= answer <= SCORE_MAX:
        return answer
    lowest, highest = (-RAW_SCORE_MAX, RAW_SCORE_MAX) if may_be_any else (0, SCORE_MAX)
    if isinstance(answer, _WHOLE_NUMBERS) and not isinstance(answer, bool) and lowest <= answer <= highest:
        return int(answer)
    advice = "" if may_be_any else "; with `normalises = True` any whole number will do"
    raise ValueError(f"score_node answered {answer!r}; wanted a whole number from {lowest} to {highest}{advice}")


def _words(error: BaseException) -> str:
    """An exception in one line, with the last line of the user's own file that it went through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    if not frames:  # raised here, about an answer: it says all there is to say
        return str(error)
    own = [frame for frame in frames if frame.filename == frames[0].filename]  # the others belong to libraries
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{said} ({PurePath(own[-1].filename).name}, line {own[-1].lineno})"


def _words_about_arguments(error: Exception) -> str:
    """As `_words`; but what was raised on purpose is meant for the author of the configuration, who knows no lines."""
    is_on_purpose = isinstance(error, ValueError | msgspec.ValidationError) and str(error)
    return str(error) if is_on_purpose else _words(error)


def _numbers(rows: Rows) -> list[int] | range:
    return range(rows.start or 0, rows.stop) if isinstance(rows, slice) else rows.tolist()


def _refuse_promise(plugin: type[Plugin], attribute: str, reads: Reads) -> None:
    if reads is not Reads.CLUSTER:
        raise BadPluginError(
            f"plugin {plugin.__qualname__} sets {attribute} = Reads.{reads.name}, but what a plugin for one node at a "
            "time says is never kept; leave it out, or inherit from Filter or Score and answer for many rows"
        )
