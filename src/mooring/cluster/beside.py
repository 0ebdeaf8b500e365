"""A second process beside the API server's: scheduler and controllers of a large cluster, on a core of their own.

Comes in   what was asked for, clients that write under the names of those parts
Goes out   the parts at work in a process of their own, for as long as this one lasts

    this process:   API server ── client ── pipe ══╗
    the other one:                               ══╝ pipe ── scheduler
                                                 ═══ pipe ── controllers

 1. A part cannot tell where it runs: it has a client, time and chance, as always.
 2. The other process hears of no signal and no terminal. It ends when its pipes do, so it never outlives this one, not
    even after `kill -9`.
 3. If it ends by itself, that is logged, and it is started again: the parts begin with what the API server tells them,
    as they do after every start. Only if it says that it cannot do what was asked for, that is the end.
 4. It is handed no tokens and no keys.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from mooring.client.pipe_server import PipeServer
from mooring.client.promise import Client
from mooring.cluster.settings import ClusterSettings
from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup

AGAIN_S = 1.0
ENDING_S_MAX = 5.0
WORTH_A_PROCESS_NODES = 500
"""Below that a second process costs more memory and start than it saves."""
EXIT_REFUSED = 3
"""How the other process ends when it was asked for something that is not to be had."""
MODULE = "mooring.cluster.beside_process"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Orders:
    """What the other process is told when it starts."""

    settings: ClusterSettings
    seed: int
    entropy_name: str
    log_level: int
    pipes: Mapping[str, int]
    """Which part has which end of which pipe, by its number among the open files."""


MakeOrders = Callable[[Mapping[str, int]], Orders]


def without_secrets(settings: ClusterSettings) -> ClusterSettings:
    return replace(settings, token="", users={})


class RefusedError(Exception):
    """The other process will not start, however often it is tried."""


async def run_beside(clients: Mapping[str, Client], make_orders: MakeOrders, clock: Clock) -> None:
    """Have the parts run in another process until cancelled. Raises `RefusedError`."""
    parts = " and the ".join(clients)
    while True:
        code = await _run_once(clients, make_orders)
        if code == EXIT_REFUSED:
            raise RefusedError(f"the process of the {parts} refuses to start, as it says above")
        log.error("the process of the %s ended (code %d); it is started again in %.0f s", parts, code, AGAIN_S)
        await clock.wait(AGAIN_S)


async def _run_once(clients: Mapping[str, Client], make_orders: MakeOrders) -> int:
    with ExitStack() as stack:
        ends = {part: socket.socketpair() for part in clients}
        for here, there in ends.values():
            stack.callback(here.close)
            stack.callback(there.close)
        theirs = {part: there.fileno() for part, (_, there) in ends.items()}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", MODULE, stdin=asyncio.subprocess.PIPE, pass_fds=tuple(theirs.values())
        )
        for _, there in ends.values():
            there.close()
        try:
            async with TaskGroup("beside") as group:
                for part, client in clients.items():
                    group.start_background(PipeServer(client).serve(ends[part][0]), name=part)
                await process.communicate(pickle.dumps(make_orders(theirs)))
        finally:
            await _end(process)
    assert process.returncode is not None
    return process.returncode


async def _end(process: asyncio.subprocess.Process) -> None:
    """Its pipes are closed by now, and it ends by itself."""
    if process.returncode is not None:
        return
    try:
        async with asyncio.timeout(ENDING_S_MAX):
            await process.wait()
    except TimeoutError:
        log.warning("process %d does not end; it is killed", process.pid)
        process.kill()
        await process.wait()


def processes_for(nodes: int) -> int:
    """How many processes a cluster of that size is worth, on this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 2 if nodes >= WORTH_A_PROCESS_NODES and cores > 1 else 1
