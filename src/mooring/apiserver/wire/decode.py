"""Request bodies: from bytes to a canonical document, or to a patch.

Input: the body, its content type, and the kind of the path. Output: `DecodedBody`: the document and its strict errors;
a `Patch`; or a 400 or 415 with kube-apiserver's message.

1. kind and apiVersion default to those of the path.
2. The kind of the body decides how it is decoded: a Secret sent to /configmaps must be a valid Secret first, and is
   rejected afterwards.
3. The fast path is for bodies without errors: if the decoded value encodes to the same bytes, there are no repeated
   keys. All other bodies are decoded again by the slow path.
4. Repeated keys of a patch are strict errors, reported before those of its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import msgspec

from mooring.api.document import Document
from mooring.api.field_errors import json_type
from mooring.api.schema.types import Struct, struct_of_kind
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.registry.patches import Patch
from mooring.apiserver.wire.canonical import canonical
from mooring.apiserver.wire.examine import DecodingError, examine, examine_unstructured, repeated_fields, strict_text
from mooring.apiserver.wire.identity import (
    EXTENSIONS_GROUP,
    EXTENSIONS_SCHEME,
    INTERNAL_VERSION,
    LEGACY_SCHEME,
    OPTION_KINDS,
    OPTIONS_SCHEME,
    UNVERSIONED,
    IdentityError,
    TypeMeta,
    can_be_converted,
    identity_of,
    is_registered,
    no_conversion,
    not_registered,
    with_defaults,
)
from mooring.apiserver.wire.json_text import (
    BodySyntaxError,
    NumberText,
    check_nesting,
    check_numbers,
    has_repeated_keys,
    parse_carefully,
    plain,
    repeats_keys,
)
from mooring.apiserver.wire.media import BodyForm, body_form
from mooring.apiserver.wire.protobuf import ProtobufError, message, open_envelope
from mooring.apiserver.wire.scalars import ScalarError, UnexpectedJsonType
from mooring.apiserver.wire.yaml_text import parse_yaml, sorted_keys
from mooring.client.errors import BadRequestError
from mooring.client.interface import PatchForm

SUMMARY_LENGTH_MAX = 30
NOTHING_KNOWN: Mapping[str, Any] = {}


class BodyKind(Protocol):
    """The kind that a path requires: a row of `mooring.api.kinds`; a `TypeMeta` for Binding, Eviction and Scale."""

    @property
    def api_version(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def group(self) -> str: ...


@dataclass(slots=True)
class DecodedBody:
    """A decoded body."""

    document: Document
    strict_errors: list[str] = field(default_factory=list)
    """Unknown and repeated fields, for warnings. With Strict they are an error."""


def decode_body(
    data: bytes,
    content_type: str,
    kind: BodyKind,
    struct: Struct,
    field_validation: FieldValidation,
    also_accepted: Sequence[str] = (),
) -> DecodedBody:
    """The canonical document of a body that should be of this kind.

    `also_accepted` are other accepted API versions: evictions come as policy/v1 and policy/v1beta1.
    """
    body = _read(data, content_type, kind, struct)
    identity = body.identity
    if identity.kind != kind.kind or identity.api_version != kind.api_version:
        return _of_another_kind(body, kind, struct, field_validation, also_accepted)
    try:
        decoded = _canonical(body, struct, field_validation)
        if decoded.strict_errors and field_validation is FieldValidation.STRICT:
            raise DecodingError(strict_text(decoded.strict_errors))
    except DecodingError as error:
        raise BadRequestError(cannot_be_handled(identity, kind, str(error))) from error
    return decoded


def decode_options(data: bytes, content_type: str, struct: Struct) -> Document:
    """Options in the body of a DELETE, in the version of any group. Unknown fields are ignored."""
    expected = TypeMeta("v1", struct.name)
    try:
        body = _read_body(data, body_form(content_type), expected, struct)
        identity = body.identity
        if identity.kind != struct.name:
            raise DecodingError(_not_the_options(identity, struct.name))
        return _canonical(body, struct, FieldValidation.IGNORE).document
    except BodySyntaxError as error:
        raise BadRequestError(f"couldn't get version/kind; json parse error: {error}") from error
    except (IdentityError, ProtobufError, DecodingError) as error:
        raise BadRequestError(str(error)) from error


def canonical_object(
    struct: Struct, raw: Any, kind: BodyKind, canonical_parts: Mapping[str, Any] = NOTHING_KNOWN
) -> DecodedBody:
    """The canonical document of an object that is decoded already: of a patched one.

    Parts of `canonical_parts` are canonical already.
    Raises `DecodingError`; its text is the detail of a 422.
    """
    expected = TypeMeta(kind.api_version, kind.kind)
    try:
        identity = identity_of(raw, kind.api_version, kind.kind, b"")
    except IdentityError as error:
        raise DecodingError(str(error)) from error
    if identity != expected:
        _check_conversion(_Body(raw, raw, identity, []), kind)
    dropped: list[str] = []
    try:
        document = canonical(struct, raw, dropped, canonical_parts)
        found = examine(struct, sorted_keys(raw)) if dropped else []
    except (UnexpectedJsonType, ScalarError):
        found = examine(struct, sorted_keys(raw))  # Go patches maps, and writes them with their keys in order
        document = _with_numbers_as_written(_Body(raw, raw, expected, []), struct)
    return DecodedBody(_with_identity(document, expected), found)


def patched_strategically(
    struct: Struct, raw: Any, kind: BodyKind, canonical_parts: Mapping[str, Any] = NOTHING_KNOWN
) -> DecodedBody:
    """The same for the result of a strategic merge patch or of server-side apply, which Go decodes from maps."""
    dropped: list[str] = []
    try:
        document = canonical(struct, raw, dropped, canonical_parts)
        found = examine_unstructured(struct, raw) if dropped else []
    except (UnexpectedJsonType, ScalarError):
        found = examine_unstructured(struct, raw)
        document = plain(canonical(struct, _with_whole_numbers(raw), []))
    return DecodedBody(_with_identity(document, TypeMeta(kind.api_version, kind.kind)), found)


def cannot_be_handled(identity: TypeMeta, kind: BodyKind, error: str) -> str:
    return f'{identity.kind} in version "{identity.version}" cannot be handled as a {kind.kind}: {error}'


def summary(data: bytes) -> str:
    """The beginning of an invalid body, for the message."""
    if not data:
        return "<empty>"
    shown = data[:SUMMARY_LENGTH_MAX]
    dots = " ..." if len(data) > SUMMARY_LENGTH_MAX else ""
    return f"{shown.decode('utf-8', 'replace') if data.startswith(b'{') else shown.hex()}{dots}"


# --- reading ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Body:
    value: Any
    careful: Any
    """The same with repeated keys and numbers as written, or None if it has not been read that way."""
    identity: TypeMeta
    strict_errors: list[str]
    data: bytes = b""


def _read(data: bytes, content_type: str, kind: BodyKind, struct: Struct) -> _Body:
    try:
        return _read_body(data, body_form(content_type), kind, struct)
    except BodySyntaxError as error:
        form = body_form(content_type)
        text = str(error) if form is BodyForm.YAML else f"couldn't get version/kind; json parse error: {error}"
        raise_unrecognized(data, kind, text)
    except IdentityError as error:
        if error.identity is not None:
            raise BadRequestError(cannot_be_handled(error.identity, kind, str(error))) from error
        raise_unrecognized(data, kind, str(error))
    except ProtobufError as error:
        raise_unrecognized(data, kind, str(error))


def _read_body(data: bytes, form: BodyForm, kind: BodyKind, struct: Struct) -> _Body:
    match form:
        case BodyForm.PROTOBUF:
            return _read_protobuf(data, kind, struct)
        case BodyForm.YAML:
            value, strict_errors = parse_yaml(data)
            identity = identity_of(value, kind.api_version, kind.kind, data)
            return _Body({} if value is None else value, value, identity, strict_errors)
        case BodyForm.JSON:
            value, careful = _read_json(data)
            identity = identity_of(value if careful is None else careful, kind.api_version, kind.kind, data)
            return _Body({} if value is None else value, careful, identity, [], data)


def _read_json(data: bytes) -> tuple[Any, Any]:
    """The value, and its original form if it was needed."""
    try:
        value = msgspec.json.decode(data)
        check_nesting(data, value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        careful = parse_carefully(data)
        return plain(careful), careful
    if type(value) is not dict or msgspec.json.encode(value) == data.rstrip(b" \t\r\n") or not repeats_keys(data):
        return value, None
    careful = parse_carefully(data, is_json=True)
    return plain(careful), careful


def _read_protobuf(data: bytes, kind: BodyKind, struct: Struct) -> _Body:
    claimed_version, claimed_kind, raw = open_envelope(data)
    identity = with_defaults(claimed_version, claimed_kind or kind.kind, kind.api_version, b"")
    claimed = struct
    if identity.kind != kind.kind or identity.api_version != kind.api_version:
        claimed = struct_of_kind(identity.api_version, identity.kind) or struct
    try:
        value = message(claimed, raw)
    except ProtobufError as error:
        raise IdentityError(str(error), identity) from error
    return _Body(value, value, identity, [])


def raise_unrecognized(data: bytes, kind: BodyKind, error: str) -> NoReturn:
    raise BadRequestError(
        f"the object provided is unrecognized (must be of type {kind.kind}): {error} ({summary(data)})"
    )


# --- canonical documents ------------------------------------------------------------------------------------------


def _canonical(body: _Body, struct: Struct, validation: FieldValidation) -> DecodedBody:
    dropped: list[str] = []
    found: list[str] = []
    try:
        document = canonical(struct, body.value, dropped)
        if dropped or (body.careful is not None and has_repeated_keys(body.careful)):
            found = examine(struct, _as_written(body))
    except (UnexpectedJsonType, ScalarError):
        found = examine(struct, _as_written(body))
        document = _with_numbers_as_written(body, struct)
    strict_errors = [] if validation is FieldValidation.IGNORE else body.strict_errors + found
    return DecodedBody(_with_identity(document, body.identity), strict_errors)


def _with_numbers_as_written(body: _Body, struct: Struct) -> Document:
    """An object that is valid, although `canonical` rejects it: it has a quantity as a number such as `1e3`."""
    try:
        document = canonical(struct, plain(_as_written(body), numbers_as_written=True), [])
    except (UnexpectedJsonType, ScalarError) as error:
        raise DecodingError(str(error)) from error  # in a nested JSON schema, where errors have no path
    result: Document = plain(document)
    return result


def _with_whole_numbers(value: Any) -> Any:
    """2.0 as 2: an integer to this decoder. Other floats as they would be written, for quantities."""
    if isinstance(value, dict):
        return {key: _with_whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]
    if not isinstance(value, float):
        return value
    return int(value) if value.is_integer() else NumberText(repr(value))


def _as_written(body: _Body) -> Any:
    if body.careful is None and body.data:
        body.careful = parse_carefully(body.data, is_json=True)
    return body.careful if body.careful is not None else body.value


def _with_identity(document: Document, identity: TypeMeta) -> Document:
    """Kind and apiVersion come first, as Go writes them."""
    document.pop("kind", None)
    document.pop("apiVersion", None)
    return {"kind": identity.kind, "apiVersion": identity.api_version, **document}


def _of_another_kind(
    body: _Body, kind: BodyKind, struct: Struct, validation: FieldValidation, also_accepted: Sequence[str]
) -> DecodedBody:
    identity = body.identity
    try:
        _check_conversion(body, kind)
        if identity.api_version not in also_accepted:
            raise BadRequestError(wrong_version(identity.api_version, kind))
        decoded = _canonical(body, struct, validation)
    except DecodingError as error:
        raise BadRequestError(cannot_be_handled(identity, kind, str(error))) from error
    decoded.document["apiVersion"] = kind.api_version
    return decoded


def _check_conversion(body: _Body, kind: BodyKind) -> None:
    """Check that a body can be converted to the kind: only other versions of it can."""
    identity = body.identity
    is_convertible = can_be_converted(identity.group, identity.kind, kind.group, kind.kind)
    if identity.version == INTERNAL_VERSION and is_convertible:
        return
    is_extension = kind.group == EXTENSIONS_GROUP
    scheme = EXTENSIONS_SCHEME if is_extension else LEGACY_SCHEME
    if not is_registered(identity.api_version, identity.kind, scheme):
        raise DecodingError(not_registered(identity.api_version, identity.kind, scheme))
    claimed = struct_of_kind(identity.api_version, identity.kind)
    if claimed is not None:
        examine(claimed, _as_written(body))
    if not is_convertible:
        raise DecodingError(no_conversion(identity.version, identity.kind, kind.group, kind.kind))


def wrong_version(api_version: str, kind: BodyKind) -> str:
    return f"the API version in the data ({api_version}) does not match the expected API version ({kind.api_version})"


def _not_the_options(identity: TypeMeta, expected: str) -> str:
    if identity.api_version == "v1" and (identity.kind in OPTION_KINDS or identity.kind in UNVERSIONED):
        return f"converting (v1.{identity.kind}) to (v1.{expected}): unknown conversion"
    return not_registered(identity.api_version, identity.kind, OPTIONS_SCHEME)


_STEPS = "[]handlers.jsonPatchOp"
_OBJECT = "map[string]interface {}"
_STEP_FIELDS = ("op", "path", "from", "value")


def read_patch(data: bytes, form: PatchForm, call: Call) -> Patch:
    """The patch in a body. Raises `BadRequestError`."""
    if form is PatchForm.APPLY:
        return _read_apply(data, call)
    is_strategic = form is PatchForm.STRATEGIC
    try:
        content, errors = _read_json_patch(data)
    except BodySyntaxError as error:
        raise BadRequestError(str(error) if is_strategic else f"error decoding patch: {error}") from None
    expected_type = list if form is PatchForm.JSON else dict
    if content is None:
        if form is PatchForm.MERGE:
            raise BadRequestError("Invalid JSON Patch")
        content = expected_type()
    if not isinstance(content, expected_type):
        name = _STEPS if expected_type is list else _OBJECT
        text = f"json: cannot unmarshal {json_type(content)} into Go value of type {name}"
        raise BadRequestError(text if is_strategic else f"error decoding patch: {text}")
    if form is PatchForm.JSON:
        errors = [f"json patch {error}" for error in errors]
        errors += _strange_step_fields(content)
    return Patch(form, content, tuple(errors) if call.field_validation is not FieldValidation.IGNORE else ())


def _read_json_patch(data: bytes) -> tuple[object, list[str]]:
    try:
        content = msgspec.json.decode(data)
        check_nesting(data, content)
        check_numbers(data, content)
        if msgspec.json.encode(content) == data.rstrip():
            return content, []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    careful = parse_carefully(data)
    check_numbers(data, careful)
    return plain(careful), repeated_fields(careful) if has_repeated_keys(careful) else []


def _read_apply(data: bytes, call: Call) -> Patch:
    try:
        content, errors = parse_yaml(data)
    except BodySyntaxError as error:
        raise BadRequestError(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    if content is None:
        content = {}
    if not isinstance(content, dict):
        text = f"json: cannot unmarshal {json_type(content)} into Go value of type {_OBJECT}"
        raise BadRequestError(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {text}")
    if errors and call.field_validation is FieldValidation.STRICT:
        message = "error converting YAML to JSON: " + errors[0]
        raise BadRequestError(f"error strict decoding YAML: {message}")
    return Patch(PatchForm.APPLY, content, tuple(errors))


def _strange_step_fields(steps: object) -> list[str]:
    found: list[str] = []
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        for name in step if isinstance(step, dict) else ():
            if name not in _STEP_FIELDS:
                found.append(f'json patch unknown field "[{index}].{name}"')
    return found
