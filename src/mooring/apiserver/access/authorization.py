"""Authorization: attributes of a request, RBAC rules, the authorizers and the 403 response.

Input: `Attributes`. Output: an `AuthorizationDecision`; or `ForbiddenError` with the message and the details of
kube-apiserver.

1. Authorizers run in order, and the first one that allows decides. No authorizer denies: a request that none
   allows is forbidden.
2. Members of `system:masters` are always allowed, without a reason, so that a bad role cannot lock out the
   administrators.
3. The reason of a denied request is part of the 403 message. It names missing roles, and nothing that the user may not
   know.

A `Rule` of a role allows a request or not, and covers another rule or not. It allows its verbs on its resources of its
API groups, or on its paths; with names only on objects of these names.

1. `*` is every verb, group or resource; `*/scale` is that subresource of every resource; a path that ends in `*` is
   every path with that prefix. `pods/*` is nothing but itself.
2. A rule with names allows nothing where a request has no name: neither list nor create.
3. Lists are kept as they were written, because reviews print them; the sets next to them are for lookups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.client.errors import ForbiddenError
from mooring.serving.authorization import AuthorizationDecision
from mooring.serving.users import MASTERS_GROUP, User


@dataclass(frozen=True, slots=True)
class Attributes:
    """The user, the verb and the object of a request."""

    user: User
    verb: str
    namespace: str = ""
    api_group: str = ""
    api_version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    path: str = ""
    is_resource_request: bool = True
    fields_equal: tuple[tuple[str, str], ...] = ()
    """The field selector's equalities, as (field, value)."""

    @property
    def combined_resource(self) -> str:
        """`pods`, or `pods/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def path_attributes(user: User, verb: str, path: str) -> Attributes:
    """A request for a path that is no resource: `/healthz`, `/apis`."""
    return Attributes(user, verb, path=path, is_resource_request=False)


ALL = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    verbs: tuple[str, ...]
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()
    _verbs: frozenset[str] = field(init=False, repr=False, compare=False)
    _api_groups: frozenset[str] = field(init=False, repr=False, compare=False)
    _resources: frozenset[str] = field(init=False, repr=False, compare=False)
    _resource_names: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_verbs", frozenset(self.verbs))
        object.__setattr__(self, "_api_groups", frozenset(self.api_groups))
        object.__setattr__(self, "_resources", frozenset(self.resources))
        object.__setattr__(self, "_resource_names", frozenset(self.resource_names))

    def allows(self, attributes: Attributes) -> bool:
        if not attributes.is_resource_request:
            return self.allows_path(attributes.verb, attributes.path)
        return self.allows_resource(
            attributes.verb, attributes.api_group, attributes.combined_resource, attributes.subresource
        ) and self.allows_name(attributes.name)

    def allows_resource(self, verb: str, api_group: str, combined_resource: str, subresource: str) -> bool:
        """Whether the rule allows the verb on some object of the resource. `combined_resource` contains the
        subresource."""
        return (
            (verb in self._verbs or ALL in self._verbs)
            and (api_group in self._api_groups or ALL in self._api_groups)
            and (
                combined_resource in self._resources
                or ALL in self._resources
                or (subresource != "" and f"*/{subresource}" in self._resources)
            )
        )

    def allows_name(self, name: str) -> bool:
        return not self._resource_names or name in self._resource_names

    def allows_path(self, verb: str, path: str) -> bool:
        return (verb in self._verbs or ALL in self._verbs) and any(
            path_covers(url, path) for url in self.non_resource_urls
        )

    def covers(self, part: Rule) -> bool:
        """Whether this rule covers a part, which has one verb and one resource or one path."""
        return (
            (ALL in self._verbs or part._verbs <= self._verbs)
            and (ALL in self._api_groups or part._api_groups <= self._api_groups)
            and all(self._covers_resource(resource) for resource in part.resources)
            and all(any(path_covers(own, path) for own in self.non_resource_urls) for path in part.non_resource_urls)
            and self._covers_names(part)
        )

    def _covers_resource(self, resource: str) -> bool:
        if ALL in self._resources or resource in self._resources:
            return True
        _, slash, subresource = resource.partition("/")
        return slash != "" and f"*/{subresource}" in self._resources

    def _covers_names(self, part: Rule) -> bool:
        if not self._resource_names:
            return True
        return bool(part.resource_names) and part._resource_names <= self._resource_names

    def parts_count(self) -> int:
        """The number of rules that `parts` returns."""
        of_resources = len(self.api_groups) * len(self.resources) * max(len(self.resource_names), 1)
        return (of_resources + len(self.non_resource_urls)) * len(self.verbs)

    def parts(self) -> Iterator[Rule]:
        """An equivalent list of rules, each with one verb and one resource (and name), or one verb and one path."""
        for group in self.api_groups:
            for resource in self.resources:
                for verb in self.verbs:
                    if not self.resource_names:
                        yield Rule((verb,), (group,), (resource,))
                    for name in self.resource_names:
                        yield Rule((verb,), (group,), (resource,), (name,))
        for url in self.non_resource_urls:
            for verb in self.verbs:
                yield Rule((verb,), non_resource_urls=(url,))

    def __str__(self) -> str:
        """The form in 403 messages: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`."""
        lists = (
            ("APIGroups", self.api_groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.non_resource_urls),
            ("ResourceNames", self.resource_names),
            ("Verbs", self.verbs),
        )
        return f"{{{', '.join(f'{title}:{listed(items)}' for title, items in lists if items)}}}"


def path_covers(own: str, path: str) -> bool:
    """Whether permission for one path includes the other."""
    return own == path or (own.endswith(ALL) and path.startswith(own.rstrip(ALL)))


def rules_of(document: Document) -> tuple[Rule, ...]:
    """The rules of a stored Role or ClusterRole."""
    return tuple(
        Rule(
            verbs=tuple(rule.get("verbs") or ()),
            api_groups=tuple(rule.get("apiGroups") or ()),
            resources=tuple(rule.get("resources") or ()),
            resource_names=tuple(rule.get("resourceNames") or ()),
            non_resource_urls=tuple(rule.get("nonResourceURLs") or ()),
        )
        for rule in document.get("rules") or ()
    )


def document_of(rule: Rule) -> Document:
    """The rule as a document. Empty lists are omitted, except `verbs`."""
    lists = (
        ("apiGroups", rule.api_groups),
        ("resources", rule.resources),
        ("resourceNames", rule.resource_names),
        ("nonResourceURLs", rule.non_resource_urls),
    )
    return {"verbs": list(rule.verbs), **{field: list(items) for field, items in lists if items}}


COMPARISONS_MAX = 100_000
"""Comparisons of parts with held rules for one role, which take about 0.1 s. A rule of a thousand groups, resources and
verbs has a billion parts."""


def uncovered(existing: Sequence[Rule], requested: Iterable[Rule]) -> list[Rule]:
    """The parts of the requested rules that no existing rule covers.

    Beyond `COMPARISONS_MAX` comparisons, a rule that no single existing rule covers is not split into parts.
    """
    missing: list[Rule] = []
    left = COMPARISONS_MAX
    for rule in requested:
        left -= len(existing)
        if left >= 0 and any(own.covers(rule) for own in existing):
            continue
        left -= rule.parts_count() * len(existing)
        if left < 0:
            missing.append(rule)
        else:
            missing += [part for part in rule.parts() if not any(own.covers(part) for own in existing)]
    return missing


def compacted(parts: Iterable[Rule]) -> list[Rule]:
    """Parts about the same resource (and name) in one rule with all their verbs; paths stay as they are."""
    paths = []
    verbs: dict[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for part in parts:
        if part.non_resource_urls:
            paths.append(part)
        else:
            verbs.setdefault((part.api_groups, part.resources, part.resource_names), []).extend(part.verbs)
    return paths + [Rule(tuple(found), *about) for about, found in verbs.items()]


def listed(items: Iterable[str]) -> str:
    """A list of strings as Go prints it with %q: `["a" "b"]`."""
    return f"[{' '.join(quoted(item) for item in items)}]"


# --- authorizers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SubjectRules:
    """The rules of a user in a namespace, and the errors of the authorizers that have no complete list."""

    rules: tuple[Rule, ...]
    errors: tuple[str, ...] = ()
    is_incomplete: bool = False


class Authorizer(Protocol):
    def authorize(self, attributes: Attributes) -> AuthorizationDecision: ...

    def rules_for(self, user: User, namespace: str) -> SubjectRules: ...


ALLOWED = AuthorizationDecision(True)
NO_OPINION = AuthorizationDecision(False)


class AuthorizerChain:
    """Allows `system:masters`, then runs the authorizers until one allows."""

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

    def rules_for(self, user: User, namespace: str) -> SubjectRules:
        held = [authorizer.rules_for(user, namespace) for authorizer in self._authorizers]
        return SubjectRules(
            tuple(rule for found in held for rule in found.rules),
            tuple(error for found in held for error in found.errors),
            any(found.is_incomplete for found in held),
        )


class EverythingAllowed:
    """Allows every request. For objects that are admitted without a user: those of `mooring explain`."""

    def authorize(self, attributes: Attributes) -> AuthorizationDecision:
        return ALLOWED

    def rules_for(self, user: User, namespace: str) -> SubjectRules:
        return SubjectRules(EVERYTHING)


EVERYTHING = (
    Rule(verbs=("*",), api_groups=("*",), resources=("*",)),
    Rule(verbs=("*",), non_resource_urls=("*",)),
)
"""The rules of cluster-admin."""


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
