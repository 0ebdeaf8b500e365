"""One run of `mooring explain`: read the input, complete it, build an engine, decide, report.

Takes the options of the command and returns a `Report`; notes about the input are passed to a callback.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, replace
from typing import BinaryIO

from mooring.api.errors import ObjectError
from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Deployment, ReplicaSet
from mooring.api.well_known import TERMINAL_PHASES
from mooring.cli.errors import InputError, Problem, input_error
from mooring.cli.explain.cluster_input import ClusterInput, complete, skipped_note
from mooring.cli.explain.coverage import Coverage, Supplied, plural
from mooring.cli.explain.decide import Explainer
from mooring.cli.explain.live import LiveCluster, connect, read_cluster
from mooring.cli.explain.report import Outcome, PodExplanation, Report
from mooring.cli.manifests.kinds import WORKLOADS
from mooring.cli.manifests.read import Manifests, Source, find_sources, read_manifests
from mooring.cli.scheduler.configuration import plugin_registry, read_configuration
from mooring.cli.terminal import ProgressBar
from mooring.kit.clock import Clock, SystemClock, VirtualClock
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import ConfigurationError, SchedulerConfiguration
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.loading import enabled_if_unmentioned
from mooring.scheduler.policy import load_configuration_or_policy

MATCHES_SHOWN_MAX = 5

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """What is asked for on the command line."""

    files: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    """Names, or NAMESPACE/NAME; empty for all pending pods."""
    config: str | None = None
    plugins: tuple[str, ...] = ()
    """Files with plugins that do not come with the scheduler."""
    ignores_others: bool = False
    """Decide for each of `pods` as if no other pod were waiting."""
    node_limit: int | None = 5
    seed: int = 1
    now_s: float | None = None
    """Decide as of this time instead of now."""
    kubeconfig: str = ""
    context: str = ""

    @property
    def is_live(self) -> bool:
        """Whether an API server is asked: without files always, otherwise if one is named."""
        return not self.files or bool(self.kubeconfig or self.context)


def run_explain(request: ExplainRequest, stdin: BinaryIO, note: Note, clock: Clock) -> Report:
    """Reads, decides and reports. Raises `InputError`."""
    decided_at_s = request.now_s if request.now_s is not None else clock.wall_s()
    engine = _engine(request, decided_at_s, note)
    manifests = _read(find_sources(request.files), stdin)
    live = _read_live(request, manifests, clock, note) if request.is_live else None
    supplied = Supplied(frozenset(manifests.kinds)) if live is None else live.supplied
    objects = live.objects if live is not None else []
    entropy = Entropy(request.seed)
    cluster = complete(manifests.objects, objects, supplied.kinds, entropy, decided_at_s, manifests.policies)
    if manifests.skipped:
        note(skipped_note(manifests.skipped))
    for text in cluster.notes:
        note(text)
    if not cluster.node_count:
        wanted = "wanted at least one: kubectl get nodes -o yaml > nodes.yaml, then add -f nodes.yaml"
        if live is not None:
            raise input_error(f"the cluster at {live.server} has no nodes")
        raise input_error(f"found no nodes in {', '.join(request.files)}; {wanted}")
    coverage = Coverage(supplied)
    coverage.limit(cluster)
    chosen = [_chosen(name, cluster, live.namespace if live is not None else "") for name in request.pods]
    chosen = list({pod.key: pod for pod in chosen}.values())
    explained = _explained(request, engine, cluster, chosen, coverage)
    _tell_incomplete(explained, note)
    return Report(
        pods=explained,
        node_count=cluster.node_count,
        placed_count=len(cluster.placed),
        pending_count=len(cluster.pending),
        seed=request.seed,
        decided_at_s=decided_at_s,
        has_chosen_pods=bool(chosen),
        server=live.server if live is not None else "",
    )


def _read(sources: list[Source], stdin: BinaryIO) -> Manifests:
    # How long standard input is shows when it has been read; what takes time comes after that.
    piped = stdin.read() if any(source.path is None for source in sources) else b""
    total_bytes = sum(source.size_bytes for source in sources) + len(piped)
    with ProgressBar("reading", total_bytes, SystemClock()) as progress:
        return read_manifests(sources, io.BytesIO(piped), progress.advance)


def _read_live(request: ExplainRequest, manifests: Manifests, clock: Clock, note: Note) -> LiveCluster:
    """The cluster of the kubeconfig; workloads only of kinds that the files hold, which may replace them."""
    connection = connect(request.kubeconfig, request.context, clock)
    kinds: set[type[ApiObject]] = {type(found.view) for found in manifests.objects if isinstance(found.view, WORKLOADS)}
    if Deployment in kinds:
        kinds.add(ReplicaSet)
    cluster = read_cluster(connection, clock, Entropy(request.seed), workloads=kinds)
    note(f"read {connection.server}: {len(cluster.objects)} objects")
    if cluster.denied:
        note(f"you may not list {', '.join(sorted(plural(kind) for kind in cluster.denied))} there")
    return cluster


def _explained(
    request: ExplainRequest, engine: Engine, cluster: ClusterInput, chosen: list[Pod], coverage: Coverage
) -> tuple[PodExplanation, ...]:
    """The explanations of the chosen pods, in that order; if none is chosen of all pending pods, or of those of the
    files that are added to a live cluster."""
    pending = {pod.key: pod for pod in cluster.pending}
    wanted: Set[str] = {pod.key for pod in chosen} & pending.keys()
    if not chosen:
        wanted = (pending.keys() & cluster.of_files if request.is_live else None) or pending.keys()
    found: dict[str, PodExplanation] = {}
    if wanted:
        try:
            explainer = Explainer(engine, cluster, request.node_limit)
            with ProgressBar("deciding", len(cluster.pending), SystemClock()) as progress:
                decided = explainer.explain(wanted, progress.advance, ignores_others=request.ignores_others)
                found = {each.pod: each for each in decided}
        except ObjectError as error:
            raise input_error(str(error)) from error
    for key, explanation in found.items():
        not_judged = coverage.completed(explanation, pending[key])
        found[key] = replace(explanation, not_judged=not_judged, workload=cluster.workload_of.get(key, ""))
    if not chosen:
        return tuple(found.values())
    return tuple(found.get(pod.key) or _settled(pod) for pod in chosen)


def _tell_incomplete(explained: Iterable[PodExplanation], note: Note) -> None:
    """One note for everything that pods were not judged by, with what to do about it."""
    absences = dict.fromkeys(entry.absence for pod in explained for entry in pod.not_judged if entry.may_refuse)
    if any(text.startswith("the input") for text in absences):
        note(f"{'; '.join(absences)}; mooring explain --help shows a whole dump, and without -f it asks the cluster")


def _settled(pod: Pod) -> PodExplanation:
    """A pod that needs no decision: it has a node or has finished."""
    is_finished = pod.status.phase in TERMINAL_PHASES
    return PodExplanation(
        pod=pod.key,
        outcome=Outcome.FINISHED if is_finished else Outcome.RUNNING,
        priority=pod.spec.priority or 0,
        scheduler=pod.spec.scheduler_name,
        node=pod.spec.node_name or None,
        message=f"its phase is {pod.status.phase}" if is_finished else "",
    )


# Finding the pod


def _chosen(wanted: str, cluster: ClusterInput, namespace: str) -> Pod:
    """The pod that a name, or NAMESPACE/NAME, means; of several with that name the one in `namespace`. Raises
    `InputError`."""
    pods = cluster.pods()
    matching = [pod for pod in pods if wanted in (pod.metadata.name, pod.key)]
    if len(matching) > 1:
        matching = [pod for pod in matching if pod.metadata.namespace == namespace] or matching
    if len(matching) == 1:
        return matching[0]
    if matching:
        keys = ", ".join(sorted(pod.key for pod in matching))
        raise input_error(f'found several pods named "{wanted}"; say which one: {keys}')
    near = _near(wanted, pods)
    advice = f"did you mean {' or '.join(near)}?" if near else _pods(pods)
    raise input_error(f'found no pod "{wanted}"; {advice}')


def _near(wanted: str, pods: list[Pod]) -> list[str]:
    """Pods with almost that name: typing errors first, then names that contain it."""
    keys_of: dict[str, list[str]] = {}
    for pod in pods:
        keys_of.setdefault(pod.key if "/" in wanted else pod.metadata.name, []).append(pod.key)
    alike = sorted(difflib.get_close_matches(wanted, keys_of, n=MATCHES_SHOWN_MAX))
    containing = [name for name in sorted(keys_of) if wanted in name and name not in alike]
    return [key for name in (*alike, *containing) for key in sorted(keys_of[name])][:MATCHES_SHOWN_MAX]


def _pods(pods: list[Pod]) -> str:
    if not pods:
        return "there are no pods in the input"
    keys = sorted(pod.key for pod in pods)
    left = len(keys) - MATCHES_SHOWN_MAX
    return f"there are {', '.join(keys[:MATCHES_SHOWN_MAX])}{f' and {left} more' if left > 0 else ''}"


# The configuration


def _engine(request: ExplainRequest, now_s: float, note: Note) -> Engine:
    document = read_configuration(request.config) if request.config is not None else None
    registry, added = plugin_registry(request.plugins)
    try:
        configuration = load_configuration_or_policy(document.data if document is not None else None)
        configuration = enabled_if_unmentioned(configuration, added)
        # The clock stands still at the time that is asked for: every pod is decided as of the same moment.
        services = {"clock": VirtualClock(wall_s=now_s)}
        engine = Engine(configuration, entropy=Entropy(request.seed), registry=registry, services=services)
    except ConfigurationError as error:
        if document is None:  # a plugin of the user's that wants arguments
            raise InputError(Problem("", problem.text) for problem in error.problems) from error
        raise InputError(
            Problem(f"{request.config}:{document.line_of(problem.path)}", problem.text) for problem in error.problems
        ) from error
    except ValueError as error:  # a plugin that does not exist, or cannot work as it is configured
        raise input_error(str(error), request.config or "") from error
    _tell_unused(configuration, note)
    return engine


def _tell_unused(configuration: SchedulerConfiguration, note: Note) -> None:
    if configuration.extenders:
        note(f"{len(configuration.extenders)} extender(s) in the configuration are not asked")
