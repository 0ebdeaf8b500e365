"""Documents: whole API objects as plain JSON, the form in which the API server handles them.

A document keeps the fields that this version does not know. Only the API server and the codecs use documents; other
components read the views of `mooring.api.views`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]


def copied_json(value: Any) -> Any:
    """A copy that shares nothing with the value."""
    if isinstance(value, dict):
        return {name: copied_json(inner) for name, inner in value.items()}
    return [copied_json(item) for item in value] if isinstance(value, list) else value


def without_nulls(value: Any) -> Any:
    """A copy without fields that are null, at any depth."""
    if isinstance(value, Mapping):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list | tuple) else value


def same_json(one: Any, other: Any) -> bool:
    """Equal as JSON: unlike in Python, true is not 1, and 1 is not 1.0."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and len(one) == len(other)
            and all(name in other and same_json(value, other[name]) for name, value in one.items())
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same_json, one, other))
    return type(one) is type(other) and bool(one == other)
