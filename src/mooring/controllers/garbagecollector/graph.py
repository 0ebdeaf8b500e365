"""The ownership graph of all objects. No I/O.

Inputs: metadata of objects (`observe`, `forget`). Outputs: to a `Collector`, nodes whose owners have to be checked
and nodes whose dependents have to be orphaned.

1. An owner that was not observed is a *virtual* node, known by references only. It is checked in the API: either it
   is observed soon, or it is absent.
2. When a node is gone, its dependents are checked, and owners that wait for their dependents (foreground deletion).
3. A dependent may refer to its owner by a wrong name, kind or namespace. Uids connect nodes, but whether an owner
   is absent is checked by what the reference says.
4. A deletion is never undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from mooring.api.views.meta import ObjectMeta, OwnerReference
from mooring.api.well_known import FOREGROUND_FINALIZER, ORPHAN_FINALIZER

ABSENT_MAX = 500
"""Maximum number of cached absent owners."""


class ObjectIdentity(NamedTuple):
    """Identifies an object. Identities are tried in the order of their fields."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"[{self.api_version}/{self.kind}, namespace: {self.namespace}, name: {self.name}, uid: {self.uid}]"


@dataclass(slots=True, eq=False)
class GraphNode:
    """An object in the graph."""

    identity: ObjectIdentity
    owners: tuple[OwnerReference, ...] = ()
    is_virtual: bool = False
    dependents: dict[GraphNode, None] = field(default_factory=dict)
    is_being_deleted: bool = False
    is_deleting_dependents: bool = False
    """Whether it waits for the dependents that block its deletion."""

    def blocking_dependents(self) -> list[GraphNode]:
        uid = self.identity.uid
        return [
            dependent
            for dependent in self.dependents
            if any(owner.uid == uid and owner.block_owner_deletion for owner in dependent.owners)
        ]

    def replaced_by(self, identity: ObjectIdentity) -> GraphNode:
        """A copy of the node with another identity."""
        return replace(self, identity=identity, dependents=dict(self.dependents))


class Collector(Protocol):
    """Executes what the graph decides."""

    def attempt_to_delete(self, node: GraphNode) -> None:
        """Check the owners of a node, and delete it if they are gone."""
        ...

    def attempt_to_delete_later(self, node: GraphNode) -> None: ...

    def attempt_to_orphan(self, node: GraphNode) -> None:
        """Remove the references to a node from its dependents, then delete it."""
        ...

    def report_other_namespace(self, node: GraphNode, owner: ObjectIdentity) -> None:
        """Report that a node names an owner in another namespace, which is invalid."""
        ...


class AbsentOwners:
    """An LRU cache of owners that the API does not have."""

    def __init__(self) -> None:
        self._known: dict[ObjectIdentity, None] = {}

    def add(self, identity: ObjectIdentity) -> None:
        self._known.pop(identity, None)
        self._known[identity] = None
        if len(self._known) > ABSENT_MAX:
            del self._known[next(iter(self._known))]

    def __contains__(self, identity: ObjectIdentity) -> bool:
        if identity not in self._known:
            return False
        self.add(identity)
        return True


class OwnershipGraph:
    """All nodes, by uid."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._nodes: dict[str, GraphNode] = {}
        self.absent = AbsentOwners()

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, uid: str) -> GraphNode | None:
        return self._nodes.get(uid)

    # ------------------------------------------------------------------------------------- observed objects

    def observe(self, identity: ObjectIdentity, metadata: ObjectMeta, old: ObjectMeta | None) -> None:
        """An object was created (`old` is None) or updated."""
        node = self._nodes.get(identity.uid)
        if node is None:
            node = GraphNode(identity, metadata.owner_references)
            node.is_being_deleted = metadata.deletion_timestamp is not None
            node.is_deleting_dependents = node.is_being_deleted and FOREGROUND_FINALIZER in metadata.finalizers
            self._nodes[identity.uid] = node
            self._add_to_owners(node, node.owners)
        else:
            if node.is_virtual:
                node = self._mark_observed(node, identity)
            self._change_owners(node, metadata.owner_references)
            if metadata.deletion_timestamp is not None:
                node.is_being_deleted = True
        self._start_deletion(node, metadata, old)

    def _mark_observed(self, node: GraphNode, identity: ObjectIdentity) -> GraphNode:
        if identity != node.identity:
            _, others = _by_reference(node.dependents, identity)
            for dependent in others:
                if identity.namespace and dependent.identity.namespace != identity.namespace:
                    self._report(dependent, identity.uid)
                self._collector.attempt_to_delete(dependent)
            node = node.replaced_by(identity)
            self._nodes[identity.uid] = node
        node.is_virtual = False
        return node

    def _change_owners(self, node: GraphNode, owners: tuple[OwnerReference, ...]) -> None:
        if owners == node.owners:
            return
        before = {owner.uid: owner for owner in node.owners}
        after = {owner.uid: owner for owner in owners}
        for uid, owner in before.items():
            is_unblocked = uid not in after or not after[uid].block_owner_deletion
            if owner.block_owner_deletion and is_unblocked and uid in self._nodes:
                self._collector.attempt_to_delete(self._nodes[uid])
        node.owners = owners
        self._add_to_owners(node, [owner for uid, owner in after.items() if uid not in before])
        for uid in before:
            if uid not in after and uid in self._nodes:
                self._nodes[uid].dependents.pop(node, None)

    def _start_deletion(self, node: GraphNode, metadata: ObjectMeta, old: ObjectMeta | None) -> None:
        if _starts_deletion_with(ORPHAN_FINALIZER, metadata, old):
            self._collector.attempt_to_orphan(node)
        elif _starts_deletion_with(FOREGROUND_FINALIZER, metadata, old):
            node.is_deleting_dependents = True
            for dependent in node.dependents:
                self._collector.attempt_to_delete(dependent)
            self._collector.attempt_to_delete(node)

    def _add_to_owners(self, node: GraphNode, owners: Sequence[OwnerReference]) -> None:
        is_uncertain = False
        for owner in owners:
            owner_node = self._nodes.get(owner.uid)
            if owner_node is not None:
                owner_node.dependents[node] = None
                is_uncertain = is_uncertain or self._may_mean_other_object(node, owner, owner_node)
                continue
            owner_node = GraphNode(reference_identity(owner, node.identity.namespace), is_virtual=True)
            self._nodes[owner.uid] = owner_node
            owner_node.dependents[node] = None
            self._collector.attempt_to_delete(owner_node)
        if is_uncertain:
            self._collector.attempt_to_delete(node)

    def _may_mean_other_object(self, node: GraphNode, owner: OwnerReference, owner_node: GraphNode) -> bool:
        """Whether a reference may mean another object than the node with its uid."""
        namespace = owner_node.identity.namespace
        if namespace and namespace != node.identity.namespace:
            if not owner_node.is_virtual:
                self._report(node, owner.uid)
            return True
        if not is_reference_to(owner, owner_node.identity):
            return True
        # The first dependent of a virtual owner may have been wrong in treating the owner as cluster-scoped.
        return not namespace and bool(node.identity.namespace) and owner_node.is_virtual

    def _report(self, node: GraphNode, uid: str) -> None:
        for owner in node.owners:
            if owner.uid == uid:
                self._collector.report_other_namespace(node, reference_identity(owner, node.identity.namespace))
                return

    # -------------------------------------------------------------------------------------- deleted objects

    def forget(self, identity: ObjectIdentity) -> None:
        """An informer reports that an object is gone."""
        node = self._nodes.get(identity.uid)
        if node is not None:
            self._remove(node, identity)

    def forget_absent(self, identity: ObjectIdentity) -> None:
        """The API does not have an object of that identity."""
        node = self._nodes.get(identity.uid)
        if node is None:
            return
        matching, others = _by_reference(node.dependents, identity)
        if node.is_virtual and others:
            self._check_as_absent(matching, identity)
            if node.identity == identity:
                self._try_other_identity(node, others, identity)
        elif not node.is_virtual and node.identity != identity:
            self._check_as_absent(matching, identity)
        else:
            self._remove(node, identity)

    def _check_as_absent(self, dependents: Sequence[GraphNode], identity: ObjectIdentity) -> None:
        if dependents:
            self.absent.add(identity)
        for dependent in dependents:
            self._collector.attempt_to_delete(dependent)

    def _try_other_identity(self, node: GraphNode, others: Sequence[GraphNode], absent: ObjectIdentity) -> None:
        other = _other_identity(others, absent)
        if other is not None:
            replacement = node.replaced_by(other)
            self._nodes[absent.uid] = replacement
            self._collector.attempt_to_delete_later(replacement)

    def _remove(self, node: GraphNode, identity: ObjectIdentity) -> None:
        del self._nodes[node.identity.uid]
        for owner in node.owners:
            if owner.uid in self._nodes:
                self._nodes[owner.uid].dependents.pop(node, None)
        if node.dependents:
            self.absent.add(identity)
        for dependent in node.dependents:
            self._collector.attempt_to_delete(dependent)
        for owner in node.owners:
            owner_node = self._nodes.get(owner.uid)
            if owner_node is not None and owner_node.is_deleting_dependents:
                self._collector.attempt_to_delete(owner_node)


# --- references and identities -------------------------------------------------------------------------------


def reference_identity(owner: OwnerReference, namespace: str) -> ObjectIdentity:
    return ObjectIdentity(owner.kind, owner.api_version, namespace, owner.name, owner.uid)


def is_reference_to(owner: OwnerReference, identity: ObjectIdentity) -> bool:
    """Whether a reference matches an object, apart from the namespace, which references do not have."""
    return (
        owner.uid == identity.uid
        and owner.name == identity.name
        and owner.kind == identity.kind
        and owner.api_version == identity.api_version
    )


def _by_reference(dependents: Iterable[GraphNode], owner: ObjectIdentity) -> tuple[list[GraphNode], list[GraphNode]]:
    """Dependents that refer to the owner by that identity, and those that refer to its uid otherwise. Some do both."""
    matching, others = [], []
    for dependent in dependents:
        if owner.namespace and owner.namespace != dependent.identity.namespace:
            others.append(dependent)
            continue
        matches = [is_reference_to(reference, owner) for reference in dependent.owners if reference.uid == owner.uid]
        if any(matches):
            matching.append(dependent)
        if not all(matches):
            others.append(dependent)
    return matching, others


def _other_identity(dependents: Iterable[GraphNode], absent: ObjectIdentity) -> ObjectIdentity | None:
    """Another identity by which dependents refer to the owner: the next one after the absent one, or the first."""
    found: dict[ObjectIdentity, None] = {}
    for dependent in dependents:
        for owner in dependent.owners:
            if owner.uid != absent.uid:
                continue
            identity = reference_identity(owner, dependent.identity.namespace)
            if not absent.namespace and (owner.api_version, owner.kind) == (absent.api_version, absent.kind):
                identity = identity._replace(namespace="")  # the kind is known to be cluster-scoped now
            if identity != absent:
                found[identity] = None
    ordered = sorted(found)
    return next((identity for identity in ordered if identity > absent), ordered[0] if ordered else None)


def _starts_deletion_with(finalizer: str, metadata: ObjectMeta, old: ObjectMeta | None) -> bool:
    if metadata.deletion_timestamp is None or finalizer not in metadata.finalizers:
        return False
    return old is None or old.deletion_timestamp is None or finalizer not in old.finalizers
