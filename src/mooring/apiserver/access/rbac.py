"""RBAC: the rules that a user holds.

Input: roles, cluster roles and their bindings, as a watch delivers them. Output: decisions; the rules of a user in a
namespace; the rules of a role reference.

A request is allowed if a binding of the user or of one of the user's groups, cluster-wide or in the request's
namespace, refers to a role with a rule that allows it.

1. Bindings are found by subject, and the rules of a user in a namespace are cached until something changes. A
   decision is usually two dictionary lookups.
2. A cluster role with an aggregation rule has the rules of the roles that it selects. In Kubernetes a controller
   writes them into the object; with that controller the decisions are the same.
3. A binding to a missing role grants nothing, and the reason of a 403 names it.
4. Bindings are visited by name, so that the reason of an allowed request does not depend on the order of arrival. (In
   kube-apiserver it is random.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from mooring.api.caches import BoundedCache
from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.errors import ObjectError
from mooring.api.field_errors import aggregated, quoted
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.views.meta import LabelSelector
from mooring.apiserver.access.authorization import NO_OPINION, Attributes, Rule, SubjectRules, rules_of
from mooring.serving.authorization import AuthorizationDecision
from mooring.serving.users import User, service_account_username

RBAC_GROUP = "rbac.authorization.k8s.io"
REMEMBERED_USERS_MAX = 4_096
"""Maximum number of pairs of user and namespace whose grants are cached. A full cache starts empty again."""
REMEMBERED_QUESTIONS_MAX = 1_024
"""Maximum number of cached requests (verb, group, resource) for one such pair. A full cache starts empty again."""


class RoleReference(NamedTuple):
    kind: str
    name: str


class MissingRoleError(Exception):
    """The role of a binding does not exist. The text is that of a lister, with `role`; the API's has `roles`."""

    def __init__(self, reference: RoleReference) -> None:
        self.reference = reference
        super().__init__(f"{reference.kind.lower()}.{RBAC_GROUP} {quoted(reference.name)} not found")


class UnknownReferenceKindError(Exception):
    """A binding refers to a kind that is neither Role nor ClusterRole."""

    def __init__(self, reference: RoleReference) -> None:
        super().__init__(f"unsupported role reference kind: {quoted(reference.kind)}")


@dataclass(frozen=True, slots=True)
class _Binding:
    namespace: str
    name: str
    role: RoleReference
    subjects: tuple[tuple[str, str], ...]
    """(the key of the user or group, how it is printed), in the order of the object."""

    def printed_for(self, keys: tuple[str, ...]) -> str:
        """`RoleBinding "readers/default" of Role "reader" to User "anna"`: the first subject that matches."""
        subject = next(text for key, text in self.subjects if key in keys)
        title = f"RoleBinding {quoted(f'{self.name}/{self.namespace}')}"
        if not self.namespace:
            title = f"ClusterRoleBinding {quoted(self.name)}"
        return f"{title} of {self.role.kind} {quoted(self.role.name)} to {subject}"


@dataclass(frozen=True, slots=True)
class _ClusterRole:
    rules: tuple[Rule, ...]
    labels: Mapping[str, str]
    selectors: tuple[LabelMatcher, ...] | None


@dataclass(slots=True)
class _Grants:
    """The bindings of a user in a namespace: the text and the rules of each."""

    held: tuple[tuple[str, tuple[Rule, ...]], ...]
    errors: tuple[str, ...]
    candidates: BoundedCache[tuple[str, str, str], tuple[tuple[str, Rule], ...]] = field(
        default_factory=lambda: BoundedCache(REMEMBERED_QUESTIONS_MAX)
    )

    def candidates_for(self, attributes: Attributes) -> tuple[tuple[str, Rule], ...]:
        """The rules that match everything but the name of the object, which the caller checks."""
        combined = attributes.combined_resource
        question = (attributes.verb, attributes.api_group, combined)
        found = self.candidates.get(question)
        if found is not None:
            return found
        found = tuple(
            (source, rule)
            for source, rules in self.held
            for rule in rules
            if rule.allows_resource(attributes.verb, attributes.api_group, combined, attributes.subresource)
        )
        return self.candidates.put(question, found)


RoleOrBinding: TypeAlias = "tuple[Rule, ...] | _ClusterRole | _Binding"


def read_role_or_binding(resource: str, namespace: str, name: str, document: Document) -> RoleOrBinding:
    """The fields of a stored role or binding that the authorizer needs. It may run in the `WorkerThread`."""
    match resource:
        case "roles":
            return rules_of(document)
        case "clusterroles":
            return _cluster_role_of(document)
        case "rolebindings" | "clusterrolebindings":
            return _binding_of(namespace, name, document)
        case _:
            raise AssertionError(f"{resource} are neither roles nor bindings")


class RoleAuthorizer:
    """Authorizes requests by roles and bindings."""

    def __init__(self) -> None:
        self._roles: dict[tuple[str, str], tuple[Rule, ...]] = {}
        self._cluster_roles: dict[str, _ClusterRole] = {}
        self._bindings: dict[tuple[str, str], _Binding] = {}
        self._by_subject: dict[tuple[str, str], dict[str, _Binding]] = {}
        self._grants: BoundedCache[tuple[str, tuple[str, ...], str], _Grants] = BoundedCache(REMEMBERED_USERS_MAX)

    def put(self, resource: str, namespace: str, name: str, document: Document) -> None:
        """Add or replace a role or a binding."""
        self.put_read(namespace, name, read_role_or_binding(resource, namespace, name, document))

    def put_read(self, namespace: str, name: str, read: RoleOrBinding) -> None:
        """As `put`, with the result of `read_role_or_binding`."""
        match read:
            case _ClusterRole():
                self._cluster_roles[name] = read
            case _Binding():
                self._unbind(namespace, name)
                self._bind(read)
            case _:
                self._roles[namespace, name] = read
        self._grants.clear()

    def remove(self, resource: str, namespace: str, name: str) -> None:
        """Remove a role or a binding."""
        match resource:
            case "roles":
                self._roles.pop((namespace, name), None)
            case "clusterroles":
                self._cluster_roles.pop(name, None)
            case "rolebindings" | "clusterrolebindings":
                self._unbind(namespace, name)
            case _:
                raise AssertionError(f"{resource} are neither roles nor bindings")
        self._grants.clear()

    def authorize(self, attributes: Attributes) -> AuthorizationDecision:
        grants = self._grants_of(attributes.user, attributes.namespace)
        if attributes.is_resource_request:
            for source, rule in grants.candidates_for(attributes):
                if rule.allows_name(attributes.name):
                    return AuthorizationDecision(True, f"RBAC: allowed by {source}")
        else:
            for source, rules in grants.held:
                for rule in rules:
                    if rule.allows_path(attributes.verb, attributes.path):
                        return AuthorizationDecision(True, f"RBAC: allowed by {source}")
        return AuthorizationDecision(False, f"RBAC: {aggregated(grants.errors)}") if grants.errors else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> SubjectRules:
        """Every rule of a user in a namespace; without a namespace, the cluster-wide rules."""
        grants = self._grants_of(user, namespace)
        return SubjectRules(tuple(rule for _, rules in grants.held for rule in rules), grants.errors)

    def rules_of_reference(self, reference: RoleReference, namespace: str) -> tuple[Rule, ...]:
        """The rules of the role that a binding in that namespace names. Raises `MissingRoleError`."""
        match reference.kind:
            case "Role":
                rules = self._roles.get((namespace, reference.name))
            case "ClusterRole":
                rules = self._rules_of_cluster_role(reference.name)
            case _:
                raise UnknownReferenceKindError(reference)
        if rules is None:
            raise MissingRoleError(reference)
        return rules

    def _grants_of(self, user: User, namespace: str) -> _Grants:
        key = (user.name, user.groups, namespace)
        grants = self._grants.get(key)
        return grants if grants is not None else self._grants.put(key, self._find_grants(user, namespace))

    def _find_grants(self, user: User, namespace: str) -> _Grants:
        keys = (_user_key(user.name), *(_group_key(group) for group in user.groups))
        held, errors = [], []
        for binding in self._bindings_of(keys, namespace):
            try:
                rules = self.rules_of_reference(binding.role, binding.namespace)
            except (MissingRoleError, UnknownReferenceKindError) as error:
                errors.append(str(error))
            else:
                held.append((binding.printed_for(keys), rules))
        return _Grants(tuple(held), tuple(errors))

    def _bindings_of(self, keys: tuple[str, ...], namespace: str) -> Iterator[_Binding]:
        for place in ("", namespace) if namespace else ("",):
            found: dict[str, _Binding] = {}
            for key in keys:
                found.update(self._by_subject.get((place, key), {}))
            for name in sorted(found):
                yield found[name]

    def _bind(self, binding: _Binding) -> None:
        self._bindings[binding.namespace, binding.name] = binding
        for key, _ in binding.subjects:
            self._by_subject.setdefault((binding.namespace, key), {})[binding.name] = binding

    def _unbind(self, namespace: str, name: str) -> None:
        binding = self._bindings.pop((namespace, name), None)
        for key, _ in binding.subjects if binding is not None else ():
            same_subject = self._by_subject.get((namespace, key), {})
            same_subject.pop(name, None)
            if not same_subject:
                self._by_subject.pop((namespace, key), None)

    def _rules_of_cluster_role(self, name: str) -> tuple[Rule, ...] | None:
        role = self._cluster_roles.get(name)
        if role is None or role.selectors is None:
            return None if role is None else role.rules
        return self._aggregated_rules(name, {name})

    def _aggregated_rules(self, name: str, above: set[str]) -> tuple[Rule, ...]:
        """Each rule once, by selector and role. `above` has the roles being aggregated, to end cycles."""
        gathered: dict[Rule, None] = {}
        for selector in self._cluster_roles[name].selectors or ():
            for other in sorted(self._cluster_roles):
                role = self._cluster_roles[other]
                if other in above or not selector.matches(role.labels):
                    continue
                rules = role.rules if role.selectors is None else self._aggregated_rules(other, above | {other})
                gathered.update(dict.fromkeys(rules))
        return tuple(gathered)


def reference_of(binding: Document) -> RoleReference:
    """The `roleRef` of a binding."""
    reference = binding.get("roleRef") or {}
    return RoleReference(reference.get("kind") or "", reference.get("name") or "")


def _cluster_role_of(document: Document) -> _ClusterRole:
    labels = (document.get("metadata") or {}).get("labels") or {}
    aggregation = document.get("aggregationRule")
    if aggregation is None:
        return _ClusterRole(rules_of(document), labels, None)
    try:
        selectors = tuple(
            compile_selector(convert_as(LabelSelector, selector))
            for selector in aggregation.get("clusterRoleSelectors") or ()
        )
    except ObjectError:
        # Validation lets no such selector in. Should one be in the store all the same, the controller of the original
        # gives up and leaves the rules as they are.
        return _ClusterRole(rules_of(document), labels, None)
    return _ClusterRole(rules_of(document), labels, selectors)


def _binding_of(namespace: str, name: str, document: Document) -> _Binding:
    subjects = tuple(_subjects_of(namespace, document))
    return _Binding(namespace, name, reference_of(document), subjects)


def _subjects_of(namespace: str, document: Document) -> Iterator[tuple[str, str]]:
    for subject in document.get("subjects") or ():
        name = subject.get("name") or ""
        match subject.get("kind"):
            case "User":
                yield _user_key(name), f"User {quoted(name)}"
            case "Group":
                yield _group_key(name), f"Group {quoted(name)}"
            case "ServiceAccount":
                home = subject.get("namespace") or namespace
                if home:
                    text = f"ServiceAccount {quoted(f'{name}/{home}')}"
                    yield _user_key(service_account_username(home, name)), text


def _user_key(name: str) -> str:
    return f"u {name}"


def _group_key(name: str) -> str:
    return f"g {name}"
