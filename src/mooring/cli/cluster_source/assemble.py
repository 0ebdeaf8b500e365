"""Reads the cluster that a command asks about, and builds an engine for it: `explain`, `plan` and `compare`.

The cluster comes from files (manifests or a dump), from an API server, or from both: then the files are added to the
live cluster. Notes about the input are passed to a callback.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from mooring.api.views.meta import ApiObject
from mooring.api.views.workloads import Deployment, ReplicaSet
from mooring.cli.cluster_source.cluster_input import ClusterInput, Supplied, complete, plural, skipped_note
from mooring.cli.cluster_source.live import LiveCluster, connect, read_cluster
from mooring.cli.errors import input_error
from mooring.cli.manifests.kinds import WORKLOADS
from mooring.cli.manifests.read import Manifests, Source, read_manifests
from mooring.cli.scheduler.configuration import checked_configuration, read_configuration
from mooring.cli.terminal import ProgressBar
from mooring.client.http.connection import Connection
from mooring.kit.clock import Clock, SystemClock, VirtualClock
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import SchedulerConfiguration
from mooring.scheduler.engine import Engine

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SourceCluster:
    """The cluster as a scheduler would find it."""

    cluster: ClusterInput
    supplied: Supplied
    server: str = ""
    """The API server that was read; empty if only files were."""
    namespace: str = ""
    """The namespace of the kubeconfig's context."""


def read_sources(sources: Sequence[Source], stdin: BinaryIO) -> Manifests:
    """Reads files with a progress bar."""
    # The length of standard input is known after it has been read; decoding comes after that.
    piped = stdin.read() if any(source.path is None for source in sources) else b""
    total_bytes = sum(source.size_bytes for source in sources) + len(piped)
    with ProgressBar("reading", total_bytes, SystemClock()) as progress:
        return read_manifests(sources, io.BytesIO(piped), progress.advance)


def assemble(
    manifests: Manifests,
    *,
    is_live: bool,
    kubeconfig: str,
    context: str,
    seed: int,
    now_s: float,
    clock: Clock,
    note: Note,
    names: str,
    file_option: str,
) -> SourceCluster:
    """Completes the objects of the files, over those of the live cluster if one is asked. Raises `InputError`.

    `names` names the files in errors, `file_option` the option of the command that takes them."""
    live = None
    if is_live:
        connection = connect(kubeconfig, context, clock, file_option=file_option)
        live = _read_live(connection, seed, manifests, clock, note)
    supplied = Supplied(frozenset(manifests.kinds)) if live is None else live.supplied
    objects = live.objects if live is not None else []
    cluster = complete(manifests.objects, objects, supplied.kinds, Entropy(seed), now_s, manifests.policies)
    if manifests.skipped:
        note(skipped_note(manifests.skipped))
    for text in cluster.notes:
        note(text)
    if not cluster.node_count:
        if live is not None:
            raise input_error(f"the cluster at {live.server} has no nodes")
        wanted = f"wanted at least one: kubectl get nodes -o yaml > nodes.yaml, then add {file_option} nodes.yaml"
        raise input_error(f"found no nodes in {names}; {wanted}")
    if live is None:
        return SourceCluster(cluster, supplied)
    return SourceCluster(cluster, supplied, live.server, live.namespace)


def build_engine(
    config: str | None, plugins: Sequence[str], seed: int, now_s: float, note: Note, *, best_nodes_max: int = 0
) -> Engine:
    """An engine with a configuration and plugins of the user. Raises `InputError`."""
    document = read_configuration(config) if config is not None else None
    configuration, registry = checked_configuration(config or "", document, plugins)
    engine = Engine(
        configuration,
        entropy=Entropy(seed),
        registry=registry,
        # The clock stands still at the time that is asked for: every pod is decided as of the same moment.
        services={"clock": VirtualClock(wall_s=now_s)},
        best_nodes_max=best_nodes_max,
    )
    _note_extenders(configuration, note)
    return engine


def _read_live(connection: Connection, seed: int, manifests: Manifests, clock: Clock, note: Note) -> LiveCluster:
    """The cluster of the kubeconfig; workloads only of kinds that the files hold, which may replace them."""
    kinds: set[type[ApiObject]] = {type(found.view) for found in manifests.objects if isinstance(found.view, WORKLOADS)}
    if Deployment in kinds:
        kinds.add(ReplicaSet)
    cluster = read_cluster(connection, clock, Entropy(seed), workloads=kinds)
    note(f"read {connection.server}: {len(cluster.objects)} objects")
    if cluster.denied:
        note(f"you may not list {', '.join(sorted(plural(kind) for kind in cluster.denied))} there")
    return cluster


def _note_extenders(configuration: SchedulerConfiguration, note: Note) -> None:
    if configuration.extenders:
        note(f"{len(configuration.extenders)} extender(s) in the configuration are not asked")
