"""Secret (v1).

1. `stringData` is write-only: it overwrites keys of `data` and is never stored.
2. The type is immutable, and each type requires the keys that its consumers read.
3. Warnings about a TLS Secret whose certificate and key do not match have the messages of Go's `tls` package. The first
   certificate and the first private key count; other PEM blocks are skipped.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_private_key
from cryptography.x509 import load_der_x509_certificate

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.config_map import DATA_BYTES_MAX, decoded_length, validate_immutable_data
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, column
from mooring.apiserver.validation.fields import FieldError, invalid, required, too_long
from mooring.apiserver.validation.metadata import validate_immutable
from mooring.apiserver.validation.names import config_key_errors
from mooring.apiserver.validation.values import json_error

OPAQUE = "Opaque"
TLS = "kubernetes.io/tls"
TLS_CERTIFICATE, TLS_KEY = "tls.crt", "tls.key"
SERVICE_ACCOUNT_NAME = "kubernetes.io/service-account.name"

_DOCKER_CONFIG_KEYS = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}

_BLOCK = re.compile(
    rb"(?:^|\n)-----BEGIN ([A-Z0-9 ]*)-----[ \t\r]*\n(?:[^\n:]+:[^\n]*\n)*\s*([A-Za-z0-9+/=\s]*?)-----END \1-----"
)
_NO_DATA = "tls: failed to find any PEM data in {place} input"
_KEY_KINDS = (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey)


# --- validation --------------------------------------------------------------------------------------------------


def validate_secret(secret: Document) -> list[FieldError]:
    data: Document = secret.get("data") or {}
    errors: list[FieldError] = []
    size = 0
    for key, value in data.items():
        errors += [invalid(f"data[{key}]", key, text) for text in config_key_errors(key)]
        size += decoded_length(value)
    if size > DATA_BYTES_MAX:
        errors.append(too_long("data", DATA_BYTES_MAX))
    return errors + _validate_secret_type(secret, data)


def _validate_secret_type(secret: Document, data: Document) -> list[FieldError]:
    match secret.get("type"):
        case "kubernetes.io/service-account-token":
            if not (secret["metadata"].get("annotations") or {}).get(SERVICE_ACCOUNT_NAME):
                return [required(f"metadata.annotations[{SERVICE_ACCOUNT_NAME}]")]
        case "kubernetes.io/dockercfg" | "kubernetes.io/dockerconfigjson" as kind:
            return _validate_docker_config(data, _DOCKER_CONFIG_KEYS[kind])
        case "kubernetes.io/basic-auth":
            # Either is enough, and it may be empty.
            if "username" not in data and "password" not in data:
                return [required("data[username]"), required("data[password]")]
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                return [required("data[ssh-privatekey]")]
        case "kubernetes.io/tls":
            return [required(f"data[{key}]") for key in (TLS_CERTIFICATE, TLS_KEY) if key not in data]
    return []


def _validate_docker_config(data: Document, key: str) -> list[FieldError]:
    if key not in data:
        return [required(f"data[{key}]")]
    error = json_error(b64decode(data[key]), "map[string]interface {}")
    return [invalid(f"data[{key}]", "<secret contents redacted>", error)] if error else []


# --- table -------------------------------------------------------------------------------------------------------


def _secret_cells(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], obj.get("type", ""), len(obj.get("data") or ()), age(obj, now_s)]


class _Block(NamedTuple):
    name: str
    content: bytes


def key_pair_warnings(data: Document) -> list[str]:
    error = _key_pair_error(b64decode(data.get(TLS_CERTIFICATE, "")), b64decode(data.get(TLS_KEY, "")))
    return [error] if error else []


def _key_pair_error(certificate_pem: bytes, key_pem: bytes) -> str:
    blocks = _blocks(certificate_pem)
    certificates = [block for block in blocks if block.name == "CERTIFICATE"]
    if not certificates:
        return _missing_certificate([block.name for block in blocks])
    blocks = _blocks(key_pem)
    keys = [block for block in blocks if block.name == "PRIVATE KEY" or block.name.endswith(" PRIVATE KEY")]
    if not keys:
        return _missing_key([block.name for block in blocks])
    return _mismatch(certificates[0].content, keys[0].content)


def _missing_certificate(found: list[str]) -> str:
    if not found:
        return _NO_DATA.format(place="certificate")
    if len(found) == 1 and found[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following '
        f"types: [{' '.join(found)}]"
    )


def _missing_key(found: list[str]) -> str:
    if not found:
        return _NO_DATA.format(place="key")
    if found == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of '
        f"the following types: [{' '.join(found)}]"
    )


def _mismatch(certificate_der: bytes, key_der: bytes) -> str:
    try:
        public_key = load_der_x509_certificate(certificate_der).public_key()
    except ValueError:
        return "x509: malformed certificate"
    try:
        key = load_der_private_key(key_der, None)
    except (ValueError, TypeError):
        return "tls: failed to parse private key"
    if not isinstance(public_key, _KEY_KINDS):
        return "tls: unknown public key algorithm"
    found = key.public_key()
    if not any(isinstance(public_key, kind) and isinstance(found, kind) for kind in _KEY_KINDS):
        return "tls: private key type does not match public key type"
    ours, theirs = (key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for key in (public_key, found))
    return "" if ours == theirs else "tls: private key does not match public key"


def _blocks(pem: bytes) -> list[_Block]:
    blocks = []
    for match in _BLOCK.finditer(pem):
        try:
            content = b64decode(b"".join(match[2].split()), validate=True)
        except Base64Error:
            continue
        blocks.append(_Block(match[1].decode(), content))
    return blocks


# --- strategy ----------------------------------------------------------------------------------------------------


class SecretStrategy(Strategy):
    """Writing a secret."""

    table = KindTable(
        (NAME, column("Type", "What it is for."), column("Data", "How many entries it has."), AGE), _secret_cells
    )

    def default(self, obj: Document) -> None:
        if not obj.get("type"):
            obj["type"] = "Opaque"
        texts = obj.pop("stringData", None)
        if texts:
            data = dict(obj.get("data") or {})
            data.update({key: b64encode(text.encode()).decode() for key, text in texts.items()})
            obj["data"] = data

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_secret(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        errors = self.validate_meta_update(obj, old)
        errors += validate_immutable(obj.get("type", ""), old.get("type", ""), "type")
        errors += validate_immutable_data(obj, old, "data")
        return errors + self.validate(obj, call)

    def warnings(self, obj: Document) -> list[str]:
        return key_pair_warnings(obj.get("data") or {}) if obj.get("type") == TLS else []

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        return {"type": obj.get("type", "")}


STRATEGY = SecretStrategy
