"""Authorization: the authorizers and the 403 response.

Input: `Attributes`. Output: an `AuthorizationDecision`; or `ForbiddenError` with the message and the details of
kube-apiserver.

1. Authorizers are asked in order, and the first one that allows decides. No authorizer denies: a request that none
   allows is forbidden.
2. Members of `system:masters` are always allowed, without a reason, so that a bad role cannot lock out the
   administrators.
3. The reason of a denied request is part of the 403 message. It names missing roles, and nothing that the user may not
   know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from mooring.api.field_errors import quoted
from mooring.apiserver.access.rules import Attributes, Rule
from mooring.apiserver.access.users import MASTERS_GROUP, User
from mooring.client.errors import ForbiddenError


@dataclass(frozen=True, slots=True)
class AuthorizationDecision:
    is_allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HeldRules:
    """Everything that a user may do in a namespace, and what could not be found out."""

    rules: tuple[Rule, ...]
    errors: tuple[str, ...] = ()
    is_incomplete: bool = False


class Authorizer(Protocol):
    def authorize(self, attributes: Attributes) -> AuthorizationDecision: ...

    def rules_for(self, user: User, namespace: str) -> HeldRules: ...


ALLOWED = AuthorizationDecision(True)
NO_OPINION = AuthorizationDecision(False)


class AuthorizerChain:
    """Masters first, then each of the authorizers until one says yes."""

    def __init__(self, *authorizers: Authorizer) -> None:
        self._authorizers = authorizers

    def authorize(self, attributes: Attributes) -> AuthorizationDecision:
        if MASTERS_GROUP in attributes.user.groups:
            return ALLOWED
        reasons = []
        for authorizer in self._authorizers:
            decision = authorizer.authorize(attributes)
            if decision.is_allowed:
                return decision
            if decision.reason:
                reasons.append(decision.reason)
        return AuthorizationDecision(False, "\n".join(reasons)) if reasons else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> HeldRules:
        held = [authorizer.rules_for(user, namespace) for authorizer in self._authorizers]
        return HeldRules(
            tuple(rule for each in held for rule in each.rules),
            tuple(error for each in held for error in each.errors),
            any(each.is_incomplete for each in held),
        )


def require(authorizer: Authorizer, attributes: Attributes) -> None:
    """Raises `ForbiddenError` unless the request is allowed."""
    decision = authorizer.authorize(attributes)
    if not decision.is_allowed:
        raise forbidden(attributes, decision.reason)


def forbidden(attributes: Attributes, reason: str) -> ForbiddenError:
    """The 403 of a request, with kube-apiserver's message."""
    # The original lets nothing through that a browser would take for markup; the reason is its own text, and trusted.
    text = _what_they_cannot(attributes).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return forbidden_object(
        attributes.api_group, attributes.resource, attributes.name, f"{text}: {reason}" if reason else text
    )


def forbidden_object(api_group: str, resource: str, name: str, text: str) -> ForbiddenError:
    """A 403 about an object, a resource, or neither."""
    qualified = f"{resource}.{api_group}" if api_group else resource
    if not resource:
        head = "forbidden"
    elif name:
        head = f"{qualified} {quoted(name)} is forbidden"
    else:
        head = f"{qualified} is forbidden"
    return ForbiddenError(f"{head}: {text}", details=_details(api_group, resource, name))


def _what_they_cannot(attributes: Attributes) -> str:
    who = f"User {quoted(attributes.user.name)} cannot {attributes.verb}"
    if not attributes.is_resource_request:
        return f"{who} path {quoted(attributes.path)}"
    what = f"resource {quoted(attributes.combined_resource)} in API group {quoted(attributes.api_group)}"
    where = f"in the namespace {quoted(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return f"{who} {what} {where}"


def _details(api_group: str, resource: str, name: str) -> Mapping[str, str]:
    return {key: value for key, value in (("name", name), ("group", api_group), ("kind", resource)) if value}
