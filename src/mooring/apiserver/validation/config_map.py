"""What is wrong with a ConfigMap.

1. Binary values are counted as they are, not as base64 writes them.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, too_long
from mooring.apiserver.validation.names import config_key_faults

DATA_BYTES_MAX = 1024 * 1024
IMMUTABLE_WHEN_SAID = "field is immutable when `immutable` is set"


def config_map_faults(config_map: Document) -> list[Fault]:
    faults: list[Fault] = []
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    size = 0
    for key, value in data.items():
        faults += [invalid(f"data[{key}]", key, text) for text in config_key_faults(key)]
        if key in binary:
            faults.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += len(value) if value.isascii() else len(value.encode())
    for key, value in binary.items():
        faults += [invalid(f"binaryData[{key}]", key, text) for text in config_key_faults(key)]
        size += decoded_length(value)
    if size > DATA_BYTES_MAX:
        # How Go prints the path of the whole object.
        faults.append(too_long("[]", DATA_BYTES_MAX))
    return faults


def immutable_data_faults(new: Document, old: Document, *fields: str) -> list[Fault]:
    """What an object that once called itself immutable may not change any more."""
    if not old.get("immutable"):
        return []
    faults = []
    if not new.get("immutable"):
        faults.append(forbidden("immutable", IMMUTABLE_WHEN_SAID))
    faults += [
        forbidden(field, IMMUTABLE_WHEN_SAID) for field in fields if (new.get(field) or {}) != (old.get(field) or {})
    ]
    return faults


def decoded_length(base64_text: str) -> int:
    return len(base64_text) // 4 * 3 - base64_text.count("=", -2)
