"""Creates the objects that every cluster has: namespaces, priority classes, roles and their bindings.

1. Existing objects are kept. A changed role gets back the rules that it lacks and loses none, unless it opts out; see
   `access.default_roles`.
"""

from __future__ import annotations

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.access.default_roles import default_objects, reconciled
from mooring.apiserver.apply.managers import UPDATE, manager_id
from mooring.apiserver.apply.update import write_first_managed_fields
from mooring.apiserver.kinds.priority_class import SYSTEM_VALUES
from mooring.apiserver.registry.object_storage import OWN_MANAGER, ObjectStorage
from mooring.kit.clock import Clock, format_rfc3339
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import run_bounded
from mooring.store.interface import WriteConflict

ROLES_AT_ONCE = 64
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_PRIORITY_CLASS_DESCRIPTIONS = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
    ),
}


async def bootstrap(object_storage: ObjectStorage, clock: Clock, entropy: Entropy) -> None:
    """Creates the missing objects in the store."""
    maker = _ObjectCreator(object_storage, clock, entropy)
    for name in NAMESPACES:
        await maker.ensure(kinds.NAMESPACE, _namespace(name))
    for priority_class in system_priority_classes():
        await maker.ensure(kinds.PRIORITY_CLASS, priority_class)
    # Concurrently, so that a store on disk writes many of them in one commit.
    documents = [default.document for default in default_objects()]
    await run_bounded(maker.ensure_role, documents, limit=ROLES_AT_ONCE, name="bootstrap roles")


def system_priority_classes() -> list[Document]:
    """The priority classes that every cluster has."""
    return [_priority_class(name, value) for name, value in SYSTEM_VALUES.items()]


class _ObjectCreator:
    def __init__(self, object_storage: ObjectStorage, clock: Clock, entropy: Entropy) -> None:
        self._object_storage = object_storage
        self._now = format_rfc3339(int(clock.wall_s()))
        self._entropy = entropy

    async def ensure(self, kind: Kind, document: Document) -> None:
        metadata = document["metadata"]
        namespace = metadata.get("namespace", "")
        if await self._object_storage.find(kind, namespace, metadata["name"]) is not None:
            return
        metadata["uid"], metadata["creationTimestamp"] = self._entropy.uuid(), self._now
        writer = manager_id(OWN_MANAGER, UPDATE, kind.api_version, "")
        # Spec and status of a namespace, which the server fills in, have no manager.
        ignored = (("spec",), ("status",)) if kind is kinds.NAMESPACE else ()
        write_first_managed_fields(document, writer, self._now, ignored)
        try:
            await self._object_storage.create(kind, document)
        except WriteConflict:
            return  # another server on the same store created it first

    async def ensure_role(self, default_role: Document) -> None:
        kind = kinds.kind_named(default_role["apiVersion"], default_role["kind"])
        metadata = default_role["metadata"]
        found = await self._object_storage.find(kind, metadata.get("namespace", ""), metadata["name"])
        if found is None:
            await self.ensure(kind, default_role)
            return
        changed = reconciled(found.document, default_role)
        if changed is None:
            return
        try:
            if "uid" in changed["metadata"]:
                await self._object_storage.put(kind, changed, if_revision=found.revision)
                return
            # A binding to another role: roleRef is immutable, so the binding is deleted and created again.
            await self._object_storage.delete(
                kind, metadata.get("namespace", ""), metadata["name"], if_revision=found.revision
            )
            await self.ensure(kind, changed)
        except WriteConflict:
            return


def _namespace(name: str) -> Document:
    return {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _priority_class(name: str, value: int) -> Document:
    return {
        "kind": "PriorityClass",
        "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {"name": name, "generation": 1},
        "value": value,
        "description": _PRIORITY_CLASS_DESCRIPTIONS[name],
        "preemptionPolicy": "PreemptLowerPriority",
    }
