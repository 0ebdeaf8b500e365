"""Merge an applied document into a live one, remove fields, and prune fields that are no longer applied.

Input: documents, their schema, and the managers. Output: new documents, which share parts with the given ones.

1. Merging removes nothing: null for a map or for a list with keys keeps the live value.
2. Items that both lists have are in the applied order; the others keep their place among their neighbours. An applied
   item replaces all live items with the same keys.
3. `without` removes a path with everything below it. An atomic value is removed if any path below it is. A map or list
   that loses everything becomes null, which is not written.
4. Pruning first removes everything that the applier had applied, then adds back what any manager owns now, then what
   the applier did not own. A named field counts as owned if something in it is owned, so that no empty struct stays.
"""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document
from mooring.api.schema.types import ListKind
from mooring.apiserver.apply.field_set import FIELD, KEY, SELF, FieldSet, difference, ends_here, intersection, union
from mooring.apiserver.apply.kind_schema import KindSchema, ListSchema, MapSchema, ValueSchema
from mooring.apiserver.apply.managers import Entry, Managers
from mooring.apiserver.apply.typed import SchemaMismatchError, claimed_fields, element_at, element_of


def merged(value_schema: ValueSchema, live: Document, applied: Document) -> Document:
    """The live document with everything that was applied. Raises `SchemaMismatchError`."""
    result: Document = _merged(value_schema, live, applied)
    return result


def _merged(value_schema: ValueSchema, live: Any, applied: Any) -> Any:
    """Merge two values, neither of which is absent."""
    live_is_map, applied_is_map = live.__class__ is dict, applied.__class__ is dict
    if value_schema.map is not None and not value_schema.map.is_atomic and live_is_map and live:
        if applied_is_map:
            return _merged_maps(value_schema.map, live, applied)
        if applied is None:
            return live
    if (
        value_schema.list is not None
        and value_schema.list.kind is not ListKind.ATOMIC
        and live.__class__ is list
        and live
    ):
        if applied.__class__ is list:
            return _merged_lists(value_schema.list, live, applied)
        if applied is None:
            return live
    return applied


def _merged_maps(fields: MapSchema, live: Document, applied: Document) -> Document:
    result = dict(live)
    for name, value in applied.items():
        value_schema = fields.fields.get(name, fields.item)
        result[name] = value if name not in live or value_schema is None else _merged(value_schema, live[name], value)
    return result


def _merged_lists(items: ListSchema, live: list[Any], applied: list[Any]) -> list[Any]:
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
                mine += 1  # shared, and handled later
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


def _elements(items: ListSchema, values: list[Any]) -> list[str]:
    return [element_at(index, items, value) for index, value in enumerate(values)]


def removed(value_schema: ValueSchema, document: Document, fields: FieldSet) -> Document:
    """A document without the fields of a set."""
    return _removed(value_schema, document, fields) or {} if fields else document


def with_named_fields(value_schema: ValueSchema | None, fields: FieldSet) -> FieldSet:
    """A set with the paths of the named fields above its paths, which have no owner otherwise."""
    result: FieldSet = {}
    for element, branch in fields.items():
        if element == SELF or not branch:
            result[element] = branch
            continue
        inner, is_named = _step(value_schema, element)
        below = with_named_fields(inner, branch)
        result[element] = {SELF: below.get(SELF, {}), **below} if is_named else below
    return result


def _step(value_schema: ValueSchema | None, element: str) -> tuple[ValueSchema | None, bool]:
    """The schema below a path element, and whether the element is the field of a struct."""
    if value_schema is not None and value_schema.map is not None and element.startswith(FIELD):
        name = element[len(FIELD) :]
        inner = value_schema.map.fields.get(name)
        return inner or value_schema.map.item, inner is not None
    if value_schema is not None and value_schema.list is not None and element.startswith(KEY):
        return value_schema.list.item, False
    return None, False


def _removed(value_schema: ValueSchema, value: Any, fields: FieldSet) -> Any:
    if value.__class__ is dict and value_schema.map is not None:
        return None if not value or value_schema.map.is_atomic else _without_entries(value_schema.map, value, fields)
    if value.__class__ is list and value_schema.list is not None:
        whole = not value or value_schema.list.kind is ListKind.ATOMIC
        return None if whole else _without_items(value_schema.list, value, fields)
    return value if value_schema.scalar is not None else None


def _without_entries(schema: MapSchema, value: Document, fields: FieldSet) -> Document | None:
    result: Document = {}
    for name, held in value.items():
        below = fields.get(FIELD + name)
        if below is None:
            result[name] = held
        elif not ends_here(below):
            value_schema = schema.fields.get(name, schema.item)
            result[name] = held if value_schema is None else _removed(value_schema, held, below)
    return result or None


def _without_items(items: ListSchema, value: list[Any], fields: FieldSet) -> list[Any] | None:
    result: list[Any] = []
    for held in value:
        try:
            below = fields.get(element_of(items, held))
        except SchemaMismatchError:
            below = None
        if below is None:
            result.append(held)
        elif not ends_here(below):
            result.append(_removed(items.item, held, below))
    return result or None


def pruned(
    kind_schema: KindSchema,
    api_version: str,
    merged: Document,
    managers: Managers,
    last: Entry | None,
    claimed: FieldSet,
) -> Document:
    """A merged document without the fields that its manager no longer applies. `claimed` are the fields applied now."""
    if last is None or not last.fields:
        return merged
    if last.api_version == api_version and not difference(last.fields, claimed):
        return merged  # the manager still applies all of its fields
    value_schema = kind_schema.schema_at(api_version, last.api_version)
    if value_schema is None:
        return merged
    result = removed(value_schema, merged, with_named_fields(value_schema, last.fields))
    result = _with_owned(kind_schema, api_version, merged, result, managers, last.api_version)
    return _with_foreign(value_schema, merged, result, last.fields)


def _with_owned(
    kind_schema: KindSchema, api_version: str, merged: Document, result: Document, managers: Managers, first: str
) -> Document:
    """The rest, with the fields that another manager owns."""
    owned: dict[str, FieldSet] = {}
    for entry in managers.values():
        owned[entry.api_version] = union(owned.get(entry.api_version, {}), entry.fields)
    for version in sorted(owned, key=lambda version: version != first):
        value_schema = kind_schema.schema_at(api_version, version)
        if value_schema is not None:
            here, left = _named(value_schema, merged), _named(value_schema, result)
            keep = union(left, with_named_fields(value_schema, owned[version]))
            result = removed(value_schema, merged, difference(here, keep))
    return result


def _with_foreign(value_schema: ValueSchema, merged: Document, result: Document, last: FieldSet) -> Document:
    """The rest, with the fields that the applier has never owned."""
    gone = difference(_named(value_schema, merged), _named(value_schema, result))
    return removed(value_schema, merged, intersection(gone, with_named_fields(value_schema, last)))


def _named(value_schema: ValueSchema, document: Document) -> FieldSet:
    return with_named_fields(value_schema, claimed_fields(value_schema, document))
