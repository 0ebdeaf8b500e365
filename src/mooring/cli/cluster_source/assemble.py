"""Reads the cluster that a command asks about, and builds an engine for it: `explain`, `plan` and `compare`.

The cluster comes from files (manifests or a dump), from an API server, or from both: then the files are added to the
live cluster. Notes about the input are passed to a callback. Pods are found by name, and sorted as the queue does.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Deployment, ReplicaSet
from mooring.cli.cluster_source.cluster_input import ClusterInput, Supplied, complete, plural, skipped_note
from mooring.cli.cluster_source.live import LiveCluster, connect, read_cluster
from mooring.cli.errors import input_error
from mooring.cli.manifests.kinds import WORKLOADS
from mooring.cli.manifests.read import Manifests, Source, read_manifests
from mooring.cli.scheduler.configuration import checked_configuration, read_configuration
from mooring.cli.terminal import ProgressBar
from mooring.client.http.connection import Connection
from mooring.kit.clock import Clock, SystemClock, VirtualClock, parse_rfc3339
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config import SchedulerConfiguration
from mooring.scheduler.engine import Engine

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Where the cluster comes from."""

    files: tuple[str, ...] = ()
    kubeconfig: str = ""
    context: str = ""
    seed: int = 1

    @property
    def is_live(self) -> bool:
        """Whether an API server is read: without files always, otherwise if one is named."""
        return not self.files or bool(self.kubeconfig or self.context)


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
    options: SourceOptions,
    *,
    now_s: float,
    clock: Clock,
    note: Note,
    file_option: str = "",
    other_files: Sequence[str] = (),
) -> SourceCluster:
    """Completes the objects of the files, over those of the live cluster if one is read. Raises `InputError`.

    `file_option` is the option of the command that takes the files."""
    live = None
    if options.is_live:
        connection = connect(options.kubeconfig, options.context, clock, file_option=file_option)
        live = _read_live(connection, options.seed, manifests, clock, note)
    supplied = Supplied(frozenset(manifests.kinds)) if live is None else live.supplied
    objects = live.objects if live is not None else []
    cluster = complete(manifests.objects, objects, supplied.kinds, Entropy(options.seed), now_s, manifests.policies)
    if manifests.skipped:
        note(skipped_note(manifests.skipped))
    for text in cluster.notes:
        note(text)
    if not cluster.node_count:
        if live is not None:
            raise input_error(f"the cluster at {live.server} has no nodes")
        advice = f"wanted at least one: kubectl get nodes -o yaml > nodes.yaml, then add {file_option} nodes.yaml"
        raise input_error(f"found no nodes in {', '.join((*options.files, *other_files))}; {advice}")
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


# --- pods -----------------------------------------------------------------------------------------------------


MATCHES_SHOWN_MAX = 5
_NEVER_S = float("inf")


def in_queue_order(pods: Iterable[Pod]) -> list[Pod]:
    """By priority, then by creation time; pods without one last."""

    def place(pod: Pod) -> tuple[int, float]:
        created = pod.metadata.creation_timestamp
        return -(pod.spec.priority or 0), parse_rfc3339(created) if created is not None else _NEVER_S

    return sorted(pods, key=place)  # sorting keeps the order of those that are equal


def pending_pods(engine: Engine, pods: Iterable[Pod]) -> list[PodInfo]:
    """The records of pending pods, in queue order. Those with a nominated node are nominated."""
    records = [engine.record(pod) for pod in in_queue_order(pods)]
    for record in records:
        if record.nominated_node and not record.terminating and engine.is_responsible_for(record):
            engine.columns.nominate(record, record.nominated_node)
    return records


def chosen_pod(name: str, cluster: ClusterInput, namespace: str) -> Pod:
    """The pod that a name, or NAMESPACE/NAME, means; of several with that name the one in `namespace`. Raises
    `InputError`."""
    pods = cluster.pods()
    matching = [pod for pod in pods if name in (pod.metadata.name, pod.key)]
    if len(matching) > 1:
        matching = [pod for pod in matching if pod.metadata.namespace == namespace] or matching
    if len(matching) == 1:
        return matching[0]
    if matching:
        keys = ", ".join(sorted(pod.key for pod in matching))
        raise input_error(f'found several pods named "{name}"; say which one: {keys}')
    near = _near(name, pods)
    advice = f"did you mean {' or '.join(near)}?" if near else _pods(pods)
    raise input_error(f'found no pod "{name}"; {advice}')


def _near(typed: str, pods: Sequence[Pod]) -> list[str]:
    """Pods with almost that name: typing errors first, then names that contain it."""
    keys_of: dict[str, list[str]] = {}
    for pod in pods:
        keys_of.setdefault(pod.key if "/" in typed else pod.metadata.name, []).append(pod.key)
    alike = sorted(difflib.get_close_matches(typed, keys_of, n=MATCHES_SHOWN_MAX))
    containing = [name for name in sorted(keys_of) if typed in name and name not in alike]
    return [key for name in (*alike, *containing) for key in sorted(keys_of[name])][:MATCHES_SHOWN_MAX]


def _pods(pods: Sequence[Pod]) -> str:
    if not pods:
        return "there are no pods in the input"
    keys = sorted(pod.key for pod in pods)
    left = len(keys) - MATCHES_SHOWN_MAX
    return f"there are {', '.join(keys[:MATCHES_SHOWN_MAX])}{f' and {left} more' if left > 0 else ''}"
