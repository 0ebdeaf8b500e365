"""Topology domains in the texts of obstacles: `zone a`, `on this node`, `where rack=r1`."""

from __future__ import annotations

from mooring.scheduler.cache.labels import LabelColumn
from mooring.scheduler.framework.obstacle import Obstacle, ObstacleKind
from mooring.scheduler.plugins.spread_constraints import HOSTNAME, ZONE

_SHORT_NAMES = {ZONE: "zone", "topology.kubernetes.io/region": "region"}


def domain_text(column: LabelColumn, code: int) -> str:
    """`zone a`, `this node`, `rack=r1`."""
    if column.key == HOSTNAME:
        return "this node"
    value = column.values[code]
    short = _SHORT_NAMES.get(column.key)
    return f"{short} {value}" if short is not None else f"{column.key}={value}"


def in_domain_text(column: LabelColumn, code: int) -> str:
    """`in zone a`, `on this node`, `where rack=r1`."""
    if column.key == HOSTNAME:
        return "on this node"
    return f"{'in' if column.key in _SHORT_NAMES else 'where'} {domain_text(column, code)}"


def domain_details(column: LabelColumn, code: int) -> dict[str, str | int]:
    return {"topologyKey": column.key, "domain": column.values[code] or ""}


def missing_label(plugin: str, kind: ObstacleKind, column: LabelColumn) -> Obstacle:
    """The node does not belong to any domain of the topology."""
    return Obstacle(plugin, kind, f"needs the label {column.key}", {"topologyKey": column.key})
