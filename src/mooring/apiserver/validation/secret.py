"""What is wrong with a secret: each type must bring what its readers look for."""

from __future__ import annotations

from base64 import b64decode

from mooring.api.document import Document
from mooring.apiserver.validation.config_map import DATA_BYTES_MAX, decoded_length
from mooring.apiserver.validation.fields import Fault, invalid, required, too_long
from mooring.apiserver.validation.names import config_key_faults
from mooring.apiserver.validation.values import json_fault

OPAQUE = "Opaque"
TLS = "kubernetes.io/tls"
TLS_CERTIFICATE, TLS_KEY = "tls.crt", "tls.key"
SERVICE_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"
SERVICE_ACCOUNT_NAME = "kubernetes.io/service-account.name"

_DOCKER_CONFIG_KEYS = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def secret_faults(secret: Document) -> list[Fault]:
    data: Document = secret.get("data") or {}
    faults: list[Fault] = []
    size = 0
    for key, value in data.items():
        faults += [invalid(f"data[{key}]", key, text) for text in config_key_faults(key)]
        size += decoded_length(value)
    if size > DATA_BYTES_MAX:
        faults.append(too_long("data", DATA_BYTES_MAX))
    return faults + _type_faults(secret, data)


def _type_faults(secret: Document, data: Document) -> list[Fault]:
    match secret.get("type"):
        case "kubernetes.io/service-account-token":
            if not (secret["metadata"].get("annotations") or {}).get(SERVICE_ACCOUNT_NAME):
                return [required(f"metadata.annotations[{SERVICE_ACCOUNT_NAME}]")]
        case "kubernetes.io/dockercfg" | "kubernetes.io/dockerconfigjson" as kind:
            return _docker_config_faults(data, _DOCKER_CONFIG_KEYS[kind])
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


def _docker_config_faults(data: Document, key: str) -> list[Fault]:
    if key not in data:
        return [required(f"data[{key}]")]
    fault = json_fault(b64decode(data[key]), "map[string]interface {}")
    return [invalid(f"data[{key}]", "<secret contents redacted>", fault)] if fault else []
