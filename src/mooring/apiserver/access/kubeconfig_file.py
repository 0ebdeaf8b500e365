"""The kubeconfig that is written for whoever wants to talk to the server.

Comes in   the server's address, what to recognise it by, and a certificate or a token
Goes out   a file that kubectl reads, for its owner only

 1. A file is replaced only if everything in it is ours: each of its clusters has our name. Anybody else's file is left
    alone, unless one is told otherwise, because it may hold the only way into another cluster.
 2. It is written at once or not at all, and nobody but its owner can read it at any moment.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from mooring.api.document import Document
from mooring.api.yaml import YamlError, load_document
from mooring.apiserver.access.certificates import Certified
from mooring.apiserver.access.keyring import write_privately

CLUSTER_NAME = "mooring"


class KubeconfigError(Exception):
    """A kubeconfig cannot be written. Says why, and what to do."""


@dataclass(frozen=True, slots=True)
class TokenCredential:
    token: str = field(repr=False)


def kubeconfig_document(
    server: str, authority_pem: bytes | None, user: str, credential: Certified | TokenCredential | None
) -> Document:
    """A kubeconfig with one cluster, one user and one context. Without an authority the server speaks plain HTTP."""
    cluster: Document = {"server": server}
    if authority_pem is not None:
        cluster["certificate-authority-data"] = b64encode(authority_pem).decode()
    context = f"{user}@{CLUSTER_NAME}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER_NAME, "cluster": cluster}],
        "users": [{"name": user, "user": _user_entry(credential)}],
        "contexts": [{"name": context, "context": {"cluster": CLUSTER_NAME, "user": user}}],
        "current-context": context,
    }


def write_kubeconfig(path: Path, kubeconfig: Document, *, may_overwrite: bool = False) -> None:
    """Writes the file, if there is none or it is one of ours. Raises `KubeconfigError`."""
    if not may_overwrite and path.exists() and not _is_ours(path):
        raise KubeconfigError(
            f"{path} exists and was not written by us: choose another path for the kubeconfig, or say that it may be "
            "overwritten"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_privately(path, yaml.safe_dump(kubeconfig, sort_keys=False).encode())
    except OSError as error:
        raise KubeconfigError(f"cannot write the kubeconfig {path}: {error.strerror or error}") from None


def _user_entry(credential: Certified | TokenCredential | None) -> Document:
    match credential:
        case Certified():
            return {
                "client-certificate-data": b64encode(credential.certificate_pem).decode(),
                "client-key-data": b64encode(credential.key_pem).decode(),
            }
        case TokenCredential():
            return {"token": credential.token}
        case None:
            return {}


def _is_ours(path: Path) -> bool:
    try:
        found = load_document(path.read_bytes(), str(path)).data
    except (OSError, YamlError):
        return False
    clusters = found.get("clusters") if isinstance(found, dict) else None
    if not isinstance(clusters, list) or not clusters:
        return False
    return all(isinstance(cluster, dict) and cluster.get("name") == CLUSTER_NAME for cluster in clusters)
