"""Authentication by client certificate, by bearer token, or as an anonymous user.

User names of service accounts and nodes are built and parsed; token files are parsed.
"""

from __future__ import annotations

import logging

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from mooring.apiserver.access.authentication import (
    ADMIN,
    AuthenticationResult,
    Authenticator,
    FixedTokens,
    TokenFileError,
    bearer_token,
    parse_token_file,
)
from mooring.apiserver.access.certificates import (
    LIFETIME_S,
    CertificateSubject,
    make_authority,
    make_client_certificate,
    new_key,
)
from mooring.apiserver.access.service_account_tokens import SHORT_AUDIENCE, InvalidTokenError
from mooring.client.errors import UnauthorizedError
from mooring.kit.clock import VIRTUAL_WALL_S
from mooring.serving.users import (
    User,
    anonymous,
    authenticated,
    node_of,
    service_account_groups,
    service_account_of,
    service_account_username,
    with_group,
)
from tests.apiserver.access.builders import ISSUER, Cluster


@pytest.mark.parametrize(
    ("text", "users"),
    [
        pytest.param("t,anna,1\n", {"t": User("anna", "1")}, id="without groups"),
        pytest.param('t,anna,1,"a,b"\n', {"t": User("anna", "1", ("a", "b"))}, id="two groups"),
        pytest.param("t,anna,1,a,b\n", {"t": User("anna", "1", ("a",))}, id="further columns are ignored"),
        pytest.param("t,anna,1\n\nu,bob,2", {"t": User("anna", "1"), "u": User("bob", "2")}, id="an empty line"),
        pytest.param(
            "t,anna,1\r\nu,bob,2\r\n", {"t": User("anna", "1"), "u": User("bob", "2")}, id="Windows line ends"
        ),
        pytest.param('"t ""x""",anna,1', {'t "x"': User("anna", "1")}, id="quotes in quotes"),
        pytest.param("", {}, id="an empty file"),
        pytest.param("t,anna,1\nt,bob,2\n", {"t": User("bob", "2")}, id="the later of two equal tokens applies"),
        pytest.param(",anna,1\nt,bob,2\n", {"t": User("bob", "2")}, id="an empty token is ignored"),
    ],
)
def test_parse_token_file_returns_users_by_token(text: str, users: dict[str, User]) -> None:
    assert parse_token_file(text, "tokens.csv") == users


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "t,anna,1\nsecret,bob\n",
            "token file 'tokens.csv', line 2: must have at least 3 columns (token, user name, user uid), found 2",
            id="too few columns",
        ),
        pytest.param(
            't,anna,1\n\n"sec"ret,bob,2\n',
            "token file 'tokens.csv', line 3: ',' expected after '\"'",
            id="a quote in the wrong place",
        ),
        pytest.param(
            '"secret,bob,2\n', "token file 'tokens.csv', line 1: unexpected end of data", id="a quote without an end"
        ),
    ],
)
def test_an_invalid_token_file_is_rejected_with_the_line_and_without_the_token(text: str, message: str) -> None:
    with pytest.raises(TokenFileError) as rejected:
        parse_token_file(text, "tokens.csv")
    assert str(rejected.value) == message
    assert "sec" not in str(rejected.value)


def test_token_file_warnings_name_the_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        parse_token_file("secret,anna,1\nsecret,bob,2\n,eve,3\n", "tokens.csv")
    assert [record.getMessage() for record in caplog.records] == [
        "duplicate token in token file 'tokens.csv', line 2",
        "empty token in token file 'tokens.csv', line 3",
    ]


def test_fixed_tokens_match_exactly() -> None:
    tokens = FixedTokens({"secret": ADMIN})
    assert tokens.user_of("secret") == User("admin", "admin", ("system:masters", "system:authenticated"))
    assert tokens.user_of("Secret") is None
    assert tokens.user_of("") is None
    assert len(tokens) == 1


def test_repr_of_fixed_tokens_hides_the_tokens() -> None:
    tokens = FixedTokens({"secret": ADMIN})
    assert repr(tokens) == "FixedTokens(1)"
    assert "secret" not in repr(vars(tokens))


AUTHORITY = make_authority(VIRTUAL_WALL_S)


def _authenticator(cluster: Cluster | None = None, *, is_anonymous_allowed: bool = True) -> Authenticator:
    cluster = cluster or Cluster()
    fixed = FixedTokens({"secret": User("anna", "1", ("devs",)), "odd": User("x", "", ("system:unauthenticated",))})
    return Authenticator(cluster.clock, fixed, cluster.tokens, is_anonymous_allowed=is_anonymous_allowed)


def _certificate(user: str, *groups: str) -> bytes:
    made = make_client_certificate(AUTHORITY, CertificateSubject(user, groups), VIRTUAL_WALL_S)
    return made.certificate.public_bytes(Encoding.DER)


def _odd_certificate(*attributes: tuple[x509.ObjectIdentifier, str]) -> bytes:
    key = new_key()
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])
    template = AUTHORITY.certificate
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(template.not_valid_before_utc)
    signed = builder.not_valid_after(template.not_valid_after_utc).sign(key, hashes.SHA256())
    return signed.public_bytes(Encoding.DER)


UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
CN, ORG = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME


@pytest.mark.parametrize(
    ("authorization", "name", "groups"),
    [
        pytest.param("Bearer secret", "anna", ("devs", "system:authenticated"), id="a token"),
        pytest.param("bearer secret", "anna", ("devs", "system:authenticated"), id="scheme in lower case"),
        pytest.param(
            "  Bearer secret and more ", "anna", ("devs", "system:authenticated"), id="text after the token is ignored"
        ),
        pytest.param("Bearer odd", "x", ("system:unauthenticated",), id="user in the group system:unauthenticated"),
        pytest.param(None, "system:anonymous", ("system:unauthenticated",), id="no header"),
        pytest.param("", "system:anonymous", ("system:unauthenticated",), id="an empty header"),
        pytest.param("Basic YTpi", "system:anonymous", ("system:unauthenticated",), id="basic authentication"),
        pytest.param("Bearer ", "system:anonymous", ("system:unauthenticated",), id="no token"),
        pytest.param("Bearer  secret", "system:anonymous", ("system:unauthenticated",), id="two spaces"),
    ],
)
def test_authorization_header_determines_the_user(
    authorization: str | None, name: str, groups: tuple[str, ...]
) -> None:
    user = _authenticator().authenticate(None, authorization)
    assert (user.name, user.groups) == (name, groups)


@pytest.mark.parametrize("authorization", ["Bearer wrong", "Bearer a.b.c"])
def test_a_wrong_token_is_rejected_even_if_anonymous_requests_are_allowed(authorization: str) -> None:
    with pytest.raises(UnauthorizedError) as rejected:
        _authenticator().authenticate(None, authorization)
    assert (rejected.value.message, rejected.value.code, rejected.value.reason) == ("Unauthorized", 401, "Unauthorized")


@pytest.mark.parametrize("authorization", [None, "Basic YTpi", "Bearer "])
def test_requests_without_a_token_are_rejected_if_anonymous_requests_are_not_allowed(authorization: str | None) -> None:
    with pytest.raises(UnauthorizedError, match="Unauthorized"):
        _authenticator(is_anonymous_allowed=False).authenticate(None, authorization)


def test_a_service_account_token_authenticates_until_the_account_is_deleted() -> None:
    cluster = Cluster()
    token = cluster.tokens.issue(cluster.account, lifetime_s=600, audiences=[ISSUER])
    user = _authenticator(cluster).authenticate(None, f"Bearer {token}")
    assert user.name == "system:serviceaccount:web:robot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:web", "system:authenticated")
    cluster.objects.clear()
    with pytest.raises(UnauthorizedError):
        _authenticator(cluster).authenticate(None, f"Bearer {token}")


def test_a_client_certificate_gives_the_user_name_and_groups() -> None:
    certificate = _certificate("anna", "devs", "ops")
    user = _authenticator().authenticate(certificate, None)
    assert (user.name, user.uid, user.groups) == ("anna", "", ("devs", "ops", "system:authenticated"))
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


def test_a_client_certificate_takes_precedence_over_a_token() -> None:
    assert _authenticator().authenticate(_certificate("bob"), "Bearer wrong").name == "bob"


@pytest.mark.parametrize(
    ("attributes", "name", "uid"),
    [
        pytest.param([(CN, "a"), (CN, "b")], "b", "", id="the last of two common names applies"),
        pytest.param([(CN, "a"), (UID, "7")], "a", "7", id="a uid"),
        pytest.param([(ORG, "devs")], "system:anonymous", "", id="no name"),
    ],
)
def test_unusual_certificate_subjects(attributes: list[tuple[x509.ObjectIdentifier, str]], name: str, uid: str) -> None:
    user = _authenticator().authenticate(_odd_certificate(*attributes), None)
    assert (user.name, user.uid) == (name, uid)


def test_a_certificate_with_two_uids_is_rejected() -> None:
    with pytest.raises(UnauthorizedError):
        _authenticator().authenticate(_odd_certificate((CN, "a"), (UID, "1"), (UID, "2")), None)


def test_an_expired_certificate_is_rejected_on_an_open_connection() -> None:
    cluster = Cluster()
    authenticator, certificate = _authenticator(cluster), _certificate("anna")
    assert authenticator.authenticate(certificate, None).name == "anna"
    cluster.clock.advance_to(LIFETIME_S + 1)
    with pytest.raises(UnauthorizedError):
        authenticator.authenticate(certificate, None)


@pytest.mark.parametrize(
    ("authorization", "token"), [("Bearer x", "x"), ("Bearer  x", None), ("Bearer", None), ("Basic  x", None)]
)
def test_bearer_token_requires_exactly_one_space(authorization: str, token: str | None) -> None:
    assert bearer_token(authorization) == token


def test_proof_of_requires_a_matching_audience() -> None:
    authenticator = _authenticator()
    anna = User("anna", "1", ("devs", "system:authenticated"))
    assert authenticator.audiences == (ISSUER, SHORT_AUDIENCE)
    assert authenticator.authenticate_token("secret", (ISSUER, "vault")) == AuthenticationResult(anna, (ISSUER,))
    with pytest.raises(InvalidTokenError, match=r"^invalid bearer token$"):
        authenticator.authenticate_token("secret", ("vault",))


def test_proof_of_reports_why_a_token_is_invalid() -> None:
    cluster = Cluster()
    token = cluster.tokens.issue(cluster.account, lifetime_s=600, audiences=[ISSUER])
    cluster.clock.advance_to(10_000)
    with pytest.raises(InvalidTokenError) as rejected:
        _authenticator(cluster).authenticate_token(token, (ISSUER,))
    assert str(rejected.value) == "[invalid bearer token, service account token has expired]"


@pytest.mark.parametrize(
    ("username", "account"),
    [
        pytest.param("system:serviceaccount:web:robot", ("web", "robot"), id="an account"),
        pytest.param("system:serviceaccount:web:robot.v2", ("web", "robot.v2"), id="an account with a dot"),
        pytest.param("system:serviceaccount:web:robot:x", None, id="too many parts"),
        pytest.param("system:serviceaccount:web", None, id="too few parts"),
        pytest.param("system:serviceaccount:we.b:robot", None, id="an invalid namespace name"),
        pytest.param("system:serviceaccount::robot", None, id="no namespace"),
        pytest.param("system:serviceaccount:web:", None, id="no name"),
        pytest.param(f"system:serviceaccount:{'a' * 64}:robot", None, id="a namespace that is too long"),
        pytest.param("robot", None, id="a plain user name"),
    ],
)
def test_service_account_of_parses_a_user_name(username: str, account: tuple[str, str] | None) -> None:
    assert service_account_of(username) == account


def test_a_service_account_has_a_user_name_and_groups() -> None:
    assert service_account_of(service_account_username("web", "robot")) == ("web", "robot")
    assert service_account_groups("web") == ("system:serviceaccounts", "system:serviceaccounts:web")


@pytest.mark.parametrize(
    ("username", "node"),
    [
        ("system:node:n1.example", "n1.example"),
        ("system:node:", None),
        ("system:node:N_1", None),
        ("n1", None),
    ],
)
def test_node_of_parses_a_user_name(username: str, node: str | None) -> None:
    assert node_of(username) == node


@pytest.mark.parametrize(
    ("before", "groups"),
    [
        pytest.param(User("anna", groups=("devs",)), ("devs", "system:authenticated"), id="a user with groups"),
        pytest.param(
            User("anna", groups=("system:authenticated", "devs")),
            ("system:authenticated", "devs"),
            id="already in the group",
        ),
        pytest.param(
            User("x", groups=("system:unauthenticated",)),
            ("system:unauthenticated",),
            id="in the group system:unauthenticated",
        ),
        pytest.param(anonymous(), ("system:unauthenticated",), id="the anonymous user"),
    ],
)
def test_authenticated_adds_the_group_system_authenticated(before: User, groups: tuple[str, ...]) -> None:
    assert authenticated(before).groups == groups


def test_with_group_adds_a_group_once() -> None:
    joined = with_group(User("anna", groups=("devs",)), "ops")
    assert joined.groups == ("devs", "ops")
    assert with_group(joined, "devs") is joined
