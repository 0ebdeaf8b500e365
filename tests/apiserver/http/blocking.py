"""Measures how long the most expensive requests block the event loop of an API server.

    python -m tests.apiserver.http.blocking [WORD] ...      # only inputs whose name has one of the words

Input: a running server and an input of `worst_inputs`. Output: `Measured`: the answer; by the server's metrics, the
most CPU time that its loop used without a pause, and the longest interval by the wall clock; how fast /readyz was
answered meanwhile, by the wall clock, and without the time in which the operating system ran other processes ("own",
`tests/run_queue.py`). The exit code is 1 if an input uses more CPU time than `BLOCKED_S_MAX`, or if "own" is more than
`READY_S_MAX`.
"""

from __future__ import annotations

import http.client
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mooring.kit.clock import SystemClock
from tests.apiserver.http.worst_inputs import DEFINITIONS, INPUTS, MAPS, MERGE_PATCH, THINGS, Input, Sent
from tests.cluster.running import ADMIN_TOKEN, WITHOUT_OTHERS, Answer, Up, running
from tests.run_queue import RunQueueDelay
from tests.waiting import LIMIT_S, wait_until

http.client._MAXHEADERS = 10_000  # type: ignore[attr-defined]  # responses have many warnings

BLOCKED_S_MAX = 0.1
READY_S_MAX = 0.3
WALL = "mooring_event_loop_blocked_seconds"
CPU = "mooring_event_loop_blocked_cpu_seconds"
LEFT_BEHIND = (
    "/api/v1/namespaces/default/limitranges",
    "/api/v1/namespaces/default/resourcequotas",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/pods?gracePeriodSeconds=0",
    "/api/v1/nodes",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/worst",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/worst",
    "/api/v1/namespaces/default/services/worst",
    "/api/v1/namespaces/default/endpoints/worst",
    "/api/v1/namespaces/default/secrets",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
    "/apis/storage.k8s.io/v1/storageclasses",
    f"{DEFINITIONS}/things.example.com",
)


@dataclass(frozen=True, slots=True)
class Measured:
    """How one request affected the event loop."""

    name: str
    answer: Answer
    took_s: float
    cpu_s: float
    """The upper bound of the highest bucket that grew; 0 if none did."""
    wall_s: float
    ready_s: float
    """The slowest answer of /readyz meanwhile, by the wall clock."""
    ready_own_s: float | None
    """The slowest answer of /readyz without the time in which the operating system ran other processes; None: this
    kernel does not account for it."""


class Connection:
    """A connection to the server that stays open."""

    def __init__(self, up: Up, limit_s: float = LIMIT_S) -> None:
        self._connection = http.client.HTTPSConnection("127.0.0.1", up.port, timeout=limit_s, context=up.tls())

    def send(self, sent: Sent) -> Answer:
        headers = {"Content-Type": sent.content_type, "Accept": sent.accept, "Authorization": f"Bearer {ADMIN_TOKEN}"}
        if sent.impersonated:
            headers["Impersonate-User"] = sent.impersonated
        self._connection.request(sent.method, sent.path, sent.body or None, headers)
        response = self._connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read())

    def close(self) -> None:
        self._connection.close()


class _Poll(threading.Thread):
    """Thread that requests /readyz repeatedly, on its own connection."""

    def __init__(self, up: Up) -> None:
        super().__init__(daemon=True)
        self._connection = Connection(up)
        self._is_over = threading.Event()
        self._delay = RunQueueDelay(up.process.pid, os.getpid())
        self.slowest_s = 0.0
        self.slowest_own_s: float | None = 0.0 if self._delay.is_available else None
        self.answers = 0

    def run(self) -> None:
        clock = SystemClock()
        while not self._is_over.is_set():
            delayed_s, began_s = self._delay.total_s(), clock.now_s()
            assert self._connection.send(Sent("GET", "/readyz")).code == 200
            took_s = clock.now_s() - began_s
            self.slowest_s = max(self.slowest_s, took_s)
            if self.slowest_own_s is not None:
                own_s = took_s - (self._delay.total_s() - delayed_s)
                self.slowest_own_s = max(self.slowest_own_s, own_s)
            self.answers += 1
            self._is_over.wait(0.005)

    def end(self) -> None:
        self._is_over.set()
        self.join()
        self._connection.close()


@contextmanager
def polled(up: Up) -> Iterator[_Poll]:
    """Request /readyz repeatedly inside of the `with` block, and at least once before it."""
    poll = _Poll(up)
    poll.start()
    wait_until(lambda: poll.answers)
    try:
        yield poll
    finally:
        poll.end()


def scraped(up: Up) -> str:
    return up.ask("GET", "/metrics").body.decode()


def grown(name: str, before: str, after: str) -> float:
    """The upper bound of the highest bucket of a histogram that grew between two scrapes; 0 if none did."""
    highest = below = 0.0
    counts = dict(re.findall(rf'{name}_bucket{{le="(\S+)"}} (\S+)', before))
    for text, count in re.findall(rf'{name}_bucket{{le="(\S+)"}} (\S+)', after):
        bound, new = float(text), float(count) - float(counts[text])
        highest, below = (bound, new) if new > below else (highest, below)
    return highest


def measure(up: Up, name: str, requests: Input) -> Measured:
    """Send the requests of an input, and measure the last one."""
    connection, clock = Connection(up), SystemClock()
    *earlier, last = requests()
    for sent in earlier:
        answer = connection.send(sent)
        assert answer.code < 300, f"{name}: {sent.method} {sent.path}: {answer.code} {answer.body[:1_000]!r}"
    if "/apis/example.com" in last.path:
        wait_until(lambda: connection.send(Sent("GET", THINGS)).code == 200)
    before = scraped(up)
    with polled(up) as poll:
        began_s = clock.now_s()
        answer = connection.send(last)
        took_s = clock.now_s() - began_s
        if last.path == DEFINITIONS and answer.code == 201:
            wait_until(lambda: connection.send(Sent("GET", THINGS)).code == 200)
    connection.close()
    after = scraped(up)
    cpu_s, wall_s = grown(CPU, before, after), grown(WALL, before, after)
    return Measured(name, answer, took_s, cpu_s, wall_s, poll.slowest_s, poll.slowest_own_s)


def clean(up: Up) -> None:
    """Delete what an input may have created."""
    no_finalizers = b'{"metadata":{"finalizers":null}}'
    up.ask("PATCH", f"{MAPS}/worst", no_finalizers, headers={"Content-Type": MERGE_PATCH})
    modes = {f"pod-security.kubernetes.io/{mode}": None for mode in ("enforce", "audit", "warn")}
    no_security = {"metadata": {"labels": modes}}
    up.ask("PATCH", "/api/v1/namespaces/default", no_security, headers={"Content-Type": MERGE_PATCH})
    for path in LEFT_BEHIND:
        up.ask("DELETE", path)
    wait_until(lambda: up.ask("GET", f"{DEFINITIONS}/things.example.com").code == 404)


def main() -> int:
    words = sys.argv[1:]
    names = [name for name in INPUTS if not words or any(word in name for word in words)]
    exceeded: list[str] = []
    print(f"{'input':58}{'code':>5}{'KB':>6}{'took':>8}{'CPU <=':>9}{'wall <=':>9}{'/readyz':>9}{'own':>9}   (ms)")
    with tempfile.TemporaryDirectory() as directory, running(Path(directory), "--ephemeral", *WITHOUT_OTHERS) as up:
        for name in names:
            size = 0

            def requests(name: str = name) -> Iterator[Sent]:
                nonlocal size
                for sent in INPUTS[name]():
                    size = len(sent.body)
                    yield sent

            found = measure(up, name, requests)
            parts = (found.cpu_s, found.wall_s, found.ready_s, found.ready_own_s)
            times = "".join(f"{'-':>9}" if part is None else f"{part * 1000:9.0f}" for part in parts)
            print(f"{name:58}{found.answer.code:5}{size // 1000:6}{found.took_s * 1000:8.0f}{times}", flush=True)
            if found.answer.code >= 400:
                print(f"    {found.answer.body[-220:]!r}"[:230])
            if found.cpu_s > BLOCKED_S_MAX or (found.ready_own_s or 0) > READY_S_MAX:
                exceeded.append(name)
            clean(up)
    if exceeded:
        limits = f"{BLOCKED_S_MAX * 1000:.0f} ms of CPU time, or {READY_S_MAX * 1000:.0f} ms for /readyz"
        print(f"more than {limits}: {'; '.join(exceeded)}", file=sys.stderr)
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
