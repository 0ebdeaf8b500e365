"""The canonical form: what Go makes of an object by decoding it into its type and encoding it again.

Input: a JSON value and its `Struct`. Output: a document, and whether something was dropped; `UnexpectedJsonType` if a
type does not match.

All packages behind this one rely on the form:

1. Only fields of the type. A field with omitempty is never present and empty.
2. A field without omitempty is always present: "" for a string, 0 for a number, `null` for an absent list or map, a
   struct with its own such fields. An empty list that a client wrote stays until the object is stored
   (`forget_empty_lists`).
3. Null means absent. Absent and empty differ for pointers only.
4. Quantities, times and bytes are canonical strings.
5. Fields are in the order of their type, which shows where a message quotes a value.

The given value is consumed: the result may contain parts of it. A part that is identical (`is`) with a part of a
canonical object, as most parts of a patched object are, is copied unread.

Each struct becomes a table of rules once. Which of them an object needs follows from the names of its fields: the rules
of up to `PLANS_MAX` sequences of names are cached for each struct. No path is kept: when a type is wrong, the walk
stops, and `examine` finds the message.

Empty lists of an object that is about to be stored.

Input: a canonical document and its type. Output: the same, with `null` for empty lists that are always written.

Go distinguishes an empty list from an absent one while a request is handled: a client that sends `rules: []` becomes
the manager of the rules. In the store there is no difference: the stored value is null.

1. Lists with omitempty do not get here: `canonical` drops them.
2. Only branches that can contain such a list are walked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from mooring.api.caches import BoundedCache
from mooring.api.document import Document
from mooring.api.schema.types import Basic, CircularTable, Field, ListOf, MapOf, Scalar, Struct, Type
from mooring.apiserver.wire import scalars
from mooring.apiserver.wire.json_text import BodySyntaxError, check_untyped_numbers
from mooring.apiserver.wire.scalars import (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    SCHEMA_VALUES,
    ScalarError,
    UnexpectedJsonType,
)

PLANS_MAX = 64

Dropped = list[str]
"""The names of fields that the types do not have, without paths and in no order."""
Change = Callable[[Any, Dropped], Any]
"""From a value that is not null to its canonical form."""


class StructChange(Protocol):
    """The same for one struct; `known` is canonical, and parts of it that are found in `raw` stay as they are."""

    def __call__(self, raw: Any, dropped: Dropped, canonical_parts: Mapping[str, Any] = ...) -> Document: ...


_Rule = tuple[str, type | None, bool, Change | None, Callable[[], Any] | None, StructChange | None]
"""A field's name, the JSON type that needs no second look (None: any), whether an empty value is kept, how the value
changes, what stands there if there is none, and how it changes if it is a struct of which something is known."""

_structs: CircularTable[int, StructChange] = CircularTable()
_NOTHING: Mapping[str, Any] = {}


def canonical(struct: Struct, raw: object, dropped: Dropped, canonical_parts: Mapping[str, Any] = _NOTHING) -> Document:
    """The canonical form of an object. Names of unknown fields are added to `dropped`.

    Raises `UnexpectedJsonType` where a value has the wrong type, and `ScalarError` where a text has no meaning.
    """
    document = struct_change(struct)({} if raw is None else raw, dropped, canonical_parts)
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    if isinstance(metadata, dict) and metadata.get("managedFields") == []:
        document["metadata"]["managedFields"] = []  # an empty list clears managedFields, see `apply.update`
    return document


def struct_change(struct: Struct) -> StructChange:
    """The function that makes values of one type canonical, made once."""
    found = _structs.get(id(struct))
    return found if found is not None else _made(struct)


def _made(struct: Struct) -> StructChange:
    with _structs.filling() as changes:
        found = changes.get(id(struct))
        return found if found is not None else _compiled(struct, changes)


def _compiled(struct: Struct, changes: dict[int, StructChange]) -> StructChange:
    rules: list[_Rule] = []
    known_names: set[str] = set()
    plans: BoundedCache[tuple[str, ...], list[_Rule]] = BoundedCache(PLANS_MAX)

    def plan(names: tuple[str, ...], dropped: Dropped) -> list[_Rule]:
        """The rules of these fields, and of absent fields that are always written."""
        present = frozenset(names)
        needed = [rule for rule in rules if rule[0] in present or rule[4] is not None]
        if present <= known_names:
            return plans.put(names, needed)
        dropped += [name for name in names if name not in known_names]
        return needed

    def change(raw: Any, dropped: Dropped, canonical_parts: Mapping[str, Any] = _NOTHING) -> Document:
        if type(raw) is not dict:
            raise UnexpectedJsonType
        document: Document = {}
        get = raw.get
        names = tuple(raw)
        needed = plans.get(names)
        if needed is None:
            needed = plan(names, dropped)
        for name, expected, keeps_empty, changed, zero, below in needed:
            value = get(name)
            if value is None:
                if zero is not None:
                    document[name] = zero()
                continue
            if canonical_parts:
                before = canonical_parts.get(name)
                if value is before:
                    document[name] = value
                    continue
                if below is not None and type(before) is dict and type(value) is dict:
                    document[name] = below(value, dropped, before)
                    continue
            if type(value) is not expected and expected is not None:
                raise UnexpectedJsonType
            if changed is not None:
                value = changed(value, dropped)
            if value or keeps_empty:
                document[name] = value
            elif zero is not None:
                document[name] = zero()
        return document

    changes[id(struct)] = change  # before its fields are looked at: types refer to each other in circles
    if struct.is_object:
        rules += [("kind", str, False, None, None, None), ("apiVersion", str, False, None, None, None)]
    rules += [_rule(struct, field) for field in struct.fields.values()]
    known_names.update(rule[0] for rule in rules)
    return change


# --- fields -----------------------------------------------------------------------------------------------------

STRUCTS_IN_GO = frozenset(
    {Basic.TIME, Basic.MICRO_TIME, Basic.DURATION, Basic.QUANTITY, Basic.INT_OR_STRING, Basic.RAW_EXTENSION}
)
"""Single values in JSON that are structs in Go: `omitempty` does not leave them out."""


def _rule(struct: Struct, field: Field) -> _Rule:
    zero = _zero_if_always_written(field)
    special = SCHEMA_VALUES.get(field.name) if struct.name == "JSONSchemaProps" else None
    if special is not None:
        return field.name, None, True, special(struct_change(struct)), zero, None
    expected, changed = _change(field.type)
    below = struct_change(field.type) if isinstance(field.type, Struct) and _keeps_empty(field) else None
    if struct.name == "PodTemplateSpec" and field.name == "metadata":
        assert changed is not None, field
        changed, below = _with_empty_labels(changed), None
    return field.name, expected, _keeps_empty(field), changed, zero, below


def _with_empty_labels(change: Change) -> Change:
    """Empty labels of a template are kept until it is defaulted, see `WithEmptyLabels`."""

    def changed(raw: Any, dropped: Dropped) -> Document:
        is_given = raw.get("labels") == {}
        document: Document = change(raw, dropped)
        if is_given:
            document["labels"] = {}
        return document

    return changed


def _keeps_empty(field: Field) -> bool:
    if field.is_pointer:
        return True
    if isinstance(field.type, Scalar):
        if field.omits_zero:
            return False
        return not field.omits_empty or field.type.basic in STRUCTS_IN_GO
    if isinstance(field.type, ListOf):
        return not field.omits_empty  # a client that writes an empty list owns it
    return isinstance(field.type, Struct)


def _zero_if_always_written(field: Field) -> Callable[[], Any] | None:
    if field.omits_zero or (field.is_pointer and field.omits_empty):
        return None
    if field.is_pointer:
        return _null
    if isinstance(field.type, Struct):
        change = struct_change(field.type)
        return lambda: change({}, [])
    is_left_out = field.omits_empty and not (isinstance(field.type, Scalar) and field.type.basic in STRUCTS_IN_GO)
    if is_left_out:
        return None
    return _ZEROS.get(field.type.basic, _null) if isinstance(field.type, Scalar) else _null


def _null() -> None:
    return None


_ZEROS: dict[Basic, Callable[[], Any]] = {
    Basic.STRING: str,
    Basic.BOOL: bool,
    Basic.INT: int,
    Basic.INT32: int,
    Basic.INT64: int,
    Basic.FLOAT64: int,
    Basic.INT_OR_STRING: int,
    Basic.QUANTITY: lambda: "0",
    Basic.DURATION: lambda: "0s",
}


# --- values -----------------------------------------------------------------------------------------------------


def _change(kind: Type) -> tuple[type | None, Change | None]:
    """The JSON type that a value must have (None: any), and what becomes of it."""
    match kind:
        case Struct():
            return dict, struct_change(kind)
        case ListOf():
            return list, _list_change(kind.item)
        case MapOf():
            return dict, _map_change(kind.value)
        case Scalar():
            return _SCALARS[kind.basic]


def _list_change(item: Type) -> Change:
    expected, changed = _change(item)
    zero = _zero_item(item)

    def plain_items(raw: Any, dropped: Dropped) -> Any:
        for value in raw:
            if type(value) is not expected:
                return [zero() if value is None else _same(value, expected) for value in raw]
        return raw

    def changed_items(raw: Any, dropped: Dropped) -> Any:
        assert changed is not None
        return [
            zero() if value is None else changed(value, dropped) if type(value) is expected else _odd(value)
            for value in raw
        ]

    def any_items(raw: Any, dropped: Dropped) -> Any:
        return raw if changed is None else [zero() if value is None else changed(value, dropped) for value in raw]

    def _odd(value: Any) -> Any:
        raise UnexpectedJsonType

    if expected is None:
        return any_items
    return plain_items if changed is None else changed_items


def _map_change(item: Type) -> Change:
    expected, changed = _change(item)
    zero = _zero_item(item)

    def plain_values(raw: Any, dropped: Dropped) -> Any:
        for value in raw.values():
            if type(value) is not expected:
                return {key: zero() if value is None else _same(value, expected) for key, value in raw.items()}
        return raw

    def changed_values(raw: Any, dropped: Dropped) -> Any:
        assert changed is not None
        document: Document = {}
        for key, value in raw.items():
            if value is None:
                document[key] = zero()
            elif expected is not None and type(value) is not expected:
                raise UnexpectedJsonType
            else:
                document[key] = changed(value, dropped)
        return document

    if changed is None and expected is None:
        return lambda raw, dropped: raw
    return plain_values if changed is None else changed_values


def _same(value: Any, expected: type | None) -> Any:
    if type(value) is not expected:
        raise UnexpectedJsonType
    return value


def _zero_item(item: Type) -> Callable[[], Any]:
    if isinstance(item, Struct):
        change = struct_change(item)
        return lambda: change({}, [])
    if isinstance(item, Scalar):
        return str if item.basic is Basic.BYTES else _ZEROS.get(item.basic, _null)
    return _null


def _without_notes(change: Callable[[object], Any]) -> Change:
    def changed(raw: Any, dropped: Dropped) -> Any:
        return change(raw)

    return changed


def _int32(raw: Any, dropped: Dropped) -> int:
    if INT32_MIN <= raw <= INT32_MAX:
        return raw  # type: ignore[no-any-return]
    raise UnexpectedJsonType


def _int64(raw: Any, dropped: Dropped) -> int:
    if INT64_MIN <= raw <= INT64_MAX:
        return raw  # type: ignore[no-any-return]
    raise UnexpectedJsonType


def _untyped(raw: Any, dropped: Dropped) -> Any:
    try:
        check_untyped_numbers(raw)
    except BodySyntaxError as error:
        raise ScalarError(str(error)) from None
    return raw


def _quantity(raw: Any, dropped: Dropped) -> str:
    if type(raw) is float:
        raise UnexpectedJsonType  # 1e3 and 1000.0 are the same float and different quantities
    return scalars.quantity(raw)


_SCALARS: dict[Basic, tuple[type | None, Change | None]] = {
    Basic.STRING: (str, None),
    Basic.BOOL: (bool, None),
    Basic.INT32: (int, _int32),
    Basic.INT64: (int, _int64),
    Basic.INT: (int, _int64),
    Basic.FLOAT64: (None, _without_notes(scalars.float64)),
    Basic.BYTES: (None, _without_notes(scalars.base64_bytes)),
    Basic.TIME: (None, _without_notes(scalars.time)),
    Basic.MICRO_TIME: (None, _without_notes(scalars.micro_time)),
    Basic.DURATION: (str, None),
    Basic.QUANTITY: (None, _quantity),
    Basic.INT_OR_STRING: (None, _without_notes(scalars.int_or_string)),
    Basic.RAW_EXTENSION: (None, _untyped),
    Basic.FIELDS_V1: (None, _untyped),
    Basic.ANY: (None, _untyped),
}


# --- empty lists ----------------------------------------------------------------------------------------------


Forget = Callable[[Any], None]

_known: CircularTable[int, tuple[Forget | None]] = CircularTable()


def forget_empty_lists(struct: Struct, obj: Document) -> None:
    """Make every empty list null."""
    forget = _of_struct(struct)
    if forget is not None:
        forget(obj)


def _of_struct(struct: Struct) -> Forget | None:
    """The walk through a type; None if it has no such lists."""
    found = _known.get(id(struct))
    return found[0] if found is not None else _made_empty(struct)


def _made_empty(struct: Struct) -> Forget | None:
    with _known.filling() as entries:
        if id(struct) not in entries:
            # Types that refer to each other in circles (the schemas of custom kinds) have no such lists.
            entries[id(struct)] = (None,)
            entries[id(struct)] = (_walk(struct),)
        return entries[id(struct)][0]


def _walk(struct: Struct) -> Forget | None:
    lists = [field.name for field in struct.fields.values() if isinstance(field.type, ListOf) and not field.omits_empty]
    branches = [
        (field.name, forget) for field in struct.fields.values() if (forget := _of_type(field.type)) is not None
    ]
    if not lists and not branches:
        return None

    def forget_below(document: Document) -> None:
        for name in lists:
            if document.get(name) == []:
                document[name] = None
        for name, forget in branches:
            value = document.get(name)
            if value:
                forget(value)

    return forget_below


def _of_type(kind: Type) -> Forget | None:
    match kind:
        case Struct():
            return _of_struct(kind)
        case ListOf(item):
            return _of_items(item)
        case MapOf(item):
            below = _of_items(item)
            return None if below is None else lambda entries: below(entries.values())
        case Scalar():
            return None


def _of_items(item: Type) -> Forget | None:
    below = _of_type(item)
    if below is None:
        return None

    def forget_in_each(values: Iterable[Any]) -> None:
        for value in values:
            if value:
                below(value)

    return forget_in_each
