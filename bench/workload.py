"""Workloads: the cluster of a benchmark, its pods, and the expected outcome.

Input: `workloads/*.yaml`, and the manifests in `workloads/templates/`. Output: a `Workload` with the fields of the
file.

 1. A manifest consists of layers that are merged: names of template files, or inline manifests. So the file of a
    workload shows only what is special about it. A layer may have `variables`; those of the group take precedence.
 2. An unknown field is an error: a misspelt field would be a benchmark of something else.
 3. Every workload states the expected result (`outcome` of each group, `expect`): a broken engine must not look fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from bench.expectations import Expectation
from bench.templates import Manifest, TemplateError, Variable, merged
from mooring.api.yaml import load_document

WORKLOADS = Path(__file__).parent / "workloads"

Outcome = Literal["placed", "refused", "preempts", "gated"]
Way = Literal["engine", "scheduler"]
Layers = str | tuple[str | dict[str, object], ...]


class WorkloadError(ValueError):
    """A workload that cannot be read, or that does not exist."""


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Objects made from one template."""

    template: Layers
    variables: Mapping[str, Variable] = {}
    """Values of the variables of the template. They take precedence over those of the template."""

    def read(self) -> tuple[Manifest, Mapping[str, Variable]]:
        """The manifest, and the values of all of its variables."""
        manifest, variables = merge_layers(self.template)
        return manifest, {**variables, **self.variables}


class NodeGroup(Part, frozen=True, kw_only=True):
    """Nodes that are alike. With several groups, `share` says how many of each come in turn."""

    share: int = 1


class ObjectGroup(Part, frozen=True, kw_only=True):
    """Objects that are neither nodes nor pods: a fixed number, or so many for each node."""

    count: int = 1
    per_node: int | None = None


class PodGroup(Part, frozen=True, kw_only=True):
    """Pods that are alike. With several groups, `share` says how many of each come in turn."""

    share: int = 1
    outcome: Outcome = "placed"
    """The expected outcome of a measured or a waiting pod."""
    with_each: tuple[Layers, ...] = ()
    """Objects that exist once for each pod, with the pod's own values: its claim, its volume."""
    only_every: int = 1
    """Of placed pods: only every n-th node has them."""


class Size(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The size of a run. `placed_per_node` replaces `placed` for full clusters."""

    nodes: int = 5_000
    placed: int = 10_000
    placed_per_node: int | None = None
    pods: int = 10_000
    waiting: int = 0
    """Pods that wait in the queue while others are measured."""
    warm_up: int = 300
    levels: tuple[float, ...] = (1.0,)
    """The shares of the placed pods at which the cost is measured, ascending."""

    @property
    def placed_count(self) -> int:
        return self.placed if self.placed_per_node is None else self.placed_per_node * self.nodes

    @property
    def level_counts(self) -> tuple[int, ...]:
        return tuple(int(level * self.placed_count) for level in self.levels)


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One benchmark."""

    name: str
    description: str
    nodes: tuple[NodeGroup, ...]
    measured: tuple[PodGroup, ...]
    objects: tuple[ObjectGroup, ...] = ()
    placed: tuple[PodGroup, ...] = ()
    through: Way = "engine"
    """`engine`: decisions alone. `scheduler`: from pods created in the store to pods bound in it."""
    waiting: tuple[PodGroup, ...] = ()
    """Only through the scheduler: pods that were rejected, or are gated, before the clock starts."""
    size: Size = Size()
    expect: tuple[Expectation, ...] = ()
    target_pods_per_second: float | None = None
    memory_bytes_max: int | None = None
    growth_bytes_max: int | None = None
    """Only through the scheduler: what the measured pods may take above the cluster that was there."""
    slowdown_max: float | None = None
    """Only through the scheduler: how many times longer it may take than without the waiting pods."""
    in_suite: bool = True
    """False: runs only when it is named, and as a sweep."""


def read_workload(name: str) -> Workload:
    path = WORKLOADS / f"{name}.yaml"
    if not path.is_file():
        raise WorkloadError(f"there is no workload {name!r}; there are: {', '.join(workload_names())}")
    try:
        workload = msgspec.convert(load_document(path.read_bytes(), path.name).data, Workload)
    except (msgspec.ValidationError, TemplateError) as error:
        raise WorkloadError(f"{path.name}: {error}") from error
    if workload.name != name:
        raise WorkloadError(f"{path.name} calls itself {workload.name!r}; a workload is named as its file")
    if problem := _contradiction(workload):
        raise WorkloadError(f"{path.name}: {problem}")
    return workload


def _contradiction(workload: Workload) -> str | None:
    """Why the fields of a workload contradict each other."""
    outcomes = {group.outcome for group in workload.measured} | {group.outcome for group in workload.waiting}
    if workload.through == "engine":
        if workload.waiting or workload.growth_bytes_max is not None or workload.slowdown_max is not None:
            return "waiting pods, growth and slowdown are known through the scheduler only"
        return "a gated pod never comes to the engine" if "gated" in outcomes else None
    if "preempts" in outcomes:
        return "preemption is measured through the engine only"
    if "placed" in {group.outcome for group in workload.waiting}:
        return "a waiting pod is refused or gated, not placed"
    return None


def workload_names() -> list[str]:
    """The names of all workloads."""
    return sorted(path.stem for path in WORKLOADS.glob("*.yaml"))


def merge_layers(layers: Layers) -> tuple[Manifest, Mapping[str, Variable]]:
    """The manifest of some layers, and their variables."""
    combined: object = {}
    for layer in (layers,) if isinstance(layers, str) else layers:
        combined = merged(combined, read_template(layer) if isinstance(layer, str) else layer)
    if not isinstance(combined, dict):
        raise WorkloadError(f"expected a manifest, found {combined!r}")
    variables = msgspec.convert(combined.pop("variables", {}), dict[str, Variable])
    return combined, variables


def read_template(name: str) -> object:
    path = WORKLOADS / "templates" / f"{name}.yaml"
    if not path.is_file():
        raise WorkloadError(f"there is no template {name!r} in {path.parent.name}/")
    return load_document(path.read_bytes(), path.name).data
