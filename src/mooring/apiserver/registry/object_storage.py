"""Reads and writes documents in the store.

Input: kinds, names, documents. Output: documents with their resourceVersion; conditional writes.

1. The caller owns a returned document and may change it.
2. The store keeps an object without resourceVersion, because its record has a revision. Returned documents have one:
   strategies and patches read it.
3. Events of both event APIs are stored in one form and returned in the form of the requested kind.
4. `StoreLookup` reads for admission plugins. Each answer is read from the store; only the decoding is cached, by the
   revision of the record. Its documents are shared: no caller changes one.
5. `ServerStatusWriter` writes statuses for the server itself: the usage of a quota, the disruptions that a budget still
   allows. kube-apiserver sends itself a request. Here the status is stored directly, on the condition that no other
   write came first, with `kube-apiserver` as the manager of the changed fields.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, cast

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import RESOURCE_QUOTA, Kind
from mooring.apiserver.apply.managers import UPDATE, manager_id
from mooring.apiserver.apply.update import write_managed_fields
from mooring.apiserver.call import Call
from mooring.apiserver.resources import ResourceTable
from mooring.apiserver.storage.stored_form import (
    decoded,
    needs_conversion,
    partly_decoded,
    stored_form,
    stored_kind,
    to_served,
    to_stored,
    with_revision,
)
from mooring.apiserver.worker import WORKER_BYTES_MIN, WorkerThread
from mooring.client.errors import StatusError
from mooring.store.interface import MUST_NOT_EXIST, Record, Store, WriteConflict

CACHED_DOCUMENTS_MAX = 4_096
WRITE_TRIES_MAX = 64
"""How often a verb tries a conditional write while other requests write the same object. Then it is a conflict."""

_encode = msgspec.json.Encoder().encode

OBJECT_BYTES_MAX = 1_572_864
"""1.5 MiB, as etcd's limit for a request, on every store. A larger object is rejected (413)."""
DOCUMENT_BYTES_MAX = 3 * 1024 * 1024
"""As large as a body may be. What a patch or defaults make larger is rejected (413) before it is admitted and
validated: it would be too large to be stored, and defaults multiply the size of small items by ten."""


class StoredObject(NamedTuple):
    """A stored object, and the revision of its record."""

    document: Document
    revision: int
    value: bytes
    """The form in which it is stored."""


class WriteResult(NamedTuple):
    """The revision of a write, and the form that was stored."""

    revision: int
    value: bytes | None
    """None if clients of the kind get another form."""

    @property
    def answer(self) -> bytes | None:
        """The bytes for clients, if they are the stored ones and need not be encoded again."""
        return with_revision(self.value, self.revision) if self.value is not None else None


class ObjectStorage:
    """Reads and writes whole objects."""

    def __init__(self, store: Store, worker: WorkerThread) -> None:
        self._store = store
        self._worker = worker

    async def find(self, kind: Kind, namespace: str, name: str) -> StoredObject | None:
        record = await self._store.get(kind.key(namespace, name))
        if record is None:
            return None
        document = await self._worker.run(len(record.value), document_of, kind, record.value, record.revision)
        return StoredObject(document, record.revision, record.value)

    async def find_partly(
        self, kind: Kind, namespace: str, name: str, fields: Mapping[str, Collection[str]]
    ) -> StoredObject | None:
        """As `find`, with only the given fields of each section decoded (`storage.stored_form.partly_decoded`).

        The name and the namespace are those of the key: they need no decoding.
        """
        record = await self._store.get(kind.key(namespace, name))
        if record is None:
            return None
        document = cast(Document, partly_decoded(record.value, fields))
        metadata = document["metadata"]
        metadata["name"] = name
        if kind.is_namespaced:
            metadata["namespace"] = namespace
        metadata["resourceVersion"] = str(record.revision)
        return StoredObject(document, record.revision, record.value)

    async def put(self, kind: Kind, document: Document, *, if_revision: int) -> int:
        """Write a document, if the record still has that revision. Raises `WriteConflict`."""
        return (await self._write(kind, document, self.form(kind, document), if_revision)).revision

    async def replace(self, kind: Kind, document: Document, *, if_revision: int) -> WriteResult:
        """As `put`. Returns what clients get, too."""
        return await self._write(kind, document, self.form(kind, document), if_revision)

    async def create(self, kind: Kind, document: Document) -> WriteResult:
        """Write a new document. Raises `WriteConflict`."""
        return await self._write(kind, document, self.form(kind, document), MUST_NOT_EXIST)

    async def _write(self, kind: Kind, document: Document, form: bytes, if_revision: int) -> WriteResult:
        metadata = document["metadata"]
        if len(form) > OBJECT_BYTES_MAX:
            raise _too_large(len(form))
        key = kind.key(metadata.get("namespace", ""), metadata["name"])
        revision = await self._store.put(key, form, if_revision=if_revision)
        is_same = stored_kind(kind) is kind and not needs_conversion(kind)
        return WriteResult(revision, form if is_same else None)

    async def delete(self, kind: Kind, namespace: str, name: str, *, if_revision: int) -> int:
        return await self._store.delete(kind.key(namespace, name), if_revision=if_revision)

    def form(self, kind: Kind, document: Document) -> bytes:
        """A document as it is stored."""
        metadata = document["metadata"]
        if "resourceVersion" in metadata:
            metadata = {field: value for field, value in metadata.items() if field != "resourceVersion"}
        return stored_form(stored_kind(kind), to_stored(kind, document), metadata)


def check_document_size(document: Document, call: Call) -> None:
    """Raises a 413 for a document that is too large to be handled. Small requests cannot make one."""
    if call.size_bytes >= WORKER_BYTES_MIN and (size_bytes := len(_encode(document))) > DOCUMENT_BYTES_MAX:
        raise _too_large(size_bytes)


def _too_large(size_bytes: int) -> StatusError:
    return StatusError(
        f"Request entity too large: the object would have {size_bytes} bytes, and may have {OBJECT_BYTES_MAX}",
        code=413,
        reason="RequestEntityTooLarge",
    )


def document_of(kind: Kind, value: bytes, revision: int) -> Document:
    """A stored object as a document, with its resourceVersion."""
    document = cast(Document, to_served(kind, decoded(value)))
    document["metadata"]["resourceVersion"] = str(revision)
    return document


class _LabelsOfMetadata(msgspec.Struct):
    labels: dict[str, str] | None = None


class _LabelsOfObject(msgspec.Struct):
    metadata: _LabelsOfMetadata


_decode_labels = msgspec.json.Decoder(_LabelsOfObject).decode


class StoreLookup:
    """Implements `admission.interface.Lookup` on a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cached: dict[str, tuple[int, Document]] = {}

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
        cached = self._cached.get(record.key)
        if cached is not None and cached[0] == record.revision:
            return cached[1]
        document = document_of(kind, record.value, record.revision)
        if len(self._cached) >= CACHED_DOCUMENTS_MAX:
            self._cached.clear()
        self._cached[record.key] = (record.revision, document)
        return document


OWN_MANAGER = "kube-apiserver"


class ServerStatusWriter:
    """Writes statuses for the server. Implements `QuotaStatusWriter`."""

    def __init__(self, object_storage: ObjectStorage, resources: ResourceTable) -> None:
        self._object_storage = object_storage
        self._resources = resources

    async def write(self, kind: Kind, live: Document, status: Document, now: str) -> None:
        """Replace the status of an object that is still as it was read. `live` is not changed."""
        resource = self._resources.of_kind(kind)
        new: Document = {**live, "metadata": dict(live["metadata"]), "status": status}
        writer = manager_id(OWN_MANAGER, UPDATE, kind.api_version, "status")
        ignored = resource.strategies["status"].ignored_fields
        write_managed_fields(resource.merge_schema, live, new, writer, now, ignored)
        await self._object_storage.put(kind, new, if_revision=int(live["metadata"]["resourceVersion"]))

    async def write_used(self, quota: Document, used: Mapping[str, str], now: str) -> bool:
        try:
            await self.write(RESOURCE_QUOTA, quota, {**quota["status"], "used": dict(used)}, now)
        except WriteConflict:
            return False
        return True
