"""Builders of objects of the core, storage and device kinds as strategies get them, and their field errors.

document(SERVICE, spec={"ports": [{"port": 80}]})     canonical and defaulted, named `v` in the namespace `web`
created(SERVICE, document)                            prepares the document and returns messages of field errors
changed(SERVICE, old, spec={...})                     the same for an old object of which some parts are replaced

messages(errors)                                      messages of field errors
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.api.schema.types import struct_of_kind
from mooring.apiserver.call import Call
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import FieldError
from mooring.apiserver.wire.canonical import canonical
from mooring.serving.users import User

NOW = "2026-01-01T00:00:00Z"


def strategy(kind: Kind, subresource: str = "") -> Strategy:
    found = strategy_of(kind)
    return found.subresources[subresource] if subresource else found


def call(kind: Kind, namespace: str = "web") -> Call:
    return Call("create", kind, User("anna"), 0.0, NOW, namespace)


def document(kind: Kind, metadata: Document | None = None, **body: Any) -> Document:
    struct = struct_of_kind(kind.api_version, kind.kind)
    assert struct is not None
    named: Document = {"name": "v", "uid": "00000000-0000-4000-8000-000000000001", "resourceVersion": "1"}
    if kind.is_namespaced:
        named["namespace"] = "web"
    made = canonical(struct, {"metadata": {**named, **(metadata or {})}, **deepcopy(body)}, [])
    strategy(kind).default(made)
    return made


def created(kind: Kind, made: Document) -> list[str]:
    """Prepare a new object and return its field errors."""
    how = strategy(kind)
    how.prepare_for_create(made, call(kind))
    return messages(how.validate(made, call(kind)))


def changed(kind: Kind, old: Document, subresource: str = "", **parts: Any) -> tuple[list[str], Document]:
    """The field errors of an update, and the prepared object. The old object must not change."""
    how = strategy(kind, subresource)
    new = document(kind, **{**{field: old[field] for field in old if field not in ("kind", "apiVersion")}, **parts})
    before = deepcopy(old)
    how.prepare_for_update(new, old, call(kind))
    errors = messages(how.validate_update(new, old, call(kind)))
    assert old == before, "the old object was changed"
    return errors, new


def messages(errors: Iterable[FieldError]) -> list[str]:
    """The message of each field error."""
    return [error.message for error in errors]
