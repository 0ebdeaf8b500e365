"""Runs a cluster for `mooring up` until Ctrl-C.

1. The first signal stops everything in order, the second one at once. Neither leaves temporary files.
2. A cluster in memory has its kubeconfig in a private temporary directory, which is removed at the end, also if the
   start fails. Any other kubeconfig stays where it was written.
3. A dump is cloned before the components start; objects of `-f` are created when they run.
4. The banner is printed when the nodes are registered, so that the commands in it find them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import shutil
import signal
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mooring import __version__
from mooring.apiserver.server import ApiServer
from mooring.cli.errors import input_error
from mooring.cli.up.settings import KUBECONFIG_NAME, UpOptions, cluster_settings
from mooring.cluster.cluster import ClusterError, RunningCluster, run_cluster
from mooring.cluster.settings import LOG_FORMAT, PROCESS, ClusterSettings
from mooring.controllers.settings import SettingError
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import system_entropy
from mooring.kit.loop import run_real
from mooring.kit.memory import end_loading
from mooring.kit.tasks import TaskGroup
from mooring.kit.temporary_directory import remove_temporary_directories, temporary_directory

if TYPE_CHECKING:
    from mooring.cli.manifests.read import PlainObject
    from mooring.cluster.clone import CloneReport

FAILURES_SHOWN_MAX = 20
FAILURE_LETTERS_MAX = 300
ADDED_SHOWN_MAX = 5
EXIT_FAILED = 1


def wrapped(line: str, width: int) -> str:
    """A line for a terminal of that width, with continuation lines indented."""
    return textwrap.fill(line, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def clone_lines(report: CloneReport, took_s: float) -> Iterator[str]:
    """The result of `--from`: a summary, then what needs attention."""
    yield f"cloned {_cloned(report)} in {took_s:.1f} s"
    if report.added:
        shown = ", ".join(report.added[:ADDED_SHOWN_MAX])
        more = len(report.added) - ADDED_SHOWN_MAX
        yield f"  added, as the dump names but does not contain them: {shown}{f' and {more} more' if more > 0 else ''}"
    if report.ownerless:
        yield f"  without their owners, which are not in the dump: {_counts(report.ownerless)}"
    for reason, by_kind in report.left_out.items():
        yield f"  not taken over: {_counts(by_kind)} ({reason})"
    for failure in report.failures[:FAILURES_SHOWN_MAX]:
        yield f"  not taken over: {textwrap.shorten(failure, FAILURE_LETTERS_MAX, placeholder=' ...')}"
    if len(report.failures) > FAILURES_SHOWN_MAX:
        yield f"  not taken over: {len(report.failures) - FAILURES_SHOWN_MAX} more"


def _cloned(report: CloneReport) -> str:
    others = report.cloned.total() - report.cloned["Node"] - report.cloned["Pod"]
    nodes = _many(report.cloned["Node"], "node")
    if report.nodes_not_ready:
        nodes += f" ({report.nodes_not_ready:,} not ready)"
    pods = _many(report.cloned["Pod"], "pod")
    states = [f"{report.pods[state]:,} {state}" for state in ("bound", "pending", "finished") if report.pods[state]]
    if states:
        pods += f" ({', '.join(states)})"
    return f"{nodes}, {pods}, {_many(others, 'other object')}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _counts(by_kind: Counter[str]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in by_kind.most_common())


def run_until_stopped(options: UpOptions) -> None:
    """Run a cluster until Ctrl-C. Raises `InputError`."""
    objects, dump = _read(options)
    nodes_cloned = sum(each.document["kind"] == "Node" for each in dump or ())
    settings = cluster_settings(options, nodes_cloned)
    logging.basicConfig(
        level=logging.INFO if options.is_verbose else logging.WARNING,
        format=LOG_FORMAT,
        stream=sys.stderr,
    )
    try:
        run_real(_Run(settings, objects, dump).run())
    except (ClusterError, SettingError) as error:
        click.echo(f"mooring: {error}", err=True)
        raise SystemExit(EXIT_FAILED) from None
    except ExceptionGroup as group:
        _print_failures(group)
        raise SystemExit(EXIT_FAILED) from None


def _read(options: UpOptions) -> tuple[list[PlainObject], list[PlainObject] | None]:
    """The objects of `-f`, and those of `--from` if there is one."""
    if not options.manifests and not options.dumps:
        return [], None
    from mooring.cli.manifests.read import STDIN, find_sources, read_objects  # most starts read no files

    if STDIN in options.manifests and STDIN in options.dumps:
        raise input_error("-f - and --from - were given, but standard input can be read once")
    stdin = sys.stdin.buffer
    objects = read_objects(find_sources(options.manifests), stdin)
    dump = read_objects(find_sources(options.dumps, "--from"), stdin) if options.dumps else None
    return objects, dump


class _Run:
    """One cluster, from start to end."""

    def __init__(self, settings: ClusterSettings, objects: list[PlainObject], dump: list[PlainObject] | None) -> None:
        self._settings = settings
        self._objects = objects
        self._dump = dump
        self._clock = SystemClock()
        self._stop = asyncio.Event()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)
        with self._kubeconfig() as kubeconfig:
            settings = replace(self._settings, kubeconfig=kubeconfig)
            fill = self._clone if self._dump is not None else None
            async with run_cluster(settings, self._clock, system_entropy(), fill) as cluster:
                if settings.runs("nodes") and settings.nodes and not await self._wait_nodes(cluster.api_server):
                    return
                _print_banner(cluster, settings)
                end_loading()
                if self._objects:
                    await self._create_objects(cluster.api_server)
                await self._stop.wait()

    async def _wait_nodes(self, api_server: ApiServer) -> bool:
        """Until the nodes are registered. Returns False if the user stops the cluster before."""
        from mooring.cluster.objects import wait_nodes

        async with TaskGroup("start") as group:
            registered = group.start_background(wait_nodes(api_server, self._settings.nodes), name="nodes")
            stopped = group.start_background(self._stop.wait(), name="stop")
            await asyncio.wait((registered, stopped), return_when=asyncio.FIRST_COMPLETED)
            return registered.done()

    def _on_signal(self) -> None:
        if self._stop.is_set():
            remove_temporary_directories()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.raise_signal(signal.SIGINT)
        self._stop.set()
        with suppress(OSError):  # the reader of the other end may be gone
            click.echo("\nstopping ... (again to stop at once)", err=True)

    @contextmanager
    def _kubeconfig(self) -> Iterator[Path]:
        if self._settings.kubeconfig is not None:
            yield self._settings.kubeconfig
            return
        with temporary_directory("mooring-kubeconfig-") as folder:
            yield folder / KUBECONFIG_NAME

    async def _clone(self, api_server: ApiServer) -> None:
        from mooring.cli.terminal import ProgressBar
        from mooring.cluster.clone import clone

        assert self._dump is not None, "nothing to clone"
        began_s = self._clock.now_s()
        documents, self._dump = [each.document for each in self._dump], None
        with ProgressBar("cloning", len(documents), self._clock) as progress:
            report = await clone(api_server, documents, advance=progress.advance, stop=self._stop)
        if self._stop.is_set():
            directory = self._settings.data_directory
            advice = f"; delete {directory}, which has a part of the dump" if directory is not None else ""
            raise ClusterError(f"stopped before everything was cloned{advice}")
        for line in clone_lines(report, self._clock.now_s() - began_s):
            click.echo(wrapped(line, shutil.get_terminal_size().columns) if sys.stdout.isatty() else line)
        click.echo()

    async def _create_objects(self, api_server: ApiServer) -> None:
        """Create the objects of `-f`, and report when their Deployments are available."""
        from mooring.cluster.objects import wait_available

        async def work() -> None:
            await self._create_each(api_server)
            async for line in wait_available(api_server, [each.document for each in self._objects]):
                click.echo(line)
            sys.stdout.flush()

        async with TaskGroup("objects") as group:
            group.start_background(work(), name="create")
            await self._stop.wait()

    async def _create_each(self, api_server: ApiServer) -> None:
        from mooring.api.errors import UnknownKindError
        from mooring.client.errors import AlreadyExistsError, ClientError
        from mooring.cluster.objects import create_object, loopback_client, wait_default_account

        client = loopback_client(api_server)
        for each in self._objects:
            metadata = each.document["metadata"]
            title = f"{each.document['kind'].lower()}/{metadata.get('name') or metadata.get('generateName', '')}"
            try:
                await create_object(api_server, client, each.document)
                click.echo(f"{title} created")
                if each.document["kind"] == "Namespace" and self._settings.creates_default_accounts():
                    await wait_default_account(api_server, metadata.get("name", ""))
            except AlreadyExistsError:
                click.echo(f"{title} exists already")
            except (ClientError, UnknownKindError) as error:
                click.echo(f"{each.origin.at()}: {title} was not created: {error}")
        sys.stdout.flush()


def _print_banner(cluster: RunningCluster, settings: ClusterSettings) -> None:
    where = "in memory, gone at the end" if settings.data_directory is None else str(settings.data_directory)
    if settings.store_url:
        where = settings.store_url
    lines = [
        f"Mooring {__version__}, speaking Kubernetes v1.36",
        "",
        f"  API server   {cluster.url}",
        f"  objects      {where}",
        f"  running      {', '.join(cluster.components)}",
        f"  kubeconfig   {cluster.kubeconfig}",
        *_warning(settings),
        "",
        "try:",
        *(f"  {line}" for line in commands_to_try(str(cluster.kubeconfig))),
        "",
        "Ctrl-C ends it.",
    ]
    click.echo("\n".join(lines))
    sys.stdout.flush()


def commands_to_try(kubeconfig: str) -> list[str]:
    """Commands that work in any shell as they are printed."""
    quoted, command = shlex.quote(kubeconfig), "get nodes,pods -A"
    if ":" in kubeconfig:  # separates several files in KUBECONFIG
        return [f"kubectl --kubeconfig {quoted} {command}"]
    return [f"export KUBECONFIG={quoted}", f"kubectl {command}"]


def _warning(settings: ClusterSettings) -> list[str]:
    if settings.runtime != PROCESS or not settings.runs("nodes"):
        return []
    is_separate = settings.pod_users == "separate" or (not settings.pod_users and os.geteuid() == 0)
    users = "as users of their own" if is_separate else "as your user"
    return [f"  pods         run on this machine {users}: users who may create pods run commands here"]


def _print_failures(group: ExceptionGroup[Exception]) -> None:
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            _print_failures(error)
        else:
            click.echo(f"mooring: {error}", err=True)
            logging.getLogger(__name__).info("the failure in full", exc_info=error)
