"""Lives: what a simulated container does, as data.

Comes in   the lives that a file describes (`lives_file`), and those that are built in (`lives_builtin`)
Goes out   the life of a container, and how long each of its stages takes

A life is a graph of stages. A stage says what is seen of the container while it is in it, how long it stays there,
and where it goes then. Several ways are taken by their weights.

    creating ──> serving                     a service
    creating ──> working ──> done            a job
    creating ──> working ──> crashed ─ ─ ─ > creating    a crash loop: the kubelet starts it again

 1. A stage that takes no time (`for_s` is None) is never left but by being stopped.
 2. From a terminated stage there is no way but a new run, which the restart policy grants or not. `next` says where
    that run begins; without it, at the first stage.
 3. Which life: the one that an annotation names for the container; the one that an annotation names for the pod (its
    containers, not what goes before them); the first that matches; the first built-in one that matches.
 4. A life that an annotation names and nobody knows is told as the container's trouble, not kept from the user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase

from mooring.api.durations import parse_duration
from mooring.api.ownership import controller_of
from mooring.kit.entropy import Entropy
from mooring.kubelet.runtime import Role
from mooring.kubelet.views import KubeletContainer, KubeletPod

LIFE_ANNOTATION = "mooring.dev/life"
CONTAINER_LIFE_PREFIX = "life.mooring.dev/"
STAGE_S_MIN = 0.001
"""No stage is shorter, so that a circle of stages that take no time cannot stop the world."""


class Shown(Enum):
    """What is seen of a container in a stage."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True)
class Branch:
    stage: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    shown: Shown
    reason: str = ""
    message: str = ""
    is_ready: bool = True
    is_started: bool = True
    exit_code: int = 0
    signal: int = 0
    for_s: float | None = None
    jitter_s: float = 0.0
    growth: float = 1.0
    """By which the time grows with each visit of the same run, up to `for_s_max`."""
    for_s_max: float = 0.0
    for_annotation: str = ""
    """An annotation of the pod that says how long, instead of `for_s`."""
    ways: tuple[Branch, ...] = ()
    log: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """How it ends when it is asked to."""

    for_s: float = 0.1
    jitter_s: float = 0.0
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class Match:
    """Whose life it is. All that is said must hold; patterns are those of file names."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    container: str = ""
    image: str = ""
    role: Role | None = None
    owner_kind: str = ""
    restart_policy: str = ""

    def holds(self, pod: KubeletPod, container: KubeletContainer, role: Role) -> bool:
        metadata = pod.metadata
        if self.role is not None and role is not self.role:
            return False
        if self.restart_policy and pod.spec.restart_policy != self.restart_policy:
            return False
        if self.owner_kind:
            owner = controller_of(metadata)
            if owner is None or owner.kind != self.owner_kind:
                return False
        return (
            (not self.labels or _holds_all(self.labels, metadata.labels))
            and (not self.annotations or _holds_all(self.annotations, metadata.annotations))
            and (not self.namespace or fnmatchcase(metadata.namespace, self.namespace))
            and (not self.container or fnmatchcase(container.name, self.container))
            and (not self.image or fnmatchcase(container.image, self.image))
        )


@dataclass(frozen=True, slots=True)
class Life:
    name: str
    stages: Mapping[str, Stage]
    """By name; the first is where a run begins."""
    stop: Stop = Stop()
    match: Match | None = None
    """None: only for those who ask for it by name."""

    @property
    def first(self) -> Stage:
        return next(iter(self.stages.values()))


class Lives:
    """All lives that are known, first those that somebody wrote for this fleet."""

    def __init__(self, own: Sequence[Life], builtin: Sequence[Life]) -> None:
        self._ordered = (*own, *builtin)
        self._by_name: dict[str, Life] = {}
        for life in self._ordered:
            self._by_name.setdefault(life.name, life)

    def of(self, pod: KubeletPod, container: KubeletContainer, role: Role) -> Life:
        """The life of a container."""
        named = self._named(pod, container, role)
        if named:
            return self._by_name.get(named) or self._unknown(named)
        for life in self._ordered:
            if life.match is not None and life.match.holds(pod, container, role):
                return life
        raise AssertionError(f"no life is built in for container {container.name} of {pod.key}")

    def _named(self, pod: KubeletPod, container: KubeletContainer, role: Role) -> str:
        annotations = pod.metadata.annotations
        if not annotations:
            return ""
        named = annotations.get(f"{CONTAINER_LIFE_PREFIX}{container.name}", "")
        return named or (annotations.get(LIFE_ANNOTATION, "") if role is Role.CONTAINER else "")

    def _unknown(self, name: str) -> Life:
        known = ", ".join(sorted(self._by_name))
        message = f"no life is called {name!r}; known are {known}"
        stage = Stage("unknown", Shown.WAITING, "CreateContainerConfigError", message)
        return Life(name, {stage.name: stage})


def stage_duration_s(text: str) -> float:
    """The seconds of a duration such as "1m30s". Raises `ValueError`."""
    try:
        duration_s = parse_duration(text)
    except ValueError:
        duration_s = -1.0
    if duration_s < 0:
        raise ValueError(f'{text!r} is not a duration; wanted one such as "500ms", "10s" or "1m30s"')
    return duration_s


def stay_s(stage: Stage, pod: KubeletPod, visits: int, entropy: Entropy) -> float | None:
    """How long a container stays in a stage, at its visit of that number (from 0); None: for good."""
    for_s = _said_by_annotation_s(stage, pod)
    if for_s is None:
        for_s = stage.for_s
    if for_s is None:
        return None
    if stage.growth != 1.0 and visits:
        # No power of its own: a container that loops for a year must not overflow a float.
        for _ in range(min(visits, 64)):
            for_s *= stage.growth
    if stage.for_s_max:
        for_s = min(for_s, stage.for_s_max)
    if stage.jitter_s:
        for_s += entropy.uniform(0.0, stage.jitter_s)
    return max(STAGE_S_MIN, for_s)


def way_from(stage: Stage, entropy: Entropy) -> str:
    """The name of the stage that follows; empty if none does."""
    ways = stage.ways
    if len(ways) <= 1:
        return ways[0].stage if ways else ""
    drawn = entropy.uniform(0.0, sum(branch.weight for branch in ways))
    for branch in ways:
        drawn -= branch.weight
        if drawn < 0:
            return branch.stage
    return ways[-1].stage


def _said_by_annotation_s(stage: Stage, pod: KubeletPod) -> float | None:
    text = pod.metadata.annotations.get(stage.for_annotation, "") if stage.for_annotation else ""
    if not text:
        return None
    try:
        return stage_duration_s(text)
    except ValueError:
        return None  # the stage's own time then: an annotation is no place to fail a pod for


def _holds_all(wanted: Mapping[str, str], have: Mapping[str, str]) -> bool:
    for key, pattern in wanted.items():
        value = have.get(key)
        if value is None or not fnmatchcase(value, pattern):
            return False
    return True
