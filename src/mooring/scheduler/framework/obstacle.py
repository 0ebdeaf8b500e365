"""Obstacles: what would have to change before a node could take a pod.

`Filter.explain` returns the obstacles of one node, `Filter.distances` says for many nodes how far away they are.
`cycle.explain` runs all filters of a profile and ranks the nodes.

1. `text` says what is missing or what to do ("0.3 cpu more", "tolerate gpu=true:NoSchedule"), not what was rejected.
2. `details` holds the facts of the text for programs. Its keys depend on the kind and are part of the documented output
   of `mooring explain`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from mooring.api.views.meta import NodeSelector, NodeSelectorRequirement, TopologySelectorTerm
from mooring.api.well_known import HOSTNAME, REGION, ZONE
from mooring.scheduler.cache.arrays import Float64s, Int64s
from mooring.scheduler.cache.nodes import LabelColumn
from mooring.scheduler.cache.pods import PodInfo

Details = Mapping[str, str | int]
SHORT_NAMES = {ZONE: "zone", REGION: "region"}
"""What topology keys are called in texts."""


class ObstacleKind(StrEnum):
    """The kind of an obstacle. A filter names the kind of its obstacles in `Plugin.obstacle_kind`."""

    RESOURCE = "resource"
    POD_SLOT = "podSlot"
    TAINT = "taint"
    CORDON = "cordon"
    NODE_LABEL = "nodeLabel"
    HOST_PORT = "hostPort"
    SPREAD = "spread"
    AFFINITY = "affinity"
    ANTI_AFFINITY = "antiAffinity"
    FEATURE = "feature"
    VOLUME = "volume"
    DEVICE = "device"
    OTHER = "other"


HARDNESS: Mapping[ObstacleKind, float] = {
    ObstacleKind.CORDON: 0.3,
    ObstacleKind.TAINT: 0.4,
    ObstacleKind.HOST_PORT: 0.5,
    ObstacleKind.SPREAD: 0.5,
    ObstacleKind.ANTI_AFFINITY: 0.5,
    ObstacleKind.AFFINITY: 0.6,
    ObstacleKind.NODE_LABEL: 0.7,
    ObstacleKind.VOLUME: 0.8,
    ObstacleKind.DEVICE: 0.8,
    ObstacleKind.OTHER: 0.8,
    ObstacleKind.FEATURE: 0.9,
    ObstacleKind.RESOURCE: 1.0,
    ObstacleKind.POD_SLOT: 0.1,
}
"""The size of an obstacle that has no measure of its own: a toleration is easier to add than a label on a node.
Resources are measured by the missing share of the request, and 1 is all of it."""

NEVER_FITS_SIZE = 1.0
"""Added for a node that could not take the pod even if it were empty: evicting pods there does not help."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason why a node cannot take a pod."""

    plugin: str
    kind: ObstacleKind
    text: str
    details: Details = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        """The obstacle as JSON."""
        return {"plugin": self.plugin, "kind": self.kind.value, "text": self.text, "details": dict(self.details)}


class Distances(NamedTuple):
    """Per row: how many obstacles there are, and the sum of their sizes. Fewer are nearer, then smaller ones."""

    counts: Int64s
    sizes: Float64s


@dataclass(frozen=True, slots=True)
class ExplainContext:
    """The pod that is explained, and what the filters that explain it have in common."""

    pod: PodInfo
    nominated: Mapping[int, tuple[PodInfo, ...]] = field(default_factory=dict)
    """By row: the pods nominated to the node with at least the pod's priority. The pod must fit next to them."""
    kinds: frozenset[ObstacleKind] = frozenset()
    """The obstacle kinds of all filters that apply to the pod, so that no two filters explain the same thing."""

    def nominated_to(self, row: int) -> tuple[PodInfo, ...]:
        return self.nominated.get(row, ())


# Topology domains in the texts of obstacles


def domain_text(column: LabelColumn, code: int) -> str:
    """`zone a`, `this node`, `rack=r1`."""
    if column.key == HOSTNAME:
        return "this node"
    value = column.values[code]
    short = SHORT_NAMES.get(column.key)
    return f"{short} {value}" if short is not None else f"{column.key}={value}"


def in_domain_text(column: LabelColumn, code: int) -> str:
    """`in zone a`, `on this node`, `where rack=r1`."""
    if column.key == HOSTNAME:
        return "on this node"
    return f"{'in' if column.key in SHORT_NAMES else 'where'} {domain_text(column, code)}"


def domain_details(column: LabelColumn, code: int) -> dict[str, str | int]:
    return {"topologyKey": column.key, "domain": column.values[code] or ""}


def selected_nodes_text(selector: NodeSelector) -> str:
    """`where zone is a or b`, `on node n1`: the nodes that a selector selects."""
    terms = [(*term.match_expressions, *term.match_fields) for term in selector.node_selector_terms]
    if len(terms) == 1 and len(terms[0]) == 1 and _names_nodes(terms[0][0]):
        return f"on node {' or '.join(terms[0][0].values)}"
    texts = (" and ".join(map(_requirement_text, term)) for term in terms if term)
    return f"where {', or '.join(texts) or 'nothing is selected'}"


def topologies_text(terms: Sequence[TopologySelectorTerm]) -> str:
    """The same for `allowedTopologies` of a StorageClass."""
    return "where " + ", or ".join(
        " and ".join(
            f"{_key_text(requirement.key)} is {' or '.join(requirement.values)}"
            for requirement in term.match_label_expressions
        )
        for term in terms
    )


def _names_nodes(requirement: NodeSelectorRequirement) -> bool:
    return requirement.key in _NODE_KEYS and requirement.operator == "In"


_NODE_KEYS = (HOSTNAME, "metadata.name")
_OPERATORS = {"In": "is", "NotIn": "is not", "Gt": ">", "Lt": "<"}


def _requirement_text(requirement: NodeSelectorRequirement) -> str:
    operator = _OPERATORS.get(requirement.operator)
    if operator is not None:
        return f"{_key_text(requirement.key)} {operator} {' or '.join(requirement.values)}"
    return f"there is {'no ' if requirement.operator == 'DoesNotExist' else ''}label {requirement.key}"


def _key_text(key: str) -> str:
    return "the node" if key in _NODE_KEYS else SHORT_NAMES.get(key, key)


def missing_label(plugin: str, kind: ObstacleKind, column: LabelColumn) -> Obstacle:
    """The node does not belong to any domain of the topology."""
    return Obstacle(plugin, kind, f"needs the label {column.key}", {"topologyKey": column.key})
