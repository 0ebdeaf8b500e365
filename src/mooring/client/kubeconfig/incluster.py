"""The connection from the service account of a pod.

Inputs: the environment of the pod, and the directory in which the kubelet mounts the service account. Output: a
`Connection` to the API server of the cluster. The kubelet renews the token in its file; `FileCredentials` reads it
again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from mooring.client.http.connection import Connection, FileCredentials
from mooring.client.kubeconfig.entries import KubeconfigError
from mooring.kit.clock import Clock

SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"

logger = logging.getLogger(__name__)


def is_in_cluster(environment: Mapping[str, str]) -> bool:
    """Whether the process runs in a pod, by its environment."""
    return bool(environment.get("KUBERNETES_SERVICE_HOST") and environment.get("KUBERNETES_SERVICE_PORT"))


def in_cluster_connection(
    clock: Clock, environment: Mapping[str, str], *, folder: str = SERVICE_ACCOUNT_FOLDER
) -> Connection:
    """Raises `KubeconfigError`."""
    if not is_in_cluster(environment):
        raise KubeconfigError(
            "unable to load in-cluster configuration, "
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined; or name a kubeconfig"
        )
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    token_file = Path(folder) / "token"
    if not token_file.is_file():
        raise KubeconfigError(f"{token_file}: there is no such file; is a service account mounted into this pod?")
    return Connection(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        authority=_content(Path(folder) / "ca.crt"),
        credentials=FileCredentials(clock, token_file=str(token_file)),
        namespace=_content(Path(folder) / "namespace").decode().strip() or "default",
    )


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        # As client-go: the certificate of the server may be known to the system.
        logger.error("%s cannot be read: %s", file, error.strerror)
        return b""
