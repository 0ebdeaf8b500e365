"""The guard of roles: nobody writes a role or a binding that gives away what is not his.

Comes in   a role or a binding that somebody is about to write
Goes out   nothing; or a `ForbiddenError`

It is asked where mutating admission ends, because kube-apiserver asks it before an object is validated.
"""

from __future__ import annotations

from mooring.api import kinds
from mooring.api.kinds import Kind
from mooring.apiserver.access.authorization import Authorizer
from mooring.apiserver.access.escalation import Roles, check_binding, check_role
from mooring.apiserver.access.request import Attributes
from mooring.apiserver.admission.promise import Admission, Attempt, Lookup
from mooring.apiserver.call import Operation

_ROLES = (kinds.ROLE, kinds.CLUSTER_ROLE)
_BINDINGS = (kinds.ROLE_BINDING, kinds.CLUSTER_ROLE_BINDING)


class RoleGuard(Admission):
    """Checks writes of roles and bindings."""

    name = "RoleGuard"

    def __init__(self, roles: Roles, authorizer: Authorizer) -> None:
        self._roles = roles
        self._authorizer = authorizer

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        return kind in (*_ROLES, *_BINDINGS) and operation in (Operation.CREATE, Operation.UPDATE)

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        call, obj = attempt.call, attempt.obj
        assert obj is not None, "a write has an object"
        request = Attributes(
            user=call.user,
            verb=call.verb,
            namespace=call.namespace,
            api_group=call.kind.group,
            api_version=call.kind.api_version.rpartition("/")[2],
            resource=call.kind.plural,
            name=call.name or obj["metadata"].get("name", ""),
        )
        check = check_role if call.kind in _ROLES else check_binding
        check(request, obj, attempt.old, self._roles, self._authorizer)
