"""Decoding of the result of a strategic merge patch, which Go decodes field by field from maps.

Input: a patched object as plain JSON, and its `Struct`. Output: unknown fields, sorted; or `DecodingError` with the
message of this decoder.

1. The first value of a wrong type ends decoding. Fields are visited in the order of the type, not of the text.
2. Messages have no path: `cannot restore map from string`.
3. Numbers without a fractional part (`2.0`) are integers. A number that is too large for 32 bits overflows: it is
   changed in place, so that validation reports the overflown value.
"""

from __future__ import annotations

from mooring.api.schema.model import Basic, ListOf, MapOf, Scalar, Struct, Type
from mooring.apiserver.wire import scalars
from mooring.apiserver.wire.examine import DecodingError, go_name_of_field, go_name_of_item
from mooring.apiserver.wire.scalars import INT64_MAX, INT64_MIN

_GO_KINDS: dict[type, str] = {str: "string", bool: "bool", int: "int64", float: "float64", list: "slice", dict: "map"}
_NUMBER_KINDS = {
    Basic.INT: "int",
    Basic.INT32: "int32",
    Basic.INT64: "int64",
    Basic.FLOAT64: "float64",
}
_WHOLE = (Basic.INT, Basic.INT32, Basic.INT64)
_OWN_DECODERS = {
    Basic.QUANTITY: (scalars.quantity, ""),
    Basic.TIME: (scalars.time, "string"),
    Basic.MICRO_TIME: (scalars.micro_time, "string"),
    Basic.INT_OR_STRING: (scalars.int_or_string, "int32"),
}


_TEXT = Scalar(Basic.STRING, "string")


def examine_unstructured(struct: Struct, raw: object) -> list[str]:
    """The unknown fields of a patched object. Raises `DecodingError` if a type is wrong."""
    unknown: list[str] = []
    _struct(struct, raw, "", unknown)
    return sorted(f'unknown field "{path}"' for path in unknown)


def _struct(struct: Struct, raw: object, path: str, unknown: list[str]) -> None:
    if not isinstance(raw, dict):
        raise DecodingError(f"cannot restore struct from: {_go_kind(raw)}")
    for name in ("kind", "apiVersion") if struct.is_object else ():
        _value(_TEXT, raw.get(name), "string", name, unknown)
    for field in struct.fields.values():
        value = raw.get(field.name)
        if value is not None:
            name = go_name_of_field(struct, field)
            _value(field.type, value, name, f"{path}.{field.name}" if path else field.name, unknown)
            if isinstance(field.type, Scalar) and field.type.basic in _WHOLE:
                raw[field.name] = _overflown(field.type.basic, value)
    for key in raw:
        if key not in struct.fields and not (struct.is_object and key in ("kind", "apiVersion")):
            unknown.append(f"{path}.{key}" if path else key)


def _value(kind: Type, raw: object, name: str, path: str, unknown: list[str]) -> None:
    if raw is None:
        return
    match kind:
        case Struct():
            _struct(kind, raw, path, unknown)
        case MapOf():
            if not isinstance(raw, dict):
                raise DecodingError(f"cannot restore map from {_go_kind(raw)}")
            value_name = go_name_of_item(name, kind.value)
            for value in raw.values():  # the key is not part of the path in this decoder
                _value(kind.value, value, value_name, path, unknown)
        case ListOf():
            if not isinstance(raw, list):
                raise DecodingError(f"cannot restore slice from {_go_kind(raw)}")
            item_name = go_name_of_item(name, kind.item)
            for index, item in enumerate(raw):
                _value(kind.item, item, item_name, f"{path}[{index}]", unknown)
                if isinstance(kind.item, Scalar) and kind.item.basic in _WHOLE and item is not None:
                    raw[index] = _overflown(kind.item.basic, item)
        case Scalar():
            _scalar(kind, raw, name)


def _scalar(kind: Scalar, raw: object, name: str) -> None:
    basic = kind.basic
    if basic is Basic.STRING:
        if not isinstance(raw, str):
            _raise_type_error(raw, name, "string", is_convertible=type(raw) is int)
    elif basic is Basic.BOOL:
        if not isinstance(raw, bool):
            _raise_type_error(raw, name, "bool", is_convertible=False)
    elif basic in _NUMBER_KINDS:
        is_number = isinstance(raw, int | float) and not isinstance(raw, bool)
        is_whole = is_number and (basic is Basic.FLOAT64 or float(raw).is_integer())  # type: ignore[arg-type]
        if not is_whole:
            _raise_type_error(raw, name, _NUMBER_KINDS[basic], is_convertible=is_number)
    elif basic is Basic.BYTES:
        _bytes(raw)
    elif basic in _OWN_DECODERS:
        _own(basic, raw)


def _overflown(basic: Basic, number: float) -> int:
    """As the processor does it: what no 64 bits hold is the least number; of 64 bits, 32 are the lower ones."""
    whole = int(number)
    if not INT64_MIN <= whole <= INT64_MAX:
        whole = INT64_MIN
    return (whole + (1 << 31)) % (1 << 32) - (1 << 31) if basic is Basic.INT32 else whole


def _own(basic: Basic, raw: object) -> None:
    read, name = _OWN_DECODERS[basic]
    if isinstance(raw, float) and raw.is_integer():
        raw = int(raw)
    try:
        read(raw)
    except scalars.ScalarError as error:
        raise DecodingError(str(error)) from error
    except scalars.UnexpectedJsonType as error:
        number = f"number {raw!r}" if name == "int32" else "number"
        found = {"string": "string", "bool": "bool", "slice": "array", "map": "object"}.get(_go_kind(raw), number)
        raise DecodingError(f"json: cannot unmarshal {found} into Go value of type {name}") from error


def _bytes(raw: object) -> None:
    if isinstance(raw, list):
        return
    if not isinstance(raw, str):
        raise DecodingError(f"cannot restore slice from {_go_kind(raw)}")
    try:
        scalars.bytes_of_base64(raw)
    except scalars.BytesError as error:
        raise DecodingError(f"error decoding from json: {error}") from error


def _raise_type_error(raw: object, name: str, kind: str, *, is_convertible: bool) -> None:
    if is_convertible:
        raise DecodingError(f"cannot convert {_go_kind(raw)} to {name}")
    raise DecodingError(f"unrecognized type: {kind}")


def _go_kind(raw: object) -> str:
    return _GO_KINDS.get(type(raw), "map")
