"""The answers of `mooring why` and `mooring queue` for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mooring.cli.terminal import counted, table, wrapped
from mooring.kit.clock import parse_rfc3339

ATTEMPTS_SHOWN_MAX = 10
PODS_SHOWN_MAX = 200


def attempts_lines(
    key: str, decisions: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], now_s: float, width: int
) -> Iterator[str]:
    """The state of a pod, then its attempts, the latest first."""
    for row in rows:
        yield from _state(key, row, now_s, width)
    if not decisions:
        yield f"the scheduler has no record of an attempt for {key}"
        return
    counts = Counter(str(decision["result"]) for decision in decisions)
    summary = ", ".join(f"{count} × {result}" for result, count in counts.items())
    yield f"{counted(len(decisions), 'attempt')} on record: {summary}"
    for index, decision in enumerate(decisions[:ATTEMPTS_SHOWN_MAX]):
        before = decisions[index + 1] if index + 1 < len(decisions) else None
        yield from _attempt(decision, before, now_s, width)
    if len(decisions) > ATTEMPTS_SHOWN_MAX:
        yield f"… {len(decisions) - ATTEMPTS_SHOWN_MAX} earlier attempts (-o json shows all)"


def node_lines(found: Mapping[str, Any], width: int) -> Iterator[str]:
    obstacles = found["obstacles"]
    if not obstacles:
        yield f"nothing keeps {found['pod']} from node {found['node']} now"
        return
    yield f"{found['pod']} does not fit on node {found['node']}:"
    for obstacle in obstacles:
        yield from wrapped(f"{obstacle['text']}  ({obstacle['plugin']})", width, indent=2, hanging=4)


def queue_lines(page: Mapping[str, Any], now_s: float, width: int) -> Iterator[str]:
    """The numbers of waiting pods, then the pods by state."""
    counts: Mapping[str, int] = page["counts"]
    yield ", ".join(f"{_words(name)} {count}" for name, count in counts.items())
    pods: Sequence[Mapping[str, Any]] = page["pods"]
    if not pods:
        return
    rows = [
        [
            str(row["pod"]),
            str(row["state"]),
            _ago(row.get("since"), now_s),
            str(row.get("attempts", "")),
            _until(row.get("backsOffUntil") or row.get("retriedAtTheLatest"), now_s),
            ",".join(row.get("rejectedBy") or row.get("waitsFor") or [row.get("gatedBy", "")]),
        ]
        for row in pods[:PODS_SHOWN_MAX]
    ]
    yield from table([["POD", "STATE", "SINCE", "ATTEMPTS", "RETRY IN", "BECAUSE OF"], *rows])
    awaited = dict.fromkeys(tuple(row["awaits"]) for row in pods if row.get("awaits"))
    for events in awaited:
        concerned = [str(row["pod"]) for row in pods if tuple(row.get("awaits", ())) == events]
        who = concerned[0] if len(concerned) == 1 else f"{len(concerned)} pods"
        yield from wrapped(f"{who}: tried again after {', '.join(events)}", width, indent=0, hanging=2)
    if len(pods) > PODS_SHOWN_MAX:
        yield f"… {len(pods) - PODS_SHOWN_MAX} more (-o json shows all)"


def _state(key: str, row: Mapping[str, Any], now_s: float, width: int) -> Iterator[str]:
    text = f"{key}: {row['state']}"
    if row.get("node"):
        text += f" ({row['node']})" if "node" not in str(row["state"]) else f", {row['node']}"
    if row.get("since"):
        text += f" for {_ago(row['since'], now_s)}"
    if row.get("gatedBy"):
        text += f", gated by {row['gatedBy']}"
    retry = row.get("backsOffUntil") or row.get("retriedAtTheLatest")
    if retry:
        text += f", tried again in {_until(retry, now_s)} at the latest"
    yield from wrapped(text, width, indent=0, hanging=2)
    if row.get("awaits"):
        yield from wrapped(f"or after {', '.join(row['awaits'])}", width, indent=2, hanging=4)
    yield from _nearest(row, width)


def _nearest(row: Mapping[str, Any], width: int) -> Iterator[str]:
    """What is in the way of a pending pod now."""
    for obstacle in row.get("obstaclesEverywhere", ()):
        yield from wrapped(f"on every node: {obstacle['text']}", width, indent=2, hanging=4)
    if row.get("nodesWithoutObstacles"):
        yield f"  {counted(row['nodesWithoutObstacles'], 'node')} would take it now"
    elif row.get("nearestNodes"):
        yield "  nearest nodes now:"
        for node in row["nearestNodes"]:
            yield from wrapped(_miss(node), width, indent=4, hanging=6)


def _miss(node: Mapping[str, Any]) -> str:
    return f"{node['node']}: {'; '.join(str(obstacle['text']) for obstacle in node['obstacles'])}"


def _attempt(decision: Mapping[str, Any], before: Mapping[str, Any] | None, now_s: float, width: int) -> Iterator[str]:
    head = f"{decision['attempt']}. {_ago(decision['time'], now_s)} ago: "
    if decision.get("node"):
        head += f"{decision['node']}, of {counted(int(decision['feasibleNodes']), 'feasible node')}"
        binding = str(decision.get("binding", ""))
        head += f", {binding}" if binding == "bound" else f", not bound: {binding}" if binding else ""
    else:
        head += str(decision["result"])
    if decision.get("tookMicroseconds"):
        head += f", {decision['tookMicroseconds'] / 1000:.1f} ms"
    if decision.get("requeuedBy"):
        head += f", tried after {decision['requeuedBy']}"
    yield from wrapped(head, width, indent=2, hanging=5)
    for node in decision.get("bestNodes", ()):
        scores = ", ".join(f"{name} {score}" for name, score in node["scores"].items() if score)
        yield from wrapped(f"{node['node']} {node['total']}: {scores}", width, indent=5, hanging=7)
    if decision.get("rejections"):
        earlier = _by_reason(before) if before is not None else {}
        for rejection in decision["rejections"]:
            reason = rejection.get("reason") or "rejected"
            change = ""
            if before is not None and earlier.get(reason, 0) != rejection["nodes"]:
                change = f" (was {earlier.get(reason, 0)})"
            yield from wrapped(
                f"{rejection['nodes']} × {reason}{change}  {rejection['plugin']}", width, indent=5, hanging=7
            )
    elif decision.get("message"):
        yield from wrapped(str(decision["message"]), width, indent=5)
    if decision.get("nearestNodes"):
        yield from wrapped(f"nearest: {_miss(decision['nearestNodes'][0])}", width, indent=5, hanging=7)
    if decision.get("preemption"):
        preemption = decision["preemption"]
        victims = ", ".join(preemption["victims"])
        yield from wrapped(f"preempts on {preemption['node']}: {victims}", width, indent=5, hanging=7)


def _by_reason(decision: Mapping[str, Any]) -> dict[str, int]:
    return {rejection.get("reason", ""): int(rejection["nodes"]) for rejection in decision.get("rejections", ())}


def _ago(time: object, now_s: float) -> str:
    return _duration(now_s - parse_rfc3339(str(time))) if time else ""


def _until(time: object, now_s: float) -> str:
    return _duration(parse_rfc3339(str(time)) - now_s) if time else ""


def _duration(seconds: float) -> str:
    """As kubectl writes ages: 5s, 3m20s, 2h5m."""
    whole = max(int(seconds), 0)
    if whole < 120:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60}s"
    return f"{whole // 3600}h{whole % 3600 // 60}m"


def _words(name: str) -> str:
    return {"inFlight": "in flight"}.get(name, name)
