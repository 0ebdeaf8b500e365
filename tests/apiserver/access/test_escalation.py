"""Privilege escalation: users cannot grant permissions that they do not hold, by roles or by bindings."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.access.authorization import AuthorizerChain
from mooring.apiserver.access.escalation import check_binding, check_role
from mooring.apiserver.access.rbac import RoleAuthorizer
from mooring.client.errors import ForbiddenError, NotFoundError, ServerError, StatusError
from tests.apiserver.access.builders import RBAC, authorizer, binding, may, request_attributes, role, user

LIMITED = user("limited", "limited-group", "system:authenticated")
HEAD = 'user "limited" (groups=["limited-group" "system:authenticated"])'
GRANT = f"{HEAD} is attempting to grant RBAC permissions not currently held:\n"


def _roles(*more: Document) -> RoleAuthorizer:
    return authorizer(
        role([may("get list", "pods")], "own", "web"),
        role([may("get list", "secrets")], "big", "web"),
        binding("User limited", to="Role own", namespace="web"),
        *more,
    )


def _check_role(written: Document, *, old: Document | None = None, roles: RoleAuthorizer | None = None) -> None:
    held = roles or _roles()
    resource = "roles" if written["kind"] == "Role" else "clusterroles"
    where = "in web" if resource == "roles" else ""
    check_role(
        request_attributes(LIMITED, f"create {resource}.{RBAC} {where}"), written, old, held, AuthorizerChain(held)
    )


def _check_binding(written: Document, *, old: Document | None = None, roles: RoleAuthorizer | None = None) -> None:
    held = roles or _roles()
    resource = "rolebindings" if written["kind"] == "RoleBinding" else "clusterrolebindings"
    where = "in web" if resource == "rolebindings" else ""
    check_binding(
        request_attributes(LIMITED, f"create {resource}.{RBAC} {where}"), written, old, held, AuthorizerChain(held)
    )


def test_a_role_with_rules_of_its_author_is_allowed() -> None:
    _check_role(role([may("get", "pods")], "new", "web"))
    _check_role(role([may("get", "pods", names="a")], "new", "web"))
    _check_role(role([], "new", "web"))


def test_escalation_lists_all_missing_rules() -> None:
    rules = [may("get create list", "pods secrets", "core apps"), may("get", "configmaps", names="a b")]
    with pytest.raises(ForbiddenError) as rejected:
        _check_role(role(rules, "esc", "web"))
    assert rejected.value.message == (
        f'roles.rbac.authorization.k8s.io "esc" is forbidden: {GRANT}'
        '{APIGroups:[""], Resources:["configmaps"], ResourceNames:["a"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["configmaps"], ResourceNames:["b"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["create"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "create" "list"]}\n'
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "create" "list"]}\n'
        '{APIGroups:["apps"], Resources:["secrets"], Verbs:["get" "create" "list"]}'
    )
    assert rejected.value.details == {"name": "esc", "group": RBAC, "kind": "roles"}


def test_escalation_appends_resolution_errors_to_the_message() -> None:
    roles = _roles(binding("User limited", to="ClusterRole missing", name="c", namespace="web"))
    with pytest.raises(ForbiddenError) as rejected:
        _check_role(role([may("get", "pods", "x")], "", "web"), roles=roles)
    assert rejected.value.message == (
        f"roles.rbac.authorization.k8s.io is forbidden: {GRANT}"
        '{APIGroups:["x"], Resources:["pods"], Verbs:["get"]}'
        '; resolution errors: [roles.rbac.authorization.k8s.io "missing" not found]'
    )


def test_escalation_lists_non_resource_paths_one_by_one() -> None:
    with pytest.raises(ForbiddenError) as rejected:
        _check_role(role([may("get post", paths="/metrics")], "esc"))
    assert rejected.value.message == (
        f'clusterroles.rbac.authorization.k8s.io "esc" is forbidden: {GRANT}'
        '{NonResourceURLs:["/metrics"], Verbs:["get"]}\n{NonResourceURLs:["/metrics"], Verbs:["post"]}'
    )


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param([may("escalate", "roles", RBAC)], id="may escalate roles"),
        pytest.param([may("*", "*", "*")], id="may do everything"),
    ],
)
def test_the_verb_escalate_allows_any_role(rules: list[Document]) -> None:
    roles = _roles(
        role(rules, "escalator", "web"), binding("User limited", to="Role escalator", name="e", namespace="web")
    )
    _check_role(role([may("get", "secrets")], "esc", "web"), roles=roles)


def test_system_masters_may_write_any_role_and_binding() -> None:
    no_roles = authorizer()
    root = user("root", "system:masters")
    check_role(
        request_attributes(root, f"create roles.{RBAC} in web"),
        role([may("*", "*")], "r", "web"),
        None,
        no_roles,
        no_roles,
    )
    check_binding(
        request_attributes(root, f"create clusterrolebindings.{RBAC}"),
        binding(to="ClusterRole x"),
        None,
        no_roles,
        no_roles,
    )


AGGREGATION: Any = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}


def test_an_aggregation_rule_needs_cluster_admin() -> None:
    text = "must have cluster-admin privileges to use the aggregationRule"
    with pytest.raises(ForbiddenError, match=f'^clusterroles.{RBAC} "g" is forbidden: {text}$'):
        _check_role({**role([], "g"), "aggregationRule": AGGREGATION})
    with pytest.raises(ForbiddenError, match=text):  # removal is forbidden, too
        _check_role(role([], "g"), old={**role([], "g"), "aggregationRule": AGGREGATION})
    everything = _roles(
        role([may("*", "*", "*"), may("*", paths="*")], "all"), binding("User limited", to="ClusterRole all")
    )
    _check_role({**role([], "g"), "aggregationRule": AGGREGATION}, roles=everything)


@pytest.mark.parametrize("field", ["ownerReferences", "finalizers", "managedFields"])
def test_metadata_of_the_garbage_collector_may_change_without_a_check(field: str) -> None:
    old_role, old_binding = role([may("get", "secrets")], "r", "web"), binding(to="Role big", namespace="web")
    for old, check in ((old_role, _check_role), (old_binding, _check_binding)):
        new = {**old, "metadata": {**old["metadata"], field: [{"name": "x"}]}}
        check(new, old=old)
        with pytest.raises(ForbiddenError):
            check({**new, "metadata": {**new["metadata"], "labels": {"a": "b"}}}, old=old)


def test_a_role_that_the_user_holds_may_be_bound() -> None:
    _check_binding(binding("User anna", to="Role own", namespace="web"))


def test_a_role_that_the_user_does_not_hold_may_not_be_bound() -> None:
    with pytest.raises(ForbiddenError) as rejected:
        _check_binding(binding("User anna", to="Role big", name="esc", namespace="web"))
    assert rejected.value.message == (
        f'rolebindings.rbac.authorization.k8s.io "esc" is forbidden: {GRANT}'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}'
    )


def test_the_verb_bind_allows_a_binding() -> None:
    roles = _roles(
        role([may("bind", "roles", RBAC, names="big")], "binder", "web"),
        role([may("get", "nodes")], "other", "web"),
        binding("User limited", to="Role binder", name="x", namespace="web"),
    )
    _check_binding(binding("User anna", to="Role big", namespace="web"), roles=roles)
    with pytest.raises(ForbiddenError):
        _check_binding(binding("User anna", to="Role other", namespace="web"), roles=roles)


@pytest.mark.parametrize(
    ("to", "error", "message"),
    [
        ("ClusterRole nope", NotFoundError, f'rolebindings.{RBAC} "nope" not found'),
        ("Foo nope", ServerError, 'unsupported role reference kind: "Foo"'),
    ],
)
def test_a_missing_role_cannot_be_bound(to: str, error: type[StatusError], message: str) -> None:
    with pytest.raises(error) as rejected:
        _check_binding(binding("User anna", to=to, namespace="web"))
    assert rejected.value.message == message
