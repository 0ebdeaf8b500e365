"""managedFields after a create, an update, a patch, or a write of the Scale.

Input: the stored object, the new object, and the call. Output: `metadata.managedFields` of the new object.

1. The writer owns what it changed, with the time of the change. A write that changes nothing changes no entry.
2. managedFields of the client count, unless they are invalid or the write is to a subresource. An empty list, or one
   empty entry, clears them.
3. An object without managers stays without: only create and apply add the first one.
4. No errors: an object that does not match its schema loses its managers and is rejected later, by validation.
5. A creator owns all fields. Which fields exist depends on the names in an object, not on their values, so that the
   field set is cached by this outline. Custom kinds, objects with managers and very large objects are not cached.
6. The Scale of an object shows the managers of its replicas only, in the version of Scale. An updater that writes the
   object again through its Scale gets a second entry without a time, as in kube-apiserver.

What the managers of an object own after a change.

Input: an object before and after, and its managers. Output: the managers with their fields, and the changed fields.

1. The manager that changes a field takes it from all others. A removed field has no owner.
2. An entry is read in its own version. An entry of a version that is no longer served is dropped; for a custom kind it
   is an error, because custom kinds have no conversion.
3. If the schema made a field atomic, all owners of a part of it own the field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from mooring.api.caches import BoundedCache
from mooring.api.document import Document
from mooring.api.schema.types import ListKind, struct_of_kind
from mooring.apiserver.apply.field_set import (
    FIELD,
    LEAF,
    SELF,
    FieldSet,
    Ignored,
    Path,
    difference,
    has,
    intersection,
    ordered,
    set_of,
    union,
    without_ignored,
)
from mooring.apiserver.apply.kind_schema import DEDUCED, KindSchema, ValueSchema, kind_schema_of_struct
from mooring.apiserver.apply.managers import (
    UPDATE,
    Entry,
    EntryError,
    ManagerId,
    Managers,
    capped,
    given_managers,
    manageable,
    manager_id,
    stored_managers,
    written,
    written_entry,
)
from mooring.apiserver.apply.typed import DuplicateItems, SchemaMismatchError, by_element, compare
from mooring.apiserver.call import Call

OUTLINE_LENGTH_MAX = 512

_OPEN, _CLOSE, _WHOLE, _EMPTY_MAP, _EMPTY_LIST, _SEVERAL = range(1, 7)
"""Between names, which are texts; and no empty value is one of these numbers."""
_SCALARS = frozenset({str, int, float, bool, type(None)})


class CachedOwnership(NamedTuple):
    """A cache entry for a field set."""

    memory: BoundedCache[tuple[object, ...], FieldSet]
    question: tuple[object, ...]


def cached_ownership_of(kind_schema: KindSchema, new: Document, ignored: Ignored) -> CachedOwnership | None:
    """The cache entry for the fields that the creator of an object owns."""
    if kind_schema.may_change or not kind_schema.is_blank_when_empty or "managedFields" in new["metadata"]:
        return None
    outline: list[object] = [tuple(ignored)]
    try:
        _outline(kind_schema.root, new, outline)
    except SchemaMismatchError:
        return None
    return CachedOwnership(kind_schema.ownerships, tuple(outline)) if len(outline) <= OUTLINE_LENGTH_MAX else None


def _outline(value_schema: ValueSchema | None, value: Any, outline: list[object]) -> None:
    """Add the names below a value. Raises `SchemaMismatchError`."""
    sort = value.__class__
    if sort is dict:
        fields = value_schema.map if value_schema is not None and not value_schema.is_leaf else None
        if not value or fields is None or fields.is_atomic:
            outline.append(_WHOLE if value else _EMPTY_MAP)
            return
        names = tuple(value)
        if fields.plans.get(names).__class__ is dict and all(value.values()):
            outline.append(names)
            return
        known, item = fields.fields, fields.item
        outline.append(_OPEN)
        for name, held in value.items():
            outline.append(name)
            if held.__class__ in _SCALARS:  # as below, without a call: most fields are scalars
                outline.append(_WHOLE if held else held)
            else:
                _outline(known.get(name, item), held, outline)
        outline.append(_CLOSE)
    elif sort is list:
        items = value_schema.list if value_schema is not None and not value_schema.is_leaf else None
        if not value or items is None or items.kind is ListKind.ATOMIC:
            outline.append(_WHOLE if value else _EMPTY_LIST)
            return
        outline.append(_OPEN)
        for element, held in by_element(items, value).items():
            outline.append(element)
            if held.__class__ is DuplicateItems:
                outline.append(_SEVERAL)
            else:
                _outline(items.item, held, outline)
        outline.append(_CLOSE)
    elif sort in _SCALARS:
        outline.append(_WHOLE if value else value)
    else:
        raise SchemaMismatchError(f"a {sort.__name__} has no outline")  # such as a value in place of labels


def update_managed_fields(
    kind_schema: KindSchema, live: Document | None, new: Document, call: Call, ignored: Ignored
) -> None:
    """Set the managedFields of `new`, which replaces `live`."""
    writer = manager_id(call.field_manager, UPDATE, call.kind.api_version, call.subresource)
    place = cached_ownership_of(kind_schema, new, ignored) if live is None else None
    known = place.memory.get(place.question) if place is not None else None
    metadata = new["metadata"]
    if known is not None:
        metadata["managedFields"] = [written_entry(writer, Entry(writer.api_version, known, call.now))]
        return
    write_managed_fields(kind_schema, live, new, writer, call.now, ignored)
    if place is not None and "managedFields" in metadata:
        place.memory.put(place.question, metadata["managedFields"][0]["fieldsV1"])


def write_managed_fields(
    kind_schema: KindSchema, live: Document | None, new: Document, writer: ManagerId, now: str, ignored: Ignored
) -> None:
    """As `update_managed_fields`, for a manager with another version than the call's: the writer of a Scale."""
    metadata = new["metadata"]
    given = metadata.pop("managedFields", None)
    if given is not None and (writer.subresource or _is_stored(live, given)):
        given = None
    managers = stored_managers(live) if given is None else _given_or_stored(given, live)
    if not managers and live is not None:
        return
    try:
        if given or kind_schema.may_change:
            reconcile(managers, kind_schema, writer.api_version)
        managers = managed_after_update(kind_schema, live, new, managers, writer, now, ignored)
    except SchemaMismatchError:
        return
    if managers:
        metadata["managedFields"] = written(managers)


def write_first_managed_fields(new: Document, writer: ManagerId, now: str, ignored: Ignored = ()) -> None:
    """As `write_managed_fields`, for a new object of a built-in kind."""
    api_version, kind = new["apiVersion"], new["kind"]
    struct = struct_of_kind(api_version, kind)
    assert struct is not None, f"{kind} has no schema"
    write_managed_fields(kind_schema_of_struct(struct, api_version, kind), None, new, writer, now, ignored)


def managed_after_update(
    kind_schema: KindSchema,
    live: Document | None,
    new: Document,
    managers: Managers,
    writer: ManagerId,
    now: str,
    ignored: Ignored,
) -> Managers:
    """The managers after an update. Raises `SchemaMismatchError`."""
    changes = VersionedChanges(kind_schema, writer.api_version, unmanaged(live) or kind_schema.empty, new, ignored)
    take_from_other_managers(managers, changes, None)
    fields = manageable(changes.own.written)
    if fields:
        mine = managers.get(writer)
        managers[writer] = Entry(writer.api_version, union(mine.fields, fields) if mine else fields, now)
    return capped(managers)


def unmanaged(document: Document | None) -> Document | None:
    """An object without its managedFields, which have no owner."""
    if document is None or "managedFields" not in document["metadata"]:
        return document
    metadata = dict(document["metadata"])
    del metadata["managedFields"]
    return {**document, "metadata": metadata}


def keep_unchanged_times(new: Document, old: Document) -> None:
    """Restore the old times if nothing else changed, so that an object is not written because of a time."""
    entries, before = new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if not entries or not before or entries is before or len(entries) != len(before) or entries == before:
        return
    if any(not _is_same_but_time(entry, other) for entry, other in zip(entries, before)):
        return
    if unmanaged(new) == unmanaged(old):
        new["metadata"]["managedFields"] = before


def _is_stored(live: Document | None, managed_fields: list[Any]) -> bool:
    """Whether a client sends managedFields back unchanged, as most do."""
    return live is not None and bool(managed_fields) and bool(live["metadata"].get("managedFields") == managed_fields)


def _given_or_stored(managed_fields: list[Any], live: Document | None) -> Managers:
    if not managed_fields or managed_fields == [{}]:
        return {}
    try:
        return given_managers(managed_fields) or stored_managers(live)
    except EntryError:
        return stored_managers(live)


def _is_same_but_time(entry: Document, other: Document) -> bool:
    return entry.keys() | {"time"} == other.keys() | {"time"} and all(
        name == "time" or part == other[name] for name, part in entry.items()
    )


SCALE_VERSION = "autoscaling/v1"
REPLICAS: Path = (FIELD + "spec", FIELD + "replicas")
_REPLICAS_SET: FieldSet = set_of([REPLICAS])


def scale_entries(parent: list[Any], replicas_by_version: dict[str, Path]) -> list[Document]:
    """The managedFields of a Scale, from those of its object."""
    found: Managers = {}
    for key, entry in _managers(parent).items():
        path = replicas_by_version.get(entry.api_version)
        if path and has(entry.fields, path):
            found[key] = Entry(SCALE_VERSION, _REPLICAS_SET, entry.time)
    return written(found)


def parent_entries(
    parent: list[Any], scale: list[Any], api_version: str, replicas_by_version: dict[str, Path]
) -> list[Document]:
    """The managedFields of an object, after its Scale was written."""
    before, after = _managers(parent), _managers(scale)
    found: Managers = {}
    for key, entry in before.items():
        if entry.api_version not in replicas_by_version:
            continue
        path = replicas_by_version[entry.api_version]
        if not path or not has(entry.fields, path) or after.pop(key, None) is not None:
            found[key] = entry
        elif rest := difference(entry.fields, set_of([path])):
            found[key] = Entry(entry.api_version, rest, entry.time)
    for key, entry in after.items():
        if has(entry.fields, REPLICAS):
            known = before.get(key)
            fields = set_of([replicas_by_version[api_version]])
            found[key] = Entry(api_version, fields, known.time if known is not None else None)
    return written(found)


def _managers(entries: list[Any]) -> Managers:
    return stored_managers({"metadata": {"managedFields": entries}})


# --- ownership ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OwnershipChange:
    """The differences between two states of an object that affect ownership."""

    written: FieldSet
    """Added or modified."""
    removed: FieldSet


class VersionedChanges:
    """The differences in each version that an entry may have."""

    def __init__(
        self, kind_schema: KindSchema, api_version: str, old: Document, new: Document, ignored: Ignored
    ) -> None:
        self._kind_schema = kind_schema
        self._api_version = api_version
        self._old = old
        self._new = new
        self._ignored = ignored
        self._by_version: dict[str, OwnershipChange | None] = {}
        self.own = self._compared(kind_schema.root)
        """In the version of the request."""

    def at(self, api_version: str) -> OwnershipChange | None:
        """None if the version is not served."""
        if api_version == self._api_version:
            return self.own
        if api_version not in self._by_version:
            value_schema = self._kind_schema.other_versions.get(api_version)
            self._by_version[api_version] = None if value_schema is None else self._compared(value_schema)
        return self._by_version[api_version]

    def _compared(self, value_schema: ValueSchema) -> OwnershipChange:
        added, modified, removed = compare(value_schema, self._old, self._new, is_strict=self._kind_schema.may_change)
        return OwnershipChange(
            without_ignored(union(added, modified), self._ignored), without_ignored(removed, self._ignored)
        )


def conflicts(managers: Managers, changes: VersionedChanges, writer: ManagerId) -> dict[ManagerId, FieldSet]:
    """The fields that a writer changes and other managers own."""
    found: dict[ManagerId, FieldSet] = {}
    for key, entry in managers.items():
        change = changes.at(entry.api_version)
        if key != writer and change is not None and (common := intersection(entry.fields, change.written)):
            found[key] = common
    return found


def take_from_other_managers(managers: Managers, changes: VersionedChanges, writer: ManagerId | None) -> None:
    """Remove changed and deleted fields from all managers but the writer. Changes `managers`."""
    for key, entry in list(managers.items()):
        if key != writer:
            change = changes.at(entry.api_version)
            if change is None:
                del managers[key]
                continue
            entry.keep_only(difference(difference(entry.fields, change.written), change.removed))
        if not entry.fields:
            del managers[key]


def reconcile(managers: Managers, kind_schema: KindSchema, api_version: str) -> None:
    """Adapt the entries to the current schema. Changes `managers`. Raises `SchemaMismatchError`."""
    for key, entry in list(managers.items()):
        value_schema = kind_schema.schema_at(api_version, entry.api_version)
        if value_schema is not None:
            _reconcile_entry(entry, value_schema)
        elif kind_schema.may_change:
            raise SchemaMismatchError(f"request to convert CR to an invalid group/version: {entry.api_version}")
        else:
            del managers[key]


def _reconcile_entry(entry: Entry, value_schema: ValueSchema) -> None:
    fields = _reconciled(value_schema, entry.fields)
    if fields != entry.fields:
        entry.keep_only(fields)


def _reconciled(value_schema: ValueSchema, branch: FieldSet) -> FieldSet:
    result: FieldSet = {}
    for element, below in branch.items():
        inner = LEAF if element == SELF else _reconciled_below(value_schema, element, below)
        result[element] = inner
    return ordered(result)


def _reconciled_below(value_schema: ValueSchema, element: str, below: FieldSet) -> FieldSet:
    inner = _inner(value_schema, element)
    if inner is None or not below:
        return below
    if inner.map is not None:
        if inner.map.is_atomic:
            return LEAF
        is_deduced = inner.map.item is DEDUCED and not inner.map.fields
        return below if is_deduced else _reconciled(inner, below)
    if inner.scalar is None and inner.list is not None:
        return LEAF if inner.list.kind is ListKind.ATOMIC else _reconciled(inner, below)
    return below


def _inner(value_schema: ValueSchema, element: str) -> ValueSchema | None:
    if value_schema.map is not None:
        name = element[len(FIELD) :] if element.startswith(FIELD) else ""
        return value_schema.map.fields.get(name, value_schema.map.item)
    return value_schema.list.item if value_schema.list is not None else None
