"""The report for programs: JSON and YAML of a documented, stable structure (docs/explain.md).

1. Fields are only ever added. A field that does not apply to an outcome is left out, not null.
"""

from __future__ import annotations

from mooring.cli.explain.report import (
    GrantedDevice,
    NodeObstacles,
    NodesRejecting,
    NotJudged,
    PodExplanation,
    Preemption,
    Report,
    Scores,
    Victim,
)
from mooring.cli.terminal import yaml_text
from mooring.kit.clock import format_rfc3339
from mooring.scheduler.framework.obstacle import Obstacle

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
        data["rejections"] = [_rejection(group) for group in pod.rejections]
    if pod.everywhere:
        data["obstaclesEverywhere"] = [_obstacle(obstacle) for obstacle in pod.everywhere]
        data["otherwiseFeasible"] = pod.otherwise_count
    if pod.nearest:
        data["obstacles"] = [_node(node) for node in pod.nearest]
    if pod.devices:
        data["devices"] = [_device(device) for device in pod.devices]
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


def _device(device: GrantedDevice) -> Data:
    return {
        "claim": device.claim,
        "request": device.request,
        "driver": device.driver,
        "pool": device.pool,
        "device": device.device,
    }


def _scores(scores: Scores) -> Data:
    return {
        "tied": scores.tied_count,
        "scores": [{"node": row.node, "total": row.total, "plugins": dict(row.by_plugin)} for row in scores.rows],
    }


def _rejection(group: NodesRejecting) -> Data:
    return {
        "plugin": group.plugin,
        "code": group.code,
        "reasons": list(group.reasons),
        "nodes": list(group.nodes),
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
