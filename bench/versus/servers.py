"""The control plane of a comparison: kube-apiserver on etcd, or `mooring up`, on loopback, without controllers.

1. The admission plugins ServiceAccount and TaintNodesByCondition are off: no controller creates accounts or removes
   the taint of new nodes.
2. All clients use the token of one administrator, whom API priority and fairness does not limit.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from bench.machine import free_port
from bench.processes import Program, running, wait_ready, write_kubeconfig

TOKEN = "bench-token"
DISABLED = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"
KEY_BITS = 2048
VERSION_S_MAX = 30.0


class Binaries(NamedTuple):
    """What is compared on what. Without kube-apiserver, `mooring up` is the API server."""

    etcd: str
    kube_apiserver: str
    kube_scheduler: str


class ControlPlane(NamedTuple):
    """An API server that is ready."""

    port: int
    kubeconfig: Path
    api_server: Program
    store: Program | None


def version_of(binary: str) -> str:
    """The last word of the first line that `--version` prints. Raises `OSError` or `ValueError`."""
    done = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=VERSION_S_MAX, check=False)
    words = done.stdout.split("\n", 1)[0].split()
    if done.returncode != 0 or not words:
        raise ValueError(f"{binary} --version ended with code {done.returncode}: {done.stderr.strip()[:200]!r}")
    return words[-1]


@contextmanager
def control_plane(binaries: Binaries, folder: Path) -> Iterator[ControlPlane]:
    """A new, empty cluster."""
    folder.mkdir()
    port = free_port()
    kubeconfig = write_kubeconfig(folder / "kubeconfig", port, TOKEN)
    with ExitStack() as stack:
        store: Program | None = None
        if binaries.kube_apiserver:
            client, peer = free_port(), free_port()
            store = stack.enter_context(running("etcd", _etcd(binaries.etcd, folder, client, peer), folder))
            command = _kube_apiserver(binaries.kube_apiserver, folder, port, client)
        else:
            command = [sys.executable, "-m", "mooring", "up", "--ephemeral", "--port", str(port), "--token", TOKEN]
            command += ["--kubeconfig", str(folder / "admin"), "--without", "scheduler,controllers,nodes", DISABLED]
        server = stack.enter_context(running("api server", command, folder))
        asyncio.run(wait_ready(server, port, TOKEN))
        yield ControlPlane(port, kubeconfig, server, store)


def _etcd(binary: str, folder: Path, client: int, peer: int) -> list[str]:
    url, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    return [
        *(binary, "--name=bench", f"--data-dir={folder / 'etcd'}", f"--initial-cluster=bench={peers}"),
        *(f"--listen-client-urls={url}", f"--advertise-client-urls={url}"),
        *(f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"),
    ]


def _kube_apiserver(binary: str, folder: Path, port: int, etcd: int) -> list[str]:
    tokens, key, public_key = folder / "tokens.csv", folder / "accounts.key", folder / "accounts.pub"
    tokens.write_text(f'{TOKEN},admin,1,"system:masters"\n', encoding="utf-8")
    private = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    public_key.write_bytes(private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return [
        *(binary, f"--etcd-servers=http://127.0.0.1:{etcd}", f"--cert-dir={folder / 'certificates'}"),
        *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={port}"),
        *("--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://bench"),
        *(f"--service-account-key-file={public_key}", f"--service-account-signing-key-file={key}"),
        *(f"--token-auth-file={tokens}", "--authorization-mode=RBAC", DISABLED),
    ]
