"""The managers of an object: the entries of its managedFields.

Input: managedFields, as stored or as a client sent them. Output: entries by manager; managedFields in order.

1. A manager is a name, an operation and a subresource; for updates also an apiVersion. An applier keeps its entry
   when it changes the version.
2. An unchanged entry is written as it was read: the same JSON, not a copy.
3. At most `UPDATERS_MAX` entries come from updates. Beyond that, the oldest entries are merged.
4. In FieldsV1 of a client, elements of an unknown type are dropped, as by kube-apiserver. Everything else that is
   invalid raises `ElementError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from mooring.api.document import Document
from mooring.api.field_errors import go_json
from mooring.apiserver.apply.field_set import (
    FIELD,
    LEAF,
    SELF,
    ElementError,
    FieldSet,
    difference,
    ordered,
    parsed_element,
    set_of,
    union,
)


def read_fields(fields: object) -> FieldSet:
    """A field set from its JSON. Raises `ElementError`."""
    if fields is None:
        return {}
    branch = _read(fields)
    return {element: below for element, below in branch.items() if element != SELF}


def _read(fields: object) -> FieldSet:
    if fields is None:
        return LEAF
    if not isinstance(fields, dict):
        raise ElementError("expect { or n")
    branch: FieldSet = {}
    for text, below in fields.items():
        if text == SELF:
            branch[SELF] = LEAF
            continue
        element = parsed_element(text)
        if element is not None:
            branch[element] = _read(below)
    # Only "." and nothing else is the same as nothing: both mean the path that ends here.
    return LEAF if len(branch) == 1 and SELF in branch else ordered(branch)


APPLY = "Apply"
UPDATE = "Update"
FIELDS_V1 = "FieldsV1"

UPDATERS_MAX = 10
OLD_UPDATES = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"
UNKNOWN = "unknown"

_SYSTEM_FIELDS = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
_UNMANAGED = set_of(
    [
        [FIELD + "apiVersion"],
        [FIELD + "kind"],
        [FIELD + "metadata"],
        *([FIELD + "metadata", FIELD + name] for name in _SYSTEM_FIELDS),
    ]
)
"""Fields without an owner: the identity of an object, and fields of the server."""


class ManagerId(NamedTuple):
    """A field manager."""

    name: str
    operation: str
    api_version: str
    """Empty for managers that apply."""
    subresource: str

    @property
    def sort_text(self) -> str:
        """The text by which kube-apiserver sorts managers."""
        parts = {"manager": self.name, "operation": self.operation, "apiVersion": self.api_version}
        return go_json({name: part for name, part in (parts | {"subresource": self.subresource}).items() if part})


@dataclass(slots=True)
class Entry:
    """One entry of managedFields: a manager and the fields that it owns."""

    api_version: str
    fields: FieldSet
    time: str | None
    source: Document | None = None
    """The entry as it was read, if it has not changed."""

    def keep_only(self, fields: FieldSet) -> None:
        if fields is not self.fields:
            self.fields = fields
            self.source = None


Managers = dict[ManagerId, Entry]


class EntryError(ValueError):
    """An invalid entry of managedFields."""


def manager_id(name: str, operation: str, api_version: str, subresource: str) -> ManagerId:
    version = "" if operation == APPLY else api_version
    return ManagerId(name or UNKNOWN, operation, version, subresource)


def stored_managers(document: Document | None) -> Managers:
    """The managers of a stored object, whose entries this server has written in order."""
    found: Managers = {}
    for source in (document["metadata"].get("managedFields") or ()) if document is not None else ():
        api_version = source["apiVersion"]
        operation = source["operation"]
        version = "" if operation == APPLY else api_version
        key = ManagerId(source.get("manager", ""), operation, version, source.get("subresource", ""))
        found[key] = Entry(api_version, source.get("fieldsV1") or {}, source.get("time"), source)
    return found


def given_managers(entries: list[Any]) -> Managers:
    """The managers that a client sent. Raises `EntryError`."""
    found: Managers = {}
    for index, source in enumerate(entries):
        operation, api_version = source.get("operation", ""), source.get("apiVersion", "")
        if operation not in (APPLY, UPDATE):
            raise EntryError("operation must be `Apply` or `Update`")
        if not api_version:
            raise EntryError("apiVersion must not be empty")
        match source.get("fieldsType", ""):
            case "FieldsV1":
                pass
            case "":
                raise EntryError(f"missing fieldsType in managed fields entry {index}")
            case other:
                raise EntryError(f'invalid fieldsType "{other}" in managed fields entry {index}')
        try:
            fields = read_fields(source.get("fieldsV1"))
        except ElementError as error:
            raise EntryError(f"error decoding set: {error}") from None
        version = "" if operation == APPLY else api_version
        key = ManagerId(source.get("manager", ""), operation, version, source.get("subresource", ""))
        found[key] = Entry(api_version, fields, source.get("time"))
    return found


def written(managers: Managers) -> list[Document]:
    """managedFields: entries of Apply first, then of Update, each sorted by time."""
    entries = [written_entry(key, entry) for key, entry in managers.items()]
    if len(entries) > 1:
        entries.sort(key=_entry_order)
    return entries


def capped(managers: Managers) -> Managers:
    """The managers, with at most `UPDATERS_MAX` from updates."""
    updaters = [key for key in managers if key.operation == UPDATE]
    if len(updaters) <= UPDATERS_MAX:
        return managers
    updaters.sort(key=lambda key: (managers[key].time or "", key.sort_text))
    first_of_version: dict[str, ManagerId] = {}
    count = len(updaters)
    for key in updaters:
        if count <= UPDATERS_MAX:
            break
        entry = managers[key]
        first = first_of_version.setdefault(entry.api_version, key)
        if first is key:
            continue
        bucket = ManagerId(OLD_UPDATES, UPDATE, entry.api_version, "")
        if bucket not in managers:
            managers[bucket] = managers.pop(first)
        fields = union(entry.fields, managers[bucket].fields)
        managers.pop(key, None)
        managers[bucket] = Entry(entry.api_version, fields, entry.time)
        count -= 1
    return managers


def manageable(fields: FieldSet) -> FieldSet:
    """A set without the fields that have no owner."""
    return difference(fields, _UNMANAGED)


def written_entry(key: ManagerId, entry: Entry) -> Document:
    """One entry of managedFields."""
    if entry.source is not None:
        return entry.source
    document: Document = {"manager": key.name} if key.name else {}
    document |= {"operation": key.operation, "apiVersion": entry.api_version}
    if entry.time is not None:
        document["time"] = entry.time
    document["fieldsType"] = FIELDS_V1
    document["fieldsV1"] = entry.fields
    if key.subresource:
        document["subresource"] = key.subresource
    return document


def _entry_order(entry: Document) -> tuple[str, str, str, str, str]:
    return (
        entry["operation"],
        entry.get("time", ""),
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )
