"""An obstacle as a value: one thing that would have to change before a node could take a pod.

Comes in   what filters refuse, and the facts behind it
Goes out   `Obstacle`, with a sentence for people and the same facts for programs

 1. `text` says what is missing or what to do ("0.3 cpu more", "tolerate gpu=true:NoSchedule"), not what was refused.
 2. `details` holds the facts of the sentence as text or numbers; its keys depend on the kind and are part of the
    documented output of `mooring explain`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodRecord

Details = Mapping[str, str | int]


class Kind(StrEnum):
    """What sort of thing is in the way."""

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


HARDNESS: Mapping[Kind, float] = {
    Kind.CORDON: 0.3,
    Kind.TAINT: 0.4,
    Kind.HOST_PORT: 0.5,
    Kind.SPREAD: 0.5,
    Kind.ANTI_AFFINITY: 0.5,
    Kind.AFFINITY: 0.6,
    Kind.NODE_LABEL: 0.7,
    Kind.VOLUME: 0.8,
    Kind.DEVICE: 0.8,
    Kind.OTHER: 0.8,
    Kind.FEATURE: 0.9,
    Kind.RESOURCE: 1.0,
    Kind.POD_SLOT: 0.1,
}
"""How far away a node seems for an obstacle of which there is no measure: one line of the pod is less than other labels
on a node. Resources have a measure, the missing share of the request, and 1 is all of it."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One thing in the way."""

    plugin: str
    kind: Kind
    text: str
    details: Details = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody asks what is in the way: a pod, a row, and the pods that are promised room there."""

    columns: Columns
    pod: PodRecord
    row: int
    promised: tuple[PodRecord, ...] = ()
    is_cordoned: bool = False
    """Whether the node is cordoned, and the profile and the pod mind."""

    @property
    def node_name(self) -> str:
        return self.columns.node_names[self.row]

    def pods_here(self) -> tuple[PodRecord, ...]:
        """The pods that the node has, or has promised room."""
        return (*self.columns.pods_on[self.row].values(), *self.promised)
