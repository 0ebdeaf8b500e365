"""Connection and credentials: repr without secrets; tokens and certificates in files are read again after changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.api.kinds import POD
from mooring.client.errors import ForbiddenError, NotFoundError, UnauthorizedError
from mooring.client.http.connection import (
    ANONYMOUS,
    REREAD_S,
    Certificate,
    Connection,
    CredentialsError,
    FileCredentials,
    Identity,
    Pem,
    StaticCredentials,
    basic,
    bearer,
)
from mooring.kit.clock import SystemClock, VirtualClock
from tests.client.certificates import make_authority
from tests.client.contract_play import NS
from tests.client.http.play import HttpSetup, run_over_http


def test_repr_of_connection_and_identity_hides_secrets() -> None:
    identity = Identity("Bearer hush", Certificate(b"chain", b"hush"))
    assert "hush" not in repr(identity)
    assert "hush" not in repr(Connection("https://a", credentials=StaticCredentials(identity)))


def test_is_secure_depends_on_the_scheme() -> None:
    assert Connection("https://a").is_secure
    assert not Connection("http://a").is_secure


def test_static_credentials_are_never_renewed() -> None:
    credentials = StaticCredentials()
    assert credentials.identity_nowait() is ANONYMOUS
    assert not credentials.reject(ANONYMOUS)


def authorization(credentials: FileCredentials) -> str:
    identity = credentials.identity_nowait()
    assert identity is not None
    return identity.authorization


def test_a_token_file_is_read_again_after_an_interval(tmp_path: Path) -> None:
    clock, file = VirtualClock(), tmp_path / "token"
    credentials = FileCredentials(clock, token_file=str(file))
    file.write_text("one\n")
    assert authorization(credentials) == "Bearer one"
    file.write_text("two")
    clock.advance_to(REREAD_S - 1)
    assert authorization(credentials) == "Bearer one"
    clock.advance_to(REREAD_S)
    assert authorization(credentials) == "Bearer two"


def test_an_unchanged_token_file_keeps_the_identity(tmp_path: Path) -> None:
    clock, file = VirtualClock(), tmp_path / "token"
    file.write_text("one")
    credentials = FileCredentials(clock, token_file=str(file))
    first = credentials.identity_nowait()
    clock.advance_to(REREAD_S)
    assert credentials.identity_nowait() is first


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_a_missing_or_empty_token_file_keeps_the_last_token(tmp_path: Path, content: str | None) -> None:
    clock, file = VirtualClock(), tmp_path / "token"
    file.write_text("one")
    credentials = FileCredentials(clock, token_file=str(file))
    assert authorization(credentials) == "Bearer one"
    file.unlink() if content is None else file.write_text(content)
    clock.advance_to(REREAD_S)
    assert authorization(credentials) == "Bearer one"
    with pytest.raises(CredentialsError, match=r"credentials cannot be read: .*token"):
        FileCredentials(clock, token_file=str(file)).identity_nowait()


def test_a_readable_token_file_takes_precedence_over_the_token(tmp_path: Path) -> None:
    clock, file = VirtualClock(), tmp_path / "token"
    assert authorization(FileCredentials(clock, token="spare", token_file=str(file))) == "Bearer spare"
    file.write_text("one")
    assert authorization(FileCredentials(clock, token="spare", token_file=str(file))) == "Bearer one"


def test_a_rejected_certificate_is_read_again(tmp_path: Path) -> None:
    clock, certificate, key = VirtualClock(), tmp_path / "crt", tmp_path / "key"
    certificate.write_bytes(b"one")
    key.write_bytes(b"two")
    credentials = FileCredentials(
        clock, authorization="Basic x", certificate=Pem(path=str(certificate)), key=Pem(path=str(key))
    )
    first = credentials.identity_nowait()
    assert first is not None
    assert first.certificate is not None
    assert (first.certificate.chain, first.certificate.key, first.authorization) == (b"one", b"two", "Basic x")
    key.write_bytes(b"three")
    assert credentials.reject(first)
    assert credentials.identity_nowait() is not first


def test_bearer_and_basic_headers() -> None:
    assert (bearer(""), bearer("t"), basic("me", "pass")) == ("", "Bearer t", "Basic bWU6cGFzcw==")


def test_a_token_rejected_by_the_server_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")

    async def scenario(setup: HttpSetup) -> None:
        setup.server.tokens = {"old"}
        with pytest.raises(NotFoundError):
            await setup.client.get(POD, NS, "web")
        file.write_text("new")
        setup.server.tokens = {"new"}
        with pytest.raises(NotFoundError):
            await setup.client.get(POD, NS, "web")
        setup.server.tokens = {"newer"}
        setup.server.requests.clear()
        with pytest.raises(UnauthorizedError):
            await setup.client.get(POD, NS, "web")
        assert len(setup.server.requests) == 1, "an unchanged token is not sent again"
        assert setup.client.statistics()["renewals"] == 1

    authority = make_authority()
    run_over_http(
        scenario,
        security=authority.server_context(tmp_path, authority.issue("server", address="127.0.0.1")),
        authority=authority.pem,
        credentials=FileCredentials(SystemClock(), token_file=str(file)),
    )


def test_tokens_are_not_sent_over_plain_http() -> None:
    class UnusedCredentials:
        def identity_nowait(self) -> Identity | None:
            raise AssertionError("identity_nowait must not be called for plain HTTP")

        async def wait_identity(self) -> Identity:
            raise ForbiddenError("no")

        def reject(self, identity: Identity) -> bool:
            raise AssertionError("reject must not be called for plain HTTP")

    async def scenario(setup: HttpSetup) -> None:
        setup.server.tokens = {"secret"}
        with pytest.raises(UnauthorizedError):
            await setup.client.get(POD, NS, "web")
        assert "Authorization" not in setup.server.headers

    run_over_http(scenario, credentials=UnusedCredentials())
