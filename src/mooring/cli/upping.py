"""What `mooring up` does once its options are read.

Comes in   options
Goes out   a running cluster, what it says to people, an end in order
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import click

from mooring import __version__
from mooring.api.document import Document
from mooring.api.yaml import YamlError, load_document, load_documents
from mooring.apiserver.access.token_file import TokenFileError, parse_token_file
from mooring.apiserver.access.users import User
from mooring.cli.problems import InputError, Problem
from mooring.cluster.beside import processes_for
from mooring.cluster.cluster import ClusterError, RunningCluster, run_cluster
from mooring.cluster.settings import LOG_FORMAT, PROCESS, ClusterSettings, PartSettings
from mooring.controllers.settings import ControllerSettings, SettingError
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import system_entropy
from mooring.kit.loop import run_real
from mooring.kit.memory import end_loading
from mooring.kit.tasks import TaskGroup

EXIT_FAILED = 1


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What was typed."""

    port: int
    host: str
    directory: Path | None
    store_url: str
    kubeconfig: Path
    may_overwrite_kubeconfig: bool
    nodes: int
    runtime: str
    node_lease_s: int
    lives: Path | None
    without: frozenset[str]
    token: str = field(repr=False)
    token_file: Path | None
    is_anonymous_allowed: bool
    scheduler_file: Path | None
    controllers: ControllerSettings
    enabled_controllers: tuple[str, ...]
    processes: int | None
    """None: as many as the size of the cluster asks for."""
    manifests: tuple[Path, ...]
    is_verbose: bool


def run_until_stopped(options: UpOptions) -> None:
    """Run a cluster until Ctrl-C."""
    settings = _settings(options)
    logging.basicConfig(
        level=logging.INFO if options.is_verbose else logging.WARNING,
        format=LOG_FORMAT,
        stream=sys.stderr,
    )
    objects = _objects(options.manifests)
    try:
        run_real(_run(settings, objects))
    except (ClusterError, SettingError) as error:
        click.echo(f"mooring: {error}", err=True)
        raise SystemExit(EXIT_FAILED) from None
    except ExceptionGroup as group:
        _tell_failures(group)
        raise SystemExit(EXIT_FAILED) from None


async def _run(settings: ClusterSettings, objects: list[Document]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            # The second time somebody does not want to wait.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.raise_signal(signal.SIGINT)
        stop.set()
        with suppress(OSError):  # whoever read what we say may be gone
            click.echo("\nstopping ... (again to stop at once)", err=True)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    async with run_cluster(settings, SystemClock(), system_entropy()) as cluster:
        _greet(cluster, settings)
        end_loading()
        if objects:
            await _create(cluster, objects, stop)
        await stop.wait()


async def _create(cluster: RunningCluster, objects: list[Document], stop: asyncio.Event) -> None:
    """Create what was asked for, and say when its Deployments run."""
    from mooring.cli.creating import create_all, wait_available  # reads in what is imported late on purpose

    async with TaskGroup("objects") as group:

        async def work() -> None:
            for line in await create_all(cluster.desk, objects):
                click.echo(line)
            async for line in wait_available(cluster.desk, objects):
                click.echo(line)
            sys.stdout.flush()

        group.start_background(work(), name="create")
        await stop.wait()


def _greet(cluster: RunningCluster, settings: ClusterSettings) -> None:
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
        f"  kubectl --kubeconfig {cluster.kubeconfig} get nodes,pods -A",
        "",
        "Ctrl-C ends it.",
    ]
    click.echo("\n".join(lines))
    sys.stdout.flush()


def _warning(settings: ClusterSettings) -> list[str]:
    if settings.runtime != PROCESS or not settings.runs("nodes"):
        return []
    return ["  pods         run on this machine, as you: whoever may create them runs commands here"]


def _settings(options: UpOptions) -> ClusterSettings:
    return ClusterSettings(
        data_directory=options.directory,
        store_url=options.store_url,
        host=options.host,
        port=options.port,
        kubeconfig=options.kubeconfig,
        may_overwrite_kubeconfig=options.may_overwrite_kubeconfig,
        token=options.token,
        users=_users(options.token_file),
        is_anonymous_allowed=options.is_anonymous_allowed,
        without=options.without,
        nodes=options.nodes,
        runtime=options.runtime,
        node_lease_s=options.node_lease_s,
        lives=_lives(options.lives),
        parts=PartSettings(
            _scheduler_configuration(options.scheduler_file), options.controllers, options.enabled_controllers
        ),
        processes=options.processes or processes_for(options.nodes),
    )


def _lives(file: Path | None) -> str:
    """Raises `InputError`."""
    if file is None:
        return ""
    from mooring.cli.running_alone import checked_lives  # brings in the kubelet, which most need only once it is up

    return checked_lives(file)


def _objects(paths: tuple[Path, ...]) -> list[Document]:
    found: list[Document] = []
    for path in paths:
        try:
            for document in load_documents(path.read_bytes(), str(path)):
                if isinstance(document.data, dict):
                    found.append(document.data)
        except YamlError as error:
            raise InputError([Problem("", str(error))]) from None
    return found


def _users(path: Path | None) -> dict[str, User]:
    if path is None:
        return {}
    try:
        return parse_token_file(path.read_text(encoding="utf-8"), str(path))
    except TokenFileError as error:
        raise InputError([Problem("", str(error))]) from None
    except UnicodeDecodeError:
        raise InputError([Problem(str(path), "is not UTF-8 text; CSV of token,user,uid,groups is wanted")]) from None
    except OSError as error:
        raise InputError([Problem(str(path), f"cannot be read: {error.strerror}")]) from None


def _scheduler_configuration(path: Path | None) -> object | None:
    if path is None:
        return None
    from mooring.scheduler.config.load import load_configuration
    from mooring.scheduler.config.problems import ConfigurationError

    try:
        data = load_document(path.read_bytes(), str(path)).data
        load_configuration(data)
        return data
    except YamlError as error:
        raise InputError([Problem("", str(error))]) from None
    except ConfigurationError as error:
        raise InputError(Problem(str(path), str(problem)) for problem in error.problems) from None


def _tell_failures(group: ExceptionGroup[Exception]) -> None:
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            _tell_failures(error)
        else:
            click.echo(f"mooring: {error}", err=True)
            logging.getLogger(__name__).info("how it came to that", exc_info=error)
