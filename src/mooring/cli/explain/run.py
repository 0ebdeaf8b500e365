"""One run of `mooring explain`: read the input, complete it, build an engine, decide, report.

Takes the options of the command and returns a `Report`; notes about the input are passed to a callback.

1. Pods are decided in queue order: by priority, then by age, then in input order; a pod without a creation time is
   the newest. Each sees the pods before it as placed, with the devices of their claims, as in a cluster.
2. A pod that would preempt is nominated and its victims stay, as at the moment of kube-scheduler's decision.
3. Pods that are not shown are decided if they come before one that is.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import BinaryIO

from mooring.api.errors import ObjectError
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import PodDisruptionBudget
from mooring.api.well_known import DEFAULT_SCHEDULER_NAME, TERMINAL_PHASES
from mooring.cli.cluster_source.assemble import (
    Note,
    SourceOptions,
    assemble,
    build_engine,
    chosen_pod,
    in_queue_order,
    pending_pods,
    read_sources,
)
from mooring.cli.cluster_source.cluster_input import ClusterInput
from mooring.cli.errors import input_error
from mooring.cli.explain.coverage import Coverage
from mooring.cli.explain.report import (
    GrantedDevice,
    NodeObstacles,
    NodesRejecting,
    Outcome,
    PodExplanation,
    Preemption,
    Report,
    ScoreRow,
    Scores,
    Victim,
)
from mooring.cli.manifests.read import find_sources
from mooring.cli.terminal import ProgressBar
from mooring.kit.clock import Clock, SystemClock, format_rfc3339
from mooring.scheduler.cache.disruption_budgets import BudgetRule, DisruptionBudgets
from mooring.scheduler.cache.pods import NO_START_S, PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.explain import explain
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.status import Status
from mooring.scheduler.plan.what_if import ClaimAllocationStep, names_claims
from mooring.scheduler.plugins.dynamic_resources.plugin import DynamicResources


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRequest(SourceOptions):
    """The options of the command."""

    pods: tuple[str, ...] = ()
    """Names, or NAMESPACE/NAME; empty for all pending pods."""
    config: str | None = None
    plugins: tuple[str, ...] = ()
    """Files with plugins that do not come with the scheduler."""
    ignores_others: bool = False
    """Decide for each of `pods` as if no other pod were pending."""
    node_limit: int | None = 5
    now_s: float | None = None
    """Decide as of this time instead of now."""


def run_explain(request: ExplainRequest, stdin: BinaryIO, note: Note, clock: Clock) -> Report:
    """Reads, decides and reports. Raises `InputError`."""
    decided_at_s = request.now_s if request.now_s is not None else clock.wall_s()
    engine = build_engine(request.config, request.plugins, request.seed, decided_at_s, note)
    manifests = read_sources(find_sources(request.files), stdin)
    source = assemble(manifests, request, now_s=decided_at_s, clock=clock, note=note, file_option="-f")
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
    keys: Set[str] = {pod.key for pod in chosen} & pending.keys()
    if not chosen:
        keys = (pending.keys() & cluster.of_files if request.is_live else None) or pending.keys()
    found: dict[str, PodExplanation] = {}
    if keys:
        try:
            explainer = Explainer(engine, cluster, request.node_limit)
            with ProgressBar("deciding", len(cluster.pending), SystemClock()) as progress:
                decided = explainer.explain(keys, progress.advance, ignores_others=request.ignores_others)
                found = {explanation.pod: explanation for explanation in decided}
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


# --- decisions ------------------------------------------------------------------------------------------------


_PREEMPTION = "preemption: "


class Explainer:
    """Puts a cluster into an engine, and explains the decisions about its pending pods."""

    def __init__(self, engine: Engine, cluster: ClusterInput, node_limit: int | None) -> None:
        self._engine = engine
        self._node_limit = node_limit
        self._allocations: dict[str, ClaimAllocationStep] = {}
        """By the uid of a pod."""
        for view in (*cluster.objects, *cluster.placed):
            engine.put(view)
        self._budgets = DisruptionBudgets(engine.columns.objects.of(PodDisruptionBudget))
        self._queue = list(zip(in_queue_order(cluster.pending), pending_pods(engine, cluster.pending), strict=True))

    def explain(
        self, keys: Set[str], decided: Callable[[int], None], *, ignores_others: bool = False
    ) -> Iterator[PodExplanation]:
        """The wanted pending pods (`namespace/name`) in queue order, each after all that come before it; or each as if
        no other pod were pending."""
        left = len(keys)
        for pod, record in self._queue:
            if not left:
                return
            if pod.key in keys:
                nominated_node = record.nominated_node
                yield self._explain(record)
                left -= 1
                if ignores_others:
                    self._undo(record, nominated_node)
            elif not ignores_others and self._engine.is_responsible_for(record):
                decision = self._engine.decide(record)
                if self._apply(decision) is None and decision.is_placed:
                    self._allocate(record)
            decided(1)

    def _explain(self, record: PodInfo) -> PodExplanation:
        if not self._engine.is_responsible_for(record):
            return self._explanation(record, Outcome.LEFT_ALONE, f"asks for scheduler {_scheduler_of(record)}")
        if record.terminating:
            return self._explanation(record, Outcome.LEFT_ALONE, "is being deleted")
        decision = self._engine.decide(record, in_full=True)
        # Before the decision is applied: it changes the nodes.
        explanation = self._explanation_of(decision)
        status = self._apply(decision)
        if status is not None:
            return self._explanation(record, Outcome.ERROR, f"{status.plugin} could not reserve: {status.message}")
        if not decision.is_placed:
            return explanation
        devices = self._devices(record)
        self._allocate(record)
        return replace(explanation, devices=devices)

    def _allocate(self, record: PodInfo) -> None:
        """Gives the claims of a placed pod their devices, as PreBind does: other pods may use the same claims."""
        if names_claims(record):
            step = self._allocations[record.uid] = ClaimAllocationStep(record)
            step.apply(self._engine)

    def _devices(self, record: PodInfo) -> tuple[GrantedDevice, ...]:
        """The devices that were allocated to the pod when it was assumed."""
        plugin = self._engine.cycle_for(record).profile.plugins.get(DynamicResources.name)
        if not isinstance(plugin, DynamicResources):
            return ()
        return tuple(
            GrantedDevice(claim, result.request, result.driver, result.pool, result.device)
            for claim, allocation in plugin.allocations_of(record)
            for result in allocation.devices.results
        )

    def _apply(self, decision: Decision) -> Status | None:
        """Applies a decision to the columns, as the scheduling loop does. Returns why Reserve failed."""
        engine, record = self._engine, decision.pod
        if decision.is_placed:
            return engine.assume(decision)
        if decision.preemption is not None:
            engine.nominate(decision)
        elif decision.clears_nomination:
            engine.columns.withdraw(record)
            record.nominated_node = ""
        return None

    def _undo(self, record: PodInfo, nominated_node: str) -> None:
        """Undoes `_apply` and `_allocate`."""
        if record.node_name:
            if record.uid in self._allocations:
                self._allocations.pop(record.uid).undo(self._engine)
            self._engine.forget(record)
        if self._engine.is_responsible_for(record):
            self._engine.renominate(record, nominated_node)

    # Decisions as explanations

    def _explanation_of(self, decision: Decision) -> PodExplanation:
        if decision.is_placed:
            return self._placed(decision)
        if decision.error is not None:
            reasons = decision.status.message if decision.status is not None else decision.message or ""
            return self._explanation(decision.pod, Outcome.ERROR, reasons)
        if decision.message is None:
            gates = decision.status.message if decision.status is not None else ""
            return self._explanation(decision.pod, Outcome.GATED, gates)
        return self._unschedulable(decision)

    def _explanation(self, record: PodInfo, outcome: Outcome, message: str = "") -> PodExplanation:
        return PodExplanation(
            pod=record.key,
            outcome=outcome,
            priority=record.priority,
            scheduler=_scheduler_of(record),
            node_count=self._engine.columns.node_count,
            message=message,
        )

    def _placed(self, decision: Decision) -> PodExplanation:
        return replace(
            self._explanation(decision.pod, Outcome.PLACED),
            node=decision.node_name,
            feasible_count=decision.feasible_count,
            scores=_scores(decision, self._node_limit),
            rejections=_grouped(decision),
            reasons=_counted(_grouped(decision)),
        )

    def _unschedulable(self, decision: Decision) -> PodExplanation:
        profile = self._engine.cycle_for(decision.pod).profile
        found = explain(profile, self._engine.columns, decision.pod, nearest_max=self._node_limit)
        groups = _grouped(decision)
        explanation = self._explanation(decision.pod, Outcome.UNSCHEDULABLE, decision.message or "")
        status = decision.status
        return replace(
            explanation,
            rejections=groups,
            reasons=_counted(groups) if status is None else dict.fromkeys(status.reasons, explanation.node_count),
            everywhere=found.everywhere,
            nearest=tuple(NodeObstacles(name, found.at(name)) for name in found.nearest),
            otherwise_count=found.free_count if found.everywhere else 0,
            preemption=self._preemption(decision),
        )

    # Preemption

    def _preemption(self, decision: Decision) -> Preemption:
        plan = decision.preemption
        if plan is None:
            _, marker, why_not = (decision.message or "").partition(_PREEMPTION)
            return Preemption(why_not=why_not if marker else "no plugin of the profile preempts")
        count = self._budgets.count(BudgetRule.PREEMPTION)
        return Preemption(
            node=plan.node_name,
            victims=tuple(
                Victim(
                    pod=victim.key,
                    priority=victim.priority,
                    started=format_rfc3339(victim.start_s) if victim.start_s != NO_START_S else None,
                    budgets_violated=count.take(victim),
                )
                for victim in plan.victims
            ),
        )


def _scheduler_of(record: PodInfo) -> str:
    return record.signature.spec.scheduler_name or DEFAULT_SCHEDULER_NAME


def _scores(decision: Decision, limit: int | None) -> Scores:
    def place(entry: tuple[str, Mapping[str, int]]) -> tuple[int, bool, str]:
        node, scores = entry
        return -scores["total"], node != decision.node_name, node

    # Of thousands of nodes only five are shown: sort no more than those.
    count = limit if limit is not None else len(decision.scores)
    best = heapq.nsmallest(count, decision.scores.items(), key=place)
    plugins = [name for name in best[0][1] if name != "total"] if best else []
    given = {name: {scores[name] for scores in decision.scores.values()} for name in plugins}
    return Scores(
        rows=tuple(ScoreRow(node, scores["total"], {name: scores[name] for name in plugins}) for node, scores in best),
        same_for_all={name: found.copy().pop() for name, found in given.items() if len(found) == 1},
        differing=tuple(name for name in plugins if len(given[name]) > 1),
        tied_count=sum(scores["total"] == best[0][1]["total"] for scores in decision.scores.values()),
    )


def _grouped(decision: Decision) -> tuple[NodesRejecting, ...]:
    """The rejections, those of most nodes first."""
    by_status: dict[Status, list[str]] = {}
    for node, status in decision.node_to_status.items():
        if status is not None:
            by_status.setdefault(status, []).append(node)
    groups = [
        NodesRejecting(status.plugin, status.code.value, status.reasons, tuple(sorted(nodes)))
        for status, nodes in by_status.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-len(group.nodes), group.reasons)))


def _counted(groups: tuple[NodesRejecting, ...]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for group in groups:
        for reason in group.reasons:
            counts[reason] += len(group.nodes)
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))
