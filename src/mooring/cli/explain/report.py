"""The result of `mooring explain`: one `PodExplanation` for each pod, and the `Report` that holds them.

1. Nodes come in the order a reader wants: scores best first, obstacles nearest first, at most `--nodes` of them.
   Rejections are complete, grouped by plugin and reason.
2. JSON and YAML have a documented, stable structure (docs/explain.md). Fields are only ever added. A field that does
   not apply to an outcome is left out, not null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from mooring.cli.terminal import yaml_text
from mooring.kit.clock import format_rfc3339
from mooring.scheduler.framework.obstacle import Obstacle


class Outcome(StrEnum):
    """The result for a pod."""

    PLACED = "placed"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    """It has scheduling gates, and is not in the queue."""
    ERROR = "error"
    """The cycle failed, which says nothing about the nodes."""
    LEFT_ALONE = "left-alone"
    """It belongs to another scheduler, or is being deleted."""
    RUNNING = "running"
    """It has a node already."""
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """What one node scored: in total, and from each plugin, weighted."""

    node: str
    total: int
    by_plugin: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of the nodes that can take the pod."""

    rows: tuple[ScoreRow, ...]
    """The best ones, best first; of equal ones the chosen first."""
    same_for_all: Mapping[str, int]
    """Scores of the plugins that scored all nodes alike."""
    differing: tuple[str, ...]
    """The other plugins, in the order of the profile."""
    tied_count: int
    """How many nodes have the highest total."""


@dataclass(frozen=True, slots=True)
class NodesRejecting:
    """Nodes that the same plugin rejected for the same reasons."""

    plugin: str
    code: str
    reasons: tuple[str, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeObstacles:
    """Everything that is missing on one node."""

    node: str
    obstacles: tuple[Obstacle, ...]


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that would be evicted."""

    pod: str
    priority: int
    started: str | None
    budgets_violated: tuple[str, ...]
    """The disruption budgets that its eviction would violate."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """The node and the victims; or why preemption does not help."""

    node: str | None = None
    victims: tuple[Victim, ...] = ()
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class GrantedDevice:
    """A device that the pod gets."""

    claim: str
    request: str
    driver: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A part of a decision that depends on a kind which was not supplied; see `coverage`."""

    kind: str
    plugins: tuple[str, ...]
    """The plugins that would have read it."""
    absence: str
    """`the input holds no PersistentVolumeClaims`."""
    consequence: str
    """`its volumes were not judged`."""
    may_reject: bool = False
    """Whether feasible nodes might reject the pod if the kind were supplied."""

    def __str__(self) -> str:
        return f"{self.absence}: {self.consequence}"


@dataclass(frozen=True, slots=True)
class PodExplanation:
    """What was decided about one pod, and why."""

    pod: str
    outcome: Outcome
    priority: int = 0
    scheduler: str = ""
    node: str | None = None
    node_count: int = 0
    feasible_count: int = 0
    message: str = ""
    """The text of the FailedScheduling event, or another explanation."""
    scores: Scores | None = None
    rejections: tuple[NodesRejecting, ...] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How many nodes gave each reason, most frequent first."""
    everywhere: tuple[Obstacle, ...] = ()
    """Obstacles on every node."""
    nearest: tuple[NodeObstacles, ...] = ()
    otherwise_count: int = 0
    """How many nodes would fit without the obstacles of every node."""
    preemption: Preemption | None = None
    devices: tuple[GrantedDevice, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    workload: str = ""
    """`Deployment default/web`, if the pod was added for a workload of a file."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was read and what was decided."""

    pods: tuple[PodExplanation, ...]
    node_count: int
    placed_count: int
    """Pods that had a node before anything was decided."""
    pending_count: int
    seed: int
    decided_at_s: float
    """The wall-clock time that the decisions were made for."""
    has_chosen_pods: bool = False
    """Whether pods were named."""
    server: str = ""
    """The API server that was read; empty if only files were."""

    def outcomes(self) -> Counter[Outcome]:
        return Counter(pod.outcome for pod in self.pods)

    @property
    def has_unplaced_pods(self) -> bool:
        return any(pod.outcome in (Outcome.UNSCHEDULABLE, Outcome.ERROR) for pod in self.pods)


# --- JSON and YAML --------------------------------------------------------------------------------------------


VERSION = 1
Data = dict[str, object]


def as_json(report: Report) -> str:
    import json

    return json.dumps(as_data(report), indent=2, ensure_ascii=False) + "\n"


def as_yaml(report: Report) -> str:
    return yaml_text(as_data(report))


def as_data(report: Report) -> Data:
    data: Data = {"version": VERSION, "seed": report.seed, "time": format_rfc3339(report.decided_at_s)}
    if report.server:
        data["server"] = report.server
    return {**data, "nodes": report.node_count, "pods": [_pod(pod) for pod in report.pods]}


def _pod(pod: PodExplanation) -> Data:
    data: Data = {
        "pod": pod.pod,
        "outcome": pod.outcome.value,
        "priority": pod.priority,
        "scheduler": pod.scheduler,
    }
    if pod.workload:
        data["workload"] = pod.workload
    if pod.not_judged:
        data["notJudged"] = [_not_judged(entry) for entry in pod.not_judged]
    if pod.node is not None:
        data["node"] = pod.node
    if pod.message:
        data["message"] = pod.message
    if pod.scores is not None:
        data["feasible"] = pod.feasible_count
        data |= _scores(pod.scores)
    if pod.reasons:
        data["reasons"] = [{"reason": reason, "nodes": count} for reason, count in pod.reasons.items()]
    if pod.rejections:
        data["rejections"] = [asdict(group) for group in pod.rejections]
    if pod.everywhere:
        data["obstaclesEverywhere"] = [_obstacle(obstacle) for obstacle in pod.everywhere]
        data["otherwiseFeasible"] = pod.otherwise_count
    if pod.nearest:
        data["obstacles"] = [_node(node) for node in pod.nearest]
    if pod.devices:
        data["devices"] = [asdict(device) for device in pod.devices]
    if pod.preemption is not None:
        data["preemption"] = _preemption(pod.preemption)
    return data


def _not_judged(entry: NotJudged) -> Data:
    return {
        "kind": entry.kind,
        "plugins": list(entry.plugins),
        "reason": entry.absence,
        "consequence": entry.consequence,
    }


def _scores(scores: Scores) -> Data:
    return {
        "tied": scores.tied_count,
        "scores": [{"node": row.node, "total": row.total, "plugins": dict(row.by_plugin)} for row in scores.rows],
    }


def _node(node: NodeObstacles) -> Data:
    return {"node": node.node, "missing": [_obstacle(obstacle) for obstacle in node.obstacles]}


def _obstacle(obstacle: Obstacle) -> Data:
    return {
        "kind": obstacle.kind.value,
        "plugin": obstacle.plugin,
        "text": obstacle.text,
        "details": dict(obstacle.details),
    }


def _preemption(preemption: Preemption) -> Data:
    if preemption.node is None:
        return {"helps": False, "reason": preemption.why_not}
    return {
        "helps": True,
        "node": preemption.node,
        "victims": [_victim(victim) for victim in preemption.victims],
    }


def _victim(victim: Victim) -> Data:
    data: Data = {"pod": victim.pod, "priority": victim.priority}
    if victim.started is not None:
        data["startTime"] = victim.started
    data["budgetsViolated"] = list(victim.budgets_violated)
    return data
