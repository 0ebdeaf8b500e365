"""Stage sets: what simulated containers do, as data.

Input: a stage, its pod and random numbers. Output: the duration of the stage, and the next one.

A stage set is a graph of stages. A stage defines the reported state of the container, its duration, and the next stage.
Several transitions are chosen by weight.

    creating ──> serving                     a service
    creating ──> working ──> done            a job
    creating ──> working ──> crashed ─ ─ ─ > creating    a crash loop: the kubelet restarts the container

 1. A stage without a duration (`for_s` is None) ends only when the container is stopped.
 2. After a terminated stage only the kubelet starts a new run, by the restart policy. `next` of that stage names the
    first stage of the new run; by default it is the first stage of the set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase

from mooring.api.durations import parse_duration
from mooring.api.views.meta import controller_of
from mooring.kit.entropy import Entropy
from mooring.kubelet.runtime import Role
from mooring.kubelet.views import KubeletContainer, KubeletPod

STAGE_S_MIN = 0.001
"""The minimum duration of a stage, so that a cycle of stages without duration does not block the loop."""


class StageState(Enum):
    """The reported state of a container in a stage."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True)
class Transition:
    stage: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    state: StageState
    reason: str = ""
    message: str = ""
    is_ready: bool = True
    is_started: bool = True
    exit_code: int = 0
    signal: int = 0
    for_s: float | None = None
    jitter_s: float = 0.0
    growth: float = 1.0
    """The factor by which the duration grows with each visit within a run, up to `for_s_max`."""
    for_s_max: float = 0.0
    for_annotation: str = ""
    """A pod annotation that overrides `for_s`."""
    transitions: tuple[Transition, ...] = ()
    log: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StopBehavior:
    """How a container ends after SIGTERM."""

    for_s: float = 0.1
    jitter_s: float = 0.0
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class ContainerMatch:
    """Which containers a stage set applies to. All given fields must match; values are file name patterns."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    container: str = ""
    image: str = ""
    role: Role | None = None
    owner_kind: str = ""
    restart_policy: str = ""

    def matches(self, pod: KubeletPod, container: KubeletContainer, role: Role) -> bool:
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
            (not self.labels or _match_all(self.labels, metadata.labels))
            and (not self.annotations or _match_all(self.annotations, metadata.annotations))
            and (not self.namespace or fnmatchcase(metadata.namespace, self.namespace))
            and (not self.container or fnmatchcase(container.name, self.container))
            and (not self.image or fnmatchcase(container.image, self.image))
        )


@dataclass(frozen=True, slots=True)
class StageSet:
    name: str
    stages: Mapping[str, Stage]
    """By name; a run begins with the first."""
    stop: StopBehavior = StopBehavior()
    match: ContainerMatch | None = None
    """None: the stage set is used only by name."""

    @property
    def first(self) -> Stage:
        return next(iter(self.stages.values()))


def stage_duration_s(text: str) -> float:
    """The seconds of a duration such as "1m30s". Raises `ValueError`."""
    try:
        duration_s = parse_duration(text)
    except ValueError:
        duration_s = -1.0
    if duration_s < 0:
        raise ValueError(f'{text!r} is not a duration; wanted one such as "500ms", "10s" or "1m30s"')
    return duration_s


def stage_delay_s(stage: Stage, pod: KubeletPod, visits: int, entropy: Entropy) -> float | None:
    """The duration of a stage, at its visit of that number (from 0); None: without end."""
    for_s = _annotated_s(stage, pod)
    if for_s is None:
        for_s = stage.for_s
    if for_s is None:
        return None
    if stage.growth != 1.0 and visits:
        # Not a power: a container that loops for a year must not overflow a float.
        for _ in range(min(visits, 64)):
            for_s *= stage.growth
    if stage.for_s_max:
        for_s = min(for_s, stage.for_s_max)
    if stage.jitter_s:
        for_s += entropy.uniform(0.0, stage.jitter_s)
    return max(STAGE_S_MIN, for_s)


def next_stage(stage: Stage, entropy: Entropy) -> str:
    """The name of the next stage; empty if there is none."""
    transitions = stage.transitions
    if len(transitions) <= 1:
        return transitions[0].stage if transitions else ""
    drawn = entropy.uniform(0.0, sum(branch.weight for branch in transitions))
    for branch in transitions:
        drawn -= branch.weight
        if drawn < 0:
            return branch.stage
    return transitions[-1].stage


def _annotated_s(stage: Stage, pod: KubeletPod) -> float | None:
    text = pod.metadata.annotations.get(stage.for_annotation, "") if stage.for_annotation else ""
    if not text:
        return None
    try:
        return stage_duration_s(text)
    except ValueError:
        return None  # an invalid annotation is ignored


def _match_all(required: Mapping[str, str], have: Mapping[str, str]) -> bool:
    for key, pattern in required.items():
        value = have.get(key)
        if value is None or not fnmatchcase(value, pattern):
            return False
    return True
