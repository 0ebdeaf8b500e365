"""Merge keys: which lists a strategic merge patch merges item by item, and by which field.

Input: `apiVersion` and `kind`. Output: `Fields`: for each field with a patch strategy in itself or below, how it is
patched. The facts are the `patch` and `mergekey` marks of the schema.

 1. Any other field is ordinary: objects are merged, lists and everything else are replaced.
 2. Fields below a list that is replaced are left out, because a merge never gets there.
 3. Kinds without a schema are custom resources, which do not support strategic merge patches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mooring.api.schema.circular import CircularTable
from mooring.api.schema.model import Field, ListOf, MapOf, Scalar, Struct, Type
from mooring.api.schema.tables import struct_of_kind

Fields: TypeAlias = "Mapping[str, MergeField]"

MERGE = "merge"
REPLACE = "replace"
RETAIN_KEYS = "retainKeys"
MERGE_AND_RETAIN_KEYS = "merge,retainKeys"


@dataclass(frozen=True, slots=True)
class MergeField:
    """How one field is patched. `strategy` is the mark as Kubernetes writes it, empty for an ordinary field."""

    strategy: str
    merge_key: str
    below: Fields
    is_merged_list: bool
    is_replaced: bool


NO_FIELDS: Fields = {}

_known: CircularTable[int, dict[str, MergeField]] = CircularTable()
"""By the identity of a struct, which lives as long as the process. Filled while it is looked at: types refer to each
other in circles."""


def merge_fields(api_version: str, kind: str) -> Fields | None:
    """The special fields of a kind; None for a custom resource."""
    struct = struct_of_kind(api_version, kind)
    return None if struct is None else _fields_of(struct)


def _fields_of(struct: Struct) -> Fields:
    known = _known.get(id(struct))
    return known if known is not None else _made(struct)


def _made(struct: Struct) -> Fields:
    with _known.filling() as entries:
        if id(struct) not in entries:
            known = entries[id(struct)] = {}
            for name, field in struct.fields.items():
                special = _special(field)
                if special is not None:
                    known[name] = special
        return entries[id(struct)]


def _special(field: Field) -> MergeField | None:
    """How a field is patched; None if neither it nor anything below it is special."""
    strategy = ",".join(field.patch_strategy)
    is_merged_list = isinstance(field.type, ListOf) and MERGE in field.patch_strategy
    below = _below(field.type, is_merged_list)
    if not strategy and below is None:
        return None
    return MergeField(
        strategy=strategy,
        merge_key=field.merge_key,
        below=below if below is not None else NO_FIELDS,
        is_merged_list=is_merged_list,
        is_replaced=strategy == REPLACE,
    )


def _below(kind: Type, is_merged_list: bool) -> Fields | None:
    match kind:
        case Struct():
            return _fields_of(kind)
        case ListOf(item):
            return _fields_of(item) if is_merged_list and isinstance(item, Struct) else None
        case MapOf() | Scalar():
            return None
