"""The workload of a simulation: which pods arrive when, and how long they run.

1. A workload is a list of arrivals in order of time. It depends on the seed of the simulation, and on no policy: all
   policies get the same pods.
2. The pod types are the distinct pods of the source, most frequent first. Policies and measures use them as the
   expectation of what arrives next.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mooring.api.decode import convert_as
from mooring.api.views.meta import ObjectMeta, OwnerReference
from mooring.api.views.pod import Pod, PodSpec
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.pods import signature_key

FOREVER_S = math.inf
HOUR_S = 3600.0
SPECS_MAX = 4096
"""Specs of pods, and owners, that are shared."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod that is created at a time."""

    at_s: float
    pod: Pod
    lifetime_s: float = FOREVER_S
    """How long the pod runs after it was placed."""
    owner: str = ""
    demand: int = 0
    """What the pod adds to the demand that samples are taken by: GPU thousandths."""
    deleted_s: float = FOREVER_S
    """When the pod is deleted, whether it runs or waits."""


@dataclass(frozen=True, slots=True)
class PodType:
    """A pod that stands for all pods of its signature, and its share of the workload."""

    pod: Pod
    share: float


class PodTypes(Sequence[PodType]):
    """The pod types of a workload, most frequent first. The service `workload` of plugins."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        counts: dict[bytes, tuple[Pod, int]] = {}
        total = 0
        for pod in pods:
            key = signature_key(pod)
            first, count = counts.get(key, (pod, 0))
            counts[key] = (first, count + 1)
            total += 1
        ordered = sorted(counts.values(), key=lambda entry: -entry[1])
        self._types = [PodType(pod, count / total) for pod, count in ordered]

    def __len__(self) -> int:
        return len(self._types)

    def __getitem__(self, index: int) -> PodType:  # type: ignore[override]  # a slice is not needed
        return self._types[index]

    def __iter__(self) -> Iterator[PodType]:
        return iter(self._types)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Arrivals in order of time, and the types of their source."""

    arrivals: Sequence[Arrival]
    types: PodTypes


def pod_view(
    name: str,
    requests: Mapping[str, str],
    *,
    labels: Mapping[str, str] | None = None,
    priority: int = 0,
    owner: str = "",
    node_selector: Mapping[str, str] | None = None,
) -> Pod:
    """A pending pod with one container."""
    references = (_reference(owner),) if owner else ()
    metadata = ObjectMeta(name=name, namespace="default", labels=dict(labels or {}), owner_references=references)
    spec = _spec(tuple(requests.items()), priority, tuple((node_selector or {}).items()))
    return Pod(metadata=metadata, spec=spec)


@lru_cache(maxsize=SPECS_MAX)
def _spec(requests: tuple[tuple[str, str], ...], priority: int, node_selector: tuple[tuple[str, str], ...]) -> PodSpec:
    """Shared by equal pods: a trace has a million pods and a few hundred kinds."""
    containers = [{"name": "main", "resources": {"requests": dict(requests)}}]
    return convert_as(PodSpec, {"containers": containers, "priority": priority, "nodeSelector": dict(node_selector)})


@lru_cache(maxsize=SPECS_MAX)
def _reference(owner: str) -> OwnerReference:
    return OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=owner, uid=owner, controller=True)


def arrival_times(rate_per_h: float, duration_s: float, entropy: Entropy) -> Iterator[float]:
    """The times of a Poisson process."""
    at_s = exponential(HOUR_S / rate_per_h, entropy)
    while at_s < duration_s:
        yield at_s
        at_s += exponential(HOUR_S / rate_per_h, entropy)


def exponential(mean: float, entropy: Entropy) -> float:
    """An exponentially distributed number."""
    return -mean * math.log(1.0 - entropy.uniform())
