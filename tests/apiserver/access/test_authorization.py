"""Authorizers are asked in order; system:masters is always allowed; 403 messages are those of Kubernetes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mooring.apiserver.access.authorization import (
    AuthorizationDecision,
    AuthorizerChain,
    HeldRules,
    forbidden,
    forbidden_object,
    require,
)
from mooring.apiserver.access.rules import Attributes, Rule, path_attributes
from mooring.apiserver.access.users import User
from mooring.client.errors import ForbiddenError
from tests.apiserver.access.builders import asks, user


def test_a_subresource_is_named_with_its_resource() -> None:
    assert Attributes(User("a"), "get", resource="pods", subresource="log").combined_resource == "pods/log"
    assert Attributes(User("a"), "get", resource="pods").combined_resource == "pods"


def test_a_path_is_no_resource() -> None:
    asked = path_attributes(User("a"), "get", "/healthz")
    assert (asked.path, asked.is_resource_request, asked.resource) == ("/healthz", False, "")


NOTHING_HELD = HeldRules(())


@dataclass
class _Says:
    decision: AuthorizationDecision
    held: HeldRules = NOTHING_HELD

    def authorize(self, attributes: Attributes) -> AuthorizationDecision:
        return self.decision

    def rules_for(self, user: User, namespace: str) -> HeldRules:
        return self.held


YES, NO = AuthorizationDecision(True, "because"), AuthorizationDecision(False)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([YES], YES, id="yes"),
        pytest.param([NO, YES], YES, id="the second says yes"),
        pytest.param([YES, NO], YES, id="the first says yes"),
        pytest.param([NO, NO], NO, id="nobody says yes"),
        pytest.param([], NO, id="nobody is asked"),
        pytest.param(
            [AuthorizationDecision(False, "a"), NO, AuthorizationDecision(False, "b")],
            AuthorizationDecision(False, "a\nb"),
            id="reasons are put together",
        ),
        pytest.param([AuthorizationDecision(False, "a"), YES], YES, id="a yes forgets the reasons before it"),
    ],
)
def test_the_first_yes_counts(answers: list[AuthorizationDecision], expected: AuthorizationDecision) -> None:
    chain = AuthorizerChain(*(_Says(answer) for answer in answers))
    assert chain.authorize(asks("anna", "get pods p in web")) == expected


def test_masters_may_do_everything_for_no_reason() -> None:
    assert AuthorizerChain(_Says(NO)).authorize(asks(user("a", "system:masters"), "get /x")) == AuthorizationDecision(
        True, ""
    )


def test_rules_of_all_authorizers_are_put_together() -> None:
    get, put = Rule(("get",)), Rule(("put",))
    chain = AuthorizerChain(_Says(NO, HeldRules((get,), ("fault",), is_incomplete=True)), _Says(NO, HeldRules((put,))))
    assert chain.rules_for(user("a"), "web") == HeldRules((get, put), ("fault",), is_incomplete=True)


@pytest.mark.parametrize(
    ("request_text", "message", "details"),
    [
        pytest.param(
            "list pods in web",
            'pods is forbidden: User "limited" cannot list resource "pods" in API group "" in the namespace "web"',
            {"kind": "pods"},
            id="a list in a namespace",
        ),
        pytest.param(
            "list pods",
            'pods is forbidden: User "limited" cannot list resource "pods" in API group "" at the cluster scope',
            {"kind": "pods"},
            id="a list everywhere",
        ),
        pytest.param(
            "get nodes n",
            'nodes "n" is forbidden: User "limited" cannot get resource "nodes" in API group "" at the cluster scope',
            {"name": "n", "kind": "nodes"},
            id="an object",
        ),
        pytest.param(
            "update pods/status x in web",
            'pods "x" is forbidden: User "limited" cannot update resource "pods/status" in API group "" '
            'in the namespace "web"',
            {"name": "x", "kind": "pods"},
            id="a subresource",
        ),
        pytest.param(
            "create deployments.apps in web",
            'deployments.apps is forbidden: User "limited" cannot create resource "deployments" in API group "apps" '
            'in the namespace "web"',
            {"group": "apps", "kind": "deployments"},
            id="a resource of a group",
        ),
        pytest.param("get /metrics", 'forbidden: User "limited" cannot get path "/metrics"', {}, id="a path"),
        pytest.param(
            "get /<b>&", 'forbidden: User "limited" cannot get path "/&lt;b&gt;&amp;"', {}, id="a path with markup"
        ),
    ],
)
def test_the_message_of_a_forbidden_request(request_text: str, message: str, details: dict[str, str]) -> None:
    error = forbidden(asks("limited", request_text), "")
    assert (error.message, error.details, error.code, error.reason) == (message, details, 403, "Forbidden")


def test_the_reason_is_appended_to_the_message() -> None:
    error = forbidden(asks("a", "get /x"), 'RBAC: role "<x>" not found')
    assert error.message == 'forbidden: User "a" cannot get path "/x": RBAC: role "<x>" not found'


def test_a_forbidden_request_about_an_object() -> None:
    error = forbidden_object("apps", "deployments", "d", "no")
    assert error.message == 'deployments.apps "d" is forbidden: no'
    assert error.details == {"name": "d", "group": "apps", "kind": "deployments"}


def test_require_raises_with_the_reason() -> None:
    require(_Says(YES), asks("a", "get /x"))
    with pytest.raises(ForbiddenError, match=r'cannot get path "/x": why$'):
        require(_Says(AuthorizationDecision(False, "why")), asks("a", "get /x"))
