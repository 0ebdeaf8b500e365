"""`mooring up` as a process: started, requested, watched from outside, ended in every way.

with running(tmp_path, "--ephemeral") as up:
    up.ask("GET", "/api/v1/namespaces").document()["items"]
    assert up.end(signal.SIGINT) == 0
"""

from __future__ import annotations

import base64
import http.client
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.waiting import LIMIT_S

ADMIN_TOKEN = "token-of-the-administrator"
LIMITED_TOKEN = "token-of-a-limited-user"
WITHOUT_OTHERS = ("--without", "scheduler,controllers,nodes")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    code: int
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> Any:
        return msgspec.json.decode(self.body)


@dataclass(slots=True)
class Up:
    """A process that runs `mooring up`."""

    process: subprocess.Popen[str]
    url: str
    kubeconfig: Path
    log_file: Path
    printed: list[str] = field(default_factory=list)
    """The lines of standard output up to the one that names the server."""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def authority(self) -> str:
        """The certificate of its authority, as PEM."""
        cluster = yaml.safe_load(self.kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]
        return base64.b64decode(cluster["certificate-authority-data"]).decode()

    def tls(self) -> ssl.SSLContext:
        """Trusts only this server."""
        return ssl.create_default_context(cadata=self.authority())

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str = ADMIN_TOKEN,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own. A body that is not bytes is sent as JSON; no token, no name."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=LIMIT_S, context=self.tls())
        sent = {"Content-Type": "application/json", **(headers or {})}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        data = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    @contextmanager
    def opened(self, path: str) -> Iterator[http.client.HTTPResponse]:
        """An answer that is read while it comes."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=LIMIT_S, context=self.tls())
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
            yield connection.getresponse()
        finally:
            connection.close()

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        lines = self.ask("GET", "/metrics").body.decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if re.match(rf"{name}(\{{| )", line))

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def resident_bytes(self) -> int:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8"))
        assert found is not None
        return int(found[1]) * 1024

    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def lines(self, last: str) -> list[str]:
        """What it prints next, up to the line that contains `last`."""
        assert self.process.stdout is not None
        printed = []
        for line in self.process.stdout:
            printed.append(line.rstrip("\n"))
            if last in line:
                return printed
        raise AssertionError(f"{last!r} was not printed: {printed}")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(LIMIT_S)


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "mooring", "up", "--token", ADMIN_TOKEN, *options]


@contextmanager
def running(directory: Path, *options: str, port: int = 0, stdin: str = "") -> Iterator[Up]:
    """`mooring up` with these options; gone at the end of the block, whatever happened in it."""
    tokens = directory / "tokens.csv"
    tokens.write_text(f'{LIMITED_TOKEN},limited,2,"limited-group"\n', encoding="utf-8")
    kubeconfig, log_file = directory / "kubeconfig", directory / "server.log"
    words = command("--port", str(port), "--kubeconfig", str(kubeconfig), "--token-auth-file", str(tokens), *options)
    with (
        open(log_file, "ab") as log,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdin is not None
            process.stdin.write(stdin)
            process.stdin.close()
            url, printed = _url_said_by(process, log_file)
            yield Up(process, url, kubeconfig, log_file, printed)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(LIMIT_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise


def _url_said_by(process: subprocess.Popen[str], log_file: Path) -> tuple[str, list[str]]:
    assert process.stdout is not None
    printed = []
    for line in process.stdout:
        printed.append(line.rstrip("\n"))
        found = re.search(r"https://\S+", line)
        if found:
            return found[0], printed
    raise AssertionError(f"mooring up ended before it was up:\n{log_file.read_text(encoding='utf-8')}")
