"""The spec cache: decoded, defaulted and validated specs, by their exact bytes.

The pods of a workload are created with the same spec, byte for byte. It is decoded, defaulted and validated once.

 1. A key holds everything that the cached result depends on. The validator gets `SpecInputs`, which is the key, and
    nothing else. Decoding follows the schema of the spec, and `Strategy.default_spec` gets the spec and nothing else.
 2. Only results without errors are cached: an invalid object is always decoded and validated in full, and gets its
    error message there.
 3. A caller owns the spec that it gets: it is decoded from cached bytes for each call.
 4. The cache holds at most `BYTES_MAX` bytes of keys and results. The oldest entries are dropped first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from mooring.api.document import Document
from mooring.apiserver.call import FieldValidation
from mooring.apiserver.validation.fields import FieldError

BYTES_MAX = 16 * 1024 * 1024
SPEC_BYTES_MAX = 64 * 1024
"""A longer spec is not cached."""
ENTRY_BYTES = 200
"""The overhead of an entry."""
BLANKS = b" \t\r\n"
"""White space around a body. Clients in Go end a body with a line break."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class SplitBody(NamedTuple):
    """A JSON body without its spec, and the bytes of the spec."""

    rest: bytes
    spec: bytes


class SpecInputs(NamedTuple):
    """Everything that the validation of a spec may read."""

    spec: Document
    metadata: Document
    """The fields of the metadata that validation of the spec depends on, and no other."""


class ValidationResult(NamedTuple):
    """The result of validating a spec, or a new object."""

    errors: Sequence[FieldError]
    warnings: Sequence[str]


class SpecCache:
    """The cache of one kind."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._defaulted: _Entries[tuple[FieldValidation, bytes], bytes] = _Entries(bytes_max // 2)
        self._valid: _Entries[bytes, tuple[str, ...]] = _Entries(bytes_max // 2)

    def defaulted_spec(self, received: bytes, field_validation: FieldValidation) -> Document | None:
        """The decoded and defaulted form of a spec that was received before; None if it was not."""
        found = self._defaulted.get((field_validation, received))
        return _decode(found) if found is not None else None

    def put_defaulted(self, received: bytes, field_validation: FieldValidation, spec: Document) -> None:
        """`spec` is what decoding and defaulting made of the received bytes, without an error or a warning."""
        if len(received) <= SPEC_BYTES_MAX:
            value = _encode(spec)
            self._defaulted.put((field_validation, received), value, len(received) + len(value))

    def validated(self, inputs: SpecInputs, validate: Callable[[SpecInputs], ValidationResult]) -> ValidationResult:
        """The result of `validate` for a spec that was decoded, defaulted and admitted."""
        key = _encode(inputs)
        found = self._valid.get(key)
        if found is not None:
            return ValidationResult((), found)
        result = validate(inputs)
        if not result.errors and len(key) <= SPEC_BYTES_MAX:
            self._valid.put(key, tuple(result.warnings), len(key) + sum(map(len, result.warnings)))
        return result


def split_body(data: bytes) -> SplitBody | None:
    """The spec of a JSON body, and the body with an empty spec.

    None if there is no spec, or if encoding the parts does not give the same bytes: with a key twice, for instance.
    """
    data = data.rstrip(BLANKS)
    try:
        parts = _parts(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    spec = parts.get("spec")
    if spec is None or not bytes(spec).startswith(b"{") or _encode(parts) != data:
        return None
    parts["spec"] = msgspec.Raw(b"{}")
    return SplitBody(_encode(parts), bytes(spec))


class _Entries(Generic[Key, Value]):
    """A dictionary with a limit in bytes that drops its oldest entries."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._entries: dict[Key, tuple[Value, int]] = {}
        self._lock = Lock()  # the worker thread also validates specs

    def get(self, key: Key) -> Value | None:
        found = self._entries.get(key)
        return found[0] if found is not None else None

    def put(self, key: Key, value: Value, size: int) -> None:
        size += ENTRY_BYTES
        with self._lock:
            _, had = self._entries.pop(key, (None, 0))
            self._entries[key] = (value, size)
            self._bytes += size - had
            while self._bytes > self._bytes_max:
                oldest = next(iter(self._entries))
                self._bytes -= self._entries.pop(oldest)[1]
