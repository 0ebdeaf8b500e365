"""What is wrong with a text inside an object that should be JSON: a registry's credentials, an annotation."""

from __future__ import annotations

from mooring.apiserver.wire.json_syntax import syntax_fault

_TYPE_NAMES = {"{": "object", "[": "array", '"': "string", "t": "bool", "f": "bool", "n": "null"}


def json_fault(data: bytes, wanted: str = "") -> str:
    """The first fault, in Go's words, or an empty text. `wanted` is the Go type of the object that it must be."""
    fault = syntax_fault(data)
    if fault is not None or not wanted:
        return fault or ""
    found = _TYPE_NAMES.get(chr(data.lstrip()[0]), "number")
    return "" if found in ("object", "null") else f"json: cannot unmarshal {found} into Go value of type {wanted}"
