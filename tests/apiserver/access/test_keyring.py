"""Keyring: certificates and keys are stored, reused, renewed in time, and readable only by their owner."""

from __future__ import annotations

import ssl
import stat
from base64 import b64decode
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from mooring.apiserver.access.authentication import certificate_user
from mooring.apiserver.access.certificates import (
    ADMIN,
    AUTHORITY_LIFETIME_S,
    LIFETIME_S,
    CertificateSubject,
    make_authority,
    make_client_certificate,
)
from mooring.apiserver.access.keyring import (
    Keyring,
    KeyringError,
    KubeconfigFileError,
    TokenCredential,
    ephemeral_keyring,
    kubeconfig_document,
    write_kubeconfig,
    write_privately,
)
from mooring.kit.clock import SystemClock, VirtualClock


def _keyring(directory: Path, age_s: float = 0) -> Keyring:
    clock = VirtualClock()
    clock.advance_to(age_s)
    return Keyring(directory, clock)


def test_certificates_and_keys_are_reused(tmp_path: Path) -> None:
    first, second = _keyring(tmp_path), _keyring(tmp_path, age_s=1000)
    assert first.authority().certificate == second.authority().certificate
    assert first.server(["a"]).certificate == second.server(["a"]).certificate
    assert first.client(ADMIN).certificate == second.client(ADMIN).certificate
    assert first.token_key().private_numbers() == second.token_key().private_numbers()


PRIVATE_FILES = ("ca.pem", "server.pem", "clients/admin.pem", "tokens.key")


def use_all(keyring: Keyring) -> None:
    keyring.server()
    keyring.client(ADMIN)
    keyring.token_key()


@pytest.mark.parametrize("name", PRIVATE_FILES)
def test_a_key_that_others_can_write_is_not_used(tmp_path: Path, name: str) -> None:
    use_all(_keyring(tmp_path))
    (tmp_path / name).chmod(0o620)
    with pytest.raises(KeyringError, match=f"{name} cannot be used .other users can write it: mode 620"):
        use_all(_keyring(tmp_path))


@pytest.mark.parametrize("name", PRIVATE_FILES)
def test_a_key_that_others_can_read_is_used_with_a_warning(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    use_all(_keyring(tmp_path))
    assert caplog.text == ""
    (tmp_path / name).chmod(0o644)
    use_all(_keyring(tmp_path))
    assert f"other users can read the private key {tmp_path / name}; run chmod 600" in caplog.text


def test_old_certificates_are_renewed_without_a_new_authority(tmp_path: Path) -> None:
    young, old = _keyring(tmp_path), _keyring(tmp_path, age_s=LIFETIME_S * 0.7)
    authority, server, admin = young.authority(), young.server(), young.client(ADMIN)
    assert old.server().certificate != server.certificate
    assert old.client(ADMIN).certificate != admin.certificate
    assert old.authority().certificate == authority.certificate


def test_an_old_authority_is_replaced(tmp_path: Path) -> None:
    young, old = _keyring(tmp_path), _keyring(tmp_path, age_s=AUTHORITY_LIFETIME_S * 0.7)
    authority = young.authority()
    assert old.authority().certificate != authority.certificate
    assert (tmp_path / "ca.crt").read_bytes() == old.authority().certificate_pem


def test_certificates_of_another_authority_are_replaced(tmp_path: Path) -> None:
    keyring = _keyring(tmp_path)
    server, admin = keyring.server(), keyring.client(ADMIN)
    other = make_authority(VirtualClock().wall_s())
    write_privately(tmp_path / "ca.pem", other.key_pem + other.certificate_pem)
    assert keyring.server().certificate != server.certificate
    assert keyring.client(ADMIN).certificate != admin.certificate
    assert (tmp_path / "ca.crt").read_bytes() == other.certificate_pem


def test_other_hosts_or_groups_require_a_new_certificate(tmp_path: Path) -> None:
    keyring = _keyring(tmp_path)
    assert keyring.server(["a"]).certificate != keyring.server(["a", "b"]).certificate
    assert keyring.server(["b", "a"]).certificate == keyring.server(["a", "b"]).certificate
    anna = keyring.client(CertificateSubject("anna", ("devs",))).certificate
    assert keyring.client(CertificateSubject("anna", ("ops",))).certificate != anna


def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "keys"
    keyring = _keyring(directory)
    keyring.server()
    keyring.client(CertificateSubject("system:node:n1"))
    keyring.token_key()
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert sorted(path.relative_to(directory).as_posix() for path in files) == [
        "ca.crt",
        "ca.pem",
        "clients/system-node-n1.pem",
        "server.pem",
        "tokens.key",
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (directory, directory / "clients")} == {0o700}


@pytest.mark.parametrize("name", ["ca.pem", "server.pem", "clients/admin.pem", "tokens.key"])
def test_an_unreadable_key_file_is_not_overwritten(tmp_path: Path, name: str) -> None:
    keyring = _keyring(tmp_path)
    keyring.server()
    keyring.client(ADMIN)
    (tmp_path / name).write_text("something else")
    with pytest.raises(KeyringError, match="move it away to have a new one made"):
        keyring.server()
        keyring.client(ADMIN)
        keyring.token_key()
    assert (tmp_path / name).read_text() == "something else"


@pytest.mark.parametrize("name", ["../anna", "a/b", "", ".hidden"])
def test_a_user_name_that_is_not_a_file_name_is_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyringError, match="cannot be the name of a file"):
        _keyring(tmp_path).client(CertificateSubject(name))


def test_a_keyring_path_that_is_not_a_directory_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KeyringError, match="cannot keep certificates in"):
        _keyring(tmp_path / "file")


def test_an_ephemeral_keyring_is_deleted_at_exit() -> None:
    with ephemeral_keyring(VirtualClock()) as keyring:
        keyring.client(ADMIN)
        directory = keyring._directory
        assert directory.is_dir()
    assert not directory.exists()


def test_write_privately_replaces_a_file_atomically(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    write_privately(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o600)
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]
    with pytest.raises(IsADirectoryError):
        write_privately(tmp_path, b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]


# --- TLS: client and server in memory, with the system clock, because OpenSSL uses it ---------------------------


def _handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> ssl.SSLObject:
    """Complete a handshake and return the server's side."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(sides)
    for _ in range(10):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
    assert not waiting
    return sides[1]


def _client_tls(keyring: Keyring, directory: Path, identity: CertificateSubject | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=keyring.authority().certificate_pem.decode())
    if identity is not None:
        certified = keyring.client(identity)
        path = directory / "client.pem"
        write_privately(path, certified.key_pem + certified.certificate_pem)
        context.load_cert_chain(path)
    return context


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "kubernetes.default.svc", "api.example"])
def test_server_and_client_verify_each_other(tmp_path: Path, host: str) -> None:
    keyring = Keyring(tmp_path / "keys", SystemClock())
    server = keyring.server_tls(["api.example"])
    shaken = _handshake(server, _client_tls(keyring, tmp_path, ADMIN), host)
    shown = shaken.getpeercert(binary_form=True)
    assert shown is not None
    certified = certificate_user(shown)
    assert certified is not None
    assert (certified.user.name, certified.user.groups) == ("admin", ("system:masters",))
    assert x509.load_der_x509_certificate(shown) == keyring.client(ADMIN).certificate
    assert shaken.version() in ("TLSv1.2", "TLSv1.3")


def test_a_client_without_a_certificate_is_accepted(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path / "keys", SystemClock())
    shaken = _handshake(keyring.server_tls(), _client_tls(keyring, tmp_path, None), "localhost")
    assert shaken.getpeercert(binary_form=True) is None


def test_a_client_certificate_of_another_authority_is_rejected(tmp_path: Path) -> None:
    keyring, strangers = Keyring(tmp_path / "keys", SystemClock()), Keyring(tmp_path / "other", SystemClock())
    client = _client_tls(strangers, tmp_path, ADMIN)
    client.load_verify_locations(cadata=keyring.authority().certificate_pem.decode())
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        _handshake(keyring.server_tls(), client, "localhost")


def test_a_server_certificate_is_rejected_as_client_certificate(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path / "keys", SystemClock())
    server = keyring.server_tls()
    client = _client_tls(keyring, tmp_path, None)
    client.load_cert_chain(tmp_path / "keys" / "server.pem")
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        _handshake(server, client, "localhost")


OURS = kubeconfig_document("https://127.0.0.1:6443", b"PEM", "admin", TokenCredential("secret"))
THEIRS = {"clusters": [{"name": "production", "cluster": {}}]}


def test_write_kubeconfig_writes_a_file_for_kubectl(tmp_path: Path) -> None:
    path = tmp_path / ".kube" / "config"
    write_kubeconfig(path, OURS)
    assert yaml.safe_load(path.read_text()) == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "mooring",
                "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority-data": "UEVN"},
            }
        ],
        "users": [{"name": "admin", "user": {"token": "secret"}}],
        "contexts": [{"name": "admin@mooring", "context": {"cluster": "mooring", "user": "admin"}}],
        "current-context": "admin@mooring",
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_kubeconfig_contains_the_client_certificate_and_key() -> None:
    authority = make_authority(0)
    admin = make_client_certificate(authority, ADMIN, 0)
    user = kubeconfig_document("https://x", authority.certificate_pem, "admin", admin)["users"][0]["user"]
    assert b64decode(user["client-certificate-data"]) == admin.certificate_pem
    assert b64decode(user["client-key-data"]) == admin.key_pem


def test_a_kubeconfig_without_tls_and_without_credentials() -> None:
    plain = kubeconfig_document("http://x", None, "anybody", None)
    assert plain["clusters"][0]["cluster"] == {"server": "http://x"}
    assert plain["users"][0]["user"] == {}


def test_a_kubeconfig_of_mooring_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "config"
    write_kubeconfig(path, OURS)
    write_kubeconfig(path, kubeconfig_document("https://other", None, "admin", None))
    assert "https://other" in path.read_text()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(yaml.safe_dump(THEIRS), id="another cluster"),
        pytest.param(
            yaml.safe_dump({"clusters": [*THEIRS["clusters"], *OURS["clusters"]]}), id="our cluster and another"
        ),
        pytest.param("", id="empty"),
        pytest.param("clusters: []", id="without clusters"),
        pytest.param("- a\n- b\n", id="not a mapping"),
        pytest.param("{", id="not YAML"),
        pytest.param("clusters: {name: mooring}", id="clusters not a list"),
    ],
)
def test_a_foreign_kubeconfig_is_not_overwritten_unless_forced(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(KubeconfigFileError, match="exists and was not written by us: choose another path"):
        write_kubeconfig(path, OURS)
    assert path.read_text() == content
    write_kubeconfig(path, OURS, may_overwrite=True)
    assert yaml.safe_load(path.read_text()) == OURS


def test_write_kubeconfig_reports_an_unwritable_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KubeconfigFileError, match="cannot write the kubeconfig"):
        write_kubeconfig(tmp_path / "file" / "config", OURS)


def test_repr_of_a_token_credential_hides_the_token() -> None:
    assert "secret" not in repr(TokenCredential("secret"))
