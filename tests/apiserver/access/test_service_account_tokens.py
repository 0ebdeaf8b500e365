"""Service account tokens are valid while the objects that they reference exist; TokenRequests and their errors."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from mooring.api.document import Document
from mooring.apiserver.access import service_account_tokens
from mooring.apiserver.access.certificates import new_key
from mooring.apiserver.access.service_account_tokens import (
    BadSignatureError,
    BoundObject,
    InvalidTokenError,
    ServiceAccountTokens,
    TokenSigner,
    requested_token,
    unverified_part,
)
from mooring.client.errors import BadRequestError, ConflictError, InvalidError, NotFoundError, StatusError
from mooring.kit.clock import format_rfc3339
from mooring.kit.entropy import Entropy
from tests.apiserver.access.builders import ISSUER, Cluster

SIGNER = TokenSigner(new_key())
CLAIMS = {"iss": "us", "sub": "somebody"}


def _part(content: object) -> str:
    return urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def _with_head(head: object) -> str:
    _, claims, signature = SIGNER.sign(CLAIMS).split(".")
    return f"{_part(head)}.{claims}.{signature}"


def test_verified_claims_returns_the_signed_claims() -> None:
    token = SIGNER.sign(CLAIMS)
    assert SIGNER.verified_claims(token) == CLAIMS
    assert unverified_part(token, 0) == {"alg": "ES256", "kid": SIGNER.key_id}
    assert unverified_part(token, 1) == CLAIMS


def _with_other_claims() -> str:
    head, _, signature = SIGNER.sign(CLAIMS).split(".")
    return f"{head}.{_part({'iss': 'us', 'sub': 'admin'})}.{signature}"


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(_with_other_claims(), id="other claims"),
        pytest.param(TokenSigner(new_key()).sign(CLAIMS), id="signature of another key"),
        pytest.param(_with_head({"alg": "none"}), id="alg none"),
        pytest.param(_with_head({"alg": "HS256"}), id="another alg"),
        pytest.param(_with_head({"alg": "ES256"}), id="a head with another signature"),
        pytest.param(_with_head({"alg": "ES256", "kid": "x"}), id="another key id"),
        pytest.param(_with_head(["ES256"]), id="a head that is not an object"),
        pytest.param(SIGNER.sign(CLAIMS).rpartition(".")[0] + ".", id="no signature"),
        pytest.param(SIGNER.sign(CLAIMS)[:-8], id="half a signature"),
        pytest.param(SIGNER.sign(CLAIMS) + "é", id="non-ASCII characters"),
        pytest.param("a.b.c", id="not a token"),
        pytest.param("", id="empty"),
    ],
)
def test_tokens_without_a_valid_signature_are_rejected(token: str) -> None:
    with pytest.raises(BadSignatureError):
        SIGNER.verified_claims(token)


@pytest.mark.parametrize(
    "token", ["", "a.b", "a.b.c.d", "a.!!.c", f"a.{_part([1])}.c", "a.bm8.c", "a.é.c", f"a.{'W1tb' * 9_000}.c"]
)
def test_unverified_part_of_a_malformed_token_is_none(token: str) -> None:
    assert unverified_part(token, 1) is None


def test_public_key_document_contains_the_key() -> None:
    document = SIGNER.public_key_document()
    assert {key: document[key] for key in ("use", "kty", "crv", "alg", "kid")} == {
        "use": "sig",
        "kty": "EC",
        "crv": "P-256",
        "alg": "ES256",
        "kid": SIGNER.key_id,
    }
    assert len(urlsafe_b64decode(document["x"] + "=")) == len(urlsafe_b64decode(document["y"] + "=")) == 32


def test_the_cache_of_verified_tokens_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_account_tokens, "GOOD_TOKENS_MAX", 3)
    signer = TokenSigner(new_key())
    for number in range(10):
        token = signer.sign({"n": number})
        assert not signer.knows(token)
        assert signer.verified_claims(token) == {"n": number}
        assert signer.knows(token)
    assert len(signer._good) <= 3


def test_a_signer_rejects_a_key_on_another_curve() -> None:
    with pytest.raises(AssertionError, match="needs a key on P-256"):
        TokenSigner(ec.generate_private_key(ec.SECP384R1()))


POD = BoundObject("Pod", "p", "uid-p", "n1", "uid-n1")


def _issued(cluster: Cluster, bound: BoundObject | None = None, audiences: tuple[str, ...] = (ISSUER,)) -> str:
    return cluster.tokens.issue(cluster.account, lifetime_s=600, audiences=audiences, bound=bound)


def test_claims_and_user_of_a_token() -> None:
    cluster = Cluster()
    claims = unverified_part(_issued(cluster), 1)
    assert claims is not None
    now_s = int(cluster.clock.wall_s())
    jti = claims.pop("jti")
    assert claims == {
        "aud": [ISSUER],
        "exp": now_s + 600,
        "iat": now_s,
        "nbf": now_s,
        "iss": ISSUER,
        "kubernetes.io": {"namespace": "web", "serviceaccount": {"name": "robot", "uid": "uid-robot"}},
        "sub": "system:serviceaccount:web:robot",
    }
    found = cluster.tokens.authenticate(_issued(cluster), [ISSUER])
    assert found is not None
    user, audiences = found
    assert (user.name, user.uid) == ("system:serviceaccount:web:robot", "uid-robot")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:web")
    assert list(user.extra) == ["authentication.kubernetes.io/credential-id"]
    assert user.extra["authentication.kubernetes.io/credential-id"] != (f"JTI={jti}",)
    assert audiences == (ISSUER,)


def test_a_pod_bound_token_names_the_pod_and_its_node() -> None:
    cluster = Cluster()
    cluster.add("pods", "web", "p", "uid-p")
    found = cluster.tokens.authenticate(_issued(cluster, POD), [ISSUER])
    assert found is not None
    assert {key.rpartition("/")[2]: value for key, value in found[0].extra.items() if "credential" not in key} == {
        "pod-name": ("p",),
        "pod-uid": ("uid-p",),
        "node-name": ("n1",),
        "node-uid": ("uid-n1",),
    }


def _nothing(cluster: Cluster) -> None:
    pass


def _after(delay_s: float) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.clock.advance_to(delay_s)


def _removed(resource: str, namespace: str, name: str) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.objects.pop((resource, namespace, name))


def _replaced(resource: str, namespace: str, name: str) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.add(resource, namespace, name, "another")


def _deleted(resource: str, namespace: str, name: str, ago_s: float) -> Callable[[Cluster], object]:
    def mark(cluster: Cluster) -> None:
        stamp = format_rfc3339(cluster.clock.wall_s() - ago_s)
        cluster.objects[resource, namespace, name]["metadata"]["deletionTimestamp"] = stamp

    return mark


SECRET, NODE = BoundObject("Secret", "s", "uid-s"), BoundObject("Node", "n1", "uid-n1")
INVALIDATED = "service account token has been invalidated"


@pytest.mark.parametrize(
    ("bound", "change", "raised"),
    [
        pytest.param(None, _nothing, "", id="no change"),
        pytest.param(None, _after(600), "", id="at its expiration"),
        pytest.param(None, _after(659), "", id="expired, within the tolerance for clock skew"),
        pytest.param(None, _after(661), "service account token has expired", id="expired"),
        pytest.param(
            None,
            _removed("serviceaccounts", "web", "robot"),
            'serviceaccounts "robot" not found',
            id="the account is removed",
        ),
        pytest.param(
            None,
            _replaced("serviceaccounts", "web", "robot"),
            "service account UID (another) does not match claim (uid-robot)",
            id="the account is recreated",
        ),
        pytest.param(None, _deleted("serviceaccounts", "web", "robot", 30), "", id="the account is being deleted"),
        pytest.param(
            None,
            _deleted("serviceaccounts", "web", "robot", 90),
            "service account web/robot has been deleted",
            id="the account has been deleted",
        ),
        pytest.param(POD, _nothing, "", id="a pod: no change"),
        pytest.param(POD, _removed("pods", "web", "p"), INVALIDATED, id="the pod is removed"),
        pytest.param(
            POD,
            _replaced("pods", "web", "p"),
            "pod UID (another) does not match service account pod ref claim (uid-p)",
            id="the pod is recreated",
        ),
        pytest.param(POD, _deleted("pods", "web", "p", 90), INVALIDATED, id="the pod has been deleted"),
        pytest.param(POD, _removed("nodes", "", "n1"), "", id="a pod's node is removed"),
        pytest.param(SECRET, _nothing, "", id="a secret: no change"),
        pytest.param(SECRET, _removed("secrets", "web", "s"), INVALIDATED, id="the secret is removed"),
        pytest.param(
            SECRET,
            _replaced("secrets", "web", "s"),
            "secret UID (another) does not match service account secret ref claim (uid-s)",
            id="the secret is recreated",
        ),
        pytest.param(NODE, _nothing, "", id="a node: no change"),
        pytest.param(NODE, _removed("nodes", "", "n1"), INVALIDATED, id="the node is removed"),
        pytest.param(
            NODE,
            _replaced("nodes", "", "n1"),
            "node UID (another) does not match service account node ref claim (uid-n1)",
            id="the node is recreated",
        ),
    ],
)
def test_a_token_is_valid_until_a_referenced_object_is_removed_or_replaced(
    bound: BoundObject | None, change: Callable[[Cluster], object], raised: str
) -> None:
    cluster = Cluster()
    cluster.add("pods", "web", "p", "uid-p")
    cluster.add("secrets", "web", "s", "uid-s")
    cluster.add("nodes", "", "n1", "uid-n1")
    token = _issued(cluster, bound)
    assert cluster.tokens.authenticate(token, [ISSUER]) is not None
    change(cluster)
    if not raised:
        assert cluster.tokens.authenticate(token, [ISSUER]) is not None
        return
    with pytest.raises(InvalidTokenError) as rejected:
        cluster.tokens.authenticate(token, [ISSUER])
    assert str(rejected.value) == raised


def test_a_token_with_a_later_not_before_time_is_rejected() -> None:
    cluster, later = Cluster(), Cluster()
    later.clock.advance_to(120)
    with pytest.raises(InvalidTokenError, match=r"^service account token is not valid yet$"):
        cluster.tokens.authenticate(_issued(later), [ISSUER])


@pytest.mark.parametrize(
    ("meant_for", "asked", "accepted"),
    [
        pytest.param((ISSUER, "vault"), (ISSUER,), (ISSUER,), id="our audience among others"),
        pytest.param(("vault",), ("vault", "x"), ("vault",), id="another audience, requested by its owner"),
        pytest.param((), (ISSUER,), (ISSUER,), id="no audience means ours"),
    ],
)
def test_authenticate_returns_the_matching_audiences(
    meant_for: tuple[str, ...], asked: tuple[str, ...], accepted: tuple[str, ...]
) -> None:
    cluster = Cluster()
    found = cluster.tokens.authenticate(_issued(cluster, audiences=meant_for), asked)
    assert found is not None
    assert found[1] == accepted


def test_a_token_for_another_audience_is_rejected() -> None:
    cluster = Cluster()
    with pytest.raises(InvalidTokenError) as rejected:
        cluster.tokens.authenticate(_issued(cluster, audiences=("vault",)), [ISSUER])
    assert str(rejected.value) == f'token audiences ["vault"] is invalid for the target audiences ["{ISSUER}"]'


def test_a_forged_token_is_rejected_and_a_token_of_another_issuer_is_ignored() -> None:
    cluster = Cluster()
    strangers = TokenSigner(new_key())
    forger = ServiceAccountTokens(strangers, cluster.clock, Entropy(1), cluster.lookup)
    with pytest.raises(InvalidTokenError, match="invalid signature, no keys found"):
        cluster.tokens.authenticate(forger.issue(cluster.account, lifetime_s=600, audiences=[ISSUER]), [ISSUER])
    foreign = ServiceAccountTokens(strangers, cluster.clock, Entropy(1), cluster.lookup)
    foreign.issuer = "https://else"
    token = foreign.issue(cluster.account, lifetime_s=600, audiences=[ISSUER])
    assert cluster.tokens.authenticate(token, [ISSUER]) is None
    assert cluster.tokens.authenticate("plain", [ISSUER]) is None


def test_discovery_document_contains_the_url_of_the_keys() -> None:
    tokens = Cluster().tokens
    assert tokens.discovery_document("https://here/openid/v1/jwks") == {
        "issuer": ISSUER,
        "jwks_uri": "https://here/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    assert len(tokens.keys_document()["keys"]) == 1


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
