"""Bodies of custom kinds: the metadata has a type, the rest is kept as it is.

Input: the body, its content type, and the kind of the path. Output: `CustomBody`: the document with canonical
metadata, repeated fields, unknown metadata fields.

1. The body must have a kind. The caller checks its version after pruning.
2. A repeated field replaces the first one; they are not merged.
3. Numbers are as in Go: 1.0 is no integer, nor is a number of more than 64 bits. `go_numbers` writes them as Go does
   (1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from mooring.api.document import Document
from mooring.api.schema.types import struct_named
from mooring.apiserver.wire.canonical import canonical
from mooring.apiserver.wire.decode import BodyKind, cannot_be_handled, raise_unrecognized, wrong_version
from mooring.apiserver.wire.examine import DecodingError, examine, repeated_fields
from mooring.apiserver.wire.identity import IdentityError, TypeMeta, identity_of
from mooring.apiserver.wire.json_text import (
    BodySyntaxError,
    Pairs,
    check_nesting,
    check_numbers,
    has_repeated_keys,
    parse_carefully,
    repeats_keys,
)
from mooring.apiserver.wire.media import BodyForm, UnsupportedMediaTypeError, body_form
from mooring.apiserver.wire.scalars import INT64_MAX, INT64_MIN, ScalarError, UnexpectedJsonType
from mooring.apiserver.wire.yaml_text import parse_yaml
from mooring.client.errors import BadRequestError

_FLOAT_WITHOUT_EXPONENT_MAX = 1e21


@dataclass(slots=True)
class CustomBody:
    """A decoded body of a custom kind."""

    document: Document
    identity: TypeMeta
    repeated: list[str]
    """Strict errors of repeated fields. They are reported before unknown fields."""
    unknown_metadata: list[str]
    """Strict errors: fields that metadata does not have."""

    def check_version(self, kind: BodyKind) -> None:
        """Reject a body of another version than that of the path. This is the last check."""
        if self.identity.api_version != kind.api_version:
            raise BadRequestError(wrong_version(self.identity.api_version, kind))


def decode_custom(data: bytes, content_type: str, kind: BodyKind) -> CustomBody:
    """The document of a body of a custom kind. Raises a 400 or 415."""
    form = body_form(content_type)
    if form is BodyForm.PROTOBUF:
        raise UnsupportedMediaTypeError(
            "the body of the request was in an unknown format - accepted media types include: "
            f"{BodyForm.JSON.value}, {BodyForm.YAML.value}"
        )
    raw, repeated = _read(data, form, kind)
    identity = _identity(raw, data, kind)
    try:
        metadata, unknown = custom_metadata(raw.get("metadata"))
    except DecodingError as error:
        raise BadRequestError(cannot_be_handled(identity, kind, str(error))) from error
    document = read_numbers(raw)
    document["metadata"] = metadata
    return CustomBody(document, identity, repeated, unknown)


def custom_metadata(raw: object) -> tuple[Document, list[str]]:
    """Canonical metadata, and the unknown fields in it. Raises `DecodingError`."""
    struct = struct_named("meta", "ObjectMeta")
    dropped: list[str] = []
    try:
        metadata = canonical(struct, raw, dropped)
    except (UnexpectedJsonType, ScalarError) as error:
        examine(struct, raw)
        raise DecodingError(str(error)) from error
    return metadata, examine(struct, raw, "metadata") if dropped else []


def read_numbers(value: Any) -> Any:
    """Untyped data with numbers as Go reads them."""
    match value:
        case dict():
            return {key: read_numbers(item) for key, item in value.items()}
        case list():
            return [read_numbers(item) for item in value]
        case int() if not isinstance(value, bool) and not INT64_MIN <= value <= INT64_MAX:
            return float(value)
        case _:
            return value


def go_numbers(value: Any) -> Any:
    """Untyped data with numbers as Go writes them."""
    match value:
        case dict():
            return {key: go_numbers(item) for key, item in value.items()}
        case list():
            return [go_numbers(item) for item in value]
        case float():
            return int(value) if value.is_integer() and abs(value) < _FLOAT_WITHOUT_EXPONENT_MAX else float(value)
        case int() if not isinstance(value, bool) and not INT64_MIN <= value <= INT64_MAX:
            return go_numbers(float(value))
        case _:
            return value


def _read(data: bytes, form: BodyForm, kind: BodyKind) -> tuple[Any, list[str]]:
    try:
        if form is BodyForm.YAML:
            return parse_yaml(data)
        try:
            value = msgspec.json.decode(data)
            check_nesting(data, value)
            is_json = True
            is_plain = type(value) is not dict or msgspec.json.encode(value) == data.rstrip(b" \t\r\n")
            check_numbers(data, value)
            if is_plain or not repeats_keys(data):
                return value, []
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            is_json = False
        careful = parse_carefully(data, is_json=is_json)
        check_numbers(data, careful)
        repeated = repeated_fields(careful) if has_repeated_keys(careful) else []
        return _last_wins(careful), repeated
    except BodySyntaxError as error:
        is_yaml = form is BodyForm.YAML
        text = str(error) if is_yaml else f"couldn't get version/kind; json parse error: {error}"
        raise_unrecognized(data, kind, text)


def _identity(raw: Any, data: bytes, kind: BodyKind) -> TypeMeta:
    try:
        identity = identity_of(raw, "", "", data)
    except IdentityError as error:
        raise_unrecognized(data, kind, str(error))
    if not identity.kind:
        raise_unrecognized(data, kind, f"Object 'Kind' is missing in '{data.decode('utf-8', 'replace')}'")
    return identity


def _last_wins(value: Any) -> Any:
    if isinstance(value, Pairs):
        return {key: _last_wins(item) for key, item in value.pairs}
    return [_last_wins(item) for item in value] if isinstance(value, list) else value
