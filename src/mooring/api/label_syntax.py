"""What a label may look like: `example.com/tier` for keys, `front-end` for values.

Comes in   keys and values of labels, from selectors and from objects
Goes out   the errors of each, in Kubernetes' words; an empty list when there are none

 1. Lengths are counted in bytes, not in characters.
"""

from __future__ import annotations

import re

NAME_BYTES_MAX = 63
VALUE_BYTES_MAX = 63
PREFIX_BYTES_MAX = 253

_NAME_FORM = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORM = f"({_NAME_FORM})?"
_DNS_LABEL_FORM = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX_FORM = rf"{_DNS_LABEL_FORM}(\.{_DNS_LABEL_FORM})*"

_is_name = re.compile(_NAME_FORM, re.ASCII).fullmatch
_is_value = re.compile(_VALUE_FORM, re.ASCII).fullmatch
_is_prefix = re.compile(_PREFIX_FORM, re.ASCII).fullmatch

_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_FORM}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE_FORM}')"
)
_PREFIX_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character "
    f"(e.g. 'example.com', regex used for validation is '{_PREFIX_FORM}')"
)
_TOO_MANY_PARTS = (
    f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)


def label_key_errors(key: str) -> list[str]:
    """What is wrong with a label's key: a name, with a DNS subdomain and a slash before it or without."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [_TOO_MANY_PARTS]
    errors = _prefix_errors(prefix) if slash else []
    if not name:
        errors.append("name part must be non-empty")
    elif _byte_count(name) > NAME_BYTES_MAX:
        errors.append(f"name part must be no more than {NAME_BYTES_MAX} bytes")
    if not _is_name(name):
        errors.append(f"name part {_NAME_RULE}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """What is wrong with a label's value."""
    errors = []
    if _byte_count(value) > VALUE_BYTES_MAX:
        errors.append(f"must be no more than {VALUE_BYTES_MAX} bytes")
    if not _is_value(value):
        errors.append(_VALUE_RULE)
    return errors


def _prefix_errors(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    errors = []
    if _byte_count(prefix) > PREFIX_BYTES_MAX:
        errors.append(f"prefix part must be no more than {PREFIX_BYTES_MAX} bytes")
    if not _is_prefix(prefix):
        errors.append(f"prefix part {_PREFIX_RULE}")
    return errors


def _byte_count(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
