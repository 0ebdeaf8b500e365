"""The order of the items of a list after a strategic merge.

Input: the items of a merged list, the order in the patch, and the order before. Output: the items, each once.

 1. Items that the patch names are in the order of the patch, all others in their order before.
 2. An item of the second kind goes before the first item of the patch that was behind it. So a new item precedes items
    that the patch does not name, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias, cast

from mooring.api.patching.errors import UNPROCESSABLE, JsonDict, PatchError, go_text, no_merge_key, wrong_type

Name: TypeAlias = Hashable

_MAP = "map[string]interface {}"


def identity(item: JsonDict, merge_key: str) -> Name:
    """What tells this item from the others. None for one that has no merge key, which only an invalid object has."""
    name = item.get(merge_key)
    if isinstance(name, dict | list):
        raise PatchError(f"merge key {merge_key} is no plain value in map: {go_text(item)}")
    return name


def required_identity(item: JsonDict, merge_key: str) -> Name:
    """The identity of an item that must have one."""
    name = item.get(merge_key)
    if type(name) is str:
        return name
    if merge_key not in item:
        raise no_merge_key(item, merge_key)
    return identity(item, merge_key)


def places_of(items: list[JsonDict], merge_key: str) -> dict[Name, int]:
    """Where each item stands; the first of those that share an identity."""
    places: dict[Name, int] = {}
    for index, item in enumerate(items):
        places.setdefault(required_identity(item, merge_key), index)
    return places


def in_order(items: list[object], wanted: list[object], before: list[object], merge_key: str) -> list[object]:
    """The items, without repeated plain values, as `wanted` (of the patch) and `before` (of the object) order them."""
    wanted_places = _places(wanted, merge_key)
    places_before = _places(before, merge_key)
    of_patch: list[tuple[int, int, object]] = []
    others: list[tuple[int, object]] = []
    seen: set[Name] = set()
    for item in items:
        name = _name_of(item, merge_key)
        if not merge_key:
            if name in seen:
                continue
            seen.add(name)
        place_before = places_before.get(name, -1)
        if name in wanted_places:
            of_patch.append((wanted_places[name], place_before, item))
        else:
            others.append((place_before, item))
    # Sorted by place alone, and stably: equal places are repeated items, which keep their order.
    of_patch.sort(key=lambda entry: entry[0])
    others.sort(key=lambda entry: entry[0])
    return _interleaved(others, of_patch)


def check_against_order(patch: list[object], order: list[object], merge_key: str) -> None:
    """A patch may only name items that its `$setElementOrder` names, in that order."""
    if not order or not patch:
        return
    if merge_key:
        for item in patch:
            if not isinstance(item, dict):
                raise wrong_type(_MAP, item)
        names = [_required_name(item, merge_key) for item in patch if "$patch" not in cast(JsonDict, item)]
    else:
        names = [_name_of(item, "") for item in patch]
    matched = 0
    for item in order:
        if matched < len(names) and names[matched] == _required_name(item, merge_key):
            matched += 1
    if matched < len(names):
        raise PatchError(
            f"The order in patch list:\n{go_text(patch)}\n doesn't match $setElementOrder list:\n{go_text(order)}\n"
        )


def _interleaved(others: list[tuple[int, object]], of_patch: list[tuple[int, int, object]]) -> list[object]:
    result: list[object] = []
    next_other = 0
    for _, place_before, item in of_patch:
        while next_other < len(others) and 0 <= others[next_other][0] < place_before:
            result.append(others[next_other][1])
            next_other += 1
        result.append(item)
    result.extend(item for _, item in others[next_other:])
    return result


def _places(items: list[object], merge_key: str) -> dict[Name, int]:
    places: dict[Name, int] = {}
    for index, item in enumerate(items):
        places.setdefault(_required_name(item, merge_key), index)
    return places


def _required_name(item: object, merge_key: str) -> Name:
    if merge_key and isinstance(item, dict):
        return required_identity(item, merge_key)
    return _name_of(item, merge_key)


def _name_of(item: object, merge_key: str) -> Name:
    if not merge_key:
        if isinstance(item, dict | list):
            raise PatchError("lists of lists are not supported", UNPROCESSABLE)
        return item
    if not isinstance(item, dict):
        raise wrong_type(_MAP, item)
    return identity(item, merge_key)
