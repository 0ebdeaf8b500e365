"""A token is ours if we have signed it, and in no other case."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from mooring.apiserver.access import signed_tokens
from mooring.apiserver.access.certificates import new_key
from mooring.apiserver.access.signed_tokens import BadSignatureError, TokenSigner, unverified_part

SIGNER = TokenSigner(new_key())
CLAIMS = {"iss": "us", "sub": "somebody"}


def _part(content: object) -> str:
    return urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def _with_head(head: object) -> str:
    _, claims, signature = SIGNER.sign(CLAIMS).split(".")
    return f"{_part(head)}.{claims}.{signature}"


def test_what_was_signed_is_recognised() -> None:
    token = SIGNER.sign(CLAIMS)
    assert SIGNER.verified_claims(token) == CLAIMS
    assert unverified_part(token, 0) == {"alg": "ES256", "kid": SIGNER.key_id}
    assert unverified_part(token, 1) == CLAIMS


def _with_other_claims() -> str:
    head, _, signature = SIGNER.sign(CLAIMS).split(".")
    return f"{head}.{_part({'iss': 'us', 'sub': 'admin'})}.{signature}"


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(_with_other_claims(), id="other claims"),
        pytest.param(TokenSigner(new_key()).sign(CLAIMS), id="somebody else's signature"),
        pytest.param(_with_head({"alg": "none"}), id="a head that wants no signature"),
        pytest.param(_with_head({"alg": "HS256"}), id="a head that wants another signature"),
        pytest.param(_with_head({"alg": "ES256"}), id="a head that was not signed"),
        pytest.param(_with_head({"alg": "ES256", "kid": "x"}), id="somebody else's key"),
        pytest.param(_with_head(["ES256"]), id="a head that is no object"),
        pytest.param(SIGNER.sign(CLAIMS).rpartition(".")[0] + ".", id="no signature"),
        pytest.param(SIGNER.sign(CLAIMS)[:-8], id="half a signature"),
        pytest.param(SIGNER.sign(CLAIMS) + "é", id="letters that no token has"),
        pytest.param("a.b.c", id="no token"),
        pytest.param("", id="nothing"),
    ],
)
def test_unsigned_tokens_are_rejected(token: str) -> None:
    with pytest.raises(BadSignatureError):
        SIGNER.verified_claims(token)


@pytest.mark.parametrize("token", ["", "a.b", "a.b.c.d", "a.!!.c", f"a.{_part([1])}.c", "a.bm8.c", "a.é.c"])
def test_whatever_is_shown_can_be_looked_at(token: str) -> None:
    assert unverified_part(token, 1) is None


def test_others_can_check_tokens_with_the_public_key() -> None:
    document = SIGNER.public_key_document()
    assert {key: document[key] for key in ("use", "kty", "crv", "alg", "kid")} == {
        "use": "sig",
        "kty": "EC",
        "crv": "P-256",
        "alg": "ES256",
        "kid": SIGNER.key_id,
    }
    assert len(urlsafe_b64decode(document["x"] + "=")) == len(urlsafe_b64decode(document["y"] + "=")) == 32


def test_good_tokens_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signed_tokens, "GOOD_TOKENS_MAX", 3)
    signer = TokenSigner(new_key())
    for number in range(10):
        token = signer.sign({"n": number})
        assert not signer.knows(token)
        assert signer.verified_claims(token) == {"n": number}
        assert signer.knows(token)
    assert len(signer._good) <= 3


def test_a_key_on_another_curve_is_rejected() -> None:
    with pytest.raises(AssertionError, match="wants a key on P-256"):
        TokenSigner(ec.generate_private_key(ec.SECP384R1()))
