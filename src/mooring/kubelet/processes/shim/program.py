"""The shim: the parent of a container's process, which ends with the kubelet.

    kubelet ── control (stdin) ──> shim ── fork ──> the container's process, in its own session and `sandbox`
            <── reports (stdout) ──     <── pipes ── its output, into log files

Input: on stdin one JSON document per line: first what to run, then signals and commands. End of file means that the
kubelet has ended. Output: on stdout one JSON document per line: running, failed, exited, results of commands.

 1. When the kubelet ends in any way, the shim kills the container and ends.
 2. When the container's process ends, all its descendants are killed, as in a PID namespace. The shim is a subreaper,
    so double forks do not escape.
 3. If the shim is killed, the kernel kills the container's process; `stale_processes` finds the rest.
 4. The log is complete before the end is reported. Lines are `<time> stdout F text`; long lines are split (P). A file
    of `LOG_BYTES_MAX` is rotated, `LOG_FILES_MAX` are kept.

The shim is a separate program with the standard library only: there is one per container, and the rest of mooring
would take 50 MB each. For the same reason it reads the clock itself.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from contextlib import suppress

from mooring.kubelet.processes.shim.linux import (
    Message,
    adopt_orphans,
    boot_id,
    descendants_of,
    has_oom_kill,
    kill_group,
    spawn,
    start_ticks,
)
from mooring.kubelet.processes.shim.log import LOG_BYTES_MAX, LogFile
from mooring.kubelet.processes.shim.sandbox import NONE, open_user_namespace

OUTPUT_BYTES_MAX = 10 * 1024
"""The limit on the output of a command."""
DRAIN_S_MAX = 2.0
"""The time limit for reading output after the end, if another process holds the pipe open."""
KILL_ROUNDS_MAX = 200
DESCRIPTORS_MAX = 1 << 20
_READ_BYTES = 64 * 1024


def main() -> None:
    os.closerange(3, DESCRIPTORS_MAX)  # descriptors that were inherited
    line = _first_line()
    if line:
        Shim(json.loads(line)).run()


class ExecCommand:
    """A probe or hook that runs beside the container's process."""

    def __init__(self, number: int, pid: int, output: int, errors: int, end_s: float) -> None:
        self.number = number
        self.pid = pid
        self.output = output
        self.errors = errors
        self.end_s = end_s
        self.output_read = b""
        self.is_timed_out = False


class Shim:
    """One container, from start to end."""

    def __init__(self, config: Message) -> None:
        self._config = config
        self._log = LogFile(config["log"], config.get("log_bytes_max", LOG_BYTES_MAX))
        self._pid = 0
        self._streams: dict[int, str] = {}
        self._commands: dict[int, ExecCommand] = {}
        self._control = b""
        self._is_over = False
        self._status: int | None = None
        self._user_namespace: int | None = None
        self._poll = select.poll()
        self._wakeup, wakeup_end = os.pipe()
        for end in (self._wakeup, wakeup_end):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)

    def run(self) -> None:
        adopt_orphans()
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGTERM, lambda number, frame: self._stop_all())
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.set_blocking(0, False)
        error = self._start()
        if error:
            self._end({"failed": error, "at": time.time()})
            return
        self._report({"running": self._pid, "at": time.time()})
        for descriptor in (0, self._wakeup, *self._streams):
            self._poll.register(descriptor, select.POLLIN)
        while self._status is None and not self._is_over:
            self._poll_once()
        finished_s = time.time()
        self._kill_everything()
        self._drain()
        self._end(self._exit_report(finished_s))

    # Start

    def _start(self) -> str:
        """Start the process. Returns why that failed."""
        config = self._config
        try:
            self._user_namespace = open_user_namespace(config["sandbox"])
        except OSError as failure:
            return str(failure)
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        why, why_end = os.pipe()
        self._pid = spawn(config["command"], config, (out_end, err_end), why_end, self._user_namespace)
        for end in (out_end, err_end, why_end):
            os.close(end)
        self._write_record()
        error = self._read_start_error(why)
        os.close(why)
        if error:
            self._kill_everything()
            return error
        self._streams = {out: "stdout", err: "stderr"}
        return ""

    def _read_start_error(self, why: int) -> str:
        """The error of a process that cannot exec the command; empty once it has."""
        received, poll = b"", select.poll()
        for descriptor in (why, 0):
            poll.register(descriptor, select.POLLIN)
        while not self._is_over:
            for descriptor, _ in poll.poll():
                if descriptor == 0:
                    self._read_control()
                elif data := os.read(why, _READ_BYTES):
                    received += data
                else:
                    return received.decode(errors="replace").strip()
        return "it was stopped before it ran"

    def _write_record(self) -> None:
        """Record the process, for `stale_processes`."""
        path = self._config["record"]
        record = {"pid": self._pid, "started": start_ticks(self._pid), "boot": boot_id()}
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(record, file)
        os.rename(f"{path}.new", path)

    # Events

    def _poll_once(self) -> None:
        for descriptor, _ in self._poll.poll(self._poll_timeout_ms()):
            if descriptor == 0:
                self._read_control()
            elif descriptor == self._wakeup:
                with suppress(BlockingIOError):
                    os.read(self._wakeup, _READ_BYTES)
            elif descriptor in self._streams:
                self._copy(descriptor)
            else:
                self._listen(descriptor)
        self._kill_timed_out()
        self._reap()

    def _read_control(self) -> None:
        try:
            data = os.read(0, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._stop_all()
            return
        *lines, self._control = (self._control + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "signal" in message:
                with suppress(ProcessLookupError):
                    os.killpg(self._pid, message["signal"])
            elif "kill" in message:
                self._kill_everything()
            elif "run" in message:
                self._run_command(message)

    def _stop_all(self) -> None:
        self._is_over = True

    def _copy(self, stream: int) -> None:
        data = os.read(stream, _READ_BYTES)
        if data:
            self._log.write(self._streams[stream], data)
            return
        self._poll.unregister(stream)
        os.close(stream)
        del self._streams[stream]

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._pid:
                self._status = status
            for command in list(self._commands.values()):
                if command.pid == pid:
                    self._finish(command, os.waitstatus_to_exitcode(status))

    # Commands

    def _run_command(self, message: Message) -> None:
        output, output_end = os.pipe()
        errors, errors_end = os.pipe()
        has_namespaces = self._config["sandbox"]["level"] != NONE
        sandbox = {**self._config["sandbox"], "mounts": [], "joins": self._pid if has_namespaces else 0}
        desired = {**self._config, "sandbox": sandbox}
        pid = spawn(message["command"], desired, (output_end, output_end), errors_end, self._user_namespace)
        os.close(output_end)
        os.close(errors_end)
        for end in (output, errors):
            os.set_blocking(end, False)
        end_s = time.monotonic() + message["timeout_s"]
        self._commands[output] = ExecCommand(message["run"], pid, output, errors, end_s)
        self._poll.register(output, select.POLLIN)

    def _listen(self, output: int) -> None:
        command = self._commands.get(output)
        if command is None:
            return
        data = _read_some(output)
        if data:
            command.output_read = (command.output_read + data)[:OUTPUT_BYTES_MAX]
        else:
            # Its end is reported when it is reaped: it may have closed its output and still run.
            self._poll.unregister(output)

    def _finish(self, command: ExecCommand, code: int) -> None:
        kill_group(command.pid)  # processes that it left in its group
        while len(command.output_read) < OUTPUT_BYTES_MAX and (data := _read_some(command.output)):
            command.output_read = (command.output_read + data)[:OUTPUT_BYTES_MAX]
        error = _read_some(command.errors)
        with suppress(KeyError):
            self._poll.unregister(command.output)
        for end in (command.output, command.errors):
            os.close(end)
        del self._commands[command.output]
        self._report(
            {
                "ran": command.number,
                "code": code if code >= 0 else 128 - code,
                "output": command.output_read.decode(errors="replace"),
                "error": error.decode(errors="replace").strip(),
                "is_timed_out": command.is_timed_out,
            }
        )

    def _kill_timed_out(self) -> None:
        now_s = time.monotonic()
        for command in self._commands.values():
            if command.end_s <= now_s and not command.is_timed_out:
                command.is_timed_out = True
                kill_group(command.pid)
                with suppress(ProcessLookupError):
                    os.kill(command.pid, signal.SIGKILL)  # it may not have a group yet

    def _poll_timeout_ms(self) -> int | None:
        ends = [command.end_s for command in self._commands.values() if not command.is_timed_out]
        return max(0, int((min(ends) - time.monotonic()) * 1000) + 1) if ends else None

    # End

    def _kill_everything(self) -> None:
        """Kill the process group, the cgroup, and all descendants."""
        for _ in range(KILL_ROUNDS_MAX):
            for path in self._config["kill_files"]:
                with suppress(OSError), open(path, "w", encoding="ascii") as file:
                    file.write("1")
            if self._status is None:
                kill_group(self._pid)
            descendants = descendants_of(os.getpid())
            for pid in descendants:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._reap()
            if not descendants:
                return
            time.sleep(0.005)

    def _drain(self) -> None:
        end_s = time.monotonic() + DRAIN_S_MAX
        while self._streams and (rest_s := end_s - time.monotonic()) > 0:
            ready, _, _ = select.select(list(self._streams), [], [], rest_s)
            for stream in ready:
                self._copy(stream)

    def _exit_report(self, finished_s: float) -> Message:
        code = os.waitstatus_to_exitcode(self._status) if self._status is not None else -signal.SIGKILL
        return {
            "exited": code if code >= 0 else 128 - code,
            "signal": max(0, -code),
            "is_out_of_memory": any(has_oom_kill(path) for path in self._config["oom_files"]),
            "at": finished_s,
        }

    def _end(self, message: Message) -> None:
        self._log.close()
        for directory in self._config["cgroups"]:
            with suppress(OSError):
                os.rmdir(directory)
        with suppress(OSError):
            os.unlink(self._config["record"])
        self._report(message)

    def _report(self, message: Message) -> None:
        with suppress(OSError):  # the kubelet may have ended
            os.write(1, json.dumps(message).encode() + b"\n")


def _first_line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        one = os.read(0, 1)  # the loop reads the following lines
        if not one:
            return b""
        line += one
    return line


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _READ_BYTES)
    except BlockingIOError:
        return b""
