"""`mooring up --detach`: the cluster runs in the background, and the command returns when it is ready.

    command ── fork ── waits for the registry entry ── prints what the cluster printed ── exit code
                 └──── a session of its own, output to the log ── runs the cluster

1. Everything is validated before the fork, so that errors in the input are those of the command.
2. If the cluster ends before it is ready, the end of its log is printed, and the exit code is 1.
3. With `--wait` the command also waits for the workloads of `-f`. If they are not available in time, the exit code is
   1, and the cluster runs on.
4. Ctrl-C while the command waits stops the cluster.
"""

from __future__ import annotations

import os
import signal
import sys

import click

from mooring.cli.clusters.registry import ClusterState, Registration, running_clusters
from mooring.cli.errors import input_error
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real

CHECK_S = 0.05
LOG_LINES_SHOWN_MAX = 20
EXIT_FAILED = 1


def detach(registration: Registration, wait_s: float | None) -> bool:
    """Fork. Returns True in the process that runs the cluster, and False in the command when the cluster is ready.

    Raises `InputError`, and `SystemExit` if the cluster fails.
    """
    path = registration.log_path
    if path is None:
        raise input_error("--detach needs the registry of clusters, see the message above")
    try:
        log = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise input_error(f"cannot write the log of the cluster: {error.strerror}", str(path)) from None
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _move_to_background(log)
        return True
    registration.release()
    try:
        run_real(_wait(pid, log, wait_s))
    except KeyboardInterrupt:
        os.kill(pid, signal.SIGTERM)
        raise
    return False


def _move_to_background(log: int) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(log)


async def _wait(pid: int, log: int, wait_s: float | None) -> None:
    clock = SystemClock()
    end_s = None if wait_s is None else clock.now_s() + wait_s
    while True:
        state = next((each for each in running_clusters() if each.pid == pid), None)
        if state is not None and state.is_ready and (end_s is None or state.are_workloads_available):
            _print_log(log)
            return
        code = _exit_code(pid)
        if code is not None:
            _print_end(log)
            click.echo(f"mooring: the cluster ended before it was ready, with code {code}", err=True)
            raise SystemExit(EXIT_FAILED)
        if end_s is not None and clock.now_s() >= end_s:
            _print_end(log)
            click.echo(f"mooring: {_unfinished(state)} in time; the cluster runs on, `mooring down` stops it", err=True)
            raise SystemExit(EXIT_FAILED)
        await clock.wait(CHECK_S)


def _exit_code(pid: int) -> int | None:
    """Of the fork; None if it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _unfinished(state: ClusterState | None) -> str:
    is_ready = state is not None and state.is_ready
    return "the workloads were not available" if is_ready else "the cluster was not ready"


def _content(log: int) -> str:
    """What the cluster has printed. The file may be removed already."""
    size = os.fstat(log).st_size
    return os.pread(log, size, 0).decode(errors="replace")


def _print_log(log: int) -> None:
    click.echo(_content(log), nl=False)


def _print_end(log: int) -> None:
    lines = _content(log).rstrip("\n").splitlines()
    click.echo("\n".join(lines[-LOG_LINES_SHOWN_MAX:]), err=True)
