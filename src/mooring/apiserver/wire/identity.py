"""Identity: what a body says it is.

Comes in   a decoded body, and what its address would take it for
Goes out   its apiVersion and kind, or `IdentityError` in kube-apiserver's words

 1. What is absent is taken from the address, kind and version each for itself.
 2. Go reads these two fields, and only these, without regard to upper and lower case. The last one counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mooring.apiserver.wire.json_text import Pairs

_GO_TYPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_NO_IDENTITY = "couldn't get version/kind; json parse error: json: cannot unmarshal "


@dataclass(frozen=True, slots=True)
class Identity:
    """An apiVersion and a kind."""

    api_version: str
    kind: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]


class IdentityError(Exception):
    """A body that does not say properly what it is. `identity` is as much of it as could be read."""

    def __init__(self, text: str, identity: Identity | None = None) -> None:
        super().__init__(text)
        self.identity = identity


def identity_of(raw: Any, api_version: str, kind: str, data: bytes) -> Identity:
    """What a body is, `api_version` and `kind` being what it is if it does not say."""
    if raw is None:
        return Identity(api_version, kind)
    if not isinstance(raw, dict):
        raise IdentityError(f"{_NO_IDENTITY}{_json_type(raw)} into Go value of type {_GO_TYPE}")
    found_version, found_kind = _claims(raw)
    if found_version == api_version and found_kind == kind:
        return Identity(api_version, kind)
    return with_defaults(found_version, found_kind or kind, api_version, data)


def _claims(raw: dict[str, Any]) -> tuple[str, str]:
    claims = {"apiversion": "", "kind": ""}
    error: IdentityError | None = None
    for key, value in raw.pairs if isinstance(raw, Pairs) else raw.items():
        length = len(key)
        if length != 4 and length != 10:
            continue
        name = key.lower()
        if name not in claims or value is None:
            continue
        if isinstance(value, str):
            claims[name] = value
        elif error is None:
            field = "apiVersion" if name == "apiversion" else "kind"
            error = IdentityError(f"{_NO_IDENTITY}{_json_type(value)} into Go struct field .{field} of type string")
    if error is not None:
        raise error
    return claims["apiversion"], claims["kind"]


def with_defaults(claimed: str, kind: str, api_version: str, data: bytes) -> Identity:
    """What a claimed apiVersion means where `api_version` is wanted."""
    if claimed in ("", "/"):
        return Identity(api_version, kind)
    if claimed.count("/") > 1:
        raise IdentityError(f"unexpected GroupVersion string: {claimed}")
    group, slash, version = claimed.partition("/")
    if not slash:
        group, version = "", claimed
    default_group, _, default_version = api_version.rpartition("/")
    if not version and group == default_group:
        version = default_version
    identity = Identity(f"{group}/{version}" if group else version, kind)
    if not version:
        text = data.decode("utf-8", "replace")
        raise IdentityError(f"Object 'apiVersion' is missing in '{text}'", identity)
    return identity


def _json_type(raw: object) -> str:
    match raw:
        case bool():
            return "bool"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "number"
