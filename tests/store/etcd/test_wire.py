"""A wire connects, with TLS and a login where they are asked for; if it cannot, one line says why."""

from __future__ import annotations

import importlib
import ssl
from collections.abc import Iterator
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.store.etcd import wire as etcd_wire
from mooring.store.etcd.errors import EtcdAuthenticationRefused, EtcdNotInstalled, EtcdTlsFailed, EtcdUnreachable
from mooring.store.etcd.store import EtcdStore
from mooring.store.interface import StoreError
from tests.store.contract import PODS, WEB, gather
from tests.store.etcd.builders import HASTY, Etcd, play


async def write_and_read(store: EtcdStore) -> None:
    async with store.watch(PODS, since=await store.revision()) as watch:
        revision = await store.put(WEB, b"one")
        assert [change.revision for change in await gather(watch.next_batch, 1)] == [revision]
        assert await store.get(WEB) is not None


def refusal(url: str) -> StoreError:
    """What opening says."""

    async def scenario() -> StoreError:
        with pytest.raises(StoreError) as refused:
            await EtcdStore.open(url, SystemClock(), HASTY)
        return refused.value

    return run_real(scenario())


# ----------------------------------------------------------------------------------------------------- TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority (`ca`), and a certificate of its own for everybody on loopback (`cert`, `key`); and another `ca`."""
    directory = tmp_path_factory.mktemp("certificates")
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = issue("authority", authority_key, "authority", authority_key, is_authority=True)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = issue("etcd", key, "authority", authority_key, is_authority=False)
    other_key = ec.generate_private_key(ec.SECP256R1())
    other = issue("other", other_key, "other", other_key, is_authority=True)
    for name, each in (("ca", authority), ("cert", certificate), ("other", other)):
        (directory / name).write_bytes(each.public_bytes(serialization.Encoding.PEM))
    (directory / "key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return directory


def issue(
    name: str, key: ec.EllipticCurvePrivateKey, issuer: str, signer: ec.EllipticCurvePrivateKey, *, is_authority: bool
) -> x509.Certificate:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(1 + is_authority)
        .not_valid_before(datetime(2020, 1, 1))
        .not_valid_after(datetime(2020, 1, 1) + timedelta(days=36_500))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(signer, hashes.SHA256())
    )


@pytest.fixture(scope="module")
def etcd_with_tls(etcd_program: str, certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    context = ssl.create_default_context(cafile=str(certificates / "ca"))
    context.load_cert_chain(certificates / "cert", certificates / "key")
    options = ("--cert-file", "cert", "--key-file", "key", "--trusted-ca-file", "ca")
    paths = [each if each.startswith("--") else str(certificates / each) for each in options]
    etcd = Etcd(etcd_program, tmp_path_factory.mktemp("etcd"), *paths, "--client-cert-auth", tls=context)
    yield etcd
    etcd.kill()


def test_a_store_works_over_tls_with_a_client_certificate(etcd_with_tls: Etcd, certificates: Path) -> None:
    options = "&".join(f"{option}={certificates / file}" for option, file in (("cacert", "ca"), ("cert", "cert")))
    play(f"etcds://{etcd_with_tls.endpoint}?{options}&key={certificates / 'key'}", write_and_read)


def test_an_authority_that_did_not_sign_is_said_in_one_line(
    etcd_with_tls: Etcd, certificates: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    error = refusal(f"etcds://{etcd_with_tls.endpoint}?cacert={certificates / 'other'}")
    assert type(error) is EtcdTlsFailed
    assert "check cacert" in str(error)
    assert "\n" not in str(error)
    assert capfd.readouterr() == ("", ""), "grpc adds nothing of its own"


def test_an_etcd_with_tls_is_not_reached_without(etcd_with_tls: Etcd) -> None:
    assert isinstance(refusal(etcd_with_tls.url), EtcdUnreachable)


def test_an_etcd_without_tls_is_not_reached_with_it(etcd: Etcd) -> None:
    assert type(refusal(f"etcds://{etcd.endpoint}")) is EtcdTlsFailed


# --------------------------------------------------------------------------------------------------- logins


@pytest.fixture(scope="module")
def etcd_with_users(etcd_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    etcd = Etcd(etcd_program, tmp_path_factory.mktemp("etcd"))
    etcd.call("/v3/auth/user/add", {"name": "root", "password": "p@ss"})
    etcd.call("/v3/auth/user/add", {"name": "guest", "password": "guest"})
    etcd.call("/v3/auth/role/add", {"name": "root"})
    etcd.call("/v3/auth/user/grant", {"user": "root", "role": "root"})
    etcd.call("/v3/auth/enable", {})
    yield etcd
    etcd.kill()


def test_a_store_logs_in(etcd_with_users: Etcd) -> None:
    play(f"etcd://root:p%40ss@{etcd_with_users.endpoint}", write_and_read)


def test_a_store_logs_in_again_when_etcd_has_forgotten_it(etcd_with_users: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        await write_and_read(store)
        wire = store._endpoints._wires[0]
        wire._metadata = (("token", "forgotten.1"),)
        await write_and_read(store)

    play(f"etcd://root:p%40ss@{etcd_with_users.endpoint}", scenario)


def test_a_login_that_nobody_asks_for_does_no_harm(etcd: Etcd) -> None:
    play(f"etcd://somebody:secret@{etcd.endpoint}", write_and_read)


@pytest.mark.parametrize(
    ("login", "advice"),
    [
        pytest.param("", "put a user into the address", id="no user"),
        pytest.param("root:wrong@", "correct the user and the password", id="a wrong password"),
        pytest.param("guest:guest@", "grant the user", id="a user without rights"),
    ],
)
def test_who_is_not_let_in_is_told_so_in_one_line(etcd_with_users: Etcd, login: str, advice: str) -> None:
    error = refusal(f"etcd://{login}{etcd_with_users.endpoint}")
    assert isinstance(error, EtcdAuthenticationRefused)
    assert advice in str(error)
    assert "\n" not in str(error)


# ------------------------------------------------------------------------------------------- the library


def test_without_the_library_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}", name="aetcd")

    etcd_wire._library.cache_clear()
    monkeypatch.setattr(importlib, "import_module", missing)
    error = refusal("etcd://127.0.0.1:1")
    assert type(error) is EtcdNotInstalled
    assert str(error) == "a store on etcd needs aetcd: pip install 'mooring[etcd]'"
