"""Authorizers are called in order; system:masters is always allowed; 403 messages are those of Kubernetes.

A rule allows requests, covers other rules, and is printed as in error messages.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mooring.api.document import Document
from mooring.apiserver.access.authorization import (
    Attributes,
    AuthorizerChain,
    Rule,
    SubjectRules,
    compacted,
    document_of,
    forbidden,
    forbidden_object,
    path_attributes,
    require,
    rules_of,
    uncovered,
)
from mooring.client.errors import ForbiddenError
from mooring.serving.authorization import AuthorizationDecision
from mooring.serving.users import User
from tests.apiserver.access.builders import may, request_attributes, user


def test_combined_resource_includes_the_subresource() -> None:
    assert Attributes(User("a"), "get", resource="pods", subresource="log").combined_resource == "pods/log"
    assert Attributes(User("a"), "get", resource="pods").combined_resource == "pods"


def test_path_attributes_are_not_a_resource_request() -> None:
    asked = path_attributes(User("a"), "get", "/healthz")
    assert (asked.path, asked.is_resource_request, asked.resource) == ("/healthz", False, "")


NOTHING_HELD = SubjectRules(())


@dataclass
class _FixedAuthorizer:
    decision: AuthorizationDecision
    held: SubjectRules = NOTHING_HELD

    def authorize(self, attributes: Attributes) -> AuthorizationDecision:
        return self.decision

    def rules_for(self, user: User, namespace: str) -> SubjectRules:
        return self.held


ALLOWED, NO_OPINION = AuthorizationDecision(True, "because"), AuthorizationDecision(False)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([ALLOWED], ALLOWED, id="one allows"),
        pytest.param([NO_OPINION, ALLOWED], ALLOWED, id="the second allows"),
        pytest.param([ALLOWED, NO_OPINION], ALLOWED, id="the first allows"),
        pytest.param([NO_OPINION, NO_OPINION], NO_OPINION, id="none allows"),
        pytest.param([], NO_OPINION, id="no authorizers"),
        pytest.param(
            [AuthorizationDecision(False, "a"), NO_OPINION, AuthorizationDecision(False, "b")],
            AuthorizationDecision(False, "a\nb"),
            id="reasons are joined",
        ),
        pytest.param(
            [AuthorizationDecision(False, "a"), ALLOWED],
            ALLOWED,
            id="an authorizer that allows discards earlier reasons",
        ),
    ],
)
def test_the_first_authorizer_that_allows_decides(
    answers: list[AuthorizationDecision], expected: AuthorizationDecision
) -> None:
    chain = AuthorizerChain(*(_FixedAuthorizer(answer) for answer in answers))
    assert chain.authorize(request_attributes("anna", "get pods p in web")) == expected


def test_system_masters_is_allowed_everything_without_a_reason() -> None:
    assert AuthorizerChain(_FixedAuthorizer(NO_OPINION)).authorize(
        request_attributes(user("a", "system:masters"), "get /x")
    ) == AuthorizationDecision(True, "")


def test_rules_for_combines_the_rules_of_all_authorizers() -> None:
    get, put = Rule(("get",)), Rule(("put",))
    chain = AuthorizerChain(
        _FixedAuthorizer(NO_OPINION, SubjectRules((get,), ("fault",), is_incomplete=True)),
        _FixedAuthorizer(NO_OPINION, SubjectRules((put,))),
    )
    assert chain.rules_for(user("a"), "web") == SubjectRules((get, put), ("fault",), is_incomplete=True)


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
            id="a list in all namespaces",
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
def test_messages_of_forbidden_requests(request_text: str, message: str, details: dict[str, str]) -> None:
    error = forbidden(request_attributes("limited", request_text), "")
    assert (error.message, error.details, error.code, error.reason) == (message, details, 403, "Forbidden")


def test_forbidden_appends_the_reason_to_the_message() -> None:
    error = forbidden(request_attributes("a", "get /x"), 'RBAC: role "<x>" not found')
    assert error.message == 'forbidden: User "a" cannot get path "/x": RBAC: role "<x>" not found'


def test_forbidden_object_names_the_object() -> None:
    error = forbidden_object("apps", "deployments", "d", "no")
    assert error.message == 'deployments.apps "d" is forbidden: no'
    assert error.details == {"name": "d", "group": "apps", "kind": "deployments"}


def test_require_raises_with_the_reason() -> None:
    require(_FixedAuthorizer(ALLOWED), request_attributes("a", "get /x"))
    with pytest.raises(ForbiddenError, match=r'cannot get path "/x": why$'):
        require(_FixedAuthorizer(AuthorizationDecision(False, "why")), request_attributes("a", "get /x"))


@pytest.mark.parametrize(
    ("rule", "request_text", "is_allowed"),
    [
        pytest.param(may("get list", "pods"), "list pods in web", True, id="same verb and resource"),
        pytest.param(may("get list", "pods"), "watch pods in web", False, id="another verb"),
        pytest.param(may("get", "pods"), "get pods.apps p", False, id="another group"),
        pytest.param(may("get", "pods"), "get pods/log p", False, id="a subresource is another resource"),
        pytest.param(may("get", "pods/log"), "get pods/log p", True, id="that subresource"),
        pytest.param(may("get", "pods/log"), "get pods p", False, id="a subresource without its resource"),
        pytest.param(may("get", "*"), "get pods/log p", True, id="a star includes subresources"),
        pytest.param(
            may("update", "*/scale", "apps"),
            "update deployments/scale.apps d",
            True,
            id="one subresource of all resources",
        ),
        pytest.param(may("get", "*/log"), "get pods/exec p", False, id="a star before the slash, another subresource"),
        pytest.param(may("get", "*/log"), "get pods p", False, id="a star before the slash, no subresource"),
        pytest.param(may("get", "pods/*"), "get pods/log p", False, id="a star after the slash is not a wildcard"),
        pytest.param(may("*", "pods"), "evict pods p", True, id="every verb"),
        pytest.param(may("get", "pods", "*"), "get pods.apps p", True, id="every group"),
        pytest.param(may("get", "pods", names="a b"), "get pods a", True, id="an object of that name"),
        pytest.param(may("get", "pods", names="a b"), "get pods c", False, id="an object of another name"),
        pytest.param(may("list", "pods", names="a"), "list pods", False, id="a list has no name"),
        pytest.param(may("get", paths="/healthz"), "get /healthz", True, id="a path"),
        pytest.param(may("get", paths="/healthz"), "get /healthz/ping", False, id="a path below an exact path"),
        pytest.param(may("get", paths="/healthz/*"), "get /healthz/ping", True, id="a path below a wildcard"),
        pytest.param(may("get", paths="/healthz/*"), "get /healthz", False, id="the parent of a wildcard"),
        pytest.param(may("get", paths="/api*"), "get /apis/apps", True, id="a path prefix"),
        pytest.param(may("get", paths="*"), "get /metrics", True, id="every path"),
        pytest.param(may("get", "*"), "get /metrics", False, id="all resources do not include paths"),
        pytest.param(may("get", paths="*"), "get pods p", False, id="all paths do not include resources"),
    ],
)
def test_a_rule_allows_matching_requests(rule: Document, request_text: str, is_allowed: bool) -> None:
    assert rules_of({"rules": [rule]})[0].allows(request_attributes("anna", request_text)) is is_allowed


@pytest.mark.parametrize(
    ("held", "requested", "missing"),
    [
        pytest.param([may("get list", "pods")], [may("get", "pods")], [], id="a subset"),
        pytest.param(
            [may("get", "pods"), may("list", "pods")], [may("get list", "pods")], [], id="covered by two rules together"
        ),
        pytest.param(
            [may("get", "pods")],
            [may("get list", "pods")],
            ['{APIGroups:[""], Resources:["pods"], Verbs:["list"]}'],
            id="a verb too many",
        ),
        pytest.param([may("*", "*", "*")], [may("get", "a b", "x y", "n")], [], id="all resources"),
        pytest.param(
            [may("get", "pods", names="a")],
            [may("get", "pods")],
            ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
            id="one name does not cover all objects",
        ),
        pytest.param([may("get", "pods")], [may("get", "pods", names="a")], [], id="all objects cover one name"),
        pytest.param(
            [may("get", "pods", names="a")],
            [may("get", "pods", names="a b")],
            ['{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}'],
            id="one name too many",
        ),
        pytest.param([may("get", "*/log")], [may("get", "pods/log")], [], id="one subresource of all resources"),
        pytest.param(
            [may("get", "*/log")],
            [may("get", "pods")],
            ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
            id="a subresource does not cover its resource",
        ),
        pytest.param([may("get", paths="/api/*")], [may("get", paths="/api/v1")], [], id="a path below"),
        pytest.param([may("get", paths="/api/*")], [may("get", paths="/api/*")], [], id="the same paths"),
        pytest.param(
            [may("get", paths="/api/v1")],
            [may("get", paths="/api/*")],
            ['{NonResourceURLs:["/api/*"], Verbs:["get"]}'],
            id="one path does not cover all paths",
        ),
        pytest.param([], [may("get")], [], id="a rule without resources"),
    ],
)
def test_uncovered_returns_the_missing_rules(
    held: list[Document], requested: list[Document], missing: list[str]
) -> None:
    found = uncovered(rules_of({"rules": held}), rules_of({"rules": requested}))
    assert [str(rule) for rule in found] == missing


def test_compacted_merges_rules_of_the_same_resource() -> None:
    requested = rules_of({"rules": [may("get list", "pods secrets"), may("get post", paths="/a")]})
    assert sorted(str(rule) for rule in compacted(uncovered([], requested))) == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}',
        '{NonResourceURLs:["/a"], Verbs:["get"]}',
        '{NonResourceURLs:["/a"], Verbs:["post"]}',
    ]


def test_document_of_is_the_inverse_of_rules_of() -> None:
    rules = [may("get list", "pods secrets", "core apps", "a"), may("get", paths="/a /b")]
    assert [document_of(rule) for rule in rules_of({"rules": rules})] == rules


@pytest.mark.parametrize("document", [{}, {"rules": None}, {"rules": []}], ids=["absent", "null", "empty"])
def test_a_role_without_rules_has_none(document: Document) -> None:
    assert rules_of(document) == ()


def test_rules_are_compared_by_value() -> None:
    assert Rule(("get",), ("",), ("pods",)) == Rule(("get",), ("",), ("pods",))
    assert len({Rule(("get",), ("",), ("pods",)), Rule(("get",), ("",), ("pods",))}) == 1


def test_a_rule_with_too_many_combinations_is_compared_as_a_whole() -> None:
    many = " ".join(f"n{number}" for number in range(1_000))
    requested = rules_of({"rules": [may(many, many, many)]})
    held = rules_of({"rules": [may("get", "pods")]})
    assert requested[0].parts_count() == 1_000_000_000
    assert uncovered(held, requested) == list(requested)
    assert uncovered(rules_of({"rules": [may("*", "*", "*")]}), requested) == []


def test_parts_count_equals_the_number_of_parts() -> None:
    for rule in rules_of({"rules": [may("get list", "pods secrets", "core apps", "a b"), may("get", paths="/a /b")]}):
        assert rule.parts_count() == len(list(rule.parts()))
