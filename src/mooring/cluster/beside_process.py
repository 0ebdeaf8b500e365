"""The process that `beside` starts: parts of a control plane that reach their API server over pipes.

Comes in   orders on the standard input, pipes as open files
Goes out   the work of the parts, until the pipes end
"""

from __future__ import annotations

import logging
import pickle
import signal
import socket
import sys

from mooring.client.pipe import PipeClient
from mooring.cluster.beside import EXIT_REFUSED, Orders
from mooring.cluster.parts import PARTS
from mooring.controllers.settings import SettingError
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from mooring.kit.memory import end_loading, loading
from mooring.kit.tasks import TaskGroup


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # whoever started us hears it, and closes the pipes
    orders: Orders = pickle.load(sys.stdin.buffer)
    logging.basicConfig(
        level=orders.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    try:
        run_real(_run(orders))
    except ExceptionGroup as group:
        refusal = _refusal_in(group)
        if refusal is None:
            raise
        print(f"mooring: {refusal}", file=sys.stderr)
        raise SystemExit(EXIT_REFUSED) from None


async def _run(orders: Orders) -> None:
    clock, entropy = SystemClock(), Entropy(orders.seed, orders.entropy_name)
    async with TaskGroup("parts") as group:
        for part, number in orders.pipes.items():
            client = PipeClient(ends_with_it=True)
            await client.open(socket.socket(fileno=number))
            group.start_background(PARTS[part](orders.settings, client, clock, entropy), name=part)
            group.start(client.wait_ended(), name=f"{part}'s pipe")
        end_loading()


def _refusal_in(group: ExceptionGroup[Exception]) -> SettingError | None:
    """What cannot be done however often it is tried."""
    for error in group.exceptions:
        found = _refusal_in(error) if isinstance(error, ExceptionGroup) else error
        if isinstance(found, SettingError):
            return found
    return None


if __name__ == "__main__":
    with loading():
        main()
