"""Pages: how a listing that was cut off goes on at the same revision.

Input: the key that comes next, and the revision of the listing.
Output: a token for the client; and from a token both again.

The token is the one of kube-apiserver: it holds the key relative to its folder, so that a client cannot read outside
of the folder by making one up.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

from mooring.client.errors import BadRequestError

_VERSION = "meta.k8s.io/v1"
INCONSISTENT = -1
"""As the revision of a token: go on as of now, whatever has changed since the list began."""


class _Token(msgspec.Struct, frozen=True):
    v: str
    rv: int
    start: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Token).decode


def continue_token(folder: str, next_key: str, revision: int) -> str:
    token = _Token(_VERSION, revision, next_key.removeprefix(folder))
    return urlsafe_b64encode(_encode(token)).rstrip(b"=").decode()


def read_continue_token(folder: str, text: str) -> tuple[str, int]:
    """The key to go on with and the revision to list at. Raises `BadRequestError`."""
    try:
        token = _decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, msgspec.DecodeError):
        raise BadRequestError("continue key is not valid") from None
    if token.v != _VERSION:
        raise BadRequestError(f"continue key is not valid: server does not recognize this encoded version {token.v}")
    if token.rv <= 0 and token.rv != INCONSISTENT:
        raise BadRequestError(
            f"continue key is not valid: incorrect encoded start resourceVersion (version {_VERSION})"
        )
    if not token.start:
        raise BadRequestError(f"continue key is not valid: encoded start key empty (version {_VERSION})")
    if ".." in token.start.split("/") or "//" in token.start:
        raise BadRequestError(f"continue key is not valid: {token.start}")
    return folder + token.start, token.rv
