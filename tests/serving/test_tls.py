"""TLS settings of the secure port, and trusted authorities."""

from __future__ import annotations

import ssl
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import pytest
from cryptography import x509

from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.serving.authentication import REFRESH_S, Authorities, AuthoritiesError, AuthorityFiles, ProxyRules
from mooring.serving.tls import ServingTls, ServingTlsError, self_signed, serving_context
from tests.serving.callers import Authority, Reviewer

NOW_S = 1_767_225_600.0


@pytest.mark.parametrize(
    ("tls_settings", "message"),
    [
        pytest.param(ServingTls("t", version_min="1.2"), "wanted one of VersionTLS10", id="an unknown version"),
        pytest.param(ServingTls("t", certificate_file="a"), "must be given together", id="a certificate without a key"),
        pytest.param(ServingTls("t", certificate_file="a", key_file="b"), "a and b cannot be used", id="no such file"),
        pytest.param(ServingTls("t", ciphers=("TLS_NO_WITH_SUCH",)), "can be used", id="no such cipher"),
        pytest.param(
            ServingTls("t", more=("a",)), "expected CERTIFICATE,KEY", id="a certificate without a key by name"
        ),
    ],
)
def test_invalid_tls_settings_are_rejected(tls_settings: ServingTls, message: str) -> None:
    with pytest.raises(ServingTlsError, match=message):
        serving_context(tls_settings, NOW_S)


def test_ciphers_are_accepted_by_their_iana_names() -> None:
    wanted = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256")
    context = serving_context(ServingTls("t", ciphers=wanted), NOW_S)
    names = {cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"}
    assert names == {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"}


def test_minimum_tls_version() -> None:
    assert serving_context(ServingTls("t"), NOW_S).minimum_version is ssl.TLSVersion.TLSv1_2
    newest = serving_context(ServingTls("t", version_min="VersionTLS13"), NOW_S)
    assert newest.minimum_version is ssl.TLSVersion.TLSv1_3


def test_a_generated_certificate_is_stored_and_reused(tmp_path: Path) -> None:
    tls_settings = ServingTls("kube-scheduler", directory=str(tmp_path / "made"))
    serving_context(tls_settings, NOW_S)
    first = (tmp_path / "made" / "kube-scheduler.crt").read_bytes()
    assert (tmp_path / "made" / "kube-scheduler.key").stat().st_mode & 0o77 == 0
    serving_context(tls_settings, NOW_S)
    assert (tmp_path / "made" / "kube-scheduler.crt").read_bytes() == first


@pytest.mark.parametrize(
    ("mode", "warning", "message"),
    [
        (0o600, "", ""),
        (0o640, "", ""),
        (0o644, "is world-readable", ""),
        (0o666, "", "it is world-writable .mode 666"),
    ],
)
def test_file_modes_of_keys(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warning: str, message: str
) -> None:
    certificate, key = self_signed("t", ("localhost",), NOW_S)
    (tmp_path / "t.crt").write_bytes(certificate)
    (tmp_path / "t.key").write_bytes(key)
    (tmp_path / "t.key").chmod(mode)
    tls_settings = ServingTls("t", certificate_file=str(tmp_path / "t.crt"), key_file=str(tmp_path / "t.key"))
    with pytest.raises(ServingTlsError, match=message) if message else nullcontext():
        serving_context(tls_settings, NOW_S)
    assert warning in caplog.text
    assert bool(caplog.text) == bool(warning)


def test_a_self_signed_certificate_contains_its_host_names() -> None:
    certificate, _ = self_signed("kube-scheduler", ("localhost", "127.0.0.1"), NOW_S)
    parsed = x509.load_pem_x509_certificate(certificate)
    names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    parsed.verify_directly_issued_by(parsed)


def test_additional_certificates_by_server_name(tmp_path: Path) -> None:
    certificate, key = self_signed("other", ("other.example",), NOW_S)
    (tmp_path / "c").write_bytes(certificate)
    (tmp_path / "k").write_bytes(key)
    pair = f"{tmp_path / 'c'},{tmp_path / 'k'}"
    for more in (pair, f"{pair}:*.example,one.example"):
        context = serving_context(ServingTls("t", more=(more,)), NOW_S)
        assert context.sni_callback is not None


# --- Trusted authorities from files and from the cluster -------------------------------------------------------------


CLIENTS, PROXIES = Authority("clients"), Authority("proxies")
PUBLISHED = {
    "client-ca-file": CLIENTS.pem.decode(),
    "requestheader-client-ca-file": PROXIES.pem.decode(),
    "requestheader-allowed-names": '["front-proxy"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}


def test_authorities_are_read_from_the_config_map() -> None:
    clock, trusted = VirtualClock(), list[bytes]()
    authorities = Authorities(
        AuthorityFiles(), cast(Client, Reviewer(config_map=PUBLISHED)), clock, trust_in_tls=trusted.append
    )
    run(authorities.read_config_map(), clock)
    trust = authorities.trust
    assert [client_authority.subject for client_authority in trust.client_authorities] == [CLIENTS.certificate.subject]
    assert [proxy_authority.subject for proxy_authority in trust.proxy_authorities] == [PROXIES.certificate.subject]
    assert trust.proxy == ProxyRules(
        ("front-proxy",), ("x-remote-user",), ("x-remote-uid",), ("x-remote-group",), ("x-remote-extra-",)
    )
    assert trusted == [PUBLISHED[name].encode() for name in ("client-ca-file", "requestheader-client-ca-file")]


def test_authority_files_take_precedence_over_the_config_map(tmp_path: Path) -> None:
    clock, reviewer = VirtualClock(), Reviewer(config_map=PUBLISHED)
    other = Authority("other")
    (tmp_path / "ca").write_bytes(other.pem)
    files = AuthorityFiles(str(tmp_path / "ca"), str(tmp_path / "ca"))
    authorities = Authorities(files, cast(Client, reviewer), clock, trust_in_tls=lambda pem: None)
    run(authorities.read_config_map(), clock)
    assert [client_authority.subject for client_authority in authorities.trust.client_authorities] == [
        other.certificate.subject
    ]
    assert reviewer.requests == []


def test_the_config_map_is_read_again_after_an_interval() -> None:
    clock, reviewer = VirtualClock(), Reviewer()

    async def main() -> None:
        authorities = Authorities(AuthorityFiles(), cast(Client, reviewer), clock, trust_in_tls=lambda pem: None)
        with pytest.raises(AuthoritiesError, match="reading the ConfigMap kube-system"):
            await authorities.read_config_map()
        async with TaskGroup("looking") as group:
            group.start_background(authorities.refresh(), name="looking")
            reviewer.config_map = PUBLISHED
            await clock.wait(REFRESH_S + 1)
        assert authorities.trust.client_authorities

    run(main(), clock)


@pytest.mark.parametrize(("content", "message"), [(None, "cannot be read"), (b"x", "has no valid certificates")])
def test_invalid_authority_files_are_rejected(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "ca").write_bytes(content)
    with pytest.raises(AuthoritiesError, match=message):
        Authorities(AuthorityFiles(str(tmp_path / "ca")), None, VirtualClock(), trust_in_tls=lambda pem: None)
