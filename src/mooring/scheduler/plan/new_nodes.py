"""New nodes: like a node of the cluster, or like one in a file, and empty.

1. A new node has the labels, taints and allocatable resources of its example, with a name of its own. Taints that
   controllers set from the state of a node are left out.
2. It has the devices of its example: the ResourceSlices that name the example are copied, into pools of its own.
   Devices that several nodes reach are not copied; a selector of nodes may select the new one, too.
3. It has the CSI drivers and volume limits of its example: the CSINode is copied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from mooring.api.views.devices import ResourceSlice
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node, NodeSpec, NodeStatus
from mooring.api.views.storage import CSINode
from mooring.api.well_known import HOSTNAME
from mooring.scheduler.cache.columns import Columns

NODE_TAINT_PREFIX = "node.kubernetes.io/"
"""Taints that controllers set from the state of a node: a new node does not have them."""


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node that does not exist, with its ResourceSlices and its CSINode."""

    node: Node
    others: tuple[ApiObject, ...] = ()


def objects_of_nodes(objects: Iterable[ApiObject], names: Collection[str]) -> dict[str, tuple[ApiObject, ...]]:
    """By the name of a node: its ResourceSlices and its CSINode."""
    found: dict[str, list[ApiObject]] = {name: [] for name in names}
    for each in objects:
        name = ""
        if isinstance(each, ResourceSlice):
            name = each.spec.node_name or ""
        elif isinstance(each, CSINode):
            name = each.metadata.name
        if name in found:
            found[name].append(each)
    return {name: tuple(sorted(each, key=lambda view: view.metadata.name)) for name, each in found.items()}


def known_objects_of_nodes(columns: Columns, names: Collection[str]) -> dict[str, tuple[ApiObject, ...]]:
    """`objects_of_nodes` of the objects of the cluster."""
    return objects_of_nodes([*columns.objects.of(ResourceSlice), *columns.objects.of(CSINode)], names)


def node_like(example: Node, others: Sequence[ApiObject], name: str) -> NewNode:
    """A new, empty node like another one. `others` are the ResourceSlices and the CSINode of the example."""
    labels = {**example.metadata.labels, HOSTNAME: name}
    taints = tuple(taint for taint in example.spec.taints if not taint.key.startswith(NODE_TAINT_PREFIX))
    status = NodeStatus(
        capacity=example.status.capacity,
        allocatable=example.status.allocatable,
        declared_features=example.status.declared_features,
    )
    metadata = replace(example.metadata, name=name, uid="", resource_version="", labels=labels, creation_timestamp=None)
    node = replace(example, metadata=metadata, spec=NodeSpec(taints=taints), status=status)
    return NewNode(node, tuple(_copied(each, name, number) for number, each in enumerate(others)))


def _copied(view: ApiObject, node_name: str, number: int) -> ApiObject:
    """The object of the example as that of the new node."""
    if isinstance(view, ResourceSlice):
        metadata = replace(view.metadata, name=f"{node_name}-{number}", uid="", resource_version="")
        pool = replace(view.spec.pool, name=f"{node_name}-{view.spec.pool.name}")
        return replace(view, metadata=metadata, spec=replace(view.spec, pool=pool, node_name=node_name))
    return replace(view, metadata=replace(view.metadata, name=node_name, uid="", resource_version=""))
