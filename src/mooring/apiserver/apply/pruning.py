"""Pruning: taking out what somebody applied the last time and does not apply any more.

Comes in   a live document with what was applied merged in, and all managers
Goes out   the same without what the applier let go of and nobody else owns

 1. First everything goes that he had applied. Then everything comes back that somebody owns now, himself included.
    Then everything comes back that was not his.
 2. Named fields count as owned by those who own something in them: a struct is not kept for being empty.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.apply.field_set import FieldSet, difference, intersection, union
from mooring.apiserver.apply.managers import Entry, Managers
from mooring.apiserver.apply.removing import removed, with_named_fields
from mooring.apiserver.apply.shape import Grain, Shape
from mooring.apiserver.apply.typed import claimed_fields


def pruned(
    shape: Shape, api_version: str, merged: Document, managers: Managers, last: Entry | None, claimed: FieldSet
) -> Document:
    """A merged document without what its applier let go of, who claims `claimed` now (also among `managers`)."""
    if last is None or not last.fields:
        return merged
    if last.api_version == api_version and not difference(last.fields, claimed):
        return merged  # he let go of nothing
    grain = shape.grain_at(api_version, last.api_version)
    if grain is None:
        return merged
    result = removed(grain, merged, with_named_fields(grain, last.fields))
    result = _with_owned(shape, api_version, merged, result, managers, last.api_version)
    return _with_foreign(grain, merged, result, last.fields)


def _with_owned(
    shape: Shape, api_version: str, merged: Document, result: Document, managers: Managers, first: str
) -> Document:
    """What is left, and what somebody owns."""
    owned: dict[str, FieldSet] = {}
    for entry in managers.values():
        owned[entry.api_version] = union(owned.get(entry.api_version, {}), entry.fields)
    for version in sorted(owned, key=lambda version: version != first):
        grain = shape.grain_at(api_version, version)
        if grain is not None:
            here, left = _named(grain, merged), _named(grain, result)
            keep = union(left, with_named_fields(grain, owned[version]))
            result = removed(grain, merged, difference(here, keep))
    return result


def _with_foreign(grain: Grain, merged: Document, result: Document, last: FieldSet) -> Document:
    """What is left, and what the applier never had."""
    gone = difference(_named(grain, merged), _named(grain, result))
    return removed(grain, merged, intersection(gone, with_named_fields(grain, last)))


def _named(grain: Grain, document: Document) -> FieldSet:
    return with_named_fields(grain, claimed_fields(grain, document))
