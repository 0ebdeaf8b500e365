"""The processes of the soak test: a control plane on SQLite or etcd, two schedulers, a disk that can be filled.

   with Disk(folder, size) as disk, ControlPlane("sqlite", folder, disk) as plane: ...

1. `mooring up` runs the API server, the controllers and hollow nodes. The schedulers are processes of their own, with
   leader election, and reach the API server through a relay that can cut their connections.
2. Every process keeps its port and its directory when it is started again.
3. The disk is a small tmpfs, if this user may mount one; without it there are no full disks.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from bench.machine import free_port
from tests.cluster.running import ADMIN_TOKEN
from tests.soak.history import Sample
from tests.store.etcd.builders import PROGRAM

NODES = 4
SCHEDULERS = ("scheduler-a", "scheduler-b")
DISK_MIB = 640
"""The history of ten minutes takes up to 300 MB, in either store, and etcd allocates 64 MB for its log ahead of use."""
LEASE_S, RENEW_S = 6, 4
STOP_S_MAX = 20.0
"""For a process to end after SIGTERM. Beyond it: SIGKILL."""
LOG_BYTES_SHOWN = 1_500


@dataclass(slots=True)
class Program:
    """A process that can be killed, stopped and started again."""

    name: str
    command: Sequence[str]
    log: Path
    is_stopped: bool = False
    starts: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        assert not self.is_alive, f"{self.name} is running"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,  # Ctrl-C is for the soak test alone
            )
        self.starts += 1
        self.is_stopped = False

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def kill(self) -> None:
        """As a power failure does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def end(self) -> None:
        if self._process is None:
            return
        if self.is_stopped:
            self.resume()
        self._process.terminate()
        try:
            self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self.kill()

    def pause(self) -> None:
        if self.is_alive:
            self.is_stopped = True
            os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        self.is_stopped = False
        if self.is_alive:
            os.kill(self.pid, signal.SIGCONT)

    def sample(self) -> Sample:
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None, status
        return Sample(self.pid, int(found[1]) * 1024, len(os.listdir(f"/proc/{self.pid}/fd")))

    def log_tail(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-LOG_BYTES_SHOWN:]


class Disk:
    """A small file system that can be filled."""

    def __init__(self, folder: Path, size_mib: int) -> None:
        self.path = folder / "disk"
        self._size_mib = size_mib
        self._ballast = self.path / "ballast"
        self.can_be_filled = False

    def __enter__(self) -> Self:
        self.path.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={self._size_mib}m", "tmpfs", str(self.path)]
        self.can_be_filled = (
            os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.can_be_filled:
            subprocess.run(["umount", "--lazy", str(self.path)], check=False)

    def fill(self) -> None:
        """Leave not a single byte."""
        with self._ballast.open("ab", buffering=0) as ballast:
            for size in (1 << 20, 4_096, 1):
                with suppress(OSError):
                    while True:
                        ballast.write(b"\0" * size)

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


class Relay:
    """Passes bytes on to a port of loopback, until the connections are cut."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, name="relay", daemon=True).start()

    def cut(self) -> None:
        """End all connections with a reset, in the middle of whatever they carry."""
        for end in list(self._open):
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self._server.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return  # closed
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            for source, sink in ((near, far), (far, near)):
                self._open.add(source)
                threading.Thread(target=self._pass_on, args=(source, sink), name="relay", daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open.discard(source)
        source.close()


class ControlPlane:
    """All processes of one cluster."""

    def __init__(self, store: str, folder: Path, disk: Disk) -> None:
        self.store = store
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self._folder = folder
        self.relay = Relay(self.port)
        options = ["--data-dir", str((disk.path if store == "sqlite" else folder) / "data")]
        self.etcd: Program | None = None
        if store == "etcd":
            assert PROGRAM is not None, "there is no etcd here: tools/ensure_etcd.sh installs it"
            client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
            words = [PROGRAM, "--data-dir", str(disk.path / "etcd"), "--name", "e", "--initial-cluster", f"e={peer}"]
            words += ["--listen-client-urls", client, "--advertise-client-urls", client]
            words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
            self.etcd = Program("etcd", words, folder / "etcd.log")
            options += ["--store", client.replace("http://", "etcd://")]
        self.server = Program(
            "apiserver",
            [
                *(sys.executable, "-m", "mooring", "up", "--without", "scheduler", "--nodes", str(NODES)),
                *(
                    "--port",
                    str(self.port),
                    "--token",
                    ADMIN_TOKEN,
                    "--kubeconfig",
                    str(folder / "kubeconfig"),
                    *options,
                ),
            ],
            folder / "apiserver.log",
        )
        self.schedulers = [self._scheduler(name) for name in SCHEDULERS]

    @property
    def programs(self) -> list[Program]:
        return [*([self.etcd] if self.etcd is not None else []), self.server, *self.schedulers]

    def __enter__(self) -> Self:
        for program in self.programs:
            program.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for program in reversed(self.programs):
            program.end()
        self.relay.close()

    def keep_logs(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        for program in self.programs:
            if program.log.exists():
                shutil.copy(program.log, directory / f"{self.store}-{program.log.name}")

    def _scheduler(self, name: str) -> Program:
        kubeconfig, configuration = self._folder / f"{name}.kubeconfig", self._folder / f"{name}.yaml"
        cluster = {"server": f"https://127.0.0.1:{self.relay.port}", "insecure-skip-tls-verify": True}
        kubeconfig.write_bytes(
            msgspec.json.encode(
                {
                    "clusters": [{"name": "c", "cluster": cluster}],
                    "users": [{"name": "u", "user": {"token": ADMIN_TOKEN}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        election = {"leaseDuration": f"{LEASE_S}s", "renewDeadline": f"{RENEW_S}s", "retryPeriod": "500ms"}
        configuration.write_bytes(
            msgspec.json.encode(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 500, "burst": 500},
                    "leaderElection": election,
                }
            )
        )
        words = [sys.executable, "-m", "mooring", "scheduler", "--config", str(configuration)]
        words += ["--bind-address", "127.0.0.1", "--secure-port", str(free_port())]
        return Program(name, words, self._folder / f"{name}.log")
