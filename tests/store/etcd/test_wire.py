"""EtcdWire and EtcdEndpoints: TLS, logins, failover between endpoints, and writes with an unknown outcome.

EventStream: all changes from a revision on, and errors.
"""

from __future__ import annotations

import importlib
import ssl
from collections.abc import Awaitable, Callable, Iterator
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
from mooring.kit.tasks import TaskGroup
from mooring.store.etcd import wire as etcd_wire
from mooring.store.etcd.errors import (
    EtcdAuthenticationRefused,
    EtcdCompacted,
    EtcdNotInstalled,
    EtcdTlsFailed,
    EtcdUnreachable,
)
from mooring.store.etcd.settings import parse_address
from mooring.store.etcd.store import EtcdStore
from mooring.store.etcd.wire import EtcdWire, EventStream
from mooring.store.interface import OutcomeUnknown, StoreChange, StoreError
from tests.ports import silent_port
from tests.store.contract import PODS, WEB, gather, told
from tests.store.etcd.builders import HASTY, QUICK, Etcd, Proxy, once_reachable, play, until_noticed
from tests.waiting import LIMIT_S


async def write_and_read(store: EtcdStore) -> None:
    async with store.watch(PODS, since=await store.revision()) as watch:
        revision = await store.put(WEB, b"one")
        assert [change.revision for change in await gather(watch.next_batch, 1)] == [revision]
        assert await store.get(WEB) is not None


def open_error(url: str) -> StoreError:
    """The error of opening a store."""

    async def scenario() -> StoreError:
        with pytest.raises(StoreError) as refused:
            await EtcdStore.open(url, SystemClock(), HASTY)
        return refused.value

    return run_real(scenario())


# ----------------------------------------------------------------------------------------------------- TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority (`ca`), its certificate for 127.0.0.1 (`cert`, `key`), and another authority (`other`)."""
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
    paths = [option if option.startswith("--") else str(certificates / option) for option in options]
    etcd = Etcd(etcd_program, tmp_path_factory.mktemp("etcd"), *paths, "--client-cert-auth", tls=context)
    yield etcd
    etcd.kill()


def test_a_store_works_over_tls_with_a_client_certificate(etcd_with_tls: Etcd, certificates: Path) -> None:
    options = "&".join(f"{option}={certificates / file}" for option, file in (("cacert", "ca"), ("cert", "cert")))
    play(f"etcds://{etcd_with_tls.endpoint}?{options}&key={certificates / 'key'}", write_and_read)


def test_a_server_certificate_of_another_authority_is_an_error_in_one_line(
    etcd_with_tls: Etcd, certificates: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    error = open_error(f"etcds://{etcd_with_tls.endpoint}?cacert={certificates / 'other'}")
    assert type(error) is EtcdTlsFailed
    assert "check cacert" in str(error)
    assert "\n" not in str(error)
    assert capfd.readouterr() == ("", ""), "grpc must not write to the terminal"


def test_an_etcd_with_tls_is_unreachable_without_tls(etcd_with_tls: Etcd) -> None:
    assert isinstance(open_error(etcd_with_tls.url), EtcdUnreachable)


def test_an_etcd_without_tls_is_an_error_with_tls(etcd: Etcd) -> None:
    assert type(open_error(f"etcds://{etcd.endpoint}")) is EtcdTlsFailed


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


def test_a_store_authenticates_with_user_and_password(etcd_with_users: Etcd) -> None:
    play(f"etcd://root:p%40ss@{etcd_with_users.endpoint}", write_and_read)


def test_a_store_authenticates_again_after_its_token_became_invalid(etcd_with_users: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        await write_and_read(store)
        wire = store._endpoints._wires[0]
        wire._metadata = (("token", "forgotten.1"),)
        await write_and_read(store)

    play(f"etcd://root:p%40ss@{etcd_with_users.endpoint}", scenario)


def test_a_login_is_ignored_by_an_etcd_without_authentication(etcd: Etcd) -> None:
    play(f"etcd://somebody:secret@{etcd.endpoint}", write_and_read)


@pytest.mark.parametrize(
    ("login", "advice"),
    [
        pytest.param("", "put a user into the address", id="no user"),
        pytest.param("root:wrong@", "correct the user and the password", id="a wrong password"),
        pytest.param("guest:guest@", "grant the user", id="a user without permissions"),
    ],
)
def test_a_failed_login_is_an_error_with_advice_in_one_line(etcd_with_users: Etcd, login: str, advice: str) -> None:
    error = open_error(f"etcd://{login}{etcd_with_users.endpoint}")
    assert isinstance(error, EtcdAuthenticationRefused)
    assert advice in str(error)
    assert "\n" not in str(error)


# ------------------------------------------------------------------------------------------------- aetcd


def test_a_missing_aetcd_package_is_an_error_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}", name="aetcd")

    etcd_wire._library.cache_clear()
    monkeypatch.setattr(importlib, "import_module", missing)
    error = open_error("etcd://127.0.0.1:1")
    assert type(error) is EtcdNotInstalled
    assert str(error) == "a store on etcd needs aetcd: pip install 'mooring[etcd]'"


def test_an_unreachable_endpoint_is_skipped(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        await store.put(WEB, b"one")
        assert await store.get(WEB) is not None
        assert store.statistics()["endpoint_changes"] == 1

    with silent_port() as port:
        play(f"etcd://127.0.0.1:{port},{etcd.endpoint}", scenario)


def test_the_next_endpoint_is_used_when_an_endpoint_disconnects(etcd: Etcd) -> None:
    async def scenario() -> None:
        async with Proxy(etcd.endpoint) as first, Proxy(etcd.endpoint) as second:
            url = f"etcd://{first.endpoint},{second.endpoint}"
            async with await EtcdStore.open(url, SystemClock(), QUICK) as store:
                seen: list[StoreChange] = []
                async with store.watch(PODS, since=await store.revision()) as watch:
                    for gone, back in [(first, second), (second, first), (first, second)]:
                        await back.cut()
                        await back.mend()
                        await gone.cut()
                        await until_noticed(store, gone.endpoint)
                        await store.put(WEB, b"x")
                        assert await store.get(WEB) is not None
                        seen += await gather(watch.next_batch, 1)
                        await gone.mend()
                assert len(seen) == 3
                assert store.statistics()["endpoint_changes"] >= 3

    run_real(scenario())


@pytest.mark.parametrize("endpoints", [1, 2])
def test_an_unreachable_etcd_is_an_error_in_one_line(endpoints: int) -> None:
    async def scenario(url: str) -> None:
        with pytest.raises(EtcdUnreachable, match="cannot be reached") as unreachable:
            await EtcdStore.open(url, SystemClock(), HASTY)
        assert "\n" not in str(unreachable.value)
        assert ("none of 2 endpoints answers" in str(unreachable.value)) is (endpoints == 2)

    with silent_port() as one, silent_port() as other:
        run_real(scenario("etcd://" + ",".join(f"127.0.0.1:{port}" for port in (one, other)[:endpoints])))


def test_a_write_without_a_response_has_an_unknown_outcome_that_is_read_later(etcd_alone: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        async with store.watch(PODS, since=await store.revision()) as watch:
            (wire,) = store._endpoints._wires
            wire._request_s_max = 0.3
            etcd_alone.pause()
            with pytest.raises(OutcomeUnknown, match="may have been carried out"):
                await store.put(WEB, b"one")
            with pytest.raises(EtcdUnreachable, match="did not answer in time"):
                await store.get(WEB)
            wire._request_s_max = LIMIT_S
            etcd_alone.resume()
            found = await once_reachable(lambda: store.get(WEB))
            await store.put(WEB, b"two")
            # If the read did not return the first write, it may still be ordered before the second one.
            told: list[bytes | None] = []
            while told[-1:] != [b"two"]:
                told += [change.value for change in await gather(watch.next_batch, 1)]
            assert told in ([[b"one", b"two"]] if found is not None else [[b"two"], [b"one", b"two"]])
            assert store.statistics()["writes_outcome_unknown"] == 1

    play(etcd_alone.url, scenario, HASTY)


def test_a_write_that_was_not_sent_has_no_unknown_outcome(etcd_alone: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        etcd_alone.kill()
        await until_noticed(store, etcd_alone.endpoint)
        with pytest.raises(EtcdUnreachable):
            await store.put(WEB, b"one")
        etcd_alone.start()
        await once_reachable(lambda: store.get(WEB))
        await store.put(WEB, b"two")
        assert store.statistics()["writes_outcome_unknown"] == 0

    play(etcd_alone.url, scenario, HASTY)


def play_wire(etcd: Etcd, scenario: Callable[[EtcdWire], Awaitable[None]]) -> None:
    async def started() -> None:
        wire = EtcdWire(etcd.endpoint, parse_address(etcd.url), 2.0)
        try:
            await scenario(wire)
        finally:
            await wire.close()

    run_real(started())


async def read(stream: EventStream, count: int) -> list[StoreChange]:
    changes: list[StoreChange] = []
    while len(changes) < count:
        changes += await stream.next_changes()
    return changes


@pytest.mark.parametrize("has_previous", [True, False])
def test_changes_contain_the_previous_value_if_requested(etcd: Etcd, has_previous: bool) -> None:
    async def scenario(wire: EtcdWire) -> None:
        first = await wire.put(WEB, b"one", None)
        await wire.put(WEB, b"", None)
        last = await wire.delete(WEB, None)
        async with wire.stream(first, has_previous=has_previous) as stream:
            changes = await read(stream, 3)
        before = [None, b"one", b""] if has_previous else [None, None, None]
        assert told(changes) == [(WEB, b"one", before[0]), (WEB, b"", before[1]), (WEB, None, before[2])]
        assert [change.revision for change in changes] == [first, first + 1, last]

    play_wire(etcd, scenario)


def test_a_stream_from_a_compacted_revision_is_an_error_with_the_compacted_revision(etcd: Etcd) -> None:
    async def scenario(wire: EtcdWire) -> None:
        await wire.put(WEB, b"one", None)
        last = await wire.put(WEB, b"two", None)
        await wire.compact(last)
        async with wire.stream(last - 1) as stream:
            with pytest.raises(EtcdCompacted) as compacted:
                await read(stream, 1)
        assert compacted.value.compacted == last

    play_wire(etcd, scenario)


def test_a_cancelled_stream_is_an_error_for_its_reader(etcd: Etcd) -> None:
    async def scenario(wire: EtcdWire) -> None:
        async with wire.stream(await wire.revision() + 1) as stream:
            await stream.next_changes()

            async def wait() -> None:
                with pytest.raises(EtcdUnreachable, match="broken off"):
                    await stream.next_changes()

            async with TaskGroup("reading") as group:
                group.start(wait(), name="reader")
                stream.cancel()

    play_wire(etcd, scenario)
