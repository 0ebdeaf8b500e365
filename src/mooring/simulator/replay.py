"""Replay a recording: every recorded attempt is decided again, on the cluster as it was at that point.

Inputs   a recording; the recorded configuration and seed, or another configuration
Outputs  how many decisions agree, and what differs

The recorded lists and changes go through the event handlers of the scheduler, at the same positions between decisions
as recorded. Queue and timers are not replayed: the recording has the attempts in their order. After an attempt the
recorded decision takes effect, whatever the replay decided, and a binding ends as it did then.

1. With the recorded configuration the replay is exact: node, score, message and victims of each decision must be the
   recorded ones. Ties are broken by the recorded seed. The first difference ends the replay.
2. With another configuration, every decision is one about the recorded cluster: what would this configuration have
   done here? A tie that includes the recorded node is no difference.
3. PreBind is not run. What it wrote takes effect where it was recorded, and must be what Reserve chose.

A `RecordingReader` reads the recording line by line, in bounded memory and in time linear in its length:

4. A recording whose scheduler was killed has no end: it is read up to its last complete line.
5. Damaged data, a line that cannot be read, and times that decrease are errors with the number of the line.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mooring.api.decode import decode_as
from mooring.api.errors import ObjectError
from mooring.api.kinds import POD
from mooring.api.views.pod import Pod
from mooring.client.interface import Change
from mooring.client.reflector import PagedSink, Sink
from mooring.kit.clock import VirtualClock, parse_rfc3339
from mooring.kit.entropy import Entropy
from mooring.scheduler.binding.assumed_pods import AssumedPod, AssumedPods, forget_assumed
from mooring.scheduler.binding.cycle import run_permit
from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.types import SchedulerConfiguration
from mooring.scheduler.cycle.decision import Decision, PreemptionPlan
from mooring.scheduler.cycle.schedule_pod import TieBreak
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_handlers import PodEventHandler, object_handlers
from mooring.scheduler.failure import rejected_in_cycle
from mooring.scheduler.framework.plugin import AssumesWrites, PreBind
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Status
from mooring.scheduler.framework.waiting_pods import WaitingPods
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.reporting.decision_records import BEST_NODES_MAX
from mooring.scheduler.reporting.recording import (
    FORMAT_VERSION,
    GZIP_BITS,
    BindingLine,
    ChangeLine,
    DecisionLine,
    EndLine,
    ErrorLine,
    ForgetLine,
    ItemLine,
    ListLine,
    RecordingHeader,
    RecordingLine,
    WriteLine,
    error_text,
)
from mooring.simulator.errors import ScenarioError
from mooring.simulator.scenario.reading import GZIP_MAGIC

READ_BYTES = 1 << 14
"""At most a thousand times as much is decompressed at once."""
LINE_BYTES_MAX = 32 << 20
"""A line that is longer is damage: it has one object, and API servers store objects of up to about 1.5 MiB."""
WANTED = "wanted a file that mooring scheduler --record has written"


class RecordingReader:
    """The lines of a file. The header is read at once."""

    def __init__(self, path: Path) -> None:
        """Raises `ScenarioError`."""
        self._path = path
        self.end = ""
        """Why the recording ended; empty if its scheduler was killed, or while lines are left."""
        self.share = 0.0
        """How much of the file has been read."""
        self._texts = self._read()
        first = next(self._texts, None)
        if first is None:
            raise ScenarioError(str(path), f"has no complete line; {WANTED}")
        try:
            self.header = msgspec.json.decode(first[1], type=RecordingHeader)
        except msgspec.DecodeError as error:
            raise ScenarioError(f"{path}:1", f"is no header of a recording: {error}; {WANTED}") from error
        if self.header.recording != FORMAT_VERSION:
            version = f"has version {self.header.recording} of the format; this mooring reads {FORMAT_VERSION}"
            hint = f"replay it with the one that recorded it, {self.header.mooring}"
            raise ScenarioError(f"{path}:1", f"{version}; {hint}")
        try:
            self.seed, self.started_s = int(self.header.seed), parse_rfc3339(self.header.started_at)
        except ValueError as error:
            raise ScenarioError(f"{path}:1", f"is no header of a recording: {error}") from error

    def __iter__(self) -> Iterator[tuple[int, RecordingLine]]:
        """The lines after the header with their numbers. Raises `ScenarioError`."""
        decoder = msgspec.json.Decoder(RecordingLine)
        last_s = 0.0
        for number, text in self._texts:
            try:
                line = decoder.decode(text)
            except msgspec.DecodeError as error:
                raise self.error(number, f"cannot be read: {error}") from error
            if line.at < last_s:
                raise self.error(number, f"time decreases from {last_s} to {line.at} s")
            last_s = line.at
            if isinstance(line, EndLine):
                self.end = line.reason
                return
            yield number, line

    def error(self, number: int, text: str) -> ScenarioError:
        return ScenarioError(f"{self._path}:{number}", text)

    def _read(self) -> Iterator[tuple[int, bytes]]:
        decompressor = zlib.decompressobj(GZIP_BITS)
        number, begun, begun_bytes = 0, list[bytes](), 0
        try:
            size = max(self._path.stat().st_size, 1)
            with self._path.open("rb") as file:
                if file.read(len(GZIP_MAGIC)) != GZIP_MAGIC:
                    raise ScenarioError(str(self._path), f"is no recording; {WANTED}")
                file.seek(0)
                while data := file.read(READ_BYTES):
                    self.share = file.tell() / size
                    first, *others = decompressor.decompress(data).split(b"\n")
                    begun.append(first)
                    begun_bytes += len(first)
                    if begun_bytes > LINE_BYTES_MAX:
                        raise self.error(number + 1, f"is longer than {LINE_BYTES_MAX >> 20} MiB")
                    if not others:
                        continue
                    for line in (b"".join(begun), *others[:-1]):
                        number += 1
                        yield number, line
                    begun, begun_bytes = [others[-1]], len(others[-1])
        except zlib.error as error:
            raise ScenarioError(str(self._path), f"is damaged after line {number}: {error}") from error
        except OSError as error:
            raise ScenarioError(str(self._path), f"cannot be read: {error.strerror or error}") from error


# --- replay ---------------------------------------------------------------------------------------------------


DIFFERENCES_MAX = 1000
"""Differences that are kept. Others are counted."""
EXPLAINED_MAX = 20
"""Differences with the scores of all plugins."""
PROGRESS_EVERY = 200
"""Lines between two reports of progress."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an attempt ended with."""

    node: str | None = None
    score: int | None = None
    message: str = ""
    """Why the pod has no node."""
    preemption_node: str = ""
    victims: tuple[str, ...] = ()


NOT_PENDING = Verdict(message="the pod is not pending for this configuration")


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """An attempt whose replay ended otherwise."""

    line: int
    at_s: float
    pod: str
    recorded: Verdict
    replayed: Verdict
    scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The replayed scores of both nodes, by plugin; a node that a filter rejects has none."""
    rejection: str = ""
    """Why the replay rejects the recorded node."""


@dataclass(slots=True)
class ReplayReport:
    """What a replay found."""

    lines: int = 0
    attempts: int = 0
    differing: int = 0
    differences: list[ReplayDifference] = field(default_factory=list)
    """The first ones."""
    moved: int = 0
    """Attempts with another node."""
    placed_only_recorded: int = 0
    placed_only_replayed: int = 0
    last_at_s: float = 0.0
    end: str = ""
    """Why the recording ended; empty if its scheduler was killed."""


class Replay:
    """One replay. `report` has what was found so far."""

    def __init__(
        self, reader: RecordingReader, configuration: SchedulerConfiguration, registry: Registry, *, is_exact: bool
    ) -> None:
        header = reader.header
        self._reader = reader
        self._is_exact = is_exact
        self._clock = VirtualClock(wall_s=reader.started_s)
        self._waiting = WaitingPods()
        self._recorded_node: str | None = None
        self._decided: DecisionLine | None = None
        """The last line, if it is a decision."""
        self._lists: dict[str, list[Any]] = {}
        """The objects of lists that have begun: of the whole list, or of the current page."""
        self._reserve_failure = ""
        """Why Reserve rejects the pod of that decision in the replay."""
        entropy = Entropy(reader.seed, header.stream)
        self._engine = Engine(
            configuration,
            entropy=entropy,
            registry=registry,
            services={"clock": self._clock, "waiting_pods": self._waiting},
            tie_break=None if is_exact else self._prefer_recorded_node(entropy.fork("other configuration")),
            best_nodes_max=BEST_NODES_MAX,
        )
        profiles = {name: cycle.profile for name, cycle in self._engine.cycles.items()}
        # Nothing is popped from this queue: it holds the pods that wait for an attempt.
        self._queue = SchedulingQueue(profiles, clock=self._clock)
        self._assumed_pods = AssumedPods(None)
        self._pods = PodEventHandler(self._engine, self._queue, self._assumed_pods, self._waiting, profiles)
        self._bindings: dict[str, AssumedPod] = {}
        self._sinks: dict[str, tuple[type[Any], Sink[Any]]] = {
            kind.resource: (view, sink) for kind, view, sink in object_handlers(self._engine, self._queue)
        }
        self._sinks[POD.resource] = (Pod, self._pods)
        self.report = ReplayReport()

    async def run(self, progress: Callable[[float], None] = lambda share: None) -> ReplayReport:
        """Raises `ScenarioError`. Waits for nothing, but Permit needs an event loop for its timers."""
        report = self.report
        for number, line in self._reader:
            report.lines += 1
            report.last_at_s = line.at
            self._clock.advance_to(line.at)
            if self._reserve_failure:
                self._check_reserve(number, line)
            if report.lines % PROGRESS_EVERY == 0:
                progress(self._reader.share)
            match line:
                case ListLine():
                    self._apply_list(number, line)
                case ItemLine() | ChangeLine():
                    self._apply_object(number, line)
                case ForgetLine():
                    self._pods.forget(line.uid)
                case DecisionLine():
                    self._attempt(number, line)
                case ErrorLine():
                    self._failed_attempt(number, line)
                case WriteLine():
                    self._assume_written(number, line)
                case BindingLine():
                    self._end_binding(line)
            self._decided = line if isinstance(line, DecisionLine) else None
            if self._is_exact and report.differing:
                break
        report.end = self._reader.end
        return report

    # Lists and changes

    def _apply_list(self, number: int, line: ListLine) -> None:
        found = self._view_and_sink(number, line.kind)
        if found is None:
            return
        _, sink = found
        if line.part == "begin":
            self._lists[line.kind] = []
            if isinstance(sink, PagedSink):
                sink.begin_list()
            return
        items = self._items(number, line.kind)
        if line.part == "page":
            if not isinstance(sink, PagedSink):
                raise self._reader.error(number, f"has a page of {line.kind}, whose lists have no pages")
            sink.take_page(items)
            self._lists[line.kind] = []
            return
        del self._lists[line.kind]
        if isinstance(sink, PagedSink):
            sink.end_list("")
        else:
            sink.replace(items, "")

    def _items(self, number: int, kind: str) -> list[Any]:
        if kind not in self._lists:
            raise self._reader.error(number, f"belongs to a list of {kind}, which has not begun")
        return self._lists[kind]

    def _apply_object(self, number: int, line: ItemLine | ChangeLine) -> None:
        found = self._view_and_sink(number, line.kind)
        if found is None:
            return
        view_type, sink = found
        view = self._decoded(number, view_type, line.object)
        if isinstance(line, ChangeLine):
            sink.apply(Change(line.change), view)
        else:
            self._items(number, line.kind).append(view)

    def _view_and_sink(self, number: int, kind: str) -> tuple[type[Any], Sink[Any]] | None:
        """None for a kind that another configuration does not read."""
        found = self._sinks.get(kind)
        if found is None and self._is_exact:
            raise self._reader.error(number, f"has {kind}, which no plugin of this configuration reads")
        return found

    def _decoded(self, number: int, view_type: type[Any], raw: msgspec.Raw) -> Any:
        try:
            return decode_as(view_type, raw)
        except ObjectError as error:
            raise self._reader.error(number, str(error)) from error

    # Attempts

    def _attempt(self, number: int, line: DecisionLine) -> None:
        self.report.attempts += 1
        recorded = Verdict(
            line.node,
            line.best[0][1] if line.node is not None and line.best else None,
            "" if line.node is not None else line.message,
            line.preemption_node,
            tuple(line.victims),
        )
        pod = self._pods.pending.get(line.uid)
        if pod is None:
            self._differs(number, line, recorded, NOT_PENDING, None)
            return
        decision = self._decide(pod, line.node)
        if isinstance(decision, Exception):
            self._differs(number, line, recorded, Verdict(message=error_text(decision)), None)
            decision = Decision(pod)
        else:
            replayed = _verdict(decision)
            if not self._is_same(replayed, recorded):
                self._differs(number, line, recorded, replayed, pod)
        if line.node is not None:
            if line.node not in self._engine.columns.row_of:
                raise self._reader.error(number, f"places pod {line.pod} on node {line.node}, which does not exist")
            if line.uid in self._assumed_pods:
                raise self._reader.error(number, f"places pod {line.pod}, whose binding has not ended")
            self._assume(replace(decision, node_name=line.node))
        else:
            self._reject(decision, line)

    def _failed_attempt(self, number: int, line: ErrorLine) -> None:
        """The scheduling cycle raised, or Reserve did, after the decision."""
        if self._decided is not None and self._decided.uid == line.uid:
            self._end_binding(BindingLine(line.at, line.pod, line.uid, "failed", line.message))
            return
        self.report.attempts += 1
        recorded = Verdict(message=line.message)
        pod = self._pods.pending.get(line.uid)
        if pod is None:
            self._differs(number, line, recorded, NOT_PENDING, None)
            return
        decision = self._decide(pod, None)
        replayed = Verdict(message=error_text(decision)) if isinstance(decision, Exception) else _verdict(decision)
        if not self._is_same(replayed, recorded):
            self._differs(number, line, recorded, replayed, pod)
        self._engine.renominate(pod, "")

    def _is_same(self, replayed: Verdict, recorded: Verdict) -> bool:
        return replayed == recorded if self._is_exact else replayed.node == recorded.node

    def _decide(self, pod: PodInfo, recorded_node: str | None, *, in_full: bool = False) -> Decision | Exception:
        self._recorded_node = recorded_node
        try:
            return self._engine.prepare(pod).decide_admitted(pod, in_full=in_full)
        except Exception as error:
            return error

    def _differs(
        self,
        number: int,
        line: DecisionLine | ErrorLine | WriteLine,
        recorded: Verdict,
        replayed: Verdict,
        pod: PodInfo | None,
    ) -> None:
        report = self.report
        report.differing += 1
        report.moved += recorded.node is not None and replayed.node is not None
        report.placed_only_recorded += recorded.node is not None and replayed.node is None
        report.placed_only_replayed += recorded.node is None and replayed.node is not None
        if len(report.differences) >= DIFFERENCES_MAX:
            return
        scores: dict[str, Mapping[str, int]] = {}
        rejection = ""
        full: Decision | Exception | None = None
        if pod is not None and len(report.differences) < EXPLAINED_MAX:
            full = self._decide(pod, recorded.node, in_full=True)
        if isinstance(full, Decision):
            nodes = [name for name in (recorded.node, replayed.node) if name is not None]
            scores = {name: dict(full.scores[name]) for name in nodes if name in full.scores}
            status = full.node_to_status.get(recorded.node) if recorded.node is not None else None
            rejection = f"{status.plugin}: {status.message}" if status is not None else ""
        report.differences.append(ReplayDifference(number, line.at, line.pod, recorded, replayed, scores, rejection))

    def _assume(self, decision: Decision) -> None:
        """The recorded decision takes effect, as in `SchedulingLoop` and `BindingCycle.start`."""
        pod, node_name = decision.pod, decision.node_name
        assert node_name is not None, f"{pod} has no node"
        try:
            status = self._engine.assume(decision)
        except Exception as error:
            if pod.uid in self._engine.columns.pods:
                self._engine.forget(pod)
            status = Status.error(error_text(error))
        self._queue.delete(pod.uid)
        self._bindings[pod.uid] = self._assumed_pods.add(pod, node_name)
        if status is not None:
            # The pod is placed all the same, until the next line says what Reserve did in the recorded scheduler.
            self._engine.columns.place(pod, node_name)
            self._reserve_failure = status.message or status.plugin
            return
        profile = self._engine.cycle_for(pod).profile
        timeouts_s = run_permit(profile, pod, node_name) if profile.permits else {}
        if timeouts_s and not isinstance(timeouts_s, Status):
            self._waiting.add(pod, node_name, timeouts_s, lambda status: None)

    def _check_reserve(self, number: int, line: RecordingLine) -> None:
        """Reserve has rejected the pod of the last decision: did it in the recorded scheduler?"""
        decided, failure, self._reserve_failure = self._decided, self._reserve_failure, ""
        assert decided is not None, f"line {number}: Reserve has failed without a decision"
        match line:
            case ErrorLine(uid=decided.uid) | BindingLine(uid=decided.uid, outcome="failed"):
                return
        replayed = Verdict(message=f"Reserve: {failure}")
        self._differs(number - 1, decided, Verdict(decided.node), replayed, None)

    def _reject(self, decision: Decision, line: DecisionLine) -> None:
        plan = PreemptionPlan(line.preemption_node, ()) if line.preemption_node else None
        recorded = replace(decision, node_name=None, preemption=plan, clears_nomination=line.clears_nomination)
        if plan is not None:
            self._engine.nominate(recorded)
        nominated = rejected_in_cycle(recorded).nominated_node
        if nominated is not None:
            self._engine.renominate(decision.pod, nominated)

    # Bindings

    def _assume_written(self, number: int, line: WriteLine) -> None:
        """PreBind wrote what Reserve had chosen for the pod. Did Reserve choose the same in the replay?"""
        assumed, found = self._bindings.get(line.uid), self._view_and_sink(number, line.kind)
        if assumed is None or found is None:
            return  # the pod was not pending in the replay
        plugin = self._engine.cycle_for(assumed.pod).profile.plugins.get(line.plugin)
        if not isinstance(plugin, AssumesWrites):
            return  # another configuration does not have it
        written = self._decoded(number, found[0], line.object)
        try:
            chosen = plugin.assume_written(assumed.pod, written)
        except Exception as error:
            chosen = error_text(error)
        if chosen and self._is_exact:
            recorded = Verdict(message=f"PreBind of {line.plugin} wrote {written.kind} {written.key}")
            replayed = Verdict(message=f"Reserve of {line.plugin} chose {chosen}")
            self._differs(number, line, recorded, replayed, None)

    def _end_binding(self, line: BindingLine) -> None:
        waiting = self._waiting.get(line.uid)
        if waiting is not None:
            waiting.reject("", "ended")
        assumed = self._bindings.pop(line.uid, None)
        if assumed is None:
            return  # the pod was not pending in the replay
        pod = assumed.pod
        if line.outcome == "failed":
            if forget_assumed(self._engine, self._assumed_pods, assumed):
                pod.node_name = ""
            pending = self._pods.pending.get(line.uid)
            if pending is not None:
                self._queue.add(pending)
                self._engine.renominate(pending, "")
            return
        if line.outcome == "taken":
            self._engine.unreserve(pod, assumed.node_name)
        else:
            self._finish_reservations(pod, assumed.node_name)
        self._assumed_pods.bound(assumed, self._clock.now_s())

    def _finish_reservations(self, pod: PodInfo, node_name: str) -> None:
        """PreBind has ended: these plugins have written what they reserved."""
        profile = self._engine.cycle_for(pod).profile
        for plugin in profile.reserves:
            if plugin.is_built_in and isinstance(plugin, PreBind) and plugin.has_work(pod, node_name):
                plugin.unreserve(pod, node_name)
        for post_bind in profile.post_binds:
            try:
                post_bind.post_bind(pod, node_name)
            except Exception:
                continue  # as in the recorded scheduler, which logged it

    def _prefer_recorded_node(self, entropy: Entropy) -> Callable[[Columns], TieBreak]:
        def tie_break(columns: Columns) -> TieBreak:
            def choose(rows: Sequence[int] | Int64s) -> int:
                row = columns.row_of.get(self._recorded_node) if self._recorded_node is not None else None
                return row if row is not None and row in rows else int(rows[entropy.integer_below(len(rows))])

            return choose

        return tie_break


def _verdict(decision: Decision) -> Verdict:
    plan = decision.preemption
    is_placed = decision.node_name is not None
    return Verdict(
        decision.node_name,
        decision.best_nodes[0].total if is_placed and decision.best_nodes else None,
        "" if is_placed else decision.message or "",
        plan.node_name if plan is not None else "",
        tuple(victim.key for victim in plan.victims) if plan is not None else (),
    )
