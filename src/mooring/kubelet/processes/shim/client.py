"""Talking to a shim.

Comes in   what to run; signals, commands
Goes out   its reports, one after the other, until it has ended

 1. Nothing here waits but for reports: what is said to a shim is written into its pipe and forgotten.
 2. Whoever lets go of it (`close`) has its container killed: the shim sees its pipe end.
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

ERROR_DESCRIPTOR = 3
"""Where who becomes the container's process says why it cannot."""
_SOURCE = str(Path(mooring.__file__).parent.parent)
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from mooring.kubelet.processes.shim.program import main; main()"
)
_REPORT_BYTES_MAX = 256 * 1024


class Wanted(msgspec.Struct, frozen=True):
    """What a shim is to run."""

    command: Sequence[str]
    environment: dict[str, str]
    log: str
    record: str
    cgroups: Sequence[str] = ()
    kill_files: Sequence[str] = ()
    oom_files: Sequence[str] = ()
    error_fd: int = ERROR_DESCRIPTOR
    log_bytes_max: int = LOG_BYTES_MAX


class Report(msgspec.Struct, frozen=True):
    """What a shim tells. Which of its fields are given says what happened."""

    running: int = 0
    """The number of the process: it runs."""
    failed: str = ""
    """Why it cannot be started."""
    exited: int | None = None
    """With which code it ended."""
    is_out_of_memory: bool = False
    at: float = 0.0
    ran: int | None = None
    """Which command has ended, with its `code` and `output`; or why it could not be started (`refusal`)."""
    code: int = 0
    output: str = ""
    refusal: str = ""
    is_late: bool = False


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Report).decode


class ShimProcess:
    """A shim that runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._control = process.stdin
        self._reports = process.stdout

    @classmethod
    async def start(cls, wanted: Wanted) -> ShimProcess:
        """Raises `OSError` if there is no room for another process."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _PROGRAM, _SOURCE),
            stdin=PIPE,
            stdout=PIPE,
            cwd=os.sep,
            start_new_session=True,  # Ctrl-C is for us: we end containers in order
            limit=_REPORT_BYTES_MAX,
        )
        shim = cls(process)
        shim._say(wanted)
        return shim

    async def reports(self) -> AsyncIterator[Report]:
        while line := await self._reports.readline():
            yield _decode(line)

    def signal(self, number: int) -> None:
        """To the process and everybody of its group."""
        self._say({"signal": number})

    def kill(self) -> None:
        """Everybody of the container, at once."""
        self._say({"kill": True})

    def run(self, number: int, command: Sequence[str], timeout_s: float) -> None:
        """A command beside the container's process; its end is reported under the number."""
        self._say({"run": number, "command": command, "timeout_s": timeout_s})

    async def close(self) -> None:
        """Let go of it, and wait until it is gone, even if the caller is cancelled meanwhile."""
        self._control.close()
        cancelled: asyncio.CancelledError | None = None
        while self._process.returncode is None:
            try:
                await self._process.wait()
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        with suppress(OSError):  # it may have gone before it heard the last word; unasked, the loop would log that
            await self._control.wait_closed()

    def _say(self, message: object) -> None:
        if not self._control.is_closing():
            self._control.write(_encode(message) + b"\n")


def wanted_of(command: Sequence[str], environment: dict[str, str], log: Path, record: Path, cgroup: Cgroup) -> Wanted:
    return Wanted(
        command,
        environment,
        str(log),
        str(record),
        cgroup.directories,
        cgroup.kill_files,
        cgroup.oom_files,
    )
