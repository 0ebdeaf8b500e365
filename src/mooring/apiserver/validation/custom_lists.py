"""What is wrong with the list and map types of a schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.values import internal_value

_LIST, _KEYS, _MAP = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"


def list_faults(raw: Document, path: str, *, needs_atomic_sets: bool) -> list[Fault]:
    """What is wrong with one node."""
    faults = list(_preserving_faults(raw, path))
    faults += _map_faults(raw, path)
    faults += _list_faults(raw, path, needs_atomic_sets)
    faults += _keys_faults(raw, path)
    return faults


def map_set_faults(raw: Document, path: str) -> list[Fault]:
    """What would make items of a set or a map impossible to tell apart."""
    kind, items = raw.get(_LIST), raw.get("items")
    if kind not in ("set", "map") or not isinstance(items, dict):
        return []
    faults: list[Fault] = []
    if items.get("nullable"):
        faults.append(forbidden(f"{path}.items.nullable", f"cannot be nullable when {_LIST} is {kind}"))
    properties: Document = items.get("properties") or {}
    for name in (raw.get(_KEYS) or ()) if kind == "map" else ():
        held = properties.get(name)
        if held is None:
            continue
        place = f"{path}.items.properties[{name}]"
        if name not in (items.get("required") or ()) and held.get("default") is None:
            why = f"this property is in {_KEYS}, so it must have a default or be a required property"
            faults.append(required(f"{place}.default", why))
        if held.get("nullable"):
            faults.append(forbidden(f"{place}.nullable", f"this property is in {_KEYS}, so it cannot be nullable"))
    return faults


def has_unatomic_set(raw: Document) -> bool:
    return raw.get(_LIST) == "set" and any(_unatomic_faults(raw, ""))


def _preserving_faults(raw: Document, path: str) -> Iterator[Fault]:
    name = "x-kubernetes-preserve-unknown-fields"
    if raw.get(name) is False:
        yield invalid(f"{path}.{name}", False, "must be true or undefined")


def _map_faults(raw: Document, path: str) -> Iterator[Fault]:
    kind = raw.get(_MAP)
    if kind is None:
        return
    yield from _type_faults(raw, path, "object", _MAP)
    if kind not in ("atomic", "granular"):
        yield not_supported(f"{path}.{_MAP}", kind, ("atomic", "granular"))


def _list_faults(raw: Document, path: str, needs_atomic_sets: bool) -> Iterator[Fault]:
    kind = raw.get(_LIST)
    if kind is None:
        return
    wrong = list(_type_faults(raw, path, "array", _LIST))
    if not wrong and needs_atomic_sets and kind == "set":
        wrong = list(_unatomic_faults(raw, path))
    yield from wrong
    if kind not in ("atomic", "set", "map"):
        yield not_supported(f"{path}.{_LIST}", kind, ("atomic", "set", "map"))


def _type_faults(raw: Document, path: str, wanted: str, extension: str) -> Iterator[Fault]:
    type_name, why = raw.get("type", ""), f"must be {wanted} if {extension} is specified"
    if type_name != wanted:
        yield invalid(f"{path}.type", type_name, why) if type_name else required(f"{path}.type", why)


def _unatomic_faults(raw: Document, path: str) -> Iterator[Fault]:
    items = raw.get("items")
    if not isinstance(items, dict):
        return
    why = f"must be atomic as item of a list with {_LIST}=set"
    kind = items.get(_LIST)
    if items.get("type") == "array" and kind not in (None, "atomic"):
        yield invalid(f"{path}.items.{_LIST}", kind, why)
    if items.get("type") == "object" and items.get(_MAP) != "atomic":
        # kube-apiserver shows the list type of the item here, which an object has not.
        yield invalid(f"{path}.items.{_MAP}", kind, why)


def _keys_faults(raw: Document, path: str) -> Iterator[Fault]:
    kind, keys = raw.get(_LIST), raw.get(_KEYS) or ()
    if keys and kind != "map":
        why = f"must be map if {_KEYS} is non-empty"
        yield required(f"{path}.{_LIST}", why) if kind is None else invalid(f"{path}.{_LIST}", kind, why)
    if kind != "map":
        return
    items = raw.get("items")
    if not keys:
        yield required(f"{path}.{_KEYS}", f"must not be empty if {_LIST} is map")
    if items is None:
        yield required(f"{path}.items", f"must have a schema if {_LIST} is map")
    elif not isinstance(items, dict):
        shown = {
            "Schema": None,
            "JSONSchemas": [internal_value(each, "JSONSchemaProps", "apiextensions") for each in items],
        }
        yield invalid(f"{path}.items", shown, f"must only have a single schema if {_LIST} is map")
    elif items.get("type", "") != "object":
        why = f"must be object if parent array's {_LIST} is map"
        yield invalid(f"{path}.items.type", items.get("type", ""), why)
    else:
        yield from _key_faults(items, keys, path)


def _key_faults(items: Document, keys: Sequence[str], path: str) -> Iterator[Fault]:
    properties: Document = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key not in properties:
            yield invalid(f"{path}.{_KEYS}", list(keys), "entries must all be names of item properties")
        elif properties[key].get("type") in ("array", "object"):
            why = f"must be a scalar type if parent array's {_LIST} is map"
            yield invalid(f"{path}.items.properties[{key}].type", items["type"], why)
        if key in keys[:index]:
            yield invalid(f"{path}.{_KEYS}", list(keys), "must not contain duplicate entries")
