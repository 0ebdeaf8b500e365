"""A minimal API server for a benchmark: as little work for each request as possible, so that its client is measured.

Input: requests over HTTP/1.1 and TLS, as a scheduler sends them. Output: responses in the form and with the headers of
kube-apiserver v1.36; chunked lines to watches.

    python -m bench.remote_server --nodes 5000 --placed 50000 --pods 10000

It prints `{"port": …}` when it listens, and ends when its standard input does. `POST /bench/create?N` creates N pods,
`GET /bench/result` returns their outcome.

1. Nothing is stored, validated or authorized: `mooring up` does that.
2. Objects are bytes, prepared before time is measured. A pod is three pieces of JSON, with its revision and its node
   between them. A binding only inserts these two, so that the scheduler never waits for the server.
3. A pod that is bound twice, to an unknown node, or with another uid is counted and rejected as in kube-apiserver.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import ssl
import sys
import tempfile
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import cast
from urllib.parse import parse_qs, unquote

import click
import msgspec
import uvloop

from bench.scenario import Scenario
from bench.workload import Size, read_workload
from mooring.api.kinds import all_kinds
from mooring.kit.clock import SystemClock
from mooring.serving.tls import self_signed

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
        self.pieces = _split_pod(raw)
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
        self.send_line: Callable[[bytes], None] = lambda line: None
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
        """The outcome of all pods."""
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
        self.send_line(_line(change, pod))


def _line(change: str, pod: Pod) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (change.encode(), pod.raw())


def _at(raw: bytes, revision: int) -> bytes:
    """An object without kind and version, as the items of a list are, at a revision."""
    raw = _REVISION.sub(b"", raw, count=1)
    start = raw.index(b'"metadata":{') + len(b'"metadata":{')
    return b'{"metadata":{"resourceVersion":"%d",%b' % (revision, raw[start:])


def _split_pod(raw: bytes) -> tuple[bytes, bytes, bytes]:
    head = b'{"kind":"Pod","apiVersion":"v1","metadata":{'
    raw = _REVISION.sub(b"", raw, count=1)
    raw = raw[raw.index(b'"metadata":{') + len(b'"metadata":{') :]
    hole = raw.index(b'"spec":{') + len(b'"spec":{')
    return head, raw[:hole], raw[hole:]


# --- the server -----------------------------------------------------------------------------------------------


HEADERS = (
    b"Audit-Id: 0b5a2f6e-7c1d-4c5e-9d43-2f6f2b1c9a10\r\nCache-Control: no-cache, private\r\n"
    b"Content-Type: application/json\r\nX-Kubernetes-Pf-Flowschema-Uid: 63ec2d5f-1f53-4a39-a38d-0cf8b1c5e6ab\r\n"
    b"X-Kubernetes-Pf-Prioritylevel-Uid: 0d6f0a4c-61a8-4d7e-8f86-4f2a5b3c7d9e\r\n"
    b"Date: Mon, 16 Nov 2026 06:00:00 GMT\r\n"
)
BOUND = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}\n'
PLURALS = {kind.plural: kind for kind in all_kinds()}


class Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self, cluster: Cluster, watchers: set[asyncio.Transport], leases: dict[str, bytes]) -> None:
        self._cluster = cluster
        self._watchers = watchers
        self._leases = leases
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not one by name

    def connection_lost(self, error: Exception | None) -> None:
        self._watchers.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            marked = head.lower().find(b"content-length: ")
            length = int(head[marked + 16 :].split(b"\r\n", 1)[0]) if marked >= 0 else 0
            if len(self._buffer) < end + 4 + length:
                return
            body = self._buffer[end + 4 : end + 4 + length]
            self._buffer = self._buffer[end + 4 + length :]
            method, target = head.split(b" ", 2)[:2]
            self._serve(method, *target.decode().partition("?")[::2], body)

    # ------------------------------------------------------------------------------------------------ answers

    def _serve(self, method: bytes, path: str, query: str, body: bytes) -> None:
        steps = path.split("/")
        if method == b"POST" and path.endswith("/binding"):
            conflict = self._cluster.bind(f"{steps[4]}/{steps[6]}", body)
            self._answer(409 if conflict else 201, _status(409, conflict) if conflict else BOUND)
        elif method == b"POST" and path.endswith("/events"):
            self._cluster.note(body)
            self._answer(201, body)
        elif method == b"GET" and steps[-1] in PLURALS:
            self._list(steps[-1], {name: values[0] for name, values in parse_qs(query).items()})
        elif "leases" in steps:
            self._lease(method, path, body)
        elif path == "/bench/create":
            self._cluster.create(int(query))
            self._answer(200, b"{}")
        elif path == "/bench/result":
            self._answer(200, msgspec.json.encode(self._cluster.result()))
        elif method == b"PATCH":
            self._answer(200, b'{"kind":"%b"}' % (b"Event" if "events" in steps else b"Pod"))
        else:
            self._answer(404, _status(404, f"there is no {path}"))

    def _answer(self, code: int, body: bytes) -> None:
        head = b"HTTP/1.1 %d OK\r\n%bContent-Length: %d\r\n\r\n" % (code, HEADERS, len(body))
        self._transport.write(head + body)

    def _list(self, plural: str, query: dict[str, str]) -> None:
        if query.get("watch") == "true":
            self._watch(plural, "sendInitialEvents" in query, int(query.get("resourceVersion") or 0))
            return
        kind = PLURALS[plural]
        items = self._cluster.items(plural)
        start = int(unquote(query.get("continue", "0")))
        end = start + int(query.get("limit", len(items)))
        more = f',"continue":"{end}","remainingItemCount":{len(items) - end}' if end < len(items) else ""
        metadata = f'{{"resourceVersion":"{self._cluster.revision}"{more}}}'
        start_of_list = f'{{"kind":"{kind.kind}List","apiVersion":"{kind.api_version}","metadata":{metadata},"items":['
        self._answer(200, b"%b%b]}\n" % (start_of_list.encode(), b",".join(items[start:end])))

    def _watch(self, plural: str, with_everything: bool, since: int) -> None:
        self._transport.write(b"HTTP/1.1 200 OK\r\n%bTransfer-Encoding: chunked\r\n\r\n" % HEADERS)
        if with_everything:
            kind = PLURALS[plural]
            named = f'"kind":"{kind.kind}","apiVersion":"{kind.api_version}","metadata":{{'.encode()
            for item in self._cluster.items(plural):
                self._transport.write(chunked(b'{"type":"ADDED","object":%b}\n' % item))
            end = b'"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}' % self._cluster.revision
            self._transport.write(chunked(b'{"type":"BOOKMARK","object":{%b%b}}}\n' % (named, end)))
        if plural == "pods":
            for line in () if with_everything else self._cluster.since(since):
                self._transport.write(chunked(line))
            self._watchers.add(self._transport)

    def _lease(self, method: bytes, path: str, body: bytes) -> None:
        if method == b"GET" and path not in self._leases:
            self._answer(404, _status(404, "there is no such lease"))
            return
        if method == b"POST":
            path += "/" + str(msgspec.json.decode(body)["metadata"]["name"])
        if method != b"GET":
            plain = msgspec.json.decode(body)
            self._cluster.revision += 1
            plain["metadata"]["resourceVersion"] = str(self._cluster.revision)
            self._leases[path] = msgspec.json.encode(plain)
        self._answer(201 if method == b"POST" else 200, self._leases[path])


def chunked(line: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(line), line)


def _status(code: int, message: str) -> bytes:
    reason = {404: "NotFound", 409: "Conflict"}[code]
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason}
    return msgspec.json.encode(status | {"message": message, "code": code})


async def _serve(cluster: Cluster, security: ssl.SSLContext) -> None:
    loop = asyncio.get_running_loop()
    watchers: set[asyncio.Transport] = set()
    leases: dict[str, bytes] = {}

    def send_line(line: bytes) -> None:
        for transport in watchers:
            transport.write(chunked(line))

    cluster.send_line = send_line
    server = await loop.create_server(lambda: Connection(cluster, watchers, leases), "127.0.0.1", 0, ssl=security)
    over = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), lambda: over.set() if not os.read(sys.stdin.fileno(), 1) else None)
    sys.stdout.write(msgspec.json.encode({"port": server.sockets[0].getsockname()[1]}).decode() + "\n")
    sys.stdout.flush()
    await over.wait()


def _security() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(self_signed("bench", ["127.0.0.1"], SystemClock().wall_s())))
        file.flush()
        context.load_cert_chain(file.name)
    return context


@click.command()
@click.option("--workload", default="plain")
@click.option("--nodes", default=5_000)
@click.option("--placed", default=50_000)
@click.option("--pods", default=10_000)
def main(workload: str, nodes: int, placed: int, pods: int) -> None:
    """Serve until standard input ends."""
    cluster = Cluster(workload, nodes, placed, pods)
    gc.freeze()
    uvloop.run(_serve(cluster, _security()))


if __name__ == "__main__":
    main()
