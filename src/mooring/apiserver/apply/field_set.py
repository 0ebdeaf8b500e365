"""Sets of paths, in the form of FieldsV1.

    {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}      metadata.labels and metadata.labels.app

1. A set is the JSON of FieldsV1, so that reading and writing an object need no conversion. `{}` below the root is a
   path that ends there; `.` is a path that ends there and has others below it. The empty set is an empty root.
2. Sets are immutable. They share parts with each other and with documents.
3. Elements are in the order of `path_elements`, because FieldsV1 is written in that order.
4. Set operations treat each path on its own: a parent in a set says nothing about its children. Only `without_below`
   removes whole branches.
5. `Strategy.ignored_fields` are removed with everything below them, so that a write does not own them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from mooring.apiserver.apply.path_elements import FIELD, SELF, in_order

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
        elif branch and (kept := without_below(branch, other)):
            rest[element] = LEAF if len(kept) == 1 and SELF in kept else kept
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
    """All paths, those that end at a level before those that go on."""
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
    """What is left of a branch; None if nothing is."""
    if not left:
        return None if ends_here(right) else left
    if not right:
        return without_self(left)
    rest: FieldSet = {}
    is_changed = False
    for element, branch in left.items():
        other = right.get(element)
        kept = branch if other is None else None if element == SELF else _rest(branch, other)
        if kept is not None:
            rest[element] = kept
        if kept is not branch:
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


def kept(fields: FieldSet, ignored: Ignored) -> FieldSet:
    """A field set without what is ignored."""
    return without_below(fields, _set_of_names(tuple(ignored))) if fields and ignored else fields


@lru_cache(maxsize=512)
def _set_of_names(ignored: tuple[tuple[str, ...], ...]) -> FieldSet:
    return set_of([[FIELD + name for name in path] for path in ignored])
