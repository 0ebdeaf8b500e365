"""The cluster of the minimal API server: objects as bytes, prepared before time is measured.

Input: a workload at a size; then bindings and events, as bytes. Output: pages of lists, lines of a watch, and the
outcome of each pod.

 1. A pod is three pieces of JSON, with its revision and its node between them. A binding only inserts these two, so
    that the scheduler never waits for the server.
 2. A pod that is bound twice, to an unknown node, or with another uid is counted and rejected as in kube-apiserver.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from time import perf_counter

import msgspec

from bench.scenario import Scenario
from bench.workload import Size, read_workload

FIRST_REVISION = 1_000_000
"""Above every revision that a template writes down."""

_REVISION = re.compile(rb'"resourceVersion":"\d+",?')


class Named(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class Identity(msgspec.Struct):
    metadata: Named = msgspec.field(default_factory=Named)


class Binding(Identity):
    target: Named = msgspec.field(default_factory=Named)


class Event(msgspec.Struct):
    reason: str = ""
    regarding: Named = msgspec.field(default_factory=Named)


class Pod:
    """A pod that is to be scheduled."""

    __slots__ = ("events", "name", "node", "pieces", "revision", "uid")

    def __init__(self, raw: bytes) -> None:
        identity = msgspec.json.decode(raw, type=Identity).metadata
        self.name = f"{identity.namespace}/{identity.name}"
        self.uid = identity.uid
        self.pieces = _pieces(raw)
        self.revision = 0
        self.node = ""
        self.events = 0

    def raw(self) -> bytes:
        head, middle, rest = self.pieces
        node = f'"nodeName":"{self.node}",'.encode() if self.node else b""
        return b'%b"resourceVersion":"%d",%b%b%b' % (head, self.revision, middle, node, rest)


class Cluster:
    """Nodes and placed pods that never change, and pods that come and are bound."""

    def __init__(self, workload: str, nodes: int, placed: int, pods: int) -> None:
        scenario = Scenario(read_workload(workload), Size(nodes=nodes, placed=placed, pods=pods))
        made = [(item.kind.kind, item.raw) for item in scenario.nodes()]
        self.nodes = [_at(raw, number + 1) for number, (_, raw) in enumerate(made)]
        self.node_names = {msgspec.json.decode(raw, type=Identity).metadata.name for raw in self.nodes}
        self.placed = [_at(item.raw, nodes + number + 1) for number, item in zip(range(placed), scenario.placed())]
        self._to_come = [Pod(item.raw) for _, item in zip(range(pods), scenario.measured())]
        self._to_come.reverse()
        self.pods: dict[str, Pod] = {}
        self.revision = FIRST_REVISION
        self.errors: list[str] = []
        self.bound = 0
        self.events = 0
        self.began_s = self.bound_s = self.events_s = 0.0
        self.tell: Callable[[bytes], None] = lambda line: None
        self._bindings = msgspec.json.Decoder(Binding)
        self._events = msgspec.json.Decoder(Event)

    def items(self, plural: str) -> list[bytes]:
        """All objects of a kind, as a list has them."""
        if plural == "nodes":
            return self.nodes
        return self.placed + [pod.raw() for pod in self.pods.values()] if plural == "pods" else []

    def since(self, revision: int) -> Iterator[bytes]:
        """The lines that a watch from a revision begins with: pods as they are now that have changed after it."""
        for pod in sorted(self.pods.values(), key=lambda pod: pod.revision):
            if pod.revision > revision:
                yield _line("ADDED", pod)

    def create(self, count: int) -> None:
        """So many pods, at once."""
        self.began_s = perf_counter()
        self.bound = self.events = 0
        for _ in range(count):
            pod = self._to_come.pop()
            self.pods[pod.name] = pod
            self._change("ADDED", pod)

    def bind(self, name: str, body: bytes) -> str:
        """Why not, or nothing."""
        binding = self._bindings.decode(body)
        pod = self.pods.get(name)
        if pod is None or pod.node or binding.metadata.uid != pod.uid or binding.target.name not in self.node_names:
            self.errors.append(f"{name} cannot be bound to {binding.target.name}: it is on {pod and pod.node!r}")
            return self.errors[-1]
        pod.node = binding.target.name
        self._change("MODIFIED", pod)
        self.bound += 1
        self.bound_s = perf_counter()
        return ""

    def note(self, body: bytes) -> None:
        """An event was written."""
        event = self._events.decode(body)
        pod = self.pods.get(f"{event.regarding.namespace}/{event.regarding.name}")
        if pod is not None and event.reason == "Scheduled":
            pod.events += 1
            self.events += 1
            self.events_s = perf_counter()

    def result(self) -> dict[str, object]:
        """What became of everybody."""
        return {
            "bound": self.bound,
            "events": self.events,
            "errors": self.errors[:10] + list(self._wrong())[:10] if self.bound == self.events else self.errors[:10],
            "bound_s": self.bound_s - self.began_s,
            "events_s": self.events_s - self.began_s,
        }

    def _wrong(self) -> Iterator[str]:
        for pod in self.pods.values():
            if pod.node and pod.events != 1:
                yield f"{pod.name} has {pod.events} events"

    def _change(self, change: str, pod: Pod) -> None:
        self.revision += 1
        pod.revision = self.revision
        self.tell(_line(change, pod))


def _line(change: str, pod: Pod) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (change.encode(), pod.raw())


def _at(raw: bytes, revision: int) -> bytes:
    """An object without kind and version, as the items of a list are, at a revision."""
    raw = _REVISION.sub(b"", raw, count=1)
    start = raw.index(b'"metadata":{') + len(b'"metadata":{')
    return b'{"metadata":{"resourceVersion":"%d",%b' % (revision, raw[start:])


def _pieces(raw: bytes) -> tuple[bytes, bytes, bytes]:
    head = b'{"kind":"Pod","apiVersion":"v1","metadata":{'
    raw = _REVISION.sub(b"", raw, count=1)
    raw = raw[raw.index(b'"metadata":{') + len(b'"metadata":{') :]
    hole = raw.index(b'"spec":{') + len(b'"spec":{')
    return head, raw[:hole], raw[hole:]
