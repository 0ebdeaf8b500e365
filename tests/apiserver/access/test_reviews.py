"""Reviews: SubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SelfSubjectReview, TokenReview.

Field selectors in reviews are parsed, or ignored with an evaluation error.
"""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.access.authentication import Authenticator, FixedTokens
from mooring.apiserver.access.authorization import AuthorizerChain
from mooring.apiserver.access.reviews import (
    FieldSelectorAttributes,
    FieldSelectorError,
    check_local_review,
    check_review,
    local_subject_access_review,
    parse_field_equalities,
    selected,
    self_subject_access_review,
    self_subject_review,
    self_subject_rules_review,
    subject_access_review,
    token_review,
)
from mooring.client.errors import BadRequestError, InvalidError
from mooring.kit.clock import VirtualClock
from mooring.serving.users import User
from tests.apiserver.access.builders import ISSUER, Cluster, authorizer, binding, may, role, user

POD: Any = {"verb": "get", "resource": "pods"}
PATH: Any = {"path": "/x", "verb": "get"}
HEAD = '.authorization.k8s.io "" is invalid: '
SELECTOR = "spec.resourceAttributes.labelSelector"
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    "spec",
    [
        {"user": "a", "resourceAttributes": POD},
        {"groups": ["a"], "nonResourceAttributes": PATH},
        {"user": "a", "resourceAttributes": {**POD, "fieldSelector": {"rawSelector": "a=b"}}},
        {
            "user": "a",
            "resourceAttributes": {**POD, "labelSelector": {"requirements": [{"key": "a", "operator": "?"}]}},
        },
    ],
)
def test_a_valid_review_is_accepted(spec: Document) -> None:
    check_review({"metadata": {"managedFields": [{}], "name": ""}, "spec": spec}, is_about_others=True)


@pytest.mark.parametrize(
    ("review", "errors"),
    [
        pytest.param(
            {"spec": {}},
            "[spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or "
            'resourceAttributes must be specified, spec.user: Invalid value: "": at least one of user or group must '
            "be specified]",
            id="an empty spec",
        ),
        pytest.param(
            {
                "metadata": {"name": "x"},
                "spec": {"user": "a", "resourceAttributes": POD, "nonResourceAttributes": PATH},
            },
            '[spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: cannot be specified in '
            'combination with resourceAttributes, metadata: Invalid value: {"name":"x"}: must be empty]',
            id="both, and a name",
        ),
        pytest.param(
            {
                "spec": {
                    "user": "a",
                    "resourceAttributes": {
                        "fieldSelector": {"requirements": [{"operator": "In"}]},
                        "labelSelector": {},
                    },
                }
            },
            "[spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified, "
            "spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: must be specified when "
            "`operator` is 'In' or 'NotIn', "
            f"{SELECTOR}.requirements: Required value: when {SELECTOR} is specified, requirements or rawSelector is "
            "required]",
            id="selectors without content",
        ),
        pytest.param(
            {
                "spec": {
                    "user": "a",
                    "resourceAttributes": {
                        "labelSelector": {
                            "rawSelector": "a",
                            "requirements": [{"key": "-b", "operator": "Exists", "values": ["x"]}],
                        }
                    },
                }
            },
            f'[{SELECTOR}.rawSelector: Invalid value: "a": may not specified at the same time as requirements, '
            f"{SELECTOR}.requirements[0].values: Forbidden: may not be specified when `operator` is 'Exists' or "
            f"'DoesNotExist', {SELECTOR}.requirements[0].key: Invalid value: \"-b\": {NAME_RULE}]",
            id="selectors with too much",
        ),
    ],
)
def test_errors_of_an_invalid_review(review: Document, errors: str) -> None:
    with pytest.raises(InvalidError) as rejected:
        check_review(review, is_about_others=True)
    assert rejected.value.message == HEAD + errors
    assert rejected.value.details == {"group": "authorization.k8s.io"}
    assert len(rejected.value.causes) == errors.count("value: ") + errors.count("Forbidden: ")


def test_a_self_subject_access_review_needs_no_user() -> None:
    check_review({"spec": {"resourceAttributes": POD}}, is_about_others=False)
    with pytest.raises(InvalidError) as rejected:
        check_review({"spec": {}}, is_about_others=False)
    assert [cause.field for cause in rejected.value.causes] == ["spec.resourceAttributes"]


@pytest.mark.parametrize(
    ("metadata", "spec", "errors"),
    [
        pytest.param(
            {"namespace": "web"},
            {"user": "a", "resourceAttributes": POD},
            'spec.resourceAttributes.namespace: Invalid value: "": must match metadata.namespace',
            id="no namespace in the spec",
        ),
        pytest.param(
            {"namespace": "web"},
            {"user": "a", "nonResourceAttributes": PATH},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: disallowed on this kind of request',
            id="a path is in no namespace",
        ),
        pytest.param(
            {"namespace": "web", "labels": {"a": "b"}, "name": "x"},
            {"user": "a", "resourceAttributes": {**POD, "namespace": "web"}},
            'metadata: Invalid value: {"name":"x","namespace":"web","labels":{"a":"b"}}: '
            "must be empty except for namespace",
            id="a name",
        ),
    ],
)
def test_errors_of_a_local_review(metadata: Document, spec: Document, errors: str) -> None:
    with pytest.raises(InvalidError) as rejected:
        check_local_review({"metadata": metadata, "spec": spec})
    assert rejected.value.message == HEAD + errors


def test_a_valid_local_review_is_accepted() -> None:
    spec = {"user": "a", "resourceAttributes": {**POD, "namespace": "web"}}
    check_local_review({"metadata": {"namespace": "web"}, "spec": spec})


ROLES = AuthorizerChain(
    authorizer(
        role([may("get list", "pods"), may("get", "secrets", names="s")], "reader", "web"),
        role([may("get", paths="/healthz")], "health"),
        binding("User anna", "Group devs", to="Role reader", namespace="web"),
        binding("Group system:authenticated", to="ClusterRole health", name="h"),
        binding("User eve", to="Role missing", name="m", namespace="web"),
    )
)
LIST: Any = {"verb": "list", "resource": "pods", "namespace": "web"}
BY_ANNA = 'RBAC: allowed by RoleBinding "b/web" of Role "reader" to User "anna"'
BY_DEVS = 'RBAC: allowed by RoleBinding "b/web" of Role "reader" to Group "devs"'
BY_HEALTH = 'RBAC: allowed by ClusterRoleBinding "h" of ClusterRole "health" to Group "system:authenticated"'


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param({"user": "anna", "resourceAttributes": LIST}, {"allowed": True, "reason": BY_ANNA}, id="a user"),
        pytest.param(
            {"groups": ["devs"], "resourceAttributes": LIST}, {"allowed": True, "reason": BY_DEVS}, id="a group"
        ),
        pytest.param(
            {"groups": ["system:authenticated"], "nonResourceAttributes": {"path": "/healthz", "verb": "get"}},
            {"allowed": True, "reason": BY_HEALTH},
            id="a path",
        ),
        pytest.param({"user": "bob", "resourceAttributes": LIST}, {"allowed": False}, id="a user without a binding"),
        pytest.param(
            {"user": "eve", "resourceAttributes": LIST},
            {"allowed": False, "reason": 'RBAC: role.rbac.authorization.k8s.io "missing" not found'},
            id="a user whose role is missing",
        ),
        pytest.param(
            {"user": "x", "groups": ["system:masters"], "resourceAttributes": LIST},
            {"allowed": True},
            id="system:masters",
        ),
        pytest.param(
            {"user": "bob", "resourceAttributes": {**LIST, "fieldSelector": {"rawSelector": "a"}}},
            {
                "allowed": False,
                "evaluationError": "spec.resourceAttributes.fieldSelector ignored due to parse error",
            },
            id="an invalid selector",
        ),
        pytest.param(
            {"user": "anna", "resourceAttributes": {"verb": "get", "resource": "pods", "subresource": "log"}},
            {"allowed": False},
            id="a subresource",
        ),
        pytest.param(
            {"user": "anna", "resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "web"}},
            {"allowed": False},
            id="a secret without a name",
        ),
    ],
)
def test_subject_access_review(spec: Document, status: Document) -> None:
    review = {"kind": "SubjectAccessReview", "metadata": {}, "spec": spec}
    assert subject_access_review(review, ROLES) == {**review, "status": status}


def test_local_subject_access_review() -> None:
    review: Document = {"metadata": {"namespace": "web"}, "spec": {"user": "anna", "resourceAttributes": LIST}}
    assert local_subject_access_review(review, "web", ROLES)["status"] == {"allowed": True, "reason": BY_ANNA}
    with pytest.raises(BadRequestError, match="must match namespace: shop"):
        local_subject_access_review(review, "shop", ROLES)
    with pytest.raises(BadRequestError, match="namespace is required on this type"):
        local_subject_access_review(review, "", ROLES)
    with pytest.raises(InvalidError):
        local_subject_access_review({"metadata": {"namespace": "shop"}, "spec": review["spec"]}, "shop", ROLES)


def test_self_subject_access_review() -> None:
    review: Document = {"spec": {"resourceAttributes": LIST}}
    assert self_subject_access_review(review, user("anna"), ROLES)["status"]["allowed"] is True
    assert self_subject_access_review(review, user("bob"), ROLES)["status"] == {"allowed": False}
    with pytest.raises(InvalidError):
        self_subject_access_review({"spec": {}}, user("anna"), ROLES)


def test_self_subject_rules_review() -> None:
    review = {"metadata": {"name": "x"}, "spec": {"namespace": "web"}}
    assert self_subject_rules_review(review, user("anna", "system:authenticated"), ROLES) == {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {},
        "status": {
            "resourceRules": [
                {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]},
                {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"]},
            ],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
            "incomplete": False,
        },
    }
    assert self_subject_rules_review(review, user("eve"), ROLES)["status"] == {
        "resourceRules": [],
        "nonResourceRules": [],
        "incomplete": False,
        "evaluationError": 'role.rbac.authorization.k8s.io "missing" not found',
    }
    with pytest.raises(BadRequestError, match=r"^no namespace on request$"):
        self_subject_rules_review({"spec": {}}, user("anna"), ROLES)


@pytest.mark.parametrize(
    ("who", "info"),
    [
        (User("anna"), {"username": "anna"}),
        (
            User("anna", "1", ("devs",), {"k": ("v",)}),
            {"username": "anna", "uid": "1", "groups": ["devs"], "extra": {"k": ["v"]}},
        ),
    ],
)
def test_self_subject_review(who: User, info: Document) -> None:
    assert self_subject_review(who, VirtualClock()) == {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"userInfo": info},
    }


ANNA = {"username": "anna", "uid": "1", "groups": ["devs", "system:authenticated"]}


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param(
            {"token": "secret"},
            {"authenticated": True, "user": ANNA, "audiences": [ISSUER, "https://kubernetes.default.svc"]},
            id="a valid token",
        ),
        pytest.param(
            {"token": "secret", "audiences": ["x", ISSUER]},
            {"authenticated": True, "user": ANNA, "audiences": [ISSUER]},
            id="a valid token with our audience",
        ),
        pytest.param({"token": "nope"}, {"user": {}, "error": "invalid bearer token"}, id="an unknown token"),
        pytest.param(
            {"token": "secret", "audiences": ["x"]},
            {"user": {}, "error": "invalid bearer token"},
            id="another audience",
        ),
    ],
)
def test_token_review(spec: Document, status: Document) -> None:
    cluster = Cluster()
    tokens = FixedTokens({"secret": User("anna", "1", ("devs",))})
    authenticator = Authenticator(cluster.clock, tokens, cluster.tokens, is_anonymous_allowed=True)
    review = {"kind": "TokenReview", "metadata": {}, "spec": spec}
    assert token_review(review, authenticator) == {**review, "status": status}
    with pytest.raises(BadRequestError, match=r"^token is required for TokenReview in authentication$"):
        token_review({"spec": {}}, authenticator)


@pytest.mark.parametrize(
    ("text", "equalities"),
    [
        ("", ()),
        ("spec.nodeName=n1", (("spec.nodeName", "n1"),)),
        ("spec.nodeName==n1", (("spec.nodeName", "n1"),)),
        ("spec.nodeName!=n1", ()),
        ("a=1,b!=2,c=3", (("a", "1"), ("c", "3"))),
        (r"a=x\,y\=z\\", (("a", r"x,y=z" "\\"),)),
        ("a=", (("a", ""),)),
        ("a=1,", (("a", "1"),)),
    ],
)
def test_parse_field_equalities(text: str, equalities: tuple[tuple[str, str], ...]) -> None:
    assert parse_field_equalities(text) == equalities


@pytest.mark.parametrize("text", ["a", "a=1,b", r"a=\x", "a=1=2", "a=\\"])
def test_parse_field_equalities_rejects_invalid_selectors(text: str) -> None:
    with pytest.raises(FieldSelectorError, match="invalid"):
        parse_field_equalities(text)


FIELD, LABEL = "spec.resourceAttributes.fieldSelector", "spec.resourceAttributes.labelSelector"
IN = {"key": "spec.nodeName", "operator": "In", "values": ["n1"]}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param({}, FieldSelectorAttributes(), id="none"),
        pytest.param(
            {"fieldSelector": {"rawSelector": "spec.nodeName=n1"}},
            FieldSelectorAttributes((("spec.nodeName", "n1"),)),
            id="a text",
        ),
        pytest.param(
            {"fieldSelector": {"rawSelector": "a"}},
            FieldSelectorAttributes((), f"{FIELD} ignored due to parse error"),
            id="an invalid text",
        ),
        pytest.param(
            {"fieldSelector": {"requirements": [IN]}},
            FieldSelectorAttributes((("spec.nodeName", "n1"),)),
            id="a requirement",
        ),
        pytest.param(
            {"fieldSelector": {"requirements": [{**IN, "operator": "NotIn"}]}},
            FieldSelectorAttributes(),
            id="an inequality",
        ),
        pytest.param(
            {"fieldSelector": {"requirements": [IN, {"key": "a", "operator": "Exists"}]}},
            FieldSelectorAttributes((("spec.nodeName", "n1"),), f"{FIELD} partially ignored due to parse error"),
            id="one supported of two requirements",
        ),
        pytest.param(
            {"fieldSelector": {"requirements": [{**IN, "values": ["n1", "n2"]}]}},
            FieldSelectorAttributes((), f"{FIELD} ignored due to parse error"),
            id="two values",
        ),
        pytest.param({"labelSelector": {"rawSelector": "a=b,c"}}, FieldSelectorAttributes(), id="labels in a text"),
        pytest.param(
            {"labelSelector": {"rawSelector": "a=="}, "fieldSelector": {"rawSelector": "a"}},
            FieldSelectorAttributes((), f"{FIELD} ignored due to parse error"),
            id="an empty value is a value",
        ),
        pytest.param(
            {"labelSelector": {"rawSelector": "(("}, "fieldSelector": {"rawSelector": "a"}},
            FieldSelectorAttributes((), f"{FIELD} ignored due to parse error; {LABEL} ignored due to parse error"),
            id="two invalid texts",
        ),
        pytest.param(
            {"labelSelector": {"requirements": [{"key": "a", "operator": "Foo"}, {"key": "b", "operator": "Exists"}]}},
            FieldSelectorAttributes((), f"{LABEL} partially ignored due to parse error"),
            id="an unknown operator",
        ),
        pytest.param(
            {"labelSelector": {"requirements": [{"key": "b", "operator": "Exists"}]}},
            FieldSelectorAttributes(),
            id="a label",
        ),
    ],
)
def test_selected_reads_the_selectors_of_a_review(attributes: Document, expected: FieldSelectorAttributes) -> None:
    assert selected(attributes) == expected
