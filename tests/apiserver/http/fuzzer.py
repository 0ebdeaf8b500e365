"""The fuzzer: sends bad requests and checks the responses of the server.

    python -m tests.apiserver.http.fuzzer [--seed N] [--count N] [--seconds N] [--findings DIRECTORY]

Input: a running server, a seed, a number of requests. Output: `Findings`: counts of responses, and each response that a
server must not give.

 1. The same seed sends the same requests in the same order. `last` in a finding is the number of its request: run that
    many to reproduce it.
 2. A finding is: no response, a hang, a response that is not HTTP or not the Status that it claims to be, an unexpected
    5xx. Some 500s are expected: Kubernetes returns them, too, as plain text.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from collections import Counter, deque
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import msgspec
import yaml

from mooring.api.kinds import all_kinds
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy, system_entropy
from tests.apiserver.http.fuzz_connection import RUDE, Closed, Connection, FuzzAnswer, be_rude
from tests.apiserver.http.fuzz_requests import Request, requests
from tests.cluster.running import ADMIN_TOKEN, WITHOUT_OTHERS, Up, running

COUNT = 100_000
PORTION = 1_000
"""Number of requests between two checks of the time limit."""
BATCH = 24
BATCH_BYTES_MAX = 48 * 1024
STREAMS_OPEN_MAX = 40
WAITING_MAX = 10
"""Maximum number of requests that wait for a revision while others are sent."""
RUDE_EVERY = 150
"""One of this number of requests violates HTTP."""
FORMS = (
    "application/json",
    "application/yaml",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
)
FINDINGS_MAX = 50
LOG_SHOWN_MAX = 500_000

UNFORESEEN = b"see the log of the server"
REVISION_AHEAD = b"ResourceVersionTooLarge"
MEANT_CODES = (500, 501)


@dataclass(slots=True)
class Findings:
    """The results of a run."""

    seed: int
    sent: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    meant: Counter[str] = field(default_factory=Counter)
    """Expected 5xx responses, by message."""
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: {self.sent} requests, answered {dict(sorted(self.codes.items()))}", *self.wrong]
        return "\n".join(lines)


class Fuzzer:
    """Sends the requests of one seed to one server."""

    def __init__(self, up: Up, seed: int) -> None:
        self.findings = Findings(seed)
        self._port = up.port
        self._tls = up.tls()
        self._requests = requests(seed)
        self._chance = Entropy(seed, "rudeness")
        self._connection: Connection | None = None
        self._streams: deque[Connection] = deque()
        self._waiting: deque[tuple[Connection, Request, bytes]] = deque()
        self._batch: list[tuple[Request, bytes]] = []
        self._batch_bytes = 0

    def run(self, count: int) -> Findings:
        """Send `count` more requests."""
        until = self.findings.sent + count
        while self.findings.sent < until and len(self.findings.wrong) < FINDINGS_MAX:
            if not self._chance.integer_below(RUDE_EVERY):
                self._send_batch()
                self._send_rude()
            request, entropy = next(self._requests)
            data = request.sent(entropy)
            self.findings.sent += 1
            if request.may_stream or request.may_wait:
                self._send_batch()
                self._send_apart(request, data)
            elif request.is_risky:
                self._send_batch()
                self._batch = [(request, data)]
                self._send_batch()
            else:
                self._batch.append((request, data))
                self._batch_bytes += len(data)
                if len(self._batch) >= BATCH or self._batch_bytes >= BATCH_BYTES_MAX:
                    self._send_batch()
        self._send_batch()
        while self._waiting:
            self._read(*self._waiting.popleft())
        return self.findings

    def read_everything(self) -> Findings:
        """List all kinds in all response formats."""
        for kind in all_kinds():
            prefix = "/apis/" if "/" in kind.api_version else "/api/"
            for accept in FORMS:
                headers = {"Accept": accept, "Authorization": f"Bearer {ADMIN_TOKEN}"}
                request = Request("GET", f"{prefix}{kind.api_version}/{kind.plural}", [], headers)
                self._batch = [(request, request.sent(self._chance))]
                codes = self.findings.codes[200]
                self._send_batch()
                if self.findings.codes[200] == codes:
                    self._report(f"{kind.plural} cannot be listed as {accept}", request, b"")
        return self.findings

    def close(self) -> None:
        for connection in (*self._streams, *([self._connection] if self._connection else [])):
            connection.close()
        self._streams.clear()
        self._connection = None

    # ------------------------------------------------------------------------------------------------- sending

    def _send_batch(self) -> None:
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        was_rejected = False
        while batch:
            connection = self._connection or Connection(self._port, self._tls)
            self._connection = connection
            try:
                answers = connection.exchange([(request.method, data) for request, data in batch])
            except Closed as closed:
                connection.close()
                self._connection, answers = None, list(closed.answers)
            except (TimeoutError, AssertionError, ValueError) as error:
                self._report(f"{error!r} somewhere in this batch", *batch[0])
                self._connection = None
                return
            for (request, data), answer in zip(batch, answers):
                self._check(request, data, answer)
            if not answers and was_rejected:
                self._report("the connection is closed without an answer", *batch[0])
                return
            was_rejected = not answers
            batch = batch[len(answers) :]

    def _send_apart(self, request: Request, data: bytes) -> None:
        connection = Connection(self._port, self._tls)
        connection.socket.sendall(data)
        if not request.may_wait:
            self._read(connection, request, data)
            return
        self._waiting.append((connection, request, data))
        if len(self._waiting) > WAITING_MAX:
            self._read(*self._waiting.popleft())

    def _read(self, connection: Connection, request: Request, data: bytes) -> None:
        try:
            answer = connection.answer(request.method, may_stream=True)
        except (OSError, AssertionError, ValueError) as error:
            self._report(f"{error!r}", request, data)
            connection.close()
            return
        self._check(request, data, answer)
        if answer.is_stream:
            self._streams.append(connection)
        else:
            connection.close()
        if len(self._streams) > STREAMS_OPEN_MAX:
            self._streams.popleft().close()

    def _send_rude(self) -> None:
        way = self._chance.choose(RUDE)
        try:
            code = be_rude(way, self._port, self._tls, self._chance)
        except (TimeoutError, AssertionError, ValueError) as error:
            self.findings.wrong.append(f"rude request {way.name}: {error!r}")
            return
        self.findings.codes[code] += 1
        if code not in way.codes:
            self.findings.wrong.append(f"rude request {way.name}: answered {code}, not one of {way.codes}")

    # -------------------------------------------------------------------------------------------------- checks

    def _check(self, request: Request, data: bytes, answer: FuzzAnswer) -> None:
        self.findings.codes[answer.code] += 1
        if answer.is_stream:
            return
        body = gzip.decompress(answer.body) if answer.is_compressed else answer.body
        if answer.content_type == "application/json" and body:
            try:
                document = msgspec.json.decode(body)
            except msgspec.DecodeError as error:
                self._report(f"{answer.code} with bad JSON ({error}): {body[:300]!r}", request, data)
                return
            if answer.code >= 400 and document.get("code", answer.code) != answer.code:
                self._report(f"{answer.code} with the Status {body[:300]!r}", request, data)
        if answer.code >= 500:
            if not is_meant_failure(answer.code, body):
                self._report(f"{answer.code}: {body[:500]!r}", request, data)
            else:
                # JSON is also valid YAML. The YAML parser is slow, but these responses are few.
                self.findings.meant[str(yaml.safe_load(body).get("message"))[:100]] += 1

    def _report(self, what: str, request: Request, data: bytes) -> None:
        shown = data if len(data) < 1_500 else data[:1_000] + b" ... " + data[-400:]
        self.findings.wrong.append(f"last {self.findings.sent}: {what}\n    {shown!r}")


def is_meant_failure(code: int, body: bytes) -> bool:
    """Whether Kubernetes returns the same 5xx response."""
    return (
        (code in MEANT_CODES or REVISION_AHEAD in body)
        and UNFORESEEN not in body
        and body.startswith((b"{", b"apiVersion: v1\ncode: "))
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.apiserver.http.fuzzer")
    parser.add_argument("--seed", type=int, default=system_entropy().seed)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seconds", type=float, default=inf, help="stop earlier, after this time")
    parser.add_argument("--findings", type=Path, help="a directory for the requests with findings")
    given = parser.parse_args()
    clock = SystemClock()
    until_s = clock.now_s() + given.seconds
    with (
        tempfile.TemporaryDirectory() as directory,
        running(Path(directory), "--ephemeral", "--anonymous-auth", *WITHOUT_OTHERS) as up,
    ):
        fuzzer = Fuzzer(up, given.seed)
        while fuzzer.findings.sent < given.count and clock.now_s() < until_s and not fuzzer.findings.wrong:
            fuzzer.run(min(PORTION, given.count - fuzzer.findings.sent))
        findings = fuzzer.read_everything()
        failures = up.metric("mooring_apiserver_failures_total")
        fuzzer.close()
        print(findings)
        for text, times in findings.meant.most_common():
            print(f"    meant {times:6d}  {text}")
        print(f"{failures:.0f} failures; {up.resident_bytes() >> 20} MiB, {up.open_files()} files")
        if failures or findings.wrong:
            if given.findings is not None:
                (given.findings / "requests-wrong.json").write_bytes(msgspec.json.encode(findings.wrong))
            print(up.log()[-LOG_SHOWN_MAX:])
            raise SystemExit(1)


if __name__ == "__main__":
    main()
