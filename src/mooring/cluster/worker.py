"""The worker process: the scheduler and the controllers of a large cluster, on a core of their own.

Input: settings of the components, and the API server's request handler. Output: the components run in a second process
until `run_worker` is cancelled.

    this process:     API server ── Unix socket ══╗     pages ══ Unix socket ══╗
    worker process:                               ╚══ HTTP clients ── scheduler, controllers

1. The components use an `HttpClient`, as with any other API server.
2. Only the owner of the cluster may enter the folder of the socket. Each component authenticates with its own token.
   The tokens are new at every start of the cluster, and are never written to a file.
3. The worker receives its start message over the control socket, and later the stop message. Then it finishes its
   bindings and exits. If the control socket ends without a stop message, this process is gone, and the worker exits at
   once, also after `kill -9`. The worker has a session of its own: signals of the terminal do not reach it.
4. A worker that exits by itself is started again, with a backoff. The exception is `EXIT_INVALID_SETTINGS`.
5. The worker gets no keys, no tokens of users, and no address of a store.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from cryptography.fernet import Fernet

import mooring
from mooring.apiserver.http.handler import RequestHandler
from mooring.apiserver.http.request import RequestLimits
from mooring.apiserver.http.server import unix_listener
from mooring.cluster.component_pages import SCHEDULER_PATHS, forwarding_pages
from mooring.cluster.settings import SCHEDULER, ControlPlaneSettings
from mooring.cluster.worker_messages import EXIT_INVALID_SETTINGS, STOP, StartMessage
from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.serving.server import Page

RESTART = Backoff(initial_s=1.0, max_s=30.0)
LONG_RUN_S = 60.0
"""After a run of this length the backoff starts again."""
STOP_S_MAX = 8.0
"""How long a worker may take to stop. A scheduler finishes its bindings within five seconds."""
MODULE = "mooring.cluster.worker_process"
SOCKET_PATH_BYTES_MAX = 103
"""The longest path of a Unix socket on macOS; Linux allows 107 bytes."""
_SOCKET_PREFIX = "mooring-worker-"
_PAGES_SOCKET = "pages.sock"
_RANDOM_LENGTH = 8
"""Characters that TemporaryDirectory adds to the prefix."""

log = logging.getLogger(__name__)


class WorkerSettingsError(Exception):
    """The worker rejects its settings, and will not run however often it is started."""


@dataclass(frozen=True, slots=True)
class WorkerAccess:
    """How the worker reaches the API server of this process."""

    handler: RequestHandler
    limits: RequestLimits
    tokens: Mapping[str, str] = field(repr=False)
    """The token of each component that runs in the worker."""


def new_tokens(components: Iterable[str]) -> dict[str, str]:
    """A random token for each component."""
    return {component: Fernet.generate_key().decode("ascii") for component in components}


async def run_worker(
    settings: ControlPlaneSettings, access: WorkerAccess, clock: Clock, entropy: Entropy, pages: dict[str, Page]
) -> None:
    """Run the components of `access.tokens` in a worker until cancelled. Raises `WorkerSettingsError`.

    Adds their pages to `pages`.
    """
    with TemporaryDirectory(prefix=_SOCKET_PREFIX, dir=_socket_parent()) as folder:
        path, pages_path = Path(folder) / "api.sock", Path(folder) / _PAGES_SOCKET
        level = logging.getLogger("mooring").getEffectiveLevel()
        message = StartMessage(
            settings,
            entropy.seed,
            entropy.name,
            level,
            str(path),
            str(pages_path),
            access.tokens,
            module_path=tuple(sys.path) if settings.plugins else (),
        )
        if SCHEDULER in access.tokens:
            pages |= forwarding_pages(SCHEDULER_PATHS, pages_path)
        async with unix_listener(access.handler, access.limits, path):
            await keep_running(message, clock)


def _socket_parent() -> str:
    """The system's directory for temporary files, or /tmp if the paths of sockets there would be too long.

    Not the data directory, whose path may be long, too."""
    longest = Path(gettempdir()) / f"{_SOCKET_PREFIX}{'x' * _RANDOM_LENGTH}" / _PAGES_SOCKET
    return gettempdir() if len(os.fsencode(longest)) <= SOCKET_PATH_BYTES_MAX else "/tmp"


async def keep_running(message: StartMessage, clock: Clock) -> None:
    """Start a worker, and another one whenever it exits, until cancelled. Raises `WorkerSettingsError`."""
    name = f"the worker process ({', '.join(message.tokens)})"
    short_runs = 0
    while True:
        started_s = clock.now_s()
        try:
            code = await _run_once(message)
            outcome = f"exited with code {code}"
        except OSError as error:
            code, outcome = 0, f"could not be started: {error}"
        if code == EXIT_INVALID_SETTINGS:
            raise WorkerSettingsError(f"{name} rejects its settings, see the message above")
        short_runs = 1 if clock.now_s() - started_s > LONG_RUN_S else short_runs + 1
        delay_s = RESTART.delay_s(short_runs)
        log.error("%s %s; it is started again in %.0f s", name, outcome, delay_s)
        await clock.wait(delay_s)


async def _run_once(message: StartMessage) -> int:
    """Returns the exit code."""
    control, worker_end = socket.socketpair()
    with control:
        with worker_end:
            process = await _start(worker_end.fileno())
        control.setblocking(False)
        try:
            await _send(control, message.framed())
            return await process.wait()
        finally:
            await _stop(process, control)


async def _start(control: int) -> asyncio.subprocess.Process:
    # With -P the working directory is not searched for modules, so the path of this package is passed on.
    package_path = str(Path(mooring.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (package_path, os.environ.get("PYTHONPATH", ""))))
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        MODULE,
        str(control),
        stdin=asyncio.subprocess.DEVNULL,
        pass_fds=(control,),
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


async def _send(control: socket.socket, data: bytes) -> None:
    # A worker that has exited is noticed by its exit code.
    with suppress(ConnectionError):
        await asyncio.get_running_loop().sock_sendall(control, data)


async def _stop(process: asyncio.subprocess.Process, control: socket.socket) -> None:
    if process.returncode is not None:
        return
    try:
        async with asyncio.timeout(STOP_S_MAX):
            await _send(control, STOP)
            await process.wait()
    except TimeoutError:
        log.warning("worker process %d does not stop, and is killed", process.pid)
        process.kill()
        await process.wait()
