"""The report for people: a few lines for each pod, in a terminal of 80 columns.

1. The FailedScheduling message is printed unchanged, broken at spaces only.
2. Pods that go nowhere for the same reasons as the one before them get one line each.
3. Names are never cut, so that they can be copied. A long one has a line to itself, and may be longer than the line.
4. A score table has a column for each plugin whose scores differ. The others are named once, below. Columns that do
   not fit are summed up under `others`, those with the smallest differences first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from mooring.cli.explain.report import Outcome, PodExplanation, Preemption, Report, ScoreRow, Scores, Victim
from mooring.cli.terminal import ELLIPSIS, Terminal, counted, listed_names, shortened_names, wrapped

HEADINGS: Mapping[str, str] = {
    "NodeResourcesFit": "fit",
    "NodeResourcesBalancedAllocation": "balance",
    "ImageLocality": "images",
    "TaintToleration": "taints",
    "NodeAffinity": "labels",
    "PodTopologySpread": "spread",
    "InterPodAffinity": "affinity",
    "VolumeBinding": "volumes",
    "DynamicResources": "devices",
    "NodeLabel": "has label",
    "ServiceAffinity": "service",
    "NodeResourcesLeastAllocated": "free",
    "NodeResourcesMostAllocated": "full",
    "RequestedToCapacityRatio": "ratio",
    "SelectorSpread": "selector",
}
"""Headings of the columns of scores, by plugin."""

OTHERS = "others"
SCORE_WIDTH = 3
HEADING_WIDTH_MAX = 12
NODE_WIDTH_MIN = 18
NODE_WIDTH_MAX = 40
"""The column of node names is shortened to the minimum where columns of scores need the width."""
NODE_WIDTH_BESIDE = 24
"""Longer names of nodes have a line to themselves, above what is missing there."""
NAMES_WIDTH_MIN = 14
"""Minimum width of the node names beside a reason; a longer reason has the line to itself."""
_CHOSEN = "▸"


def as_lines(report: Report, terminal: Terminal) -> Iterator[str]:
    """The whole screen."""
    if not report.has_chosen_pods:
        yield from _opening(report, terminal)
    shown: PodExplanation | None = None
    replicas: list[PodExplanation] = []
    for pod in report.pods:
        if shown is not None and not report.has_chosen_pods and _is_replica(pod, shown):
            replicas.append(pod)
            continue
        yield from _replicas(replicas, terminal)
        replicas = []
        if shown is not None and shown.outcome is Outcome.UNSCHEDULABLE and replace(pod, pod=shown.pod) == shown:
            yield from _same_result(pod, shown, terminal)
            continue
        if shown is not None or not report.has_chosen_pods:
            yield ""
        yield from _pod(pod, report, terminal)
        shown = pod
    yield from _replicas(replicas, terminal)
    if len(report.pods) > 1:
        yield ""
        yield from _closing(report, terminal)


def _is_replica(pod: PodExplanation, shown: PodExplanation) -> bool:
    """Whether a pod was added for the same workload as the one that was shown, with the same outcome."""
    if not pod.workload or (pod.workload, pod.outcome, pod.not_judged) != (
        shown.workload,
        shown.outcome,
        shown.not_judged,
    ):
        return False
    return pod.outcome is Outcome.PLACED or replace(pod, pod=shown.pod) == shown


def _replicas(pods: list[PodExplanation], terminal: Terminal) -> Iterator[str]:
    """`and 4 more of Deployment default/web: node-1 ×2, node-2, node-3`."""
    if not pods:
        return
    start = f"  and {len(pods)} more of {pods[0].workload}"
    if pods[0].outcome is not Outcome.PLACED:
        yield from wrapped(f"{start.lstrip()} with the same result", terminal.width, indent=2, hanging=4)
        return
    counts = Counter(pod.node or "" for pod in pods)
    nodes = [f"{node} ×{count}" if count > 1 else node for node, count in counts.most_common()]
    names = listed_names(nodes, max(terminal.width - len(start) - 2, NAMES_WIDTH_MIN))
    yield f"{start}: {names}"


def _opening(report: Report, terminal: Terminal) -> Iterator[str]:
    pods = counted(report.placed_count, "pod") if report.placed_count else "no pods"
    where = "it" if report.node_count == 1 else "them"
    text = f"{counted(report.node_count, 'node')}, {pods} on {where}, {report.pending_count or 'none'} pending"
    yield terminal.paint(text, dim=True)


def _closing(report: Report, terminal: Terminal) -> Iterator[str]:
    outcomes = report.outcomes()
    preempting = sum(pod.preemption is not None and pod.preemption.node is not None for pod in report.pods)
    nowhere = outcomes[Outcome.UNSCHEDULABLE] - preempting
    parts = [
        (outcomes[Outcome.PLACED], "placed"),
        (preempting, "after preemption"),
        (nowhere, "nowhere"),
        (outcomes[Outcome.GATED], "gated"),
        (outcomes[Outcome.LEFT_ALONE], "left alone"),
        (outcomes[Outcome.ERROR], "in error"),
    ]
    text = ", ".join(f"{count} {word}" for count, word in parts if count)
    pending = counted(len(report.pods), "pending pod")
    if len(report.pods) < report.pending_count:
        pending = f"{len(report.pods)} of {counted(report.pending_count, 'pending pod')}"
    yield terminal.paint(f"{pending}: {text}.", bold=True)


def _pod(pod: PodExplanation, report: Report, terminal: Terminal) -> Iterator[str]:
    match pod.outcome:
        case Outcome.PLACED:
            is_open = any(entry.may_reject for entry in pod.not_judged)
            fate, colour = ("may go to", "yellow") if is_open else ("goes to", "green")
            yield from _heading(pod, fate, colour, terminal, pod.node or "")
            yield from _not_judged(pod, terminal)
            yield from _placed(pod, report, terminal)
        case Outcome.UNSCHEDULABLE:
            preempts = pod.preemption is not None and pod.preemption.node is not None
            fate = "goes nowhere yet: it has to preempt" if preempts else "goes nowhere"
            yield from _heading(pod, fate, "yellow" if preempts else "red", terminal)
            yield from _not_judged(pod, terminal)
            yield from _nowhere(pod, terminal)
        case Outcome.GATED:
            yield from _remark(pod, "is not in the queue", "cyan", terminal)
        case Outcome.ERROR:
            yield from _remark(pod, "could not be decided", "red", terminal)
        case Outcome.LEFT_ALONE:
            yield from _remark(pod, "is left alone", "cyan", terminal)
        case Outcome.RUNNING:
            yield from _heading(pod, "runs already on", "green", terminal, pod.node or "")
        case Outcome.FINISHED:
            yield from _remark(pod, "has finished", "cyan", terminal)


def _not_judged(pod: PodExplanation, terminal: Terminal) -> Iterator[str]:
    for entry in pod.not_judged:
        for line in wrapped(str(entry), terminal.width, indent=2, hanging=4):
            yield terminal.paint(line, colour="yellow")


def _remark(pod: PodExplanation, fate: str, colour: str, terminal: Terminal) -> Iterator[str]:
    """`default/web is left alone: asks for scheduler volcano`, on two lines if it must be."""
    whole = f"{pod.pod} {fate}: {pod.message}"
    if len(whole) <= terminal.width:
        yield f"{terminal.paint(pod.pod, bold=True)} {terminal.paint(fate, colour=colour)}: {pod.message}"
        return
    yield from _heading(pod, f"{fate}:", colour, terminal)
    yield from wrapped(pod.message, terminal.width, indent=2)


def _same_result(pod: PodExplanation, shown: PodExplanation, terminal: Terminal) -> Iterator[str]:
    """A pod that fits nowhere for the reasons that were printed for another one."""
    name, fate = terminal.paint(pod.pod, bold=True), terminal.paint("goes nowhere", colour="red")
    is_long = len(f"{pod.pod} goes nowhere, just as {shown.pod}") > terminal.width
    yield f"{name} {fate}, just as" if is_long else f"{name} {fate}, just as {shown.pod}"
    if is_long:
        yield f"  {shown.pod}"


def _heading(pod: PodExplanation, fate: str, colour: str, terminal: Terminal, node: str = "") -> Iterator[str]:
    """`default/web goes to node-3`, and the priority at the right end of the line. A long node has its own line."""
    rank = f"priority {pod.priority}" if pod.priority else ""
    text = f"{fate} {node}" if node else fate
    is_long = bool(node) and len(f"{pod.pod} {text}  {rank}".rstrip()) > terminal.width
    text = fate if is_long else text
    gap = " " * max(terminal.width - len(pod.pod) - 1 - len(text) - len(rank), 2) if rank else ""
    name = terminal.paint(pod.pod, bold=True)
    yield f"{name} {terminal.paint(text, colour=colour)}{gap}{terminal.paint(rank, dim=True)}"
    if is_long:
        yield f"  {terminal.paint(node, colour=colour)}"


# Pods that fit


def _placed(pod: PodExplanation, report: Report, terminal: Terminal) -> Iterator[str]:
    scores = pod.scores
    if pod.feasible_count == 1 or scores is None:
        of_all = f"of {pod.node_count} nodes that can take it" if pod.node_count > 1 else "there is"
        yield f"  the only one {of_all}"
    elif scores.tied_count == pod.feasible_count:
        yield f"  {pod.feasible_count} of {counted(pod.node_count, 'node')} can take it, all equally well"
        yield from _score_notes(scores, report.seed, terminal)
    else:
        yield f"  {pod.feasible_count} of {counted(pod.node_count, 'node')} can take it, best first:"
        yield from _score_table(scores, pod.node, terminal)
        hidden = pod.feasible_count - len(scores.rows)
        if hidden:
            yield terminal.paint(f"    and {hidden} more; --nodes all shows them", dim=True)
        yield from _score_notes(scores, report.seed, terminal)
    for line in _granted(pod):
        yield from wrapped(line, terminal.width, indent=2, hanging=4)
    rejecting = pod.node_count - pod.feasible_count
    if rejecting and pod.reasons:
        text = ", ".join(f"{count} {reason}" for reason, count in pod.reasons.items())
        yield from wrapped(f"{'rejects' if rejecting == 1 else 'reject'}: {text}", terminal.width, indent=2, hanging=4)


def _granted(pod: PodExplanation) -> Iterator[str]:
    """`gets gpu-0, gpu-1 of pool node-3 for claim default/train, request gpus`."""
    by_request: dict[tuple[str, str, str], list[str]] = {}
    for device in pod.devices:
        by_request.setdefault((device.pool, device.claim, device.request), []).append(device.device)
    for (pool, claim, request), names in by_request.items():
        yield f"gets {', '.join(names)} of pool {pool} for claim {claim}, request {request}"


def _score_table(scores: Scores, chosen: str | None, terminal: Terminal) -> Iterator[str]:
    room = terminal.width - len("  ▸ ")
    longest = max(len("node"), *(len(row.node) for row in scores.rows))
    columns = _columns_that_fit(scores, room - min(longest, NODE_WIDTH_MIN))
    headings = ["total", *columns]
    cells = [[row.total, *_cells(row, columns)] for row in scores.rows]
    widths = [max(len(heading), *(len(str(line[at])) for line in cells)) for at, heading in enumerate(headings)]
    node_width = min(longest, NODE_WIDTH_MAX, room - sum(width + 2 for width in widths))
    names = shortened_names([row.node for row in scores.rows], node_width)
    node_width = max(len("node"), min(node_width, max(map(len, names))))
    titles = "  ".join(heading.rjust(width) for heading, width in zip(headings, widths))
    yield terminal.paint(f"    {'node'.ljust(node_width)}  {titles}", dim=True)
    for row, name, line in zip(scores.rows, names, cells):
        numbers = "  ".join(str(cell).rjust(width) for cell, width in zip(line, widths))
        mark = _CHOSEN if row.node == chosen else " "
        texts = [f"  {mark} {name.ljust(node_width)}  {numbers}"]
        if len(name) > node_width:
            texts = [f"  {mark} {name}", f"    {' ' * node_width}  {numbers}"]
        for text in texts:
            yield terminal.paint(text, colour="green") if row.node == chosen else text


def _columns_that_fit(scores: Scores, room: int) -> dict[str, tuple[str, ...]]:
    """Heading -> plugins summed up under it, in the order of the profile."""
    kept = list(scores.differing)
    while kept:
        folded = [name for name in scores.differing if name not in kept]
        headings = ["total", *(heading_of(name) for name in kept), *([OTHERS] if folded else [])]
        if sum(max(len(heading), SCORE_WIDTH) + 2 for heading in headings) <= room:
            break
        kept.remove(min(kept, key=lambda name: _spread(scores, name)))
    folded = [name for name in scores.differing if name not in kept]
    columns: dict[str, tuple[str, ...]] = {heading_of(name): (name,) for name in kept}
    if folded:
        columns[OTHERS] = tuple(folded)
    return columns


def _spread(scores: Scores, plugin: str) -> int:
    found = [row.by_plugin[plugin] for row in scores.rows]
    return max(found) - min(found)


def _cells(row: ScoreRow, columns: Mapping[str, tuple[str, ...]]) -> list[int]:
    return [sum(row.by_plugin[name] for name in plugins) for plugins in columns.values()]


def _score_notes(scores: Scores, seed: int, terminal: Terminal) -> Iterator[str]:
    same = [f"{heading_of(name)} {score}" for name, score in scores.same_for_all.items() if score]
    if same:
        yield from wrapped(f"the same for all nodes: {', '.join(same)}", terminal.width, indent=2, hanging=4)
    if scores.tied_count > 1:
        yield f"  {scores.tied_count} nodes tie with {scores.rows[0].total}; one was drawn with seed {seed}"


def heading_of(plugin: str) -> str:
    heading = HEADINGS.get(plugin) or plugin
    return heading if len(heading) <= HEADING_WIDTH_MAX else heading[: HEADING_WIDTH_MAX - 1] + ELLIPSIS


# Pods that do not fit


def _nowhere(pod: PodExplanation, terminal: Terminal) -> Iterator[str]:
    for line in wrapped(pod.message, terminal.width, indent=2):
        yield terminal.paint(line, dim=True)
    if pod.rejections:
        yield "  why:"
        yield from _reasons(pod, terminal)
    for obstacle in pod.everywhere:
        yield from wrapped(f"whatever the node: {obstacle.text}", terminal.width, indent=2, hanging=4)
    if pod.everywhere and pod.otherwise_count:
        yield f"  otherwise {pod.otherwise_count} of {counted(pod.node_count, 'node')} would take it"
    if pod.nearest and not pod.otherwise_count:
        yield "  nearest nodes, and what is missing:"
        yield from _nearest(pod, terminal)
    if pod.preemption is not None:
        yield from _preemption(pod.preemption, terminal)


def _reasons(pod: PodExplanation, terminal: Terminal) -> Iterator[str]:
    digits = max(len(str(count)) for count in pod.reasons.values())
    room = terminal.width - digits - len("     ×   ") - NAMES_WIDTH_MIN
    width = max((len(reason) for reason in pod.reasons if len(reason) <= room), default=0)
    for reason, count in pod.reasons.items():
        nodes = sorted(node for group in pod.rejections if reason in group.reasons for node in group.nodes)
        start = f"    {str(count).rjust(digits)} × "
        room_beside = terminal.width - len(start) - width - 2
        if len(reason) <= width and len(names := listed_names(nodes, room_beside)) <= room_beside:
            yield f"{start}{reason.ljust(width)}  {terminal.paint(names, dim=True)}"
        else:
            lines = wrapped(reason, terminal.width, indent=len(start))
            yield start + lines[0].lstrip()
            yield from lines[1:]
            yield " " * len(start) + terminal.paint(listed_names(nodes, terminal.width - len(start)), dim=True)


def _nearest(pod: PodExplanation, terminal: Terminal) -> Iterator[str]:
    width = max(len(entry.node) for entry in pod.nearest)
    for entry in pod.nearest:
        missing = "; ".join(obstacle.text for obstacle in entry.obstacles)
        if width > NODE_WIDTH_BESIDE:
            yield f"    {terminal.paint(entry.node, bold=True)}"
            yield from wrapped(missing, terminal.width, indent=6)
        else:
            lines = wrapped(missing, terminal.width, indent=width + 6)
            yield f"    {terminal.paint(entry.node.ljust(width), bold=True)}{lines[0][width + 4 :]}"
            yield from lines[1:]


def _preemption(preemption: Preemption, terminal: Terminal) -> Iterator[str]:
    if preemption.node is None:
        return  # the message says why not, in Kubernetes' own words
    node, then = terminal.paint(preemption.node, bold=True), "and be nominated there:"
    if len(f"  would preempt on {preemption.node}, {then}") <= terminal.width:
        yield f"  would preempt on {node}, {then}"
    else:
        yield f"  would preempt on {node},"
        yield f"    {then}"
    ranks = max(len(str(victim.priority)) for victim in preemption.victims)
    tails = [f"  priority {str(victim.priority).rjust(ranks)}  {_since(victim)}" for victim in preemption.victims]
    room = terminal.width - 4 - max(map(len, tails))
    width = max((len(victim.pod) for victim in preemption.victims if len(victim.pod) <= room), default=0)
    for victim, tail in zip(preemption.victims, tails):
        if len(victim.pod) <= room:
            yield f"    {victim.pod.ljust(width)}{tail}"
        else:
            yield f"    {victim.pod}"
            yield f"    {' ' * width}{tail}"
        for budget in victim.budgets_violated:
            yield terminal.paint(f"      breaks the disruption budget {budget}", colour="red")


def _since(victim: Victim) -> str:
    return f"since {victim.started[:16].replace('T', ' ')}" if victim.started is not None else "not started yet"
