"""managedFields after a create, an update or a patch.

Comes in   the object before, the object that is wanted, and the call
Goes out   `metadata.managedFields` of the wanted object

 1. The writer owns what he changed, with the time of the change. Who changes nothing owns nothing, and nobody's time
    changes.
 2. A client may send managedFields, and they count; if they cannot be read, or if he writes to a subresource, those of
    the object do. An empty list, or one empty entry, clears them.
 3. An object without managers stays without: only creating it or applying to it begins the record.
 4. This never fails. An object that does not fit its shape loses its record and is refused later, by validation.
"""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document
from mooring.apiserver.apply.creation import place_of
from mooring.apiserver.apply.field_set import union
from mooring.apiserver.apply.filters import Ignored
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
)
from mooring.apiserver.apply.ownership import Changes, give_up, reconcile
from mooring.apiserver.apply.shape import Shape
from mooring.apiserver.apply.typed import GrainError
from mooring.apiserver.call import Call


def stamp_update(shape: Shape, live: Document | None, new: Document, call: Call, ignored: Ignored) -> None:
    """Write down who manages the fields of `new`, which replaces `live`."""
    writer = manager_id(call.field_manager, UPDATE, call.kind.api_version, call.subresource)
    place = place_of(shape, new, ignored) if live is None else None
    known = place.memory.get(place.question) if place is not None else None
    metadata = new["metadata"]
    if known is not None:
        metadata["managedFields"] = written({writer: Entry(writer.api_version, known, call.now)})
        return
    stamp(shape, live, new, writer, call.now, ignored)
    if place is not None and "managedFields" in metadata:
        place.memory.keep(place.question, metadata["managedFields"][0]["fieldsV1"])


def stamp(shape: Shape, live: Document | None, new: Document, writer: ManagerId, now: str, ignored: Ignored) -> None:
    """The same for a writer whose version is not that of the call: one who writes a Scale."""
    metadata = new["metadata"]
    given = metadata.pop("managedFields", None)
    if given is not None and (writer.subresource or _is_stored(live, given)):
        given = None
    managers = stored_managers(live) if given is None else _given_or_stored(given, live)
    if not managers and live is not None:
        return
    try:
        if given or shape.may_change:
            reconcile(managers, shape, writer.api_version)
        managers = managed_after_update(shape, live, new, managers, writer, now, ignored)
    except GrainError:
        return
    if managers:
        metadata["managedFields"] = written(managers)


def managed_after_update(
    shape: Shape,
    live: Document | None,
    new: Document,
    managers: Managers,
    writer: ManagerId,
    now: str,
    ignored: Ignored,
) -> Managers:
    """The managers after an update. Raises `GrainError`."""
    changes = Changes(shape, writer.api_version, unmanaged(live) or shape.empty, new, ignored)
    give_up(managers, changes, None)
    fields = manageable(changes.own.written)
    if fields:
        mine = managers.get(writer)
        managers[writer] = Entry(writer.api_version, union(mine.fields, fields) if mine else fields, now)
    return capped(managers)


def unmanaged(document: Document | None) -> Document | None:
    """An object without its managedFields, which are no fields that anybody owns."""
    if document is None or "managedFields" not in document["metadata"]:
        return document
    metadata = dict(document["metadata"])
    del metadata["managedFields"]
    return {**document, "metadata": metadata}


def settle_times(new: Document, old: Document) -> None:
    """Take back new times if nothing else is new, so that an object is not written for the sake of a time."""
    entries, before = new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if not entries or not before or entries is before or len(entries) != len(before) or entries == before:
        return
    if any(not _is_same_but_time(entry, other) for entry, other in zip(entries, before)):
        return
    if unmanaged(new) == unmanaged(old):
        new["metadata"]["managedFields"] = before


def _is_stored(live: Document | None, given: list[Any]) -> bool:
    """Whether a client sends back what he read, as most do."""
    return live is not None and bool(given) and bool(live["metadata"].get("managedFields") == given)


def _given_or_stored(given: list[Any], live: Document | None) -> Managers:
    if not given or given == [{}]:
        return {}
    try:
        return given_managers(given) or stored_managers(live)
    except EntryError:
        return stored_managers(live)


def _is_same_but_time(entry: Document, other: Document) -> bool:
    return entry.keys() | {"time"} == other.keys() | {"time"} and all(
        name == "time" or part == other[name] for name, part in entry.items()
    )
