"""Errors of an applied document, before it is merged.

Input: a document as the client sent it, and its grain. Output: messages, each with a path.

1. Unlike in updates, two items of a list with the same keys are an error.
2. Checking of a list stops at its first item without keys, of a map at its first unknown field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.schema.model import ListKind
from mooring.apiserver.apply.path_elements import FIELD, INDEX, shown
from mooring.apiserver.apply.shape import Grain, ListGrain, MapGrain, ScalarKind
from mooring.apiserver.apply.typed import GrainError, element_at


class Misfit(NamedTuple):
    """One thing that is wrong."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


NONE: Sequence[Misfit] = ()


def misfits(grain: Grain, value: Any) -> Sequence[Misfit]:
    """Everything that is wrong with a value."""
    sort = value.__class__
    if sort is dict and grain.map is not None:
        return _misfits_in_map(grain.map, value)
    if sort is list and grain.list is not None:
        return _misfits_in_list(grain.list, value)
    return NONE if value is None else _misfit(grain, value)


def misfits_text(found: Sequence[Misfit]) -> str:
    """All of them in one text."""
    return str(found[0]) if len(found) == 1 else "\n".join(["errors:", *(f"  {misfit}" for misfit in found)])


def _misfits_in_map(fields: MapGrain, value: Document) -> Sequence[Misfit]:
    found: list[Misfit] = []
    known, item = fields.fields, fields.item
    for name, held in value.items():
        grain = known.get(name, item)
        if grain is None:
            return [*found, Misfit(shown(FIELD + name), "field not declared in schema")]
        if below := misfits(grain, held):
            found += _below(FIELD + name, below)
    return found


def _misfits_in_list(items: ListGrain, value: list[Any]) -> Sequence[Misfit]:
    found: list[Misfit] = []
    seen: set[str] = set()
    for index, held in enumerate(value):
        element = ""
        if items.kind is not ListKind.ATOMIC:
            try:
                element = element_at(index, items, held)
            except GrainError as error:
                return [*found, Misfit("", str(error))]
            if element in seen:
                found.append(Misfit("", f"duplicate entries for key {shown(element)}"))
            seen.add(element)
        if below := misfits(items.item, held):
            found += _below(element or f"{INDEX}{index}", below)
    return found


def _below(element: str, found: Sequence[Misfit]) -> list[Misfit]:
    prefix = shown(element)
    return [Misfit(prefix + misfit.path, misfit.text) for misfit in found]


def _misfit(grain: Grain, value: Any) -> Sequence[Misfit]:
    """The error of a value of the wrong type, with the message for the first type that it could have."""
    text = _misfit_text(grain, value)
    return [Misfit("", text)] if text else NONE


def _misfit_text(grain: Grain, value: Any) -> str:
    if grain.map is not None:
        return f"expected map, got {_go(value)}" if grain.scalar is None else ""
    match grain.scalar:
        case ScalarKind.TEXT:
            is_text = isinstance(value, str)
            return "" if is_text else f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
        case ScalarKind.NUMBER if isinstance(value, bool) or not isinstance(value, int | float):
            return f"expected numeric (int or float), got {_go_type(value)}"
        case ScalarKind.FLAG if not isinstance(value, bool):
            return f"expected boolean, got {_go(value)}"
        case ScalarKind.ANY if isinstance(value, dict | list):
            return f"expected any scalar, got {_go(value)}"
        case None:
            return f"expected list, got {_go(value)}"
        case _:
            return ""


def _go(value: Any) -> str:
    """How Go prints a value inside a pointer to it: `&{x}`."""
    return f"&{{{_go_plain(value)}}}"


def _go_plain(value: Any) -> str:
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case dict():
            return "map[" + " ".join(f"{name}:{_go_plain(value[name])}" for name in sorted(value)) + "]"
        case list():
            return "[" + " ".join(map(_go_plain, value)) + "]"
        case _:
            return str(value)


_MAP, _LIST = "map[string]interface {}", "[]interface {}"


def _go_type(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case dict():
            return _MAP
        case _:
            return _LIST


def _go_syntax(value: Any) -> str:
    """How Go would write a value in a program."""
    match value:
        case None:
            return "interface {}(nil)"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case dict():
            return _MAP + "{" + ", ".join(f"{quoted(name)}:{_go_syntax(value[name])}" for name in sorted(value)) + "}"
        case list():
            return _LIST + "{" + ", ".join(map(_go_syntax, value)) + "}"
        case _:
            return str(value)
