"""The checker of the soak test: compares what clients saw with the rules.

Input: the writes of clients with their outcomes; the pods and nodes that a watch delivers; samples of processes.
Output: `Violation`s.

 1. An acknowledged write is there, until a later acknowledged one replaces it. A write whose answer was lost may have
    happened or not. A name is not written again after that, because a stopped server may carry out the write later.
 2. A write gets a larger revision than every write that was acknowledged before it was sent. A list is at least as new
    as the last write that was acknowledged before the list was sent.
 3. A pod that has a node keeps it until it is deleted.
 4. The pods of a node that have not ended never request more than the node has, at every revision.
 5. A process does not grow: between two samples under the same load, memory and open files stay within a tolerance.

The checker knows no server: it reads what was recorded, with code of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MEMORY_GROWTH_BYTES_MAX = 48 << 20
"""Tolerance for the growth of one process between the two samples. Allocators and caches need some; a leak of one
kilobyte per request exceeds it within a minute."""
MEMORY_GROWTH_SHARE_MAX = 0.25
"""The same, as a share of the first sample. The larger of the two tolerances counts."""
FILES_GROWTH_MAX = 100
"""Tolerance for open file descriptors: two schedulers hold up to 36 watches each, and open them again up to a minute
after their connections were cut. A descriptor that leaks with every malformed or cut request exceeds it in a run."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule, and the facts."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


class Violations(list[Violation]):
    def add(self, rule: str, text: str) -> None:
        self.append(Violation(rule, text))


# --- writes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attempt:
    """A write that was sent. `value` is None for a deletion."""

    name: str
    value: str | None
    floor: int
    """The largest revision that had been acknowledged by then."""


@dataclass(slots=True)
class WriteHistory:
    """The writes of all clients. At most one write of a name is under way."""

    violations: Violations = field(default_factory=Violations)
    acknowledged: int = 0
    lost: int = 0
    rejected: int = 0
    floor: int = 0
    _allowed: dict[str, set[str | None]] = field(default_factory=dict)
    """What may be found under each name."""
    _under_way: set[str] = field(default_factory=set)

    def begin(self, name: str, value: str | None) -> Attempt:
        assert name not in self._under_way, f"two writes of {name} at the same time"
        assert not self.is_abandoned(name), f"the outcome of an earlier write of {name} is unknown"
        self._under_way.add(name)
        return Attempt(name, value, self.floor)

    def acknowledge(self, attempt: Attempt, revision: int | None) -> None:
        """The server says that the write has happened, at this revision. The answer to a deletion has none."""
        self._under_way.discard(attempt.name)
        self._allowed[attempt.name] = {attempt.value}
        self.acknowledged += 1
        if revision is None:
            return
        if revision <= attempt.floor:
            text = f"{attempt.name} was written at {revision}, after a write at {attempt.floor} was acknowledged"
            self.violations.add("revisions never go back", text)
        self.floor = max(self.floor, revision)

    def reject(self, attempt: Attempt) -> None:
        """The server says that the write has not happened."""
        self._under_way.discard(attempt.name)
        self.rejected += 1

    def lose(self, attempt: Attempt) -> None:
        """Nobody says whether the write has happened."""
        self._under_way.discard(attempt.name)
        self._allowed.setdefault(attempt.name, {None}).add(attempt.value)
        self.lost += 1

    def is_abandoned(self, name: str) -> bool:
        return len(self._allowed.get(name, ())) > 1

    def forget(self, names: Iterable[str]) -> None:
        """Names that are not looked at any more: they are gone for good, and that was checked."""
        for name in names:
            if self._allowed.get(name) == {None}:
                del self._allowed[name]

    def deleted(self) -> list[str]:
        return [name for name, allowed in self._allowed.items() if allowed == {None}]

    def check_list(self, found: Mapping[str, str], revision: int, floor: int) -> None:
        """A list of everything, while no write was under way. `floor` is the one from before the list was sent."""
        if revision < floor:
            text = f"a list is of revision {revision}, after a write at {floor} was acknowledged"
            self.violations.add("revisions never go back", text)
        for name, allowed in self._allowed.items():
            if name not in self._under_way and found.get(name) not in allowed:
                expected = " or ".join(sorted("nothing" if value is None else value for value in allowed))
                text = f"{name}: found {found.get(name, 'nothing')}, expected {expected}"
                self.violations.add("every acknowledged write is present", text)
        for name in found.keys() - self._allowed.keys() - self._under_way:
            self.violations.add(
                "every acknowledged write is present", f"{name} exists, and was deleted or never written"
            )


# --- pods ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SeenPod:
    """What the checker reads of a pod."""

    uid: str
    name: str
    node: str = ""
    cpu_milli: int = 0
    has_ended: bool = False


@dataclass(slots=True)
class PodHistory:
    """All pods, as one watch after the other delivers them."""

    violations: Violations = field(default_factory=Violations)
    revision: int = 0
    bindings: int = 0
    _pods: dict[str, SeenPod] = field(default_factory=dict)
    _nodes: dict[str, str] = field(default_factory=dict)
    """The node of each pod that ever had one, by uid."""
    _capacity_milli: dict[str, int] = field(default_factory=dict)
    _used_milli: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _overcommitted: set[str] = field(default_factory=set)

    def set_capacity(self, node: str, cpu_milli: int) -> None:
        self._capacity_milli[node] = cpu_milli

    def see_list(self, pods: Iterable[SeenPod], revision: int) -> None:
        """All pods at a revision, at the beginning or after a watch has expired."""
        if revision < self.revision:
            text = f"a list of pods is of revision {revision}, after an event of {self.revision}"
            self.violations.add("revisions never go back", text)
        listed = {pod.uid: pod for pod in pods}
        for uid in [uid for uid in self._pods if uid not in listed]:
            self._remove(uid)
        for pod in listed.values():
            self._put(pod)
        self.revision = revision
        self._check_nodes()

    def see_event(self, pod: SeenPod, revision: int, *, is_deleted: bool = False) -> None:
        """One event of a watch that began at `self.revision`."""
        if revision <= self.revision:
            text = f"an event of {pod.name} is of revision {revision}, after one of {self.revision}"
            self.violations.add("revisions never go back", text)
        self.revision = max(self.revision, revision)
        if is_deleted:
            self._remove(pod.uid)
        else:
            self._put(pod)
            self._check_nodes()

    def _put(self, pod: SeenPod) -> None:
        before = self._nodes.get(pod.uid, "")
        if before and pod.node != before:
            text = f"{pod.name} ({pod.uid}) was on {before}, and is on {pod.node or 'no node'} now"
            self.violations.add("no pod is bound twice", text)
        if pod.node and not before:
            self.bindings += 1
        if pod.node:
            self._nodes[pod.uid] = pod.node
        self._take_back(pod.uid)
        self._pods[pod.uid] = pod
        if pod.node and not pod.has_ended:
            self._used_milli[pod.node] += pod.cpu_milli

    def _remove(self, uid: str) -> None:
        self._take_back(uid)
        self._pods.pop(uid, None)
        self._nodes.pop(uid, None)

    def _take_back(self, uid: str) -> None:
        pod = self._pods.get(uid)
        if pod is not None and pod.node and not pod.has_ended:
            self._used_milli[pod.node] -= pod.cpu_milli

    def _check_nodes(self) -> None:
        for node, used in self._used_milli.items():
            capacity = self._capacity_milli.get(node)
            is_over = capacity is not None and used > capacity
            if is_over and node not in self._overcommitted:
                text = f"{node} has {capacity}m cpu, and its pods request {used}m at revision {self.revision}"
                self.violations.add("no node is over-committed", text)
            (self._overcommitted.add if is_over else self._overcommitted.discard)(node)


# --- processes ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sample:
    """One process at one moment."""

    pid: int
    resident_bytes: int
    open_files: int


def check_level(name: str, before: Sample, after: Sample, violations: Violations) -> None:
    """Compare a process after its warm-up with the same process at the end."""
    assert before.pid == after.pid, f"{name} was started again in between"
    tolerance = max(MEMORY_GROWTH_BYTES_MAX, int(before.resident_bytes * MEMORY_GROWTH_SHARE_MAX))
    if after.resident_bytes > before.resident_bytes + tolerance:
        text = f"{name} grew from {before.resident_bytes >> 20} to {after.resident_bytes >> 20} MiB"
        violations.add("memory stays level", text)
    if after.open_files > before.open_files + FILES_GROWTH_MAX:
        text = f"{name} had {before.open_files} open files, and has {after.open_files}"
        violations.add("file descriptors stay level", text)
