"""What etcd and gRPC say becomes an error that says what to do."""

from __future__ import annotations

import pytest

from mooring.store.etcd.errors import (
    EtcdAhead,
    EtcdAuthenticationRefused,
    EtcdCompacted,
    EtcdFull,
    EtcdRefused,
    EtcdTlsFailed,
    EtcdTokenExpired,
    EtcdUnreachable,
    again,
    in_words,
)
from mooring.store.interface import StoreBusy, StoreError, StoreUnreachable, ValueTooLarge, WriteRefused


@pytest.mark.parametrize(
    ("code", "said", "kind"),
    [
        pytest.param("OUT_OF_RANGE", "etcdserver: mvcc: required revision has been compacted", EtcdCompacted, id="old"),
        pytest.param("OUT_OF_RANGE", "etcdserver: mvcc: required revision is a future revision", EtcdAhead, id="new"),
        pytest.param("INVALID_ARGUMENT", "etcdserver: request is too large", ValueTooLarge, id="too large"),
        pytest.param("RESOURCE_EXHAUSTED", "etcdserver: mvcc: database space exceeded", EtcdFull, id="full"),
        pytest.param("RESOURCE_EXHAUSTED", "etcdserver: too many requests", StoreBusy, id="busy"),
        pytest.param("UNAUTHENTICATED", "etcdserver: invalid auth token", EtcdTokenExpired, id="an old token"),
        pytest.param(
            "INVALID_ARGUMENT",
            "etcdserver: authentication failed, invalid user ID or password",
            EtcdAuthenticationRefused,
            id="a wrong password",
        ),
        pytest.param("INVALID_ARGUMENT", "etcdserver: user name is empty", EtcdAuthenticationRefused, id="no user"),
        pytest.param("PERMISSION_DENIED", "etcdserver: permission denied", EtcdAuthenticationRefused, id="no right"),
        pytest.param("UNAVAILABLE", "Connection refused", EtcdUnreachable, id="nobody listens"),
        pytest.param("UNAVAILABLE", "Ssl handshake failed: CERTIFICATE_VERIFY_FAILED", EtcdTlsFailed, id="TLS"),
        pytest.param("DEADLINE_EXCEEDED", "Deadline Exceeded", EtcdUnreachable, id="no answer in time"),
        pytest.param("UNKNOWN", "etcdserver: server stopped", EtcdUnreachable, id="it stops"),
        pytest.param("FAILED_PRECONDITION", "etcdserver: something", EtcdRefused, id="anything else"),
    ],
)
def test_each_complaint_has_its_error(code: str, said: str, kind: type[StoreError]) -> None:
    error = in_words(code, said, "host:1")
    assert type(error) is kind
    assert said in str(error)
    assert "etcd at host:1" in str(error)


def test_the_errors_have_their_places_in_the_tree() -> None:
    assert issubclass(EtcdTlsFailed, StoreUnreachable)
    assert issubclass(EtcdFull, WriteRefused)


def test_an_error_told_twice_is_two_errors_with_one_text() -> None:
    error = in_words("UNAVAILABLE", "gone", "host:1")
    other = again(error)
    assert other is not error
    assert (type(other), str(other)) == (type(error), str(error))
