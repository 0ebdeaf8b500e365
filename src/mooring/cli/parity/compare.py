"""One pod: what kube-scheduler and our engine decided, and where they differ.

1. A chosen node is right if it is one of our best nodes: kube-scheduler picks one of them at random.
2. A plugin without a score for a node counts as 0: a plugin that skips a pod logs nothing.
3. A nominated node may be another one if its victims are as good a choice: as many, of the same priorities, that
   started at the same time. kube-scheduler picks one of such nodes at random.
4. Mooring follows one version of Kubernetes. A difference that another version explains names the reason
   (`VERSION_CHANGES`), and is no failure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from mooring.cli.parity.kube_scheduler import BinaryVersion, Scores
from mooring.scheduler.cycle.decision import Decision

OUTCOME, NODE, FEASIBLE, MESSAGE, NOMINATED, VICTIMS = (
    "outcome",
    "chosen node",
    "feasible nodes",
    "message",
    "nominated node",
    "victims",
)
"""What is compared besides the scores of plugins."""
PARTS = (OUTCOME, FEASIBLE, NODE, MESSAGE, NOMINATED, VICTIMS)
TOTAL = "total"

Rank = tuple[tuple[int, str], ...]
"""Priority and start time of each victim, sorted."""


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What kube-scheduler did with a pod."""

    node: str = ""
    feasible: int = 0
    scores: Scores = {}
    message: str = ""
    nominated: str = ""
    victims: tuple[str, ...] = ()
    victims_rank: Rank = ()


class Difference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One value that both have, and that is not the same."""

    pod: str
    part: str
    """One of `PARTS`, or the name of a plugin."""
    node: str = ""
    kube_scheduler: str
    mooring: str
    explained: str = ""
    """What changed between the versions, if that explains it."""


class VersionChange(msgspec.Struct, frozen=True, kw_only=True):
    """What Kubernetes changed in version 1.`minor`."""

    minor: int
    part: str
    reason: str
    of_message: tuple[tuple[str, str], ...] = ()
    """Patterns and replacements that make messages of both versions the same."""


BALANCED = "NodeResourcesBalancedAllocation"
_PREEMPTION_COUNTS = (
    r"\d+ (Insufficient [^,.]+|No preemption victims found for incoming pod|Preemption is not helpful for scheduling)"
    r"(, )?(?=[^.]*\.$)"
)
"""In the last sentence of a message only, which is about preemption."""
VERSION_CHANGES = (
    VersionChange(minor=36, part=BALANCED, reason="v1.36 scores how the pod changes the balance of the node"),
    VersionChange(
        minor=35,
        part=MESSAGE,
        reason="v1.35 no longer names the taints",
        of_message=((r"untolerated taint(\(s\)| \{[^}]*\})", "untolerated taint(s)"),),
    ),
    VersionChange(
        minor=34,
        part=MESSAGE,
        reason="v1.34 enables DynamicResources, which adds a part to the message",
        of_message=((r"(no new claims to deallocate|still not schedulable), ", ""),),
    ),
    VersionChange(
        minor=34,
        part=MESSAGE,
        reason="since v1.34, preemption does not help on a node that is smaller than the pod",
        of_message=((_PREEMPTION_COUNTS, ""),),
    ),
)
DEVICES_MINOR = 34
"""Before, kube-scheduler ignores resource claims by default."""


@dataclass(slots=True)
class Tally:
    """Compared values and differences, by part."""

    version: BinaryVersion
    compared: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    def differing(self, part: str, *, is_explained: bool) -> int:
        return sum(
            difference.part == part and bool(difference.explained) == is_explained for difference in self.differences
        )

    @property
    def unexplained(self) -> list[Difference]:
        return [difference for difference in self.differences if not difference.explained]

    def parts(self) -> list[str]:
        """Plugins by name, then the rest."""
        plugins = sorted(set(self.compared) - set(PARTS))
        return [*plugins, *(part for part in PARTS if self.compared[part])]


def compare_pod(tally: Tally, pod: str, theirs: Observed, ours: Decision, ranks: Mapping[str, tuple[int, str]]) -> None:
    """Adds what was compared. `ranks` has priority and start time of each placed pod."""
    known = len(tally.differences)
    _compare(tally, pod, theirs, ours, ranks)
    tally.differences[known:] = explained(tally.differences[known:], tally.version)


def explained(differences: list[Difference], version: BinaryVersion) -> list[Difference]:
    """The differences of one pod, with the reasons that the version gives."""
    changes = [change for change in VERSION_CHANGES if version.minor < change.minor]
    reasons = {change.part: change.reason for change in changes if not change.of_message}
    found: list[Difference] = []
    for difference in differences:
        reason = reasons.get(difference.part, "")
        if difference.part == MESSAGE:
            reason = _message_reason(difference, changes)
        elif difference.part == NODE:  # follows from the scores
            reason = next((reasons[difference.part] for difference in differences if difference.part in reasons), "")
        found.append(msgspec.structs.replace(difference, explained=reason))
    return found


def _message_reason(difference: Difference, changes: list[VersionChange]) -> str:
    theirs, ours, reasons = difference.kube_scheduler, difference.mooring, []
    for change in changes:
        before = theirs, ours
        for pattern, replacement in change.of_message:
            theirs, ours = re.sub(pattern, replacement, theirs), re.sub(pattern, replacement, ours)
        if (theirs, ours) != before:
            reasons.append(change.reason)
    return "; ".join(reasons) if theirs == ours else ""


def _compare(tally: Tally, pod: str, theirs: Observed, ours: Decision, ranks: Mapping[str, tuple[int, str]]) -> None:

    def differ(part: str, found: object, own: object) -> None:
        tally.compared[part] += 1
        if found != own:
            tally.differences.append(Difference(pod=pod, part=part, kube_scheduler=str(found), mooring=str(own)))

    differ(OUTCOME, _outcome(theirs.node, theirs.nominated), _outcome(ours.node_name, _nominated(ours)))
    if theirs.node and ours.node_name is not None:
        _compare_placed(tally, pod, theirs, ours)
        return
    if theirs.node or ours.node_name is not None:
        return  # one of them has no message and no victims
    differ(MESSAGE, theirs.message, ours.message or "")
    plan = ours.preemption
    if not theirs.nominated or plan is None:
        return
    victims = tuple(sorted(victim.key for victim in plan.victims))
    rank = tuple(sorted(ranks.get(key, (0, "")) for key in victims))
    if theirs.nominated != plan.node_name and theirs.victims_rank == rank:
        tally.compared[NOMINATED] += 1
        return
    differ(NOMINATED, theirs.nominated, plan.node_name)
    differ(VICTIMS, ", ".join(theirs.victims), ", ".join(victims))


def _compare_placed(tally: Tally, pod: str, theirs: Observed, ours: Decision) -> None:
    tally.compared[FEASIBLE] += 1
    tally.compared[NODE] += 1
    own_nodes = set(ours.scores)
    if theirs.feasible == 1:
        their_nodes = {theirs.node}
    else:
        their_nodes = set(theirs.scores)
    if their_nodes != own_nodes:
        only_theirs, only_ours = sorted(their_nodes - own_nodes), sorted(own_nodes - their_nodes)
        tally.differences.append(
            Difference(
                pod=pod,
                part=FEASIBLE,
                kube_scheduler=f"{len(their_nodes)}, of which only here: {', '.join(only_theirs) or 'none'}",
                mooring=f"{len(own_nodes)}, of which only here: {', '.join(only_ours) or 'none'}",
            )
        )
        return
    best = _best(ours)
    if theirs.node not in best:
        tally.differences.append(
            Difference(pod=pod, part=NODE, kube_scheduler=theirs.node, mooring=f"one of {', '.join(sorted(best))}")
        )
    if theirs.feasible > 1:
        for difference in _score_differences(tally, pod, theirs.scores, ours.scores):
            tally.differences.append(difference)


def _score_differences(
    tally: Tally, pod: str, theirs: Scores, ours: Mapping[str, Mapping[str, int]]
) -> Iterator[Difference]:
    plugins = {plugin for scores in theirs.values() for plugin in scores}
    plugins |= {plugin for scores in ours.values() for plugin in scores if plugin != TOTAL}
    for plugin in sorted(plugins):
        for node in sorted(theirs):
            found, own = theirs[node].get(plugin, 0), ours[node].get(plugin, 0)
            tally.compared[plugin] += 1
            if found != own:
                yield Difference(pod=pod, part=plugin, node=node, kube_scheduler=str(found), mooring=str(own))


def _best(decision: Decision) -> set[str]:
    highest = max(scores[TOTAL] for scores in decision.scores.values())
    return {node for node, scores in decision.scores.items() if scores[TOTAL] == highest}


def _nominated(decision: Decision) -> str:
    return decision.preemption.node_name if decision.preemption is not None else ""


def _outcome(node: str | None, nominated: str) -> str:
    if node:
        return "placed"
    return "preempts" if nominated else "unschedulable"
