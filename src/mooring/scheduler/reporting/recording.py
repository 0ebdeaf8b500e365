"""Recordings: what a scheduler saw and did, so that `mooring simulate --replay` can decide everything again.

Inputs   lists and changes as the event handlers apply them, decisions, what PreBind wrote, ends of bindings
Output   a file in the format of gzip: a header, then one JSON document per line, in the order of the scheduler

docs/simulate.md describes the lines. They are written from one thread, the one that changes the columns, so that the
position of a decision between the changes is exact.

1. The scheduling loop never waits for the disk: lines are encoded when they occur, and compressed and written by a
   thread, four times a second. Each write ends at a line that can be read, whatever happens to the process.
2. A recording ends when it reaches its size, when the disk does not keep up, or when it cannot be written. The log says
   so, and the scheduler continues. A recording has no gaps up to its end.
3. A line has one object at most: a list of all nodes has a line for each, and a reader needs memory for one.
4. Objects have the fields that the scheduler reads, and no others: environment variables, for example, are not there.
5. An existing file is renamed, so that a scheduler that is started again keeps the recording of the one that died.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec

from mooring import __version__
from mooring.api.kinds import kind_of_view
from mooring.api.views.meta import ApiObject, ObjectWithRaw
from mooring.client.interface import Change
from mooring.client.reflector import PagedSink, Sink
from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.load import encode_configuration
from mooring.scheduler.config.types import SchedulerConfiguration
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.framework.loading import source_of
from mooring.scheduler.framework.plugin import Plugin

FORMAT_VERSION = 2
FLUSH_S = 0.25
BYTES_MAX = 1 << 30
"""Size of a recording, unless another one is given."""
WAITING_BYTES_MAX = 256 << 20
"""Bytes that may wait for the disk, besides one list of each kind: a list is as large as the cluster."""
CHUNK_BYTES = 1 << 20
"""Lines that are compressed together. A recording exceeds its size by less than this."""
LEVEL = 1
"""Of the compression."""
GZIP_BITS = 31
"""The parameter of zlib that means gzip."""
PREVIOUS = ".previous"
"""Added to the name of a file that exists."""

logger = logging.getLogger(__name__)

AnyKind = TypeVar("AnyKind", bound=ApiObject)


class RecordingError(Exception):
    """A recording cannot be made."""


class RecordedPlugin(msgspec.Struct, frozen=True):
    """A plugin that does not come with Mooring."""

    name: str
    source: str
    """Its file, or `package.module:Class`."""
    hash: str
    """Of the file; empty if there is none."""


class RecordingHeader(msgspec.Struct, frozen=True, rename="camel"):
    """The first line."""

    recording: int
    """The version of the format."""
    mooring: str
    started_at: str
    seed: str
    stream: str
    """The name of the random stream of the engine."""
    configuration: dict[str, Any]
    plugins: list[RecordedPlugin] = []


class _RecordedLine(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type"):
    at: float
    """Seconds since the start."""


ListPart = Literal["begin", "page", "end"]


class ListLine(_RecordedLine, frozen=True, tag="list"):
    """A list of all objects of a kind begins; a page of it is complete; the list is complete."""

    kind: str
    """The resource, such as `pods`."""
    part: ListPart


class ItemLine(_RecordedLine, frozen=True, tag="item"):
    """An object of a list that has begun."""

    kind: str
    object: msgspec.Raw


class ChangeLine(_RecordedLine, frozen=True, tag="change"):
    """An object was added, modified or deleted."""

    kind: str
    change: Change
    object: msgspec.Raw


class ForgetLine(_RecordedLine, frozen=True, tag="forget"):
    """A lookup showed that a pod does not exist."""

    uid: str


class DecisionLine(_RecordedLine, frozen=True, tag="decision"):
    """The decision of an attempt."""

    pod: str
    uid: str
    node: str | None = None
    message: str = ""
    feasible: int = 0
    best: list[tuple[str, int]] = []
    """The best nodes and their scores, the selected one first."""
    preemption_node: str = ""
    victims: list[str] = []
    clears_nomination: bool = False


class ErrorLine(_RecordedLine, frozen=True, tag="error"):
    """The scheduling cycle ended with an exception; after a decision, Reserve did."""

    pod: str
    uid: str
    message: str


class WriteLine(_RecordedLine, frozen=True, tag="write"):
    """PreBind has written an object, which the scheduler uses before the watch delivers it."""

    pod: str
    uid: str
    plugin: str
    kind: str
    object: msgspec.Raw


Outcome = Literal["bound", "taken", "failed"]
"""Of a binding. `taken`: another scheduler has bound the pod to the same node."""


class BindingLine(_RecordedLine, frozen=True, tag="binding"):
    """A binding has ended, or Reserve has rejected the pod."""

    pod: str
    uid: str
    outcome: Outcome
    message: str = ""


class EndLine(_RecordedLine, frozen=True, tag="end"):
    """The recording ends here, and why."""

    reason: str


RecordingLine = (
    ListLine | ItemLine | ChangeLine | ForgetLine | DecisionLine | ErrorLine | WriteLine | BindingLine | EndLine
)


class Recording:
    """Writes the lines of one scheduler to a file while `run` runs."""

    def __init__(self, path: Path, clock: Clock, *, bytes_max: int = BYTES_MAX) -> None:
        """Raises `RecordingError`."""
        self._path = path
        self._clock = clock
        self._bytes_max = bytes_max
        self._started_s = clock.now_s()
        self._encoder = msgspec.json.Encoder()
        self._lines: list[bytes] = []
        self._waiting_bytes = 0
        """Without the objects of lists."""
        self._waiting_list_bytes = 0
        self._waiting_lists: set[str] = set()
        """Kinds whose last list began since lines were last taken."""
        self._written_bytes = 0
        self._ended = ""
        """Why nothing more is recorded."""
        self._compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_BITS)
        try:
            if path.is_file():
                path.replace(path.with_name(path.name + PREVIOUS))
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise RecordingError(f"cannot write the recording {path}: {error.strerror or error}") from error

    def begin(self, configuration: SchedulerConfiguration, entropy: Entropy, plugins: Sequence[type[Plugin]]) -> None:
        """Writes the header. `entropy` is that of the engine."""
        header = RecordingHeader(
            FORMAT_VERSION,
            __version__,
            format_rfc3339_micro(self._clock.wall_s()),
            str(entropy.seed),
            entropy.name,
            encode_configuration(configuration),
            [recorded_plugin(plugin) for plugin in plugins if not plugin.is_built_in],
        )
        self._append(self._encoder.encode(header))
        logger.info("recording to %s, up to %d MiB", self._path, self._bytes_max >> 20)

    # What is recorded

    def listed(self, kind: str, part: ListPart, views: Sequence[ApiObject] = ()) -> None:
        """A part of a list, after its objects."""
        if part == "begin":
            if kind in self._waiting_lists and self._waiting_list_bytes > WAITING_BYTES_MAX:
                self._end_behind(self._waiting_list_bytes)
            self._waiting_lists.add(kind)
        if self._ended:
            return
        at = self._elapsed_s()
        for view in views:
            line = self._encoder.encode(ItemLine(at, kind, self._document(view)))
            self._lines.append(line)
            self._waiting_list_bytes += len(line)
        self._put(ListLine(at, kind, part))

    def changed(self, kind: str, change: Change, view: ApiObject) -> None:
        if not self._ended:
            self._put(ChangeLine(self._elapsed_s(), kind, change, self._document(view)))

    def forgotten(self, uid: str) -> None:
        self._put(ForgetLine(self._elapsed_s(), uid))

    def decided(self, decision: Decision) -> None:
        plan = decision.preemption
        self._put(
            DecisionLine(
                self._elapsed_s(),
                decision.pod.key,
                decision.pod.uid,
                decision.node_name,
                decision.message or "",
                decision.feasible_count,
                [(best_node.node_name, best_node.total) for best_node in decision.best_nodes],
                plan.node_name if plan is not None else "",
                [victim.key for victim in plan.victims] if plan is not None else [],
                decision.clears_nomination,
            )
        )

    def failed(self, pod: PodInfo, error: Exception) -> None:
        self._put(ErrorLine(self._elapsed_s(), pod.key, pod.uid, error_text(error)))

    def written(self, pod: PodInfo, plugin: str, view: ApiObject) -> None:
        if not self._ended:
            kind = kind_of_view(type(view)).resource
            self._put(WriteLine(self._elapsed_s(), pod.key, pod.uid, plugin, kind, self._document(view)))

    def binding_ended(self, pod: PodInfo, outcome: Outcome, message: str = "") -> None:
        self._put(BindingLine(self._elapsed_s(), pod.key, pod.uid, outcome, message))

    def _elapsed_s(self) -> float:
        return round(self._clock.now_s() - self._started_s, 6)

    def _document(self, view: ApiObject) -> msgspec.Raw:
        if isinstance(view, ObjectWithRaw) and view.raw:
            view = msgspec.structs.replace(view, raw=b"")
        return msgspec.Raw(self._encoder.encode(view))

    def _put(self, line: RecordingLine) -> None:
        if not self._ended:
            self._append(self._encoder.encode(line))
            if self._waiting_bytes > WAITING_BYTES_MAX:
                self._end_behind(self._waiting_bytes)

    def _append(self, line: bytes) -> None:
        self._lines.append(line)
        self._waiting_bytes += len(line)

    # Writing

    async def run(self) -> None:
        """Writes until it is cancelled, and then the rest."""
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="recording") as writer:
            loop = asyncio.get_running_loop()
            try:
                while True:
                    await self._clock.wait(FLUSH_S)
                    if lines := self._taken():
                        await loop.run_in_executor(writer, self._write, lines)
            finally:
                writer.submit(self._close, self._taken()).result()  # after the one that may still be running

    def _taken(self) -> list[bytes]:
        lines, self._lines = self._lines, []
        self._waiting_bytes = self._waiting_list_bytes = 0
        self._waiting_lists.clear()
        return lines

    def _write(self, lines: Sequence[bytes]) -> None:
        """In a thread. Writes the lines up to the size of the recording."""
        if self._file.closed:
            return
        first = 0
        while first < len(lines):
            last, length = first, 0
            while last < len(lines) and length < CHUNK_BYTES:
                length += len(lines[last]) + 1
                last += 1
            if not self._write_chunk(b"\n".join((*lines[first:last], b"")), zlib.Z_SYNC_FLUSH):
                return
            first = last
            if self._written_bytes >= self._bytes_max:
                self._end(f"its size of {self._bytes_max} bytes is reached")
                self._close(())
                return

    def _write_chunk(self, text: bytes, mode: int) -> bool:
        data = self._compressor.compress(text) + self._compressor.flush(mode)
        rest = memoryview(data)
        try:
            while rest:  # a nearly full disk takes a part
                rest = rest[self._file.write(rest) or 0 :]
        except OSError as error:
            self._end(f"it cannot be written: {error.strerror or error}")
            self._file.close()
            return False
        self._written_bytes += len(data)
        return True

    def _close(self, lines: Sequence[bytes]) -> None:
        """In a thread. Writes the last lines."""
        self._write(lines)
        if self._file.closed:
            return
        reason = self._ended or "the scheduler stopped"
        self._write_chunk(self._encoder.encode(EndLine(self._elapsed_s(), reason)) + b"\n", zlib.Z_FINISH)
        self._file.close()

    def _end_behind(self, waiting_bytes: int) -> None:
        self._end(f"{waiting_bytes >> 20} MiB wait for the disk, which does not keep up")

    def _end(self, reason: str) -> None:
        if not self._ended:
            self._ended = reason
            logger.warning("the recording %s ends: %s; the scheduler goes on", self._path, reason)


class RecordedSink(Generic[AnyKind]):
    """Records the events of a reflector, and passes them to its sink."""

    def __init__(self, kind: str, sink: Sink[AnyKind], recording: Recording) -> None:
        self._kind = kind
        self._sink = sink
        self._recording = recording

    def replace(self, views: Sequence[AnyKind], revision: str) -> None:
        self._recording.listed(self._kind, "begin")
        self._recording.listed(self._kind, "end", views)
        self._sink.replace(views, revision)

    def apply(self, change: Change, view: AnyKind) -> None:
        self._recording.changed(self._kind, change, view)
        self._sink.apply(change, view)


class RecordedPagedSink(RecordedSink[AnyKind]):
    """A recorded sink that receives lists page by page."""

    def __init__(self, kind: str, sink: Sink[AnyKind], pages: PagedSink[AnyKind], recording: Recording) -> None:
        super().__init__(kind, sink, recording)
        self._pages = pages

    def begin_list(self) -> None:
        self._recording.listed(self._kind, "begin")
        self._pages.begin_list()

    def take_page(self, views: Sequence[AnyKind]) -> None:
        self._recording.listed(self._kind, "page", views)
        self._pages.take_page(views)

    def end_list(self, revision: str) -> None:
        self._recording.listed(self._kind, "end")
        self._pages.end_list(revision)


def recorded_sink(kind: str, sink: Sink[AnyKind], recording: Recording) -> Sink[AnyKind]:
    """The sink of a reflector, recorded."""
    if isinstance(sink, PagedSink):
        return RecordedPagedSink(kind, sink, sink, recording)
    return RecordedSink(kind, sink, recording)


def error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def recorded_plugin(plugin: type[Plugin]) -> RecordedPlugin:
    source, file = source_of(plugin)
    try:
        digest = blake2b(Path(file).read_bytes(), digest_size=16).hexdigest() if file else ""
    except OSError:
        digest = ""
    return RecordedPlugin(plugin.name, source, digest)
