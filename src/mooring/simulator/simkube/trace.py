"""The file of a SimKube trace, as msgpack:

    {"version": 2, "config": {"trackedObjects": …}, "events": [{"ts", "applied_objs", "deleted_objs"}, …],
     "index": …, "pod_lifecycles": {(owner's GVK, owner's namespaced name): {pod hash: [lifecycle, …]}}}

A lifecycle is `{"Finished": [start, end]}`, `{"Running": start}` or `"Empty"`. Times are Unix seconds; here they are
seconds since the first event.

Events are decoded one by one from the mapped file. An error has the number of the event.
"""

from __future__ import annotations

import logging
import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mooring.simulator.errors import ScenarioError
from mooring.simulator.workload import FOREVER_S

logger = logging.getLogger(__name__)

VERSION = 2
CLAIMS = ("persistentVolumeClaim", "ephemeral")
"""Sources of volumes that need a claim."""


class _TrackedObject(msgspec.Struct, rename="camel"):
    pod_spec_template_paths: list[str] | None = None


class _TracerConfig(msgspec.Struct, rename="camel"):
    tracked_objects: dict[str, _TrackedObject] = {}


class _TraceFile(msgspec.Struct):
    version: int
    events: list[msgspec.Raw]
    config: _TracerConfig = msgspec.field(default_factory=_TracerConfig)
    pod_lifecycles: dict[tuple[str, str], dict[int, list[dict[str, Any] | str]]] = {}


class _RawEvent(msgspec.Struct):
    ts: int
    applied_objs: list[dict[str, Any]] = []
    deleted_objs: list[dict[str, Any]] = []


class SimkubeEvent(NamedTuple):
    number: int
    at_s: float
    applied: Sequence[Mapping[str, Any]]
    deleted: Sequence[Mapping[str, Any]]


class SimkubeTrace:
    """A trace, read again for each iteration over its events."""

    def __init__(self, path: Path) -> None:
        """Raises `ScenarioError`."""
        self.path = path
        try:
            with path.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # closed when the last event is gone
        except (OSError, ValueError) as error:  # mmap raises ValueError for an empty file
            text = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise ScenarioError(str(path), f"cannot be read: {text}") from error
        self._file = _decoded(path, data)
        first = next(self._raw_events(), None)
        self.begin_s = first[1].ts if first is not None else 0
        """The time of the first event."""

    def events(self) -> Iterator[SimkubeEvent]:
        """Raises `ScenarioError`."""
        last_s = self.begin_s
        for number, event in self._raw_events():
            if event.ts < last_s:
                raise ScenarioError(f"{self.path}: event {number}", f"ts decreases from {last_s} to {event.ts}")
            last_s = event.ts
            yield SimkubeEvent(number, float(event.ts - self.begin_s), event.applied_objs, event.deleted_objs)

    def _raw_events(self) -> Iterator[tuple[int, _RawEvent]]:
        decoder = msgspec.msgpack.Decoder(_RawEvent)
        for number, raw in enumerate(self._file.events, 1):
            try:
                yield number, decoder.decode(raw)
            except (msgspec.DecodeError, UnicodeError) as error:
                raise ScenarioError(f"{self.path}: event {number}", f"cannot be read: {error}") from error

    @contextmanager
    def errors_of(self, number: int) -> Iterator[None]:
        """Objects that are not as they should be are an error of their event."""
        where = f"{self.path}: event {number}"
        try:
            yield
        except KeyError as error:
            raise ScenarioError(where, f"an object has no {error.args[0]}") from error
        except (TypeError, AttributeError, ValueError) as error:
            raise ScenarioError(where, f"an object cannot be read: {error}") from error

    def tracked_templates(self, gvk: str) -> list[str]:
        """Where objects of a custom kind have their pod templates."""
        tracked = self._file.config.tracked_objects.get(gvk)
        return (tracked.pod_spec_template_paths if tracked is not None else None) or []

    def lifecycles(self, gvk: str, key: str) -> list[tuple[float, float]]:
        """When each pod of an owner started, and how long it ran."""
        found: list[tuple[float, float]] = []
        begin_s = self.begin_s
        for lifecycles in self._file.pod_lifecycles.get((gvk, key), {}).values():
            for lifecycle in lifecycles:
                match lifecycle:
                    case {"Finished": [int() as start_s, int() as end_s]}:
                        found.append((max(float(start_s - begin_s), 0.0), float(max(end_s - start_s, 0))))
                    case {"Running": int() as start_s}:
                        found.append((max(float(start_s - begin_s), 0.0), FOREVER_S))
                    case "Empty":
                        continue
                    case _:
                        raise ValueError(f"the lifecycle {lifecycle!r} of {key} is none")
        return sorted(found)


def _decoded(path: Path, data: mmap.mmap) -> _TraceFile:
    try:
        trace = msgspec.msgpack.decode(data, type=_TraceFile)
    except (msgspec.DecodeError, UnicodeError) as error:
        text = f"is no SimKube trace: {error}; wanted version {VERSION} of .sktrace, which is msgpack"
        raise ScenarioError(str(path), text) from error
    if trace.version != VERSION:
        raise ScenarioError(str(path), f"has version {trace.version}; wanted {VERSION}")
    return trace


def identity(document: Mapping[str, Any]) -> tuple[str, str]:
    """Group, version and kind as SimKube writes them, and the namespaced name."""
    metadata = document["metadata"]
    namespace = metadata.get("namespace") or ""
    return f"{document['apiVersion']}.{document['kind']}", f"{namespace}/{metadata['name']}".lstrip("/")


def log_left_out(path: Path, kinds: Mapping[str, int], reason: str) -> None:
    if kinds:
        _log_once(path, reason, ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))


@cache
def _log_once(path: Path, reason: str, kinds: str) -> None:
    """Once in a process, which reads the trace for each policy and seed."""
    logger.warning("%s: %s: %s", path, reason, kinds)
