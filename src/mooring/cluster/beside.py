"""A second process beside the API server's: scheduler and controllers of a large cluster, on a core of their own.

Comes in   what the parts are told, clients that write under their names
Goes out   the parts at work in a process of their own, for as long as this one lasts

    this process:   API server ── client ── pipe ══╗
    the other one:                               ══╝ pipe ── scheduler
                                                 ═══ pipe ── controllers

 1. A part cannot tell where it runs: it has a client, time and chance, as always.
 2. A line leads to the other process, over which it is told what to do. When the line ends it finishes what it has
    begun, over pipes that are still served, and ends. When a pipe ends nothing can be finished any more, and it is gone
    at once: it never outlives this process, not even after `kill -9`. Of signals and the terminal it hears nothing.
 3. If it ends by itself, that is logged, and it is started again, later each time if it does not live long: the parts
    begin with what the API server tells them, as they do after every start. Only if it says that it cannot do what was
    asked for, that is the end.
 4. It is told nothing but what the parts need: no tokens, no keys, no address of a store.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import mooring
from mooring.client.interface import Client
from mooring.client.pipe_channel import LENGTH_BYTES
from mooring.client.pipe_server import PipeServer
from mooring.cluster.settings import PartSettings
from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

AGAIN = Backoff(initial_s=1.0, max_s=30.0)
LONG_LIFE_S = 60.0
ENDING_S_MAX = 8.0
"""A scheduler takes five at most to finish its bindings."""
WORTH_A_PROCESS_NODES = 500
"""Below that a second process costs more memory and start than it saves."""
EXIT_REFUSED = 3
"""How the other process ends when it was asked for something that is not to be had."""
MODULE = "mooring.cluster.beside_process"

log = logging.getLogger(__name__)


class RefusedError(Exception):
    """The other process will not start, however often it is tried."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What the other process is told when it starts."""

    settings: PartSettings
    seed: int
    entropy_name: str
    log_level: int
    pipes: Mapping[str, int]
    """Which part has which end of which pipe, by its number among the open files."""


async def run_beside(settings: PartSettings, clients: Mapping[str, Client], clock: Clock, entropy: Entropy) -> None:
    """Have the parts run in another process until cancelled. Raises `RefusedError`."""
    name = f"the process of the {' and the '.join(clients)}"
    short_lives = 0
    while True:
        began_s = clock.now_s()
        try:
            code = await _run_once(settings, clients, entropy)
            became = f"ended (code {code})"
        except OSError as error:
            code, became = 0, f"could not be started: {error}"
        if code == EXIT_REFUSED:
            raise RefusedError(f"{name} refuses to start, as it says above")
        short_lives = 1 if clock.now_s() - began_s > LONG_LIFE_S else short_lives + 1
        delay_s = AGAIN.delay_s(short_lives)
        log.error("%s %s; it is started again in %.0f s", name, became, delay_s)
        await clock.wait(delay_s)


async def _run_once(settings: PartSettings, clients: Mapping[str, Client], entropy: Entropy) -> int:
    with ExitStack() as stack:
        line, their_line = _pair(stack)
        pairs = {part: _pair(stack) for part in clients}
        pipes = {part: theirs.fileno() for part, (_, theirs) in pairs.items()}
        process = await _start(their_line.fileno(), tuple(pipes.values()))
        for theirs in (their_line, *(theirs for _, theirs in pairs.values())):
            theirs.close()
        async with TaskGroup("beside") as group:
            try:
                for part, client in clients.items():
                    group.start_background(PipeServer(client).serve(pairs[part][0]), name=part)
                level = logging.getLogger().getEffectiveLevel()
                await _tell(line, Orders(settings, entropy.seed, entropy.name, level, pipes))
                return await process.wait()
            finally:
                line.close()
                await _end(process)


def _pair(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    here, there = socket.socketpair()
    stack.callback(here.close)
    stack.callback(there.close)
    return here, there


async def _start(line: int, pipes: tuple[int, ...]) -> asyncio.subprocess.Process:
    # With -P nothing is taken from where we happen to stand; where this package was found is said instead.
    found = str(Path(mooring.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (found, os.environ.get("PYTHONPATH", ""))))
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        MODULE,
        str(line),
        stdin=asyncio.subprocess.DEVNULL,
        pass_fds=(line, *pipes),
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


async def _tell(line: socket.socket, orders: Orders) -> None:
    line.setblocking(False)
    told = pickle.dumps(orders)
    try:
        await asyncio.get_running_loop().sock_sendall(line, len(told).to_bytes(LENGTH_BYTES, "big") + told)
    except ConnectionError:
        log.debug("the other process was gone before it had its orders")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Its line is closed by now, and it ends by itself."""
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
