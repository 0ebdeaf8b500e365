"""Starts a shim and talks to it.

Input: what to run; signals and commands. Output: the reports of the shim, until it ends.

 1. Only reading reports waits. Messages to a shim are written into its pipe.
 2. `close` kills the container: the shim sees the end of its pipe.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE

import msgspec

import mooring
from mooring.kubelet.processes.cgroups import Cgroup
from mooring.kubelet.processes.shim.log import LOG_BYTES_MAX
from mooring.kubelet.processes.shim.sandbox import NONE

_SOURCE = str(Path(mooring.__file__).parent.parent)
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from mooring.kubelet.processes.shim.program import main; main()"
)
_REPORT_BYTES_MAX = 256 * 1024


class ShimMount(msgspec.Struct, frozen=True, array_like=True):
    """A file or directory of the host in a sandbox."""

    source: str
    target: str
    is_read_only: bool = False
    has_mapped_ids: bool = False
    """Whether it has the ids of the pod on disk, whatever the ids of its user namespace are."""


class Sandbox(msgspec.Struct, frozen=True):
    """The sandbox of a container, see `sandbox`."""

    level: str = NONE
    """Whether it has a mount namespace, and which rights create it: NONE, ROOT or USER_NAMESPACE."""
    directory: str = os.sep
    mounts: Sequence[ShimMount] = ()
    has_pid_namespace: bool = False
    is_root_read_only: bool = False
    id_map: dict[str, str] = {}
    """For ROOT: the lines of `uid_map` and `gid_map` of its user namespace; empty: none."""
    user: int = 0
    group: int = 0
    groups: Sequence[int] = ()
    sets_user: bool = False
    capabilities: Sequence[int] | None = None
    """The bounding set; None: as the kubelet's."""
    has_no_new_privileges: bool = False
    has_ipc_namespace: bool = False
    joins: int = 0


class ShimConfig(msgspec.Struct, frozen=True):
    """What a shim runs."""

    command: Sequence[str]
    environment: dict[str, str]
    log: str
    record: str
    cgroups: Sequence[str] = ()
    kill_files: Sequence[str] = ()
    oom_files: Sequence[str] = ()
    sandbox: Sandbox = Sandbox()
    log_bytes_max: int = LOG_BYTES_MAX


class ShimReport(msgspec.Struct, frozen=True):
    """A report of a shim. Which fields are set depends on what happened."""

    running: int = 0
    """The pid of the started process."""
    failed: str = ""
    """Why the process could not be started."""
    exited: int | None = None
    """The exit code."""
    is_out_of_memory: bool = False
    at: float = 0.0
    ran: int | None = None
    """The number of a command that ended, with `code` and `output`; or why it could not be started (`error`)."""
    code: int = 0
    output: str = ""
    error: str = ""
    is_timed_out: bool = False


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ShimReport).decode


class ShimProcess:
    """A running shim."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._control = process.stdin
        self._reports = process.stdout

    @classmethod
    async def start(cls, config: ShimConfig) -> ShimProcess:
        """Raises `OSError` if no process can be created."""
        process = await asyncio.create_subprocess_exec(
            # Without site-packages, whose lookup would take most of the start.
            *(sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, _SOURCE),
            stdin=PIPE,
            stdout=PIPE,
            env={},  # that of the kubelet may have secrets, and the container could read it
            cwd=os.sep,
            start_new_session=True,  # Ctrl-C reaches the kubelet only, which stops containers in order
            limit=_REPORT_BYTES_MAX,
        )
        shim = cls(process)
        shim._send(config)
        return shim

    async def reports(self) -> AsyncIterator[ShimReport]:
        while line := await self._reports.readline():
            yield _decode(line)

    def signal(self, number: int) -> None:
        """Send a signal to the process group of the container."""
        self._send({"signal": number})

    def kill(self) -> None:
        """Kill all processes of the container."""
        self._send({"kill": True})

    def run(self, number: int, command: Sequence[str], timeout_s: float) -> None:
        """Run a command in the sandbox of the container; its end is reported with the number."""
        self._send({"run": number, "command": command, "timeout_s": timeout_s})

    async def close(self) -> None:
        """Close the pipe and wait for the shim to end, even if the caller is cancelled."""
        self._control.close()
        cancelled: asyncio.CancelledError | None = None
        while self._process.returncode is None:
            try:
                await self._process.wait()
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        with suppress(OSError):  # the shim may have ended before it read the last message
            await self._control.wait_closed()

    def _send(self, message: object) -> None:
        if not self._control.is_closing():
            self._control.write(_encode(message) + b"\n")


def shim_config(
    command: Sequence[str], environment: dict[str, str], log: Path, record: Path, cgroup: Cgroup, sandbox: Sandbox
) -> ShimConfig:
    return ShimConfig(
        command,
        environment,
        str(log),
        str(record),
        cgroup.directories,
        cgroup.kill_files,
        cgroup.oom_files,
        sandbox,
    )
