"""Path elements: one step of a path through an object, as FieldsV1 writes it.

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

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from mooring.api.field_errors import quoted
from mooring.api.memory import Memory

SELF = "."
FIELD = "f:"
KEY = "k:"
VALUE = "v:"
INDEX = "i:"

ORDERS_CACHED_MAX = 16_384
TEXTS_CACHED_MAX = 16_384
_texts: Memory[str, str] = Memory(TEXTS_CACHED_MAX)
"""Texts as JSON: the same names come again and again."""

_encode = msgspec.json.encode


class ElementError(ValueError):
    """A text that is no path element."""


def key_element(names: Sequence[str], values: Sequence[object]) -> str:
    """The element of a list item; the names are in alphabetical order."""
    if len(names) == 1:
        return f'k:{{"{names[0]}":{_json(values[0])}}}'
    return "k:{" + ",".join(f'"{name}":{_json(value)}' for name, value in zip(names, values)) + "}"


def value_element(value: object) -> str:
    """The element of an item of a set."""
    return VALUE + _json(value)


def parsed_element(text: str) -> str | None:
    """The canonical form of what a client wrote; None if we do not know what it is. Raises `ElementError`."""
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
    """The same elements, sorted. The list is changed; it is not empty."""
    if elements[-1] < "g":
        elements.sort()
        if elements[-1] < "g":  # fields only: their order is that of their texts
            return elements
    elements.sort(key=_order)
    return elements


def shown(element: str) -> str:
    """An element as messages show it: `.spec`, `[name="web"]`."""
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
    """Numbers before texts before flags, each among themselves as one would expect."""
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
