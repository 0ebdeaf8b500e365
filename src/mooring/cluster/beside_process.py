"""The process that `beside` starts: parts of a control plane that reach their API server over pipes.

Comes in   a line over which orders come, pipes as open files
Goes out   the work of the parts, until the line ends

 1. When the line ends the parts are told to stop, and finish what they have begun: their pipes are still served.
 2. When a pipe ends nobody is left to work for, and nothing that could be lost: the process is gone at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import socket
import sys

from mooring.client.pipe import PipeClient
from mooring.client.pipe_channel import LENGTH_BYTES
from mooring.cluster.beside import EXIT_REFUSED, Orders
from mooring.cluster.parts import PARTS
from mooring.cluster.settings import LOG_FORMAT
from mooring.controllers.settings import SettingError
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from mooring.kit.memory import end_loading, loading
from mooring.kit.tasks import TaskGroup

EXIT_ABANDONED = 4


def main(line: socket.socket) -> None:
    orders = _orders_from(line)
    if orders is None:
        return
    logging.basicConfig(level=orders.log_level, format=LOG_FORMAT, stream=sys.stderr)
    try:
        run_real(_run(orders, line))
    except ExceptionGroup as group:
        refusal = _refusal_in(group)
        if refusal is None:
            raise
        print(f"mooring: {refusal}", file=sys.stderr)
        raise SystemExit(EXIT_REFUSED) from None


async def _run(orders: Orders, line: socket.socket) -> None:
    clock, entropy = SystemClock(), Entropy(orders.seed, orders.entropy_name)
    async with TaskGroup("parts") as group:
        for part, number in orders.pipes.items():
            client = PipeClient(on_end=_leave)
            await client.open(socket.socket(fileno=number))
            group.start_background(PARTS[part](orders.settings, client, clock, entropy), name=part)
        end_loading()
        line.setblocking(False)
        await asyncio.get_running_loop().sock_recv(line, 1)  # nothing is ever said: it ends


def _leave() -> None:
    os._exit(EXIT_ABANDONED)


def _orders_from(line: socket.socket) -> Orders | None:
    """What we are told; None if whoever started us has changed his mind."""
    with line.makefile("rb") as told:
        length = told.read(LENGTH_BYTES)
        if not length:
            return None
        orders = pickle.loads(told.read(int.from_bytes(length, "big")))
    assert isinstance(orders, Orders), f"{orders!r} are no orders"
    return orders


def _refusal_in(group: ExceptionGroup[Exception]) -> SettingError | None:
    """What cannot be done however often it is tried."""
    for error in group.exceptions:
        found = _refusal_in(error) if isinstance(error, ExceptionGroup) else error
        if isinstance(found, SettingError):
            return found
    return None


if __name__ == "__main__":
    with loading():
        main(socket.socket(fileno=int(sys.argv[1])))
