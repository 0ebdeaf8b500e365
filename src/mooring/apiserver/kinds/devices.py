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
from mooring.apiserver.kinds.volume_sources import csi_driver_name_faults
from mooring.apiserver.validation.fields import (
    Fault,
    duplicate,
    forbidden,
    internal,
    invalid,
    required,
    too_long,
    too_many,
)
from mooring.apiserver.validation.names import dns_label_faults, dns_subdomain_faults, matching_rule
from mooring.apiserver.validation.selectors import label_name_faults

POOL_NAME_BYTES_MAX = 253
IDENTIFIER_BYTES_MAX = 32
KEY_SHOWN_BYTES_MAX = 63 + 1 + IDENTIFIER_BYTES_MAX

Check: TypeAlias = Callable[[Any, str], list[Fault]]
"""From an item and its path to what is wrong with it."""

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

driver_faults = csi_driver_name_faults

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


def label_faults(name: str, path: str) -> list[Fault]:
    """The names of devices, requests and counters."""
    return [invalid(path, name, text) for text in dns_label_faults(name)]


def pool_name_faults(name: str, path: str) -> list[Fault]:
    """The name of a pool: names of nodes and the like, with slashes between them."""
    if not name:
        return [required(path)]
    faults = [too_long(path, POOL_NAME_BYTES_MAX)] if len(name.encode()) > POOL_NAME_BYTES_MAX else []
    return faults + [invalid(path, part, text) for part in name.split("/") for text in dns_subdomain_faults(part)]


def qualified_device_name_faults(name: str, path: str) -> list[Fault]:
    """The name of an attribute or a capacity. With more than one slash anything goes."""
    parts = name.split("/")
    if len(parts) == 1:
        return identifier_faults(name, path)
    if len(parts) > 2:
        return []
    domain, identifier = parts
    faults = driver_faults(domain, path) if domain else [invalid(path, "", "the domain must not be empty")]
    if not identifier:
        return [*faults, invalid(path, "", "the name must not be empty")]
    return faults + identifier_faults(identifier, path)


def full_device_name_faults(name: str, path: str) -> list[Fault]:
    """The same where there is no domain to assume."""
    faults = qualified_device_name_faults(name, path)
    if "/" not in name:
        faults.append(invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash"))
    return faults


def identifier_faults(name: str, path: str) -> list[Fault]:
    faults = [too_long(path, IDENTIFIER_BYTES_MAX)] if len(name.encode()) > IDENTIFIER_BYTES_MAX else []
    return faults if _is_identifier(name) else [*faults, invalid(path, name, _IDENTIFIER_RULE)]


def share_id_faults(uid: str, path: str) -> list[Fault]:
    """The identity of a share of a device."""
    wrong = _uuid_fault(uid)
    if wrong:
        return [invalid(path, uid, f"error validating uid: {wrong}")]
    return [] if len(uid) == _UUID_LENGTH and uid == uid.lower() else [invalid(path, uid, _NORMAL_UUID)]


# --- lists and maps -----------------------------------------------------------------------------------------------


def each_faults(items: Sequence[Any], count_max: int, check: Check, path: str) -> list[Fault]:
    """What is wrong with the items of a list."""
    if len(items) > count_max:
        return [too_many(path, len(items), count_max)]
    faults: list[Fault] = []
    for index, item in enumerate(items):
        faults += check(item, f"{path}[{index}]")
    return faults


def set_faults(
    items: Sequence[Any],
    count_max: int,
    check: Check,
    path: str,
    key: Callable[[Any], Hashable] = lambda item: item,
    shown: Callable[[Any], object] | None = None,
) -> list[Fault]:
    """The same for a list in which every item has a key of its own. `shown` prints a key that occurs again."""
    if len(items) > count_max:
        return [too_many(path, len(items), count_max)]
    faults = each_faults(items, count_max, check, path)
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        if key(item) in seen:
            faults.append(duplicate(f"{path}[{index}]", (shown or key)(item)))
        seen.add(key(item))
    return faults


def map_faults(
    entries: Mapping[str, Any], check_key: Check, check: Check, path: str, shown_bytes_max: int = KEY_SHOWN_BYTES_MAX
) -> list[Fault]:
    """What is wrong with the keys and values of a map."""
    faults: list[Fault] = []
    for key, value in entries.items():
        faults += check_key(key, path)
        faults += check(value, f"{path}[{_shortened(key, shown_bytes_max)}]")
    return faults


def _shortened(key: str, bytes_max: int) -> str:
    data = key.encode()
    if len(data) <= bytes_max:
        return key
    kept = bytes_max - len("...")
    return (data[: (kept + 1) // 2] + b"..." + data[len(data) - kept // 2 :]).decode(errors="replace")


def _uuid_fault(uid: str) -> str:
    """What a parser of UUIDs says; it takes three other ways of writing one, too."""
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


def selectors_faults(selectors: Sequence[Document], path: str) -> list[Fault]:
    return each_faults(selectors, SELECTORS_COUNT_MAX, _device_selector_faults, path)


def configuration_faults(config: Document, path: str, is_stored: bool = False) -> list[Fault]:
    opaque = config.get("opaque")
    if opaque is None:
        return [required(f"{path}.opaque")]
    faults = driver_faults(opaque.get("driver", ""), f"{path}.opaque.driver")
    bytes_max = None if is_stored else PARAMETERS_BYTES_MAX
    return faults + json_object_faults(opaque.get("parameters"), f"{path}.opaque.parameters", bytes_max)


def json_object_faults(value: object, path: str, bytes_max: int | None) -> list[Fault]:
    """What is wrong with JSON that only somebody else understands."""
    if value is None:
        return [required(path)]
    if bytes_max is not None and len(msgspec.json.encode(value)) > bytes_max:
        return [too_long(path, bytes_max)]
    return [] if isinstance(value, dict) else [invalid(path, "<value omitted>", "must be a valid JSON object")]


def _device_selector_faults(selector: Document, path: str) -> list[Fault]:
    # Imported when somebody asks for devices: a server is ready earlier.
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
        words = str(error)
        return [internal(here, words) if words.startswith(_INTERNAL) else invalid(here, expression, words)]
    return [forbidden(here, "too complex, exceeds cost limit")] if worst_selector_cost(expression) > COST_MAX else []


def binding_conditions_faults(holder: Document, path: str) -> list[Fault]:
    """`holder` is a device, or a result of an allocation."""
    awaited, failures = holder.get(_BINDING) or [], holder.get(_FAILURE) or []
    if not awaited and not failures:
        return []
    faults = each_faults(awaited, CONDITIONS_COUNT_MAX, label_name_faults, f"{path}.{_BINDING}")
    faults += each_faults(failures, CONDITIONS_COUNT_MAX, label_name_faults, f"{path}.{_FAILURE}")
    for index, name in enumerate(awaited):
        if name in awaited[:index]:
            faults.append(duplicate(f"{path}.{_BINDING}[{index}]", name))
    for index, name in enumerate(failures):
        here = f"{path}.{_FAILURE}[{index}]"
        if name in failures[:index]:
            faults.append(duplicate(here, name))
        if name in awaited:
            faults.append(invalid(here, name, f"{_FAILURE} must not overlap with {_BINDING}"))
    for field, other, names in ((_BINDING, _FAILURE, awaited), (_FAILURE, _BINDING, failures)):
        if not names:
            faults.append(invalid(f"{path}.{field}", None, f"{field} are required to use {other}"))
    return faults
