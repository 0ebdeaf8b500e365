"""Errors of an object's types and fields, with the messages of Go's decoders.

Input: a JSON value (from `json_text`, with repeated keys and numbers as written) and its `Struct`. Output: strict
errors (`unknown field "spec.foo"`) in the order of the text; `DecodingError` for a wrong type.

1. The first value of a wrong type is remembered, and decoding goes on. A type with a decoder of its own (quantities,
   times, int-or-string) ends decoding at once, and its error wins.
2. Strict errors have a path with indices and map keys (`spec.containers[0].foo`). The path of a type error has
   neither, but the name of the enclosing struct and of inlined structs (`Volume.spec.volumes.VolumeSource.emptyDir`).
3. Strict errors are reported once each, at most 100 of them. fieldValidation decides: Ignore drops them, Warn makes
   each one a warning, Strict rejects the request with all of them.
4. Messages have Go's names of types: `[]v1.Container`, `map[string]string`, `v1.ResourceList`. Names that the schema
   does not have are in a table here.

The result of a strategic merge patch is plain JSON, which Go decodes field by field from maps (`examine_unstructured`):

5. The first value of a wrong type ends decoding. Fields are visited in the order of the type, not of the text, and
   unknown fields are sorted.
6. Messages have no path: `cannot restore map from string`.
7. Numbers without a fractional part (`2.0`) are integers. A number that is too large for 32 bits overflows: it is
   changed in place, so that validation reports the overflown value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from mooring.api.field_errors import json_type, quoted
from mooring.api.schema.types import Basic, Field, ListOf, MapOf, Scalar, Struct, Type
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.wire import scalars
from mooring.apiserver.wire.json_text import NumberText, Pairs
from mooring.apiserver.wire.scalars import INT64_MAX, INT64_MIN, NOT_A_SCHEMA, SCHEMA_VALUES

_RESOURCE_LIST = "v1.ResourceList"
_UID = "types.UID"

_BY_FIELD = {
    ("core", "NodeAllocatableResourceClaimStatus", "resources"): "map[v1.ResourceName]resource.Quantity",
    (
        "core",
        "PersistentVolumeClaimStatus",
        "allocatedResourceStatuses",
    ): "map[v1.ResourceName]v1.ClaimResourceStatus",
    ("authentication", "UserInfo", "extra"): "map[string]v1.ExtraValue",
    ("authorization", "SubjectAccessReviewSpec", "extra"): "map[string]v1.ExtraValue",
    ("batch", "UncountedTerminatedPods", "succeeded"): "[]types.UID",
    ("batch", "UncountedTerminatedPods", "failed"): "[]types.UID",
    ("resource", "CapacityRequirements", "requests"): "map[v1.QualifiedName]resource.Quantity",
    ("resource", "Device", "attributes"): "map[v1.QualifiedName]v1.DeviceAttribute",
    ("resource", "Device", "capacity"): "map[v1.QualifiedName]v1.DeviceCapacity",
    (
        "resource",
        "Device",
        "nodeAllocatableResourceMappings",
    ): "map[v1.ResourceName]v1.NodeAllocatableResourceMapping",
    ("resource", "DeviceRequestAllocationResult", "shareID"): _UID,
    ("resource", "DeviceRequestAllocationResult", "consumedCapacity"): "map[v1.QualifiedName]resource.Quantity",
    ("apiextensions", "JSONSchemaProps", "enum"): "[]v1.JSON",
    ("apiextensions", "JSONSchemaProps", "dependencies"): "v1.JSONSchemaDependencies",
    ("apiextensions", "JSONSchemaProps", "definitions"): "v1.JSONSchemaDefinitions",
    ("apiextensions", "JSONSchemaProps", "x-kubernetes-validations"): "v1.ValidationRules",
}


def go_name_of_field(struct: Struct, field: Field) -> str:
    """The Go type of a field, without the star of a pointer."""
    special = _BY_FIELD.get((struct.package, struct.name, field.name))
    if special is not None:
        return special
    if field.name == "uid" and go_name(field.type) == "string":
        return _UID
    if _is_quantities(field.type) and struct.package in ("core", "node"):
        return _RESOURCE_LIST
    return go_name(field.type)


def go_name_of_item(container: str, item: Type) -> str:
    """The Go type of what is in a list or a map, given the name of the whole."""
    if container.startswith("[]"):
        return container[2:]
    if container.startswith("map["):
        return container.partition("]")[2]
    return go_name(item)


def go_name(kind: Type) -> str:
    """The Go type by the schema."""
    match kind:
        case Scalar():
            return "interface {}" if kind.basic is Basic.ANY else kind.go_name
        case ListOf():
            return f"[]{go_name(kind.item)}"
        case MapOf():
            return f"map[string]{go_name(kind.value)}"
        case Struct():
            return f"v1.{kind.name}"


def _is_quantities(kind: Type) -> bool:
    return isinstance(kind, MapOf) and isinstance(kind.value, Scalar) and kind.value.basic is Basic.QUANTITY


STRICT_ERRORS_MAX = 100

_NAMES = ListOf(Scalar(Basic.STRING, "string"))


class DecodingError(Exception):
    """An object that cannot be decoded into its type; the message is Go's."""


def examine(struct: Struct, raw: object, strict_path: str = "") -> list[str]:
    """The unknown and repeated fields of an object. Raises `DecodingError` if a type is wrong."""
    examiner = _Examiner(strict_path)
    examiner.struct(struct, raw, go_name(struct))
    if examiner.remembered is not None:
        raise DecodingError(examiner.remembered)
    return list(examiner.strict)


def repeated_fields(raw: object) -> list[str]:
    """The repeated fields of an object without a type: of a patch, or of a custom resource."""
    examiner = _Examiner()
    examiner.anything(raw)
    return list(examiner.strict)


class _Examiner:
    """Walks an object and its type side by side."""

    def __init__(self, strict_path: str = "") -> None:
        self.strict: dict[str, None] = {}
        self.remembered: str | None = None
        self._steps = strict_path
        self._struct_name = ""
        self._outer_struct_name = ""
        """Of a value with a decoder of its own: Go adds the path inside of it, and keeps the struct outside of it."""
        self._fields: list[str] = []

    # ------------------------------------------------------------------------------------------- the walk

    def struct(self, struct: Struct, raw: object, name: str) -> None:
        if raw is None:
            return
        if not isinstance(raw, dict):
            self._mismatch(raw, name)
            return
        inlined = _inlined_names(struct)
        seen: set[str] = set()
        for key, value in _pairs(raw):
            field = struct.fields.get(key)
            if field is None:
                self._outside_of_fields(struct, key, seen)
                continue
            if key in seen:
                self._note("duplicate", key)
            seen.add(key)
            with self._field(struct, [*inlined.get(key, ()), key]):
                name = go_name_of_field(struct, field)
                if struct.name == "JSONSchemaProps" and key in SCHEMA_VALUES:
                    self._schema_value(struct, key, value, name)
                else:
                    self._value(field.type, value, name)

    def anything(self, raw: object) -> None:
        if isinstance(raw, list):
            for index, item in enumerate(raw):
                with self._step(f"[{index}]"):
                    self.anything(item)
        elif isinstance(raw, dict):
            self._map_keys(raw, self.anything)

    def _outside_of_fields(self, struct: Struct, key: str, seen: set[str]) -> None:
        if not (struct.is_object and key in ("kind", "apiVersion")):
            self._note("unknown", key)
        elif key in seen:
            self._note("duplicate", key)
        seen.add(key)

    def _value(self, kind: Type, raw: object, name: str) -> None:
        match kind:
            case Struct():
                self.struct(kind, raw, name)
            case ListOf():
                self._list(kind, raw, name)
            case MapOf():
                self._map(kind, raw, name)
            case Scalar():
                self._scalar(kind.basic, raw, name)

    def _list(self, kind: ListOf, raw: object, name: str) -> None:
        if raw is None:
            return
        if not isinstance(raw, list):
            self._mismatch(raw, name)
            return
        item_name = go_name_of_item(name, kind.item)
        for index, item in enumerate(raw):
            with self._step(f"[{index}]"):
                self._value(kind.item, item, item_name)

    def _map(self, kind: MapOf, raw: object, name: str) -> None:
        if raw is None:
            return
        if not isinstance(raw, dict):
            self._mismatch(raw, name)
            return
        value_name = go_name_of_item(name, kind.value)
        self._map_keys(raw, lambda value: self._value(kind.value, value, value_name))

    def _map_keys(self, raw: dict[str, object], visit: Callable[[object], None]) -> None:
        seen: set[str] = set()
        for key, value in _pairs(raw):
            if key in seen:
                self._note("duplicate", key)
            seen.add(key)
            with self._step(f".{key}" if self._steps else key):
                visit(value)

    # ------------------------------------------------------------------------------------------- single values

    def _scalar(self, basic: Basic, raw: object, name: str) -> None:
        if raw is None:
            return
        match basic:
            case Basic.STRING if not isinstance(raw, str):
                self._mismatch(raw, name)
            case Basic.BOOL if not isinstance(raw, bool):
                self._mismatch(raw, name)
            case Basic.INT32:
                self._number(scalars.int32, raw, name)
            case Basic.INT64 | Basic.INT:
                self._number(scalars.int64, raw, name)
            case Basic.FLOAT64:
                self._number(scalars.float64, raw, name)
            case Basic.BYTES:
                self._bytes(raw, name)
            case Basic.QUANTITY:
                self._ending(scalars.quantity, raw, name)
            case Basic.TIME:
                self._ending(scalars.time, raw, "string")
            case Basic.MICRO_TIME:
                self._ending(scalars.micro_time, raw, "string")
            case Basic.INT_OR_STRING:
                self._ending(scalars.int_or_string, raw, "int32")
            case Basic.DURATION if not isinstance(raw, str):
                raise DecodingError(self._mismatch_text(raw, "string"))
            case _:
                pass

    def _number(self, read: Callable[[object], object], raw: object, name: str) -> None:
        try:
            read(raw)
        except scalars.UnexpectedJsonType:
            self._mismatch(raw, name, with_number=True)

    def _bytes(self, raw: object, name: str) -> None:
        if isinstance(raw, list):
            for item in raw:
                if item is not None and not (type(item) is int and 0 <= item < 256):
                    self._mismatch(item, "uint8", with_number=True)
            return
        if not isinstance(raw, str):
            self._mismatch(raw, name)
            return
        try:
            scalars.bytes_of_base64(raw)
        except scalars.BytesError as error:
            self.remembered = self.remembered or str(error)

    def _ending(self, read: Callable[[object], object], raw: object, name: str) -> None:
        """An error of a type with its own decoder, which ends decoding."""
        try:
            read(raw)
        except scalars.ScalarError as error:
            raise DecodingError(str(error)) from error
        except scalars.UnexpectedJsonType as error:
            raise DecodingError(self._mismatch_text(raw, name, with_number=name == "int32")) from error

    # ------------------------------------------------------------------------------------------- schemas in schemas

    def _schema_value(self, schema: Struct, key: str, raw: object, name: str) -> None:
        """A value that may be a schema or something else: it has a decoder of its own, which is not strict."""
        if key == "dependencies":
            if raw is not None and not isinstance(raw, dict):
                self._mismatch(raw, name)
            for value in raw.values() if isinstance(raw, dict) else ():
                self._examine_nested(schema if isinstance(value, dict) else _NAMES, value)
        elif isinstance(raw, dict):
            self._examine_nested(schema, raw)
        elif key == "items":
            self._examine_nested(ListOf(schema), raw)
        elif raw is not None and not isinstance(raw, bool):
            raise DecodingError(NOT_A_SCHEMA)

    def _examine_nested(self, kind: Type, raw: object) -> None:
        if not isinstance(raw, dict | list):
            return
        inner = _Examiner()
        inner._fields = list(self._fields)
        inner._struct_name = inner._outer_struct_name = self._struct_name
        inner._value(kind, raw, go_name(kind))
        if inner.remembered is not None:
            raise DecodingError(inner.remembered)

    # ------------------------------------------------------------------------------------------- paths and notes

    @contextmanager
    def _field(self, struct: Struct, names: list[str]) -> Iterator[None]:
        struct_name, length = self._struct_name, len(self._fields)
        self._struct_name = struct.name
        self._fields += names
        with self._step(f".{names[-1]}" if self._steps else names[-1]):
            yield
        del self._fields[length:]
        self._struct_name = struct_name

    @contextmanager
    def _step(self, step: str) -> Iterator[None]:
        steps = self._steps
        self._steps = steps + step
        yield
        self._steps = steps

    def _note(self, sort: str, key: str) -> None:
        if len(self.strict) < STRICT_ERRORS_MAX:
            self.strict[f"{sort} field {quoted(f'{self._steps}.{key}' if self._steps else key)}"] = None

    def _mismatch(self, raw: object, name: str, *, with_number: bool = False) -> None:
        self.remembered = self.remembered or self._mismatch_text(raw, name, with_number=with_number)

    def _mismatch_text(self, raw: object, name: str, *, with_number: bool = False) -> str:
        struct_name = self._outer_struct_name or self._struct_name
        where = f"struct field {struct_name}.{'.'.join(self._fields)}" if self._fields else "value"
        return f"json: cannot unmarshal {_shown_type(raw, with_number)} into Go {where} of type {name}"


def _pairs(raw: dict[str, object]) -> Iterable[tuple[str, object]]:
    return raw.pairs if isinstance(raw, Pairs) else raw.items()


def _inlined_names(struct: Struct) -> dict[str, tuple[str, ...]]:
    """By field: the structs that it is inlined from, outermost first."""
    names: dict[str, tuple[str, ...]] = {}
    for part in struct.messages.values():
        if isinstance(part, Struct):
            inner = _inlined_names(part)
            for field in part.fields:
                names[field] = (part.name, *inner.get(field, ()))
    return names


def _shown_type(raw: object, with_number: bool) -> str:
    """The JSON type of a value; of a number with its text, where Go quotes it."""
    shown = json_type(raw)
    if shown != "number" or not with_number:
        return shown
    return f"number {raw.text if isinstance(raw, NumberText) else repr(raw)}"


YAML_ERRORS = "yaml: unmarshal errors:"


def strict_text(errors: Sequence[str]) -> str:
    """All errors in one message."""
    return f"strict decoding error: {', '.join(errors)}"


def apply_field_validation(errors: Sequence[str], call: Call) -> str | None:
    """Add warnings to the call (Warn), or return the message of the error (Strict)."""
    if not errors:
        return None
    match call.field_validation:
        case FieldValidation.STRICT:
            return strict_text(errors)
        case FieldValidation.WARN:
            for text in warnings(errors):
                call.warn(text)
    return None


def warnings(errors: Sequence[str]) -> list[str]:
    """Each error as a warning. The errors of YAML are several in one."""
    texts: list[str] = []
    for error in errors:
        if error.startswith(YAML_ERRORS):
            texts += [line.strip() for line in error.removeprefix(YAML_ERRORS).splitlines() if line.strip()]
        else:
            texts.append(error)
    return texts


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
    _restore_struct(struct, raw, "", unknown)
    return sorted(f'unknown field "{path}"' for path in unknown)


def _restore_struct(struct: Struct, raw: object, path: str, unknown: list[str]) -> None:
    if not isinstance(raw, dict):
        raise DecodingError(f"cannot restore struct from: {_go_kind(raw)}")
    for name in ("kind", "apiVersion") if struct.is_object else ():
        _restore_value(_TEXT, raw.get(name), "string", name, unknown)
    for field in struct.fields.values():
        value = raw.get(field.name)
        if value is not None:
            name = go_name_of_field(struct, field)
            _restore_value(field.type, value, name, f"{path}.{field.name}" if path else field.name, unknown)
            if isinstance(field.type, Scalar) and field.type.basic in _WHOLE:
                raw[field.name] = _overflown(field.type.basic, value)
    for key in raw:
        if key not in struct.fields and not (struct.is_object and key in ("kind", "apiVersion")):
            unknown.append(f"{path}.{key}" if path else key)


def _restore_value(kind: Type, raw: object, name: str, path: str, unknown: list[str]) -> None:
    if raw is None:
        return
    match kind:
        case Struct():
            _restore_struct(kind, raw, path, unknown)
        case MapOf():
            if not isinstance(raw, dict):
                raise DecodingError(f"cannot restore map from {_go_kind(raw)}")
            value_name = go_name_of_item(name, kind.value)
            for value in raw.values():  # the key is not part of the path in this decoder
                _restore_value(kind.value, value, value_name, path, unknown)
        case ListOf():
            if not isinstance(raw, list):
                raise DecodingError(f"cannot restore slice from {_go_kind(raw)}")
            item_name = go_name_of_item(name, kind.item)
            for index, item in enumerate(raw):
                _restore_value(kind.item, item, item_name, f"{path}[{index}]", unknown)
                if isinstance(kind.item, Scalar) and kind.item.basic in _WHOLE and item is not None:
                    raw[index] = _overflown(kind.item.basic, item)
        case Scalar():
            _restore_scalar(kind, raw, name)


def _restore_scalar(kind: Scalar, raw: object, name: str) -> None:
    basic = kind.basic
    if basic is Basic.STRING:
        if not isinstance(raw, str):
            _raise_restore_error(raw, name, "string", is_convertible=type(raw) is int)
    elif basic is Basic.BOOL:
        if not isinstance(raw, bool):
            _raise_restore_error(raw, name, "bool", is_convertible=False)
    elif basic in _NUMBER_KINDS:
        is_number = isinstance(raw, int | float) and not isinstance(raw, bool)
        is_whole = is_number and (basic is Basic.FLOAT64 or float(raw).is_integer())  # type: ignore[arg-type]
        if not is_whole:
            _raise_restore_error(raw, name, _NUMBER_KINDS[basic], is_convertible=is_number)
    elif basic is Basic.BYTES:
        _restore_bytes(raw)
    elif basic in _OWN_DECODERS:
        _restore_with_decoder(basic, raw)


def _overflown(basic: Basic, number: float) -> int:
    """As the processor does it: what no 64 bits hold is the least number; of 64 bits, 32 are the lower ones."""
    whole = int(number)
    if not INT64_MIN <= whole <= INT64_MAX:
        whole = INT64_MIN
    return (whole + (1 << 31)) % (1 << 32) - (1 << 31) if basic is Basic.INT32 else whole


def _restore_with_decoder(basic: Basic, raw: object) -> None:
    read, name = _OWN_DECODERS[basic]
    if isinstance(raw, float) and raw.is_integer():
        raw = int(raw)
    try:
        read(raw)
    except scalars.ScalarError as error:
        raise DecodingError(str(error)) from error
    except scalars.UnexpectedJsonType as error:
        found = _shown_type(raw, with_number=name == "int32")
        raise DecodingError(f"json: cannot unmarshal {found} into Go value of type {name}") from error


def _restore_bytes(raw: object) -> None:
    if isinstance(raw, list):
        return
    if not isinstance(raw, str):
        raise DecodingError(f"cannot restore slice from {_go_kind(raw)}")
    try:
        scalars.bytes_of_base64(raw)
    except scalars.BytesError as error:
        raise DecodingError(f"error decoding from json: {error}") from error


def _raise_restore_error(raw: object, name: str, kind: str, *, is_convertible: bool) -> None:
    if is_convertible:
        raise DecodingError(f"cannot convert {_go_kind(raw)} to {name}")
    raise DecodingError(f"unrecognized type: {kind}")


def _go_kind(raw: object) -> str:
    return _GO_KINDS.get(type(raw), "map")
