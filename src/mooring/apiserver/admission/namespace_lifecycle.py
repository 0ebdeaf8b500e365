"""NamespaceLifecycle: nothing is created in a namespace that does not exist or is terminating.

Input: every write. Output: 404 for a missing namespace, 403 for a new object in a terminating one, and for the deletion
of a namespace that every cluster needs.
"""

from __future__ import annotations

from mooring.api.kinds import NAMESPACE, Kind
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, refused
from mooring.apiserver.call import Operation
from mooring.apiserver.errors import not_found
from mooring.client.errors import StatusCause

IMMORTAL_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle(Admission):
    """Checks the namespace of each write."""

    name = "NamespaceLifecycle"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        if kind is NAMESPACE:
            return operation is Operation.DELETE
        return kind.is_namespaced and operation in (Operation.CREATE, Operation.UPDATE)

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        call = attempt.call
        if call.kind is NAMESPACE:
            if call.name in IMMORTAL_NAMESPACES:
                raise refused(attempt, "this namespace may not be deleted")
            return
        namespace = await lookup.get(NAMESPACE, "", call.namespace)
        if namespace is None:
            raise not_found(NAMESPACE, call.namespace)
        if attempt.operation is not Operation.CREATE or namespace.get("status", {}).get("phase") != "Terminating":
            return
        raise refused(
            attempt,
            f"unable to create new content in namespace {call.namespace} because it is being terminated",
            [
                StatusCause(
                    "NamespaceTerminating", f"namespace {call.namespace} is being terminated", "metadata.namespace"
                )
            ],
        )
