"""What `mooring up --from` cloned and what it did not, in lines for people."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator

from mooring.cluster.clone import CloneReport

FAILURES_SHOWN_MAX = 20
FAILURE_LETTERS_MAX = 300
ADDED_SHOWN_MAX = 5


def wrapped(line: str, width: int) -> str:
    """A line for a terminal of that width, with what follows indented."""
    return textwrap.fill(line, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def clone_lines(report: CloneReport, took_s: float) -> Iterator[str]:
    """A summary first, then what needs attention."""
    yield f"cloned {_cloned(report)} in {took_s:.1f} s"
    if report.added:
        shown = ", ".join(report.added[:ADDED_SHOWN_MAX])
        more = len(report.added) - ADDED_SHOWN_MAX
        yield f"  added, as the dump names but does not contain them: {shown}{f' and {more} more' if more > 0 else ''}"
    if report.ownerless:
        yield f"  without their owners, which are not in the dump: {_counts(report.ownerless)}"
    for reason, by_kind in report.left_out.items():
        yield f"  not taken over: {_counts(by_kind)} ({reason})"
    for failure in report.failures[:FAILURES_SHOWN_MAX]:
        yield f"  not taken over: {textwrap.shorten(failure, FAILURE_LETTERS_MAX, placeholder=' ...')}"
    if len(report.failures) > FAILURES_SHOWN_MAX:
        yield f"  not taken over: {len(report.failures) - FAILURES_SHOWN_MAX} more"


def _cloned(report: CloneReport) -> str:
    others = report.cloned.total() - report.cloned["Node"] - report.cloned["Pod"]
    nodes = _many(report.cloned["Node"], "node")
    if report.nodes_not_ready:
        nodes += f" ({report.nodes_not_ready:,} not ready)"
    pods = _many(report.cloned["Pod"], "pod")
    states = [f"{report.pods[state]:,} {state}" for state in ("bound", "pending", "finished") if report.pods[state]]
    if states:
        pods += f" ({', '.join(states)})"
    return f"{nodes}, {pods}, {_many(others, 'other object')}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _counts(by_kind: Counter[str]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in by_kind.most_common())
