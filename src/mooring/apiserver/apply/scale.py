"""Scale: who manages the replicas of an object, seen through its Scale.

Comes in   the managedFields of an object, or of its Scale after somebody wrote it
Goes out   the other

 1. The Scale of an object shows the managers of its replicas and nothing else, in the version of Scale.
 2. An updater who writes the object again through its Scale gets a second entry, without a time: that is what
    kube-apiserver does.
"""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document
from mooring.apiserver.apply.field_set import FieldSet, Path, difference, has, set_of
from mooring.apiserver.apply.managers import Entry, Managers, stored_managers, written
from mooring.apiserver.apply.path_elements import FIELD

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
