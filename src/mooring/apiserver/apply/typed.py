"""From documents to field sets: all fields, applied fields, changed fields.

Input: schemas, and values that match them. Output: field sets.

1. `all_fields` is what the creator of a value owns: every level of it.
2. `claimed_fields` is what the applier of a value owns: leaves, items and entries. Named fields on the way (`spec`,
   `labels`) are not owned.
3. An absent value differs from null and from an empty value: only an absent value can be added.
4. Items of a list with the same keys are one path, owned as a whole.
5. Values are compared before they are walked, because most of an object does not change.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mooring.api.document import Document
from mooring.api.schema.types import ListKind
from mooring.apiserver.apply.field_set import (
    FIELD,
    LEAF,
    SELF,
    FieldSet,
    key_element,
    ordered,
    value_element,
    without_self,
)
from mooring.apiserver.apply.kind_schema import ListSchema, MapSchema, ValueSchema

Part = FieldSet | None
"""A branch of a field set; None if it is empty."""


class SchemaMismatchError(Exception):
    """A value does not match its schema."""


class Comparison(NamedTuple):
    """The paths that differ between two documents. No path is in two of the sets."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


class _Differences(NamedTuple):
    added: Part = None
    modified: Part = None
    removed: Part = None


_CHANGED = _Differences(modified=LEAF)


# ------------------------------------------------------------------------------------------------ one document


def all_fields(value_schema: ValueSchema, value: Any) -> FieldSet:
    """Every path in a value, its own included."""
    if isinstance(value, dict):
        fields = value_schema.map
        if not value or fields is None or fields.is_atomic:
            return LEAF
        plan: Any = fields.plans.get(tuple(value)) or _plan(fields, value)
        if plan.__class__ is dict:
            return plan
        branch: FieldSet = {SELF: LEAF}
        for element, name, nested in plan:
            branch[element] = LEAF if nested is None else all_fields(nested, value[name])
        return branch
    if isinstance(value, list):
        items = value_schema.list
        if not value or items is None or items.kind is ListKind.ATOMIC:
            return LEAF
        nested = items.item
        branch = {SELF: LEAF}
        for element, item in by_element(items, value).items():
            branch[element] = LEAF if nested.is_leaf or item.__class__ is DuplicateItems else all_fields(nested, item)
        return ordered(branch) if len(branch) > 2 else branch
    return LEAF


def _plan(fields: MapSchema, value: Document) -> Any:
    """The steps through a map with exactly these entries; or the result, if every entry has one owner as a whole.

    The objects of a cluster have few combinations of fields, so that the plans of structs are cached.
    """
    known, item = fields.fields, fields.item
    steps: list[tuple[str, str, ValueSchema | None]] = []
    for name in sorted(value):
        nested = known.get(name, item)
        steps.append((FIELD + name, name, None if nested is None or nested.is_leaf else nested))
    plan: object = steps
    if all(nested is None for _, _, nested in steps):
        plan = {SELF: LEAF, **{element: LEAF for element, _, _ in steps}}
    return plan if item is not None else fields.plans.put(tuple(value), plan)


def claimed_fields(value_schema: ValueSchema, value: Any) -> FieldSet:
    """The paths that an applied document claims."""
    return _claimed(value_schema, value) or {}


def _claimed(value_schema: ValueSchema, value: Any) -> Part:
    """The paths in a value; the caller adds the value's own path where it is claimed."""
    if value.__class__ is dict and value_schema.map is not None:
        return LEAF if value_schema.map.is_atomic else _claimed_entries(value_schema.map, value)
    if value.__class__ is list and value_schema.list is not None:
        return LEAF if value_schema.list.kind is ListKind.ATOMIC else _claimed_items(value_schema.list, value)
    if value is None and value_schema.scalar is None:
        is_atomic = (
            value_schema.map.is_atomic
            if value_schema.map
            else value_schema.list is None or value_schema.list.kind is ListKind.ATOMIC
        )
        return LEAF if is_atomic else None
    return LEAF


def _claimed_entries(fields: MapSchema, value: Document) -> Part:
    branch: FieldSet = {}
    for name in sorted(value):
        field_value, value_schema = value[name], fields.fields.get(name)
        is_entry = value_schema is None
        value_schema = value_schema or fields.item
        below = _claimed(value_schema, field_value) if value_schema is not None else LEAF
        if is_entry or field_value is None or field_value == {}:
            below = _joined_self(below)
        if below is not None:
            branch[FIELD + name] = below
    return branch or None


def _claimed_items(items: ListSchema, value: list[Any]) -> Part:
    branch: FieldSet = {}
    for element, item in by_element(items, value).items():
        branch[element] = LEAF if item.__class__ is DuplicateItems else _joined_self(_claimed(items.item, item))
    return ordered(branch) or None


def _joined_self(below: Part) -> FieldSet:
    return {SELF: LEAF, **below} if below and SELF not in below else below or LEAF


# ------------------------------------------------------------------------------------------------ two documents


def compare(value_schema: ValueSchema, old: Document, new: Document, *, is_strict: bool = False) -> Comparison:
    """The changed fields. `is_strict` distinguishes 1 from true, which only values of unknown type need."""
    if old is new:
        return Comparison({}, {}, {})
    assert value_schema.map is not None, "an object is a map"
    added, modified, removed = _compare_maps(value_schema.map, old, new, is_strict)
    return Comparison(added or {}, modified or {}, removed or {})


def _compare(value_schema: ValueSchema, old: Any, new: Any, is_strict: bool) -> _Differences:
    """The changed paths of two values that differ, neither of which is absent."""
    if value_schema.is_leaf:
        return _CHANGED
    old_is_map, new_is_map = isinstance(old, dict), isinstance(new, dict)
    if value_schema.map is not None and (old_is_map or old is None) and (new_is_map or new is None):
        return _CHANGED if not old and not new else _compare_maps(value_schema.map, old or {}, new or {}, is_strict)
    are_lists = (old is None or isinstance(old, list)) and (new is None or isinstance(new, list))
    if value_schema.list is not None and are_lists:
        return _CHANGED if not old and not new else _compare_lists(value_schema.list, old or [], new or [], is_strict)
    # One is a map and the other is not, which only a value of unknown type can be.
    gone = without_self(all_fields(value_schema, old)) if old_is_map and old else None
    come = without_self(all_fields(value_schema, new)) if new_is_map and new else None
    return _Differences(come, LEAF, gone)


def _compare_maps(fields: MapSchema, old: Document, new: Document, is_strict: bool) -> _Differences:
    if fields.is_atomic:
        return _CHANGED
    known, item = fields.fields, fields.item
    added: FieldSet = {}
    modified: FieldSet = {}
    removed: FieldSet = {}
    for name, value in new.items():
        nested = known.get(name, item)
        if name not in old:
            added[FIELD + name] = LEAF if nested is None or nested.is_leaf else all_fields(nested, value)
            continue
        before = old[name]
        if value is before or (value == before and (not is_strict or is_same(before, value))):
            continue
        if nested is None or nested.is_leaf:
            modified[FIELD + name] = LEAF
        else:
            _attach(FIELD + name, _compare(nested, before, value, is_strict), added, modified, removed)
    for name, value in old.items():
        if name not in new:
            nested = known.get(name, item)
            removed[FIELD + name] = LEAF if nested is None or nested.is_leaf else all_fields(nested, value)
    return _parts(added, modified, removed)


def _compare_lists(items: ListSchema, old: list[Any], new: list[Any], is_strict: bool) -> _Differences:
    if items.kind is ListKind.ATOMIC:
        return _CHANGED
    before, after = by_element(items, old), by_element(items, new)
    added: FieldSet = {}
    modified: FieldSet = {}
    removed: FieldSet = {}
    for element, item in after.items():
        if element in before:
            _attach(element, _compare_items(items.item, before[element], item, is_strict), added, modified, removed)
        else:
            added[element] = LEAF if item.__class__ is DuplicateItems else all_fields(items.item, item)
    for element, item in before.items():
        if element not in after:
            removed[element] = LEAF if item.__class__ is DuplicateItems else all_fields(items.item, item)
    return _parts(added, modified, removed)


def _compare_items(value_schema: ValueSchema, old: Any, new: Any, is_strict: bool) -> _Differences:
    if old.__class__ is DuplicateItems:
        if new.__class__ is DuplicateItems:
            return _Differences() if is_same(old, new) else _CHANGED
        return _Differences(added=all_fields(value_schema, new), removed=LEAF)
    if new.__class__ is DuplicateItems:
        return _Differences(added=LEAF, removed=all_fields(value_schema, old))
    if old == new and (not is_strict or is_same(old, new)):
        return _Differences()
    return _compare(value_schema, old, new, is_strict)


def _attach(element: str, found: _Differences, added: FieldSet, modified: FieldSet, removed: FieldSet) -> None:
    if found.added is not None:
        added[element] = found.added
    if found.modified is not None:
        modified[element] = found.modified
    if found.removed is not None:
        removed[element] = found.removed


def _parts(added: FieldSet, modified: FieldSet, removed: FieldSet) -> _Differences:
    return _Differences(ordered(added) or None, ordered(modified) or None, ordered(removed) or None)


# ------------------------------------------------------------------------------------------------ items and values


class DuplicateItems(list[Any]):
    """Items of a list without keys."""


def by_element(items: ListSchema, values: list[Any]) -> dict[str, Any]:
    """The items of a list by path element, in their order. Raises `SchemaMismatchError`."""
    found: dict[str, Any] = {}
    only, elements = items.only_key, items.elements
    for index, value in enumerate(values):
        element = None
        if only is not None and value.__class__ is dict and (name := value.get(only)).__class__ is str:
            element = elements.get(name)
        if element is None:
            element = element_at(index, items, value)
        if element not in found:
            found[element] = value
        elif found[element].__class__ is DuplicateItems:
            found[element].append(value)
        else:
            found[element] = DuplicateItems([found[element], value])
    return found


def element_at(index: int, items: ListSchema, value: Any) -> str:
    """The path element of an item. Raises `SchemaMismatchError` with its index if the item has none."""
    try:
        return element_of(items, value)
    except SchemaMismatchError as error:
        raise SchemaMismatchError(f"element {index}: {error}") from None


def element_of(items: ListSchema, value: Any) -> str:
    """The path element of an item. Raises `SchemaMismatchError`."""
    if not items.keys:
        return _element_in_set(value)
    if value.__class__ is not dict:
        sort = "a null element" if value is None else "non-map elements"
        raise SchemaMismatchError(f"associative list with keys may not have {sort}")
    keys = items.sorted_keys
    if items.only_key is not None:
        only = value.get(items.only_key)
        if only.__class__ is str:
            return items.elements.get(only) or items.elements.put(only, key_element(keys, (only,)))
    defaults = items.item.map.defaults if items.item.map is not None else {}
    # A key that is absent and has no default is left out: that is an item of its own.
    given = {key: value.get(key, defaults.get(key)) for key in keys if key in value or defaults.get(key) is not None}
    if not given:
        listed = "[" + " ".join(f'"{key}"' for key in items.keys) + "]"
        raise SchemaMismatchError(
            f"associative list with keys has an element that omits all key fields {listed} "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(list(given), list(given.values()))


def _element_in_set(value: Any) -> str:
    match value:
        case dict():
            raise SchemaMismatchError("associative list without keys has an element that's a map type")
        case list():
            raise SchemaMismatchError("not supported: associative list with lists as elements")
        case None:
            raise SchemaMismatchError("associative list without keys has an element that's an explicit null")
        case _:
            return value_element(value)


def is_same(left: Any, right: Any) -> bool:
    """Whether two values are equal; True is not 1."""
    if left.__class__ is dict and right.__class__ is dict:
        return len(left) == len(right) and all(name in right and is_same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
