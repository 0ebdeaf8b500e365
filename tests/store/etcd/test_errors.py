"""Errors of etcd and gRPC are converted to store errors.

Addresses of etcd: endpoints, TLS and credentials, and errors of invalid addresses.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.store.etcd.errors import (
    EtcdAddressWrong,
    EtcdAuthenticationRefused,
    EtcdCompacted,
    EtcdFull,
    EtcdRefused,
    EtcdRevisionAhead,
    EtcdTlsFailed,
    EtcdTokenExpired,
    EtcdUnreachable,
    copied,
    error_of_call,
)
from mooring.store.etcd.settings import EtcdAddress, EtcdTls, parse_address
from mooring.store.interface import StoreBusy, StoreError, StoreUnreachable, ValueTooLarge, WriteRefused


@pytest.mark.parametrize(
    ("code", "text_of_etcd", "kind"),
    [
        pytest.param(
            "OUT_OF_RANGE", "etcdserver: mvcc: required revision has been compacted", EtcdCompacted, id="compacted"
        ),
        pytest.param(
            "OUT_OF_RANGE", "etcdserver: mvcc: required revision is a future revision", EtcdRevisionAhead, id="future"
        ),
        pytest.param("INVALID_ARGUMENT", "etcdserver: request is too large", ValueTooLarge, id="too large"),
        pytest.param("RESOURCE_EXHAUSTED", "etcdserver: mvcc: database space exceeded", EtcdFull, id="full"),
        pytest.param("RESOURCE_EXHAUSTED", "etcdserver: too many requests", StoreBusy, id="busy"),
        pytest.param("UNAUTHENTICATED", "etcdserver: invalid auth token", EtcdTokenExpired, id="an expired token"),
        pytest.param(
            "INVALID_ARGUMENT",
            "etcdserver: authentication failed, invalid user ID or password",
            EtcdAuthenticationRefused,
            id="a wrong password",
        ),
        pytest.param("INVALID_ARGUMENT", "etcdserver: user name is empty", EtcdAuthenticationRefused, id="no user"),
        pytest.param(
            "PERMISSION_DENIED", "etcdserver: permission denied", EtcdAuthenticationRefused, id="no permission"
        ),
        pytest.param("UNAVAILABLE", "Connection refused", EtcdUnreachable, id="connection refused"),
        pytest.param("UNAVAILABLE", "Ssl handshake failed: CERTIFICATE_VERIFY_FAILED", EtcdTlsFailed, id="TLS"),
        pytest.param("DEADLINE_EXCEEDED", "Deadline Exceeded", EtcdUnreachable, id="timeout"),
        pytest.param("UNKNOWN", "etcdserver: server stopped", EtcdUnreachable, id="stopped"),
        pytest.param("FAILED_PRECONDITION", "etcdserver: something", EtcdRefused, id="another error"),
    ],
)
def test_error_class_of_each_error_of_etcd(code: str, text_of_etcd: str, kind: type[StoreError]) -> None:
    error = error_of_call(code, text_of_etcd, "host:1")
    assert type(error) is kind
    assert text_of_etcd in str(error)
    assert "etcd at host:1" in str(error)


def test_base_classes_of_etcd_errors() -> None:
    assert issubclass(EtcdTlsFailed, StoreUnreachable)
    assert issubclass(EtcdFull, WriteRefused)


def test_again_copies_an_error() -> None:
    error = error_of_call("UNAVAILABLE", "gone", "host:1")
    other = copied(error)
    assert other is not error
    assert (type(other), str(other)) == (type(error), str(error))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("etcd://host:1234", EtcdAddress(("host:1234",)), id="a host and a port"),
        pytest.param("etcd://host", EtcdAddress(("host:2379",)), id="default port"),
        pytest.param("etcd://host:1/", EtcdAddress(("host:1",)), id="trailing slash"),
        pytest.param("etcd://a:1,b:2,c", EtcdAddress(("a:1", "b:2", "c:2379")), id="several endpoints"),
        pytest.param("etcd://[::1]:99", EtcdAddress(("[::1]:99",)), id="IPv6"),
        pytest.param("etcd://[::1]", EtcdAddress(("[::1]:2379",)), id="IPv6 without a port"),
        pytest.param("http://a:1,http://b:2", EtcdAddress(("a:1", "b:2")), id="the format of kube-apiserver"),
        pytest.param("https://a:1", EtcdAddress(("a:1",), EtcdTls()), id="https is TLS"),
        pytest.param("etcds://a:1", EtcdAddress(("a:1",), EtcdTls()), id="etcds is TLS"),
        pytest.param("etcd://u:p%40s@a:1", EtcdAddress(("a:1",), None, "u", "p@s"), id="a user and a password"),
        pytest.param(
            "etcd://a:1?servername=etcd.example",
            EtcdAddress(("a:1",), EtcdTls(server_name="etcd.example")),
            id="a TLS option implies TLS",
        ),
    ],
)
def test_parse_address(text: str, expected: EtcdAddress) -> None:
    assert parse_address(text) == expected


def test_certificates_are_read_from_files(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(name)
    address = parse_address(f"etcd://a:1?cacert={tmp_path}/ca&cert={tmp_path}/cert&key={tmp_path}/key")
    assert address.tls == EtcdTls(b"ca", b"cert", b"key")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("host:2379", "cannot begin like 'host:2379'", id="without a scheme"),
        pytest.param("redis://host:2379", "cannot begin like", id="another scheme"),
        pytest.param("etcd://", "'' is no endpoint", id="no endpoint"),
        pytest.param("etcd://a:1,,b:1", "'' is no endpoint", id="an empty endpoint"),
        pytest.param("etcd://a:port", "'a:port' is no endpoint", id="a port that is not a number"),
        pytest.param("etcd://a:70000", "'a:70000' is no endpoint", id="an invalid port"),
        pytest.param("etcd://a:1/registry", "is no endpoint", id="a path"),
        pytest.param("http://a:1,https://b:1", "all begin with http://", id="two schemes"),
        pytest.param("etcd://user@a:1", "a user and a password, or neither", id="a user without a password"),
        pytest.param("etcd://a:1?cert=x", "a cert and a key, or neither", id="a certificate without its key"),
        pytest.param("etcd://a:1?colour=blue", "no option 'colour'", id="an unknown option"),
        pytest.param("etcd://a:1?cacert", "cannot be read", id="an option without a value"),
        pytest.param("etcd://a:1?cacert=/no/such", "/no/such (cacert", id="a missing file"),
    ],
)
def test_an_invalid_address_is_rejected_with_one_line(text: str, message: str) -> None:
    with pytest.raises(EtcdAddressWrong) as wrong:
        parse_address(text)
    assert message in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_repr_of_an_address_hides_the_password() -> None:
    assert "secret" not in repr(parse_address("etcd://user:secret@a:1"))
