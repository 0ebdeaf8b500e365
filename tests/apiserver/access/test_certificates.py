"""Certificates: subject and host names, validity period, and signature of the cluster's authority."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mooring.apiserver.access.certificates import (
    ADMIN,
    AUTHORITY_LIFETIME_S,
    LIFETIME_S,
    SCHEDULER,
    CertificateError,
    CertificateSubject,
    is_for,
    is_signed_by,
    make_authority,
    make_client_certificate,
    make_server_certificate,
    names_hosts,
    needs_renewal,
    new_key,
    parse_certified,
    parse_key,
)
from mooring.serving.tls import BACKDATED_S

NOW_S = 1_767_225_600.0
AUTHORITY = make_authority(NOW_S)


def test_an_authority_is_self_signed_and_may_sign_certificates() -> None:
    certificate = AUTHORITY.certificate
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.value.ca, constraints.critical) == (True, True)
    assert certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert is_signed_by(certificate, AUTHORITY)
    assert not is_signed_by(certificate, make_authority(NOW_S))


def test_a_server_certificate_contains_all_host_names_and_addresses() -> None:
    made = make_server_certificate(AUTHORITY, ["api.example", "192.0.2.7", "localhost"], NOW_S).certificate
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "api.example",
    ]
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    assert addresses == ["127.0.0.1", "::1", "10.96.0.1", "192.0.2.7"]
    usage = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert is_signed_by(made, AUTHORITY)
    assert names_hosts(made, ["192.0.2.7", "api.example"])
    assert not names_hosts(made, ["api.example"])
    assert not names_hosts(made, ["api.example", "192.0.2.7", "other"])


@pytest.mark.parametrize(
    ("identity", "name", "groups"),
    [
        (ADMIN, "admin", ["system:masters"]),
        (SCHEDULER, "system:kube-scheduler", []),
        (CertificateSubject("anna", ("a", "b")), "anna", ["a", "b"]),
    ],
)
def test_a_client_certificate_contains_the_user_name_and_groups(
    identity: CertificateSubject, name: str, groups: list[str]
) -> None:
    made = make_client_certificate(AUTHORITY, identity, NOW_S).certificate
    assert [each.value for each in made.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [name]
    assert [each.value for each in made.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == groups
    usage = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert is_for(made, identity)
    assert not is_for(made, CertificateSubject(name, ("other",)))


@pytest.mark.parametrize(
    ("age_s", "is_due"),
    [
        pytest.param(0, False, id="new"),
        pytest.param(-BACKDATED_S, False, id="made with a clock that is ahead"),
        pytest.param(-BACKDATED_S - 1, True, id="from the future"),
        pytest.param(LIFETIME_S * 0.66, False, id="with more than a third left"),
        pytest.param(LIFETIME_S * 0.67, True, id="with less than a third left"),
        pytest.param(LIFETIME_S + 1, True, id="expired"),
    ],
)
def test_needs_renewal_when_a_third_of_the_lifetime_is_left(age_s: float, is_due: bool) -> None:
    made = make_client_certificate(AUTHORITY, ADMIN, NOW_S)
    assert needs_renewal(made.certificate, NOW_S + age_s) is is_due


def test_a_certificate_expires_with_its_authority() -> None:
    late_s = NOW_S + AUTHORITY_LIFETIME_S - 100
    made = make_client_certificate(AUTHORITY, ADMIN, late_s).certificate
    assert made.not_valid_after_utc == AUTHORITY.certificate.not_valid_after_utc


def test_parse_certified_reads_what_was_written() -> None:
    made = make_client_certificate(AUTHORITY, ADMIN, NOW_S)
    read = parse_certified(made.key_pem + made.certificate_pem)
    assert read.certificate == made.certificate
    assert read.key.private_numbers() == made.key.private_numbers()


def _rsa_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _other_curve() -> bytes:
    key = ec.generate_private_key(ec.SECP384R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    ("pem", "message"),
    [
        pytest.param(b"", "no certificate", id="empty"),
        pytest.param(AUTHORITY.key_pem, "no certificate", id="only a key"),
        pytest.param(AUTHORITY.certificate_pem, "no key", id="only a certificate"),
        pytest.param(
            make_authority(NOW_S).key_pem + AUTHORITY.certificate_pem,
            "the key is not that of the certificate",
            id="a key of another certificate",
        ),
        pytest.param(_rsa_key() + AUTHORITY.certificate_pem, "the key is not on P-256", id="an RSA key"),
    ],
)
def test_parse_certified_rejects_a_key_that_does_not_match(pem: bytes, message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        parse_certified(pem)


def test_parse_key_rejects_another_curve() -> None:
    with pytest.raises(CertificateError, match="not on P-256"):
        parse_key(_other_curve())


def test_repr_of_an_authority_hides_the_key() -> None:
    assert "key" not in repr(AUTHORITY)


def test_every_certificate_has_its_own_key() -> None:
    assert new_key().private_numbers() != new_key().private_numbers()
    numbers = {make_client_certificate(AUTHORITY, ADMIN, NOW_S).certificate.serial_number for _ in range(3)}
    assert len(numbers) == 3
