"""The main module of the worker process: components that reach the API server over a Unix socket.

Input: a control socket, whose number is the only argument. Output: the components run until the stop message.

1. After the stop message the components finish their bindings: the API server answers until the worker has exited.
2. When the control socket ends, the process of the API server is gone, and the worker exits at once.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.http.connection import UNIX, Connection, Identity, StaticCredentials, bearer
from mooring.cluster.component_pages import pages_listener
from mooring.cluster.control_plane import CONTROL_PLANE, Pages
from mooring.cluster.settings import COMPONENT_NAMES
from mooring.cluster.worker_messages import EXIT_ABANDONED, EXIT_INVALID_SETTINGS, StartMessage, receive_start
from mooring.controllers.settings import SettingError
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.kit.logs import start_logs
from mooring.kit.loop import run_real
from mooring.kit.memory import end_loading, loading
from mooring.kit.tasks import TaskGroup, errors_in

LIMITS = HttpLimits(requests_per_s=0.0, in_flight_max=150)
"""The API server of the same cluster is the only limit. It accepts 400 requests at a time, of all clients."""


def main(control: socket.socket) -> None:
    message = receive_start(control)
    if message is None:
        return
    start_logs(message.settings.log_format, message.log_level)
    sys.path += [folder for folder in message.module_path if folder not in sys.path]
    try:
        run_real(_run(message, control))
    except ExceptionGroup as group:
        error = next((error for error in errors_in(group) if isinstance(error, SettingError)), None)
        if error is None:
            raise
        print(f"mooring: {error}", file=sys.stderr)
        raise SystemExit(EXIT_INVALID_SETTINGS) from None


async def _run(message: StartMessage, control: socket.socket) -> None:
    clock, entropy, stop = SystemClock(), Entropy(message.seed, message.entropy_name), asyncio.Event()
    control.setblocking(False)
    pages: Pages = {}
    async with TaskGroup("control") as outer, AsyncExitStack() as stack:
        await stack.enter_async_context(pages_listener(pages, clock, Path(message.pages_path)))
        outer.start_background(_follow(control, stop), name="control socket")
        async with TaskGroup("components") as group:
            for component, token in message.tokens.items():
                credentials = StaticCredentials(Identity(bearer(token)))
                client = HttpClient(
                    Connection(f"{UNIX}{message.socket_path}", credentials=credentials),
                    clock,
                    entropy.fork(f"{component} client"),
                    limits=LIMITS,
                    product=COMPONENT_NAMES[component],
                )
                await stack.enter_async_context(client)
                run = CONTROL_PLANE[component](message.settings, client, clock, entropy, pages)
                group.start_background(run, name=component)
            end_loading()
            await stop.wait()


async def _follow(control: socket.socket, stop: asyncio.Event) -> None:
    """Set `stop` after the stop message. Exit when the other process is gone."""
    while await asyncio.get_running_loop().sock_recv(control, 1):
        stop.set()
    os._exit(EXIT_ABANDONED)


if __name__ == "__main__":
    with loading():
        main(socket.socket(fileno=int(sys.argv[1])))
