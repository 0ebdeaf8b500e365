"""Merging: an applied document laid over a live one, as their grains say.

Comes in   a live document and what somebody applied
Goes out   a new document; both are left as they are, and it shares parts with them

 1. Nothing is removed by merging: null for a map or a list of items keeps what is there.
 2. Items that both have stand in the applied order; the others stay where they were among their neighbours.
 3. Live lists may have items that cannot be told apart; they are kept, and replaced by the applied one if there is one.
"""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document
from mooring.api.schema.model import ListKind
from mooring.apiserver.apply.shape import Grain, ListGrain, MapGrain
from mooring.apiserver.apply.typed import element_at


def merged(grain: Grain, live: Document, applied: Document) -> Document:
    """The live document with everything that was applied. Raises `GrainError`."""
    result: Document = _merged(grain, live, applied)
    return result


def _merged(grain: Grain, live: Any, applied: Any) -> Any:
    """Two values merged, both of them there."""
    live_is_map, applied_is_map = live.__class__ is dict, applied.__class__ is dict
    if grain.map is not None and not grain.map.is_atomic and live_is_map and live:
        if applied_is_map:
            return _merged_maps(grain.map, live, applied)
        if applied is None:
            return live
    if grain.list is not None and grain.list.kind is not ListKind.ATOMIC and live.__class__ is list and live:
        if applied.__class__ is list:
            return _merged_lists(grain.list, live, applied)
        if applied is None:
            return live
    return applied


def _merged_maps(fields: MapGrain, live: Document, applied: Document) -> Document:
    result = dict(live)
    for name, value in applied.items():
        grain = fields.fields.get(name, fields.item)
        result[name] = value if name not in live or grain is None else _merged(grain, live[name], value)
    return result


def _merged_lists(items: ListGrain, live: list[Any], applied: list[Any]) -> list[Any]:
    ours, theirs = _elements(items, live), _elements(items, applied)
    own: dict[str, Any] = {}
    for element, value in zip(ours, live):
        own[element] = None if element in own else value
    given = dict(zip(theirs, applied))
    shared = [element for element in theirs if element in own]
    shared.reverse()  # the next shared item is the last one
    result: list[Any] = []
    taken: set[str] = set()

    def take(element: str) -> None:
        taken.add(element)
        value = given[element]
        result.append(_merged(items.item, own[element], value) if element in own else value)
        if shared and shared[-1] == element:
            shared.pop()

    mine = yours = 0
    while mine < len(ours) or yours < len(theirs):
        if mine < len(ours) and yours < len(theirs):
            element = ours[mine]
            if element == theirs[yours]:
                take(element)
                mine += 1
                yours += 1
                continue
            if element in given and shared and shared[-1] != element:
                mine += 1  # shared, but its turn comes later
                continue
        if mine < len(ours):
            element = ours[mine]
            if element not in given:
                result.append(live[mine])
                mine += 1
                continue
            if element in taken:
                mine += 1
        if yours < len(theirs):
            take(theirs[yours])
            yours += 1
    return result


def _elements(items: ListGrain, values: list[Any]) -> list[str]:
    return [element_at(index, items, value) for index, value in enumerate(values)]
