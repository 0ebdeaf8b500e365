"""The stored form of an object: JSON with every field, which is served without being decoded.

1. A stored object begins with its kind, apiVersion and metadata, in this order. It holds no resourceVersion: that is
   the revision of its record, which is known only after the write.
2. So the resourceVersion is inserted after the first `"metadata":{` of the bytes. A stored object has a name: its
   metadata is never empty.
3. A partly decoded object has `msgspec.Raw` for fields that were not requested. The encoder writes the bytes of a
   `msgspec.Raw` unchanged, so a partly decoded object is stored like a decoded one.

Events have two forms. As in kube-apiserver they are stored as core/v1, whichever API they were written through, and
also served as events.k8s.io/v1: `kubectl get events` shows what the scheduler reported through the newer API.

1. The forms differ in the names of seven fields, and in which empty fields are written. A document in canonical form
   stays in canonical form.
2. Only the top level of the event and its series are copied.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import CORE_EVENT, EVENT, Kind
from mooring.client.interface import Selection

PlainObject: TypeAlias = dict[str, object]

_METADATA = b'"metadata":{'
_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[PlainObject] = msgspec.json.Decoder(dict[str, object])
_decode_sections = msgspec.json.Decoder(dict[str, dict[str, msgspec.Raw] | str | None]).decode
_decode_value = msgspec.json.Decoder().decode


def stored_form(kind: Kind, body: Mapping[str, object], metadata: PlainObject) -> bytes:
    """`body` with that metadata, as it is stored."""
    # The first three keys fix the order; their values in `body` are then replaced.
    whole: PlainObject = {"kind": None, "apiVersion": None, "metadata": None}
    whole.update(body)
    whole["kind"], whole["apiVersion"], whole["metadata"] = kind.kind, kind.api_version, metadata
    return _encode(whole)


def encoded(whole: Mapping[str, object]) -> bytes:
    """An object that was decoded from its stored form and changed in place: its order is right already."""
    return _encode(whole)


def decoded(value: bytes) -> PlainObject:
    return _decoder.decode(value)


def partly_decoded(value: bytes, fields: Mapping[str, Collection[str]]) -> PlainObject:
    """An object of which only the given fields of metadata, spec and status are decoded.

    `fields` has the names by section. For kinds whose sections are maps, such as pods.
    """
    whole: dict[str, Any] = _decode_sections(value)
    for section, names in fields.items():
        part = whole.get(section)
        if part is not None:
            for name in names:
                if name in part:
                    part[name] = _decode_value(part[name])
    return whole


def with_revision(value: bytes, revision: int) -> bytes:
    """The bytes for clients: a stored object with its resourceVersion."""
    return value.replace(_METADATA, b'"metadata":{"resourceVersion":"%d",' % revision, 1)


# --- the two forms of events ----------------------------------------------------------------------------------


CORE_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""From the names of events.k8s.io to those of core."""

SERVED_NAMES = {core: served for served, core in CORE_NAMES.items()}

_REPORTERS = ("reportingComponent", "reportingInstance")


def stored_event(event: Mapping[str, Any]) -> Document:
    """An event of events.k8s.io as core has it."""
    core: Document = {CORE_NAMES.get(field, field): value for field, value in event.items()}
    core["kind"], core["apiVersion"] = CORE_EVENT.kind, CORE_EVENT.api_version
    for field in _REPORTERS:
        core.setdefault(field, "")
    series = core.get("series")
    if series is not None and not series.get("count"):
        core["series"] = {field: value for field, value in series.items() if field != "count"}
    return core


def served_event(event: Document) -> Document:
    """A stored event as events.k8s.io has it."""
    served: Document = {
        SERVED_NAMES.get(field, field): value
        for field, value in event.items()
        if value != "" or field not in _REPORTERS
    }
    served["kind"], served["apiVersion"] = EVENT.kind, EVENT.api_version
    series = served.get("series")
    if series is not None and "count" not in series:
        served["series"] = {"count": 0, **series}
    return served


def served_field(path: str) -> str:
    """The path of a field of core, as events.k8s.io has it: `involvedObject.name` is `regarding.name`."""
    first, dot, rest = path.partition(".")
    return f"{SERVED_NAMES.get(first, first)}{dot}{rest}"


# --- kinds that are stored in the form of another kind --------------------------------------------------------


def stored_kind(kind: Kind) -> Kind:
    """The kind in whose form objects of a kind are stored."""
    return CORE_EVENT if kind is EVENT else kind.stored_as or kind


def to_stored(kind: Kind, plain: Mapping[str, object]) -> Mapping[str, object]:
    """An object as it is stored."""
    return stored_event(plain) if kind is EVENT else plain


def to_served(kind: Kind, plain: PlainObject) -> PlainObject:
    """A stored object as the kind has it."""
    if kind.served is not None:
        return kind.served(plain)
    return served_event(plain) if kind is EVENT else plain


def needs_conversion(kind: Kind) -> bool:
    """Whether stored objects must be converted before they are served."""
    return kind is EVENT or kind.served is not None


def served_bytes(kind: Kind, value: bytes, revision: int) -> bytes:
    """A stored object as clients of the kind get it."""
    return with_revision(converted(kind, value) if needs_conversion(kind) else value, revision)


def converted(kind: Kind, value: bytes) -> bytes:
    """As `served_bytes`, without changing the resourceVersion."""
    return encoded(to_served(kind, decoded(value)))


def stored_selection(kind: Kind, selection: Selection) -> Selection:
    """A selection by the fields that are stored."""
    if kind is not EVENT or not selection.fields:
        return selection
    fields = ",".join(_stored_field(term) for term in selection.fields.split(","))
    return Selection(selection.namespace, selection.labels, fields)


def _stored_field(term: str) -> str:
    for newer, core in CORE_NAMES.items():
        if term.startswith((f"{newer}.", f"{newer}=", f"{newer}!")):
            return core + term.removeprefix(newer)
    return term
