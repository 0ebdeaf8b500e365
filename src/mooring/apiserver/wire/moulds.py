"""Moulds: what is known of a spec because one of its sort came before.

Comes in   the bytes of a body
Goes out   the document that they mean, canonical and defaulted, and the `Mould` of its spec; None if the body is not of
           the plain sort, and has to be read with care

The replicas of a workload are sent with the very same spec, byte for byte, and other pods with one that differs in
texts that nobody reads (`free_texts`). What it takes to make sense of one is done once: the others are cast from the
mould.

 1. A mould is found by all the bytes of a spec but those of free texts, and made from nothing else, so a body means the
    same whether its spec was known or not. Names, labels and owners are read each time.
 2. A body goes this way only if nothing in it needs a second look: JSON as we would write it ourselves, of just this
    kind, with fields that the kind has, values of the right type, and no key twice. Who goes the other way finds the
    same answer there, or the words for what is wrong.
 3. Whoever is given a document owns all of it: the spec is decoded for him, not shared.
 4. A spec of a sort that comes for the first time is only read: most never come again, and a mould is dear to make. One
    that comes again to the letter has a mould of its own, so that nobody need look for the free texts in it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from mooring.api.document import Document
from mooring.api.memory import Marks, Memory
from mooring.api.schema.model import Struct
from mooring.apiserver.free_texts import Outline, form_of, outline_of
from mooring.apiserver.mould import Mould
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.wire.canonical import canonical
from mooring.apiserver.wire.nesting import NESTING_MAX
from mooring.apiserver.wire.scalars import Irregular, ScalarFault

MOULDS_KEPT_MAX = 256
SEEN_MAX = 4096
SPEC_BYTES_MAX = 64 * 1024
"""A longer spec is read each time: so all moulds together stay below a few dozen megabytes."""

_READ_HERE = frozenset({"kind", "apiVersion", "metadata"})

BLANKS = b" \t\r\n"
"""Clients in Go end a body with a new line."""

_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Cast(NamedTuple):
    """A document, and the mould of its spec if that was cast from one."""

    document: Document
    mould: Mould | None


class Moulds:
    """The moulds of one kind, whose strategy says that the same spec comes often."""

    def __init__(self, struct: Struct, strategy: Strategy) -> None:
        metadata, spec = struct.fields["metadata"].type, struct.fields["spec"].type
        assert isinstance(metadata, Struct), f"the metadata of a {struct.name} is no struct"
        assert isinstance(spec, Struct), f"the spec of a {struct.name} is no struct"
        self._metadata_struct = metadata
        self._spec_struct = spec
        blank = canonical(struct, {}, [])
        self._always_there = tuple(name for name in blank if name not in ("metadata", "spec"))
        assert list(blank) == ["metadata", "spec", *self._always_there], f"a {struct.name} is {blank}"
        assert all(blank[name] == {} for name in self._always_there), f"a {struct.name} is {blank}"
        self._strategy = strategy
        self._known: Memory[bytes, Mould] = Memory(MOULDS_KEPT_MAX)
        self._seen = Marks(SEEN_MAX)

    def cast(self, data: bytes) -> Cast | None:
        """The document of a body, or None."""
        parts = plain_parts(data.rstrip(BLANKS))
        spec = bytes(parts.pop("spec", b"")) if parts is not None else b""
        if parts is None or not spec or len(spec) > SPEC_BYTES_MAX:
            return None
        read = self._read_spec(spec)
        document = self._rest(_encode(parts)) if read is not None else None
        if read is None or document is None:
            return None
        document["spec"], mould = read
        return Cast(document, mould)

    def _read_spec(self, data: bytes) -> tuple[Document, Mould | None] | None:
        """A spec, canonical and defaulted, and its mould; None if it is not plain."""
        known = self._known.get(data)
        if known is not None:
            return _decode(known.form.pieces[0]), known
        outline = outline_of(data)
        mould = self._known.get(outline.form)
        if mould is None and not self._seen.is_new(outline.form):
            mould = self._made(outline)
        if mould is None:
            spec = self._canonical_spec(data)
            return (spec, None) if spec is not None else None
        form = mould.form.filled(outline.texts)
        if outline.texts and not self._seen.is_new(data):
            mould = self._known.keep(data, mould.of_one(form))
        return _decode(form), mould

    def _made(self, outline: Outline) -> Mould | None:
        marked = outline.marked()
        spec = self._canonical_spec(marked) if marked is not None else None
        return self._known.keep(outline.form, Mould(form_of(_encode(spec)))) if spec is not None else None

    def _canonical_spec(self, data: bytes) -> Document | None:
        spec = _canonical(self._spec_struct, plain_value(data))
        if spec is not None:
            self._strategy.default_spec(spec)
        return spec

    def _rest(self, data: bytes) -> Document | None:
        """An object of this metadata, with its spec still to come."""
        value, kind = plain_value(data), self._strategy.kind
        if value is None or value.keys() - _READ_HERE:
            return None
        if value.get("kind", kind.kind) != kind.kind or value.get("apiVersion", kind.api_version) != kind.api_version:
            return None
        metadata = _canonical(self._metadata_struct, value.get("metadata"))
        if metadata is None:
            return None
        document: Document = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata, "spec": {}}
        for name in self._always_there:
            document[name] = {}
        self._strategy.default_rest(document)
        return document


def plain_parts(data: bytes) -> dict[str, msgspec.Raw] | None:
    """The parts of a JSON object; None if it is not as we would write it, or names one twice."""
    try:
        parts = _parts(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return parts if _encode(parts) == data else None


def plain_value(data: bytes) -> Any:
    """The value of a JSON text; None if it is not as we would write it, or could be nested too deep."""
    if data.count(b"{") + data.count(b"[") > NESTING_MAX:
        return None
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if _encode(value) == data else None


def _canonical(struct: Struct, value: Any) -> Document | None:
    dropped: list[str] = []
    if type(value) is not dict:
        return None
    try:
        document = canonical(struct, value, dropped)
    except (Irregular, ScalarFault):
        return None
    return None if dropped else document
