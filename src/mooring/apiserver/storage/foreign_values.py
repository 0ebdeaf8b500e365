"""Converts a value that kube-apiserver wrote to etcd to the stored form.

Input: a key below `/registry/` and its value: JSON, or protobuf with the prefix `k8s\\0`. Output: the value in the form
of `stored_form`; or `ValueUnreadable`, which names the key.

1. Nothing is lost: a value with a field that the schema does not have, of a newer version, is unreadable, and so is an
   encrypted value.
2. A value below a key of a kind that is not served is returned unchanged.
3. kube-apiserver v1.36 stores the kinds that are served here in the version that is served, except for
   CustomResourceDefinitions: they are JSON of apiextensions.k8s.io/v1beta1. An object in any other version is
   unreadable.
4. kube-apiserver sorts the fields of custom resources, so that `metadata` may follow a field which contains another
   `metadata`. It also ends JSON with a newline. `stored_form` allows neither. JSON without a newline is our own.
5. kube-apiserver sets defaults when it reads a stored object: the phase of a claim, the kind of claim templates of a
   StatefulSet. So do we, once: our own values have them.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import CUSTOM_RESOURCE_DEFINITION, REGISTRY, Kind, all_kinds
from mooring.api.schema.types import struct_of_kind
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.storage.stored_form import encoded, stored_form, stored_kind
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.wire.canonical import canonical
from mooring.apiserver.wire.protobuf import MAGIC, ProtobufError, message, open_envelope
from mooring.apiserver.wire.scalars import ScalarError, UnexpectedJsonType
from mooring.store.interface import ValueUnreadable

OLD_DEFINITIONS: Final = "apiextensions.k8s.io/v1beta1"
_MIGRATE: Final = "write the object again with a kube-apiserver that stores another form, and start again"

_FIRST_FIELDS: Final = ("kind", "apiVersion", "metadata")
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode
_kinds: Final[dict[str, Kind]] = {row.key_prefix: stored_kind(row) for row in all_kinds()}


def read_stored_value(key: str, value: bytes) -> bytes:
    """The stored form of a value of etcd. Raises `ValueUnreadable`."""
    kind = _kind_of_key(key)
    if value.startswith(b"{"):
        return _from_json(key, value, kind)
    if kind is None or not key.startswith(REGISTRY):
        return value
    if not value.startswith(MAGIC):
        raise ValueUnreadable(key, f"it begins with {value[:16]!r}, neither as JSON nor as protobuf; {_MIGRATE}")
    return _from_protobuf(key, value, kind)


def _kind_of_key(key: str) -> Kind | None:
    """The kind in whose form the objects of a folder are stored; None: no built-in kind."""
    end = key.find("/", len(REGISTRY)) + 1
    found = _kinds.get(key[:end])
    return found or _kinds.get(key[: key.find("/", end) + 1])  # services/specs/


def _from_json(key: str, value: bytes, kind: Kind | None) -> bytes:
    if not key.startswith(REGISTRY):
        return value
    fields = _fields(key, value, kind)
    if fields is None:
        return value
    if tuple(fields)[: len(_FIRST_FIELDS)] != _FIRST_FIELDS:
        value = encoded({name: fields[name] for name in _FIRST_FIELDS} | fields)
    name, api_version = _decode_text(fields["kind"]), _decode_text(fields["apiVersion"])
    if kind is not None and (name, api_version) != (kind.kind, kind.api_version):
        if kind is not CUSTOM_RESOURCE_DEFINITION or (name, api_version) != (kind.kind, OLD_DEFINITIONS):
            raise ValueUnreadable(key, f"it is a {name} of {api_version}, but {kind.api_version} is served; {_MIGRATE}")
        return _canonical_form(key, kind, definition_of_v1beta1(msgspec.json.decode(value)))
    if not value.endswith(b"\n"):
        return value
    return value[:-1] if kind is None else _canonical_form(key, kind, msgspec.json.decode(value))


def _fields(key: str, value: bytes, kind: Kind | None) -> dict[str, msgspec.Raw] | None:
    """The fields of an object, not decoded; None: it is no object, and no kind is stored there."""
    try:
        fields = _decode_fields(value)
        _decode_text(fields["kind"])
        _decode_text(fields["apiVersion"])
        if "metadata" not in fields:
            raise KeyError("metadata")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError) as error:
        if kind is None:
            return None
        raise ValueUnreadable(key, f"it is no object: {error}") from None
    return fields


def _from_protobuf(key: str, value: bytes, kind: Kind) -> bytes:
    try:
        api_version, name, raw = open_envelope(value)
        if (name, api_version) != (kind.kind, kind.api_version):
            raise ValueUnreadable(key, f"it is a {name} of {api_version}, but {kind.api_version} is served; {_MIGRATE}")
        struct = struct_of_kind(api_version, name)
        assert struct is not None, kind
        unknown: list[str] = []
        document = message(struct, raw, unknown)
    except ProtobufError as error:
        raise ValueUnreadable(key, f"it is no protobuf of {kind}: {error}") from None
    if unknown:
        raise ValueUnreadable(key, f"it has the protobuf fields {', '.join(unknown)}, which {kind} does not have here")
    return _canonical_form(key, kind, document)


def _canonical_form(key: str, kind: Kind, document: Document) -> bytes:
    struct = struct_of_kind(kind.api_version, kind.kind)
    assert struct is not None, kind
    dropped: list[str] = []
    try:
        whole = canonical(struct, document, dropped)
    except (UnexpectedJsonType, ScalarError) as error:
        raise ValueUnreadable(key, f"it is no {kind}: {str(error) or 'a field has the wrong type'}") from None
    if dropped:
        raise ValueUnreadable(key, f"it has the fields {', '.join(dropped)}, which {kind} does not have")
    _strategy(kind).default(whole)
    return stored_form(kind, whole, whole["metadata"])


@cache
def _strategy(kind: Kind) -> Strategy:
    return strategy_of(kind)


# --- CustomResourceDefinitions ------------------------------------------------------------------------------------

# Fields of the spec in v1beta1 that apply to every version, and their names in an entry of `spec.versions` in v1.
_SHARED: Final = {
    "validation": "schema",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}


def definition_of_v1beta1(definition: Document) -> Document:
    """A CustomResourceDefinition of v1beta1 as v1 has it. Fields that neither version has stay where they are."""
    spec: dict[str, Any] = {**(definition.get("spec") or {})}
    first = spec.pop("version", None)
    versions = [{**entry} for entry in spec.get("versions") or ()]
    if not versions and first:
        versions = [{"name": first, "served": True, "storage": True}]
    shared = {name: spec.pop(old) for old, name in _SHARED.items() if spec.get(old) is not None}
    for entry in versions:
        entry.update(shared)
        if entry.get("additionalPrinterColumns"):
            entry["additionalPrinterColumns"] = [_column(column) for column in entry["additionalPrinterColumns"]]
    spec["versions"] = versions
    spec.setdefault("scope", "Namespaced")
    spec["conversion"] = _conversion(spec.get("conversion") or {"strategy": "None"})
    spec["preserveUnknownFields"] = spec.get("preserveUnknownFields") is not False  # absent means true in v1beta1
    return {**definition, "apiVersion": CUSTOM_RESOURCE_DEFINITION.api_version, "spec": spec}


def _column(column: Document) -> Document:
    return {"jsonPath" if name == "JSONPath" else name: value for name, value in column.items()}


def _conversion(conversion: Document) -> Document:
    rest = {**conversion}
    config, reviews = rest.pop("webhookClientConfig", None), rest.pop("conversionReviewVersions", None)
    if config is not None or reviews is not None:
        rest["webhook"] = {"clientConfig": config, "conversionReviewVersions": reviews}
    return rest
