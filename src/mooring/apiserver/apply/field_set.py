"""Sets of paths and their elements, in the form of FieldsV1.

    {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}      metadata.labels and metadata.labels.app

1. A set is the JSON of FieldsV1, so that reading and writing an object need no conversion. `{}` below the root is a
   path that ends there; `.` is a path that ends there and has others below it. The empty set is an empty root.
2. Sets are immutable. They share parts with each other and with documents.
3. Elements are in the order of their values, because FieldsV1 is written in that order.
4. Set operations treat each path on its own: a parent in a set says nothing about its children. Only `without_below`
   removes whole branches.
5. `Strategy.ignored_fields` are removed with everything below them, so that a write does not own them.

Path elements: one step of a path through an object, as FieldsV1 writes it.

   f:name                       a field, or the entry of a map
   k:{"name":"web"}             an item of a list, by the values of its keys
   v:"x"                        an item of a set
   i:0                          an item by its index; only older clients write it
   .                            the path itself, next to paths below it

1. Two elements are equal exactly if their texts are. So keys are in alphabetical order, and JSON is written as Go
   writes it (`<`, `>` and `&` escaped).
2. Elements are ordered by value, not by text: ports are compared as numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from mooring.api.caches import BoundedCache
from mooring.api.field_errors import quoted

SELF = "."
FIELD = "f:"
KEY = "k:"
VALUE = "v:"
INDEX = "i:"

ORDERS_CACHED_MAX = 16_384
TEXTS_CACHED_MAX = 16_384
_texts: BoundedCache[str, str] = BoundedCache(TEXTS_CACHED_MAX)
"""Texts as JSON, cached: the same names occur many times."""

_encode = msgspec.json.encode


class ElementError(ValueError):
    """A text is not a path element."""


def key_element(names: Sequence[str], values: Sequence[object]) -> str:
    """The element of a list item; the names are in alphabetical order."""
    if len(names) == 1:
        return f'k:{{"{names[0]}":{_json(values[0])}}}'
    return "k:{" + ",".join(f'"{name}":{_json(value)}' for name, value in zip(names, values)) + "}"


def value_element(value: object) -> str:
    """The element of an item of a set."""
    return VALUE + _json(value)


def parsed_element(text: str) -> str | None:
    """The canonical form of a path element; None for an unknown kind of element. Raises `ElementError`."""
    if len(text) < 2:
        raise ElementError("key must be 2 characters long:")
    if text[1] != ":":
        raise ElementError(f"missing colon: {text}")
    try:
        match text[:2]:
            case "f:":
                return text
            case "v:":
                return value_element(msgspec.json.decode(text[2:]))
            case "k:":
                fields = msgspec.json.decode(text[2:], type=dict[str, Any])
                names = sorted(fields)
                return key_element(names, [fields[name] for name in names])
            case "i:":
                return f"{INDEX}{int(text[2:])}"
            case _:
                return None
    except ValueError as error:
        raise ElementError(str(error)) from None


def in_order(elements: list[str]) -> list[str]:
    """Sort the elements in place. The list is not empty."""
    if elements[-1] < "g":
        elements.sort()
        if elements[-1] < "g":  # fields only: their order is that of their texts
            return elements
    elements.sort(key=_order)
    return elements


def shown(element: str) -> str:
    """An element as it is printed in messages: `.spec`, `[name="web"]`."""
    match element[:2]:
        case "f:":
            return f".{element[2:]}"
        case "k:":
            fields = msgspec.json.decode(element[2:])
            return "[" + ",".join(f"{name}={_shown_value(value)}" for name, value in fields.items()) + "]"
        case "v:":
            return f"[={_shown_value(msgspec.json.decode(element[2:]))}]"
        case _:
            return f"[{element[2:]}]"


def shown_path(path: Sequence[str]) -> str:
    return "".join(map(shown, path))


def _json(value: object) -> str:
    if isinstance(value, str):
        return _texts.get(value) or _texts.put(value, _written(value))
    return str(value) if value.__class__ is int else _written(value)


def _written(value: object) -> str:
    text = _encode(value).decode()
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return text


def _shown_value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case list():
            return "[" + ",".join(map(_shown_value, value)) + "]"
        case dict():
            return "".join(f"{name}={_shown_value(inner)}" for name, inner in value.items())
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value)


@lru_cache(maxsize=ORDERS_CACHED_MAX)
def _order(element: str) -> tuple[Any, ...]:
    match element[:2]:
        case "f:":
            return (1, element[2:])
        case "k:":
            fields = msgspec.json.decode(element[2:])
            return (2, tuple((name, _value_order(value)) for name, value in fields.items()))
        case "v:":
            return (3, _value_order(msgspec.json.decode(element[2:])))
        case "i:":
            return (4, int(element[2:]))
        case _:
            return (0,)


def _value_order(value: object) -> tuple[Any, ...]:
    """Sort key of values: numbers, then texts, then booleans."""
    match value:
        case bool():
            return (2, value)
        case int() | float():
            return (0, value)
        case str():
            return (1, value)
        case list():
            return (3, tuple(map(_value_order, value)))
        case dict():
            return (4, tuple((name, _value_order(value[name])) for name in sorted(value)))
        case _:
            return (5,)


# --- sets -----------------------------------------------------------------------------------------------------


FieldSet: TypeAlias = dict[str, "FieldSet"]
Path: TypeAlias = tuple[str, ...]
"""Path elements from the root."""

LEAF: FieldSet = {}
"""A path that ends here, with nothing below. It is shared and must not be changed."""


def set_of(paths: Iterable[Sequence[str]]) -> FieldSet:
    """A set of paths."""
    found: FieldSet = {}
    for path in paths:
        branch: FieldSet = LEAF
        for element in reversed(path):
            branch = {element: branch}
        found = union(found, branch)
    return found


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths in either; `left` itself if it has them all."""
    if not left:
        return right
    return _united(left, right) if right else left


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths in `left` that are not in `right`."""
    if not right or not left:
        return left
    rest = _rest(left, right)
    return {} if rest is None else rest


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths in both."""
    if not right or not left:
        return {}
    common = _common(left, right)
    return {} if common is None else common


def without_below(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths in `left` that are not in `right`, nor below a path in `right`."""
    if not right or not left:
        return left
    rest: FieldSet = {}
    for element, branch in left.items():
        other = right.get(element)
        if other is None:
            rest[element] = branch
        elif ends_here(other):
            continue
        elif branch and (without_ignored := without_below(branch, other)):
            rest[element] = LEAF if len(without_ignored) == 1 and SELF in without_ignored else without_ignored
        elif not branch:
            rest[element] = LEAF
    return rest if rest != left else left


def has(fields: FieldSet, path: Sequence[str]) -> bool:
    """Whether a path is in a set."""
    branch: FieldSet | None = fields
    for element in path:
        branch = branch.get(element) if branch else None
        if branch is None:
            return False
    return branch is not None and branch is not fields and ends_here(branch)


def paths(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """All paths; at each level, paths that end there come first."""
    for element, branch in fields.items():
        if element != SELF and ends_here(branch):
            yield (*prefix, element)
    for element, branch in fields.items():
        if branch:
            yield from paths(branch, (*prefix, element))


def ends_here(branch: FieldSet) -> bool:
    """Whether the path to a branch is in the set itself."""
    return not branch or SELF in branch


def with_self(branch: FieldSet) -> FieldSet:
    """A branch whose own path is in the set as well."""
    return branch if not branch or SELF in branch else {SELF: LEAF, **branch}


def without_self(branch: FieldSet) -> FieldSet | None:
    """A branch whose own path is not in the set; None if nothing is left."""
    if SELF not in branch:
        return branch or None
    return {element: below for element, below in branch.items() if element != SELF}


def ordered(fields: FieldSet) -> FieldSet:
    """One level of a set, in order."""
    return fields if len(fields) < 2 else {element: fields[element] for element in in_order(list(fields))}


def _united(left: FieldSet, right: FieldSet) -> FieldSet:
    if left is right:
        return left
    if not left or not right:
        return with_self(left or right)
    united = left
    for element, branch in right.items():
        mine = left.get(element)
        both = branch if mine is None else _united(mine, branch)
        if both is not mine:
            if united is left:
                united = dict(left)
            united[element] = both
    return ordered(united) if len(united) > len(left) else united


def _rest(left: FieldSet, right: FieldSet) -> FieldSet | None:
    """The rest of a branch; None if it is empty."""
    if not left:
        return None if ends_here(right) else left
    if not right:
        return without_self(left)
    rest: FieldSet = {}
    is_changed = False
    for element, branch in left.items():
        other = right.get(element)
        without_ignored = branch if other is None else None if element == SELF else _rest(branch, other)
        if without_ignored is not None:
            rest[element] = without_ignored
        if without_ignored is not branch:
            is_changed = True
    if not is_changed:
        return left
    if not rest:
        return None
    return LEAF if len(rest) == 1 and SELF in rest else rest


def _common(left: FieldSet, right: FieldSet) -> FieldSet | None:
    if not left or not right:
        return LEAF if ends_here(left) and ends_here(right) else None
    common: FieldSet = {}
    for element, branch in left.items():
        other = right.get(element)
        if other is not None and (both := _common(branch, other)) is not None:
            common[element] = both
    if not common:
        return None
    return LEAF if len(common) == 1 and SELF in common else common


Ignored: TypeAlias = Sequence[tuple[str, ...]]
"""Paths of plain field names."""


def without_ignored(fields: FieldSet, ignored: Ignored) -> FieldSet:
    """A field set without what is ignored."""
    return without_below(fields, _set_of_names(tuple(ignored))) if fields and ignored else fields


@lru_cache(maxsize=512)
def _set_of_names(ignored: tuple[tuple[str, ...], ...]) -> FieldSet:
    return set_of([[FIELD + name for name in path] for path in ignored])
