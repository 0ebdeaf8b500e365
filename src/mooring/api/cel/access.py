"""Access: `value.name`, `value[key]`, and their optional and presence forms.

Comes in   a value and a key
Goes out   what is there, whether there is something, or an `EvaluationFailure` that names the key

 1. What is neither a map nor a list has nothing under any key.
 2. An optional is looked into: nothing in it stays nothing, and what is found comes out as an optional.
"""

from __future__ import annotations

from mooring.api.cel.conversions import double_text
from mooring.api.cel.errors import EvaluationFailure, no_such_key
from mooring.api.cel.operations import find
from mooring.api.cel.values import NONE, DomainMap, Optional, Uint, Value, type_name


def at(value: Value, key: Value) -> Value:
    """What is under a key. There has to be something."""
    if isinstance(value, Optional):
        return optional_at(value, key)
    found, is_there = _look(value, key)
    if is_there:
        return found
    if isinstance(value, list):
        raise EvaluationFailure(f"index out of bounds: {key_text(key)}")
    raise no_such_key(key_text(key))


def optional_at(value: Value, key: Value) -> Value:
    """What is under a key, as an optional."""
    if isinstance(value, Optional):
        if not value.has_value:
            return value
        value = value.held
    found, is_there = _look(value, key)
    return Optional(found) if is_there else NONE


def has(value: Value, key: str) -> bool:
    """Whether there is something under a key."""
    if isinstance(value, Optional):
        return value.has_value and has(value.held, key)
    return _look(value, key)[1]


def key_text(key: Value) -> str:
    """A key, as an error text shows it."""
    if type(key) is bool:
        return "true" if key else "false"
    return double_text(key) if isinstance(key, float) else str(key)


def _look(value: Value, key: Value) -> tuple[Value, bool]:
    if isinstance(value, DomainMap):
        return (value[key] if isinstance(key, str) else {}), True
    if isinstance(value, dict):
        return find(value, key)
    if isinstance(value, list):
        index = _index(key)
        return (value[index], True) if 0 <= index < len(value) else (None, False)
    return None, False


def _index(key: Value) -> int:
    if type(key) is int or type(key) is Uint:
        return int(key)
    if isinstance(key, float):
        if key.is_integer():
            return int(key)
        raise EvaluationFailure(f"unsupported index value {key_text(key)} in list")
    raise EvaluationFailure(f"unsupported index type '{type_name(key)}' in list")
