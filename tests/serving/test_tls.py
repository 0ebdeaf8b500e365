"""TLS settings of the secure port."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509

from mooring.serving.tls import ServingTls, ServingTlsError, self_signed, serving_context

NOW_S = 1_767_225_600.0


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        pytest.param(ServingTls("t", version_min="1.2"), "wanted one of VersionTLS10", id="a version of nobody's"),
        pytest.param(ServingTls("t", certificate_file="a"), "must be given together", id="half a pair"),
        pytest.param(ServingTls("t", certificate_file="a", key_file="b"), "a and b cannot be used", id="no such file"),
        pytest.param(ServingTls("t", ciphers=("TLS_NO_WITH_SUCH",)), "can be used", id="no such cipher"),
        pytest.param(ServingTls("t", more=("a",)), "wanted CERTIFICATE,KEY", id="no pair"),
    ],
)
def test_what_is_refused(asked: ServingTls, complaint: str) -> None:
    with pytest.raises(ServingTlsError, match=complaint):
        serving_context(asked, NOW_S)


def test_ciphers_are_known_by_their_other_names() -> None:
    wanted = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256")
    context = serving_context(ServingTls("t", ciphers=wanted), NOW_S)
    names = {cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"}
    assert names == {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"}


def test_versions() -> None:
    assert serving_context(ServingTls("t"), NOW_S).minimum_version is ssl.TLSVersion.TLSv1_2
    newest = serving_context(ServingTls("t", version_min="VersionTLS13"), NOW_S)
    assert newest.minimum_version is ssl.TLSVersion.TLSv1_3


def test_a_certificate_is_kept_where_it_was_asked_for(tmp_path: Path) -> None:
    asked = ServingTls("kube-scheduler", directory=str(tmp_path / "made"))
    serving_context(asked, NOW_S)
    first = (tmp_path / "made" / "kube-scheduler.crt").read_bytes()
    assert (tmp_path / "made" / "kube-scheduler.key").stat().st_mode & 0o77 == 0
    serving_context(asked, NOW_S)
    assert (tmp_path / "made" / "kube-scheduler.crt").read_bytes() == first


def test_a_certificate_that_signs_itself_names_its_hosts() -> None:
    certificate, _ = self_signed("kube-scheduler", ("localhost", "127.0.0.1"), NOW_S)
    parsed = x509.load_pem_x509_certificate(certificate)
    names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    parsed.verify_directly_issued_by(parsed)


def test_certificates_by_name(tmp_path: Path) -> None:
    certificate, key = self_signed("other", ("other.example",), NOW_S)
    (tmp_path / "c").write_bytes(certificate)
    (tmp_path / "k").write_bytes(key)
    pair = f"{tmp_path / 'c'},{tmp_path / 'k'}"
    for more in (pair, f"{pair}:*.example,one.example"):
        context = serving_context(ServingTls("t", more=(more,)), NOW_S)
        assert context.sni_callback is not None
