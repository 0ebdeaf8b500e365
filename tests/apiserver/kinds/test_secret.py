"""ConfigMap, Secret and ServiceAccount: validation, immutable data, tables."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, SECRET, SERVICE_ACCOUNT
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.config_map import (
    DATA_BYTES_MAX,
    decoded_length,
    validate_config_map,
    validate_immutable_data,
)
from mooring.apiserver.kinds.secret import key_pair_warnings, validate_secret
from mooring.apiserver.kinds.service_account import ENFORCE_MOUNTABLE_SECRETS
from tests.apiserver.core_documents import call, changed, created, document, messages, strategy


def test_string_data_is_merged_into_data() -> None:
    secret: Document = {"data": {"a": "YQ==", "b": "Yg=="}, "stringData": {"a": "z", "c": ""}}
    strategy_of(SECRET).default(secret)
    assert secret == {"data": {"a": "eg==", "b": "Yg==", "c": ""}, "type": "Opaque"}
    strategy_of(SECRET).default(secret)
    assert secret["data"] == {"a": "eg==", "b": "Yg==", "c": ""}


def test_a_given_type_is_kept() -> None:
    secret: Document = {"type": "example.com/own"}
    strategy_of(SECRET).default(secret)
    assert secret == {"type": "example.com/own"}


REDACTED = 'Invalid value: "<secret contents redacted>"'


@pytest.mark.parametrize(
    ("kind", "texts", "errors"),
    [
        pytest.param("", {}, [], id="opaque"),
        pytest.param("example.com/own", {}, [], id="a custom type"),
        pytest.param("kubernetes.io/tls", {"tls.crt": ""}, ["data[tls.key]: Required value"], id="a certificate"),
        pytest.param(
            "kubernetes.io/ssh-auth", {"ssh-privatekey": ""}, ["data[ssh-privatekey]: Required value"], id="ssh"
        ),
        pytest.param("kubernetes.io/basic-auth", {"username": ""}, [], id="a name without a password"),
        pytest.param(
            "kubernetes.io/basic-auth",
            {},
            ["data[username]: Required value", "data[password]: Required value"],
            id="neither name nor password",
        ),
        pytest.param("kubernetes.io/dockercfg", {}, ["data[.dockercfg]: Required value"], id="no credentials"),
        pytest.param(
            "kubernetes.io/dockerconfigjson",
            {".dockerconfigjson": "[]"},
            [
                f"data[.dockerconfigjson]: {REDACTED}: json: cannot unmarshal array into Go value of type "
                "map[string]interface {}"
            ],
            id="credentials of another form",
        ),
        pytest.param(
            "kubernetes.io/service-account-token",
            {},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
            id="a token without a service account",
        ),
    ],
)
def test_types_of_secrets_require_keys(kind: str, texts: Document, errors: list[str]) -> None:
    assert messages(validate_secret(document(SECRET, type=kind, stringData=texts))) == errors


def test_the_size_of_a_secret_is_limited() -> None:
    errors = messages(validate_secret(document(SECRET, stringData={"a": "x" * 1_048_577})))
    assert errors == ["data: Too long: may not be more than 1048576 bytes"]


BROKEN = "-----BEGIN {}-----\nAAAA\n-----END {}-----\n"


@cache
def elliptic(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def edwards() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def pem(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@cache
def certificate(name: str) -> str:
    key = elliptic(name)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1)
    builder = builder.not_valid_before(datetime(2026, 1, 1, tzinfo=UTC)).not_valid_after(
        datetime(2036, 1, 1, tzinfo=UTC)
    )
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


def broken(name: str) -> str:
    return BROKEN.format(name, name)


@pytest.mark.parametrize(
    ("crt", "key", "error"),
    [
        pytest.param(certificate("a"), pem(elliptic("a")), "", id="a matching pair"),
        pytest.param(
            f"# mine\n{certificate('a')}{certificate('b')}", pem(elliptic("a")), "", id="the first certificate counts"
        ),
        pytest.param(
            certificate("a"), pem(elliptic("b")), "tls: private key does not match public key", id="another key"
        ),
        pytest.param(
            certificate("a"),
            pem(edwards()),
            "tls: private key type does not match public key type",
            id="another kind of key",
        ),
        pytest.param("", "", "tls: failed to find any PEM data in certificate input", id="nothing"),
        pytest.param(certificate("a"), "x", "tls: failed to find any PEM data in key input", id="no key"),
        pytest.param(
            pem(elliptic("a")),
            certificate("a"),
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched",
            id="switched",
        ),
        pytest.param(
            certificate("a"),
            certificate("a"),
            "tls: found a certificate rather than a key in the PEM for the private key",
            id="two certificates",
        ),
        pytest.param(
            broken("ODD") + broken("EVEN"),
            "",
            'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the '
            "following types: [ODD EVEN]",
            id="other blocks for a certificate",
        ),
        pytest.param(
            certificate("a"),
            broken("ODD"),
            'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of '
            "the following types: [ODD]",
            id="other blocks for a key",
        ),
        pytest.param(
            broken("CERTIFICATE"), pem(elliptic("a")), "x509: malformed certificate", id="a malformed certificate"
        ),
        pytest.param(certificate("a"), broken("PRIVATE KEY"), "tls: failed to parse private key", id="a malformed key"),
    ],
)
def test_key_pair_warnings_of_tls_secrets(crt: str, key: str, error: str) -> None:
    data = {"tls.crt": b64encode(crt.encode()).decode(), "tls.key": b64encode(key.encode()).decode()}
    assert key_pair_warnings(data) == ([error] if error else [])


TLS = {"tls.crt": "x", "tls.key": "y"}


def test_type_and_immutable_data_cannot_be_changed() -> None:
    old = document(SECRET, type="example.com/own", data={"a": "YQ=="}, immutable=True)
    errors, _ = changed(SECRET, old, type="example.com/other", data={"a": "Yg=="})
    assert errors == [
        'type: Invalid value: "example.com/other": field is immutable',
        "data: Forbidden: field is immutable when `immutable` is set",
    ]


def test_a_mismatched_tls_pair_has_a_warning() -> None:
    kind_strategy, secret = strategy(SECRET), document(SECRET, type="kubernetes.io/tls", stringData=TLS)
    warning = "tls: failed to find any PEM data in certificate input"
    assert kind_strategy.warnings_on_create(secret, call(SECRET)) == [warning]
    assert kind_strategy.warnings_on_update(secret, secret, call(SECRET)) == [warning]
    assert kind_strategy.warnings_on_create(document(SECRET, stringData=TLS), call(SECRET)) == []
    assert kind_strategy.selectable_fields(secret) == {"type": "kubernetes.io/tls"}


TOO_LONG = "[]: Too long: may not be more than 1048576 bytes"
IMMUTABLE = "Forbidden: field is immutable when `immutable` is set"


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        pytest.param({"data": {"a.b": "c"}}, [], id="a plain key"),
        pytest.param({"data": {"..": ""}}, ["data[..]: Invalid value: \"..\": must not be '..'"], id="two dots"),
        pytest.param(
            {"data": {"q": ""}, "binaryData": {"q": "YQ=="}},
            ['data[q]: Invalid value: "q": duplicate of key present in binaryData'],
            id="a key in both maps",
        ),
        pytest.param({"data": {"a": "x" * DATA_BYTES_MAX}}, [], id="the maximum size"),
        pytest.param({"data": {"a": "é" * (DATA_BYTES_MAX // 2), "b": "x"}}, [TOO_LONG], id="bytes are counted"),
    ],
)
def test_keys_and_sizes_of_config_maps_are_validated(body: Document, errors: list[str]) -> None:
    assert messages(validate_config_map(document(CONFIG_MAP, **body))) == errors


@pytest.mark.parametrize(
    ("new", "errors"),
    [
        pytest.param({"data": {"a": "b"}, "immutable": True}, [], id="nothing changed"),
        pytest.param({"data": {"a": "c"}, "immutable": True}, [f"data: {IMMUTABLE}"], id="other data"),
        pytest.param({"data": {"a": "b"}}, [f"immutable: {IMMUTABLE}"], id="immutable is removed"),
        pytest.param({}, [f"immutable: {IMMUTABLE}", f"data: {IMMUTABLE}"], id="both"),
    ],
)
def test_data_of_immutable_objects_cannot_be_changed(new: Document, errors: list[str]) -> None:
    old = {"data": {"a": "b"}, "immutable": True}
    assert messages(validate_immutable_data(new, old, "data", "binaryData")) == errors
    assert validate_immutable_data(new, {"data": {"a": "b"}}, "data") == []


@pytest.mark.parametrize(("text", "length"), [("", 0), ("YQ==", 1), ("YWE=", 2), ("YWFh", 3)])
def test_decoded_length_measures_base64_without_decoding(text: str, length: int) -> None:
    assert decoded_length(text) == length


def test_an_update_of_an_immutable_config_map_is_rejected() -> None:
    old = document(CONFIG_MAP, data={"a": "b"}, immutable=True)
    errors, _ = changed(CONFIG_MAP, old, data={"..": "b"})
    assert errors == [
        "data: Forbidden: field is immutable when `immutable` is set",
        "data[..]: Invalid value: \"..\": must not be '..'",
    ]


def test_a_new_config_map_is_validated() -> None:
    assert created(CONFIG_MAP, document(CONFIG_MAP, data={"a": "b"})) == []


ANNOTATED = {"annotations": {ENFORCE_MOUNTABLE_SECRETS: "true"}}
SECRETS = [{"name": "a", "namespace": "b", "uid": "c"}, {}]


def test_references_to_secrets_keep_only_the_name() -> None:
    account = document(SERVICE_ACCOUNT, secrets=SECRETS)
    assert created(SERVICE_ACCOUNT, account) == []
    assert account["secrets"] == [{"name": "a"}, {}]
    errors, account = changed(SERVICE_ACCOUNT, document(SERVICE_ACCOUNT), secrets=SECRETS)
    assert (errors, account["secrets"]) == ([], [{"name": "a"}, {}])


def test_a_new_deprecated_annotation_has_a_warning() -> None:
    kind_strategy, plain = strategy(SERVICE_ACCOUNT), document(SERVICE_ACCOUNT)
    account = document(SERVICE_ACCOUNT, ANNOTATED)
    warnings = kind_strategy.warnings_on_create(account, call(SERVICE_ACCOUNT))
    assert warnings == [
        "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; "
        "prefer separate namespaces to isolate access to mounted secrets"
    ]
    assert kind_strategy.warnings_on_update(account, plain, call(SERVICE_ACCOUNT)) == warnings
    assert kind_strategy.warnings_on_update(account, account, call(SERVICE_ACCOUNT)) == []
    assert kind_strategy.warnings_on_create(plain, call(SERVICE_ACCOUNT)) == []
