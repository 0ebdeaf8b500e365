"""Decode JSON into typed views, by kind.

Input: objects as JSON bytes (from a store or a watch) or as dictionaries (from YAML). Output: views, or a `DecodeError`
that names the object, the field, the expected type and the value found.

 1. `mooring.api.kinds` lists all kinds and their views. Any other kind is unknown.
 2. Callers that know the kind (informers) use `decode_as`, which parses the bytes once. `decode` parses them twice, at
    first only for `apiVersion` and `kind`.
 3. `null` means absent, as in Kubernetes. The typed decoder rejects null, because accepting it would cost time for
    every field; a rejected object is decoded again without its nulls.
 4. `decode_items` decodes the items of a List in one pass, without copying each.
 5. Unknown fields are skipped: a newer API server may send them.

`UntypedObject` serves components that pass objects on: a view has lost the fields that it does not declare, and an
object that is sent to an extender must have all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeVar, cast

import msgspec

from mooring.api.document import without_nulls
from mooring.api.errors import DecodeError, UnknownKindError
from mooring.api.kinds import all_kinds
from mooring.api.views.meta import NO_METADATA, ApiObject, ObjectMeta, ObjectWithRaw, View

KINDS: tuple[type[ApiObject], ...] = tuple(kind.view for kind in all_kinds() if kind.view is not None)
"""The kinds that have a view."""

JsonBytes = bytes | memoryview | msgspec.Raw
AnyView = TypeVar("AnyView", bound=View)


class ViewDecoder(Protocol):
    """Decodes a view: the decoder of msgspec, or a registered one."""

    def decode(self, buf: JsonBytes, /) -> View: ...


def decode(raw: JsonBytes) -> ApiObject:
    """The view of one object, by the kind that the object itself names."""
    return decode_as(view_of(*_head_of(raw)), raw)


def decode_as(view: type[AnyView], raw: JsonBytes) -> AnyView:
    """The view of one object of a known kind. This is the hot path."""
    decoder = _decoders.get(view)
    if decoder is None:
        decoder = _decoders[view] = _decoder_of(view)
    try:
        return cast(AnyView, decoder.decode(raw))
    except (msgspec.ValidationError, UnicodeDecodeError):
        return _with_raw(convert_as(view, _plain_object(raw, view.__name__)), raw)
    except msgspec.DecodeError as error:
        raise DecodeError(view.__name__, "", "", f"expected JSON: {error}") from None


def convert(plain: Mapping[str, object]) -> ApiObject:
    """The view of one object that is already a dictionary, by the kind that it names."""
    return convert_as(view_of(*_identity_of(plain)), plain)


def convert_as(view: type[AnyView], plain: Mapping[str, object]) -> AnyView:
    """The view of a dictionary whose kind is known; `view` may also be a part, such as a selector."""
    try:
        return msgspec.convert(plain, view)
    except msgspec.ValidationError:
        non_null = without_nulls(plain)
    try:
        return msgspec.convert(non_null, view)
    except msgspec.ValidationError as error:
        raise _explain(view.__name__, plain, str(error)) from None


def convert_all(plain: Mapping[str, object]) -> list[ApiObject]:
    """The views of one object, or of all items of a list (`List`, `PodList`, ...)."""
    return [convert_as(view, item) for view, item in _flattened(plain)]


def decode_items(view: type[AnyView], raw: JsonBytes) -> list[AnyView] | None:
    """The views of all items of a List, read at one go. None if one of them needs a second look, or the view is not
    simply the fields of an object: then the items are to be read one by one."""
    decoder = _decoders.get(view)
    if decoder is not None and not isinstance(decoder, msgspec.json.Decoder):
        return None
    if issubclass(view, ObjectWithRaw):
        return None
    items_decoder = _items_decoders.get(view)
    if items_decoder is None:
        page = msgspec.defstruct(f"{view.__name__}Items", [("items", list[view] | None, None)])  # type: ignore[valid-type]
        items_decoder = _items_decoders[view] = msgspec.json.Decoder(page)
    try:
        return items_decoder.decode(raw).items or []
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def register_decoder(view: type[View], decoder: ViewDecoder) -> None:
    """Register the decoder of a view that is not simply the fields of an object."""
    _decoders[view] = decoder


def view_of(api_version: str, kind: str) -> type[ApiObject]:
    """The view class of a kind. Raises `UnknownKindError`."""
    view = _views.get((api_version, kind))
    if view is None:
        known_versions = tuple(sorted(version for version, known in _views if known == kind))
        raise UnknownKindError(api_version, kind, known_versions)
    return view


# --- the tables -------------------------------------------------------------------------------------------------


class _RawDecoder:
    """For views of objects that are written back."""

    def __init__(self, view: type[ObjectWithRaw]) -> None:
        self._decoder = msgspec.json.Decoder(view)

    def decode(self, buf: JsonBytes, /) -> View:
        return _with_raw(self._decoder.decode(buf), buf)


def _decoder_of(view: type[View]) -> ViewDecoder:
    return _RawDecoder(view) if issubclass(view, ObjectWithRaw) else msgspec.json.Decoder(view)


def _with_raw(view: AnyView, raw: JsonBytes) -> AnyView:
    if isinstance(view, ObjectWithRaw):
        msgspec.structs.force_setattr(view, "raw", bytes(raw))  # the view is frozen, but not yet shared
    return view


_views: dict[tuple[str, str], type[ApiObject]] = {(view.api_version, view.kind): view for view in KINDS}
_decoders: dict[type[View], ViewDecoder] = {view: _decoder_of(view) for view in KINDS}
_items_decoders: dict[type[View], msgspec.json.Decoder[Any]] = {}


class _TypeMeta(View):
    api_version: str | None = None
    kind: str | None = None


_head_decoder = msgspec.json.Decoder(_TypeMeta)


# --- lists and identities ---------------------------------------------------------------------------------------


def _head_of(raw: JsonBytes) -> tuple[str, str]:
    """`apiVersion` and `kind`, without reading the rest."""
    try:
        head = _head_decoder.decode(raw)
    except (msgspec.ValidationError, UnicodeDecodeError):
        return _identity_of(_plain_object(raw, "object"))
    except msgspec.DecodeError as error:
        raise DecodeError("", "", "", f"expected JSON: {error}") from None
    if not head.kind:
        raise DecodeError("", "", "kind", "expected the object's kind, found nothing")
    return head.api_version or "", head.kind


def _identity_of(plain: Mapping[str, object]) -> tuple[str, str]:
    api_version, kind = plain.get("apiVersion") or "", plain.get("kind") or ""
    for path, value in (("kind", kind), ("apiVersion", api_version)):
        if not isinstance(value, str):
            raise DecodeError("", _name_of(plain), path, f"expected a string, found {_described(value)}")
    if not kind:
        raise DecodeError("", _name_of(plain), "kind", "expected the object's kind, found nothing")
    return cast(str, api_version), cast(str, kind)


def _flattened(plain: Mapping[str, object]) -> Iterator[tuple[type[ApiObject], Mapping[str, object]]]:
    """Each single object with its view. The items of a `PodList` need not say that they are pods."""
    api_version, kind = _identity_of(plain)
    if (api_version, kind) in _views or not kind.endswith("List"):
        yield view_of(api_version, kind), plain
        return
    item_kind = kind.removesuffix("List")
    for index, item in enumerate(_items_of(kind, plain)):
        if not isinstance(item, Mapping):
            raise DecodeError(kind, "", f"items[{index}]", f"expected an object, found {_described(item)}")
        if item_kind and not item.get("kind"):
            yield view_of(api_version, item_kind), item
        else:
            yield from _flattened(item)


def _items_of(kind: str, plain: Mapping[str, object]) -> list[object]:
    items = plain.get("items")
    if items is None:
        return []
    if not isinstance(items, list):
        raise DecodeError(kind, "", "items", f"expected a list, found {_described(items)}")
    return items


def _plain_object(raw: JsonBytes, kind: str) -> Mapping[str, object]:
    try:
        plain = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError(kind, "", "", f"expected JSON: {error}") from None
    if not isinstance(plain, dict):
        raise DecodeError(kind, "", "", f"expected an object, found {_described(plain)}")
    return plain


# --- saying what is wrong ---------------------------------------------------------------------------------------

# A message of msgspec: "Expected `int | null`, got `str` - at `$.spec.priority`" or "Expected `int` <= 7 - at `$.lun`".
# An entry of a map is `[...]` there, and a map's key is "`key` in `$.metadata.labels`".
_MISMATCH = re.compile(
    r"Expected `(?P<expected>[^`]*)`(?P<bound> [<>]= -?\d+)?(?:, got `(?P<found>[^`]*)`)?"
    r"(?: - at (?P<key>`key` in )?`\$\.?(?P<path>.*)`)?"
)
_STEP = re.compile(r"\[\.\.\.\]|\[(?P<index>\d+)\]|\.?(?P<field>[^.\[]+)")
_WORDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
}


def _explain(kind: str, plain: Mapping[str, object], message: str) -> DecodeError:
    name = _name_of(plain)
    mismatch = _MISMATCH.fullmatch(message)
    if mismatch is None:  # another version of msgspec may have other messages
        return DecodeError(kind, name, "", message)
    expected_types = [expected for expected in mismatch["expected"].split(" | ") if expected != "null"]
    expected = " or ".join(_WORDS.get(expected, expected) for expected in expected_types)
    found_type = mismatch["found"] or "int"
    path, value = _located(plain, mismatch["path"] or "", found_type)
    found = f"a key that is {_WORDS.get(found_type, found_type)}" if mismatch["key"] else _described(value)
    return DecodeError(kind, name, path, f"expected {expected}{mismatch['bound'] or ''}, found {found}")


def _located(plain: object, path: str, found: str) -> tuple[str, object]:
    """The path with the keys of map entries (the decoder does not report them), and the value there."""
    spelled = ""
    value: object = plain
    for step in _STEP.finditer(path):
        if step["index"] is not None and isinstance(value, list):
            spelled += step[0]
            value = value[int(step["index"])]
        elif step["field"] is not None and isinstance(value, Mapping):
            spelled += f".{step['field']}" if spelled else step["field"]
            value = value.get(step["field"])
        elif isinstance(value, Mapping):
            key, value = next(
                ((key, entry) for key, entry in value.items() if _json_type(entry) == found), ("...", None)
            )
            spelled += f'["{key}"]'
    return spelled, value


def _json_type(value: object) -> str:
    match value:
        case Mapping():
            return "object"
        case list() | tuple():
            return "array"
        case _:
            return type(value).__name__


def _described(value: object) -> str:
    match value:
        case None:
            return "null"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"' if len(value) <= 40 else f'"{value[:37]}..."'
        case _:
            return str(value)


def _name_of(plain: Mapping[str, object]) -> str:
    metadata = plain.get("metadata")
    if not isinstance(metadata, Mapping):
        return ""
    return "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))


# --- whole objects --------------------------------------------------------------------------------------------


class UntypedObject(ApiObject):
    """An object of any kind, with its metadata and, for a pod, its node; the rest is not decoded."""

    node_name: str = ""
    raw: bytes = b""


class _Spec(View):
    node_name: str = ""


class _MetadataAndNode(View):
    metadata: ObjectMeta = NO_METADATA
    spec: _Spec = _Spec()


class _WholeDecoder:
    def __init__(self) -> None:
        self._head = msgspec.json.Decoder(_MetadataAndNode)

    def decode(self, raw: JsonBytes) -> UntypedObject:
        head = self._head.decode(raw)
        return UntypedObject(metadata=head.metadata, node_name=head.spec.node_name, raw=bytes(raw))


register_decoder(UntypedObject, _WholeDecoder())
