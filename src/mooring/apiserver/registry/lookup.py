"""Looking other objects up, for admission: the namespace of a pod, the limits and quotas of a namespace.

Comes in   a kind and a name, or a kind and a namespace
Goes out   documents, shared by everybody who asks: nobody changes them

 1. Every answer comes from the store, so that a look-up sees all writes before it; only decoding is remembered, by the
    revision of the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.registry.object_storage import document_of
from mooring.store.interface import Record, Store

DOCUMENTS_KEPT_MAX = 4_096


class _LabelsOfMetadata(msgspec.Struct):
    labels: dict[str, str] | None = None


class _LabelsOfObject(msgspec.Struct):
    metadata: _LabelsOfMetadata


_decode_labels = msgspec.json.Decoder(_LabelsOfObject).decode


class StoreLookup:
    """Keeps the promise of `admission.interface.Lookup` on a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, tuple[int, Document]] = {}

    async def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        record = await self._store.get(kind.key(namespace, name))
        return None if record is None else self._document(kind, record)

    async def labels(self, kind: Kind, namespace: str, name: str) -> Mapping[str, str] | None:
        record = await self._store.get(kind.key(namespace, name))
        return None if record is None else _decode_labels(record.value).metadata.labels or {}

    async def list(self, kind: Kind, namespace: str = "") -> Sequence[Document]:
        page = await self._store.list(kind.keys_prefix(namespace))
        return [self._document(kind, record) for record in page.records]

    def _document(self, kind: Kind, record: Record) -> Document:
        kept = self._kept.get(record.key)
        if kept is not None and kept[0] == record.revision:
            return kept[1]
        document = document_of(kind, record.value, record.revision)
        if len(self._kept) >= DOCUMENTS_KEPT_MAX:
            self._kept.clear()
        self._kept[record.key] = (record.revision, document)
        return document
