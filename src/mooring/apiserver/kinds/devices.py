"""Shared validation of resource.k8s.io kinds: names of devices, CEL selectors, driver parameters, binding conditions.

1. Items of a list that is too long are not validated.
2. A long map key is cut in the middle in field paths. Errors of a key name the map.
3. A selector that is too long is not compiled, and one whose estimated cost is too high is invalid.
4. Stored parameters may exceed today's limit.
5. Binding conditions and binding failure conditions require each other and are disjoint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from mooring.api.document import Document
from mooring.apiserver.kinds.volume_sources import validate_driver_name
from mooring.apiserver.validation.fields import (
    FieldError,
    duplicate,
    first_positions,
    forbidden,
    internal,
    invalid,
    required,
    too_long,
    too_many,
)
from mooring.apiserver.validation.names import dns_label_errors, dns_subdomain_errors, matching_rule
from mooring.apiserver.validation.selectors import validate_label_name

POOL_NAME_BYTES_MAX = 253
IDENTIFIER_BYTES_MAX = 32
KEY_SHOWN_BYTES_MAX = 63 + 1 + IDENTIFIER_BYTES_MAX

Check: TypeAlias = Callable[[Any, str], list[FieldError]]
"""Validates an item at a path."""

_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_is_identifier = re.compile(_IDENTIFIER).fullmatch
_is_uuid = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
_is_bare_uuid = re.compile("[0-9a-fA-F]{32}").fullmatch
_UUID_LENGTH = 36
_URN = "urn:uuid:"
_NORMAL_UUID = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal "
    "characters"
)


SELECTORS_COUNT_MAX = 32
CONFIGS_COUNT_MAX = 32
EXPRESSION_BYTES_MAX = 10 * 1024
PARAMETERS_BYTES_MAX = 10 * 1024

_INTERNAL = "program instantiation failed: "

CONDITIONS_COUNT_MAX = 4

_BINDING, _FAILURE = "bindingConditions", "bindingFailureConditions"


_IDENTIFIER_RULE = matching_rule(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_'",
    _IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)


def validate_label(name: str, path: str) -> list[FieldError]:
    """The names of devices, requests and counters."""
    return [invalid(path, name, text) for text in dns_label_errors(name)]


def validate_pool_name(name: str, path: str) -> list[FieldError]:
    """The name of a pool: DNS subdomains separated by slashes."""
    if not name:
        return [required(path)]
    field_errors = [too_long(path, POOL_NAME_BYTES_MAX)] if len(name.encode()) > POOL_NAME_BYTES_MAX else []
    return field_errors + [invalid(path, part, text) for part in name.split("/") for text in dns_subdomain_errors(part)]


def validate_qualified_device_name(name: str, path: str) -> list[FieldError]:
    """The name of an attribute or a capacity. A name with more than one slash is not checked."""
    parts = name.split("/")
    if len(parts) == 1:
        return validate_identifier(name, path)
    if len(parts) > 2:
        return []
    domain, identifier = parts
    field_errors = validate_driver_name(domain, path) if domain else [invalid(path, "", "the domain must not be empty")]
    if not identifier:
        return [*field_errors, invalid(path, "", "the name must not be empty")]
    return field_errors + validate_identifier(identifier, path)


def validate_full_device_name(name: str, path: str) -> list[FieldError]:
    """The same, where the domain is required."""
    field_errors = validate_qualified_device_name(name, path)
    if "/" not in name:
        field_errors.append(
            invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash")
        )
    return field_errors


def validate_identifier(name: str, path: str) -> list[FieldError]:
    field_errors = [too_long(path, IDENTIFIER_BYTES_MAX)] if len(name.encode()) > IDENTIFIER_BYTES_MAX else []
    return field_errors if _is_identifier(name) else [*field_errors, invalid(path, name, _IDENTIFIER_RULE)]


def validate_share_id(uid: str, path: str) -> list[FieldError]:
    """The identity of a share of a device."""
    wrong = _uuid_error(uid)
    if wrong:
        return [invalid(path, uid, f"error validating uid: {wrong}")]
    return [] if len(uid) == _UUID_LENGTH and uid == uid.lower() else [invalid(path, uid, _NORMAL_UUID)]


# --- lists and maps -----------------------------------------------------------------------------------------------


def validate_each(items: Sequence[Any], count_max: int, check: Check, path: str) -> list[FieldError]:
    """Field errors of the items of a list."""
    if len(items) > count_max:
        return [too_many(path, len(items), count_max)]
    field_errors: list[FieldError] = []
    for index, item in enumerate(items):
        field_errors += check(item, f"{path}[{index}]")
    return field_errors


def validate_set(
    items: Sequence[Any],
    count_max: int,
    check: Check,
    path: str,
    key: Callable[[Any], Hashable] = lambda item: item,
    shown: Callable[[Any], object] | None = None,
) -> list[FieldError]:
    """The same for a list whose items have unique keys. `shown` prints a duplicate key."""
    if len(items) > count_max:
        return [too_many(path, len(items), count_max)]
    field_errors = validate_each(items, count_max, check, path)
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        if key(item) in seen:
            field_errors.append(duplicate(f"{path}[{index}]", (shown or key)(item)))
        seen.add(key(item))
    return field_errors


def validate_map(entries: Mapping[str, Any], check_key: Check, check: Check, path: str) -> list[FieldError]:
    """Field errors of the keys and values of a map."""
    field_errors: list[FieldError] = []
    for key, value in entries.items():
        field_errors += check_key(key, path)
        field_errors += check(value, f"{path}[{_shortened(key)}]")
    return field_errors


def _shortened(key: str) -> str:
    data = key.encode()
    if len(data) <= KEY_SHOWN_BYTES_MAX:
        return key
    kept = KEY_SHOWN_BYTES_MAX - len("...")
    return (data[: (kept + 1) // 2] + b"..." + data[len(data) - kept // 2 :]).decode(errors="replace")


def _uuid_error(uid: str) -> str:
    """The message of Go's UUID parser, which accepts three other notations, too."""
    match len(uid.encode()):
        case 36:
            return "" if _is_uuid(uid) else "invalid UUID format"
        case 45:
            if uid[:9].lower() != _URN:
                return f'invalid urn prefix: "{uid[:9]}"'
            return "" if _is_uuid(uid[9:]) else "invalid UUID format"
        case 38:
            if uid[0] != "{" or uid[-1] != "}":
                return "invalid bracketed UUID format"
            return "" if _is_uuid(uid[1:-1]) else "invalid UUID format"
        case 32:
            return "" if _is_bare_uuid(uid) else "invalid UUID format"
        case length:
            return f"invalid UUID length: {length}"


def validate_selectors(selectors: Sequence[Document], path: str) -> list[FieldError]:
    return validate_each(selectors, SELECTORS_COUNT_MAX, _validate_device_selector, path)


def validate_configuration(config: Document, path: str, is_stored: bool = False) -> list[FieldError]:
    opaque = config.get("opaque")
    if opaque is None:
        return [required(f"{path}.opaque")]
    field_errors = validate_driver_name(opaque.get("driver", ""), f"{path}.opaque.driver")
    bytes_max = None if is_stored else PARAMETERS_BYTES_MAX
    return field_errors + validate_json_object(opaque.get("parameters"), f"{path}.opaque.parameters", bytes_max)


def validate_json_object(value: object, path: str, bytes_max: int | None) -> list[FieldError]:
    """Field errors of opaque driver parameters."""
    if value is None:
        return [required(path)]
    if bytes_max is not None and len(msgspec.json.encode(value)) > bytes_max:
        return [too_long(path, bytes_max)]
    return [] if isinstance(value, dict) else [invalid(path, "<value omitted>", "must be a valid JSON object")]


def _validate_device_selector(selector: Document, path: str) -> list[FieldError]:
    # Imported when a client writes a selector: the server is ready earlier.
    from mooring.api.cel import COST_MAX, DeviceSelectorError, compile_device_selector, worst_selector_cost

    cel = selector.get("cel")
    if cel is None:
        return [required(f"{path}.cel")]
    expression, here = cel.get("expression", ""), f"{path}.cel.expression"
    if len(expression.encode()) > EXPRESSION_BYTES_MAX:
        return [too_long(here, EXPRESSION_BYTES_MAX)]
    try:
        compile_device_selector(expression)
    except DeviceSelectorError as error:
        message = str(error)
        return [internal(here, message) if message.startswith(_INTERNAL) else invalid(here, expression, message)]
    return [forbidden(here, "too complex, exceeds cost limit")] if worst_selector_cost(expression) > COST_MAX else []


def validate_binding_conditions(holder: Document, path: str) -> list[FieldError]:
    """`holder` is a device, or a result of an allocation."""
    awaited, failures = holder.get(_BINDING) or [], holder.get(_FAILURE) or []
    if not awaited and not failures:
        return []
    field_errors = validate_each(awaited, CONDITIONS_COUNT_MAX, validate_label_name, f"{path}.{_BINDING}")
    field_errors += validate_each(failures, CONDITIONS_COUNT_MAX, validate_label_name, f"{path}.{_FAILURE}")
    first_awaited, first_failure = first_positions(awaited), first_positions(failures)
    for index, name in enumerate(awaited):
        if first_awaited[name] != index:
            field_errors.append(duplicate(f"{path}.{_BINDING}[{index}]", name))
    for index, name in enumerate(failures):
        here = f"{path}.{_FAILURE}[{index}]"
        if first_failure[name] != index:
            field_errors.append(duplicate(here, name))
        if name in first_awaited:
            field_errors.append(invalid(here, name, f"{_FAILURE} must not overlap with {_BINDING}"))
    for field, other, names in ((_BINDING, _FAILURE, awaited), (_FAILURE, _BINDING, failures)):
        if not names:
            field_errors.append(invalid(f"{path}.{field}", None, f"{field} are required to use {other}"))
    return field_errors
