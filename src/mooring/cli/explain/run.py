"""One run of `mooring explain`: read the input, complete it, build an engine, decide, report.

Takes the options of the command and returns a `Report`; notes about the input are passed to a callback.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from typing import BinaryIO

from mooring.api.errors import ObjectError
from mooring.api.views.pod import Pod
from mooring.api.well_known import TERMINAL_PHASES
from mooring.cli.cluster_source.assemble import Note, assemble, build_engine, read_sources
from mooring.cli.cluster_source.cluster_input import ClusterInput
from mooring.cli.cluster_source.pods import chosen_pod
from mooring.cli.errors import input_error
from mooring.cli.explain.coverage import Coverage
from mooring.cli.explain.decide import Explainer
from mooring.cli.explain.report import Outcome, PodExplanation, Report
from mooring.cli.manifests.read import find_sources
from mooring.cli.terminal import ProgressBar
from mooring.kit.clock import Clock, SystemClock
from mooring.scheduler.engine import Engine


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """The options of the command."""

    files: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    """Names, or NAMESPACE/NAME; empty for all pending pods."""
    config: str | None = None
    plugins: tuple[str, ...] = ()
    """Files with plugins that do not come with the scheduler."""
    ignores_others: bool = False
    """Decide for each of `pods` as if no other pod were pending."""
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
    engine = build_engine(request.config, request.plugins, request.seed, decided_at_s, note)
    manifests = read_sources(find_sources(request.files), stdin)
    source = assemble(
        manifests,
        is_live=request.is_live,
        kubeconfig=request.kubeconfig,
        context=request.context,
        seed=request.seed,
        now_s=decided_at_s,
        clock=clock,
        note=note,
        names=", ".join(request.files),
        file_option="-f",
    )
    cluster = source.cluster
    coverage = Coverage(source.supplied)
    coverage.limit(cluster)
    chosen = [chosen_pod(name, cluster, source.namespace) for name in request.pods]
    chosen = list({pod.key: pod for pod in chosen}.values())
    explained = _explained(request, engine, cluster, chosen, coverage)
    _note_missing_kinds(explained, note)
    return Report(
        pods=explained,
        node_count=cluster.node_count,
        placed_count=len(cluster.placed),
        pending_count=len(cluster.pending),
        seed=request.seed,
        decided_at_s=decided_at_s,
        has_chosen_pods=bool(chosen),
        server=source.server,
    )


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


def _note_missing_kinds(explained: Iterable[PodExplanation], note: Note) -> None:
    """One note about all kinds that are missing, with what to do about it."""
    absences = dict.fromkeys(entry.absence for pod in explained for entry in pod.not_judged if entry.may_reject)
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
