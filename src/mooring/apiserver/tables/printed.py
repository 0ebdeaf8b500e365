"""What is printed of each kind.

Comes in   a resource, and objects of it
Goes out   its columns, and rows

 1. A kind has a table of its own in one of the rooms beside this one; a custom kind brings one along; of all others the
    name is printed and when they were made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.resources import Resource
from mooring.apiserver.tables import events, network, nodes, pods, policies, storage, workloads
from mooring.apiserver.tables.columns import DEFAULT_TABLE, KindTable

_TABLES: Mapping[Kind, KindTable] = {
    kind: table
    for room in (events, network, nodes, pods, policies, storage, workloads)
    for kind, table in room.TABLES.items()
}


class PrintedTables:
    """Keeps the promise of `Tables`."""

    def columns(self, resource: Resource) -> Sequence[Document]:
        return _table_of(resource).columns

    def row(self, resource: Resource, obj: Document, now_s: float) -> Document:
        return _table_of(resource).row(obj, now_s)

    def no_rows(self, resource: Resource) -> list[Document] | None:
        # A list that was never begun is null in Go; whoever prints names and times begins it with the first row.
        return None if _table_of(resource) is DEFAULT_TABLE else []


def _table_of(resource: Resource) -> KindTable:
    return resource.table or _TABLES.get(resource.kind, DEFAULT_TABLE)
