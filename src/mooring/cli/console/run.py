"""Runs `mooring console` until Ctrl-C.

1. Nothing is written to the cluster: the client refuses to send writes.
2. The link is printed after the cluster was read, so that the first page is complete.
"""

from __future__ import annotations

import asyncio
import logging
import signal

import click

from mooring.api.kinds import NODE
from mooring.cli.cluster_source.live import connect
from mooring.cli.errors import input_error
from mooring.cli.options import note
from mooring.cli.scheduler.configuration import checked_configuration, read_configuration
from mooring.cli.terminal import ProgressBar, counted
from mooring.client.errors import ClientError
from mooring.client.http.client import HttpClient, HttpLimits, collection_path
from mooring.client.http.connection import Connection
from mooring.client.http.dial import TlsError
from mooring.cluster.observer import Observer
from mooring.cluster.secure_port import ConsoleLogin, SecurePort
from mooring.kit.clock import Clock, SystemClock
from mooring.kit.entropy import system_entropy
from mooring.kit.logs import start_logs
from mooring.kit.loop import run_real
from mooring.kit.tasks import errors_in
from mooring.scheduler.config import SchedulerConfiguration
from mooring.serving.http.listener import PortTakenError
from mooring.serving.tls import ServingTls

LISTS_AT_ONCE = 4


def run_console(kubeconfig: str, context: str, config: str | None, port: int, bind_address: str) -> None:
    """Serves until Ctrl-C. Raises `InputError`."""
    clock = SystemClock()
    document = read_configuration(config) if config else None
    configuration, _ = checked_configuration(config or "", document, ())
    connection = connect(kubeconfig, context, clock)
    start_logs("text", logging.WARNING)
    login = ConsoleLogin(_welcome, "Start the command again: mooring console")
    tls = ServingTls(name="mooring-console")
    secure_port = SecurePort(bind_address, port, tls, is_lookup_skipped=True, console=login)
    try:
        run_real(_run(connection, configuration, secure_port, clock))
    except (ClientError, TlsError) as error:
        text = str(error).removeprefix(f"GET {connection.server}{collection_path(NODE, '')}: ")
        raise input_error(f"cannot read the cluster at {connection.server}: {text}") from None
    except ExceptionGroup as group:
        taken = next((error for error in errors_in(group) if isinstance(error, PortTakenError)), None)
        if taken is None:
            raise
        raise input_error(str(taken)) from None


async def _run(
    connection: Connection, configuration: SchedulerConfiguration, secure_port: SecurePort, clock: Clock
) -> None:
    entropy, loop, stop = system_entropy(), asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    limits = HttpLimits(in_flight_max=LISTS_AT_ONCE)
    client = HttpClient(
        connection, clock, entropy.fork("client"), limits=limits, component="console", may_write=lambda: False
    )
    async with client:
        observer = Observer(client, configuration, connection.server, clock, entropy)
        unreadable = await observer.find_unreadable()
        if unreadable:
            note(f"you may not list {', '.join(unreadable)}: rules about them are ignored")
        with ProgressBar(f"reading {connection.server}", observer.kinds, clock) as progress:
            await observer.run(
                secure_port, stop, on_read=lambda: progress.advance(1), on_ready=lambda: _summary(observer)
            )


def _summary(observer: Observer) -> None:
    columns, pending = observer.scheduler.engine.columns, len(observer.scheduler.queue)
    counts = f"{counted(columns.node_count, 'node')}, {counted(len(columns.pods), 'pod')} on them, {pending} pending"
    click.echo(f"{observer.server}: {counts}")


def _welcome(link: str) -> None:
    click.echo(f"  console      {link}")
    click.echo("               (logs in once; start the command again for a new link)")
    click.echo("Read-only. Another scheduler decides there: attempts are recomputed. Ctrl-C ends it.")
