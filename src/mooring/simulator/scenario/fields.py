"""The fields of a scenario, and durations, rates and seeds as they are written.

Fields are plain data: a worker process gets a copy, and their encoding is part of the identity of a simulation.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from mooring.api.durations import parse_duration

_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)/(s|m|h|d)")
_RATE_UNIT_H = {"s": 3600.0, "m": 60.0, "h": 1.0, "d": 1 / 24}
_SEEDS = re.compile(r"([0-9]+)(?:\.\.([0-9]+))?")
SEEDS_MAX = 1000


def seconds(text: str) -> float:
    """A duration: as Go writes it, or in days (`2d`). Raises `ValueError`."""
    days, separator, rest = text.partition("d")
    if separator and days.isdecimal():
        return 86400.0 * int(days) + (seconds(rest) if rest else 0.0)
    return parse_duration(text)


def rate_per_h(text: str) -> float:
    """`60/h`, `1/m`. Raises `ValueError`."""
    match = _RATE.fullmatch(text)
    if match is None or float(match[1]) == 0:
        raise ValueError(f"{text!r} is no rate; wanted a number and a unit such as 60/h, 1/m or 200/d")
    return float(match[1]) * _RATE_UNIT_H[match[2]]


def seeds_of(text: str | int) -> list[int]:
    """`7`, `1..5`, or both with commas. Raises `ValueError`."""
    seeds: list[int] = []
    for part in str(text).split(","):
        match = _SEEDS.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{text!r} are no seeds; wanted numbers such as 7, 1..5 or 1,2,9")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= SEEDS_MAX:
            raise ValueError(f"{part} are no seeds; wanted 1 to {SEEDS_MAX} numbers in ascending order")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


# --- fields ---------------------------------------------------------------------------------------------------


APP = "app"
"""The label of pods with the name of their group."""
PRIORITY_MAX = 1_000_000_000
"""As of a PriorityClass."""

Count = Annotated[int, Meta(ge=0, le=1_000_000)]
Percent = Annotated[float, Meta(gt=0, le=1000)]


class OpenbNodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    nodes: str
    shuffled: bool = False
    """Names get a random number in front, by the seed: ties by name differ between seeds."""


class AutoscalePart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The limits within which the autoscaler changes the number of nodes of a pool."""

    max: Count
    min: Count = 0
    delay: str = "1m"
    """Until a requested node is ready."""


class Pool(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Equal nodes."""

    name: str
    count: Count
    cpu: str
    memory: str
    pods: Count = 110
    resources: dict[str, str] = {}
    """Other resources, such as ephemeral-storage and GPUs."""
    labels: dict[str, str] = {}
    zones: Annotated[int, Meta(ge=0, le=100)] = 0
    """Nodes are in this many zones in turn; 0: in none."""
    price: Annotated[float, Meta(ge=0)] = 0.0
    """Per node and hour."""
    autoscale: AutoscalePart | None = None


class ClusterPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    openb: OpenbNodes | None = None
    dump: str = ""
    pools: list[Pool] = []


class OpenbPods(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pods: str
    demand: Annotated[float, Meta(gt=0, le=100)] | None = None
    """The list in random order, inflated to this multiple of the cluster's GPUs; None: the times of the trace."""


class TraceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A SimKube trace."""

    trace: str


class DlrmTrace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The Alibaba DLRM trace of 2025."""

    trace: str
    role_label: str = ""
    """The label of nodes that says which role they serve, CN or HN; empty: pods run on any node."""


class DumpWorkload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    arrivals: Literal["sampled", "replayed"] = "sampled"


class PodTemplatePart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Pods of one template: a fixed number, or arrivals at a rate."""

    name: str
    cpu: str
    memory: str
    replicas: Count | None = None
    rate: str = ""
    lifetime: str = ""
    """Mean of an exponential distribution; empty: pods run until the end."""
    priority: Annotated[int, Meta(ge=-(2**31), le=PRIORITY_MAX)] = 0
    labels: dict[str, str] = {}
    min_available: int | str | None = None
    """With `max_unavailable`: the pods have a PodDisruptionBudget."""
    max_unavailable: int | str | None = None
    bare: bool = False
    """Nothing creates an evicted pod again."""
    startup: str = "1s"
    """At the cluster level: the time from the binding until the pod is ready."""

    @property
    def is_deployment(self) -> bool:
        """Whether the cluster level has a Deployment for these pods, and no single ones."""
        return self.replicas is not None and not self.lifetime and not self.bare


class WorkloadPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    openb: OpenbPods | None = None
    dump: DumpWorkload | None = None
    dlrm: DlrmTrace | None = None
    simkube: TraceFile | None = None
    pods: list[PodTemplatePart] = []

    @property
    def has_end(self) -> bool:
        """Whether a simulation can end with the last arrival."""
        is_replayed = self.dump is not None and self.dump.arrivals == "replayed"
        return is_replayed or any(source is not None for source in (self.openb, self.dlrm, self.simkube))


class NodesPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Nodes of a pool, or by name."""

    pool: str = ""
    nodes: list[str] = []
    count: Count | None = None
    duration: str = field(name="for", default="")
    """For `fail`, `cordon` and `drain`: the nodes come back after this time."""


class FailPart(NodesPart, frozen=True, forbid_unknown_fields=True, rename="camel"):
    mtbf: str = ""
    """Mean time between failures of a node: nodes of the pool fail at random from now on."""


class DrainPart(NodesPart, frozen=True, forbid_unknown_fields=True, rename="camel"):
    timeout: str = ""
    """Pods that budgets protect for this long stay."""


class UpgradePart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """All nodes of a pool are replaced by new ones."""

    pool: str
    surge: Annotated[int, Meta(ge=0, le=1000)] = 1
    """Nodes that are replaced at a time, after as many were added. 0: one at a time, and it is removed first."""
    delay: str = ""
    """Until a new node is there."""
    timeout: str = ""
    """A node whose drain takes longer is removed with its pods."""


class ScalePart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    workload: str
    replicas: Count


class RolloutPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A change of a pod template, at the cluster level."""

    workload: str
    cpu: str = ""
    memory: str = ""
    labels: dict[str, str] = {}


EventChange = NodesPart | UpgradePart | ScalePart | RolloutPart
CHANGES = ("add", "remove", "cordon", "uncordon", "fail", "drain", "upgrade", "scale", "rollout")


class ScenarioEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One change at a time; with `every`, again and again."""

    at: str
    every: str = ""
    add: NodesPart | None = None
    remove: NodesPart | None = None
    cordon: NodesPart | None = None
    uncordon: NodesPart | None = None
    fail: FailPart | None = None
    drain: DrainPart | None = None
    upgrade: UpgradePart | None = None
    scale: ScalePart | None = None
    rollout: RolloutPart | None = None

    def change(self) -> tuple[str, EventChange] | None:
        """The name of the change, and the change; None unless there is exactly one."""
        found = [(name, getattr(self, name)) for name in CHANGES if getattr(self, name) is not None]
        return found[0] if len(found) == 1 else None


class AutoscalerPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The flags of Cluster Autoscaler with these names."""

    scan_interval: str = "10s"
    expander: Literal["", "price", "least-waste", "most-pods", "random"] = ""
    """Empty: price if autoscaled pools have prices, otherwise least-waste."""
    scale_down_unneeded_time: str = "10m"
    scale_down_utilization_threshold: Annotated[float, Meta(ge=0, le=1)] = 0.5
    scale_down_delay_after_add: str = "10m"


class Samples(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    every: str = ""
    demand_percent: list[Percent] = []
    """Samples when this much of the cluster's GPUs has been asked for."""


class PolicyPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    config: str = ""
    plugins: list[str] = []


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    cluster: ClusterPart
    workload: WorkloadPart
    parameters: dict[str, str] = {}
    level: Literal["engine", "cluster"] = "engine"
    events: list[ScenarioEvent] = []
    autoscaler: AutoscalerPart = AutoscalerPart()
    duration: str = ""
    seeds: str | int = "1"
    ties: Literal["seed", "name"] = "seed"
    retry: bool = True
    """Rejected pods are tried again when something changed that may help."""
    samples: Samples = Samples()
    config: str = ""
    """The KubeSchedulerConfiguration of policies that have none. Empty: the defaults of kube-scheduler."""
    plugins: list[str] = []
    """Plugin files of all policies."""
    policies: dict[str, PolicyPart] = {}

    @property
    def has_autoscaler(self) -> bool:
        return any(pool.autoscale is not None for pool in self.cluster.pools)

    @property
    def duration_s(self) -> float | None:
        return seconds(self.duration) if self.duration else None
