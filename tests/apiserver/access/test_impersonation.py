"""Impersonation: a user acts as another user, if allowed, in one of five modes."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.access.authorization import AuthorizerChain
from mooring.apiserver.access.impersonation import Impersonation, requested_user
from mooring.client.errors import BadRequestError, ForbiddenError
from mooring.serving.users import NODE_NAME_KEY, User
from tests.apiserver.access.builders import authorizer, binding, may, request_attributes, role, user

AUTHENTICATION = "authentication.k8s.io"
ROOT = user("root", "system:masters")
ROBOT = "system:serviceaccount:web:robot"


def _impersonation(*rules: Document, who: str = "limited") -> Impersonation:
    return Impersonation(
        AuthorizerChain(authorizer(role(list(rules), "r"), binding(f"User {who}", to="ClusterRole r")))
    )


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param([("Accept", "x")], None, id="no header"),
        pytest.param([("Impersonate-User", "bob")], User("bob"), id="a name"),
        pytest.param([("IMPERSONATE-USER", "bob")], User("bob"), id="headers ignore case"),
        pytest.param([("Impersonate-User", "bob"), ("Impersonate-User", "eve")], User("bob"), id="the first name"),
        pytest.param([("Impersonate-User", "")], None, id="an empty name"),
        pytest.param(
            [
                ("Impersonate-User", "bob"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Group", "a"),
                ("Impersonate-Group", "b"),
                ("Impersonate-Extra-Acme.io%2fFoo", "1"),
                ("Impersonate-Extra-acme.io%2ffoo", "2"),
                ("Impersonate-Extra-50%", "3"),
            ],
            User("bob", "7", ("a", "b"), {"acme.io/foo": ("1", "2"), "50%": ("3",)}),
            id="all headers",
        ),
    ],
)
def test_requested_user_reads_the_impersonation_headers(headers: list[tuple[str, str]], expected: User | None) -> None:
    assert requested_user(headers) == expected


@pytest.mark.parametrize(
    ("headers", "printed"),
    [
        (
            [("Impersonate-Group", "g")],
            '&user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)}',
        ),
        (
            [("Impersonate-Uid", "3"), ("Impersonate-Extra-b", "v1"), ("Impersonate-Extra-b", "v2")],
            '&user.DefaultInfo{Name:"", UID:"3", Groups:[]string(nil), '
            'Extra:map[string][]string{"b":[]string{"v1", "v2"}}}',
        ),
    ],
)
def test_groups_without_a_user_are_rejected(headers: list[tuple[str, str]], printed: str) -> None:
    with pytest.raises(BadRequestError) as rejected:
        requested_user(headers)
    assert rejected.value.message == f"requested {printed} without impersonating a user name"


@pytest.mark.parametrize(
    ("requested", "groups"),
    [
        pytest.param(User("bob"), ("system:authenticated",), id="a user"),
        pytest.param(User("bob", groups=("g",)), ("g", "system:authenticated"), id="a user in a group"),
        pytest.param(
            User("bob", groups=("system:unauthenticated",)),
            ("system:unauthenticated",),
            id="a user in system:unauthenticated",
        ),
        pytest.param(User("system:anonymous"), ("system:unauthenticated",), id="the anonymous user"),
        pytest.param(User("system:node:n1"), ("system:nodes", "system:authenticated"), id="a node"),
        pytest.param(
            User(ROBOT),
            ("system:serviceaccounts", "system:serviceaccounts:web", "system:authenticated"),
            id="a service account",
        ),
        pytest.param(User(ROBOT, groups=("g",)), ("g", "system:authenticated"), id="a service account in a group"),
        pytest.param(
            User("bob", groups=("system:masters",)), ("system:masters", "system:authenticated"), id="system:masters"
        ),
    ],
)
def test_system_masters_may_impersonate_any_user(requested: User, groups: tuple[str, ...]) -> None:
    actual = _impersonation().impersonated(requested, request_attributes(ROOT, "list pods in web"))
    assert (actual.name, actual.groups) == (requested.name, groups)


def test_impersonation_takes_over_uid_and_extra() -> None:
    requested = User("bob", "7", (), {"scope": ("a",)})
    actual = _impersonation().impersonated(requested, request_attributes(ROOT, "list pods in web"))
    assert (actual.uid, actual.extra) == ("7", {"scope": ("a",)})


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        pytest.param(
            User("bob"),
            'pods is forbidden: User "limited" cannot impersonate-on:user-info:list resource "pods" in API group "" '
            'in the namespace "web"',
            id="a user",
        ),
        pytest.param(
            User(ROBOT),
            'pods is forbidden: User "limited" cannot impersonate-on:serviceaccount:list resource "pods" '
            'in API group "" in the namespace "web"',
            id="a service account",
        ),
        pytest.param(
            User("system:node:n1"),
            'pods is forbidden: User "limited" cannot impersonate-on:arbitrary-node:list resource "pods" '
            'in API group "" in the namespace "web"',
            id="a node",
        ),
        pytest.param(
            User("system:node:n1", groups=("g",)),
            'users "system:node:n1" is forbidden: User "limited" cannot impersonate resource "users" in API group "" '
            "at the cluster scope",
            id="a node in a group",
        ),
    ],
)
def test_impersonation_fails_with_the_error_of_the_first_mode(requested: User, message: str) -> None:
    with pytest.raises(ForbiddenError) as rejected:
        _impersonation().impersonated(requested, request_attributes("limited", "list pods in web"))
    assert rejected.value.message == message


LEGACY = may("impersonate", "users groups serviceaccounts")
LEGACY_REST = may("impersonate", "uids userextras/scope", AUTHENTICATION)


@pytest.mark.parametrize(
    ("rules", "requested"),
    [
        pytest.param([LEGACY], User("bob", groups=("g",)), id="legacy: a user in a group"),
        pytest.param([LEGACY], User(ROBOT), id="legacy: a service account"),
        pytest.param([LEGACY], User("system:node:n1"), id="legacy: a node is a user"),
        pytest.param([LEGACY, LEGACY_REST], User("bob", "7", (), {"scope": ("a",)}), id="legacy: uid and extra"),
        pytest.param(
            [
                may("impersonate-on:user-info:list", "pods"),
                may("impersonate:user-info", "users groups", AUTHENTICATION),
            ],
            User("bob", groups=("g",)),
            id="user-info",
        ),
        pytest.param(
            [
                may("impersonate-on:user-info:list", "pods"),
                may("impersonate:user-info", "users", AUTHENTICATION),
                may("impersonate:user-info", "groups", AUTHENTICATION, names="*"),
            ],
            User("bob", groups=("a", "b", "c", "d")),
            id="user-info: many groups",
        ),
        pytest.param(
            [
                may("impersonate-on:user-info:list", "pods"),
                may("impersonate:user-info", "users userextras/*", AUTHENTICATION),
            ],
            User("bob", extra={"acme.io/a": ("1", "2", "3", "4")}),
            id="user-info: many extra values",
        ),
        pytest.param(
            [
                may("impersonate-on:serviceaccount:list", "pods"),
                may("impersonate:serviceaccount", "serviceaccounts", AUTHENTICATION, names="robot"),
            ],
            User(ROBOT),
            id="serviceaccount",
        ),
        pytest.param(
            [
                may("impersonate-on:arbitrary-node:list", "pods"),
                may("impersonate:arbitrary-node", "nodes", AUTHENTICATION, names="n1"),
            ],
            User("system:node:n1"),
            id="arbitrary-node",
        ),
    ],
)
def test_an_allowed_user_impersonates_another_user(rules: list[Document], requested: User) -> None:
    actual = _impersonation(*rules).impersonated(requested, request_attributes("limited", "list pods in web"))
    assert actual.name == requested.name


ON_PODS = may("impersonate-on:user-info:list", "pods")
USERS = may("impersonate:user-info", "users", AUTHENTICATION)


@pytest.mark.parametrize(
    ("rules", "requested", "message"),
    [
        pytest.param(
            [ON_PODS],
            User("bob"),
            'users.authentication.k8s.io "bob" is forbidden: User "limited" cannot impersonate:user-info resource '
            '"users" in API group "authentication.k8s.io" at the cluster scope',
            id="the request but not the user",
        ),
        pytest.param(
            [ON_PODS, USERS],
            User("bob", groups=("g",)),
            'groups.authentication.k8s.io "g" is forbidden: User "limited" cannot impersonate:user-info resource '
            '"groups" in API group "authentication.k8s.io" at the cluster scope',
            id="the user but not the group",
        ),
        pytest.param(
            [ON_PODS, USERS],
            User("bob", groups=("system:masters",)),
            'groups.authentication.k8s.io "system:masters" is forbidden: User "limited" cannot '
            'impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: '
            "impersonating the system:masters group is not allowed",
            id="system:masters",
        ),
        pytest.param(
            [ON_PODS, USERS],
            User("bob", groups=("",)),
            'groups.authentication.k8s.io is forbidden: User "limited" cannot impersonate:user-info resource '
            '"groups" in API group "authentication.k8s.io" at the cluster scope: '
            "impersonating the empty string group is not allowed",
            id="a group without a name",
        ),
        pytest.param(
            [ON_PODS, USERS],
            User("bob", "7"),
            'uids.authentication.k8s.io "7" is forbidden: User "limited" cannot impersonate:user-info resource '
            '"uids" in API group "authentication.k8s.io" at the cluster scope',
            id="the user but not the uid",
        ),
        pytest.param(
            [ON_PODS, USERS],
            User("bob", extra={"acme.io/a": ("1",)}),
            'userextras.authentication.k8s.io "1" is forbidden: User "limited" cannot impersonate:user-info resource '
            '"userextras/acme.io/a" in API group "authentication.k8s.io" at the cluster scope',
            id="the user but not the extra",
        ),
        pytest.param(
            [ON_PODS, USERS],
            User("bob", extra={"scope": ("1",)}),
            'userextras.authentication.k8s.io is forbidden: User "limited" cannot impersonate:user-info resource '
            '"userextras" in API group "authentication.k8s.io" at the cluster scope: '
            'impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scope": '
            'must be a domain-prefixed path (such as "acme.io/foo")',
            id="extra with an invalid key",
        ),
        pytest.param(
            [ON_PODS, USERS],
            User("bob", extra={"acme.io/a": ("",)}),
            'userextras.authentication.k8s.io is forbidden: User "limited" cannot impersonate:user-info resource '
            '"userextras" in API group "authentication.k8s.io" at the cluster scope: '
            "impersonating the empty string value in extra is not allowed",
            id="extra without a value",
        ),
    ],
)
def test_every_impersonated_attribute_must_be_allowed(rules: list[Document], requested: User, message: str) -> None:
    with pytest.raises(ForbiddenError) as rejected:
        _impersonation(*rules).impersonated(requested, request_attributes("limited", "list pods in web"))
    assert rejected.value.message == message


def test_a_service_account_may_impersonate_only_its_own_node() -> None:
    impersonation = _impersonation(
        may("impersonate-on:associated-node:list", "pods"),
        may("impersonate:associated-node", "nodes", AUTHENTICATION, names="*"),
        who=ROBOT,
    )
    robot = User(ROBOT, extra={NODE_NAME_KEY: ("n1",)})
    actual = impersonation.impersonated(User("system:node:n1"), request_attributes(robot, "list pods"))
    assert actual == User("system:node:n1", groups=("system:nodes", "system:authenticated"))
    with pytest.raises(ForbiddenError, match="cannot impersonate-on:arbitrary-node:list"):
        impersonation.impersonated(User("system:node:n2"), request_attributes(robot, "list pods"))
    with pytest.raises(ForbiddenError):
        impersonation.impersonated(User("system:node:n1"), request_attributes(ROBOT, "list pods"))


def test_impersonation_fails_with_the_error_of_the_mode_that_succeeded_last() -> None:
    impersonation = _impersonation(may("impersonate", "users", names="bob"))
    impersonation.impersonated(User("bob"), request_attributes("limited", "list pods in web"))
    with pytest.raises(ForbiddenError, match=r'^users "eve" is forbidden: User "limited" cannot impersonate resource'):
        impersonation.impersonated(User("eve"), request_attributes("limited", "list pods in web"))
