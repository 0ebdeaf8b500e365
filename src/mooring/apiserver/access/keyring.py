"""Certificates, keys and the kubeconfig of a cluster, in files.

    DIRECTORY/ca.crt          the certificate of the authority, for clients
    DIRECTORY/ca.pem          the authority, with its key
    DIRECTORY/server.pem      the server's certificate, with its key
    DIRECTORY/clients/*.pem   clients' certificates, with their keys
    DIRECTORY/tokens.key      the key that signs service account tokens

Input: a directory; hosts and identities for certificates. Output: certificates, TLS settings for the server, a
kubeconfig file.

1. Only the owner can read a file, from its creation on. A file is replaced atomically. A certificate and its key are in
   one file, so that they always match.
2. Valid files are used again, so that clients stay valid across restarts. An unreadable file is an error and is never
   overwritten, because it may be the only copy of a key.
3. A certificate is renewed when less than a third of its lifetime is left, and when the authority, the hosts, the user
   or the groups have changed.
4. A key that other users can write is an error. One that they can read is used, with a warning.
5. A kubeconfig file is replaced only if all its clusters have our name, unless the caller insists.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from mooring.api.document import Document
from mooring.api.yaml import YamlError, load_document
from mooring.apiserver.access.certificates import (
    CertificateAndKey,
    CertificateError,
    CertificateSubject,
    all_hosts,
    is_for,
    is_signed_by,
    key_pem,
    make_authority,
    make_client_certificate,
    make_server_certificate,
    names_hosts,
    needs_renewal,
    new_key,
    parse_certified,
    parse_key,
)
from mooring.kit.clock import Clock
from mooring.kit.temporary_directory import temporary_directory

OWNER_ONLY = 0o600
_OTHERS_READ = 0o044
_OTHERS_WRITE = 0o022
_DIRECTORY_OWNER_ONLY = 0o700
log = logging.getLogger(__name__)

_is_file_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*").fullmatch


class KeyringError(Exception):
    """A file of the directory is missing or invalid. The message names the file and the remedy."""


class Keyring:
    """The certificates of one server, below a directory that it owns."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        _make_directory(directory)

    def authority(self) -> CertificateAndKey:
        """The certificate authority. If it is replaced, all other certificates are created again."""
        found = self._usable("ca.pem", lambda certificate: True)
        if found is None:
            found = make_authority(self._clock.wall_s())
            self._keep("ca.pem", found)
        certificate = self._directory / "ca.crt"
        if not certificate.exists() or certificate.read_bytes() != found.certificate_pem:
            write_privately(certificate, found.certificate_pem)
        return found

    def server(self, hosts: Iterable[str] = ()) -> CertificateAndKey:
        """The server's certificate, for the usual hosts and these."""
        names, authority = all_hosts(hosts), self.authority()
        found = self._usable(
            "server.pem",
            lambda certificate: names_hosts(certificate, names) and is_signed_by(certificate, authority),
        )
        if found is None:
            found = make_server_certificate(authority, names, self._clock.wall_s())
            self._keep("server.pem", found)
        return found

    def client(self, identity: CertificateSubject) -> CertificateAndKey:
        """The certificate of a client."""
        authority, name = self.authority(), _client_file(identity)
        found = self._usable(
            name, lambda certificate: is_for(certificate, identity) and is_signed_by(certificate, authority)
        )
        if found is None:
            found = make_client_certificate(authority, identity, self._clock.wall_s())
            self._keep(name, found)
        return found

    def token_key(self) -> ec.EllipticCurvePrivateKey:
        """The key that signs service account tokens. It is never renewed, because all issued tokens would become
        invalid."""
        path = self._directory / "tokens.key"
        try:
            return parse_key(_read_private(path))
        except FileNotFoundError:
            key = new_key()
            write_privately(path, key_pem(key))
            return key
        except (CertificateError, OSError) as error:
            raise _unusable(path, error) from None

    def server_tls(self, hosts: Iterable[str] = ()) -> ssl.SSLContext:
        """TLS of the server. Client certificates are optional, and must be signed by our authority."""
        self.server(hosts)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._directory / "server.pem")
        context.load_verify_locations(cadata=self.authority().certificate_pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        # Clients offer HTTP/2 first; this server has HTTP/1.1 only.
        context.set_alpn_protocols(["http/1.1"])
        return context

    def show(self, identity: CertificateSubject, context: ssl.SSLContext) -> None:
        """Use a client certificate for outgoing connections."""
        self.client(identity)
        context.load_cert_chain(self._directory / _client_file(identity))

    def _usable(self, name: str, is_right: Callable[[x509.Certificate], bool]) -> CertificateAndKey | None:
        path = self._directory / name
        try:
            found = parse_certified(_read_private(path))
        except FileNotFoundError:
            return None
        except (CertificateError, OSError) as error:
            raise _unusable(path, error) from None
        is_old = needs_renewal(found.certificate, self._clock.wall_s())
        return found if not is_old and is_right(found.certificate) else None

    def _keep(self, name: str, certified: CertificateAndKey) -> None:
        path = self._directory / name
        _make_directory(path.parent)
        write_privately(path, certified.key_pem + certified.certificate_pem)


@contextlib.contextmanager
def ephemeral_keyring(clock: Clock) -> Iterator[Keyring]:
    """A keyring in a temporary directory. OpenSSL reads keys from files only."""
    with temporary_directory("mooring-keys-") as directory:
        yield Keyring(directory, clock)


def write_privately(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, atomically."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, OWNER_ONLY)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, OWNER_ONLY)  # left over from before, it might be readable by others
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=_DIRECTORY_OWNER_ONLY, parents=True, exist_ok=True)
    except OSError as error:
        raise KeyringError(f"cannot keep certificates in {directory}: {error.strerror or error}") from None


def _client_file(identity: CertificateSubject) -> str:
    name = identity.user.replace(":", "-")
    if not _is_file_name(name):
        raise KeyringError(f"the user name {identity.user!r} cannot be the name of a file; give it a plainer one")
    return f"clients/{name}.pem"


def _read_private(path: Path) -> bytes:
    """Read a file with a private key. Raises `CertificateError` if other users can write it."""
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if mode & _OTHERS_WRITE:
            raise CertificateError(f"other users can write it: mode {mode & 0o777:o}")
        if mode & _OTHERS_READ:
            log.warning("other users can read the private key %s; run chmod 600 on it, or have a new one made", path)
        return file.read()


def _unusable(path: Path, error: Exception) -> KeyringError:
    return KeyringError(f"{path} cannot be used ({error}); move it away to have a new one made")


CLUSTER_NAME = "mooring"


class KubeconfigFileError(Exception):
    """A kubeconfig cannot be written. The message has the cause and the remedy."""


@dataclass(frozen=True, slots=True)
class TokenCredential:
    token: str = field(repr=False)


def kubeconfig_document(
    server: str, authority_pem: bytes | None, user: str, credential: CertificateAndKey | TokenCredential | None
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
    """Writes the file, if there is none or it is one of ours. Raises `KubeconfigFileError`."""
    if not may_overwrite and path.exists() and not _is_ours(path):
        raise KubeconfigFileError(
            f"{path} exists and was not written by us: choose another path with --kubeconfig, or overwrite it with "
            "--overwrite-kubeconfig"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_privately(path, yaml.safe_dump(kubeconfig, sort_keys=False).encode())
    except OSError as error:
        raise KubeconfigFileError(f"cannot write the kubeconfig {path}: {error.strerror or error}") from None


def _user_entry(credential: CertificateAndKey | TokenCredential | None) -> Document:
    match credential:
        case CertificateAndKey():
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
