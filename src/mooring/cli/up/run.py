"""Runs a cluster for `mooring up` until Ctrl-C.

1. The first signal stops everything in order, the second one at once. Neither leaves temporary files.
2. A cluster in memory has its kubeconfig in a private temporary directory, which is removed at the end, also if the
   start fails. Any other kubeconfig stays where it was written.
3. A dump is cloned before the components start; objects of `-f` are created when they run.
4. The banner is printed when the nodes are ready, so that the commands in it find them.
5. A running cluster is in the registry, for `mooring status` and `mooring down`.

With `--detach` the cluster runs in the background, and the command returns when it is ready.

    command ── fork ── waits for the registry entry ── prints what the cluster printed ── exit code
                 └──── a session of its own, output to the log ── runs the cluster

6. Everything is validated before the fork, so that errors in the input are those of the command.
7. If the cluster ends before it is ready, the end of its log is printed, and the exit code is 1.
8. With `--wait` the command also waits for the workloads of `-f`. If they are not available in time, the exit code is
   1, and the cluster runs on.
9. Ctrl-C while the command waits stops the cluster.
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
from mooring.cli.clusters.registry import ClusterState, Registration, register, running_clusters
from mooring.cli.errors import InputError, input_error
from mooring.cli.terminal import ProgressBar, wrapped
from mooring.cli.up.settings import KUBECONFIG_NAME, UpOptions, cluster_settings
from mooring.cluster.cluster import ClusterError, RunningCluster, run_cluster
from mooring.cluster.settings import PROCESS, SCHEDULER, ClusterSettings
from mooring.controllers.settings import SettingError
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import system_entropy
from mooring.kit.logs import ATTEMPTS, start_logs
from mooring.kit.loop import run_real
from mooring.kit.memory import end_loading
from mooring.kit.tasks import TaskGroup, errors_in
from mooring.kit.temporary_directory import remove_temporary_directories, temporary_directory

if TYPE_CHECKING:
    from mooring.api.document import Document
    from mooring.cli.manifests.read import PlainObject
    from mooring.cluster.clone import CloneReport

FAILURES_SHOWN_MAX = 20
FAILURE_LETTERS_MAX = 300
ADDED_SHOWN_MAX = 5
EXTRA_NODES_SHOWN_MAX = 3
EXIT_FAILED = 1
CHECK_S = 0.05
"""The interval at which `--detach` looks whether the cluster is ready."""
LOG_LINES_SHOWN_MAX = 20


def _print_line(line: str) -> None:
    """Print a line, wrapped if it goes to a terminal."""
    if sys.stdout.isatty():
        line = "\n".join(wrapped(line, shutil.get_terminal_size().columns, indent=0, hanging=4))
    click.echo(line)


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
        shown = textwrap.shorten(failure, FAILURE_LETTERS_MAX, placeholder=" ...")
        # A name from the dump must not control the terminal.
        yield f"  not taken over: {''.join(letter for letter in shown if letter.isprintable())}"
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
    nodes_cloned = sum(entry.document["kind"] == "Node" for entry in dump or ())
    settings = cluster_settings(options, nodes_cloned)
    start_logs(options.log_format, ATTEMPTS if options.is_verbose else logging.WARNING)
    registration = register(options.name)
    try:
        if options.is_detached:
            if not detach(registration, options.wait_s):
                return
            registration.update(log=str(registration.log_path))
    except InputError:
        registration.remove()
        raise
    try:
        _run(_Run(settings, objects, dump, registration))
    finally:
        registration.remove()


def _run(run: _Run) -> None:
    try:
        run_real(run.run())
    except (ClusterError, SettingError) as error:
        click.echo(f"mooring: {error}", err=True)
        raise SystemExit(EXIT_FAILED) from None
    except ExceptionGroup as group:
        for failure in errors_in(group):
            click.echo(f"mooring: {failure}", err=True)
            logging.getLogger(__name__).info("the failure in full", exc_info=failure)
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

    def __init__(
        self,
        settings: ClusterSettings,
        objects: list[PlainObject],
        dump: list[PlainObject] | None,
        registration: Registration,
    ) -> None:
        self._settings = settings
        self._registration = registration
        self._objects = objects
        self._dump = dump
        self._clock = SystemClock()
        self._stop = asyncio.Event()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)
        self._registration.update(pid=os.getpid(), started_wall_s=self._clock.wall_s())
        with self._kubeconfig() as kubeconfig:
            settings = replace(self._settings, kubeconfig=kubeconfig)
            fill = self._clone if self._dump is not None else None
            async with run_cluster(settings, self._clock, system_entropy(), fill) as cluster:
                self._registration.update(
                    url=cluster.url, kubeconfig=str(cluster.kubeconfig), objects=_objects_place(settings)
                )
                if not await self._wait_nodes(cluster):
                    return
                _print_banner(cluster, settings, self._registration.state)
                end_loading()
                if self._objects:
                    await self._create_objects(cluster.api_server)
                else:
                    self._registration.update(is_ready=True, are_workloads_available=True)
                await self._stop.wait()

    async def _wait_nodes(self, cluster: RunningCluster) -> bool:
        """Until the nodes are ready. Returns False if the user stops the cluster before."""
        async with TaskGroup("start") as group:
            ready = group.start_background(cluster.nodes_ready.wait(), name="nodes")
            stopped = group.start_background(self._stop.wait(), name="stop")
            await asyncio.wait((ready, stopped), return_when=asyncio.FIRST_COMPLETED)
            return ready.done()

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
        from mooring.cluster.clone import clone

        assert self._dump is not None, "nothing to clone"
        began_s = self._clock.now_s()
        documents, self._dump = [entry.document for entry in self._dump], None
        with ProgressBar("cloning", len(documents), self._clock) as progress:
            report = await clone(api_server, documents, advance=progress.advance, stop=self._stop)
        if self._stop.is_set():
            directory = self._settings.data_directory
            advice = f"; delete {directory}, which has a part of the dump" if directory is not None else ""
            raise ClusterError(f"stopped before everything was cloned{advice}")
        for line in clone_lines(report, self._clock.now_s() - began_s):
            _print_line(line)
        click.echo()

    async def _create_objects(self, api_server: ApiServer) -> None:
        """Create the objects of `-f`, and report when their workloads are available, or why they are not."""
        from mooring.cluster.objects import loopback_client
        from mooring.cluster.workload_progress import follow_progress, workloads_of

        async def work() -> None:
            workloads = workloads_of(await self._create_each(api_server))
            self._registration.update(is_ready=True)
            client, has_controllers = loopback_client(api_server), self._settings.runs("controllers")
            async for line in follow_progress(api_server, client, workloads, has_controllers=has_controllers):
                _print_line(line)
                sys.stdout.flush()
            self._registration.update(are_workloads_available=True)

        async with TaskGroup("objects") as group:
            group.start_background(work(), name="create")
            await self._stop.wait()

    def _with_kubelet(self, document: Document) -> Document:
        """A Node of a manifest becomes a hollow node, unless the manifest says otherwise."""
        from mooring.kubelet.node_status import SIMULATED_ANNOTATION

        settings = self._settings
        if document["kind"] != "Node" or not settings.runs("nodes") or settings.runtime == PROCESS:
            return document
        metadata = document["metadata"]
        annotations = {SIMULATED_ANNOTATION: "true", **(metadata.get("annotations") or {})}
        return {**document, "metadata": {**metadata, "annotations": annotations}}

    async def _create_each(self, api_server: ApiServer) -> list[Document]:
        """The objects that exist afterwards."""
        from mooring.api.errors import UnknownKindError
        from mooring.client.errors import AlreadyExistsError, ClientError
        from mooring.cluster.objects import create_object, loopback_client, wait_default_account

        client, present = loopback_client(api_server), []
        for manifest in self._objects:
            metadata = manifest.document["metadata"]
            title = f"{manifest.document['kind'].lower()}/{metadata.get('name') or metadata.get('generateName', '')}"
            try:
                document = self._with_kubelet(manifest.document)
                present.append(await create_object(api_server, client, document))
                click.echo(f"{title} created")
                if manifest.document["kind"] == "Namespace" and self._settings.creates_default_accounts():
                    await wait_default_account(api_server, metadata.get("name", ""))
            except AlreadyExistsError:
                present.append(manifest.document)
                click.echo(f"{title} exists already")
            except (ClientError, UnknownKindError) as error:
                click.echo(f"{manifest.origin.at()}: {title} was not created: {error}")
        sys.stdout.flush()
        return present


def _objects_place(settings: ClusterSettings) -> str:
    if settings.store_url:
        return settings.store_url
    return "in memory, gone at the end" if settings.data_directory is None else str(settings.data_directory)


def _print_banner(cluster: RunningCluster, settings: ClusterSettings, state: ClusterState) -> None:
    lines = [
        f"Mooring {__version__}, speaking Kubernetes v1.36",
        "",
        f"  API server   {cluster.url}",
        f"  objects      {_objects_place(settings)}",
        f"  running      {', '.join(cluster.components)}",
        f"  kubeconfig   {cluster.kubeconfig}",
        *_console(cluster, settings, state),
        *_extra_nodes(cluster.extra_nodes, settings),
        *_warning(settings),
        "",
        "try:",
        *(f"  {line}" for line in commands_to_try(str(cluster.kubeconfig))),
        "",
        f"`mooring down {state.name}` ends it." if state.log else "Ctrl-C ends it.",
    ]
    click.echo("\n".join(lines))
    sys.stdout.flush()


def _console(cluster: RunningCluster, settings: ClusterSettings, state: ClusterState) -> list[str]:
    """The link to the console. A log has none, because a file outlives the moment in which the link is used."""
    if not settings.runs(SCHEDULER):
        return []
    if state.log:
        return ["  console      kubectl get --raw /console/link"]
    return [
        f"  console      {cluster.console_link()}",
        "               (logs in once; a new link: kubectl get --raw /console/link)",
    ]


def commands_to_try(kubeconfig: str) -> list[str]:
    """Commands that work in any shell as they are printed."""
    quoted, command = shlex.quote(kubeconfig), "get nodes,pods -A"
    if ":" in kubeconfig:  # separates several files in KUBECONFIG
        return [f"kubectl --kubeconfig {quoted} {command}"]
    return [f"export KUBECONFIG={quoted}", f"kubectl {command}"]


def _extra_nodes(names: tuple[str, ...], settings: ClusterSettings) -> list[str]:
    """The lines about nodes of an earlier start."""
    if not names:
        return []
    more = len(names) - EXTRA_NODES_SHOWN_MAX
    shown = ", ".join(names[:EXTRA_NODES_SHOWN_MAX]) + (f" and {more:,} more" if more > 0 else "")
    if settings.prunes_nodes:
        return [f"  deleted      {_many(len(names), 'node')} of an earlier start:", f"               {shown}"]
    return [
        f"  nodes        {len(names):,} of an earlier start have no kubelet:",
        f"               {shown}",
        "               (--prune-nodes deletes them)",
    ]


def _warning(settings: ClusterSettings) -> list[str]:
    if settings.runtime != PROCESS or not settings.runs("nodes"):
        return []
    is_separate = settings.pod_users == "separate" or (not settings.pod_users and os.geteuid() == 0)
    users = "as users of their own" if is_separate else "as your user"
    return [
        f"  pods         run on this machine {users}:",
        "               users who may create pods run commands here",
    ]


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
        state = next((cluster for cluster in running_clusters() if cluster.pid == pid), None)
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
