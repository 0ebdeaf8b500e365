"""TokenRequests: issued tokens and error messages."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.access.service_account_tokens import unverified_part
from mooring.apiserver.access.token_requests import requested_token
from mooring.client.errors import BadRequestError, ConflictError, InvalidError, NotFoundError, StatusError
from mooring.kit.clock import format_rfc3339
from tests.apiserver.access.builders import ISSUER, Cluster


def _answer(cluster: Cluster, spec: Document, metadata: Document | None = None) -> Document:
    request: Document = {"kind": "TokenRequest", "metadata": metadata or {}, "spec": spec}
    return requested_token(request, cluster.account, cluster.tokens, cluster.lookup, cluster.clock)


def _claims(issued: Document) -> Document:
    claims = unverified_part(issued["status"]["token"], 1)
    assert claims is not None
    return claims


def test_a_token_request_returns_a_complete_document() -> None:
    cluster = Cluster()
    document, now_s = _answer(cluster, {}), cluster.clock.wall_s()
    assert document["status"].pop("token").count(".") == 2
    assert document == {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": "robot",
            "namespace": "web",
            "uid": "uid-robot",
            "creationTimestamp": format_rfc3339(now_s),
        },
        "spec": {"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": None},
        "status": {"expirationTimestamp": format_rfc3339(now_s + 3600)},
    }


def test_a_token_has_the_requested_audience_and_lifetime() -> None:
    claims = _claims(_answer(Cluster(), {"audiences": ["vault"], "expirationSeconds": 700}))
    assert claims["aud"] == ["vault"]
    assert claims["exp"] - claims["iat"] == 700


@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        ("Pod", {"pod": {"name": "x", "uid": "uid-x"}, "node": {"name": "n1", "uid": "uid-n1"}}),
        ("Secret", {"secret": {"name": "x", "uid": "uid-x"}}),
        ("Node", {"node": {"name": "x", "uid": "uid-x"}}),
    ],
)
def test_a_token_is_bound_to_a_pod_a_secret_or_a_node(kind: str, bound: Document) -> None:
    cluster = Cluster()
    cluster.add("nodes", "", "n1", "uid-n1")
    namespace = "" if kind == "Node" else "web"
    cluster.add(f"{kind.lower()}s", namespace, "x", "uid-x", {"serviceAccountName": "robot", "nodeName": "n1"})
    reference = {"kind": kind, "apiVersion": "v1", "name": "x", "uid": "uid-x"}
    about = _claims(_answer(cluster, {"boundObjectRef": reference}))["kubernetes.io"]
    assert {key: value for key, value in about.items() if key not in ("namespace", "serviceaccount")} == bound


def test_a_token_of_a_pod_on_a_missing_node_contains_the_node_name() -> None:
    cluster = Cluster()
    cluster.add("pods", "web", "x", "uid-x", {"serviceAccountName": "robot", "nodeName": "n9"})
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "x"}
    assert _claims(_answer(cluster, {"boundObjectRef": reference}))["kubernetes.io"]["node"] == {"name": "n9"}


def test_a_default_pod_token_lives_a_year_and_warns_after_the_requested_lifetime() -> None:
    cluster = Cluster()
    cluster.add("pods", "web", "x", "uid-x", {"serviceAccountName": "robot"})
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "x"}
    issued = _answer(cluster, {"boundObjectRef": reference, "expirationSeconds": 3607})
    claims = _claims(issued)
    assert claims["exp"] - claims["iat"] == 365 * 86_400
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607
    assert issued["status"]["expirationTimestamp"] == format_rfc3339(cluster.clock.wall_s() + 3607)
    for_others = _answer(cluster, {"boundObjectRef": reference, "expirationSeconds": 3607, "audiences": ["vault"]})
    assert _claims(for_others)["exp"] - claims["iat"] == 3607


EXPIRATION = 'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value:'


@pytest.mark.parametrize(
    ("spec", "metadata", "error", "message"),
    [
        pytest.param(
            {"expirationSeconds": 5},
            {},
            InvalidError,
            f"{EXPIRATION} 5: may not specify a duration less than 10 minutes",
            id="too short",
        ),
        pytest.param(
            {"expirationSeconds": 5000000000},
            {},
            InvalidError,
            f"{EXPIRATION} 5000000000: may not specify a duration larger than 2^32 seconds",
            id="too long",
        ),
        pytest.param(
            {},
            {"name": "x"},
            InvalidError,
            'TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: "x": '
            "must match the service account name if specified",
            id="another name",
        ),
        pytest.param(
            {},
            {"namespace": "x"},
            InvalidError,
            'TokenRequest.authentication.k8s.io "robot" is invalid: metadata.namespace: Invalid value: "x": '
            "must match the service account namespace if specified",
            id="another namespace",
        ),
        pytest.param(
            {},
            {"uid": "abc"},
            ConflictError,
            'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "robot": the UID in the token '
            "request (abc) does not match the UID of the service account (uid-robot)",
            id="another uid",
        ),
        pytest.param(
            {"boundObjectRef": {"kind": "Foo", "apiVersion": "v1", "name": "x"}},
            {},
            BadRequestError,
            "cannot bind token to object of type /v1, Kind=Foo",
            id="bound to an unknown kind",
        ),
        pytest.param(
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "apps/v1", "name": "x"}},
            {},
            BadRequestError,
            "cannot bind token to object of type apps/v1, Kind=Pod",
            id="bound to a kind of another group",
        ),
        pytest.param(
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}},
            {},
            NotFoundError,
            'pods "none" not found',
            id="bound to a missing pod",
        ),
        pytest.param(
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "stranger"}},
            {},
            BadRequestError,
            'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
            id="bound to a pod of another account",
        ),
        pytest.param(
            {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "abc"}},
            {},
            ConflictError,
            'Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (abc) does not match '
            "the UID in record. The object might have been deleted and then recreated",
            id="bound to a recreated secret",
        ),
    ],
)
def test_errors_of_invalid_token_requests(
    spec: Document, metadata: Document, error: type[StatusError], message: str
) -> None:
    cluster = Cluster()
    cluster.add("pods", "web", "stranger", "u", {"serviceAccountName": "default"})
    cluster.add("secrets", "web", "s", "uid-s")
    with pytest.raises(error) as rejected:
        _answer(cluster, spec, metadata)
    assert rejected.value.message == message


def test_a_validation_error_names_its_field() -> None:
    with pytest.raises(InvalidError) as rejected:
        _answer(Cluster(), {"expirationSeconds": 5})
    (cause,) = rejected.value.causes
    assert (cause.field, cause.reason) == ("spec.expirationSeconds", "FieldValueInvalid")
    assert cause.message == "Invalid value: 5: may not specify a duration less than 10 minutes"
    assert rejected.value.details == {"group": "authentication.k8s.io", "kind": "TokenRequest"}
