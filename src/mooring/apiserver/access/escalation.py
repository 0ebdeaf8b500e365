"""Privilege escalation: a user may not grant permissions that the user does not have.

Input: a role or a binding that a user writes, and the user's rules. Output: nothing; or `ForbiddenError` with the
missing rules, `NotFoundError` for a role that does not exist.

1. To write a role, a user needs every rule in it, or the verb `escalate` on the role. To write a binding, a user needs
   every rule of the role, or the verb `bind` on it.
2. An aggregation rule can select any rule, so that writing one needs all permissions.
3. `system:masters` are exempt. So are updates of nothing but owner references and finalizers, which the garbage
   collector makes.
4. `EscalationCheck` runs at the end of mutating admission, because kube-apiserver checks escalation before validation.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.field_errors import aggregated, quoted
from mooring.api.kinds import Kind
from mooring.apiserver.access.authorization import (
    EVERYTHING,
    Attributes,
    Authorizer,
    Rule,
    compacted,
    forbidden_object,
    listed,
    rules_of,
    uncovered,
)
from mooring.apiserver.access.rbac import (
    RBAC_GROUP,
    MissingRoleError,
    RoleAuthorizer,
    RoleReference,
    UnknownReferenceKindError,
    reference_of,
)
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup
from mooring.apiserver.call import Operation
from mooring.client.errors import ForbiddenError, NotFoundError, ServerError
from mooring.serving.users import MASTERS_GROUP

_GARBAGE_COLLECTORS_FIELDS = ("ownerReferences", "finalizers", "selfLink", "managedFields")
_PLURALS = {"Role": "roles", "ClusterRole": "clusterroles"}


def check_role(
    request: Attributes, role: Document, old: Document | None, roles: RoleAuthorizer, authorizer: Authorizer
) -> None:
    """Whether the user may write this Role or ClusterRole. `old` is the stored one on an update."""
    if MASTERS_GROUP in request.user.groups or _may_escalate(request, authorizer):
        return
    if old is not None and _changes_only_ownership(role, old):
        return
    missing_text = _missing_rules_text(request, rules_of(role), roles)
    if missing_text:
        raise _forbidden(request, role, missing_text)
    is_aggregating = _aggregates(role) or (old is not None and _aggregates(old))
    if is_aggregating and _missing_rules_text(request, EVERYTHING, roles):
        raise _forbidden(request, role, "must have cluster-admin privileges to use the aggregationRule")


def check_binding(
    request: Attributes, binding: Document, old: Document | None, roles: RoleAuthorizer, authorizer: Authorizer
) -> None:
    """Whether the user may write this RoleBinding or ClusterRoleBinding."""
    if MASTERS_GROUP in request.user.groups:
        return
    if old is not None and _changes_only_ownership(binding, old):
        return
    reference = reference_of(binding)
    if _may_bind(request, binding, reference, authorizer):
        return
    try:
        rules = roles.rules_of_reference(reference, request.namespace)
    except MissingRoleError:
        raise _not_found(request.resource, reference.name) from None
    except UnknownReferenceKindError as error:
        raise ServerError(str(error), reason="") from None
    missing_text = _missing_rules_text(request, rules, roles)
    if missing_text:
        raise _forbidden(request, binding, missing_text)


def _may_escalate(request: Attributes, authorizer: Authorizer) -> bool:
    question = Attributes(
        request.user,
        "escalate",
        namespace=request.namespace,
        api_group=request.api_group,
        api_version="*",
        resource=request.resource,
        name=request.name,
    )
    return authorizer.authorize(question).is_allowed


def _may_bind(request: Attributes, binding: Document, reference: RoleReference, authorizer: Authorizer) -> bool:
    if reference.kind not in _PLURALS:
        return False
    question = Attributes(
        request.user,
        "bind",
        namespace=request.namespace,
        api_group=binding["roleRef"].get("apiGroup") or "",
        api_version="*",
        resource=_PLURALS[reference.kind],
        name=reference.name,
    )
    return authorizer.authorize(question).is_allowed


def _missing_rules_text(request: Attributes, requested: Iterable[Rule], roles: RoleAuthorizer) -> str:
    """The rules that the user grants without holding them, as the 403 prints them; empty if there are none."""
    held = roles.rules_for(request.user, request.namespace)
    missing = uncovered(held.rules, requested)
    if not missing:
        return ""
    user = request.user
    lines = sorted({str(rule) for rule in compacted(missing)})
    text = (
        f"user {quoted(user.name)} (groups={listed(user.groups)}) "
        "is attempting to grant RBAC permissions not currently held:\n" + "\n".join(lines)
    )
    errors = [_as_storage_error(error, request.resource) for error in held.errors]
    return f"{text}; resolution errors: [{aggregated(errors)}]" if errors else text


def _as_storage_error(error: str, resource: str) -> str:
    """Authorizers report a missing `role.rbac…`; storage reports the resource of the request."""
    kind, dot, rest = error.partition(".")
    return f"{resource}{dot}{rest}" if kind in ("role", "clusterrole") else error


def _changes_only_ownership(new: Document, old: Document) -> bool:
    return _without_ownership(new) == _without_ownership(old)


def _without_ownership(document: Document) -> Document:
    metadata = document.get("metadata") or {}
    kept = {key: value for key, value in metadata.items() if key not in _GARBAGE_COLLECTORS_FIELDS and value}
    return {**{key: value for key, value in document.items() if value}, "metadata": kept}


def _aggregates(role: Document) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _forbidden(request: Attributes, document: Document, text: str) -> ForbiddenError:
    return forbidden_object(request.api_group, request.resource, document["metadata"].get("name") or "", text)


def _not_found(resource: str, name: str) -> NotFoundError:
    # kube-apiserver reports a missing role under the resource of the request: a missing cluster role is
    # a missing role binding to a user who wants to bind it.
    return NotFoundError(
        f"{resource}.{RBAC_GROUP} {quoted(name)} not found",
        details={"name": name, "group": RBAC_GROUP, "kind": resource},
    )


_ROLES = (kinds.ROLE, kinds.CLUSTER_ROLE)
_BINDINGS = (kinds.ROLE_BINDING, kinds.CLUSTER_ROLE_BINDING)


class EscalationCheck(Admission):
    """Checks writes of roles and bindings."""

    name = "EscalationCheck"

    def __init__(self, roles: RoleAuthorizer, authorizer: Authorizer) -> None:
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
