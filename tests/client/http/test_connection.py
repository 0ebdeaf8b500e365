"""A connection is a value without secrets in its looks."""

from __future__ import annotations

from mooring.client.http.connection import ANONYMOUS, Certificate, Connection, FixedCredentials, Identity


def test_secrets_are_in_no_repr() -> None:
    identity = Identity("Bearer hush", Certificate(b"chain", b"hush"))
    assert "hush" not in repr(identity)
    assert "hush" not in repr(Connection("https://a", credentials=FixedCredentials(identity)))


def test_what_is_secure() -> None:
    assert Connection("https://a").is_secure
    assert not Connection("http://a").is_secure


def test_a_fixed_identity_is_never_renewed() -> None:
    credentials = FixedCredentials()
    assert credentials.identity_nowait() is ANONYMOUS
    assert not credentials.reject(ANONYMOUS)
