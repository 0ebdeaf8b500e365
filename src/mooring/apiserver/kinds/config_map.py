"""ConfigMap (v1).

1. Binary values count with their decoded size.
2. An immutable ConfigMap stays immutable.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, column
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid, too_long
from mooring.apiserver.validation.names import config_key_errors

DATA_BYTES_MAX = 1024 * 1024
IMMUTABLE_WHEN_SAID = "field is immutable when `immutable` is set"


def validate_config_map(config_map: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    size = 0
    for key, value in data.items():
        errors += [invalid(f"data[{key}]", key, text) for text in config_key_errors(key)]
        if key in binary:
            errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += len(value) if value.isascii() else len(value.encode())
    for key, value in binary.items():
        errors += [invalid(f"binaryData[{key}]", key, text) for text in config_key_errors(key)]
        size += decoded_length(value)
    if size > DATA_BYTES_MAX:
        # How Go prints the path of the whole object.
        errors.append(too_long("[]", DATA_BYTES_MAX))
    return errors


def validate_immutable_data(new: Document, old: Document, *fields: str) -> list[FieldError]:
    """Immutable data of an object with `immutable: true`."""
    if not old.get("immutable"):
        return []
    errors = []
    if not new.get("immutable"):
        errors.append(forbidden("immutable", IMMUTABLE_WHEN_SAID))
    errors += [
        forbidden(field, IMMUTABLE_WHEN_SAID) for field in fields if (new.get(field) or {}) != (old.get(field) or {})
    ]
    return errors


def decoded_length(base64_text: str) -> int:
    return len(base64_text) // 4 * 3 - base64_text.count("=", -2)


def _config_map_cells(obj: Document, now_s: float) -> list[Cell]:
    count = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [obj["metadata"]["name"], count, age(obj, now_s)]


class ConfigMapStrategy(Strategy):
    """Writing a ConfigMap."""

    table = KindTable((NAME, column("Data", "How many entries it has."), AGE), _config_map_cells)

    shares_parts = True

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_config_map(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        errors = self.validate_meta_update(obj, old)
        errors += validate_immutable_data(obj, old, "data", "binaryData")
        return errors + self.validate(obj, call)


STRATEGY = ConfigMapStrategy
