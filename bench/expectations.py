"""Expectations: what must hold for the cluster after a run.

Input: the engine after a run, and its decisions. Output: problems as sentences; none if everything is right.

A workload that is fast because a rule is not applied is not fast. Each workload names the rules that concern its pods.
They are checked here pod by pod, without the code that made the decisions.

 1. Nothing here runs while time is measured.
 2. Pods that were placed before count, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from mooring.api.nodeselector import required_node_affinity
from mooring.api.tolerations import find_untolerated_taint
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import CPU_NON_ZERO, MEMORY_NON_ZERO
from mooring.scheduler.engine import Engine


class Evidence(NamedTuple):
    """The state after a run."""

    engine: Engine
    pods: Sequence[PodInfo]
    """The measured pods."""
    messages: Sequence[str]
    """The messages of the rejected pods."""
    victim_counts: Sequence[int]
    """The number of victims of each pod that preempted."""
    feasible_counts: Sequence[int]
    """The number of feasible nodes of each pod that was placed at once."""


class Apart(msgspec.Struct, frozen=True, tag="apart", tag_field="that", forbid_unknown_fields=True):
    """Pods with the same value of the label `same` share a domain with at most so many of their kind."""

    same: str
    by: str
    at_most: int = 1

    def problems(self, evidence: Evidence) -> Iterable[str]:
        for kind, domains in _domains_by_kind(evidence, self.same, self.by).items():
            crowded = {domain: number for domain, number in domains.items() if number > self.at_most}
            if crowded:
                yield f"{self.same}={kind}: {len(crowded)} domains of {self.by} hold more than {self.at_most}"


class Together(msgspec.Struct, frozen=True, tag="together", tag_field="that", forbid_unknown_fields=True):
    """Pods with the same value of the label `same` are in at most so many domains, or at most one for so many pods."""

    same: str
    by: str
    domains_max: int = 1
    pods_per_domain_min: float = 0.0

    def problems(self, evidence: Evidence) -> Iterable[str]:
        for kind, domains in _domains_by_kind(evidence, self.same, self.by).items():
            allowed = self.domains_max
            if self.pods_per_domain_min:
                allowed = max(allowed, int(sum(domains.values()) / self.pods_per_domain_min))
            if len(domains) > allowed:
                yield f"{self.same}={kind} is in {len(domains)} domains of {self.by}, expected at most {allowed}"


class Skew(msgspec.Struct, frozen=True, tag="skew", tag_field="that", forbid_unknown_fields=True):
    """Pods with the same value of the label `same`: the fullest domain has at most so many more than the emptiest."""

    same: str
    by: str
    at_most: int

    def problems(self, evidence: Evidence) -> Iterable[str]:
        all_domains = {labels[self.by] for labels in _node_labels(evidence.engine).values() if self.by in labels}
        for kind, domains in _domains_by_kind(evidence, self.same, self.by).items():
            numbers = [domains.get(domain, 0) for domain in sorted(all_domains)]
            skew = max(numbers) - min(numbers)
            if skew > self.at_most:
                yield f"{self.same}={kind} is skewed over {self.by} by {skew}, expected at most {self.at_most}"


class Within(msgspec.Struct, frozen=True, tag="within", tag_field="that", forbid_unknown_fields=True):
    """Measured pods are on nodes whose label has one of these values."""

    label: str
    values: tuple[str, ...]

    def problems(self, evidence: Evidence) -> Iterable[str]:
        labels = _node_labels(evidence.engine)
        strays = [pod.name for pod in _placed(evidence) if labels[pod.node_name].get(self.label) not in self.values]
        if strays:
            yield f"{len(strays)} pods are outside of {self.label} in {', '.join(self.values)}, such as {strays[0]}"


class Follows(msgspec.Struct, frozen=True, tag="follows", tag_field="that", forbid_unknown_fields=True):
    """Measured pods are on nodes whose label has the value of the pod's annotation, as their volumes have."""

    annotation: str
    label: str

    def problems(self, evidence: Evidence) -> Iterable[str]:
        labels = _node_labels(evidence.engine)
        for pod in _placed(evidence):
            assert pod.view is not None, f"the view of {pod} is gone"
            wanted = pod.view.metadata.annotations.get(self.annotation)
            if wanted is not None and labels[pod.node_name].get(self.label) != wanted:
                yield f"{pod.name} is on {pod.node_name}, which does not have {self.label}={wanted}"
                return


class Feasible(msgspec.Struct, frozen=True, tag="feasible", tag_field="that", forbid_unknown_fields=True):
    """At least this share of the nodes was feasible for each pod: no node was skipped to be faster."""

    share_min: float

    def problems(self, evidence: Evidence) -> Iterable[str]:
        wanted = int(self.share_min * evidence.engine.columns.node_count)
        fewest = min(evidence.feasible_counts, default=wanted)
        if fewest < wanted:
            yield f"a pod could choose from {fewest} nodes only, expected at least {wanted}"


class VictimsEach(msgspec.Struct, frozen=True, tag="victims", tag_field="that", forbid_unknown_fields=True):
    """Each pod that preempts evicts exactly so many."""

    each: int

    def problems(self, evidence: Evidence) -> Iterable[str]:
        others = [number for number in evidence.victim_counts if number != self.each]
        if others:
            yield f"{len(others)} pods evicted another number than {self.each}, such as {others[0]}"


class Message(msgspec.Struct, frozen=True, tag="message", tag_field="that", forbid_unknown_fields=True):
    """The message of every rejected pod; {nodes} stands for the number of nodes."""

    text: str

    def problems(self, evidence: Evidence) -> Iterable[str]:
        expected = self.text.replace("{nodes}", str(evidence.engine.columns.node_count))
        others = sorted({message for message in evidence.messages if message != expected})
        if others:
            yield f"expected {expected!r}, found {others[0]!r}"


Expectation = Apart | Together | Skew | Within | Follows | Feasible | VictimsEach | Message


def problems(expectations: Sequence[Expectation], evidence: Evidence) -> list[str]:
    """All violations, and what is wrong with the columns."""
    found = [*_bookkeeping_problems(evidence.engine), *_admission_problems(evidence)]
    for expectation in expectations:
        found += expectation.problems(evidence)
    return found


def _bookkeeping_problems(engine: Engine) -> Iterable[str]:
    """Whether the sums of the columns are those of the pods, and no node gave more than it has."""
    columns = engine.columns
    sums = np.zeros_like(columns.resources.used)
    for pod in columns.pods.values():
        vector = pod.signature.request_vector
        sums[: len(vector), columns.row_of[pod.node_name]] += vector
    if (sums != columns.resources.used).any():
        yield "the sums of the columns are not those of the pods"
    requested = np.delete(sums, (CPU_NON_ZERO, MEMORY_NON_ZERO), axis=0)
    allocatable = np.delete(columns.resources.allocatable, (CPU_NON_ZERO, MEMORY_NON_ZERO), axis=0)
    overcommitted = np.flatnonzero((requested > allocatable).any(axis=0))
    if len(overcommitted):
        yield f"{len(overcommitted)} nodes gave more than they have, such as {columns.node_names[overcommitted[0]]}"


def _admission_problems(evidence: Evidence) -> Iterable[str]:
    """Whether each measured pod is where its node affinity and its tolerations let it be."""
    columns = evidence.engine.columns
    for pod in _placed(evidence):
        node, view = columns.nodes[columns.row_of[pod.node_name]], pod.view
        assert node is not None, f"{pod} is on a node that has been forgotten"
        assert view is not None, f"the view of {pod} is gone"
        if not required_node_affinity(view).matches(node.metadata.labels, node.metadata.name):
            yield f"{pod.name} is on {pod.node_name}, where its node affinity forbids it to be"
            return
        taint = find_untolerated_taint(node.spec.taints, view.spec.tolerations)
        if taint is not None:
            yield f"{pod.name} is on {pod.node_name}, whose taint {taint.key} it does not tolerate"
            return


def _domains_by_kind(evidence: Evidence, label: str, topology_key: str) -> Mapping[str, Counter[str]]:
    """For each value of a label that a measured pod has: how many pods of it are in each domain."""
    node_labels = _node_labels(evidence.engine)
    kinds = {pod.signature.labels[label] for pod in evidence.pods if label in pod.signature.labels}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in evidence.engine.columns.pods.values():
        kind = pod.signature.labels.get(label)
        if kind is not None and kind in kinds:
            domain = node_labels[pod.node_name].get(topology_key)
            if domain is not None:
                counts[kind][domain] += 1
    return counts


def _node_labels(engine: Engine) -> dict[str, Mapping[str, str]]:
    return {node.metadata.name: node.metadata.labels for node in engine.columns.nodes if node is not None}


def _placed(evidence: Evidence) -> list[PodInfo]:
    return [pod for pod in evidence.pods if pod.node_name]
