"""The result of a plan for people: tables in a terminal of 80 columns; and for programs: JSON and YAML.

1. A FailedScheduling message is printed unchanged, broken at spaces only. Pods with the same message share it.
2. A table shows at most `ROWS_MAX` rows, unless `-o wide` asks for all; names are never cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from mooring.cli.terminal import ELLIPSIS, Terminal, counted, listed_names, table, wrapped, yaml_text
from mooring.scheduler.plan.request import DrainedNode, PendingPod, Placement, PlanResult, Question

ROWS_MAX = 20


def as_json(result: PlanResult) -> str:
    return msgspec.json.format(msgspec.json.encode(result), indent=2).decode() + "\n"


def as_yaml(result: PlanResult) -> str:
    return yaml_text(msgspec.to_builtins(result))


def as_lines(result: PlanResult, terminal: Terminal, *, is_wide: bool = False) -> Iterator[str]:
    """The whole screen."""
    match result.question:
        case Question.REMOVE_NODES:
            yield from _drained(result, terminal, is_wide)
        case Question.ADD_NODES:
            yield from _added(result, terminal, is_wide)
        case Question.FIX:
            yield from _fixes(result, terminal)
        case Question.CAPACITY:
            yield from _capacity(result, terminal)
        case Question.DEFRAGMENT:
            yield from _defragmented(result, terminal, is_wide)
        case Question.PLACE:
            yield from _placements(result.placements, is_wide)
            yield from _pending(result.pending, terminal)
            yield _closing(result, terminal)
    for note in result.notes:
        yield from wrapped(note, terminal.width, indent=0)


def _placements(placements: Sequence[Placement], is_wide: bool) -> Iterator[str]:
    if not placements:
        return
    header = ["POD", "NODE"]
    rows = [[placement.pod, placement.node] for placement in placements]
    if any(placement.moved_from for placement in placements):
        header.insert(1, "FROM")
        for row, placement in zip(rows, placements, strict=True):
            row.insert(1, placement.moved_from)
    if is_wide:
        header.append("SCORE")
        for row, placement in zip(rows, placements, strict=True):
            row.append(str(placement.score) if placement.score is not None else "-")
    if any(placement.victims for placement in placements):
        header.append("EVICTS")
        for row, placement in zip(rows, placements, strict=True):
            row.append(", ".join(_victims(placement)))
    yield from shortened_table(header, rows, None if is_wide else ROWS_MAX)


def _victims(placement: Placement) -> list[str]:
    return [
        f"{victim.pod} (violates {', '.join(victim.budgets_violated)})" if victim.budgets_violated else victim.pod
        for victim in placement.victims
    ]


def _pending(pending: Sequence[PendingPod], terminal: Terminal) -> Iterator[str]:
    by_message: dict[str, list[str]] = {}
    for pod in pending:
        by_message.setdefault(pod.message, []).append(pod.pod)
    for message, pods in by_message.items():
        names = listed_names(pods, terminal.width - len("pending: "))
        yield terminal.paint(f"pending: {names}", colour="red")
        yield from wrapped(message, terminal.width, indent=2)


def _closing(result: PlanResult, terminal: Terminal) -> str:
    placed, pending = len(result.placements), len(result.pending)
    victims = sum(len(placement.victims) for placement in result.placements)
    text = f"{counted(placed + pending, 'pod')}: {placed} placed, {pending} pending"
    if victims:
        text += f", {counted(victims, 'pod')} evicted"
    return terminal.paint(f"{text}.", bold=True)


def _drained(result: PlanResult, terminal: Terminal, is_wide: bool) -> Iterator[str]:
    yield "drain in this order:" if len(result.drained) > 1 else "drain:"
    for number, node in enumerate(result.drained, 1):
        outcome = terminal.paint("safe", colour="green") if node.is_safe else terminal.paint("not safe", colour="red")
        yield f"  {number}. {node.node}  {outcome}  {_pods_of(node)}"
        for text in node.blocked:
            yield from wrapped(text, terminal.width, indent=5)
        if node.lost:
            names = listed_names(node.lost, terminal.width - 30)
            yield from wrapped(f"no controller creates again: {names}", terminal.width, indent=5)
    yield ""
    yield from _placements(result.placements, is_wide)
    yield from _pending(result.pending, terminal)
    yield _closing(result, terminal)


def _pods_of(node: DrainedNode) -> str:
    text = counted(node.pods, "pod") + (" moves" if node.pods == 1 else " move")
    return f"{text}, {len(node.ends)} of DaemonSets end" if node.ends else text


def _added(result: PlanResult, terminal: Terminal, is_wide: bool) -> Iterator[str]:
    yield from _placements(result.placements, is_wide)
    yield from _pending(result.pending, terminal)
    if result.nodes_to_add:
        rows = [[node_type.type, str(node_type.count), f"{node_type.price:g}"] for node_type in result.nodes_to_add]
        yield ""
        yield from table([["ADD NODES LIKE", "COUNT", "PRICE"], *rows])
        total = sum(node_type.count for node_type in result.nodes_to_add)
        price = sum(node_type.price for node_type in result.nodes_to_add)
        yield terminal.paint(f"{counted(total, 'node')} to add, price {price:g}.", bold=True)
    else:
        helpless = "no nodes to add: the pending pods do not fit on new nodes like these either."
        yield terminal.paint(helpless if result.pending else "no nodes to add.", bold=True)
    if result.nodes_to_add:
        yield from _bound(result)
    yield _closing(result, terminal)


def _bound(result: PlanResult) -> Iterator[str]:
    if result.bound is not None:
        yield result.bound.text


def _fixes(result: PlanResult, terminal: Terminal) -> Iterator[str]:
    if result.placements:
        placed = result.placements[0]
        yield f"{placed.pod} fits already: it would go to node {placed.node}"
        return
    yield from _pending(result.pending, terminal)
    if not result.fixes:
        yield "no change of the pod, of a node or of the cluster was found that makes it fit."
        return
    yield terminal.paint("any of these makes it fit:", bold=True)
    for number, fix in enumerate(result.fixes, 1):
        for index, change in enumerate(fix.changes):
            start = f"{number}. " if index == 0 else " " * len(f"{number}. ")
            last = index + 1 == len(fix.changes)
            text = f"{start}{change}" + (f"  → {fix.node}" if last else ", and")
            yield from wrapped(text.lstrip(), terminal.width, indent=2 if index == 0 else 2 + len(start), hanging=5)


def _capacity(result: PlanResult, terminal: Terminal) -> Iterator[str]:
    capacity = result.capacity
    assert capacity is not None, "a capacity plan without a capacity"
    rows = [[pod, str(count)] for pod, count in capacity.pods.items()]
    yield from table([["POD", "MORE"], *rows])
    if capacity.is_limit_reached:
        yield "more would fit: the plan ends here."
    elif capacity.limited_by:
        yield terminal.paint(f"runs out first: {capacity.limited_by}", bold=True)
        reasons = ", ".join(f"{count} {reason}" for reason, count in capacity.reasons.items())
        yield from wrapped(f"of {counted(result.node_count, 'node')}: {reasons}", terminal.width, indent=2)


def _defragmented(result: PlanResult, terminal: Terminal, is_wide: bool) -> Iterator[str]:
    if result.cordoned:
        yield from wrapped(f"first cordon {', '.join(result.cordoned)}", terminal.width, indent=0, hanging=2)
    if result.moves:
        rows = [[move.pod, move.from_node, move.to_node] for move in result.moves]
        yield from shortened_table(["MOVE", "FROM", "TO"], rows, None if is_wide else ROWS_MAX)
    else:
        yield "no moves."
    yield from _placements(result.placements, is_wide)
    yield from _pending(result.pending, terminal)
    before, after = result.before, result.after
    if before is not None and after is not None:
        text = (
            f"{counted(len(result.moves), 'move')}; empty nodes: {before.empty_nodes} before, {after.empty_nodes} after"
        )
        yield terminal.paint(f"{text}, of {after.nodes}.", bold=True)
    yield from _bound(result)


def shortened_table(header: Sequence[str], rows: Sequence[Sequence[str]], rows_max: int | None) -> Iterator[str]:
    shown = rows if rows_max is None or len(rows) <= rows_max else rows[:rows_max]
    yield from table([header, *shown])
    if len(shown) < len(rows):
        counts = Counter(row[-1] for row in rows[len(shown) :])
        yield f"{ELLIPSIS} {len(rows) - len(shown)} more on {counted(len(counts), 'node')} (-o wide shows all)"
